"""The extension is loaded, loaded again, and unloaded."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest


def ours(shell):
    """Return how many transformers and callbacks of ours are registered."""
    functions = [
        *shell.input_transformers_cleanup,
        *shell.events.callbacks["pre_run_cell"],
        *shell.events.callbacks["post_run_cell"],
    ]
    return sum(getattr(function, "__module__", "").startswith("torchmagic") for function in functions)


def test_loading_again_changes_nothing(shell, run):
    """One transformer, and two callbacks for each of the two magics."""
    run("%load_ext torchmagic\n%reload_ext torchmagic\n%load_ext torchmagic")

    assert ours(shell) == 5
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

        assert ours(shell) == 5
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
