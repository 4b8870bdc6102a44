"""Paths as they are written: `self.history["loss"]` as a root name and steps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final


class _Any:
    """Stands for an index that is computed."""

    def __repr__(self) -> str:
        return "*"


ANY: Final = _Any()

Steps = tuple[tuple[str, Any], ...]
"""What follows the root of a path: `("attr", name)` and `("item", key)`."""


@dataclass(frozen=True)
class Ref:
    """A written path: the root name, then steps `("attr", name)` and `("item", key)`; a computed key is ANY."""

    root: str
    steps: Steps = ()

    def __add__(self, steps: Steps) -> Ref:
        return Ref(self.root, self.steps + steps)

    def item(self, key: Any) -> Ref:
        """Return the path of the element at `key`."""
        return Ref(self.root, (*self.steps, ("item", key)))

    @property
    def last_name(self) -> str:
        """The last attribute name of the path, or the root."""
        return next((key for kind, key in reversed(self.steps) if kind == "attr"), self.root)

    def __str__(self) -> str:
        parts = [self.root]
        for kind, key in self.steps:
            parts.append(f".{key}" if kind == "attr" else f"[{key!r}]")
        return "".join(parts)


def ref_of(node: ast.AST | None) -> Ref | None:
    """Return the path a node spells, or None when it is not a plain path."""
    steps: list[tuple[str, Any]] = []
    while True:
        if isinstance(node, ast.Attribute):
            steps.append(("attr", node.attr))
            node = node.value
        elif isinstance(node, ast.Subscript):
            steps.append(("item", _constant(node.slice)))
            node = node.value
        elif isinstance(node, (ast.Starred, ast.NamedExpr)):
            node = node.value if isinstance(node, ast.Starred) else node.target
        else:
            break
    return Ref(node.id, tuple(reversed(steps))) if isinstance(node, ast.Name) else None


def _constant(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return -value if isinstance(value, int) else ANY
    return ANY


def reads(node: ast.AST | None) -> Iterator[Ref]:
    """Yield every path that an expression reads, the longest spelling of each."""
    if node is None:
        return
    stack = [node]
    while stack:
        part = stack.pop()
        ref = ref_of(part) if isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) else None
        if ref is not None:
            yield ref
            stack.extend(child.slice for child in ast.walk(part) if isinstance(child, ast.Subscript))
        else:
            stack.extend(ast.iter_child_nodes(part))


def bare_name(node: ast.AST | None) -> str:
    """Return the last name that an expression spells, such as that of a called function; else nothing."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def read_names(node: ast.AST | None) -> set[str]:
    """Return the root names that an expression reads."""
    if node is None:
        return set()
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)}
