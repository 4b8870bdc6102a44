"""A tensor that is shifted inside itself, so that part of the copy reads what the copy has just written."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from torchmagic.checking import Facts
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.namespace.resolve import MISSING
from torchmagic.sharing.holders import covers
from torchmagic.sharing.verdict import Sharing
from torchmagic.source import Program, Ref, Step, ref_of
from torchmagic.source.calls import argument_node
from torchmagic.source.edits import add_after
from torchmagic.source.memory_paths import last_bind, memory_paths


@dataclass(frozen=True)
class Shift:
    """A statement `x[target] = x[source]`, or `x[target].copy_(x[source])`."""

    step: Step
    base: Ref
    target: ast.expr
    source: ast.expr
    value: ast.expr


def shifts(program: Program) -> Iterator[Shift]:
    """Yield the statements of the cell that copy one part of something to another part of it."""
    for step in program.steps:
        if step.scope.unit.is_cell:
            for target, value in _copies(step.node):
                one, other = _part(program, target, step), _part(program, value, step)
                if one is not None and other is not None and one.base == other.base:
                    yield Shift(step, one.base, one.taken, other.taken, value)


def _copies(node: ast.stmt) -> Iterator[tuple[ast.expr, ast.expr]]:
    if isinstance(node, ast.Assign):
        yield from ((target, node.value) for target in node.targets if isinstance(target, ast.Subscript))
    elif isinstance(node, ast.AugAssign):
        yield node.target, node.value
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and isinstance(node.value.func, ast.Attribute):
        function = node.value.func
        if function.attr in ("copy_", "add_", "sub_", "mul_"):
            yield from ((function.value, argument) for argument in node.value.args[:1])


class _Part(NamedTuple):
    base: Ref
    taken: ast.expr


def _part(program: Program, node: ast.expr, step: Step) -> _Part | None:
    """Return what an expression takes a part of, and which; also when a variable stands for the part."""
    if isinstance(node, ast.Subscript):
        base = ref_of(node.value)
        return None if base is None else _Part(base, node.slice)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "narrow":
        base, index = ref_of(node.func.value), _narrowed(node)
        return None if base is None or index is None else _Part(base, index)
    if isinstance(node, ast.Name):
        bound = last_bind(program, node.id, step.scope.owner_of(node.id), step)
        if bound is None or bound.how not in ("=", ":=") or bound.position is not None:
            return None
        if bound.value is not None and not isinstance(bound.value, ast.Name):
            part = _part(program, bound.value, bound.step)
            return part if part is not None and not _is_rebound(program, part.base.root, bound.step, step) else None
    return None


def _is_rebound(program: Program, name: str, since: Step, step: Step) -> bool:
    """Tell whether a name stands for another value at a statement than at an earlier one, which may bind it itself."""
    owner = since.scope.owner_of(name)
    return last_bind(program, name, owner, since) is not last_bind(program, name, owner, step)


def _narrowed(call: ast.Call) -> ast.expr | None:
    """Return `x.narrow(1, start, length)` as the index `:, start : start + length`."""
    if len(call.args) != 3 or not isinstance(call.args[0], ast.Constant) or type(call.args[0].value) is not int:
        return None
    dimension, (_, start, length) = call.args[0].value, call.args
    if dimension < 0:
        return None
    before: list[ast.expr] = [ast.Slice()] * dimension
    return ast.Tuple([*before, ast.Slice(start, ast.BinOp(start, ast.Add(), length))], ast.Load())


def judge_shift(facts: Facts, program: Program, shift: Shift) -> Iterator[Sharing]:
    """Yield a verdict when the two parts of the live tensor overlap without being the same."""
    seen = _tensor(facts, program, shift)
    if seen is None:
        return
    shape = tuple(int(n) for n in seen.obj.shape)
    evaluate = _Numbers(facts, program, shift.step)
    target, source = (_ranges(part, shape, evaluate) for part in (shift.target, shift.source))
    if target is not None and source is not None and len(target) == len(source):
        number = math.prod(_count_common(a, b) for a, b in zip(target, source, strict=True))
        if target == source or not number:
            return
        said = f"have {number} elements in common"
    elif _is_shift(shift.target, shift.source):
        number, said = None, "overlap"
    else:
        return
    subject = seen.subject
    fix = add_after(shift.step.scope.unit.source, shift.step.line, [(shift.value, ".clone()")])
    yield Sharing(
        subject=subject,
        message=f"`{subject}`: line {shift.step.line} copies a part of it onto another part; the parts {said}, "
        "so elements are written before they are read; clone the source",
        line=shift.step.line,
        others=(subject,),
        level="error" if facts.error is not None and "single memory location" in str(facts.error) else "warning",
        fix=Fix(fix) if fix is not None else None,
        evidence={"common_elements": number} if number is not None else {},
    )


def _tensor(facts: Facts, program: Program, shift: Shift) -> Seen | None:
    """Return the live tensor, by its own path or by that of what a function was given."""
    live = facts.value(shift.base, shift.step.scope)
    seen = facts.found.find(live) if live is not MISSING else None
    if seen is None:
        paths = memory_paths(program, shift.base, shift.step)
        known = facts.found.of_kind("tensor")
        seen = next((s for s in known for place in s.places if any(covers(ref, place) == 0 for ref in paths)), None)
    return seen if seen is not None and seen.kind == "tensor" else None


def _is_shift(target: ast.expr, source: ast.expr) -> bool:
    """Tell whether one index is `n:` where the other is `:-n`, whatever n is, and otherwise the same."""
    one = list(target.elts) if isinstance(target, ast.Tuple) else [target]
    other = list(source.elts) if isinstance(source, ast.Tuple) else [source]
    if len(one) != len(other):
        return False
    differing = [(a, b) for a, b in zip(one, other, strict=True) if ast.unparse(a) != ast.unparse(b)]
    return len(differing) == 1 and (_shifted(*differing[0]) or _shifted(*reversed(differing[0])))


def _shifted(front: ast.expr, back: ast.expr) -> bool:
    if not isinstance(front, ast.Slice) or not isinstance(back, ast.Slice):
        return False
    if front.lower is None or back.upper is None or front.upper or back.lower or front.step or back.step:
        return False
    negated = (
        back.upper.operand if isinstance(back.upper, ast.UnaryOp) and isinstance(back.upper.op, ast.USub) else None
    )
    return negated is not None and ast.unparse(negated) == ast.unparse(front.lower)


def _count_common(one: range, other: range) -> int:
    if abs(one.step) == 1 and abs(other.step) == 1:
        return max(0, min(one.stop, other.stop) - max(one.start, other.start))
    return len(set(one) & set(other))


def _ranges(index: ast.expr, shape: tuple[int, ...], evaluate: _Numbers) -> list[range] | None:
    """Return the elements that an index takes along each dimension; None when it is not made of slices and numbers."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    dots = [i for i, part in enumerate(parts) if isinstance(part, ast.Constant) and part.value is Ellipsis]
    if len(dots) > 1 or len(parts) - len(dots) > len(shape):
        return None
    if dots:
        fill: list[ast.expr] = [ast.Slice()] * (len(shape) - len(parts) + 1)
        parts = [*parts[: dots[0]], *fill, *parts[dots[0] + 1 :]]
    parts += [ast.Slice()] * (len(shape) - len(parts))
    found = []
    for part, size in zip(parts, shape, strict=True):
        if isinstance(part, ast.Slice):
            bounds = [evaluate(bound) if bound is not None else None for bound in (part.lower, part.upper, part.step)]
            given = (part.lower, part.upper, part.step)
            if any(node is not None and number is None for node, number in zip(given, bounds, strict=True)):
                return None
            if bounds[2] is not None and bounds[2] <= 0:
                return None
            found.append(range(*slice(*bounds).indices(size)))
        else:
            number = evaluate(part)
            if number is None or not -size <= number < size:
                return None
            found.append(range(number % size, number % size + 1))
    return found


