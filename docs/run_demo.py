"""Run demo.ipynb and print what its reports say; with --save, keep the outputs in the notebook."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import nbformat
from nbclient import NotebookClient

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbformat import NotebookNode

DEMO = Path(__file__).parent.parent / "demo.ipynb"

HOW_TO_OPEN = """\
To read it with its code, and to unfold the reports:

    .venv/bin/jupyter lab demo.ipynb
"""


def run(notebook: NotebookNode) -> None:
    """Run every cell in a kernel of this environment; the outputs are put into `notebook`.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    # The kernel has a warning about the transport, which says nothing about the demo.
    quiet = ["--log-level=ERROR"]
    NotebookClient(notebook, timeout=300, record_timing=False, extra_arguments=quiet).execute()


def texts(cell: NotebookNode) -> Iterator[str]:
    """Yield what each output of a code cell says, as a terminal would show it."""
    for output in cell.outputs:
        yield output.text if output.output_type == "stream" else output.data["text/plain"]


def main() -> None:
    """Print the headings, and below each the outputs of its cells."""
    notebook = nbformat.read(DEMO, as_version=4)
    kept = notebook.metadata.copy()
    run(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            print(f"{cell.source.splitlines()[0].lstrip('# ')}\n")
            continue
        for text in texts(cell):
            print(f"[{cell.execution_count}] {text.rstrip()}\n".replace("\n", "\n    ").rstrip(" "))
    if "--save" in sys.argv[1:]:
        # What the kernel says of its own version would make every run another notebook.
        notebook.metadata = kept
        nbformat.write(notebook, DEMO)
    print(HOW_TO_OPEN)


if __name__ == "__main__":
    main()
