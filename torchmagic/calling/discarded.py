"""Statements that are nothing but a conversion of a tensor, whose result is therefore lost."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.checking.facts import Facts
from torchmagic.kinds import kind_of_value
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import ANY, Ref, Step, ref_of

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
    """The statement, the outermost conversion, and the path at the start of the chain with its live value."""

    step: Step
    call: ast.Call
    receiver: ast.expr
    subject: str
    value: Any

    @property
    def method(self) -> str:
        """The outermost conversion."""
        return self.call.func.attr if isinstance(self.call.func, ast.Attribute) else ""


def discarded(facts: Facts) -> Iterator[Discarded]:
    """Yield the conversions of tensors that stand alone in the cell's text."""
    for step in facts.program.steps if facts.program is not None else ():
        call = step.node.value if isinstance(step.node, ast.Expr) else None
        if not step.scope.unit.is_cell or not isinstance(call, ast.Call) or not _is_conversion(call):
            continue
        receiver: ast.expr = call
        while isinstance(receiver, ast.Call) and isinstance(receiver.func, ast.Attribute) and _is_conversion(receiver):
            receiver = receiver.func.value
        if ref_of(receiver) is None or kind_of(facts, receiver, step) != "tensor":
            continue
        found = Discarded(step, call, receiver, _subject(facts, receiver, step), _value(facts, receiver, step))
        if not (found.method in _BRINGS_TO_HOST and _is_timed(facts)):
            yield found


def discarded_conversions(facts: Facts) -> list[Any]:
    """Return the live tensors whose conversion is lost."""
    return [found.value for found in discarded(facts) if found.value is not MISSING]


def _is_conversion(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Attribute) and call.func.attr in CONVERSIONS


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
