"""Which writes carry a value from one step of a loop to the next: running sums, growing lists, recurrent state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from torchmagic.source.program import Context, Program, argument_node
from torchmagic.source.refs import Ref, read_names, reads
from torchmagic.source.scopes import Loop, Scope, Step
from torchmagic.source.writes import Write

Shape = Literal["sum", "container", "state", "best"]
"""`sum`: arithmetic with its own last value. `container`: a list or dict that grows. `state`: a call that is handed the
last value. `best`: kept when a comparison with the last value says so."""

_OVERWRITING = frozenset({"update"})
_DETACHING = ("detach", "data", "item", "numpy", "tolist", "detach_")
_DEEPEST_ALIAS = 3


@dataclass(frozen=True, eq=False)
class Accumulation:
    """A write that carries a value over `loops`, outermost first, when it is reached by `context`."""

    write: Write
    shape: Shape
    loops: tuple[Loop, ...]
    context: Context


def accumulations(program: Program) -> Iterator[Accumulation]:
    """Yield the accumulating writes, each with the loops over which nothing resets its target."""
    for write in program.writes:
        shape = _shape(write, program)
        if shape is None:
            continue
        for context in program.contexts(write.step, write.node if write.how != ":=" else None):
            loops = context.loops
            if write.how == "=" and isinstance(write.value, (ast.ListComp, ast.DictComp)) and shape == "container":
                yield Accumulation(write, shape, (write.value,), context)
                continue
            if shape == "container" and write.key is not None:
                loops = tuple(loop for loop in loops if _key_follows(write, loop, program))
            resets = _resetting_loops(write, program)
            carried = tuple(loop for loop in loops if loop not in resets)
            if carried:
                yield Accumulation(write, shape, carried, context)


def _shape(write: Write, program: Program) -> Shape | None:
    value = write.value
    if value is None:
        return None
    if write.kind == "augment":
        return "container" if isinstance(value, (ast.List, ast.Tuple, ast.ListComp)) else "sum"
    if write.kind == "store":
        return None if write.how in _OVERWRITING else "container"
    if write.kind != "bind" or write.how != "=":
        return None
    if isinstance(value, (ast.ListComp, ast.DictComp)) and write.position is None:
        return "container"
    if _is_compared(write):
        return "best"
    if _cycle(write, program) is None:
        return None
    return _self_reading_shape(write, value)


def _self_reading_shape(write: Write, value: ast.expr) -> Shape:
    """Tell arithmetic with the last value from a call that is handed it."""
    if isinstance(value, ast.Call) and isinstance(value.func, (ast.Name, ast.Attribute)):
        name = value.func.id if isinstance(value.func, ast.Name) else value.func.attr
        if name in ("min", "max", "minimum", "maximum"):
            return "best"
    for node in ast.walk(value):
        if isinstance(node, ast.BinOp) and any(_same(side, write.target) for side in _operands(node)):
            listed = any(isinstance(side, (ast.List, ast.ListComp)) for side in _operands(node))
            return "container" if listed else "sum"
    return "state"


def _operands(node: ast.BinOp) -> list[ast.expr]:
    """Return the operands of nested arithmetic: `a * t + b` has `a`, `t` and `b`."""
    found: list[ast.expr] = []
    for side in (node.left, node.right):
        found += _operands(side) if isinstance(side, ast.BinOp) else [side]
    return found


def _same(node: ast.expr, ref: Ref) -> bool:
    return any(read == ref for read in reads(node)) and not isinstance(node, ast.Call)


def _is_compared(write: Write) -> bool:
    """Tell whether the write stands under a comparison of its own target's size: `if loss < best: best = loss`."""
    return any(
        isinstance(node, ast.Compare)
        and any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in node.ops)
        and any(read == write.target for read in reads(node))
        for test in write.step.tests
        for node in ast.walk(test)
    )


def _cycle(write: Write, program: Program) -> set[str] | None:
    """Return the names through which the new value is made from the last one: none when it reads itself directly.

    None when it is not made from itself. The names are those bound in the same loop.
    """
    waiting: list[tuple[ast.expr, tuple[str, ...]]] = [] if write.value is None else [(write.value, ())]
    for _ in range(_DEEPEST_ALIAS):
        following: list[tuple[ast.expr, tuple[str, ...]]] = []
        for expression, through in waiting:
            for read in reads(expression):
                if read == write.target or (read.root == write.target.root and not write.target.steps):
                    return set(through)
                if write.step.loops and read.root not in through:
                    following += [(value, (*through, read.root)) for value in _bound_in(read.root, write, program)]
        waiting = following
    return None


