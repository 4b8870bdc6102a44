"""Attributes that a function gives a new value each time it runs, before it reads them: nothing old is met there."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from torchmagic.source.attribute_names import Attribute
from torchmagic.source.program import Program
from torchmagic.source.refs import Ref, ref_of
from torchmagic.source.scopes import Step
from torchmagic.source.writes import writes_of


def is_renewed(
    program: Program, step: Step, steps: Iterable[Step], attribute: Attribute, owners: frozenset[str]
) -> bool:
    """Tell whether an earlier statement of the same function, which always ran, bound the attribute.

    Args:
        program: the cell and the functions it uses.
        step: the statement that reads the attribute.
        steps: the statements of its function.
        attribute: what is read.
        owners: the names of the object and of its classes.
    """
    before = (other for other in steps if other.order < step.order and _always_before(other, step))
    return any(
        _binds(other, attribute, owners) or _calls_renewer(program, other, attribute, owners) for other in before
    )


def _always_before(other: Step, step: Step) -> bool:
    return other.tests == step.tests[: len(other.tests)] and other.loops == step.loops[: len(other.loops)]


def _binds(step: Step, attribute: Attribute, owners: frozenset[str]) -> bool:
    return any(
        write.kind == "bind" and write.target.root in owners and write.target.steps == (("attr", attribute.name),)
        for write in writes_of(step)
    )


def _calls_renewer(program: Program, step: Step, attribute: Attribute, owners: frozenset[str]) -> bool:
    """Tell whether a statement calls a method of the same object that always binds the attribute."""
    called = {
        ref.last_name
        for own in step.own_expressions()
        for part in ast.walk(own)
        if isinstance(part, ast.Call) and (ref := ref_of(part.func)) is not None and _is_own_method(ref, owners)
    }
    return any(
        inner.scope.name in called
        and inner.scope.class_name in attribute.classes
        and not inner.tests
        and not inner.loops
        and _binds(inner, attribute, frozenset(inner.scope.parameters[:1]))
        for inner in program.steps
    )


def _is_own_method(ref: Ref, owners: frozenset[str]) -> bool:
    return ref.root in owners and len(ref.steps) == 1
