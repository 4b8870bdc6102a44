"""What may stand behind `%%torchcheck`, and what comes of it."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys

import pytest
import torch
from IPython.core.completer import provisionalcompleter

from torchmagic.findings import Finding
from torchmagic.report import Report

LOST = "import torch; w = torch.ones(2)\nw.half()\nx = w + 1\n"
"""Three lines, with a warning on the second."""


def test_a_line_of_its_own_reports_on_the_namespace_as_it_is(shell, run):
    """Nothing is known of a cell, so the report has no lines."""
    shell.user_ns["w"] = torch.ones(2)
    ran = run("%torchcheck -o kept")

    assert ran.out.startswith("torchcheck: nothing wrong · 1 tensor (8 bytes)")
    assert shell.user_ns["kept"].source_lines == ()


def test_a_line_in_a_checked_cell_has_a_report_of_its_own(run):
    """The cell's report comes when it ends."""
    ran = run("%%torchcheck\n%torchcheck\nprint('between')")

    assert [line.split(" ·")[0] for line in ran.out.splitlines()] == [
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


def test_on_reports_after_every_cell_but_its_own(run):
    """Until off, which has no report either."""
    reports = [
        run(cell).reports
        for cell in ["x = 1", "%torchcheck on", "x = 1", "1/0", "x = (", "", "%torchcheck off", "x = 1"]
    ]

    assert reports == [0, 0, 1, 1, 0, 0, 0, 0]


def test_on_reports_once_for_cells_within_cells(run):
    """Only the outermost one is a cell that somebody typed."""
    run("%torchcheck on")

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


def ours(shell):
    """Return how many transformers and callbacks of ours are registered."""
    functions = [
        *shell.input_transformers_cleanup,
        *shell.events.callbacks["pre_run_cell"],
        *shell.events.callbacks["post_run_cell"],
    ]
    return sum(getattr(function, "__module__", "").startswith("torchmagic") for function in functions)


def test_loading_again_changes_nothing(shell, run):
    """One transformer and two callbacks, one report."""
    run("%load_ext torchmagic\n%reload_ext torchmagic\n%load_ext torchmagic")

    assert ours(shell) == 3
    assert run("%%torchcheck\nx = 1").reports == 1


def test_unloading_takes_everything_away(shell, run):
    """The magic is then as unknown as any."""
    run("%unload_ext torchmagic")

    assert ours(shell) == 0
    assert run("%%torchcheck\nx = 1").err == "UsageError: Cell magic `%%torchcheck` not found.\n"
    assert run("%torchcheck").err == "UsageError: Line magic function `%torchcheck` not found.\n"


@pytest.mark.parametrize("line", ["%reload_ext torchmagic", "%unload_ext torchmagic"])
def test_reloading_in_a_checked_cell_drops_its_report(shell, run, line):
    """And leaves nothing behind."""
    assert run(f"%%torchcheck\n{line}\nx = 1").reports == 0
    run("%reload_ext torchmagic")
    assert run("%%torchcheck\nx = 1").reports == 1


def test_a_second_copy_replaces_the_first(shell, run):
    """As after an upgrade in the running notebook."""
    first = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "torchmagic"}
    for name in first:
        del sys.modules[name]
    try:
        importlib.import_module("torchmagic").load_ipython_extension(shell)

        assert ours(shell) == 3
        assert run("%%torchcheck\nx = 1").reports == 1
    finally:
        importlib.import_module("torchmagic").unload_ipython_extension(shell)
        for name in [name for name in sys.modules if name.split(".")[0] == "torchmagic"]:
            del sys.modules[name]
        sys.modules.update(first)


def test_a_lost_transformer_comes_back(shell, run):
    """The cell then reaches the magic with its body, and runs."""
    shell.input_transformers_cleanup.clear()

    assert run("%%torchcheck\nx = 1").reports == 1
    assert shell.user_ns["x"] == 1


def test_loading_does_not_import_torch():
    """It costs milliseconds; without torch a report says so in one sentence."""
    program = (
        "import sys\n"
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.run_line_magic('load_ext', 'torchmagic')\n"
        "print('torch' in sys.modules)\n"
        "shell.run_cell('%%torchcheck --only grad-history\\nx = 1')\n"
        "print('torch' in sys.modules)\n"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert ran.stdout.splitlines()[0] == "False"
    assert "torch has not been imported" in ran.stdout
    assert ran.stdout.splitlines()[-1] == "False"
