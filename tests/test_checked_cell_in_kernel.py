"""A checked cell in a real kernel is what the bare cell is, and a report."""

from __future__ import annotations

import re
import sys

import pytest

from tests.kernels import is_quiet
from tests.mistakes import LOST


def test_the_report_comes_after_the_cells_own_outputs(kernel):
    """What it prints, what it returns, its figures, and then the report as text and HTML."""
    kernel.run(
        "from IPython.display import display\nip = get_ipython()\n"
        "def figure(): display({'text/plain': 'figure'}, raw=True)"
    )
    kernel.run("ip.events.register('post_execute', figure)")
    outcome = kernel.run("%%torchcheck\nprint('printed')\n40 + 2")
    kernel.run("ip.events.unregister('post_execute', figure)")

    assert outcome.status == "ok"
    assert outcome.outputs[:3] == [("stdout", "printed\n"), ("result", "42"), ("display", "figure")]
    assert outcome.kinds[3:] == ["display"]
    assert is_quiet(outcome.outputs[3][1])
    assert "torchcheck" in outcome.html[0]


def test_the_result_is_the_cells(kernel):
    """`_` and `Out` are as after the bare cell."""
    count = kernel.run("%%torchcheck\n40 + 2").execution_count

    assert kernel.run(f"_, Out[{count}]").text("result") == "(42, 42)"


def test_a_failing_cell_fails(kernel):
    """Its traceback has the editor's lines, and the report follows."""
    outcome = kernel.run("%%torchcheck\n" + LOST + "1/0")

    assert (outcome.status, outcome.ename) == ("error", "ZeroDivisionError")
    assert outcome.kinds == ["error", "display"]
    assert re.search(r"-+> 5 1/0", outcome.text("error"))
    assert "run_line_magic" not in outcome.text("error")
    assert "line 3 · discarded-transfer" in outcome.text("display")


def test_an_error_in_a_function_of_the_cell_has_the_editors_lines(kernel):
    """The first line is shown as typed."""
    outcome = kernel.run("%%torchcheck --level error\ndef f():\n    1/0\nf()")

    assert re.search(r"1 #%%torchcheck --level error\n", outcome.text("error"))
    assert re.search(r"-+> 3 +1/0", outcome.text("error"))


@pytest.mark.parametrize(
    "head", ["", "from __future__ import annotations\n", '"""Doc."""\nfrom __future__ import annotations  # why\n']
)
def test_await_works(kernel, head):
    """Behind a future import too, where Python compiles the whole cell."""
    outcome = kernel.run(f"%%torchcheck\n{head}import asyncio\nawait asyncio.sleep(0, 'slept')")

    assert outcome.kinds == ["result", "display"]
    assert outcome.text("result") == "'slept'"


def test_an_awaiting_cell_that_fails_is_reported_on(kernel):
    """With the line of the editor."""
    outcome = kernel.run("%%torchcheck\nimport asyncio\nawait asyncio.sleep(0)\n1/0")

    assert outcome.ename == "ZeroDivisionError"
    assert outcome.kinds == ["error", "display"]
    assert re.search(r"-+> 4 1/0", outcome.text("error"))


@pytest.mark.parametrize("awaiting", ["", "import asyncio; await asyncio.sleep(0)\n"])
def test_strict_fails_the_cell_after_its_report(kernel, awaiting):
    """One sentence, no traceback, and the reply says that the cell failed."""
    outcome = kernel.run("%%torchcheck --strict\n" + awaiting + LOST)

    assert (outcome.status, outcome.ename, outcome.evalue) == ("error", "StrictError", "torchcheck: 1 finding")
    assert outcome.kinds == ["display", "error"]
    assert outcome.text("error") == "StrictError: torchcheck: 1 finding"
    assert kernel.run("import sys; sys.last_traceback").outputs == []


def test_a_wrong_option_stops_the_cell(kernel):
    """In one line."""
    outcome = kernel.run("%%torchcheck --nope\nprint('ran')")

    assert outcome.status == "error"
    assert outcome.outputs == [("stderr", "UsageError: unrecognized arguments: --nope\n")]


@pytest.mark.parametrize(
    "cell", ["%%torchcheck -h\nprint('ran')", "%torchcheck list", "%torchcheck explain grad-history"]
)
def test_questions_are_answered_and_nothing_runs(kernel, cell):
    """Help is text; rules and lessons are text and HTML."""
    outcome = kernel.run(cell)

    assert outcome.status == "ok"
    assert outcome.kinds == (["stdout"] if " -h" in cell else ["display"])
    assert "ran" not in outcome.text("stdout").split()


