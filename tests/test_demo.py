"""Each mistake of demo.ipynb is found on its line, and each fixed cell is quiet."""

from __future__ import annotations

import json
import re

import nbformat
import pytest
from run_demo import DEMO, run, texts

FOUND = {
    "transfer": [["discarded-transfer", "images", 3]],
    "transfer-fixed": [],
    "nan": [["non-finite", "scaled", 4]],
    "nan-fixed": [],
    "history": [["grad-history", "total", 10]],
    "history-fixed": [],
    "best": [["shared-memory", "best", 11]],
    "best-fixed": [],
    "uncalled": [["uncalled-method", "optimizer.zero_grad", 6]],
    "uncalled-fixed": [],
    "forecast": [["grad-history", "forecasts", 5]],
    "forecast-fixed": [],
    "born-bad": [["non-finite", "doubt", 3]],
    "born-good": [],
    "device": [["off-device", "scaled_reader.mean", 10], ["off-device", "scaled_reader.std", 11]],
    "device-fixed": [],
}
"""The cells under `%%torchcheck` by their id, and what is found there: rule, subject, line."""


@pytest.fixture
def demo() -> nbformat.NotebookNode:
    """Return the notebook as it is in the project, with its outputs."""
    return nbformat.read(DEMO, as_version=4)


def checked_cells(demo: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """Return the cells under `%%torchcheck` by their id."""
    return {cell.id: cell for cell in demo.cells if cell.source.startswith("%%torchcheck")}


def test_the_mistakes_are_found_and_the_fixed_cells_are_quiet(demo: nbformat.NotebookNode) -> None:
    """The whole notebook runs, and each report holds what the table above says."""
    for name, cell in checked_cells(demo).items():
        cell.source = cell.source.replace("%%torchcheck", f"%%torchcheck -o report_{name.replace('-', '_')}", 1)
    reports = ", ".join(f"'{name}': report_{name.replace('-', '_')}" for name in FOUND)
    found = (
        f"{{name: [(f.rule, f.subject, f.line) for f in report.findings] for name, report in {{{reports}}}.items()}}"
    )
    demo.cells.append(nbformat.v4.new_code_cell(f"import json\nprint(json.dumps({found}))"))
    run(demo)

    assert json.loads(demo.cells[-1].outputs[0].text) == FOUND


def test_the_outputs_in_the_notebook_are_those_of_its_cells(demo: nbformat.NotebookNode) -> None:
    """What a person reads without running it is up to date; `python docs/run_demo.py --save` writes it."""
    shown = {
        name: [[rule, int(line)] for line, rule in re.findall(r"line (\d+) · ([a-z-]+)", "".join(texts(cell)))]
        for name, cell in checked_cells(demo).items()
    }

    assert shown == {name: [[rule, line] for rule, _, line in found] for name, found in FOUND.items()}
