"""The devices as a panel shows them: bars, a curve of the time before, and the holders of the last look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Final

from torchmagic.render.memory_html import COLOURS, device_html, framed, html_of, quiet, title
from torchmagic.render.memory_page import DeviceSection, device_section, memory_page
from torchmagic.render.memory_text import device_text
from torchmagic.render.words import Sentence, size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchmagic.holdings import DeviceMemory, Memory

_SPARKS: Final = "▁▂▃▄▅▆▇█"
_SPARK_COLUMNS: Final = 60
_WIDTH, _HEIGHT = 240, 40


@dataclass(frozen=True)
class LastLook:
    """The words of a look with names, which stay the same from one refresh to the next."""

    sections: Mapping[str, DeviceSection] = field(default_factory=dict)
    remarks: tuple[Sentence, ...] = ()


def last_look(memory: Memory) -> LastLook:
    """Put a look into words, once for all refreshes until the next look."""
    page = memory_page(memory)
    names = [device.device for device in memory.devices]
    return LastLook(dict(zip(names, page.devices, strict=True)), page.remarks)


def live_html(
    last: LastLook, devices: Sequence[DeviceMemory], curves: Mapping[str, Sequence[int]], note: str = ""
) -> str:
    """Return a panel as HTML: `devices` as they are now, with the holders of the last look."""
    shown = [device_html(_section(last, device), curve_html(curves.get(device.device, ()))) for device in devices]
    remarks = [quiet(html_of(remark)) for remark in last.remarks]
    return framed([title("gpumem", [note.replace("`", "")] if note else []), *shown, *remarks])


def live_text(last: LastLook, devices: Sequence[DeviceMemory], curves: Mapping[str, Sequence[int]]) -> str:
    """Return a panel as text."""
    lines = ["gpumem"]
    for device in devices:
        points = curves.get(device.device, ())
        lines += ["", *device_text(_section(last, device))]
        lines += [f"  {curve_text(points)}  {_range(points)}"] if len(points) > 1 else []
    return "\n".join(lines)


def _section(last: LastLook, device: DeviceMemory) -> DeviceSection:
    """Return a device as it is, with the holders that the last look found there."""
    now, looked = device_section(device), last.sections.get(device.device)
    return now if looked is None else replace(now, holders=looked.holders, rest=looked.rest)


def curve_html(points: Sequence[int]) -> str:
    """Return the curve of the last minutes, from zero to the most, drawn in the colour of tensors."""
    if len(points) < 2:
        return ""
    most = max(points) or 1
    steps = [
        f"{_WIDTH * index / (len(points) - 1):.1f},{_HEIGHT - 1 - (_HEIGHT - 2) * number / most:.1f}"
        for index, number in enumerate(points)
    ]
    colour = COLOURS["tensors"]
    line = f'<polyline points="{" ".join(steps)}" fill="none" stroke="{colour}" stroke-width="1.5"'
    area = f'<polygon points="0,{_HEIGHT} {" ".join(steps)} {_WIDTH},{_HEIGHT}" fill="{colour}" fill-opacity=".18"/>'
    words = escape(_range(points))
    return (
        f'<div style="margin:.2em 0"><svg role="img" aria-label="{words}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
        f' preserveAspectRatio="none" style="display:block;width:100%;height:{_HEIGHT}px">{area}{line}'
        f' vector-effect="non-scaling-stroke"/></svg>{quiet(words)}</div>'
    )


def curve_text(points: Sequence[int]) -> str:
    """Return the curve as characters of eight heights."""
    most = max(points, default=0) or 1
    columns = min(len(points), _SPARK_COLUMNS)
    chosen = [
        max(points[index * len(points) // columns : (index + 1) * len(points) // columns]) for index in range(columns)
    ]
    return "".join(_SPARKS[min(len(_SPARKS) - 1, number * len(_SPARKS) // (most + 1))] for number in chosen)


def _range(points: Sequence[int]) -> str:
    return f"{size(points[-1])} now, between {size(min(points))} and {size(max(points))} before"
