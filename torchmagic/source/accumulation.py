"""Which writes carry a value from one step of a loop to the next: running sums, growing lists, recurrent state."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchmagic.source.calls import Context, argument_node
from torchmagic.source.gathering import comprehension_in, summed_in
from torchmagic.source.program import Program
from torchmagic.source.recurrence import Recurrence, Shape, compared_part
from torchmagic.source.refs import ANY, Steps, read_names
from torchmagic.source.resets import Resets
from torchmagic.source.scopes import Loop, Scope, Step
from torchmagic.source.writes import Write

_DEEPEST_CALL = 3


@dataclass(frozen=True, eq=False)
class Accumulation:
    """A write that carries a value over `loops`, outermost first, when it is reached by `context`.

    `part` leads from the target of a write to the value that is compared, where it keeps a whole record of the best.
    """

    write: Write
    shape: Shape
    loops: tuple[Loop, ...]
    context: Context
    of_entry: bool = False
    part: Steps = ()

    @property
    def entry(self) -> tuple[tuple[str, object], ...]:
        """The step from the write's target to what carries the value: none, or the key of the one entry it updates."""
        key = self.write.key
        if self.part:
            return self.part
        return (("item", key.value if isinstance(key, ast.Constant) else ANY),) if self.of_entry else ()


def accumulations(program: Program) -> Iterator[Accumulation]:
    """Yield the accumulating writes, each with the loops over which nothing resets its target."""
    recurrence = Recurrence(program)
    resets = Resets(program, recurrence)
    for write in program.writes:
        shape = recurrence.shape(write)
        if shape is None:
            continue
        for context in program.contexts(write.step, write.node if write.how != ":=" else None):
            loops = context.loops
            gathered = _gathered(write, shape)
            if gathered is not None:
                yield Accumulation(write, shape, (gathered,), context)
                continue
            of_entry = recurrence.updates_entry(write)
            if shape == "container" and write.key is not None and not of_entry:
                loops = tuple(loop for loop in loops if _key_follows(write, loop, program))
            carried = tuple(loop for loop in loops if loop not in resets.loops(write)) if loops else ()
            if carried:
                part = (compared_part(write) or ()) if shape == "best" else ()
                yield Accumulation(write, shape, carried, context, of_entry, part)


def _gathered(write: Write, shape: Shape) -> Loop | None:
    """Return the comprehension that runs through the steps whose values a write keeps or adds up."""
    if write.how != "=" or shape not in ("container", "sum"):
        return None
    return comprehension_in(write.value) if shape == "container" else summed_in(write.value)


def _key_follows(write: Write, loop: Loop, program: Program) -> bool:
    """Tell whether the key of a store changes from one step of the loop to the next."""
    return _follows(write.key, write.step, loop, program, _DEEPEST_CALL)


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
