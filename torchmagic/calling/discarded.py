"""Conversions of tensors whose result is lost: it stands alone, or is bound to a local name that nobody reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking.elements import drawn_from
from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.checking.facts import Facts
from torchmagic.kinds import kind_of_value
from torchmagic.namespace.children import elements_of
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import ANY, Ref, Step, ref_of
from torchmagic.source.lost import conversions_that_stand_alone, is_bound_for_nothing, is_guarded_as_tensor
from torchmagic.source.refs import bare_name

CONVERSIONS = frozenset(
    {
        "to", "cuda", "cpu", "xpu", "half", "float", "double", "bfloat16", "int", "long", "short", "bool", "type_as",
        "detach", "clone", "contiguous", "numpy", "pin_memory",
    }
)  # fmt: skip
_BRINGS_TO_HOST = frozenset({"cpu", "numpy"})
_CLOCKS = frozenset({"perf_counter", "perf_counter_ns", "time", "monotonic", "timeit", "elapsed_time", "Timer"})


@dataclass(frozen=True, eq=False)
class Discarded:
    """The statement, the outermost conversion, and the path at the start of the chain with its live value.

    `name` is the local name that the result is bound to for nothing; `line` is the cell's line.
    """

    step: Step
    call: ast.Call
    receiver: ast.expr
    subject: str
    value: Any
    line: int
    name: str = ""

    @property
    def method(self) -> str:
        """The outermost conversion."""
        return self.call.func.attr if isinstance(self.call.func, ast.Attribute) else ""


def discarded(facts: Facts) -> Iterator[Discarded]:
    """Yield the conversions of tensors whose result is lost, in the cell or in a function that the cell calls."""
    for step in facts.program.steps if facts.program is not None else ():
        line = _line(facts, step)
        if line is None:
            continue
        for call, name in _lost(step):
            receiver = start_of_chain(call)
            if ref_of(receiver) is None or not _is_tensor(facts, receiver, step):
                continue
            subject, value = _subject(facts, receiver, step), _value(facts, receiver, step)
            found = Discarded(step, call, receiver, subject, value, line, name)
            if not (found.method in _BRINGS_TO_HOST and _is_timed(facts)):
                yield found


def discarded_conversions(facts: Facts) -> list[Any]:
    """Return the live tensors whose conversion is lost, the elements of what is looped over among them."""
    values = []
    for found in discarded(facts):
        values += [found.value] if found.value is not MISSING else []
        values += _elements(facts, found.receiver, found.step)
    return values


def start_of_chain(call: ast.Call) -> ast.expr:
    """Return what a chain of conversions starts from: `x` of `x.float().to(device)`."""
    receiver: ast.expr = call
    while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute) and _is_conversion(receiver):
        receiver = receiver.func.value
    return receiver


def _lost(step: Step) -> Iterator[tuple[ast.Call, str]]:
    """Yield the conversions in a statement whose result nobody gets, each with the name it is bound to."""
    for call in conversions_that_stand_alone(step):
        if _is_conversion(call):
            yield call, ""
    for target, part in _bindings(step.node):
        if isinstance(part, ast.Call) and _is_conversion(part) and bare_name(part.func) not in _BRINGS_TO_HOST:
            start = start_of_chain(part)
            same = isinstance(target, ast.Name) and isinstance(start, ast.Name) and start.id == target.id
            if same and is_bound_for_nothing(step, start.id):  # type: ignore[attr-defined]
                yield part, start.id  # type: ignore[attr-defined]


def _bindings(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """Return the targets and values of an assignment, those of `x, y = a, b` in pairs."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        return list(zip(target.elts, value.elts, strict=True))
    return [(target, value)]


def _line(facts: Facts, step: Step) -> int | None:
    """Return the line of a statement of the cell, or of the cell's statement that runs it."""
    if step.scope.unit.is_cell:
        return step.line
    contexts = facts.program.contexts(step) if facts.program is not None else []
    return next((context.line for context in contexts if context.line is not None), None)


def _is_conversion(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in CONVERSIONS


def _is_tensor(facts: Facts, receiver: ast.expr, step: Step) -> bool:
    """Tell whether a path is a tensor: by its live value, by a test around the statement, by what the text says."""
    return is_guarded_as_tensor(step, ast.unparse(receiver)) or kind_of(facts, receiver, step) == "tensor"


def _is_timed(facts: Facts) -> bool:
    """Tell whether the cell reads a clock: bringing a value to the host then waits for the device."""
    return any(facts.program.calls_of(clock) for clock in _CLOCKS) if facts.program is not None else False


def _spellings(facts: Facts, receiver: ast.expr, step: Step) -> list[Ref]:
    """Return the paths of the cell's variables that the receiver stands for, where they lead to tensors."""
    ref = ref_of(receiver)
    if ref is None or facts.program is None:
        return []
    found = facts.program.spellings(ref, step.scope)
    return [spelling for spelling in found if kind_of_value(facts.value(spelling)) == "tensor"]


def _subject(facts: Facts, receiver: ast.expr, step: Step) -> str:
    spellings = _spellings(facts, receiver, step)
    ref = spellings[0] if spellings else ref_of(receiver)
    if ref is None:
        return ast.unparse(receiver)
    computed = next((i for i, (_, key) in enumerate(ref.steps) if key is ANY), None)
    return str(Ref(ref.root, ref.steps[:computed]))  # of `batch[key]`, the subject is `batch`


def _value(facts: Facts, receiver: ast.expr, step: Step) -> Any:
    value = live_value(facts, receiver, step)
    if kind_of_value(value) == "tensor":
        return value
    spellings = _spellings(facts, receiver, step)
    return facts.value(spellings[0]) if spellings else MISSING


def _elements(facts: Facts, receiver: ast.expr, step: Step) -> Iterator[Any]:
    """Yield the live tensors that a loop draws for a name, where what it loops over has a name in the cell."""
    if not isinstance(receiver, ast.Name) or facts.program is None:
        return
    for loop in step.loops:
        if not isinstance(loop, (ast.For, ast.AsyncFor)):
            continue
        ref = ref_of(drawn_from(loop.iter, loop.target, receiver.id)[0])
        if not any(isinstance(part, ast.Name) and part.id == receiver.id for part in ast.walk(loop.target)):
            continue
        for spelling in facts.program.spellings(ref, step.scope) if ref is not None else ():
            yield from (e for e in elements_of(facts.value(spelling)) if kind_of_value(e) == "tensor")
