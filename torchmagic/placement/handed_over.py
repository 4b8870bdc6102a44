"""Tensors that the failing expression gets without a path to them: kept by a `partial`, in a list, named by `:=`."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import Any

from torchmagic.checking import Facts
from torchmagic.checking.failing_line import FailingLine, Operand, top_level_name, value_at
from torchmagic.checking.failing_node import running_expression
from torchmagic.kinds import kind_of_value
from torchmagic.source import Ref, ref_of
from torchmagic.source.refs import Steps

_MOST = 64
_DEEPEST = 3


def handed_over(facts: Facts, line: FailingLine) -> Iterator[Operand]:
    """Yield what a failing statement hands over inside of something else, and what it makes under a name of its own."""
    running = running_expression(facts, line.frame, line.step)
    known: set[int] = set()
    for node in [running] if running is not None else line.step.own_expressions():
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                value = value_at(facts, Ref(part.target.id), line.frame)
                if kind_of_value(value) == "tensor":
                    yield Operand(part.value, Ref(part.target.id), value, "tensor")
            elif isinstance(part, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(part.ctx, ast.Load):
                ref = ref_of(part)
                value = value_at(facts, ref, line.frame) if ref is not None else None
                if ref is not None and id(value) not in known and _holds_others(value):
                    known.add(id(value))
                    yield from _held(facts, part, ref, value)


def _held(facts: Facts, node: ast.expr, ref: Ref, holder: Any) -> Iterator[Operand]:
    """Yield the tensors and modules in a container or partial, by the names that the notebook has for them."""
    waiting: list[tuple[Any, Steps]] = [(holder, ())]
    for _ in range(_MOST):
        if not waiting:
            return
        value, steps = waiting.pop(0)
        kind = kind_of_value(value)
        if kind in ("tensor", "module"):
            name = top_level_name(facts, value)
            path = Ref(name) if name else ref + steps
            yield Operand(node, path, value, kind, called=steps[-1:] == (("attr", "func"),), within=True)
        elif len(steps) < _DEEPEST:
            waiting += [(part, steps + more) for part, more in _parts(value)]


def _holds_others(value: Any) -> bool:
    return type(value) in (list, tuple, dict, functools.partial)


def _parts(value: Any) -> list[tuple[Any, Steps]]:
    kind = type(value)
    if kind in (list, tuple):
        return [(part, (("item", index),)) for index, part in enumerate(value[:_MOST])]
    if kind is dict:
        return [(part, (("item", key),)) for key, part in list(value.items())[:_MOST]]
    if kind is functools.partial:
        given = [(part, (("attr", "args"), ("item", index))) for index, part in enumerate(value.args)]
        named = [(part, (("attr", "keywords"), ("item", name))) for name, part in value.keywords.items()]
        return [(value.func, (("attr", "func"),)), *given, *named]
    return []
