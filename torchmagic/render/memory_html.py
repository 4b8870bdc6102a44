"""A look at memory as HTML that needs neither script nor style sheet; see `torchmagic.render.html`."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from torchmagic.render.memory_page import MOST_HOLDERS, memory_page
from torchmagic.render.words import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchmagic.holdings import Memory, PartKind
    from torchmagic.render.memory_page import DeviceSection, HolderRow, PartRow
    from torchmagic.render.words import Sentence

COLOURS: Final[dict[PartKind, str]] = {
    "named": "#2f7ed8",
    "graph": "#8e5bd0",
    "unnamed": "#d0589b",
    "tensors": "#2f7ed8",
    "cache": "#1fa3a3",
    "context": "#c98a1b",
    "process": "#c98a1b",
    "others": "#cf5b3a",
    "context or others": "#cf5b3a",
    "process or others": "#cf5b3a",
    "driver": "#8a8a8a",
    "free": "rgba(127,127,127,.18)",
    "free or others": "rgba(127,127,127,.18)",
    "unknown": "rgba(127,127,127,.18)",
}
"""Colours that are seen on white and on black; what is free is the page with a shade over it."""

QUIET: Final = "opacity:.75"
_SHADE: Final = "rgba(127,127,127,.1)"
CELL: Final = "padding:.1em .8em .1em 0;border:0;background:none;text-align:left;vertical-align:top"
NUMBER: Final = f"{CELL};text-align:right;white-space:nowrap;font-variant-numeric:tabular-nums"


def memory_html(memory: Memory, top: int = MOST_HOLDERS) -> str:
    """Return a look as HTML."""
    page = memory_page(memory, top)
    remarks = [quiet(html_of(remark)) for remark in page.remarks]
    return framed([title(page.title, page.tails), *(device_html(section) for section in page.devices), *remarks])


def title(text: str, tails: Sequence[str] = ()) -> str:
    """Return the first line, whose tails are quieter. No <h3>: JupyterLab would list it in the table of contents."""
    faint = "".join(f" · {escape(tail)}" for tail in tails)
    return (
        f'<p role="heading" aria-level="3" style="margin:0 0 .4em;font-weight:600">{escape(text)}'
        f'<span style="font-weight:400;{QUIET}">{faint}</span></p>'
    )


def framed(parts: Iterable[str]) -> str:
    """Return the parts in the frame that all of the package's HTML stands in."""
    return f'<div class="torchmagic" style="line-height:1.5;max-width:60em">{"".join(parts)}</div>'


def device_html(section: DeviceSection, below_bar: str = "") -> str:
    """Return one device; `below_bar` is HTML that stands between the bar and its parts."""
    facts = "".join(f" · {escape(fact)}" for fact in section.facts)
    name = f'<p style="margin:.6em 0 .2em"><b>{escape(section.name)}</b><span style="{QUIET}">{facts}</span></p>'
    rest = quiet(html_of(section.rest)) if section.rest else ""
    remarks = "".join(quiet(html_of(remark)) for remark in section.remarks)
    parts = table(_part_row(part) for part in section.parts)
    holders = table(_holder_row(row) for row in section.holders) if section.holders else ""
    return f"{name}{bar_html(section.parts)}{below_bar}{parts}{holders}{rest}{remarks}"


def bar_html(parts: Sequence[PartRow]) -> str:
    """Return the bar: a block for each part that has any bytes, as wide as its share."""
    blocks = "".join(
        f'<span title="{escape(part.label)}: {escape(part.amount)}" style="display:inline-block;height:1em;'
        f'width:{100 * part.share:.3f}%;background:{COLOURS[part.kind]};vertical-align:top"></span>'
        for part in parts
        if part.share
    )
    if not blocks:
        return ""
    words = escape(", ".join(f"{part.label} {part.amount}" for part in parts))
    box = f"height:1em;line-height:1em;white-space:nowrap;overflow:hidden;background:{_SHADE};border-radius:3px"
    return f'<div role="img" aria-label="{words}" style="{box};margin:.2em 0 .3em;font-size:1em">{blocks}</div>'


def _part_row(part: PartRow) -> str:
    swatch = f"display:inline-block;width:.8em;height:.8em;border-radius:2px;background:{COLOURS[part.kind]}"
    label = f'<span style="{swatch}"></span> {escape(part.label)}'
    return (
        f'<tr style="background:none"><td style="{CELL};white-space:nowrap">{label}</td>'
        f'<td style="{NUMBER}">{escape(part.amount)}</td>'
        f'<td style="{CELL};{QUIET}">{html_of(part.hint)}</td></tr>'
    )


def _holder_row(row: HolderRow) -> str:
    indent = f"padding-left:{1.2 * row.depth:.1f}em"
    words = " · ".join(text for text in (escape(row.split), html_of(row.note)) if text)
    return (
        f'<tr style="background:none"><td style="{CELL};{indent}">{html_of(row.path)}</td>'
        f'<td style="{NUMBER}">{escape(row.amount)}</td>'
        f'<td style="{NUMBER};{QUIET}">{escape(row.share)}</td>'
        f'<td style="{CELL};{QUIET}">{words}</td></tr>'
    )


def table(rows: Iterable[str]) -> str:
    """Return rows as a table that is not taken for one of numbers and stripes."""
    style = "border-collapse:collapse;border:0;margin:.2em 0 .5em;font-size:inherit;table-layout:auto"
    return f'<table style="{style}"><tbody>{"".join(rows)}</tbody></table>'


def quiet(inner: str) -> str:
    """Return a line that stands back."""
    return f'<p style="margin:.2em 0 0;{QUIET}">{inner}</p>'


def html_of(sentence: Sentence) -> str:
    """Return a sentence with its code as code."""
    return "".join(_code(piece) if isinstance(piece, Code) else escape(piece) for piece in sentence)


def _code(text: str) -> str:
    style = f"padding:0 .25em;background:{_SHADE};unicode-bidi:isolate;overflow-wrap:anywhere"
    return f'<code style="{style}">{escape(text)}</code>'
