"""The words and numbers that text and HTML share: counts, sizes, durations, and sentences with code in them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence


class Code(str):
    """A piece of a sentence that is code: backquotes in text, `<code>` in HTML."""

    __slots__ = ()


Sentence = tuple[str, ...]
"""Pieces of one line of prose, each a plain `str` or `Code`, that read on without a space between them."""

_IN_BACKQUOTES: Final = re.compile(r"`+([^`]+)`+")

_LONGEST_REASON: Final = 120

_SIZE_UNITS: Final = ("kB", "MB", "GB", "TB", "PB")


def visible(text: str) -> str:
    r"""Return `text` with every character that Python would not print written as its escape, such as `\n` or `\u202e`.

    Those draw nothing, turn the reading direction, move a terminal's cursor or cannot be encoded.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def cut(text: str, limit: int) -> str:
    """Return `text` in at most `limit` characters, with "..." in the middle when some had to go."""
    if len(text) <= limit:
        return text
    tail = (limit - 3) // 2
    return f"{text[: limit - 3 - tail]}...{text[len(text) - tail :]}"


def marked(text: str) -> Sentence:
    """Split prose at its backquotes: what stands between two of them becomes `Code`."""
    pieces = _IN_BACKQUOTES.split(visible(text))
    return tuple(Code(piece) if index % 2 else piece for index, piece in enumerate(pieces) if piece)


def listed(names: Sequence[str], shown: int = 6, longest: int = 60) -> Sentence:
    """Return "`a`, `b` and `c`", or "`a`, `b` and 12 more" where more than `shown` names are given."""
    # "and 1 more" is no shorter than the name itself.
    kept = names if len(names) <= shown + 1 else names[:shown]
    pieces: list[str] = []
    for index, name in enumerate(kept):
        last = index == len(names) - 1
        if index:
            pieces.append(" and " if last else ", ")
        pieces.append(Code(cut(visible(name), longest)))
    if len(kept) < len(names):
        pieces.append(f" and {len(names) - len(kept):,} more")
    return tuple(pieces)


def count(number: int, noun: str) -> str:
    """Return "1 tensor", "2 tensors" or "12,000 tensors"."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def size(used_bytes: int) -> str:
    """Return "312 MB" with decimal units: two digits below ten, whole numbers above."""
    if used_bytes < 1000:
        return count(used_bytes, "byte")
    amount = float(used_bytes)
    for unit in _SIZE_UNITS:
        amount /= 1000
        # 999.5 would be shown as 1000: the next unit is the shorter word for it.
        if amount < 999.5 or unit == _SIZE_UNITS[-1]:
            break
    return f"{amount:.1f} {unit}" if amount < 9.95 else f"{amount:,.0f} {unit}"


def failure(problem: BaseException) -> str:
    """Return "ValueError: what it says", the first line of it cut to a readable length."""
    first_line = (str(problem).splitlines() or [""])[0][:_LONGEST_REASON]
    return f"{type(problem).__name__}: {first_line}".rstrip(": ")


def duration(seconds: float) -> str:
    """Return "18 ms", "1.2 s" or "2 min 5 s"."""
    if seconds < 0.001:
        return "under 1 ms"
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 9.95:
        return f"{seconds:.1f} s"
    whole = round(seconds)
    return f"{whole} s" if whole < 60 else f"{whole // 60} min {whole % 60} s"
