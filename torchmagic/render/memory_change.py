"""What a cell did to memory: a row for each measure of a device, then the holders that changed."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Final

from torchmagic.render.memory_html import CELL, NUMBER, QUIET, framed, html_of, quiet, table, title
from torchmagic.render.memory_page import MOST_HOLDERS, named
from torchmagic.render.memory_text import written
from torchmagic.render.memory_words import UNKNOWN, amount
from torchmagic.render.words import Sentence, count, duration, marked, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchmagic.memory_changes import CellMemory, HolderChange, Swing


@dataclass(frozen=True)
class Row:
    """One line: what it is about, the bytes before and after, the change, and words."""

    name: Sentence
    before: str
    after: str
    change: str
    words: str


_HEAD: Final = Row((), "before", "after", "change", "")


@dataclass(frozen=True)
class ChangePage:
    """The whole: its first line, the devices, the holders that changed, and what else to know."""

    title: str
    devices: tuple[Row, ...]
    holders: tuple[Row, ...]
    rest: str
    remarks: tuple[Sentence, ...]


def change_page(memory: CellMemory, top: int = MOST_HOLDERS) -> ChangePage:
    """Put what a cell did into words; the `top` largest changes of holders are shown one by one."""
    kept = memory.changes if len(memory.changes) <= top + 1 else memory.changes[:top]
    left = len(memory.changes) - len(kept)
    several = len({change.device for change in memory.changes}) > 1
    return ChangePage(
        title=f"gpumem: the cell ran {duration(memory.seconds)} · {_summary(memory)}",
        devices=tuple(_swing(swing) for swing in memory.swings),
        holders=tuple(_holder(change, several=several) for change in kept),
        rest=f"and {count(left, 'more holder')} changed" if left else "",
        remarks=tuple(marked(text) for text in memory.remarks),
    )


def _summary(memory: CellMemory) -> str:
    told = [
        f"{swing.device} {signed(swing.change_bytes)} {swing.measure}" for swing in memory.swings if swing.change_bytes
    ]
    return ", ".join(told) or "nothing changed"


def signed(number: int | None) -> str:
    """Return a change in words: "+1.2 GB", "-40 kB", or "0"."""
    if number is None:
        return UNKNOWN
    return "0" if number == 0 else f"{'+' if number > 0 else '-'}{size(abs(number))}"


def _swing(swing: Swing) -> Row:
    name = (f"{swing.device} {swing.measure}",)
    return Row(name, amount(swing.before_bytes), amount(swing.after_bytes), signed(swing.change_bytes), _peak(swing))


def _peak(swing: Swing) -> str:
    if swing.peak_bytes is None:
        return ""
    if not swing.is_sampled:
        how = ", operation by operation" if "name" in swing.measure else ""
        return f"peak {size(swing.peak_bytes)}{how}"
    if swing.ceiling_bytes is None:
        return f"peak {size(swing.peak_bytes)}, by samples"
    least, most = size(swing.peak_bytes), size(swing.ceiling_bytes)
    return f"peak {least}, by samples; at most {most}, an earlier peak"


def _holder(change: HolderChange, *, several: bool) -> Row:
    words = "came" if not change.before_bytes else "went" if not change.after_bytes else ""
    words = words or ("grew" if change.change_bytes > 0 else "shrank")
    if several:
        words = f"{words} on {change.device}"
    before, after = (size(number) if number else "" for number in (change.before_bytes, change.after_bytes))
    return Row(named(change.path), before, after, signed(change.change_bytes), words)


def change_text(memory: CellMemory, top: int = MOST_HOLDERS) -> str:
    """Return what a cell did as text."""
    page = change_page(memory, top)
    lines = [page.title, "", *_lines([_HEAD, *page.devices])]
    if page.holders:
        lines += ["", *_lines(page.holders)]
    lines += [f"  {page.rest}"] if page.rest else []
    return "\n".join([*lines, *(written(remark) for remark in page.remarks)])


def _lines(rows: Sequence[Row]) -> list[str]:
    width = max(len(written(row.name)) for row in rows)
    return [
        f"  {written(row.name).ljust(width)}  {row.before.rjust(9)}  {row.after.rjust(9)}  {row.change.rjust(9)}"
        f"  {row.words}".rstrip()
        for row in rows
    ]


def change_html(memory: CellMemory, top: int = MOST_HOLDERS) -> str:
    """Return what a cell did as HTML."""
    page = change_page(memory, top)
    parts = [title(page.title), table(_html_row(row) for row in (_HEAD, *page.devices))]
    if page.holders:
        parts.append(table(_html_row(row) for row in page.holders))
    parts += [quiet(escape(page.rest))] if page.rest else []
    return framed([*parts, *(quiet(html_of(remark)) for remark in page.remarks)])


def _html_row(row: Row) -> str:
    faint = f";{QUIET}" if row is _HEAD else ""
    numbers = "".join(f'<td style="{NUMBER}{faint}">{escape(text)}</td>' for text in (row.before, row.after))
    return (
        f'<tr style="background:none"><td style="{CELL}">{html_of(row.name)}</td>{numbers}'
        f'<td style="{NUMBER}{faint or ";font-weight:600"}">{escape(row.change)}</td>'
        f'<td style="{CELL};{QUIET}">{escape(row.words)}</td></tr>'
    )
