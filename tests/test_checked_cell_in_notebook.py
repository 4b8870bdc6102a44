"""Notebooks that are run from top to bottom, and kernels that are told to go."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

from tests.kernels import is_quiet, running_kernel
from tests.mistakes import LOST


def notebook(*cells):
    """Return a notebook of code cells."""
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])


def execute(cells):
    """Run a notebook to its end or its first error, and return it with the error."""
    document = notebook(*cells)
    client = NotebookClient(document, timeout=60)
    client.create_kernel_manager().kernel_spec_manager.kernel_dirs = []
    try:
        client.execute()
    except CellExecutionError as error:
        return document, error
    return document, None


def test_run_all_stops_at_a_failing_cell_and_keeps_its_report():
    """As it stops at the bare cell."""
    document, error = execute(["%load_ext torchmagic\nimport torch", "%%torchcheck\n" + LOST + "1/0", "print('never')"])

    assert error is not None
    assert error.ename == "ZeroDivisionError"
    assert [output.output_type for output in document.cells[1].outputs] == ["error", "display_data"]
    assert "line 3 · discarded-transfer" in document.cells[1].outputs[1]["data"]["text/plain"]
    assert document.cells[2].outputs == []


def test_a_kernel_that_is_told_to_exit_reports_first(tmp_path):
    """The report is the last thing that it says."""
    with running_kernel(tmp_path) as kernel:
        kernel.run("%load_ext torchmagic\nimport torch")
        outcome = kernel.run("%%torchcheck\nexit()")

    assert outcome.kinds[-1:] == ["display"]
    assert is_quiet(outcome.text("display"))
