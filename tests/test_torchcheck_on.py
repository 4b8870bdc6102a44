"""`%torchcheck on` reports after every cell, until `off`."""

from __future__ import annotations

import pytest

from tests.mistakes import LOST
from torchmagic.report import Report


def test_on_reports_after_every_cell_but_its_own(run):
    """Until off, which has no report either."""
    reports = [
        run(cell).reports
        for cell in ["x = 1", "%torchcheck on", "x = 1", "1/0", "x = (", "", "%torchcheck off", "x = 1"]
    ]

    assert reports == [0, 0, 1, 1, 0, 0, 0, 0]


@pytest.mark.parametrize("line", ["list", "explain grad-history", "-h", ""])
def test_a_question_under_on_has_no_report_below_its_answer(run, line):
    """Whoever asks something wants the answer; `%torchcheck` alone is the report."""
    run("%torchcheck on")

    assert run(f"x = 1\n%torchcheck {line}").reports == (line == "")
    assert run("x = 1").reports == 1


def test_a_question_in_a_checked_cell_leaves_the_cell_its_report(run):
    """The cell asked for it."""
    run("%torchcheck on")

    assert run("%%torchcheck\n%torchcheck list").reports == 1


def test_on_reports_once_for_cells_within_cells(run):
    """Only the outermost one is a cell that somebody typed."""
    run("import torch\n%torchcheck on")

    assert run("get_ipython().run_cell('x = 1')\nprint('last')").out.splitlines()[-1].startswith("torchcheck: ")
    assert run("get_ipython().run_cell('x = 1')").reports == 1


def test_on_gives_findings_their_lines(run):
    """The first line of the cell is line 1."""
    run("%torchcheck on")

    assert "line 2 · discarded-transfer" in run(LOST).out


def test_on_keeps_its_options(shell, run):
    """The report of the cell before is replaced."""
    run("%torchcheck on --ignore discarded-transfer -o kept")
    run(LOST)

    assert len(shell.user_ns["kept"]) == 0
    run("%torchcheck on -o kept")
    run(LOST)
    assert len(shell.user_ns["kept"]) == 1


def test_options_may_stand_before_the_action(shell, run):
    """The order does not matter."""
    run("%torchcheck -o kept on")
    run("x = 1")

    assert len(shell.user_ns["kept"]) == 0


def test_on_has_a_memory_of_its_own(run, monkeypatch):
    """Its reports count what they have shown; others show everything, and so does the first one after the next on."""
    memories = []

    def check(namespace, memory=None, **options):
        memories.append(memory)
        return Report()

    monkeypatch.setattr("torchmagic.checking.check", check)
    for cell in ("%torchcheck on", "x = 1", "x = 2", "%%torchcheck\nx = 3", "%torchcheck on", "x = 4"):
        run(cell)
    first, second, checked, anew = memories

    assert first is second
    assert checked is None
    assert anew is not None
    assert anew is not first


def test_a_checked_cell_under_on_has_one_report(run):
    """The one that it asked for."""
    run("%torchcheck on --ignore discarded-transfer")
    ran = run("%%torchcheck\n" + LOST)

    assert ran.reports == 1
    assert ran.out.startswith("torchcheck: 1 finding")


def test_strict_under_on_fails_each_cell_with_a_finding(run):
    """And no other cell."""
    run("%torchcheck on --strict")

    assert run("x = 1").result.success
    assert not run(LOST).result.success
