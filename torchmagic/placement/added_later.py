"""A part that was put into a module after the module had moved: a new head, a parameter that was replaced."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value
from torchmagic.namespace import Seen
from torchmagic.namespace.resolve import MISSING
from torchmagic.placement.misplaced import Misplaced, device_text, grouped, is_moved_in_text
from torchmagic.placement.together import keeps_its_device
from torchmagic.source import Write
from torchmagic.source.edits import replace_all
from torchmagic.source.transfers import is_transfer


def added_after_move(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge one module of the cell whose text moves it as a whole and later puts in something from elsewhere."""
    module = seen.obj
    homes = devices.devices_of_module(module)
    if facts.program is None or len(homes) != 2 or devices.HOST not in homes or not keeps_its_device(facts, module):
        return
    moved = _move_of(facts, module)
    if moved is None:
        return
    wanted = next(home for home in homes if home != devices.HOST)
    for write in facts.program.writes:
        if write.kind != "bind" or not write.target.steps or not write.step.scope.unit.is_cell:
            continue
        if not any(context.steps[0].order > moved for context in facts.program.contexts(write.step)):
            continue
        part = facts.value(write.target, write.step.scope)
        if (
            part is MISSING
            or not _is_part(module, part)
            or _home(part) != devices.HOST
            or is_moved_in_text(facts, part)
        ):
            continue
        found = facts.found.find(part)
        yield Misplaced(
            subject=found.subject if found is not None else str(write.target),
            fact=f"is on {devices.HOST}; it was put into `{seen.subject}` after that had moved to {wanted}",
            objects=(part, *devices.all_tensors(part)) if kind_of_value(part) == "module" else (part,),
            device=devices.HOST,
            wanted=wanted,
            line=facts.line_of(write),
            others=(seen.subject,),
            fix=_fix(facts, write, wanted),
        )


def _move_of(facts: Facts, module: Any) -> int | None:
    """Return the order of the last top-level statement that moves the module as a whole."""
    moves = []
    for call, step in facts.program.calls if facts.program is not None else ():
        if (
            not isinstance(step.scope.node, ast.Module)
            or not is_transfer(call)
            or not isinstance(call.func, ast.Attribute)
        ):
            continue
        bound = step.node.targets[0] if isinstance(step.node, ast.Assign) and step.node.value is call else None
        if any(node is not None and live_value(facts, node, step) is module for node in (call.func.value, bound)):
            moves.append(step.order)
    return max(moves, default=None)


def _is_part(module: Any, part: Any) -> bool:
    """Tell whether a module registers something, itself or in a part of its own."""
    if part is module:
        return False
    return any(part is own for own in (*devices.submodules(module), *devices.all_tensors(module)))


def _home(part: Any) -> str | None:
    return devices.home_of(part) if kind_of_value(part) == "module" else devices.device_of(part)


def _fix(facts: Facts, write: Write, wanted: str) -> Fix | None:
    """Move the new part where it is made, when one line of the cell makes it."""
    source = write.step.scope.unit.source
    if write.value is None or write.step.node.lineno != write.step.node.end_lineno or write.position is not None:
        return None
    if not isinstance(write.value, ast.Call) or not isinstance(live_value(facts, write.value.func, write.step), type):
        return None
    value = live_value(facts, write.value.func, write.step)
    if not any(kind.__name__ == "Module" for kind in type.__getattribute__(value, "__mro__")):
        return None  # `nn.Parameter(...).to(...)` is no parameter
    text = replace_all(
        source, write.line, {write.value: f"{grouped(source, write.value)}.to({device_text(facts, wanted)})"}
    )
    return Fix(text) if text is not None else None
