"""Optimizers that a module's move left behind: their state, or the very parameters they hold."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value
from torchmagic.namespace import Seen
from torchmagic.placement.misplaced import Misplaced
from torchmagic.source import Step, Write
from torchmagic.source.edits import spelled
from torchmagic.source.transfers import is_transfer


def left_in_optimizer(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge one optimizer."""
    stale = _stale_parameters(facts, seen)
    if stale:
        yield from _holds_stale(facts, seen, stale)
    elif devices.is_mismatch(facts.error) or not _moves_state(facts):
        yield from _state_elsewhere(facts, seen)


def _parameters(optimizer: Any) -> list[Any]:
    groups = object.__getattribute__(optimizer, "__dict__").get("param_groups", ())
    return [
        p for group in groups if type(group) is dict for p in group.get("params", ()) if kind_of_value(p) == "tensor"
    ]


def _stale_parameters(facts: Facts, seen: Seen) -> list[Any]:
    """Return the parameters when nothing but optimizers holds any of them."""
    parameters = _parameters(seen.obj)
    for parameter in parameters:
        found = facts.found.find(parameter)
        if found is None or found.more_places or any(_is_outside(place.chain) for place in found.places):
            return []
    return parameters


def _is_outside(chain: list[Any]) -> bool:
    return all(link.role not in ("group", "state") for link in chain)


def _holds_stale(facts: Facts, seen: Seen, stale: list[Any]) -> Iterator[Misplaced]:
    device = devices.device_of(stale[0])
    shapes = [_shape(parameter) for parameter in stale]
    for module in facts.found.of_kind("module"):
        home = devices.home_of(module.obj)
        own = [_shape(t) for t in devices.all_tensors(module.obj) if t.requires_grad]
        if home is None or device is None or home == device or sorted(own) != sorted(shapes):
            continue
        move, fix = _move_of(facts, module.obj), None
        if move is not None:
            fix = _rebuild(facts, seen, module, move)
        yield Misplaced(
            subject=seen.subject,
            fact=f"its {len(stale)} parameters are on {device} and belong to no module any more: `{module.subject}` "
            f"got new ones when it moved to {home}, and `step()` does not train them; build it after the move",
            objects=(seen.obj, *stale),
            device=device,
            wanted=home,
            line=_line(facts, move) or _creation_line(facts, seen),
            level="error",
            others=(module.subject,),
            fix=fix,
        )
        return


def _shape(tensor: Any) -> tuple[int, ...]:
    """Return a tensor's sizes; those of a lazy parameter are not known yet."""
    try:
        return tuple(tensor.shape)
    except RuntimeError:
        return (-1,)


def _state_elsewhere(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    state = object.__getattribute__(seen.obj, "__dict__").get("state")
    strays: list[tuple[Any, Any]] = []
    for parameter, values in list(dict.items(state)) if issubclass(type(state), dict) else ():
        if kind_of_value(parameter) != "tensor" or not issubclass(type(values), dict):
            continue
        for name, value in list(dict.items(values)):
            if name == "step" or kind_of_value(value) != "tensor" or devices.is_scalar(value):
                continue  # Adam counts its steps on the host
            if devices.device_of(value) != devices.device_of(parameter):
                strays.append((parameter, value))
    if not strays:
        return
    parameter, value = strays[0]
    paths = [_path(facts, stray) for _, stray in strays]
    home, device = str(devices.device_of(parameter)), str(devices.device_of(value))
    move = _move_of(facts, parameter)
    count = f"{len(strays)} state tensors of the optimizer are" if len(strays) > 1 else "this state of the optimizer is"
    yield Misplaced(
        subject=paths[0],
        fact=f"{count} on {device}, and the parameters are on {home}, so the next `step()` mixes both; build the "
        "optimizer after the move, or move its state too",
        objects=(seen.obj, *(stray for _, stray in strays)),
        device=device,
        wanted=home,
        line=_line(facts, move) or _creation_line(facts, seen),
        level="error",
        consequences=tuple(paths[1:6]),
    )


def _path(facts: Facts, tensor: Any) -> str:
    found = facts.found.find(tensor)
    if found is None:
        return "state"
    return next((place.text for place in found.places if place.role == "state"), found.subject)


def _moves_state(facts: Facts) -> bool:
    """Tell whether the program moves the state of an optimizer itself, as offloading does."""
    for step in facts.program.steps if facts.program is not None else ():
        around = [step.node, *step.loops] if any(map(is_transfer, step.nodes)) else []
        if any(isinstance(part, ast.Attribute) and part.attr == "state" for node in around for part in _header(node)):
            return True
    return False


def _header(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, (ast.For, ast.AsyncFor)):
        return ast.walk(node.iter)
    return ast.walk(node) if not isinstance(node, ast.While) else iter(())


def _move_of(facts: Facts, thing: Any) -> Step | None:
    """Return the last statement of the program that moves a module which is, or holds, the thing."""
    found, maybe = None, None
    for call, step in facts.program.calls if facts.program is not None else ():
        if not is_transfer(call) or not isinstance(call.func, ast.Attribute):
            continue
        value = live_value(facts, call.func.value, step)
        if kind_of_value(value) == "module":
            if any(part is thing for part in (*devices.submodules(value), *devices.all_tensors(value))):
                found = step
        elif kind_of(facts, call.func.value, step) == "module":
            maybe = step
    return found or maybe


def _line(facts: Facts, step: Step | None) -> int | None:
    if step is None or facts.program is None:
        return None
    if step.scope.unit.is_cell:
        return step.line
    return next((context.line for context in facts.program.contexts(step) if context.line is not None), None)


def _creation(facts: Facts, seen: Seen) -> Write | None:
    return next(
        (w for w in reversed(facts.writes_to(seen)) if w.kind == "bind" and isinstance(w.value, ast.Call)), None
    )


def _creation_line(facts: Facts, seen: Seen) -> int | None:
    write = _creation(facts, seen)
    return facts.line_of(write) if write is not None else None


def _rebuild(facts: Facts, seen: Seen, module: Seen, move: Step) -> Fix | None:
    """Repeat the statement that built the optimizer behind the move, where both stand at the top level of the cell."""
    write = _creation(facts, seen)
    if write is None or write.value is None or facts.source is None or write.step.scope is not move.scope:
        return None
    if len({place.root for place in seen.places}) > 1:
        return None  # a scheduler holds the optimizer too
    if not move.scope.unit.is_cell or write.step.order > move.order or move.node.end_lineno != move.line:
        return None
    if move.loops or move.tests or module.places[0].root not in ast.unparse(write.value):
        return None
    built = spelled(facts.source, write.step.node)
    return Fix(f"{facts.source.line(move.line).strip()}\n{built}", "The optimizer starts anew.")
