"""The cell and the definitions it uses as one program: who calls what, in which loops, under which names."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

from torchmagic.source.calls import Call, Context, argument_ref, drawing, enclosing_comprehensions
from torchmagic.source.hooks import forward_hooks
from torchmagic.source.refs import ANY, Ref, Steps, ref_of
from torchmagic.source.results import drawn_into, returned_positions, targets_at
from torchmagic.source.scopes import Scope, Step, Unit, read_unit
from torchmagic.source.text import SourceText
from torchmagic.source.writes import Write, writes_of

CLASS, CLOSURE = "<class>", "<closure>"
"""Roots of paths that start at an instance of a class, or at a variable in a closure; the name is the first step."""

_DEEPEST = 5
_MOST = 12


class Program:
    """Statements of the cell and of the functions it uses.

    Args:
        cell: the checked cell.
        earlier: texts of earlier cells and files, each with the names of the functions and classes to read from it.
        runs: tells whether an expression of the program runs a function of the program: it is given the path that is
            called or indexed and the scope of the function, and looks at the live objects.
        is_foreign: tells that the method of this name that the live object at a path has is not the one of a scope.
    """

    def __init__(
        self,
        cell: SourceText,
        earlier: Sequence[tuple[SourceText, set[str]]] = (),
        runs: Callable[[Ref, Scope, Scope, bool], bool] = lambda *_: False,
        is_foreign: Callable[[Ref, Scope, Scope], bool] = lambda *_: False,
    ) -> None:
        self.cell = cell
        self._runs, self._is_foreign = runs, is_foreign
        self.steps, self.scopes = read_unit(Unit(cell, is_cell=True))
        for text, names in earlier:
            steps, scopes = read_unit(Unit(text, is_cell=False), names)
            for step in steps:
                step.order += len(self.steps)
            self.steps += steps
            self.scopes += scopes
        self._contexts: dict[Scope, list[Context]] = {}
        self._callers: dict[Scope, list[Call]] = {}
        self._spellings: dict[tuple[str, Scope], list[Ref]] = {}

    @cached_property
    def writes(self) -> list[Write]:
        """Every write of the program, in the order of the text."""
        return [write for step in self.steps for write in writes_of(step)]

    @cached_property
    def property_sources(self) -> dict[str, list[Steps]]:
        """Where below their object the results of properties lie, by name; nothing unless properties are followed."""
        return {}

    @cached_property
    def calls(self) -> list[tuple[ast.Call, Step]]:
        """Every call with the statement it is in, in the order of the text."""
        return [(node, step) for node, step in self._expressions if isinstance(node, ast.Call)]

    @cached_property
    def _expressions(self) -> list[tuple[ast.AST, Step]]:
        return [(node, step) for step in self.steps for node in step.nodes]

    @cached_property
    def _named_runs(self) -> list[tuple[ast.Call | ast.Subscript, Step, Ref]]:
        """The calls and item accesses of what has a path, with the path."""
        runs = [(node, step) for node, step in self._expressions if isinstance(node, (ast.Call, ast.Subscript))]
        paths = [ref_of(node.func if isinstance(node, ast.Call) else node.value) for node, _ in runs]
        return [(node, step, ref) for (node, step), ref in zip(runs, paths, strict=True) if ref is not None]

    @cached_property
    def _calls_by_name(self) -> dict[str, list[tuple[ast.Call, Step]]]:
        table = defaultdict(list)
        for node, step in self.calls:
            if isinstance(node.func, (ast.Name, ast.Attribute)):
                table[node.func.id if isinstance(node.func, ast.Name) else node.func.attr].append((node, step))
            for argument in node.args:
                if isinstance(argument, ast.Name):
                    table[argument.id].append((node, step))  # a function that is handed over is taken to run there
        return table

    def calls_of(self, name: str) -> list[tuple[ast.Call, Step]]:
        """Return the calls of a function or method by its bare name, not those where it is an argument."""
        return [
            (node, step)
            for node, step in self._calls_by_name.get(name, ())
            if (isinstance(node.func, ast.Name) and node.func.id == name)
            or (isinstance(node.func, ast.Attribute) and node.func.attr == name)
        ]

    def callers(self, scope: Scope) -> list[Call]:
        """Return the expressions that run a function."""
        if scope not in self._callers:
            self._callers[scope] = list(self._find_callers(scope))[:_MOST]
        return self._callers[scope]

    def _find_callers(self, scope: Scope) -> Iterator[Call]:
        if isinstance(scope.node, ast.Module):
            return
        method = scope.class_name is not None
        name = scope.class_name if method and scope.name in ("__init__", "__post_init__") else scope.name
        for node, step in self._calls_by_name.get(name or "", ()):
            function = node.func
            if method and name == scope.name:
                if isinstance(function, ast.Attribute) and function.attr == name:
                    receiver = ref_of(function.value)
                    if receiver is None or not self._is_foreign(receiver, step.scope, scope):
                        yield Call(node, step, receiver)
            elif method and isinstance(function, (ast.Name, ast.Attribute)):
                yield Call(node, step, self._bound_by(node, step))
            elif not method:
                yield Call(node, step)
        is_nested = scope.parent is not None and not isinstance(scope.parent.node, ast.Module)
        if is_nested or scope.name.startswith("_") or scope.name == "forward" or scope in self.forward_hooks:
            yield from self._live_callers(scope)

    def _hook_around(self, node: ast.AST | None) -> Scope | None:
        """Return the lambda around a node that modules run in their forward passes."""
        hooks = [hook for hook in self.forward_hooks if isinstance(hook.node, ast.Lambda)] if node is not None else ()
        return next((hook for hook in hooks if any(part is node for part in ast.walk(hook.node))), None)

    @cached_property
    def forward_hooks(self) -> set[Scope]:
        """The functions that modules run in each of their forward passes."""
        return set(forward_hooks(self))

    def _live_callers(self, scope: Scope) -> Iterator[Call]:
        """Find calls and item accesses whose live object runs the function: `net(x)`, `dataset[0]`, a closure."""
        by_item = scope.name == "__getitem__"
        kind = ast.Subscript if by_item else ast.Call
        for node, step, ref in self._named_runs:
            if isinstance(node, kind) and step.scope is not scope and self._runs(ref, step.scope, scope, by_item):
                yield Call(node, step, ref)

    def _bound_by(self, call: ast.Call, step: Step) -> Ref | None:
        """Return the path that a constructor call is bound to."""
        return next((w.target for w in writes_of(step) if w.kind == "bind" and w.value is call), None)

    def contexts(self, step: Step, node: ast.AST | None = None) -> list[Context]:
        """Return the ways in which a statement is reached; none for a function that nothing in the program calls.

        With `node`, an expression in the statement, the comprehensions around it count as loops.
        """
        hook = self._hook_around(node)
        if hook is not None:
            return [Context((*outer.steps, step), outer.loops) for outer in self._scope_contexts(hook, _DEEPEST)]
        own = step.loops + (tuple(enclosing_comprehensions(step, node)) if node is not None else ())
        return [Context((*outer.steps, step), (*outer.loops, *own)) for outer in self._ways_to(step, _DEEPEST)]

    def _ways_to(self, step: Step, depth: int) -> list[Context]:
        """Return the ways in which the function around a statement is reached when the statement runs."""
        return self._scope_contexts(step.scope, depth)

    def _scope_contexts(self, scope: Scope, depth: int) -> list[Context]:
        if isinstance(scope.node, ast.Module):
            return [Context((), ())]
        if scope in self._contexts:
            return self._contexts[scope]
        if not depth:
            return []
        self._contexts[scope] = []  # a recursive call adds nothing
        found = [
            Context(
                (*outer.steps, call.step),
                (
                    *outer.loops,
                    *call.step.loops,
                    *([call.step.node] if isinstance(call.step.node, ast.While) else ()),
                    *enclosing_comprehensions(call.step, call.node),
                    *drawing(call, scope),
                    *call.loops,
                ),
            )
            for call in self.callers(scope)
            for outer in self._ways_to(call.step, depth - 1)
        ]
        self._contexts[scope] = found[:_MOST]
        return self._contexts[scope]

    def spellings(self, ref: Ref, scope: Scope) -> list[Ref]:
        """Return the paths by which the top level of the cell knows what `ref` means inside `scope`.

        Parameters become the arguments of the callers, returned locals the names they are bound to, local aliases what
        they stand for. Where the top level has no name for it, the path starts at CLASS or CLOSURE.
        """
        key = (ref.root, scope)
        if key not in self._spellings:
            self._spellings[key] = self._spell(Ref(ref.root), scope, _DEEPEST)
        return [root + ref.steps for root in self._spellings[key]]

    def _spell(self, ref: Ref, scope: Scope, depth: int) -> list[Ref]:
        owner = scope.owner_of(ref.root)
        if isinstance(owner.node, ast.Module):
            return [ref]
        if not depth:
            return []
        found = []
        if owner is not scope or ref.root in scope.outer:
            found.append(Ref(CLOSURE, (("attr", ref.root), *ref.steps)))
        parameters = owner.parameters
        if owner.class_name is not None and parameters and ref.root == parameters[0]:
            found.append(Ref(CLASS, (("attr", owner.class_name), *ref.steps)))
        if ref.root in parameters:
            for call in self.callers(owner):
                argument = argument_ref(call, owner, ref.root)
                if argument is not None:
                    found += self._spell(argument + ref.steps, call.step.scope, depth - 1)
        else:
            found += self._local_spellings(ref, owner, depth)
        return found[:_MOST]

    def _local_spellings(self, ref: Ref, owner: Scope, depth: int) -> Iterator[Ref]:
        """Spell a local name by what it is an alias of, and by what its function's result is bound to."""
        for write in self.binds_of(ref.root, owner):
            if (source := alias_source(write)) is not None and source.root != ref.root:
                yield from self._spell(source + ref.steps, owner, depth - 1)
        for target, path, step in self.returned_as(ref.root, owner):
            yield from self._spell(target + path + ref.steps, step.scope, depth - 1)

    def returned_as(self, name: str, owner: Scope) -> Iterator[tuple[Ref, tuple[tuple[str, Any], ...], Step]]:
        """Yield what callers bind a returned local name to, the keys inside it, and the statements of the calls."""
        for step in self.steps:
            if step.scope is owner and isinstance(step.node, ast.Return) and step.node.value is not None:
                for position, path in returned_positions(step.node.value, name):
                    for call in self.callers(owner):
                        for target in targets_at(call, position):
                            yield target, path, call.step
            elif step.scope is owner and isinstance(getattr(step.node, "value", None), ast.Yield):
                drawn = step.node.value.value  # type: ignore[attr-defined]
                for position, path in returned_positions(drawn, name):
                    for call in self.callers(owner):
                        for target in drawn_into(call, position):
                            yield target, path, call.step

    def binds_of(self, name: str, owner: Scope) -> list[Write]:
        """Return the bindings of a plain name in its scope, in the order of the text."""
        return self._binds.get((name, owner), [])

    @cached_property
    def _binds(self) -> dict[tuple[str, Scope], list[Write]]:
        table = defaultdict(list)
        for write in self.writes:
            if write.kind == "bind" and not write.target.steps:
                table[(write.target.root, write.step.scope.owner_of(write.target.root))].append(write)
        return dict(table)


def alias_source(write: Write) -> Ref | None:
    """Return the path that a binding is a mere alias of: `x = self.items[i]`, or an element in `for x in xs`."""
    if write.how == "for":
        ref = ref_of(write.value)
        return None if ref is None or write.position is not None else ref.item(ANY)
    return ref_of(write.value) if write.how == "=" and write.position is None else None
