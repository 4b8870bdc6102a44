"""A shell as a person has one, with the extension loaded."""

from __future__ import annotations

import atexit
import re
from dataclasses import dataclass
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from traitlets.config import Config

from tests.kernels import running_kernel

ANSI = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Ran:
    """What running a cell came to: IPython's result, and what was printed."""

    result: Any
    out: str
    err: str

    @property
    def reports(self):
        """The number of reports that were shown."""
        return len(re.findall(r"^ ?torchcheck: \S", self.out, re.MULTILINE))


@pytest.fixture
def shell():
    """Return a new shell with the extension loaded."""
    InteractiveShell.clear_instance()
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"hist_file": ":memory:"}}))
    shell.run_line_magic("load_ext", "torchmagic")
    yield shell
    shell.run_line_magic("unload_ext", "torchmagic")
    shell.restore_sys_module_state()
    InteractiveShell.clear_instance()
    atexit.unregister(shell.atexit_operations)  # each would collect garbage once more when the tests end


@pytest.fixture
def run(shell, capsys):
    """Return a function that runs a cell in the shell."""

    def run_cell(cell, store_history=True, silent=False):
        capsys.readouterr()
        result = shell.run_cell(cell, store_history=store_history, silent=silent)
        out, err = capsys.readouterr()
        return Ran(result, ANSI.sub("", out), ANSI.sub("", err))

    return run_cell


@pytest.fixture(scope="session")
def kernel(tmp_path_factory):
    """Return one kernel for all the tests that want one."""
    with running_kernel(tmp_path_factory.mktemp("ipython")) as kernel:
        assert kernel.run("%load_ext torchmagic\nimport torch").status == "ok"
        yield kernel
        # Whatever the tests did to it, no cell is left open and nothing is left behind.
        assert kernel.run("x = 1").outputs == []
