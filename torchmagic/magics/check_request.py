"""What `%%torchcheck` asks of a cell: look before it runs, and report when it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torchmagic.cells.own_names import own_names
from torchmagic.cells.python_text import python_text
from torchmagic.cells.stored_source import find_filename, title_of
from torchmagic.findings import at_least
from torchmagic.magics.following import Following, begin_to_follow
from torchmagic.magics.guarding import guarded
from torchmagic.magics.showing import show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

    from torchmagic.magics.options import Options
    from torchmagic.report import Report


class StrictError(Exception):
    """A cell that was to have no findings has some."""

    def _render_traceback_(self) -> list[str]:
        """Show the sentence alone: the findings stand in the report above it.

        See https://ipython.readthedocs.io/en/stable/config/integrating.html for the protocol.
        """
        return [f"{type(self).__name__}: {self}"]


@dataclass(frozen=True)
class CheckRequest:
    """The wish for a report on one cell.

    `raw_cell` is the cell as typed, and `filename` the name under which it was compiled, if that is known already.
    `before` is what the engine noted of the namespace before the cell's code, and `memory` what was shown after
    earlier cells, if that counts. `following` follows the cell's operations.
    """

    shell: InteractiveShell
    options: Options
    raw_cell: str
    filename: str | None
    before: Any
    memory: Any
    following: Following | None = None

    def end(self, result: ExecutionResult | None) -> None:
        """Report on the cell, which ended with `result`, and let it fail if it has findings and must not.

        There is no result when the cell was interrupted while it awaited something.
        """
        trace = self.following.end() if self.following is not None else None
        if result is not None and result.error_before_exec is not None and self.filename is None:
            # No code of the cell has come as far as to tell its name, so none ran.
            return
        error = None
        with guarded("torchcheck"):
            filename = self.filename or (None if result is None else find_filename(self.shell, result))
            report = make_report(
                self.shell,
                self.options,
                source=python_text(self.raw_cell) or "",  # a body in another language holds no Python
                error=None if result is None else result.error_in_exec or result.error_before_exec,
                before=self.before,
                memory=self.memory,
                trace=trace,
                **({} if filename is None else {"filename": filename}),
            )
            error = strict_error(report) if self.options.strict else None
        if error is not None and result is not None and result.success:
            # Set and shown, never raised: a raised error keeps the frames that it went through.
            result.error_in_exec = error
            self.shell.last_execution_succeeded = False
            self.shell.showtraceback((StrictError, error, None))

    def drop(self) -> None:
        """Stop following the cell; there will be no report."""
        if self.following is not None:
            self.following.end()


def make_request(
    shell: InteractiveShell, options: Options, raw_cell: str, filename: str | None = None, memory: Any = None
) -> CheckRequest:
    """Look at the namespace before the cell's code, and return the request for a report after it."""
    before = None
    # An interrupt is meant for the cell, whose code is about to run.
    with guarded("torchcheck", (Exception,)):
        from torchmagic.checking import take_snapshot

        before = take_snapshot(shell.user_ns, hidden=own_names(shell))
    following = None
    if options.trace:
        with guarded("torchcheck", (Exception,)):
            following = begin_to_follow(shell)
    return CheckRequest(shell, options, raw_cell, filename, before, memory, following)


def make_report(shell: InteractiveShell, options: Options, **about_the_cell: Any) -> Report:
    """Check the user's namespace, show the report, and keep it if it has a name to be kept under."""
    from torchmagic.checking import check

    report: Report = check(
        shell.user_ns,
        hidden=own_names(shell),
        title_of=lambda filename: title_of(shell, filename),
        **options.for_check(),
        **about_the_cell,
    )
    if options.output is not None:
        shell.user_ns[options.output] = report
    show(shell, lambda: str(report), lambda: str(report._repr_mimebundle_()["text/html"]))
    return report


def strict_error(report: Report) -> StrictError | None:
    """Return the error that a strict cell with this report fails with, or None when nothing was found."""
    count = sum(at_least(finding.level, "warning") for finding in report.findings)
    if count == 0:
        return None
    return StrictError(f"torchcheck: {count} finding{'' if count == 1 else 's'}")
