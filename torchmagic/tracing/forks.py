"""What looks at operations stops in a child process, such as a worker of a DataLoader: nobody would see its result."""

from __future__ import annotations

import os
import weakref
from typing import Final, Protocol


class Looking(Protocol):
    """Something whose mode hands every operation on once it is stopped."""

    def stop(self) -> None:
        """Look at nothing any more."""


LOOKING: Final[weakref.WeakSet[Looking]] = weakref.WeakSet()
"""What looks at operations now."""


def _stop_after_fork() -> None:
    for looking in list(LOOKING):
        looking.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_stop_after_fork)
