"""Keep what goes wrong in a report out of the cell's own outcome."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from torchmagic.magics.showing import say
from torchmagic.render.words import failure

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def guarded(magic: str, kinds: tuple[type[BaseException], ...] = (Exception, KeyboardInterrupt)) -> Iterator[None]:
    """Turn what goes wrong in a magic's report into one line, so that the cell's own outcome stands."""
    try:
        yield
    except kinds as error:
        say(f"{magic}: the report failed: {failure(error)}")
