"""A checked cell is kept as it was typed, and is a checked cell when it is run again."""

from __future__ import annotations

import sys

import pytest
import torch  # noqa: F401 -- reports on an empty namespace are one line

from tests.mistakes import LOST

CALL = "get_ipython().run_line_magic('torchcheck', '--cell')"


def test_the_history_shows_what_was_typed(run):
    """Of the translated history, which shows the call, `-t` is the option."""
    run("%%torchcheck\n40 + 2")

    assert run("%history 1").out == "%%torchcheck\n40 + 2\n"
    assert run("%history -t 1").out == CALL + "\n40 + 2\n"


@pytest.mark.parametrize(("option", "first_line"), [("", CALL), ("-r", "%%torchcheck")])
def test_a_saved_cell_is_a_checked_cell(run, tmp_path, option, first_line):
    """With the call or as typed, as for every magic."""
    run("%%torchcheck\n40 + 2")
    run(f"%save {option} {tmp_path / 'saved.ipy'} 1")

    assert (tmp_path / "saved.ipy").read_text() == f"# coding: utf-8\n{first_line}\n40 + 2\n"
    assert run((tmp_path / "saved.ipy").read_text().partition("\n")[2]).reports == 1


def test_a_checked_cell_can_be_run_again(run):
    """`%rerun` runs what was typed."""
    run("%%torchcheck\n40 + 2")
    ran = run("%rerun 1")

    assert "Out[3]: 42" in ran.out or "Out[2]: 42" in ran.out
    assert ran.reports == 1


def test_a_recalled_cell_stands_at_the_prompt_as_typed(shell, run):
    """To be changed, and run."""
    run("%%torchcheck\n40 + 2")
    run("%recall 1")

    assert shell.rl_next_input == "%%torchcheck\n40 + 2"


def test_an_edited_cell_is_a_checked_cell(shell, run, monkeypatch):
    """The editor holds the call, and the lines are the editor's."""
    change = (
        "import sys; lines = open(sys.argv[1]).readlines(); open(sys.argv[1], 'w').writelines(['# new\\n', *lines])"
    )
    monkeypatch.setattr(shell, "editor", f'{sys.executable} -c "{change}"', raising=False)
    run("%%torchcheck\n" + LOST)
    ran = run("%edit 1")

    assert ran.reports == 1
    assert "line 4 · discarded-transfer" in ran.out


def test_a_cell_edited_as_typed_is_a_checked_cell(shell, run, monkeypatch):
    """It runs as a cell within the cell."""
    monkeypatch.setattr(shell, "editor", "true", raising=False)
    run("%%torchcheck\n" + LOST)
    ran = run("%edit -r 1")

    assert ran.reports == 1
    assert "line 3 · discarded-transfer" in ran.out


@pytest.mark.parametrize(("head", "line"), [("", 3), ("from __future__ import annotations\n", 4)])
def test_a_macro_of_a_checked_cell_is_a_checked_cell(run, head, line):
    """The macro holds the call, and its text is that of the report."""
    run("%%torchcheck\n" + head + LOST)
    run("%macro again 1")
    ran = run("again")

    assert ran.result.success
    assert ran.reports == 1
    assert f"line {line} · discarded-transfer" in ran.out


def test_a_macro_of_several_cells_counts_its_own_lines(run):
    """The checked cell is the second of two."""
    run("first = 1\nsecond = 2")
    run("%%torchcheck\n" + LOST)
    run("%macro again 1 2")
    ran = run("again")

    assert ran.reports == 1
    assert "line 5 · discarded-transfer" in ran.out


def test_a_macro_of_the_text_is_as_wrong_as_any(run):
    """IPython does not translate the text of a macro, whatever the cell magic."""
    run("%%torchcheck\nx = 1")
    run("%macro -r again 1")

    assert isinstance(run("again").result.error_before_exec, SyntaxError)
