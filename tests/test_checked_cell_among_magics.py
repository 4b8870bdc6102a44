"""Other magics stand above a checked cell, below it and in it."""

from __future__ import annotations

import builtins
import os
import re

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line

from tests.mistakes import LOST


@pytest.mark.parametrize("magic", ["time", "prun", "timeit -n 3 -r 2"])
def test_magics_above_work(run, magic):
    """The cell is reported on once, however often it ran."""
    ran = run(f"%%{magic}\n%%torchcheck\n" + LOST)

    assert ran.result.success
    assert ran.reports == 1
    assert "line 3 · discarded-transfer" in ran.out or magic.startswith("timeit")


def test_a_failing_cell_below_time_is_reported_on(run):
    """IPython 7 hides that such a cell failed; its traceback is shown all the same, and then the report."""
    ran = run("%%time\n%%torchcheck\n" + LOST + "1/0")

    assert ran.out.index("ZeroDivisionError: division by zero") < ran.out.index("torchcheck: 1 finding")
    assert ran.reports == 1


def test_strict_fails_a_cell_below_time(run):
    """In one sentence."""
    ran = run("%%time\n%%torchcheck --strict\n" + LOST)

    assert str(ran.result.error_in_exec) == "torchcheck: 1 finding"
    assert ran.out.count("StrictError: torchcheck: 1 finding") == 1
    assert "Traceback" not in ran.out


def test_capture_above_captures_the_report(shell, run):
    """The report is among what was captured."""
    ran = run("%%capture seen\n%%torchcheck\nprint(1)")

    assert ran.reports == 0
    assert re.fullmatch(r"1\ntorchcheck: nothing wrong[^\n]*\n", shell.user_ns["seen"].stdout)


def test_strict_below_capture_fails_what_is_captured(shell, run):
    """`%%capture` runs a cell of its own, whose error it shows; the cell that was typed is right."""
    ran = run("%%capture seen\n%%torchcheck --strict\n" + LOST)

    assert ran.result.success
    assert ran.reports == 0
    assert "StrictError: torchcheck: 1 finding" in ran.out + shell.user_ns["seen"].stdout


def test_a_file_is_written_with_the_magic_in_it(shell, run, tmp_path):
    """The body of `%%writefile` is not a cell."""
    run(f"%%writefile {tmp_path / 'x.py'}\n%%torchcheck\nx = 1\n")

    assert (tmp_path / "x.py").read_text() == "%%torchcheck\nx = 1\n"


@pytest.mark.parametrize("magic", ["bash", "script cat"])
def test_a_body_that_is_no_cell_is_not_checked(run, magic):
    """The magic is then a line of another language."""
    ran = run(f"%%{magic}\n%%torchcheck\n")

    assert ran.reports == 0
    assert "%%torchcheck" in ran.out + ran.err or magic == "bash"


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


def test_the_debugger_below_works(shell, run, monkeypatch):
    """It asks at its prompt, goes on, and the report follows."""
    asked = []
    monkeypatch.setattr(builtins, "input", lambda prompt: asked.append(prompt) or "c")
    ran = run("%%torchcheck\n%%debug\nx = 5\n")

    assert asked == ["ipdb> "]
    assert shell.user_ns["x"] == 5
    assert ran.reports == 1


def test_the_debugger_above_takes_its_body_as_python(run):
    """As it does with `%%time`; and nothing is left for the next cell."""
    ran = run("%%debug\n%%torchcheck\nx = 1\n")

    assert "SyntaxError: invalid syntax" in ran.out + ran.err
    assert ran.reports == 0
    assert run("x = 1").reports == 0


@pytest.mark.parametrize("cell", ["x = 1\n%%torchcheck\n", "# why\n%%torchcheck\nx = 1"])
def test_elsewhere_than_on_the_first_line_it_is_no_magic(run, cell):
    """IPython answers as for `%%time`."""
    assert "UsageError: Line magic function `%%torchcheck` not found" in run(cell).err


def test_running_a_script_in_a_checked_cell_works(shell, run, tmp_path):
    """`%run -i` runs in the user's namespace."""
    (tmp_path / "x.py").write_text("z = 5\n")
    ran = run(f"%%torchcheck\n%run -i {tmp_path / 'x.py'}\nz")

    assert ran.result.result == 5
    assert ran.reports == 1


def test_a_script_of_cells_has_no_report(shell, run, tmp_path):
    """`%run` of an .ipy file runs it silently."""
    (tmp_path / "x.ipy").write_text("%%torchcheck\nz = 5\n")

    assert run(f"%run {tmp_path / 'x.ipy'}").reports == 0
    assert shell.user_ns["z"] == 5
    assert run("x = 1").reports == 0


def test_autoreload_is_not_in_the_way(run):
    """It reloads before the cell runs."""
    run("%load_ext autoreload\n%autoreload 2")

    assert run("%%torchcheck\nx = 1").reports == 1


def test_a_reload_that_fails_is_not_in_the_way(run, tmp_path, monkeypatch):
    """It is told before the cell runs, and the report follows the cell."""
    monkeypatch.syspath_prepend(tmp_path)
    module = tmp_path / "reloaded_in_a_test.py"
    module.write_text("value = 1\n")
    run("%load_ext autoreload\n%autoreload 2\nimport reloaded_in_a_test")
    module.write_text("value = = 2\n")
    os.utime(module, (2e9, 2e9))
    ran = run("%%torchcheck\nprint(reloaded_in_a_test.value)")

    assert "[autoreload of reloaded_in_a_test failed: " in ran.out + ran.err
    assert re.search(r"^1\ntorchcheck: nothing wrong", ran.out, re.MULTILINE)


def test_an_alias_runs_the_cell(shell, run):
    """IPython hands its body over, and it is a checked cell all the same."""
    run("%alias_magic --cell tc torchcheck")
    ran = run("%%tc --strict\n" + LOST + "x = 3")

    assert shell.user_ns["x"] == 3
    assert "line 3 · discarded-transfer" in ran.out
    assert not ran.result.success


def test_a_failing_cell_of_an_alias_fails(shell, run):
    """Its error is the outer cell's."""
    run("%alias_magic --cell tc torchcheck")

    assert isinstance(run("%%tc\n1/0").result.error_in_exec, ZeroDivisionError)


def test_calling_the_magic_runs_the_cell(shell, run):
    """As a cell within the cell that calls it."""
    ran = run("get_ipython().run_cell_magic('torchcheck', '--level note', 'x = 5')")

    assert shell.user_ns["x"] == 5
    assert ran.reports == 1


def test_the_magic_twice_reports_twice(shell, run):
    """Each of the two asked for it."""
    ran = run("%%torchcheck\n%%torchcheck\nx = 1")

    assert shell.user_ns["x"] == 1
    assert ran.reports == 2


@pytest.mark.parametrize("name", ["{name}", "$name"])
def test_variables_in_the_options_are_expanded(shell, run, name):
    """As in every magic."""
    shell.user_ns["name"] = "kept"
    run(f"%%torchcheck -o {name}\nx = 1")

    assert len(shell.user_ns["kept"]) == 0