def test_a_front_end_completes_and_explains_the_magic(kernel):
    """TAB knows its name, Shift-TAB its help, and after its first line the cell is not complete."""
    completed = kernel.client.complete("%%torchch", reply=True, timeout=30)["content"]
    inspected = kernel.client.inspect("%%torchcheck", reply=True, timeout=30)["content"]
    kernel.client.is_complete("%%torchcheck\nx = 1")
    complete = kernel.client.get_shell_msg(timeout=30)["content"]

    assert "%%torchcheck" in completed["matches"]
    assert "keep the report in this variable" in inspected["data"]["text/plain"]
    assert complete["status"] == "incomplete"


@pytest.mark.parametrize("magic", ["time", "prun", "timeit -n 2 -r 2"])
def test_magics_above_work(kernel, magic):
    """One report, after what they print."""
    outcome = kernel.run(f"%%{magic}\n%%torchcheck\n" + LOST)

    assert outcome.status == "ok"
    assert outcome.kinds.count("display") == 1
    assert outcome.kinds[-1] == "display" or magic == "prun"


@pytest.mark.parametrize("magic", ["time", "prun", "timeit -n 2 -r 2", "capture", "bash", "html"])
def test_magics_below_work(kernel, magic):
    """One report, after what they show."""
    outcome = kernel.run(f"%%torchcheck\n%%{magic}\ntrue = 1")

    assert outcome.status == "ok"
    assert outcome.kinds[-1] == "display"
    assert is_quiet(outcome.outputs[-1][1])


def test_capture_above_captures_the_report(kernel):
    """It is shown with what else was captured."""
    assert kernel.run("%%capture seen\n%%torchcheck\nprint(1)").outputs == []
    assert is_quiet(kernel.run("seen.show()").text("display"))


def test_lines_of_other_syntax_work(kernel):
    """Magics, commands and their assignments, above a line that fails."""
    outcome = kernel.run("%%torchcheck\n%pwd\n!true\nfiles = !echo one\nwhere = %pwd\nprint(files)\n1/0")

    assert outcome.text("stdout") == "['one']\n"
    assert re.search(r"-+> 7 1/0", outcome.text("error"))


def test_cells_within_the_cell_do_not_end_it(kernel):
    """One report, when the outer cell ends."""
    outcome = kernel.run("%%torchcheck\nget_ipython().run_cell('y = 1')\nget_ipython().run_cell('');\nprint('last')")

    assert outcome.kinds == ["stdout", "display"]


def test_a_silent_cell_has_no_report(kernel):
    """Nor does it leave one to the next cell."""
    assert kernel.run("%%torchcheck\nx = 1", silent=True).outputs == []
    assert kernel.run("x = 1").outputs == []


def test_a_cell_without_history_is_reported_on(kernel):
    """As front ends run cells that should not be counted."""
    assert kernel.run("%%torchcheck\nx = 1", store_history=False).kinds == ["display"]


def test_a_macro_of_a_checked_cell_is_a_checked_cell(kernel):
    """Its findings have the macro's lines."""
    count = kernel.run("%%torchcheck\n" + LOST).execution_count
    kernel.run(f"%macro again {count}")
    outcome = kernel.run("again")

    assert outcome.kinds == ["display"]
    assert "line 3 · discarded-transfer" in outcome.text("display")


def test_a_cell_that_the_kernel_offers_to_edit_is_as_typed(kernel):
    """`%recall` puts it into the next cell."""
    count = kernel.run("%%torchcheck\n40 + 2").execution_count

    assert kernel.run(f"%recall {count}").next_input == "%%torchcheck\n40 + 2"


def test_on_reports_after_every_cell(kernel):
    """With the lines of each, and not after its own."""
    assert kernel.run("%torchcheck on").outputs == []
    assert "line 2 · discarded-transfer" in kernel.run(LOST).text("display")
    assert kernel.run("import asyncio\nawait asyncio.sleep(0)").kinds == ["display"]
    assert kernel.run("1/0").kinds == ["error", "display"]
    assert kernel.run("%torchcheck off").outputs == []
    assert kernel.run("x = 1").outputs == []


def test_what_goes_wrong_in_a_report_is_one_line(kernel):
    """The cell stays as right as it is."""
    kernel.run(
        "import torchmagic.checking as checking\nright = checking.check\n"
        "def wrong(*args, **options): raise TypeError('odd\\nthing')\nchecking.check = wrong"
    )
    outcome = kernel.run("%%torchcheck\n40 + 2")
    kernel.run("checking.check = right")

    assert outcome.status == "ok"
    assert outcome.outputs == [("result", "42"), ("stdout", "torchcheck: the report failed: TypeError: odd\n")]


def test_the_environments_python_is_what_ran(kernel):
    """The tests mean this environment's IPython."""
    assert kernel.run("import sys; sys.executable").text("result") == repr(sys.executable)
