"""The lines of the user's code that an operation was called from."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import CodeType, FrameType
from typing import Any, Final

from torchmagic.source.user_files import is_user_file

Site = tuple[tuple[CodeType, int], ...]
"""Frames of the user's code, the innermost first: each its code and the offset of the instruction that ran. Code is
kept and no frame, which would keep the user's variables alive."""

MOST_FRAMES: Final = 6


def is_top_level(code: CodeType) -> bool:
    """Tell whether code is a module's or a cell's own; IPython 7 calls it by the cell's line."""
    return code.co_name == "<module>" or code.co_name.startswith("<cell line")


@dataclass(frozen=True)
class Spot:
    """A line of the user's: its file, the number, and the function it stands in, or nothing at the top."""

    filename: str
    line: int
    function: str


class Sites:
    """Finds the site of an operation; the same place is the same object, so that a million of them take no room."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, ...], Site] = {}
        self._direct: dict[tuple[int, int], Site] = {}
        # Asked at every operation, where a call costs more than the walk.
        self._is_users: dict[str, bool] = {}

    def site_below(self, frame: FrameType) -> Site:
        """Return the same for an operation that a frame calls itself, by a shorter way where that is the cell's own."""
        code = frame.f_code
        if not is_top_level(code):
            return self.site_of(frame)
        place = (id(code), frame.f_lasti)
        site = self._direct.get(place)
        if site is None:
            site = self._direct[place] = self.site_of(frame)
        return site

    def site_of(self, frame: FrameType | None) -> Site:
        """Return the user's frames from `frame` outwards, up to the cell or script itself."""
        is_users = self._is_users
        key: list[int] = []
        codes: list[CodeType] = []
        while frame is not None:
            code = frame.f_code
            known = is_users.get(code.co_filename)
            if known is None:
                known = is_users[code.co_filename] = is_user_file(code.co_filename)
            if known:
                codes.append(code)
                key += (id(code), frame.f_lasti)
                if is_top_level(code) or len(codes) == MOST_FRAMES:
                    break
            frame = frame.f_back
        place = tuple(key)
        site = self._known.get(place)
        if site is None:
            site = self._known[place] = tuple(zip(codes, key[1::2], strict=True))
        return site


def user_frame(frame: FrameType | None) -> FrameType | None:
    """Return the nearest frame of the user's code from `frame` outwards."""
    while frame is not None and not is_user_file(frame.f_code.co_filename):
        frame = frame.f_back
    return frame


@contextmanager
def variables_of(frame: FrameType) -> Iterator[dict[str, Any]]:
    """Hand over the variables that a frame's lines see.

    Before Python 3.13 a function's frame keeps the dictionary in which it was asked for its variables, and with it the
    values they had: it is emptied again, unless the user has it too.
    """
    own: Any = frame.f_locals
    try:
        yield own if own is frame.f_globals else {**frame.f_globals, **own}
    finally:
        is_kept = type(own) is dict and frame.f_code.co_flags & inspect.CO_OPTIMIZED
        if is_kept and sys.getrefcount(own) <= _REFERENCES:
            own.clear()


_REFERENCES: Final = 3
"""To the dictionary of a frame's variables: the frame's, ours, and that of the call that counts them."""


def frame_of_thread(thread: int) -> FrameType | None:
    """Return the frame that a thread is running."""
    return sys._current_frames().get(thread)  # noqa: SLF001 - the documented way, for all its underscore


def spots(site: Site) -> list[Spot]:
    """Return the lines of a site."""
    names = ["" if is_top_level(code) else code.co_name for code, _ in site]
    return [
        Spot(code.co_filename, line_at(code, offset), name) for (code, offset), name in zip(site, names, strict=True)
    ]


def span(code: CodeType, offset: int) -> tuple[int, int, int, int] | None:
    """Return line, column, end line and end column (in bytes) of an instruction; None before Python 3.11."""
    positions = getattr(code, "co_positions", None)
    if positions is None:
        return None
    for index, (start, end, column, end_column) in enumerate(positions()):
        if index == offset // 2:
            return None if None in (start, end, column, end_column) else (start, column, end, end_column)
    return None


def line_at(code: CodeType, offset: int) -> int:
    """Return the line of an instruction."""
    line = code.co_firstlineno
    for start, end, number in code.co_lines():
        if start <= offset < end and number is not None:
            line = number
    return line
