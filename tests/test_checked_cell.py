"""A checked cell runs as the bare cell does, and is followed by one report."""

from __future__ import annotations

import gc
import re
import sys
import threading
import weakref

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line

from torchmagic.report import Report

QUIET = re.compile(r"^torchcheck: nothing wrong", re.MULTILINE)

LOST = "import torch; w = torch.ones(2)\nw.half()\nx = w + 1\n"
"""Three lines, with a warning on the second."""


def test_a_report_follows_the_cell(run):
    """What the cell prints and returns comes first."""
    ran = run("%%torchcheck\nprint('printed')\n40 + 2")

    assert ran.result.result == 42
    assert re.fullmatch(r"printed\nOut\[1\]: 42\ntorchcheck: nothing wrong[^\n]*\n", ran.out)


def test_a_finding_has_the_line_of_the_editor(run):
    """The magic's line is line 1."""
    assert "line 3 · discarded-transfer" in run("%%torchcheck\n" + LOST).out


def test_the_history_variables_are_those_of_the_bare_cell(shell, run):
    """`_`, `Out` and `_i` do not know about the report."""
    run("%%torchcheck\n40 + 2")

    assert (shell.user_ns["_"], shell.user_ns["Out"]) == (42, {1: 42})
    assert shell.user_ns["_i1"] == "%%torchcheck\n40 + 2"
    assert shell.user_ns["In"][1] == "get_ipython().run_line_magic('torchcheck', '--cell')\n40 + 2"


def test_a_failing_cell_fails_and_is_reported_on(run):
    """Its own traceback is shown, then the report."""
    ran = run("%%torchcheck\n" + LOST + "1/0")

    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert ran.out.index("ZeroDivisionError: division by zero") < ran.out.index("torchcheck: 1 finding")
    assert "line 3 · discarded-transfer" in ran.out


@pytest.mark.parametrize("mode", ["Context", "Verbose", "Plain", "Minimal"])
def test_a_traceback_shows_what_was_typed(shell, run, mode):
    """The call that the magic became is shown nowhere."""
    shell.run_line_magic("xmode", mode)
    ran = run("%%torchcheck --level note\ndef f():\n    return 1/0\nf()")

    assert "ZeroDivisionError" in ran.out
    assert "run_line_magic" not in ran.out


def test_a_traceback_counts_lines_as_the_editor_does(run):
    """The magic's line is shown as a comment."""
    ran = run("%%torchcheck --level note\n1/0")

    assert re.search(r"1 #%%torchcheck --level note\n-+> 2 1/0", ran.out)


def test_an_error_below_a_future_import_is_shown_as_typed(run):
    """The call behind the import is not shown."""
    ran = run("%%torchcheck\nfrom __future__ import annotations  # why\n1/0")

    assert re.search(r"2 from __future__ import annotations +# why\n-+> 3 1/0", ran.out)


@pytest.mark.parametrize(
    "head",
    [
        "from __future__ import annotations",
        '"""Doc."""\nfrom __future__ import annotations',
        "from __future__ import (\n  annotations,\n)",
        "from __future__ import annotations; x = 1",
        "from __future__ import \\\n  annotations",
    ],
)
def test_future_imports_work(run, head):
    """The annotation of a name that does not exist is not evaluated, and the cell is reported on."""
    ran = run(f"%%torchcheck\n{head}\ndef f(x: nope): pass\nf.__annotations__")

    assert ran.result.result == {"x": "nope"}
    assert len(QUIET.findall(ran.out)) == 1


def test_future_imports_work_below_time(run):
    """`%%time` compiles the whole cell at once."""
    ran = run("%%time\n%%torchcheck\nfrom __future__ import annotations\nx = 1")

    assert ran.result.success
    assert len(QUIET.findall(ran.out)) == 1


def test_a_future_that_does_not_exist_is_refused_by_python(run):
    """The message is the bare cell's."""
    ran = run("%%torchcheck\nfrom __future__ import nope\n")

    assert "SyntaxError: future feature nope is not defined" in ran.out + ran.err
    assert "run_line_magic" not in ran.out + ran.err


@pytest.mark.parametrize("statement", ["return 1", "nonlocal x"])
def test_a_statement_that_fits_no_cell_is_refused(run, statement):
    """Python refuses it as in the bare cell."""
    assert not run(f"%%torchcheck\nx = 1\n{statement}").result.success


def test_a_cell_that_is_no_python_has_no_report(run):
    """Nothing ran."""
    ran = run("%%torchcheck\nx = (")

    assert isinstance(ran.result.error_before_exec, SyntaxError)
    assert ran.reports == 0


