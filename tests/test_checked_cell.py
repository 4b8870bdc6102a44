"""A checked cell runs as the bare cell does, and is followed by one report."""

from __future__ import annotations

import re

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line

from tests.mistakes import LOST
from torchmagic.report import Report

QUIET = re.compile(r"^torchcheck: nothing wrong", re.MULTILINE)


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


def test_a_docstring_of_the_cell_is_its_docstring(run):
    """As in the bare cell, it is an expression, and `__doc__` is the notebook's."""
    bare = run("'Doc.'\n__doc__").result.result
    ran = run("%%torchcheck\n'Doc.'\n__doc__")

    assert ran.result.result == bare
    assert len(QUIET.findall(ran.out)) == 1


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


@pytest.mark.parametrize(
    ("statement", "message"),
    [("return 1", "'return' outside function"), ("nonlocal y", "nonlocal declaration not allowed")],
)
def test_a_statement_that_fits_no_cell_is_refused(shell, run, statement, message):
    """Python refuses it as in the bare cell, after what stands above it; the report is on that."""
    ran = run(f"%%torchcheck\n{LOST}{statement}")

    assert f"SyntaxError: {message}" in ran.out + ran.err
    assert not ran.result.success
    assert shell.user_ns["x"].tolist() == [2.0, 2.0]
    assert ran.reports == 1
    assert "line 3 · discarded-transfer" in ran.out


def test_a_cell_that_is_no_python_has_no_report(run):
    """Nothing ran."""
    ran = run("%%torchcheck\nx = (")

    assert isinstance(ran.result.error_before_exec, SyntaxError)
    assert ran.reports == 0


def test_a_syntax_error_has_the_line_and_column_of_the_editor(run):
    """The magic's line is line 1."""
    error = run("%%torchcheck\nx = = 1").result.error_before_exec

    assert (error.lineno, error.offset, error.text) == (2, 5, "x = = 1\n")


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
