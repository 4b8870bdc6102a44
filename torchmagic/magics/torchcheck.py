"""The magic `%%torchcheck`: run the cell, then report on what it left in the namespace."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.core.error import UsageError
from IPython.core.magic import Magics, line_cell_magic, magics_class

from torchmagic.cells.lifecycle import Lifecycle
from torchmagic.cells.registration import listen, register_transformer
from torchmagic.cells.stored_source import find_cell_frame, show_as_typed, text_of_other_code
from torchmagic.magics.check_request import make_report, make_request, strict_error
from torchmagic.magics.guarding import guarded
from torchmagic.magics.options import Options, help_text, options_from, parse, require_known, with_help
from torchmagic.magics.showing import say, show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.cells.lifecycle import OpenCell
    from torchmagic.magics.check_request import CheckRequest


@magics_class
class TorchcheckMagics(Magics):
    """The magic, with what it knows of its shell's cells."""

    shell: InteractiveShell

    def __init__(self, shell: InteractiveShell) -> None:
        super().__init__(shell)
        self.lifecycle = Lifecycle(shell)

    @line_cell_magic
    @with_help
    def torchcheck(self, line: str, cell: str | None = None) -> None:  # noqa: D102 -- its docstring is the help
        parsed = parse(line)
        options = options_from(parsed)
        if cell is None and not parsed.cell:
            # Whoever asks something gets the answer, and no report below it.
            self.lifecycle.skip_standing()
        if parsed.help:
            say(help_text())
        elif cell is not None:
            self._run_below(line, cell)
        elif parsed.cell:
            self._arm(options)
        elif parsed.trace and parsed.action != "on":
            raise UsageError(
                "--trace follows a cell while it runs: %%torchcheck --trace above it, or %torchcheck on --trace"
            )
        elif parsed.action is None:
            self._check_now(options)
        elif parsed.action == "on":
            self._report_after_every_cell(options)
        elif parsed.action == "off":
            self.lifecycle.set_standing(None)
        elif parsed.action == "explain":
            self._explain(parsed.rule)
        else:
            self._list_rules()

    def _arm(self, options: Options) -> None:
        """Ask for a report on the running cell; one is enough, however often the call stands in a loop."""
        cell = self.lifecycle.current()
        if cell is None or (cell.request is not None and not cell.standing):
            return
        frame = find_cell_frame(self.shell.user_ns)
        text, filename = cell.raw_cell, None
        if frame is not None:
            filename = frame.f_code.co_filename
            text = text_of_other_code(self.shell, text, filename) or text
            show_as_typed(filename, frame.f_lineno)
        cell.request = make_request(self.shell, options, text, filename)
        cell.standing = False

    def _check_now(self, options: Options) -> None:
        error = None
        # An interrupt is meant for the cell in which the line stands.
        with guarded("torchcheck", (Exception,)):
            report = make_report(self.shell, options)
            error = strict_error(report) if options.strict else None
        if error is not None:
            raise error

    def _report_after_every_cell(self, options: Options) -> None:
        from torchmagic.checking import Memory, rules

        rules()  # read the rules now, so that the first cell does not wait for them
        memory = Memory()

        def make(cell: OpenCell) -> CheckRequest | None:
            with guarded("torchcheck"):
                return make_request(self.shell, options, cell.raw_cell, memory=memory)
            return None

        self.lifecycle.set_standing(make)

    def _explain(self, name: str) -> None:
        from torchmagic.checking import rules
        from torchmagic.render.html import lesson_html
        from torchmagic.render.text import lesson_text

        require_known(Options(only=(name,)))
        lesson = rules()[name].lesson()
        show(self.shell, lambda: lesson_text(lesson), lambda: lesson_html(lesson))

    def _list_rules(self) -> None:
        from torchmagic.checking import rules
        from torchmagic.render.html import rules_html
        from torchmagic.render.text import rules_text

        lessons = [rule.lesson() for rule in rules().values()]
        show(self.shell, lambda: rules_text(lessons), lambda: rules_html(lessons))

    def _run_below(self, line: str, cell: str) -> None:
        """Run a cell that reached the magic by another way than its first line, such as an alias.

        IPython has handed the body over, so it runs as a cell within the cell: without top-level `await`, and with
        the traceback of an error shown twice.
        """
        register_transformer(self.shell)
        self.shell.run_cell(f"%%torchcheck {line}\n{cell}").raise_error()  # type: ignore[no-untyped-call]


def load_torchcheck(shell: InteractiveShell) -> None:
    """Register the magic, and let the shell tell it of its cells."""
    magics = TorchcheckMagics(shell)
    shell.register_magics(magics)
    listen(shell, magics.lifecycle)


def unload_torchcheck(shell: InteractiveShell) -> None:
    """Take the magic away."""
    manager = shell.magics_manager
    manager.registry.pop(TorchcheckMagics.__name__, None)
    for kind in ("line", "cell"):
        manager.magics[kind].pop("torchcheck", None)
