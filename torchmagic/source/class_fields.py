"""What the constructor of a class without one of its own is given, field by field: a dataclass, a named tuple."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.source.program import Program
from torchmagic.source.refs import bare_name


def constructed(program: Program, call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Yield the fields that a call of a class of the program sets, each with the expression of its value."""
    fields = list(_fields(program, bare_name(call.func), set())) if isinstance(call.func, ast.Name) else []
    given = dict(zip((name for name, _ in fields), call.args, strict=False))
    given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    for name, default in fields:
        value = given.get(name, default)
        if value is not None:
            yield name, value


def _fields(program: Program, name: str, known: set[str]) -> Iterator[tuple[str, ast.expr | None]]:
    """Yield the annotated names of a class and of its bases in the program, with their defaults."""
    for step in program.steps:
        if isinstance(step.node, ast.ClassDef) and step.node.name == name and name not in known:
            for base in step.node.bases:
                yield from _fields(program, bare_name(base), known | {name})
            for node in step.node.body:
                if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                    yield node.target.id, _default(node.value)
            return


def _default(value: ast.expr | None) -> ast.expr | None:
    """Return the default of a field: of `field(default_factory=lambda: [])` the list."""
    if not isinstance(value, ast.Call) or bare_name(value.func) != "field":
        return value
    for keyword in value.keywords:
        if keyword.arg == "default":
            return keyword.value
        if keyword.arg == "default_factory" and isinstance(keyword.value, ast.Lambda):
            return keyword.value.body
    return None
