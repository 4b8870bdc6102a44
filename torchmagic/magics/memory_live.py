"""`%gpumem --live`: put a panel into the output, keep it fresh, and leave something readable behind when it ends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from IPython.display import display

from torchmagic.cells.own_names import own_names

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.memory_report import MemoryReport
    from torchmagic.panel.live import LivePanel

_WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"


def can_show_widgets(shell: InteractiveShell) -> bool:
    """Tell whether a person is likely to see a widget: not in a terminal, not under nbclient, not without ipywidgets.

    nbclient drops what a thread sends; like every front end that nobody sits in front of it allows no input.
    `_allow_stdin` is private (seen in ipykernel 6.17 and 7.4).
    """
    kernel = getattr(shell, "kernel", None)
    if kernel is None or not getattr(kernel, "_allow_stdin", True):
        return False
    try:
        import torchmagic.panel.live  # noqa: F401
    except ImportError:
        return False
    return True


class PanelInOutput:
    """A panel in the output of a cell, under a name by which the output can be replaced."""

    def __init__(self, shell: InteractiveShell, interval: float) -> None:
        from torchmagic.measuring import read_devices
        from torchmagic.panel import live

        self._shell = shell
        self._panel: LivePanel | None = live.LivePanel(read_devices, interval, self.end, live.LIMIT_SECONDS)
        self._handle: Any = None

    def begin(self) -> None:
        """Show the panel, and let it be refreshed by its thread and after each cell."""
        panel = self._panel
        if panel is None:
            return
        report = self._look()
        panel.begin(report)
        bundle = {"text/plain": str(report), _WIDGET_VIEW: panel.widget.get_view_spec()}
        self._handle = display(bundle, raw=True, display_id=True)  # type: ignore[no-untyped-call]
        self._shell.events.register("post_run_cell", self.after_cell)

    def after_cell(self, result: object) -> None:
        """Look up the names again: the cell that ran may have changed them."""
        del result
        panel = self._panel
        if panel is not None:
            try:
                panel.show_names(self._look())
            except Exception:
                panel.refresh()

    def end(self) -> None:
        """Replace the panel by what needs no widget; nothing happens the second time."""
        panel, self._panel = self._panel, None
        if panel is None:
            return
        if self.after_cell in self._shell.events.callbacks["post_run_cell"]:
            self._shell.events.unregister("post_run_cell", self.after_cell)
        text, html = panel.end()
        if self._handle is not None:
            self._handle.update({"text/plain": text, "text/html": html}, raw=True)
        panel.close()

    def _look(self) -> MemoryReport:
        from torchmagic.measuring import look

        return look(self._shell.user_ns, hidden=own_names(self._shell))
