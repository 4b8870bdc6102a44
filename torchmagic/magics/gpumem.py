"""The magic `%gpumem`: where the memory of every device went, by variable name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_magic, magics_class

from torchmagic.cells.own_names import own_names
from torchmagic.magics.memory_options import MemoryOptions, help_text, options_from, parse
from torchmagic.magics.showing import say, show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.memory_report import MemoryReport


@magics_class
class GpumemMagics(Magics):
    """The magic."""

    shell: InteractiveShell

    @line_magic
    def gpumem(self, line: str) -> None:  # noqa: D102 -- its docstring is the help
        parsed = parse(line)
        options = options_from(parsed)
        if parsed.help:
            say(help_text())
        else:
            self._look_now(options)

    gpumem.__doc__ = help_text()

    def _look_now(self, options: MemoryOptions) -> None:
        report = make_memory_report(self.shell, options)
        if options.output is not None:
            self.shell.user_ns[options.output] = report
        show_memory(self.shell, report, options)


def make_memory_report(shell: InteractiveShell, options: MemoryOptions) -> MemoryReport:
    """Look at the memory that the user's variables hold.

    Raises:
        UsageError: a variable to open that does not exist.
    """
    from torchmagic.measuring import look

    try:
        return look(shell.user_ns, hidden=own_names(shell), paths=options.paths)
    except KeyError as error:
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
    """Register the magic."""
    shell.register_magics(GpumemMagics(shell))


def unload_gpumem(shell: InteractiveShell) -> None:
    """Take the magic away."""
    manager = shell.magics_manager
    manager.registry.pop(GpumemMagics.__name__, None)
    manager.magics["line"].pop("gpumem", None)