class _Numbers:
    """Work out whole numbers in a statement from constants, live values and shapes; None where that is not possible."""

    def __init__(self, facts: Facts, program: Program, step: Step, depth: int = 5) -> None:
        self.facts, self.program, self.step, self.depth = facts, program, step, depth

    def __call__(self, node: ast.expr | None) -> int | None:
        if isinstance(node, ast.Constant):
            return node.value if type(node.value) is int else None
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.BinOp):
            return _apply(node.op, self(node.left), self(node.right))
        if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute) and node.value.attr == "shape":
            return self._size(node.value.value, self(node.slice))
        if isinstance(node, ast.Call):
            if isinstance(node.func, ast.Attribute) and node.func.attr == "size" and node.args:
                return self._size(node.func.value, self(node.args[0]))
            if isinstance(node.func, ast.Name) and node.func.id == "len" and node.args:
                return self._size(node.args[0], 0)
            return None
        return self._path(node)

    def _path(self, node: ast.expr | None) -> int | None:
        ref = ref_of(node)
        if ref is None:
            return None
        value = self.facts.value(ref, self.step.scope)
        if value is not MISSING:
            return value if type(value) is int and not self._is_loop_variable(ref) else None
        if ref.steps or not self.depth:
            return None
        owner = self.step.scope.owner_of(ref.root)
        bound = last_bind(self.program, ref.root, owner, self.step)
        if bound is not None:
            inner = _Numbers(self.facts, self.program, bound.step, self.depth - 1)
            return inner(bound.value) if bound.how == "=" and bound.position is None else None
        if ref.root not in owner.parameters:
            return None
        numbers = {
            _Numbers(self.facts, self.program, call.step, self.depth - 1)(argument_node(call, owner, ref.root))
            for call in self.program.callers(owner)
        }
        return numbers.pop() if len(numbers) == 1 else None

    def _is_loop_variable(self, ref: Ref) -> bool:
        owner = self.step.scope.owner_of(ref.root)
        return any(write.how == "for" for write in self.program.binds_of(ref.root, owner))

    def _size(self, node: ast.expr, dimension: int | None) -> int | None:
        ref = ref_of(node)
        torch = sys.modules["torch"]
        value: Any = self.facts.value(ref, self.step.scope) if ref is not None else MISSING
        if value is MISSING or dimension is None or not issubclass(type(value), torch.Tensor):
            return None
        return int(value.shape[dimension]) if -value.dim() <= dimension < value.dim() else None


def _apply(operator: ast.operator, left: int | None, right: int | None) -> int | None:
    if left is None or right is None:
        return None
    if isinstance(operator, ast.Add):
        return left + right
    if isinstance(operator, ast.Sub):
        return left - right
    if isinstance(operator, ast.Mult):
        return left * right
    return left // right if isinstance(operator, ast.FloorDiv) and right else None