@pytest.mark.parametrize("magic", ["time", "prun", "timeit -n 3 -r 2"])
def test_magics_above_work(run, magic):
    """The cell is reported on once, however often it ran."""
    ran = run(f"%%{magic}\n%%torchcheck\n" + LOST)

    assert ran.result.success
    assert ran.reports == 1
    assert "line 3 · discarded-transfer" in ran.out or magic.startswith("timeit")


def test_capture_above_captures_the_report(shell, run):
    """The report is among what was captured."""
    ran = run("%%capture seen\n%%torchcheck\nprint(1)")

    assert ran.reports == 0
    assert re.fullmatch(r"1\ntorchcheck: nothing wrong[^\n]*\n", shell.user_ns["seen"].stdout)


def test_a_file_is_written_with_the_magic_in_it(shell, run, tmp_path):
    """The body of `%%writefile` is not a cell."""
    run(f"%%writefile {tmp_path / 'x.py'}\n%%torchcheck\nx = 1\n")

    assert (tmp_path / "x.py").read_text() == "%%torchcheck\nx = 1\n"


@pytest.mark.parametrize("magic", ["time", "timeit -n 1 -r 1", "prun", "capture", "bash", "html"])
def test_magics_below_work(run, magic):
    """The report comes after what they show."""
    ran = run(f"%%torchcheck\n%%{magic}\ntrue = 1\n")

    assert ran.result.success
    assert ran.reports == 1
    assert ran.out.splitlines()[-1].strip().startswith("torchcheck: nothing wrong")


def test_a_finding_below_another_magic_has_the_line_of_the_editor(run):
    """Both magics' lines count."""
    assert "line 4 · discarded-transfer" in run("%%torchcheck\n%%time\n" + LOST).out


@pytest.mark.parametrize("cell", ["x = 1\n%%torchcheck\n", "# why\n%%torchcheck\nx = 1"])
def test_elsewhere_than_on_the_first_line_it_is_no_magic(run, cell):
    """IPython answers as for `%%time`."""
    assert "UsageError: Line magic function `%%torchcheck` not found" in run(cell).err


@pytest.mark.parametrize(
    "cell",
    [
        "\n\n%%torchcheck\nx = 1\n",
        "  %%torchcheck\n  x = 1\n",
        "\t%%torchcheck\n\tx = 1\n",
        ">>> %%torchcheck\n>>> x = 1\n",
        "%%torchcheck\r\nx = 1\r\n",
    ],
)
def test_what_ipython_strips_does_not_matter(shell, run, cell):
    """Blank lines, indentation, prompts and line ends are as in any cell."""
    ran = run(cell)

    assert shell.user_ns["x"] == 1
    assert len(QUIET.findall(ran.out)) == 1


@pytest.mark.parametrize("cell", ["%%torchcheck", "%%torchcheck\n", "%%torchcheck\n# nothing"])
def test_a_cell_of_the_magic_alone_is_a_cell(run, cell):
    """It reports on the namespace."""
    ran = run(cell)

    assert ran.result.success
    assert len(QUIET.findall(ran.out)) == 1


@pytest.mark.parametrize("inner", ["''", "'y = 1'", "'y = 1', silent=True", "'%time 1'"])
def test_a_cell_within_the_cell_does_not_end_it(run, inner):
    """The report comes when the outer cell ends, with what it did last."""
    ran = run(f"%%torchcheck\nget_ipython().run_cell({inner})\nprint('last')\n")

    assert re.search(r"last\ntorchcheck: nothing wrong[^\n]*\n$", ran.out)
    assert ran.reports == 1


def test_a_checked_cell_within_a_checked_cell_has_its_own_report(run):
    """Each report comes when its own cell ends."""
    ran = run("%%torchcheck\nget_ipython().run_cell('%%torchcheck\\nprint(1)')\nprint(2)")

    assert re.fullmatch(r"1\ntorchcheck: [^\n]*\n2\n(Out.*\n)?torchcheck: [^\n]*\n", ran.out)


def test_arming_after_a_cell_within_the_cell_arms_the_outer_one(run):
    """IPython no longer says then which cell is running."""
    ran = run("get_ipython().run_cell('y = 1')\nget_ipython().run_line_magic('torchcheck', '--cell')\nprint('last')")

    assert re.search(r"last\ntorchcheck: [^\n]*\n$", ran.out)