def _bound_in(name: str, write: Write, program: Program) -> list[ast.expr]:
    return [
        other.value
        for other in program.writes
        if other.step.scope is write.step.scope
        and other.kind == "bind"
        and other.how == "="
        and other.target == Ref(name)
        and other.value is not None
        and other.step.loops[-1:] == write.step.loops[-1:]
    ]


def _resetting_loops(write: Write, program: Program) -> set[Loop]:
    """Return the loops in which something gives the target a fresh value, or takes its history away.

    Where a value is made from its last one by way of other names, a fresh value of those cuts the history too.
    """
    between = _cycle(write, program) if write.kind == "bind" else None
    scope = write.step.scope
    spelled = program.spellings(write.target, scope)
    loops = _resets(write.target, spelled, write, program)
    for name in between or ():
        loops |= _resets(Ref(name), program.spellings(Ref(name), scope), write, program)
    return loops


def _resets(target: Ref, spelled: list[Ref], write: Write, program: Program) -> set[Loop]:
    loops: set[Loop] = set()
    for other in program.writes:
        if other is write or not _may_reset(other, program):
            continue
        others = program.spellings(other.target, other.step.scope)
        local = other.step.scope is write.step.scope and _is_prefix(other.target, target)
        if local or any(_is_prefix(reset, known) for reset in others for known in spelled):
            for context in program.contexts(other.step):
                loops.update(context.loops)
            if other.how == "for" and isinstance(other.step.node, (ast.For, ast.AsyncFor)):
                loops.add(other.step.node)
    return loops


def _may_reset(other: Write, program: Program) -> bool:
    if other.kind == "clear":
        return True
    if other.kind == "inplace":
        return other.how in ("detach_", "zero_")
    if other.kind != "bind":
        return False
    if other.value is not None and detaches(other.value, program):
        return True
    return _shape(other, program) not in ("sum", "state", "best") or other.how == "for"


def detaches(value: ast.expr, program: Program) -> bool:
    """Tell whether an expression takes history away itself, or by a function of the program that does."""
    if any(isinstance(node, ast.Attribute) and node.attr in _DETACHING for node in ast.walk(value)):
        return True
    called = {
        node.func.id if isinstance(node.func, ast.Name) else node.func.attr
        for node in ast.walk(value)
        if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
    }
    return any(
        scope.name in called
        and any(
            isinstance(node, ast.Attribute) and node.attr in ("detach", "data", "detach_")
            for node in ast.walk(scope.node)
        )
        for scope in program.scopes
        if scope.name and not scope.name.startswith("__") and scope.name != "forward"
    )


def _is_prefix(shorter: Ref, longer: Ref) -> bool:
    return shorter.root == longer.root and longer.steps[: len(shorter.steps)] == shorter.steps


def _key_follows(write: Write, loop: Loop, program: Program) -> bool:
    """Tell whether the key of a store changes from one step of the loop to the next."""
    return _follows(write.key, write.step, loop, program, _DEEPEST_ALIAS)


def _follows(node: ast.expr | None, step: Step, loop: Loop, program: Program, depth: int) -> bool:
    names = read_names(node)
    if names & _bound_by_loop(loop):
        return True
    if not depth:
        return False
    scope: Scope = step.scope
    for name in names & set(scope.parameters):
        for call in program.callers(scope):
            if _follows(argument_node(call, scope, name), call.step, loop, program, depth - 1):
                return True
    return False


def _bound_by_loop(loop: Loop) -> set[str]:
    """Return the names that a loop binds anew in each step, without those that an inner loop runs through again."""
    if not isinstance(loop, (ast.For, ast.AsyncFor, ast.While)):
        return {name for generator in loop.generators for name in read_names(generator.target)}
    names = read_names(loop.target) if not isinstance(loop, ast.While) else set()
    waiting: list[tuple[ast.AST, bool]] = [(node, False) for node in loop.body]
    while waiting:
        node, nested = waiting.pop()
        if isinstance(node, ast.AugAssign):
            names |= read_names(node.target)
        elif not nested and isinstance(node, ast.Assign):
            names |= set().union(*(read_names(target) for target in node.targets))
        nested = nested or isinstance(node, (ast.For, ast.AsyncFor, ast.While))
        waiting += [(child, nested) for child in ast.iter_child_nodes(node)]
    return names
