"""The statement that ended the cell: the tensors and modules it names, with the values they had then."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking.expressions import follow
from torchmagic.checking.facts import Facts, FailedFrame
from torchmagic.checking.failing_node import running_expression, runs_in
from torchmagic.kinds import TorchKind, kind_of_value
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Ref, Step, ref_of

_ASKS_ONLY = frozenset(
    {
        "size", "dim", "numel", "ndimension", "nelement", "stride", "element_size", "get_device", "item", "tolist",
        "type", "new_zeros", "new_ones", "new_full", "new_empty", "new_tensor", "register_hook", "data_ptr",
        "backward",
    }
)  # fmt: skip
"""Methods after which the values of the tensor itself play no part any more."""

_LAMBDA = "<lambda>"
_TAKEN_OVER = frozenset({"data", "grad"})
"""Attributes of a tensor that take only what fits to it."""

_INNER_ROLES = ("group", "state", "closure", "self", "grad")
"""Places that are somebody's insides: nobody calls what lies there by such a path."""

_CONVERTS = frozenset({"to", "cuda", "cpu", "xpu", "type", "type_as"})


@dataclass(frozen=True, eq=False)
class Operand:
    """A path in the failing statement and what it named.

    `node` is the path as it stands in the text; `index` tells that it only selects from another tensor; `called` that
    it is a module being called; `converted` that the text moves it or changes its type first; `within` that it only
    lies in what `node` names.
    """

    node: ast.expr
    ref: Ref
    value: Any
    kind: TorchKind
    index: bool = False
    called: bool = False
    converted: bool = False
    within: bool = False


@dataclass(frozen=True, eq=False)
class FailingLine:
    """One frame of the error: the statement, and the operands in the order of evaluation of the text."""

    frame: FailedFrame
    step: Step
    operands: tuple[Operand, ...]

    @property
    def is_top_level(self) -> bool:
        """Whether the statement stands in the cell itself, outside of every function."""
        return isinstance(self.step.scope.node, ast.Module)

    def operands_running(self, facts: Facts) -> tuple[Operand, ...]:
        """Return the operands of the expression that was running; all of the statement's where Python does not tell."""
        expression = running_expression(facts, self.frame, self.step)
        if expression is None or isinstance(getattr(expression, "ctx", None), ast.Store):
            return self.operands
        inside = {id(node) for node in ast.walk(expression)}
        return tuple(operand for operand in self.operands if id(operand.node) in inside)


def failing_lines(facts: Facts) -> list[FailingLine]:
    """Return the failing statements, that of the innermost user's frame first."""
    lines = []
    for frame in reversed(facts.failed_frames):
        step = _step_at(facts, frame)
        if step is not None:
            lines.append(FailingLine(frame, step, tuple(operands(facts, step, frame))))
    return lines


def line_in_cell(facts: Facts, line: FailingLine) -> int | None:
    """Return the line of the statement, or of the cell's statement that led to it."""
    if line.frame.is_cell:
        return line.frame.line
    return next((frame.line for frame in reversed(facts.failed_frames) if frame.is_cell), None)


def has_name(facts: Facts, line: FailingLine, operand: Operand) -> bool:
    """Tell whether the top level of the notebook has a name for an operand, be it of a function's frame."""
    return line.is_top_level or bool(top_level_name(facts, operand.value))


def name_of(facts: Facts, line: FailingLine, operand: Operand) -> str:
    """Name an operand as the top level of the notebook knows it, else as the statement does."""
    return (not line.is_top_level and top_level_name(facts, operand.value)) or str(operand.ref)


def top_level_name(facts: Facts, value: object) -> str:
    """Return the path by which the top level of the notebook knows an object; empty when it has no name there."""
    seen = facts.found.find(value)
    return seen.subject if seen is not None and seen.places[0].role not in _INNER_ROLES else ""