def test_a_silent_cell_has_no_report(run):
    """And leaves nothing behind for the next cell."""
    assert run("%%torchcheck\nx = 1", silent=True).out == ""
    assert run("x = 1").out == ""


def test_a_cell_without_history_is_reported_on(run):
    """As front ends run cells that should not be counted."""
    assert run("%%torchcheck\nx = 1", store_history=False).reports == 1


def test_running_a_script_in_a_checked_cell_works(shell, run, tmp_path):
    """`%run -i` runs in the user's namespace."""
    (tmp_path / "x.py").write_text("z = 5\n")
    ran = run(f"%%torchcheck\n%run -i {tmp_path / 'x.py'}\nz")

    assert ran.result.result == 5
    assert ran.reports == 1


def test_a_checked_cell_can_be_run_again(run):
    """`%rerun` runs what was typed."""
    run("%%torchcheck\n40 + 2")
    ran = run("%rerun 1")

    assert "Out[3]: 42" in ran.out or "Out[2]: 42" in ran.out
    assert ran.reports == 1


def test_a_macro_of_a_checked_cell_is_a_checked_cell(run):
    """The macro holds the call."""
    run("%%torchcheck\n" + LOST)
    run("%macro again 1")
    ran = run("again")

    assert ran.result.success
    assert ran.reports == 1


def test_autoreload_is_not_in_the_way(run):
    """It reloads before the cell runs."""
    run("%load_ext autoreload\n%autoreload 2")

    assert run("%%torchcheck\nx = 1").reports == 1


def test_a_cell_that_exits_is_reported_on(run):
    """A kernel goes only after the report."""
    ran = run("%%torchcheck\nimport sys\nsys.exit(3)")

    assert isinstance(ran.result.error_in_exec, SystemExit)
    assert ran.reports == 1


def test_an_interrupted_cell_is_reported_on(run):
    """The interrupt stays the cell's outcome."""
    ran = run("%%torchcheck\nx = 1\nraise KeyboardInterrupt")

    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert ran.out.splitlines()[-1].startswith("torchcheck: nothing wrong")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("a\nb"), "torchcheck: the report failed: ValueError: a"),
        (KeyboardInterrupt(), "torchcheck: the report failed: KeyboardInterrupt"),
        (TypeError("x" * 200), "torchcheck: the report failed: TypeError: " + "x" * 120),
    ],
)
def test_what_goes_wrong_in_a_report_is_one_line(run, monkeypatch, error, line):
    """The cell's outcome is its own."""

    def fail(*args, **options):
        raise error

    monkeypatch.setattr("torchmagic.checking.check", fail)
    ran = run("%%torchcheck\n40 + 2")

    assert ran.result.success
    assert ran.result.result == 42
    assert line in ran.out.splitlines()
    assert "Traceback" not in ran.out + ran.err


@pytest.mark.parametrize("on", ["", "%torchcheck on"])
def test_what_goes_wrong_before_the_cell_is_one_line(run, monkeypatch, on):
    """The report then knows nothing of what was there before."""

    def fail(*args, **options):
        raise TypeError("odd")

    run(on)
    monkeypatch.setattr("torchmagic.checking.take_snapshot", fail)
    lines = run(f"{'' if on else '%%torchcheck'}\n40 + 2").out.splitlines()

    assert lines[0] == "torchcheck: the report failed: TypeError: odd"
    assert lines[1].endswith("42")
    assert QUIET.match(lines[2])


def test_an_interrupt_before_the_cells_code_stops_the_cell(shell, run, monkeypatch):
    """The look at the namespace is part of the cell that is interrupted."""

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("torchmagic.checking.take_snapshot", interrupt)
    ran = run("%%torchcheck\nx = 1")

    assert isinstance(ran.result.error_in_exec, KeyboardInterrupt)
    assert "x" not in shell.user_ns
    assert ran.reports == 0


def test_what_goes_wrong_in_a_report_of_a_line_is_one_line(run, monkeypatch):
    """The cell goes on; but an interrupt stops the cell that the line stands in."""
    errors = [ValueError("odd"), KeyboardInterrupt()]

    def fail(*args, **options):
        raise errors.pop(0)

    monkeypatch.setattr("torchmagic.checking.check", fail)

    assert run("%torchcheck\nprint('on')").out == "torchcheck: the report failed: ValueError: odd\non\n"
    assert isinstance(run("%torchcheck\nprint('on')").result.error_in_exec, KeyboardInterrupt)


