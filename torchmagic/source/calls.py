"""Where functions are run, in which loops, and with which arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchmagic.source.refs import Ref, bare_name, ref_of
from torchmagic.source.scopes import Loop, Scope, Step

_LAZY = frozenset({"enumerate", "zip", "map", "filter", "iter", "islice", "tqdm"})


@dataclass(frozen=True, eq=False)
class Call:
    """A call, or another expression that runs a function: an item access that runs `__getitem__`, say."""

    node: ast.expr
    step: Step
    receiver: Ref | None = None
    """The path of the object whose method runs."""
    loops: tuple[Loop, ...] = ()
    """What runs the function again and again, beside the loops around the statement: code without a text, say."""
    result: ast.expr | None = None
    """The expression whose value is what the function returns, when `node` itself is not it."""


@dataclass(frozen=True)
class Context:
    """One way in which a statement is reached.

    `steps` are the statements from the cell's top level down to it, `loops` all the loops around them, outermost first.
    """

    steps: tuple[Step, ...]
    loops: tuple[Loop, ...]

    @property
    def line(self) -> int | None:
        """The line of the innermost of these statements that stands in the checked cell."""
        return next((step.line for step in reversed(self.steps) if step.scope.unit.is_cell), None)


def argument_ref(call: Call, scope: Scope, parameter: str) -> Ref | None:
    """Return the path that a caller hands over for a parameter."""
    node = argument_node(call, scope, parameter)
    if node is None and scope.class_name is not None and scope.parameters[:1] == [parameter]:
        return call.receiver
    return ref_of(node)


def argument_node(call: Call, scope: Scope, parameter: str) -> ast.expr | None:
    """Return the expression that a caller hands over for a parameter."""
    if not isinstance(call.node, ast.Call):
        return None
    for keyword in call.node.keywords:
        if keyword.arg == parameter:
            return keyword.value
    index = scope.parameters.index(parameter) - (1 if scope.class_name is not None else 0)
    return call.node.args[index] if 0 <= index < len(call.node.args) else None


def drawing(call: Call, scope: Scope) -> Iterator[Loop]:
    """Yield the loop that draws from a call of a generator function, step by step."""
    if not scope.yields:
        return
    if isinstance(call.step.node, (ast.For, ast.AsyncFor)) and _draws(call.step.node.iter, call.node):
        yield call.step.node
    for loop in call.step.comprehensions:
        if any(_draws(part.iter, call.node) for part in loop.generators):
            yield loop


def _draws(values: ast.expr, generator: ast.expr) -> bool:
    """Tell whether looping over values draws from a generator, step by step: `enumerate(generator)`."""
    if isinstance(values, ast.Call) and values is not generator and bare_name(values.func) in _LAZY:
        return any(_draws(argument, generator) for argument in values.args)
    return values is generator


def enclosing_comprehensions(step: Step, node: ast.AST | None) -> Iterator[Loop]:
    """Yield the comprehensions of a statement that a node lies in, outermost first."""
    if node is None:
        return
    for comprehension in step.comprehensions:
        inside = any(part is node for part in ast.walk(comprehension) if part is not comprehension)
        if inside and not any(part is node for part in ast.walk(comprehension.generators[0].iter)):
            yield comprehension
