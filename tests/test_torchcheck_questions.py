"""Help, lessons and the list of rules are answers, not reports."""

from __future__ import annotations

import pytest
from IPython.core.completer import provisionalcompleter


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("explain", "explain wants a rule; %torchcheck list names them all"),
        ("explain grad-histori", "no rule named 'grad-histori'; did you mean grad-history?"),
        ("list all", "unrecognized arguments: all"),
        ("off now", "unrecognized arguments: now"),
    ],
)
def test_a_wrong_action_is_one_line(run, line, message):
    """And it says what is right."""
    assert run(f"%torchcheck {line}").err == f"UsageError: {message}\n"


@pytest.mark.parametrize("cell", ["%%torchcheck -h\nx = 1", "%%torchcheck --help\nx = 1", "%torchcheck -h"])
def test_help_names_every_option_and_runs_nothing(shell, run, cell):
    """A question is no cell."""
    ran = run(cell)

    assert ran.result.success
    assert ran.out.startswith("Find PyTorch's classic mistakes among the variables of the notebook.")
    for option in ("--device", "--only", "--ignore", "--level", "--strict", "--output", "on [options]", "off", "list"):
        assert option in ran.out
    assert "--cell" not in ran.out
    assert "x" not in shell.user_ns


@pytest.mark.parametrize("cell", ["%%torchcheck?", "%torchcheck?", "?%%torchcheck"])
def test_a_question_mark_shows_the_help(run, cell):
    """As for every magic."""
    assert "keep the report in this variable" in run(cell).out


def test_a_terminal_waits_for_the_whole_cell(shell):
    """After its first line the cell is not complete, as for `%%time`."""
    manager = shell.input_transformer_manager

    assert manager.check_complete("%%torchcheck\n") == manager.check_complete("%%time\n")
    assert manager.check_complete("%%torchcheck\nx = 1")[0] == "incomplete"
    assert manager.check_complete("%%torchcheck\nx = 1\n\n")[0] == "complete"


def test_the_magic_is_completed(shell):
    """TAB knows its name."""
    with provisionalcompleter():
        assert "%%torchcheck" in shell.complete("%%torchch")[1]


def test_explain_teaches_the_rule(run):
    """The lesson has the bad cell and the good one."""
    ran = run("%torchcheck explain discarded-transfer")

    assert ran.out.startswith("`discarded-transfer`\n")
    assert "Instead of" in ran.out


def test_list_names_the_rules(run):
    """One line each."""
    out = run("%torchcheck list").out

    for rule in ("discarded-transfer", "grad-history", "non-finite", "off-device", "shared-memory", "uncalled-method"):
        assert sum(line.startswith(rule + " ") for line in out.splitlines()) == 1
