"""Values that are gathered in a list and joined into one: `torch.cat(outputs)`, `torch.stack([f(x) for x in xs])`."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from torchmagic.source.refs import bare_name, ref_of

if TYPE_CHECKING:
    from torchmagic.source.program import Program
    from torchmagic.source.writes import Write

_JOINS = frozenset({"cat", "concat", "concatenate", "stack", "hstack", "vstack", "dstack"})

_REDUCES = frozenset({"mean", "sum", "max", "min", "median"})


def joined(value: ast.expr | None) -> ast.expr | None:
    """Return what a call joins, its first argument."""
    if not isinstance(value, ast.Call) or not value.args:
        return None
    return value.args[0] if bare_name(value.func) in _JOINS else None


def comprehension_in(value: ast.expr | None) -> ast.ListComp | ast.DictComp | None:
    """Return the comprehension that an expression is, or that it joins."""
    if isinstance(value, (ast.ListComp, ast.DictComp)):
        return value
    part = joined(value)
    return part if isinstance(part, ast.ListComp) else None


def summed_in(value: ast.expr | None) -> ast.ListComp | ast.GeneratorExp | None:
    """Return the comprehension that an expression adds up: `sum(f(x) for x in xs) / n`, `stack([...]).mean()`."""
    for node in ast.walk(value) if value is not None else ():
        if not isinstance(node, ast.Call):
            continue
        part = node.args[0] if bare_name(node.func) == "sum" and node.args else None
        if isinstance(node.func, ast.Attribute) and node.func.attr in _REDUCES:
            part = joined(node.func.value) or part
        if isinstance(part, (ast.ListComp, ast.GeneratorExp)):
            return part
    return None


def is_joined(write: Write, program: Program) -> bool:
    """Tell whether the list that a write adds to is joined under its own name, or when its function returns it."""
    scope, target = write.step.scope, write.target
    binds = program.binds_of(target.root, scope.owner_of(target.root))
    return any(other.target == target and ref_of(joined(other.value)) == target for other in binds) or any(
        isinstance(step.node, ast.Return) and step.scope is scope and ref_of(joined(step.node.value)) == target
        for step in program.steps
    )
