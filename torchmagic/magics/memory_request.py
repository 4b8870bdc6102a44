"""What `%%gpumem` asks of a cell: measure before it runs, and tell when it ends what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torchmagic.cells.own_names import own_names
from torchmagic.magics.guarding import guarded
from torchmagic.magics.showing import say, show

if TYPE_CHECKING:
    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell

    from torchmagic.cells.own_frames import OwnFrames
    from torchmagic.magics.memory_options import MemoryOptions
    from torchmagic.measuring import MemoryWatch


@dataclass(frozen=True)
class MemoryRequest:
    """The wish to know what one cell does to memory."""

    shell: InteractiveShell
    options: MemoryOptions
    watch: MemoryWatch
    frames: OwnFrames | None = None

    def end(self, result: ExecutionResult | None) -> None:
        """Show what the cell did, whatever it ended with."""
        del result
        self._stop_listening()
        with guarded("gpumem"):
            from torchmagic.render.memory_change import change_html, change_text

            report = self.watch.end()
            if self.options.output is not None:
                self.shell.user_ns[self.options.output] = report
            top = self.options.top
            if self.options.text:
                say(change_text(report, top))
            else:
                show(self.shell, lambda: change_text(report, top), lambda: change_html(report, top))

    def drop(self) -> None:
        """Stop measuring; nobody will be told."""
        self._stop_listening()
        with guarded("gpumem"):
            self.watch.drop()

    def _stop_listening(self) -> None:
        if self.watch.note_end in self.shell.events.callbacks["post_execute"]:
            self.shell.events.unregister("post_execute", self.watch.note_end)
        if self.frames is not None:
            self.frames.restore()


def make_memory_request(shell: InteractiveShell, options: MemoryOptions) -> MemoryRequest | None:
    """Measure before the cell's code, and return the request for a report after it; None when that failed."""
    # An interrupt is meant for the cell, whose code is about to run.
    with guarded("gpumem", (Exception,)):
        from torchmagic.measuring import MemoryWatch

        watch = MemoryWatch(shell.user_ns, own_names(shell), exact=options.exact)
        # Between the cell and the event that tells of its end, others report.
        shell.events.register("post_execute", watch.note_end)
        watch.begin()
        frames = None
        if watch.is_counting:
            from torchmagic.cells.own_frames import OwnFrames

            frames = OwnFrames(shell)
            frames.hide()
        return MemoryRequest(shell, options, watch, frames)
    return None
