"""Where the program moves modules, and to which device."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.kinds import kind_of_value
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Step, ref_of
from torchmagic.source.transfers import is_transfer


@dataclass(frozen=True, eq=False)
class Move:
    """A call that moves modules, the statement it stands in, and the device where the text tells it.

    `modules` are the live objects that the receiver may be; without any, the text alone says that it is a module.
    """

    call: ast.Call
    step: Step
    modules: tuple[Any, ...]
    device: str | None

    def reaches(self, thing: Any) -> bool:
        """Tell whether what is moved is, or registers, a module or tensor."""
        return any(
            thing is part
            for module in self.modules
            for part in (*devices.submodules(module), *devices.all_tensors(module))
        )


def moves(facts: Facts) -> Iterator[Move]:
    """Yield the transfers of modules in the order of the text."""
    for call, step in facts.program.calls if facts.program is not None else ():
        if not is_transfer(call) or not isinstance(call.func, ast.Attribute):
            continue
        receiver = call.func.value
        modules = tuple(value for value in _named(facts, call, step) if kind_of_value(value) == "module")
        if modules or kind_of(facts, receiver, step) == "module":
            yield Move(call, step, modules, _device(facts, call, step))


def last_move(facts: Facts, thing: Any) -> Move | None:
    """Return the last statement that moves something, else the last that moves some module without a name."""
    known = list(moves(facts))
    certain = [move for move in known if move.reaches(thing)]
    maybe = [move for move in known if not move.modules]
    return next(reversed([*maybe, *certain]), None)


def line_of_move(facts: Facts, move: Move | None) -> int | None:
    """Return the cell's line of a move: its own, or that of the cell's statement that leads to it."""
    if move is None or facts.program is None:
        return None
    if move.step.scope.unit.is_cell:
        return move.step.line
    return next((context.line for context in facts.program.contexts(move.step) if context.line is not None), None)


def _named(facts: Facts, call: ast.Call, step: Step) -> Iterator[Any]:
    """Yield the live objects that the receiver of a move names, and those that its result is bound to."""
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else call
    yield live_value(facts, receiver, step)
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute):
        receiver = receiver.func.value  # Net().eval().to(device)
        yield live_value(facts, receiver, step)
    if facts.program is None:
        return
    from_call: ast.AST | None = getattr(step.node, "value", None)
    while isinstance(from_call, ast.Call) and from_call is not call and isinstance(from_call.func, ast.Attribute):
        from_call = from_call.func.value  # Net().to(device).eval()
    for target in getattr(step.node, "targets", ()) if from_call is call else ():
        yield live_value(facts, target, step)
    ref = ref_of(receiver)
    if ref is not None and not isinstance(step.scope.node, ast.Module):
        yield from (facts.value(spelling) for spelling in facts.program.spellings(ref, step.scope))


def _device(facts: Facts, call: ast.Call, step: Step) -> str | None:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if name != "to":
        return name if name in ("cuda", "cpu", "xpu", "npu", "mps") else None
    given = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "device")]
    for argument in given:
        value = argument.value if isinstance(argument, ast.Constant) else live_value(facts, argument, step)
        if type(value) is str or (value is not MISSING and type(value).__name__ == "device"):
            return str(value)
    return None
