"""What may stand behind `%%torchcheck`, and what comes of it."""

from __future__ import annotations

import re

import pytest
import torch

from tests.mistakes import LOST
from torchmagic.findings import Finding
from torchmagic.report import Report


def test_a_line_of_its_own_reports_on_the_namespace_as_it_is(shell, run):
    """Nothing is known of a cell, so the report has no lines."""
    shell.user_ns["w"] = torch.ones(2)
    ran = run("%torchcheck -o kept")

    assert ran.out.startswith("torchcheck: nothing wrong · 1 tensor (8 bytes)")
    assert shell.user_ns["kept"].source_lines == ()


def test_a_line_in_a_checked_cell_has_a_report_of_its_own(run):
    """The cell's report comes when it ends."""
    ran = run("%%torchcheck\n%torchcheck\nprint('between')")

    assert [line.split(" ·")[0] for line in ran.out.splitlines() if line.startswith(("torchcheck", "between"))] == [
        "torchcheck: nothing wrong",
        "between",
        "torchcheck: nothing wrong",
    ]


def test_output_keeps_the_report(shell, run):
    """It is the report that was shown."""
    ran = run("%%torchcheck -o kept\n" + LOST)

    assert shell.user_ns["kept"].findings[0].line == 3
    assert str(shell.user_ns["kept"]) == ran.out.rstrip("\n")


def test_a_kept_report_does_not_confuse_the_next(run):
    """A report about a tensor holds no tensor."""
    run("%%torchcheck -o kept\n" + LOST)
    run("%reset_selective -f ^[wx]$")

    assert run("%torchcheck").out.startswith("torchcheck: nothing wrong · no tensors")


@pytest.mark.parametrize("option", ["--ignore discarded-transfer", "--only grad-history", "--level error"])
def test_rules_and_levels_are_chosen(run, option):
    """What was not asked for is no finding."""
    assert re.match("torchcheck: (nothing wrong|no errors) ", run(f"%%torchcheck {option}\n" + LOST).out)


@pytest.mark.parametrize(
    "option",
    [
        "--only discarded-transfer,grad-history",
        "--only grad-history --only discarded-transfer",
        "--ignore grad-history, --ignore ,",
        "-d cpu",
        "--device 'cpu'",
        "--level warning",
    ],
)
def test_lists_have_commas_or_repeat(run, option):
    """Both ways name the same rules."""
    assert run(f"%%torchcheck {option}\n" + LOST).out.startswith("torchcheck: 1 finding")


def test_a_comment_silences_its_line(run):
    """The comment is the user's word on that line."""
    cell = LOST.replace("half()", "half()  # torchcheck: ignore[discarded-transfer]")
    ran = run("%%torchcheck\n" + cell)

    assert ran.out.startswith("torchcheck: nothing wrong")


def test_strict_makes_a_cell_with_findings_fail(shell, run):
    """The report comes first; then the cell has failed, in one line."""
    ran = run("%%torchcheck --strict\n" + LOST + "w.sum().item()\n")

    assert str(ran.result.error_in_exec) == "torchcheck: 1 finding"
    assert ran.result.result == 2.0
    assert ran.out.startswith("Out[1]: 2.0\ntorchcheck: 1 finding")
    assert ran.out.splitlines()[-1] == "StrictError: torchcheck: 1 finding"
    assert not shell.last_execution_succeeded


def test_strict_lets_a_clean_cell_be(run):
    """There is nothing to fail for."""
    assert run("%%torchcheck --strict\nx = 1").result.success


def test_strict_leaves_a_failed_cell_its_own_error(run):
    """A cell fails once."""
    ran = run("%%torchcheck --strict\n" + LOST + "1/0")

    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert "StrictError" not in ran.out


def test_a_strict_line_fails_its_cell(shell, run, monkeypatch):
    """What is wrong with the namespace is wrong with the cell that asks."""
    found = Report(findings=(Finding("off-device", "error", "w", "It is on cpu."),))
    monkeypatch.setattr("torchmagic.checking.check", lambda namespace, **options: found)
    ran = run("%torchcheck --strict\nlast = 1")

    assert str(ran.result.error_in_exec) == "torchcheck: 1 finding"
    assert "last" not in shell.user_ns


def test_strict_counts_warnings_and_errors(run, monkeypatch):
    """A note is no reason to fail, even when notes are shown."""
    found = [Finding("off-device", level, "w", "It is on cpu.") for level in ("note", "warning", "error")]
    monkeypatch.setattr("torchmagic.checking.check", lambda namespace, **options: Report(findings=tuple(found)))

    assert str(run("%%torchcheck --strict --level note\nx = 1").result.error_in_exec) == "torchcheck: 2 findings"
    del found[1:]
    assert run("%%torchcheck --strict --level note\nx = 1").result.success


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nope", "unrecognized arguments: --nope"),
        ("--level loud", "argument --level: invalid choice: 'loud' (choose from 'note', 'warning', 'error')"),
        ("-o", "argument -o/--output: expected one argument"),
        ("-o 1x", "-o wants the name of a variable, not '1x'"),
        ("-o class", "-o wants the name of a variable, not 'class'"),
        ("-o a.b", "-o wants the name of a variable, not 'a.b'"),
        ("-o 'a", "No closing quotation: -o 'a"),
        ("--only grad-histroy", "no rule named 'grad-histroy'; did you mean grad-history?"),
        ("--ignore grad-history,zzz", "no rule named 'zzz'; the rules are "),
        ("-d gpu", "no device named 'gpu'; such as 'cpu', 'cuda' or 'cuda:1' is meant"),
        ("on", "on has a line of its own: %torchcheck on"),
        ("explain off-device", "explain has a line of its own: %torchcheck explain"),
        ("onn", "unrecognized arguments: onn; the actions are on, off, explain, list"),
    ],
)
def test_a_wrong_option_is_one_line_and_the_cell_does_not_run(shell, run, line, message):
    """Half a check is worse than none."""
    ran = run(f"%%torchcheck {line}\nx = 1")

    assert ran.err.startswith(f"UsageError: {message}")
    assert ran.err.count("\n") == 1
    assert not ran.result.success
    assert "x" not in shell.user_ns
    assert ran.reports == 0


def test_what_is_wrong_with_the_rules_does_not_stop_the_cell(run, monkeypatch):
    """The cell runs, and its report says it."""

    def fail(*args, **options):
        raise ImportError("no such rule file")

    monkeypatch.setattr("torchmagic.checking.check", fail)
    ran = run("%%torchcheck --only off-device\nprint('ran')")

    assert ran.out == "ran\ntorchcheck: the report failed: ImportError: no such rule file\n"
