"""Where a function hands out a local name, and what its callers bind that to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchmagic.source.calls import Call
from torchmagic.source.gathering import joined
from torchmagic.source.refs import ANY, Ref
from torchmagic.source.writes import writes_of


def returned_positions(value: ast.expr, name: str) -> Iterator[tuple[int | None, tuple[tuple[str, Any], ...]]]:
    """Yield where a returned expression holds a local name: its tuple position, and the keys inside a dict."""
    if _is_named(value, name):
        yield None, ()
    elif isinstance(value, (ast.Tuple, ast.List)):
        for index, element in enumerate(value.elts):
            if _is_named(element, name):
                yield index, ()
    elif isinstance(value, ast.Dict):
        for key, element in zip(value.keys, value.values, strict=True):
            if isinstance(element, ast.Name) and element.id == name:
                yield None, (("item", key.value if isinstance(key, ast.Constant) else ANY),)


def _is_named(value: ast.expr, name: str) -> bool:
    """Tell whether an expression is a name, or a list of that name joined into one value."""
    part = joined(value) or value
    return isinstance(part, ast.Name) and part.id == name


def targets_at(call: Call, position: int | None) -> Iterator[Ref]:
    """Yield what holds the value, or an element of it, that a call returns."""
    for write in writes_of(call.step):
        if write.kind == "bind" and write.value is (call.result or call.node):
            if write.position == position:
                yield write.target
            elif write.position is None and position is not None:
                yield write.target.item(position)


def drawn_into(call: Call, position: int | None) -> Iterator[Ref]:
    """Yield what holds the values that a call of a generator function yields: a loop's variable, or a list of them."""
    for write in writes_of(call.step):
        if write.kind != "bind" or write.value is None:
            continue
        if write.how == "for" and write.value is call.node and write.position == position:
            yield write.target
        elif write.how == "=" and position is None and any(part is call.node for part in ast.walk(write.value)):
            yield write.target.item(ANY)
