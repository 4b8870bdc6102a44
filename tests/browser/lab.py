"""What a person does in JupyterLab: open a notebook, run it, look at an output, change the theme, save."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import nbformat

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

# "idle" is shown before a kernel exists, so these are what is waited for, one after the other.
READY = """async () => {
  const context = window.jupyterapp.shell.currentWidget.context;
  await context.ready;
  await context.sessionContext.ready;
  await context.sessionContext.session.kernel.info;
}"""

IS_OPEN = "() => window.jupyterapp?.shell?.currentWidget?.context !== undefined"

# Not awaited: run-all settles when the kernel says so, which a page that is read meanwhile may never hear.
RUN_ALL = "() => { window.jupyterapp.commands.execute('notebook:run-all-cells'); }"

RUN_ONE = """(index) => {
  const panel = window.jupyterapp.shell.currentWidget;
  panel.content.activeCellIndex = index;
  panel.content.deselectAll();
  window.jupyterapp.commands.execute('notebook:run-cell');
}"""

RUN_CODE = """async (code) => {
  const kernel = window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel;
  await kernel.requestExecute({ code }).done;
}"""

IS_BUSY = "() => window.jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.status === 'busy'"

OUTCOMES = """() => {
  const cells = window.jupyterapp.shell.currentWidget.content.widgets.filter((cell) => cell.model.type === 'code');
  const outputs = cells.flatMap((cell) => cell.model.sharedModel.toJSON().outputs);
  const errors = outputs.filter((output) => output.output_type === 'error').map((error) => error.evalue);
  const ran = (cell) => cell.model.executionCount !== null && cell.model.executionState !== 'running';
  return errors.length || cells.every(ran) ? { errors } : null;
}"""
"""What the cells came to once they all ran or one of them failed, and null until then."""


@dataclass(frozen=True)
class Lab:
    """A running server: the address of a notebook in it, and the folder that it serves."""

    address: str
    folder: Path

    def open(self, browser: Browser, name: str) -> Notebook:
        """Open a notebook of the folder in a page of its own, and wait for its kernel."""
        page = browser.new_page(viewport={"width": 1280, "height": 1400})
        page.set_default_timeout(60_000)
        notebook = Notebook(page, self.folder / name)
        page.on("console", lambda said: notebook.complaints.append(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: notebook.complaints.append(str(error)))
        page.goto(self.address.format(name=name))
        page.wait_for_function(IS_OPEN)
        page.evaluate(READY)
        return notebook

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook of code cells into the folder."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.folder / name)


@dataclass
class Notebook:
    """An open notebook; `complaints` are the errors in the browser's console since it was opened."""

    page: Page
    path: Path
    complaints: list[str] = field(default_factory=list)

    def run_all(self) -> None:
        """Run every cell and wait for the last one; a cell that fails is a failed test."""
        self.page.evaluate(RUN_ALL)
        outcomes = self.page.wait_for_function(OUTCOMES).json_value()
        assert outcomes == {"errors": []}

    def run_cell(self, index: int) -> None:
        """Begin to run one cell again, and return when the kernel is busy with it."""
        self.page.evaluate(RUN_ONE, index)
        self.page.wait_for_function(IS_BUSY)

    def run_code(self, code: str) -> None:
        """Run some code without a cell of its own, and wait until it has ended."""
        self.page.evaluate(RUN_CODE, code)

    def is_busy(self) -> bool:
        """Tell whether the kernel is running a cell."""
        return self.page.evaluate(IS_BUSY)

    def reports(self) -> Locator:
        """Return the reports that are shown in outputs, from the top."""
        return self.page.locator(".jp-OutputArea-output .torchmagic")

    def set_theme(self, theme: str) -> None:
        """Change to the light or the dark theme."""
        self.page.evaluate(
            "(theme) => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", f"JupyterLab {theme}"
        )
        self.page.wait_for_function(
            "(light) => document.body.dataset.jpThemeLight === light", arg=str(theme == "Light").lower()
        )

    def picture(self, path: Path) -> None:
        """Keep a picture of the notebook's cells."""
        self.page.locator("#jupyterlab-splash").wait_for(state="detached")
        self.page.locator(".jp-NotebookPanel-notebook").screenshot(path=path)

    def save(self) -> None:
        """Save, as Ctrl-S does."""
        self.page.evaluate("() => window.jupyterapp.commands.execute('docmanager:save')")
