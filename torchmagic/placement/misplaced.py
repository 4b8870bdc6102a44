"""What the kinds of evidence have in common: what is misplaced, and how a device is written in a fix."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.findings import Fix, Level
from torchmagic.source import SourceText
from torchmagic.source.edits import spelled
from torchmagic.source.transfers import is_transfer


@dataclass(frozen=True)
class Misplaced:
    """Something on `device` that is needed on `wanted`. `objects` are the live objects it is about.

    `operands` describes what stands on the line that failed because of it.
    """

    subject: str
    fact: str
    objects: tuple[Any, ...]
    device: str
    wanted: str
    line: int | None = None
    level: Level = "warning"
    others: tuple[str, ...] = ()
    consequences: tuple[str, ...] = ()
    fix: Fix | None = None
    operands: Mapping[str, str] = field(default_factory=dict)


def device_text(facts: Facts, device: str) -> str:
    """Write a device as the cell would: by a variable that holds it, else as a string."""
    spellings = {device, device.removesuffix(":0")}
    for name, value in facts.found.names.items():
        held = type(value) is str or f"{type(value).__module__}.{type(value).__name__}" == "torch.device"
        if held and not name.startswith("_") and str(value) in spellings:
            return name
    return devices.spelled(device)


def is_moved_in_text(facts: Facts, thing: Any) -> bool:
    """Tell whether the program moves an object somewhere, by whichever name."""
    for call, step in facts.program.calls if facts.program is not None else ():
        receiver = call.func.value if is_transfer(call) and isinstance(call.func, ast.Attribute) else None
        if receiver is not None and live_value(facts, receiver, step) is thing:
            return True
    return False


def grouped(source: SourceText, node: ast.expr) -> str:
    """Write an expression so that a method call can follow it, in parentheses where it needs them."""
    text = spelled(source, node)
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"