def _step_at(facts: Facts, frame: FailedFrame) -> Step | None:
    """Find the smallest statement around the frame's line; a function's statements come before those around it."""
    around = [
        step
        for step in (facts.program.steps if facts.program is not None else ())
        if step.scope.unit.source.filename == frame.filename
        and step.line <= frame.line <= (step.node.end_lineno or step.line)
        and not isinstance(step.node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    ]
    if len(around) > 1:  # several statements may stand on one line
        around = [step for step in around if runs_in(facts, frame, step.node)] or around
    return min(around, key=lambda step: (step.node.end_lineno or step.line) - step.line, default=None)


def operands(facts: Facts, step: Step, frame: FailedFrame | None = None) -> Iterator[Operand]:
    """Yield the tensors and modules that a statement computes with.

    Args:
        facts: the facts of the look.
        step: the statement.
        frame: where its names have their values; without one they are the variables as they are now.
    """
    if frame is not None and frame.function == _LAMBDA:
        for node in ast.walk(step.node):
            if isinstance(node, ast.Lambda) and node.lineno <= frame.line <= (node.end_lineno or node.lineno):
                yield from _operands_in(facts, node.body, frame, index=False)
        return
    for own in step.own_expressions():
        yield from _operands_in(facts, own, frame, index=False)
    for target in step.node.targets if isinstance(step.node, ast.Assign) else ():
        if isinstance(target, ast.Attribute) and target.attr in _TAKEN_OVER:
            yield from _operands_in(facts, target.value, frame, index=False)


def _operands_in(facts: Facts, node: ast.AST, frame: FailedFrame | None, *, index: bool) -> Iterator[Operand]:
    if isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del)):
        return
    ref = ref_of(node) if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) else None
    if ref is not None and isinstance(node, ast.expr):
        ref, value = _whole_tensor(facts, ref, frame)
        kind = kind_of_value(value)
        if kind in ("tensor", "module"):
            yield Operand(node, ref, value, kind, index=index)
        for part in ast.walk(node):
            if isinstance(part, ast.Subscript):
                yield from _operands_in(facts, part.slice, frame, index=True)
    elif isinstance(node, ast.Call):
        yield from _operands_of_call(facts, node, frame, index=index)
    elif isinstance(node, ast.Subscript):
        yield from _operands_in(facts, node.value, frame, index=index)
        yield from _operands_in(facts, node.slice, frame, index=True)
    elif not _asks_identity(node):
        for child in ast.iter_child_nodes(node):
            yield from _operands_in(facts, child, frame, index=index)


def _operands_of_call(facts: Facts, call: ast.Call, frame: FailedFrame | None, *, index: bool) -> Iterator[Operand]:
    function = call.func
    ref = ref_of(function)
    value = value_at(facts, ref, frame) if ref is not None else MISSING
    if ref is not None and kind_of_value(value) == "module":
        yield Operand(function, ref, value, "module", called=True)
    elif isinstance(function, ast.Attribute) and function.attr in _CONVERTS:
        for operand in _operands_in(facts, function.value, frame, index=index):
            yield Operand(operand.node, operand.ref, operand.value, operand.kind, index, operand.called, converted=True)
        return
    elif isinstance(function, ast.Attribute) and function.attr not in _ASKS_ONLY:
        for operand in _operands_in(facts, function.value, frame, index=index):
            if operand.kind == "tensor" or operand.node is not function.value:
                yield operand
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        yield from _operands_in(facts, argument, frame, index=index)


def _asks_identity(node: ast.AST) -> bool:
    return isinstance(node, ast.Lambda) or (
        isinstance(node, ast.Compare) and all(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops)
    )


def _whole_tensor(facts: Facts, ref: Ref, frame: FailedFrame | None) -> tuple[Ref, Any]:
    """Follow a path, and of a part or another view of a tensor, `x[0].T`, return the tensor itself."""
    value = value_at(facts, ref, frame)
    while ref.steps and kind_of_value(value) == "tensor":
        shorter = Ref(ref.root, ref.steps[:-1])
        holder = value_at(facts, shorter, frame)
        if kind_of_value(holder) != "tensor" or ref.steps[-1] == ("attr", "grad"):
            break
        ref, value = shorter, holder
    return ref, value


def value_at(facts: Facts, ref: Ref, frame: FailedFrame | None) -> Any:
    """Return what a path leads to in a frame, or at the top level for names the frame has not; else MISSING."""
    start = frame.variables.get(ref.root, MISSING) if frame is not None else MISSING
    if start is MISSING:
        start = facts.found.names.get(ref.root, MISSING)
    return follow(start, ref.steps)
