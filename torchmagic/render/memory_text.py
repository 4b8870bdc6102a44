"""A look at memory as plain text of about a hundred columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from torchmagic.render.memory_page import MOST_HOLDERS, memory_page
from torchmagic.render.words import Code

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from torchmagic.holdings import Memory, PartKind
    from torchmagic.render.memory_page import DeviceSection, HolderRow, PartRow
    from torchmagic.render.words import Sentence

_COLUMNS: Final = 100
_BAR: Final = 60

MARKS: Final[dict[PartKind, str]] = {
    "named": "█",
    "graph": "▓",
    "unnamed": "▒",
    "tensors": "█",
    "cache": "░",
    "context": "+",
    "process": "+",
    "others": "x",
    "context or others": "x",
    "process or others": "x",
    "driver": "-",
    "free": "·",
    "free or others": "·",
    "unknown": "?",
}


def memory_text(memory: Memory, top: int = MOST_HOLDERS) -> str:
    """Return a look as text."""
    page = memory_page(memory, top)
    lines = _wrapped(" · ".join([page.title, *page.tails]))
    for section in page.devices:
        lines += ["", *device_text(section)]
    if page.remarks:
        lines += ["", *(line for remark in page.remarks for line in _wrapped(written(remark)))]
    return "\n".join(lines)


def device_text(section: DeviceSection) -> Iterator[str]:
    """Yield the lines of one device."""
    # No NUL can be in the words: `visible` has been over every name.
    facts = [fact.replace(" ", "\0") for fact in (section.name, *section.facts)]
    yield from (line.replace("\0", " ") for line in _wrapped(" · ".join(facts)))
    if any(part.share for part in section.parts):
        yield bar_text(section.parts)
    label = max((len(part.label) for part in section.parts), default=0)
    for part in section.parts:
        head = f"  {MARKS[part.kind]} {part.label.ljust(label)}  {part.amount.rjust(7)}"
        yield from _wrapped(f"{head}  {written(part.hint)}".rstrip(), indent=label + 15)
    if section.holders:
        yield ""
        yield from holders_text(section.holders)
    if section.rest:
        yield f"  {written(section.rest)}"
    for remark in section.remarks:
        yield from _wrapped(f"  {written(remark)}", indent=2)


def bar_text(parts: Sequence[PartRow]) -> str:
    """Return the bar: a character for each sixtieth, and one at least for each part that has any bytes."""
    widths = [max(round(part.share * _BAR), 1) if part.share else 0 for part in parts]
    while sum(widths) > _BAR and max(widths) > 1:
        widths[widths.index(max(widths))] -= 1
    if sum(part.share for part in parts) > 0.999:
        widths[widths.index(max(widths))] += _BAR - sum(widths)
    return (
        "  [" + "".join(MARKS[part.kind] * width for part, width in zip(parts, widths, strict=True)).ljust(_BAR) + "]"
    )


def holders_text(rows: Sequence[HolderRow]) -> Iterator[str]:
    """Yield a line for each holder, its columns aligned."""
    paths = [f"{'  ' * row.depth}{written(row.path)}" for row in rows]
    width = max(len(path) for path in paths)
    for path, row in zip(paths, rows, strict=True):
        words = " · ".join(text for text in (row.split, written(row.note)) if text)
        yield from _wrapped(
            f"  {path.ljust(width)}  {row.amount.rjust(7)}  {row.share.rjust(9)}  {words}".rstrip(), indent=width + 24
        )


def written(sentence: Sentence) -> str:
    """Return a sentence with its code in backquotes."""
    return "".join(f"`{piece}`" if isinstance(piece, Code) else piece for piece in sentence)


def _wrapped(text: str, indent: int = 0) -> list[str]:
    """Wrap the words of a line; its columns, which are set apart by several spaces, stay as they are."""
    if len(text) <= _COLUMNS:
        return [text]
    indent = min(indent, _COLUMNS // 2)
    head, tail = text[:indent], text[indent:]
    lines = textwrap.wrap(tail, _COLUMNS - indent, break_on_hyphens=False) or [""]
    return [head + lines[0], *(" " * indent + line for line in lines[1:])]
