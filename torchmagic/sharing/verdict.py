"""What is said about memory with two holders, and the words all of it is said in."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmagic.findings import Fix, Level
from torchmagic.namespace import Seen

_SHOWN = 3


@dataclass(frozen=True)
class Sharing:
    """Memory that has two holders and was changed under the eyes of one; the parts of a finding.

    `topic` is what is said once: the container, when each of its entries could be a subject. With `told_by_line`
    nothing more is said when something was said already about memory that the same line writes.
    """

    subject: str
    message: str
    line: int | None
    others: tuple[str, ...] = ()
    level: Level = "warning"
    fix: Fix | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    topic: str = ""
    told_by_line: bool = False


def kind_word(seen: Seen) -> str:
    """Return what a person calls the object."""
    return {"tensor": "tensor", "module": "module"}.get(seen.kind, "array")


def first_values(seen: Seen) -> list[bool | int | float | str]:
    """Return the first numbers of a tensor or array, as text what JSON has no word for; empty where there are none."""
    try:
        row = seen.obj
        if seen.kind == "tensor":
            row = row.detach()
        for _ in range(len(row.shape) - 1):
            row = row[0]
        values = row[:_SHOWN].tolist() if len(row.shape) else [row.item()]
        return [_plain(value) for value in values]
    except Exception:
        return []


def _plain(value: Any) -> bool | int | float | str:
    """Return a number as JSON can write it: complex numbers, NaN and infinities are texts."""
    if type(value) is complex or (type(value) is float and not math.isfinite(value)):
        return str(value)
    return round(value, 4) if type(value) is float else value


def at_line(line: int | None, otherwise: str = "the cell") -> str:
    """Name the place of a statement."""
    return f"line {line}" if line is not None else otherwise


def copy_method(seen: Seen) -> str:
    """Return the call that copies an object: arrays copy, tensors clone, and those with a graph are detached first."""
    if seen.kind != "tensor":
        return ".copy()"
    torch = sys.modules["torch"]
    tracked = seen.obj.requires_grad and issubclass(type(seen.obj), torch.Tensor)
    return ".detach().clone()" if tracked else ".clone()"
