"""Correct notebooks stay quiet: every cell of the notebooks in `tests/quiet` gets a report, and none has a finding."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parent / "quiet").glob("*.py"))
"""Notebooks in the percent format: a line `# %%` begins a cell, and the sentence above the first says what it is."""

LIBRARIES = ("accelerate", "lightning", "torchmetrics", "transformers")
"""What a notebook may need besides the extra `test`; the extra `libraries` installs it."""


def cells_of(notebook: Path) -> list[str]:
    """Return the cells of a notebook in the percent format."""
    return [cell.strip("\n") for cell in re.split(r"^# %%.*$", notebook.read_text(), flags=re.MULTILINE)[1:]]


def imported_by(notebook: Path) -> set[str]:
    """Return the packages that a notebook imports."""
    nodes = list(ast.walk(ast.parse(notebook.read_text())))
    plain = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    named = [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]
    return {name.split(".")[0] for name in plain + named}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_a_correct_notebook_is_quiet(shell, run, notebook):
    """Each cell succeeds, and neither its report nor the one on everything at the end finds or fails at anything."""
    for library in LIBRARIES:
        if library in imported_by(notebook) and find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    assert heard_in(notebook, run, shell, "on -o report") == []


SHORT = ("flows_and_physics", "graphs", "inspecting", "memory_bank", "numerics")


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("notebook", [path for path in NOTEBOOKS if path.stem in SHORT], ids=lambda path: path.stem)
def test_a_correct_notebook_is_quiet_when_it_is_followed(shell, run, notebook):
    """Nor does the trace of its operations."""
    assert heard_in(notebook, run, shell, "on --trace -o report") == []


def heard_in(notebook, run, shell, options):
    """Run the cells of a notebook with a report after each, and return what the reports found and failed at."""
    run(f"%torchcheck {options}")
    heard = []
    for number, cell in enumerate([*cells_of(notebook), "%torchcheck -o report"], start=1):
        ran = run(cell)
        assert ran.result.success, ran.out
        report = shell.user_ns["report"]
        heard += [(number, f.line, f.rule, f.subject, f.message) for f in report.findings]
        heard += [(number, failure) for failure in report.failures]
    return heard


def test_a_wrong_notebook_is_not_quiet(shell, run):
    """The reports that were asked of correct notebooks do say something when there is something to say."""
    run("%torchcheck on -o report")
    run("import torch")
    run("weights = torch.ones(3)\nweights.half()\nweights.sum()")

    assert [(f.line, f.rule, f.subject) for f in shell.user_ns["report"].findings] == [
        (2, "discarded-transfer", "weights")
    ]
