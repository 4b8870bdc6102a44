"""Follow a cell operation by operation, for as long as it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.tracing.trace import Trace
    from torchmagic.tracing.watch import Watch


class Following:
    """A watch on the running cell, whose frames are kept out of the user's tracebacks."""

    def __init__(self, watch: Watch, frames: Any) -> None:
        self._watch: Watch | None = watch
        self._frames = frames

    def end(self) -> Trace | None:
        """Stop, and return what was seen; None when it was stopped before."""
        watch, self._watch = self._watch, None
        if watch is None:
            return None
        self._frames.restore()
        return watch.end()


def begin_to_follow(shell: InteractiveShell) -> Following:
    """Follow the cell that is running, or about to.

    Raises:
        ImportError: torch is not installed.
    """
    from torchmagic.cells.own_frames import OwnFrames
    from torchmagic.tracing.watch import Watch

    watch, frames = Watch(), OwnFrames(shell)
    frames.hide()
    watch.begin()
    return Following(watch, frames)
