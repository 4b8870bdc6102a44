"""A tensor made once as a default, of a parameter or of a class, that each call or each object then writes into."""

from __future__ import annotations

import ast
import sys
import types
from collections.abc import Iterator
from typing import Any, NamedTuple

from torchmagic.namespace import Seen
from torchmagic.namespace.resolve import MISSING
from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import doer, now_holds
from torchmagic.source import Ref, Scope
from torchmagic.source.scopes import FunctionDef


class Default(NamedTuple):
    """A parameter's default value, the function it belongs to, and where it is written."""

    scope: Scope
    parameter: str
    value: Any
    node: ast.expr


def written_defaults(timeline: Timeline) -> Iterator[Default]:
    """Yield the tensors that functions have as defaults and that were written in place."""
    torch = sys.modules["torch"]
    for scope in timeline.program.scopes:
        for parameter, node in _default_nodes(scope):
            value = _live_default(timeline, scope, parameter)
            if issubclass(type(value), torch.Tensor) and timeline.facts.version_moved(value):
                yield Default(scope, parameter, value, node)


def judge_default(timeline: Timeline, default: Default) -> Iterator[Sharing]:
    """Yield a verdict when the function writes its default and minds what was in it."""
    for change in timeline.changes:
        if change.kind != "write" or change.fills or change.target is None:
            continue
        if change.step.scope is default.scope and change.target.root == default.parameter:
            seen = timeline.facts.found.find(default.value)
            yield _said_of_default(timeline, default, change, seen)
            return


def _said_of_default(timeline: Timeline, default: Default, change: Change, seen: Seen | None) -> Sharing:
    scope, name = default.scope, default.scope.name
    subject = seen.subject if seen is not None else name
    now = now_holds(Holder(seen, seen.places[0]), change, timeline) if seen is not None else ""
    return Sharing(
        subject=subject,
        message=f"`{subject}`: the default `{default.parameter}` of `{name}` is one tensor for all calls, which "
        f"{doer(change)} writes{now}; make it in the function",
        line=default.node.lineno if scope.unit.is_cell else change.line,
        others=tuple(place.text for place in seen.places[1:3]) if seen is not None else (),
        evidence={"written_on_line": change.line},
    )


def shared_attributes(timeline: Timeline) -> Iterator[Seen]:
    """Yield the tensors that a class has as an attribute and that several of its objects hold as their own."""
    for seen in timeline.facts.found.of_kind("tensor"):
        if len(seen.places) > 1 and timeline.facts.version_moved(seen.obj) and len(_objects(seen)) > 1:
            yield seen


def judge_attribute(timeline: Timeline, seen: Seen) -> Iterator[Sharing]:
    """Yield a verdict when a write went through one of the objects."""
    holders = _objects(seen)
    for change in timeline.changes:
        if change.kind == "write" and any(change.names(holder) for holder in holders):
            kind, key = type(holders[0].place.owner), str(holders[0].place.key)
            now = now_holds(holders[0], change, timeline)
            yield Sharing(
                subject=holders[0].text,
                message=f"`{holders[0].text}`: the tensor that the class `{kind.__name__}` has as its default, and "
                f"`{holders[1].text}` is the same; {doer(change)} writes both{now}; "
                "make one for each object",
                line=_class_line(timeline, kind.__name__, key) or change.line,
                others=tuple(holder.text for holder in holders[1:3]),
                evidence={"written_on_line": change.line},
            )
            return


def _objects(seen: Seen) -> list[Holder]:
    """Return the objects that hold a tensor as the attribute as which their class has it."""
    return [
        Holder(seen, place)
        for place in seen.places
        if place.role == "attribute" and _class_value(type(place.owner), place.key) is seen.obj
    ]


def _class_value(kind: type, key: Any) -> Any:
    for holder in type.__getattribute__(kind, "__mro__"):
        own = type.__getattribute__(holder, "__dict__")
        if key in own:
            return own[key]
    return MISSING


def _class_line(timeline: Timeline, name: str, key: str) -> int | None:
    """Return the line of the cell on which the body of a class binds an attribute."""
    tree = timeline.program.cell.tree
    for node in ast.walk(tree) if tree is not None else ():
        for line in node.body if isinstance(node, ast.ClassDef) and node.name == name else ():
            targets = line.targets if isinstance(line, ast.Assign) else [getattr(line, "target", None)]
            if any(isinstance(target, ast.Name) and target.id == key for target in targets):
                return line.lineno
    return None


def _default_nodes(scope: Scope) -> Iterator[tuple[str, ast.expr]]:
    """Yield the parameters that have a default, with its expression."""
    if not isinstance(scope.node, FunctionDef):
        return
    arguments = scope.node.args
    named = [*arguments.posonlyargs, *arguments.args]
    for argument, node in zip(reversed(named), reversed(arguments.defaults), strict=False):
        yield argument.arg, node
    for argument, keyword in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if keyword is not None:
            yield argument.arg, keyword


def _live_default(timeline: Timeline, scope: Scope, parameter: str) -> Any:
    """Return the value that a live function has as the default of a parameter, or MISSING."""
    function = timeline.facts.value(Ref(scope.class_name or scope.name))
    if scope.class_name is not None:
        function = _class_value(function, scope.name) if issubclass(type(function), type) else MISSING
    if type(function) is not types.FunctionType:
        return MISSING
    names = scope.parameters[: function.__code__.co_argcount]
    given = dict(zip(reversed(names), reversed(function.__defaults__ or ()), strict=False))
    return {**given, **(function.__kwdefaults__ or {})}.get(parameter, MISSING)
