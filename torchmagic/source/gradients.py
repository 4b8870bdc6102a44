"""Where a program takes gradients, and of what."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.source.calls import Call
from torchmagic.source.program import Program
from torchmagic.source.refs import Ref, read_names


def gradient_takers(program: Program) -> Iterator[Call]:
    """Yield the calls that use a graph up: `loss.backward()` in any of its spellings, and `torch.autograd.grad`."""
    for node, step in program.calls_of("backward"):
        yield Call(node, step)
    for node, step in program.calls_of("manual_backward"):
        yield Call(node, step)
    for node, step in program.calls_of("grad"):
        if isinstance(node.func, ast.Attribute) or node.args:
            yield Call(node, step)


def makes_graph(call: Call) -> bool:
    """Tell whether a call that takes gradients records itself for a later one, as MAML's inner step does."""
    keywords = call.node.keywords if isinstance(call.node, ast.Call) else []
    return any(k.arg == "create_graph" and not _is_false(k.value) for k in keywords)


def _is_false(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def depends_on(call: Call, target: Ref, program: Program) -> bool | None:
    """Tell whether what a gradient is taken of is made from `target`; None when the text does not show it."""
    if not isinstance(call.node, ast.Call):
        return None
    function = call.node.func
    names = set().union(*(read_names(argument) for argument in call.node.args))
    if isinstance(function, ast.Attribute):
        names |= read_names(function.value)
    scope = call.step.scope
    while True:
        more = set(names)
        for write in program.writes:
            if write.step.scope is scope and write.target.root in names and write.kind in ("bind", "augment", "store"):
                more |= read_names(write.value)
        if more == names:
            break
        names = more
    if target.root in names:
        return True
    return None if scope.parent is not None else False
