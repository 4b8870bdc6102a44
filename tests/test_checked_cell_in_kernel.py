"""A checked cell in a real kernel is what the bare cell is, and a report."""

from __future__ import annotations

import re
import sys
from importlib.metadata import version

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.kernels import running_kernel

LOST = "w = torch.ones(2)\nw.half()\nx = w + 1\n"
"""Three lines, with a warning on the second."""


@pytest.fixture(scope="module")
def kernel(tmp_path_factory):
    """Return one kernel for all the tests here."""
    with running_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
        assert kernel.run("%load_ext torchmagic\nimport torch").status == "ok"
        yield kernel
        # Whatever the tests did to it, no cell is left open and nothing is left behind.
        assert kernel.run("x = 1").outputs == []


def is_quiet(text):
    """Tell whether a report has nothing to say."""
    return re.fullmatch(r"torchcheck: nothing wrong[^\n]*", text) is not None


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


@pytest.mark.parametrize("above", ["", "%%time\n"])
def test_an_interrupted_loop_is_reported_on(kernel, above):
    """The interrupt is the cell's outcome."""
    outcome = kernel.run(
        f"{above}%%torchcheck\nimport time\nprint('started', flush=True)\nwhile True: time.sleep(0.01)",
        interrupt_at="started",
    )

    assert outcome.kinds[-1] == "display"
    assert is_quiet(outcome.outputs[-1][1])
    assert "KeyboardInterrupt" in str(outcome.outputs)
    assert kernel.run("%%torchcheck\nx = 1").kinds == ["display"]


def test_an_interrupted_await_is_reported_on(kernel):
    """There the kernel cancels the task, and has no result to hand over."""
    outcome = kernel.run(
        "%%torchcheck\nimport asyncio\nprint('started', flush=True)\nwhile True: await asyncio.sleep(0.05)",
        interrupt_at="started",
    )

    assert outcome.status == "error"
    assert outcome.kinds.count("display") == 1
    assert is_quiet(outcome.text("display"))
    assert kernel.run("%%torchcheck\nx = 1").kinds == ["display"]


def test_worker_processes_do_not_report(kernel):
    """A forked child leaves the cell to its parent."""
    outcome = kernel.run(
        "%%torchcheck\nimport os\n"
        "from torch.utils.data import DataLoader\n"
        "total = sum(int(batch.sum()) for batch in DataLoader(torch.arange(8), batch_size=2, num_workers=2))\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    ip = get_ipython()\n"
        "    left = ip.magics_manager.registry['TorchcheckMagics'].lifecycle.current()\n"
        "    os._exit(0 if left is None else 1)\n"
        "print(total, os.waitpid(child, 0)[1])"
    )

    assert outcome.text("stdout") == "28 0\n"
    assert outcome.kinds.count("display") == 1


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


def test_an_interrupted_report_is_one_line(kernel):
    """The interrupt is the report's, not the cell's."""
    kernel.run(
        "import time\nimport torchmagic.checking as checking\nright = checking.check\n"
        "def slow(*args, **options): print('checking', flush=True); time.sleep(50)\nchecking.check = slow"
    )
    outcome = kernel.run("%%torchcheck\n40 + 2", interrupt_at="checking")
    kernel.run("checking.check = right")

    assert outcome.status == "ok"
    assert outcome.text("stdout") == "checking\ntorchcheck: the report failed: KeyboardInterrupt\n"


@pytest.mark.skipif(int(version("ipykernel").split(".")[0]) < 7, reason="subshells came with ipykernel 7")
def test_a_cell_of_a_subshell_is_another_story(kernel):
    """A cell that runs beside a checked one does not end it."""
    sent = kernel.client.session.send(kernel.client.control_channel.socket, "create_subshell_request", {})
    reply = kernel.client.get_control_msg(timeout=20)
    assert reply["parent_header"]["msg_id"] == sent["header"]["msg_id"]
    subshell = reply["content"]["subshell_id"]
    kernel.run("import threading, time\nbegun, done = threading.Event(), threading.Event()")
    code = "begun.wait(20)\nprint('beside')\ndone.set()"
    content = {"code": code, "silent": False, "store_history": False, "user_expressions": {}, "allow_stdin": False}
    message = kernel.client.session.msg("execute_request", content)
    message["header"]["subshell_id"] = subshell
    kernel.client.shell_channel.send(message)
    outcome = kernel.run("%%torchcheck\nbegun.set()\nprint(done.wait(20))\ntime.sleep(0.3)\nprint('last')")

    assert outcome.outputs[0] == ("stdout", "True\nlast\n")
    assert outcome.kinds == ["stdout", "display"]


def notebook(*cells):
    """Return a notebook of code cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def execute(cells):
    """Run a notebook to its end or its first error, and return it with the error."""
    document = notebook(*cells)
    client = NotebookClient(document, timeout=60)
    client.create_kernel_manager().kernel_spec_manager.kernel_dirs = []
    try:
        client.execute()
    except CellExecutionError as error:
        return document, error
    return document, None


def test_run_all_stops_at_a_failing_cell_and_keeps_its_report():
    """As it stops at the bare cell."""
    document, error = execute(["%load_ext torchmagic\nimport torch", "%%torchcheck\n" + LOST + "1/0", "print('never')"])

    assert error is not None
    assert error.ename == "ZeroDivisionError"
    assert [output.output_type for output in document.cells[1].outputs] == ["error", "display_data"]
    assert "line 3 · discarded-transfer" in document.cells[1].outputs[1]["data"]["text/plain"]
    assert document.cells[2].outputs == []


def test_a_kernel_that_is_told_to_exit_reports_first(tmp_path):
    """The report is the last thing that it says."""
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext torchmagic\nimport torch")
        outcome = kernel.run("%%torchcheck\nexit()")

    assert outcome.kinds[-1:] == ["display"]
    assert is_quiet(outcome.text("display"))


def test_the_environments_python_is_what_ran(kernel):
    """The tests mean this environment's IPython."""
    assert kernel.run("import sys; sys.executable").text("result") == repr(sys.executable)
