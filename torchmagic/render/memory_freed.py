"""What came back when the notebook's history was let go of: a row for each thing, and what is lost by it."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from torchmagic.render.memory_html import CELL, NUMBER, framed, html_of, quiet, table, title
from torchmagic.render.memory_text import written
from torchmagic.render.words import Sentence, marked, size

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torchmagic.memory_changes import Freed

_NOTHING = "0"


def freed_text(freed: Freed) -> str:
    """Return what came back as text."""
    rows = _rows(freed)
    width = max(len(written(name)) for name, _ in rows)
    lines = [f"  {written(name).ljust(width)}  {amount}" for name, amount in rows]
    return "\n".join([_title(freed), *lines, *(written(remark) for remark in _remarks(freed))])


def freed_html(freed: Freed) -> str:
    """Return what came back as HTML."""
    rows = [
        f'<tr style="background:none"><td style="{CELL}">{html_of(name)}</td>'
        f'<td style="{NUMBER};text-align:left">{escape(amount)}</td></tr>'
        for name, amount in _rows(freed)
    ]
    return framed([title(_title(freed)), table(rows), *(quiet(html_of(remark)) for remark in _remarks(freed))])


def _title(freed: Freed) -> str:
    together: dict[str, int] = {}
    for step in freed.steps:
        for device, number in step.freed.items():
            together[device] = together.get(device, 0) + number
    return f"gpumem: {_bytes(together)} came back" if together else "gpumem: nothing came back"


def _rows(freed: Freed) -> list[tuple[Sentence, str]]:
    return [(marked(step.what), _bytes(step.freed)) for step in freed.steps]


def _bytes(freed: Mapping[str, int]) -> str:
    return ", ".join(f"{size(number)} on {device}" for device, number in sorted(freed.items())) or _NOTHING


def _remarks(freed: Freed) -> list[Sentence]:
    return [marked(text) for text in (*freed.lost, *freed.kept)]
