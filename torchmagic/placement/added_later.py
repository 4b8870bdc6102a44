"""A part that was put into a module after the module had moved: a new head, a layer of a list, a parameter."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.findings import Fix
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace import Seen
from torchmagic.placement.misplaced import Misplaced, device_text, grouped, is_moved_in_text
from torchmagic.placement.moves import moves
from torchmagic.source import Step, Write
from torchmagic.source.edits import replace_all
from torchmagic.source.refs import bare_name, read_names
from torchmagic.source.transfers import transfers

_PUTS_IN = frozenset({"setattr", "__setattr__", "add_module", "register_module"})


@dataclass(frozen=True, eq=False)
class _Put:
    """The statement that put a part in, as far as the text tells, and its write where it is an ordinary one."""

    line: int | None
    write: Write | None = None


def added_after_move(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge one module that was moved as a whole and of which some parts are on the host all the same."""
    module = seen.obj
    homes = devices.devices_of_module(module)
    if facts.program is None or len(homes) != 2 or devices.HOST not in homes or _handles_devices(facts, module):
        return
    wanted = next(home for home in homes if home != devices.HOST)
    moved = _order_of_move(facts, module)
    if moved is None and wanted == "meta":
        return  # a skeleton that is filled part by part
    for part in _on_host(module):
        if _is_kept_on_host(facts, part):
            continue
        put = _put_in(facts, part, moved if moved is not None else -1)
        if put is None and (moved is None or not _is_known(facts, module)):
            continue
        put = put or _Put(_next_mention(facts, seen, moved or 0))
        found = facts.found.find(part)
        yield Misplaced(
            subject=found.subject if found is not None else seen.subject,
            fact=f"is on {devices.HOST}; it was put into `{seen.subject}` after that had moved to {wanted}",
            objects=(part, *devices.all_tensors(part)) if kind_of_value(part) == "module" else (part,),
            device=devices.HOST,
            wanted=wanted,
            line=put.line,
            others=(seen.subject,),
            fix=_fix(facts, put.write, wanted) if put.write is not None else None,
        )


def _on_host(module: Any) -> Iterator[Any]:
    """Yield the largest parts of a module that are on the host with all their tensors."""
    yield from (t for t in devices.own_tensors(module) if _home(t) == devices.HOST and not devices.is_scalar(t))
    held = object.__getattribute__(module, "__dict__").get("_modules")
    for child in dict.values(held) if issubclass(type(held), dict) else ():
        if child is None:
            continue
        if _home(child) == devices.HOST and not _is_table(child):
            yield child
        elif devices.HOST in devices.devices_of_module(child):
            yield from _on_host(child)


def _is_table(module: Any) -> bool:
    """Tell whether a module is nothing but a list or dict of others, which were put in one by one."""
    nn = sys.modules["torch"].nn
    return type(module) in (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)


def _home(part: Any) -> str | None:
    return devices.home_of(part) if kind_of_value(part) == "module" else devices.device_of(part)


def _handles_devices(facts: Facts, module: Any) -> bool:
    """Tell whether something in a module's own code moves what it is given, or a library does."""
    if devices.is_split_on_purpose(module):
        return True
    classes = {type(part).__name__ for part in devices.submodules(module) if not is_from_torch(type(part))}
    return any(
        step.scope.class_name in classes and step.scope.name != "__init__" and any(True for _ in transfers(own))
        for step in (facts.program.steps if facts.program is not None else ())
        for own in step.own_expressions()
    )


def _is_known(facts: Facts, module: Any) -> bool:
    """Tell whether the program shows the forward passes of all the parts that torch does not define."""
    shown = {scope.class_name for scope in (facts.program.scopes if facts.program is not None else ())}
    return all(is_from_torch(type(part)) or type(part).__name__ in shown for part in devices.submodules(module))


def _order_of_move(facts: Facts, module: Any) -> float | None:
    """Return the order of the last top-level statement that moves the module as a whole, or leads to its move."""
    return max(
        (
            context.steps[0].order
            for move in moves(facts)
            if move.reaches(module) and facts.program is not None
            for context in facts.program.contexts(move.step)
        ),
        default=None,
    )


def _is_kept_on_host(facts: Facts, part: Any) -> bool:
    """Tell whether the program brings a part to the host itself."""
    if kind_of_value(part) == "tensor":
        return is_moved_in_text(facts, part)
    return any(part in move.modules and move.device in (devices.HOST, None) for move in moves(facts))


def _put_in(facts: Facts, part: Any, moved: float) -> _Put | None:
    """Find the last statement behind the move that puts a part in."""
    if facts.program is None:
        return None
    found = facts.found.find(part)
    writes = [
        write
        for write in (facts.writes_to(found) if found is not None else ())
        if write.kind == "store" or (write.kind == "bind" and bool(write.target.steps))
        if write.step.scope.name != "__init__" and _is_behind(facts, write.step, moved)
    ]
    if writes:
        nearest = max(reversed(writes), key=lambda write: len(write.target.steps))
        return _Put(facts.line_of(nearest), nearest)
    for call, step in reversed(facts.program.calls):
        if _puts_in(call) and _is_behind(facts, step, moved):
            lines = [call.lineno] if step.scope.unit.is_cell else [c.line for c in facts.program.contexts(step)]
            return _Put(next((line for line in lines if line is not None), None))
    return None


def _puts_in(call: ast.Call) -> bool:
    """Tell whether a call registers a part by name, or loads tensors in the place of those that were there."""
    name = bare_name(call.func)
    loads = name == "load_state_dict" and any(keyword.arg == "assign" for keyword in call.keywords)
    return name in _PUTS_IN or loads


def _is_behind(facts: Facts, step: Step, moved: float) -> bool:
    contexts = facts.program.contexts(step) if facts.program is not None else []
    return any(context.steps[0].order > moved for context in contexts)


def _next_mention(facts: Facts, seen: Seen, moved: float) -> int | None:
    """Return the line of the first top-level statement behind the move that mentions the module."""
    root = seen.places[0].root
    for step in facts.program.steps if facts.program is not None else ():
        is_behind = step.scope.unit.is_cell and isinstance(step.scope.node, ast.Module) and step.order > moved
        if is_behind and any(root in read_names(own) for own in step.own_expressions()):
            return step.line
    return None


def _fix(facts: Facts, write: Write, wanted: str) -> Fix | None:
    """Move the new part where it is made, when one line of the cell makes it."""
    source, step = write.step.scope.unit.source, write.step
    if not step.scope.unit.is_cell or step.node.lineno != step.node.end_lineno or write.position is not None:
        return None
    if not isinstance(write.value, ast.Call):
        return None
    value = live_value(facts, write.value.func, step)
    if not issubclass(type(value), type):
        return None
    if not any(kind.__name__ == "Module" for kind in type.__getattribute__(value, "__mro__")):
        return None  # `nn.Parameter(...).to(...)` is no parameter
    text = replace_all(
        source, write.line, {write.value: f"{grouped(source, write.value)}.to({device_text(facts, wanted)})"}
    )
    return Fix(text) if text is not None else None
