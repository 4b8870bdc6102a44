"""The magics `%gpumem` and `%%gpumem`: where the memory of every device went, and what a cell did to it."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from torchmagic.cells.lifecycle import Lifecycle
from torchmagic.cells.own_names import own_names
from torchmagic.cells.registration import listen, register_transformer
from torchmagic.cells.stored_source import find_cell_frame, show_as_typed
from torchmagic.magics.memory_live import PanelInOutput, can_show_widgets
from torchmagic.magics.memory_options import STOP, MemoryOptions, help_text, options_from, parse
from torchmagic.magics.memory_request import make_memory_request
from torchmagic.magics.showing import say, show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.memory_report import MemoryReport


@magics_class
class GpumemMagics(Magics):
    """The magic, with what it knows of its shell's cells."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.lifecycle = Lifecycle(shell)
        self._panel: PanelInOutput | None = None

    @line_cell_magic
    def gpumem(self, line: str, cell: str | None = None) -> None:  # noqa: D102 -- its docstring is the help
        parsed = parse(line)
        options = options_from(parsed)
        if parsed.help:
            say(help_text())
        elif cell is not None:
            self._run_below(line, cell)
        elif parsed.cell:
            self._arm(options)
        elif parsed.free:
            self._free(options)
        elif parsed.live is not None:
            self._begin_panel(parsed.live, options)
        elif options.paths == (STOP,):
            self._stop()
        else:
            self._look_now(options)

    gpumem.__doc__ = help_text()

    def _arm(self, options: MemoryOptions) -> None:
        """Measure the running cell; once is enough, however often the call stands in a loop."""
        cell = self.lifecycle.current()
        if cell is None or cell.request is not None:
            return
        frame = find_cell_frame(self.shell.user_ns)
        if frame is not None:
            show_as_typed(frame.f_code.co_filename, frame.f_lineno)
        cell.request = make_memory_request(self.shell, options)

    def _run_below(self, line: str, cell: str) -> None:
        """Run a cell that reached the magic by another way than its first line, as a cell within the cell."""
        register_transformer(self.shell)
        self.shell.run_cell(f"%%gpumem {line}\n{cell}").raise_error()  # type: ignore[no-untyped-call]

    def _begin_panel(self, interval: float, options: MemoryOptions) -> None:
        self.end_panel()
        if not can_show_widgets(self.shell):
            self._look_now(options, "nothing here can refresh a panel, so this is how it is now")
            return
        self._panel = PanelInOutput(self.shell, interval)
        self._panel.begin()

    def _stop(self) -> None:
        if not self.end_panel():
            say("gpumem: no panel is shown")

    def end_panel(self) -> bool:
        """End the panel, if there is one."""
        panel, self._panel = self._panel, None
        if panel is not None:
            panel.end()
        return panel is not None

    def _free(self, options: MemoryOptions) -> None:
        if "torch" not in sys.modules:
            say("gpumem: torch has not been imported, so there is nothing to free")
            return
        from torchmagic.magics.memory_free import free
        from torchmagic.render.memory_freed import freed_html, freed_text

        freed = free(self.shell)
        if options.output is not None:
            self.shell.user_ns[options.output] = freed
        if options.text:
            say(freed_text(freed))
        else:
            show(self.shell, lambda: freed_text(freed), lambda: freed_html(freed))

    def _look_now(self, options: MemoryOptions, *remarks: str) -> None:
        report = make_memory_report(self.shell, options)
        report = replace(report, remarks=(*remarks, *report.remarks))
        if options.output is not None:
            self.shell.user_ns[options.output] = report
        show_memory(self.shell, report, options)


def make_memory_report(shell: InteractiveShell, options: MemoryOptions) -> MemoryReport:
    """Look at the memory that the user's variables hold.

    Raises:
        UsageError: a variable to open that does not exist.
    """
    from torchmagic.measuring import NoSuchPathError, look

    try:
        return look(shell.user_ns, hidden=own_names(shell), paths=options.paths)
    except NoSuchPathError as error:
        raise UsageError(f"nothing is named {error.args[0]}") from None


def show_memory(shell: InteractiveShell, report: MemoryReport, options: MemoryOptions) -> None:
    """Show a report as the options and the front end want it."""
    from torchmagic.render.memory_html import memory_html
    from torchmagic.render.memory_text import memory_text

    if options.text:
        say(memory_text(report, options.top))
    else:
        show(shell, lambda: memory_text(report, options.top), lambda: memory_html(report, options.top))


def load_gpumem(shell: InteractiveShell) -> None:
    """Register the magic, and let the shell tell it of its cells."""
    magics = GpumemMagics(shell)
    shell.register_magics(magics)
    listen(shell, magics.lifecycle)


def unload_gpumem(shell: InteractiveShell) -> None:
    """Take the magic away."""
    manager = shell.magics_manager
    magics = manager.registry.pop(GpumemMagics.__name__, None)
    if magics is not None:
        magics.end_panel()
    for kind in ("line", "cell"):
        manager.magics[kind].pop("gpumem", None)
