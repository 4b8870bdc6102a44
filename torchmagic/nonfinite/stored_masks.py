"""Infinities that a statement stores to mean "not this one": under a computed index, or through a view."""

from __future__ import annotations

import ast

from torchmagic.source import Program
from torchmagic.source.definitions import Definition
from torchmagic.source.hazards import nonfinite_literal


def is_stored_by_mask(path: list[Definition]) -> bool:
    """Tell whether an infinity was stored under a computed index, `logits[~valid] = -inf`."""
    for definition in path:
        node = definition.step.node if definition.step is not None else None
        if definition.how == "[]=" and isinstance(node, ast.Assign) and nonfinite_literal(node.value) is not None:
            for target in node.targets:
                if isinstance(target, ast.Subscript) and any(isinstance(p, ast.Name) for p in ast.walk(target.slice)):
                    return True
    return False


def is_stored_through_view(program: Program, name: str) -> bool:
    """Tell whether a statement stores an infinity in what a method of a variable shows: `cost.diagonal()[:] = inf`."""
    for step in program.steps:
        node = step.node
        literal = nonfinite_literal(node.value) if isinstance(node, ast.Assign) else None
        if literal is None or "nan" in ast.unparse(literal).lower() or not isinstance(node, ast.Assign):
            continue
        if any(isinstance(target, ast.Subscript) and _viewed(target.value) == name for target in node.targets):
            return True
    return False


def _viewed(node: ast.expr) -> str:
    """Return the variable whose methods are called in a chain, `cost` of `cost.t().view(-1)`; else nothing."""
    if not isinstance(node, ast.Call):
        return ""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node.id if isinstance(node, ast.Name) else ""
