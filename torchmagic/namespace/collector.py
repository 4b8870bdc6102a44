"""Python's garbage collector, which a look that makes many objects must not set off."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pause the collector, where it is on.

    The notes about 100,000 objects would have it go through all of memory several times, which takes as long as the
    look itself, and would run finalizers of the user's in the middle of it.
    """
    if not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
