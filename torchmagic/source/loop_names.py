"""Which names of a loop's target stand for the elements of what is looped over."""

from __future__ import annotations

import ast
from collections.abc import Callable

from torchmagic.source.refs import bare_name


def names_drawn_from(target: ast.expr, values: ast.expr, is_it: Callable[[ast.expr], bool]) -> set[str]:
    """Return the names of a target that are bound to elements of the values that `is_it` tells.

    `zip` and `enumerate` hand their arguments to one place of the target each.
    """
    if not is_it(values):
        return set()
    places = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    function = bare_name(values.func) if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) else ""
    arguments = values.args if isinstance(values, ast.Call) else []
    if function == "enumerate" and len(places) == 2 and arguments:
        return names_drawn_from(places[1], arguments[0], is_it)
    if function == "zip" and len(places) == len(arguments):
        pairs = zip(places, arguments, strict=True)
        return {name for place, part in pairs for name in names_drawn_from(place, part, is_it)}
    return {part.id for part in ast.walk(target) if isinstance(part, ast.Name)}


def drawn_from(target: ast.expr, values: ast.expr, name: str) -> ast.expr:
    """Return what a loop draws a name from: of `for i, (x, y) in enumerate(zip(xs, ys))` one of the arguments."""
    places = target.elts if isinstance(target, (ast.Tuple, ast.List)) else []
    function = bare_name(values.func) if isinstance(values, ast.Call) and isinstance(values.func, ast.Name) else ""
    arguments = values.args if isinstance(values, ast.Call) else []
    places = places[1:] if function == "enumerate" else places if function == "zip" else []
    for place, part in zip(places, arguments, strict=False):
        if any(isinstance(inner, ast.Name) and inner.id == name for inner in ast.walk(place)):
            return drawn_from(place, part, name)
    return values