@pytest.mark.filterwarnings("ignore")
def test_a_cell_whose_loop_dies_is_reported_on(shell, run):
    """IPython then knows the cell under another identity."""

    def die(coroutine):
        coroutine.send(None)
        raise RuntimeError("the loop died")

    shell.loop_runner = die
    ran = run("%%torchcheck\nimport asyncio\nawait asyncio.sleep(0)")

    assert str(ran.result.error_in_exec) == "the loop died"
    assert ran.reports == 1
    assert run("x = 1").reports == 0


def test_functions_know_the_file_of_their_cell(run, monkeypatch):
    """The engine is told the name under which the cell was compiled, checked or under on."""
    names = []

    def check(namespace, filename=None, **options):
        names.append(filename == namespace["f"].__code__.co_filename)
        return Report()

    monkeypatch.setattr("torchmagic.checking.check", check)
    run("%%torchcheck\ndef f(): pass")
    run("%torchcheck on")
    run("def f(): pass")
    run("def f(): pass\n\n!true\n")
    run("def f(): pass\n%time 1", store_history=False)

    assert names == [True, True, True, True]


def test_cells_of_another_thread_are_another_story(shell, capsys):
    """A kernel runs subshells' cells side by side."""
    inside, go_on = threading.Event(), threading.Event()
    shell.user_ns.update(inside=inside, go_on=go_on)
    thread = threading.Thread(target=shell.run_cell, args=("%%torchcheck\ninside.set(); go_on.wait(10)\n",))
    thread.start()
    inside.wait(10)
    shell.events.trigger("pre_run_cell", "info of a cell here")
    before = capsys.readouterr().out
    go_on.set()
    thread.join()

    assert before == ""
    assert capsys.readouterr().out.count("torchcheck: ") == 1


def test_an_alias_runs_the_cell(shell, run):
    """IPython hands its body over, and it is a checked cell all the same."""
    run("%alias_magic --cell tc torchcheck")
    ran = run("%%tc --strict\n" + LOST + "x = 3")

    assert shell.user_ns["x"] == 3
    assert "line 3 · discarded-transfer" in ran.out
    assert not ran.result.success


def test_the_magic_twice_reports_twice(shell, run):
    """Each of the two asked for it."""
    ran = run("%%torchcheck\n%%torchcheck\nx = 1")

    assert shell.user_ns["x"] == 1
    assert ran.reports == 2


def test_a_failing_cell_of_an_alias_fails(shell, run):
    """Its error is the outer cell's."""
    run("%alias_magic --cell tc torchcheck")

    assert isinstance(run("%%tc\n1/0").result.error_in_exec, ZeroDivisionError)


def test_variables_in_the_options_are_expanded(shell, run):
    """As in every magic."""
    shell.user_ns["name"] = "kept"
    run("%%torchcheck -o {name}\nx = 1")

    assert len(shell.user_ns["kept"]) == 0


@pytest.mark.parametrize("interactivity", ["all", "last_expr_or_assign"])
def test_other_ways_to_show_values_do_not_show_ours(shell, run, interactivity):
    """The call is no value."""
    shell.ast_node_interactivity = interactivity

    assert re.fullmatch(
        r"Out\[1\]: 5\ntorchcheck: [^\n]*\n", run("%%torchcheck\nx = 5" + "\nx" * (interactivity == "all")).out
    )


@pytest.mark.parametrize("loss", ["get_ipython = None", "%reset -f", "del get_ipython"])
def test_losing_names_is_not_in_the_way(run, loss):
    """No name of the namespace is needed when the cell ends."""
    assert run(f"%%torchcheck\n{loss}").reports == 1


def test_nothing_is_kept_alive(shell, run):
    """What the user deletes after a report is gone."""
    run("class Thing: pass\nthing = Thing()")
    alive = weakref.ref(shell.user_ns["thing"])
    run("%torchcheck on")
    run("%%torchcheck -o kept\nsame = thing")
    run("again = same")
    run("del thing, same, again")
    gc.collect()

    assert alive() is None


def test_a_strict_error_keeps_no_frames(shell, run):
    """It is shown and never raised."""
    ran = run("%%torchcheck --strict\n" + LOST)

    assert str(ran.result.error_in_exec) == "torchcheck: 1 finding"
    assert ran.result.error_in_exec.__traceback__ is None
    assert sys.last_traceback is None


def test_a_forgotten_report_is_gone(run, shell):
    """Only the variable that was asked for keeps the report."""
    run("%%torchcheck -o kept\nx = 1")
    report = weakref.ref(shell.user_ns["kept"])
    run("del kept")
    shell.last_execution_result = None
    gc.collect()

    assert report() is None
