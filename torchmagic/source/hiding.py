"""Operations that leave NaN out of what they return: the forward pass looks right, the backward pass meets it again."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator

from torchmagic.source.definitions import Definition
from torchmagic.source.operations import asks, call_name, leaves_out

_CHOOSES = frozenset({"where", "masked_fill", "masked_select"})
_DEEPEST = 3

Made = Callable[[ast.Name], set[Definition]]
"""Tells by which definitions a name is bound."""


def hides(node: ast.AST, held: set[Definition], made: Made) -> bool:
    """Tell whether an expression that holds `held` leaves out their NaN."""
    if isinstance(node, ast.Call):
        name = call_name(node)
        return leaves_out(name) or (name in _CHOOSES and bool(node.args) and _is_apart(_mask(node), held, made))
    if isinstance(node, ast.Subscript):
        return _is_mask(node.slice, made, _DEEPEST) and _is_apart(node.slice, held, made)
    return False


def _mask(node: ast.Call) -> ast.expr:
    is_function = call_name(node) != "where" and isinstance(node.func, ast.Attribute) and len(node.args) > 1
    of_torch = is_function and isinstance(node.func.value, ast.Name) and node.func.value.id == "torch"  # type: ignore[attr-defined]
    return node.args[1] if of_torch else node.args[0]


def _is_mask(node: ast.expr, made: Made, depth: int) -> bool:
    """Tell whether an index is a mask: a comparison, a negation, a test for NaN, or a name for one."""
    for part in ast.walk(node):
        if isinstance(part, (ast.Compare, ast.Invert)) or (isinstance(part, ast.Call) and _makes_mask(part)):
            return True
        if isinstance(part, ast.Name) and depth:
            values = [d.value for d in made(part) if d.value is not None and d.how == "="]
            if any(_is_mask(value, made, depth - 1) for value in values):
                return True
    return False


def _makes_mask(node: ast.Call) -> bool:
    return asks(call_name(node)) or call_name(node) in ("bool", "logical_not", "logical_and")


def _is_apart(mask: ast.expr, held: set[Definition], made: Made) -> bool:
    """Tell whether a mask asks after NaN, or has nothing to do with the values: `err < 1` is False where err is NaN."""
    if any(isinstance(part, ast.Call) and asks(call_name(part)) for part in _with_names(mask, made, _DEEPEST)):
        return True
    known = {definition for one in held for definition in one.upstream()}
    tests = [part for part in _with_names(mask, made, _DEEPEST) if isinstance(part, ast.Compare)]
    tested = (part for test in tests for part in _with_names(test, made, _DEEPEST) if isinstance(part, ast.Name))
    return not any(made(name) & known for name in tested)


def _with_names(node: ast.expr, made: Made, depth: int) -> Iterator[ast.AST]:
    """Yield the parts of an expression and of those its names are bound to."""
    for part in ast.walk(node):
        yield part
        if isinstance(part, ast.Name) and depth:
            for definition in made(part):
                if definition.value is not None and definition.how == "=":
                    yield from _with_names(definition.value, made, depth - 1)
