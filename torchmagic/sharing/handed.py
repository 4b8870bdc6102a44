"""Which functions of the program a call may run that does not spell their names: callbacks, tables, hooks."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from torchmagic.source.calls import Call, argument_node
from torchmagic.source.memory_paths import returns_of
from torchmagic.source.refs import bare_name, ref_of
from torchmagic.source.scopes import Scope, Step
from torchmagic.source.writes import Write

if TYPE_CHECKING:
    from torchmagic.sharing.whole_program import WholeProgram

_DEEPEST = 8
_MOST_LOOKS = 150
_CARRIERS = frozenset({"enumerate", "zip", "list", "tuple", "reversed", "iter", "next", "sorted", "tqdm", "dict"})
_ADDING = frozenset({"append", "appendleft", "add", "put"})
_READERS = frozenset({"items", "values", "get", "pop", "copy"})


class _Function(NamedTuple):
    """A function of the program, or a container's own method, and the arguments that `partial` has bound already."""

    scope: Scope | None
    bound: tuple[ast.expr, ...] = ()
    method: ast.Attribute | None = None


class HandedFunctions:
    """Follows functions as values: through parameters, attributes, containers, `partial` and callable objects."""

    def __init__(self, program: WholeProgram) -> None:
        self._program = program
        self._loops: dict[ast.Call, ast.GeneratorExp] = {}
        self._left = _MOST_LOOKS

    def callers(self, scope: Scope) -> list[Call]:
        """Return the calls that may run a function under another name."""
        return self._table.get(scope, [])

    def mentions(self, scope: Scope) -> Iterator[Call]:
        """Yield where a function is handed to code without a text, which may run it any number of times."""
        for node, step in self._program.calls:
            for argument in [*node.args, *(keyword.value for keyword in node.keywords)]:
                self._left = _MOST_LOOKS
                found = next((f for f in self.functions(argument, step, 3) if f.scope is scope), None)
                if found is not None and bare_name(node.func) != "partial":
                    first = (
                        [_element(part) for part in node.args[1:]] if bare_name(node.func) in ("map", "filter") else []
                    )
                    run = ast.copy_location(ast.Call(argument, [*found.bound, *first], []), node)
                    yield Call(run, step, None, (self._loop(node),))

    def stores(self) -> Iterator[Write]:
        """Yield what calls put into containers whose `append` or the like they were given under another name."""
        for node, step in self._program.calls:
            if not node.args or bare_name(node.func) in self._names or bare_name(node.func) in _ADDING:
                continue
            for _, _, method in dict.fromkeys(self.functions(node.func, step)):
                target = ref_of(method.value) if method is not None else None
                if method is not None and target is not None:
                    yield Write("store", target, node.args[0], step, node, method.attr)

    def _loop(self, call: ast.Call) -> ast.GeneratorExp:
        """Return what stands for the loop in which a call runs what it is given; one and the same for each call."""
        return self._loops.setdefault(call, ast.copy_location(ast.GeneratorExp(call, []), call))

    @cached_property
    def _table(self) -> dict[Scope, list[Call]]:
        table: dict[Scope, list[Call]] = defaultdict(list)
        for node, step in self._program.calls:
            name = bare_name(node.func)
            if name in self._names:
                continue  # it is spelled
            for scope, bound, _ in dict.fromkeys(self.functions(node.func, step)):
                if scope is None:
                    continue
                run = (
                    node
                    if not bound
                    else ast.copy_location(ast.Call(node.func, [*bound, *node.args], node.keywords), node)
                )
                table[scope].append(Call(run, step))
        return table

    @cached_property
    def _names(self) -> dict[str, list[Scope]]:
        names: dict[str, list[Scope]] = defaultdict(list)
        for scope in self._program.scopes:
            if scope.name:
                names[scope.name].append(scope)
        return names

    @cached_property
    def _given(self) -> dict[str, list[Write]]:
        """What variables and the containers under them are given, by name."""
        table = defaultdict(list)
        for write in self._program.spelled_writes:
            if write.kind in ("bind", "store") and len(write.target.steps) < 2:
                table[write.target.root].append(write)
        return table

    @cached_property
    def _attributes(self) -> dict[str, list[tuple[ast.expr, Step]]]:
        """What attributes and the containers under them are given, by the attribute's name."""
        table = defaultdict(list)
        for write in self._program.spelled_writes:
            if write.value is not None and write.kind in ("bind", "store") and write.target.steps:
                table[write.target.last_name].append((write.value, write.step))
        for node, step in self._program.calls:
            for keyword in node.keywords:
                if keyword.arg is not None:
                    table[keyword.arg].append((keyword.value, step))
        return table

    def functions(self, node: ast.AST | None, step: Step, depth: int = _DEEPEST) -> Iterator[_Function]:
        """Yield the functions that the value of an expression may be, or may hold."""
        if depth == _DEEPEST:
            self._left = _MOST_LOOKS
        self._left -= 1
        if node is None or not depth or self._left < 0:
            return
        if isinstance(node, ast.Name):
            yield from self._named(node.id, step, depth - 1)
        elif isinstance(node, ast.Attribute):
            if node.attr in _ADDING and node.attr not in self._names:
                yield _Function(None, (), node)
            yield from (_Function(scope) for scope in self._names.get(node.attr, ()) if scope.class_name is not None)
            for value, at in self._attributes.get(node.attr, ())[:8]:
                yield from self.functions(value, at, depth - 1)
        elif isinstance(node, ast.Call):
            yield from self._made(node, step, depth - 1)
        elif isinstance(node, (ast.List, ast.Tuple, ast.Set, ast.Dict, ast.BoolOp)):
            parts = node.elts if isinstance(node, (ast.List, ast.Tuple, ast.Set)) else node.values
            for part in parts:
                yield from self.functions(part, step, depth - 1)
        elif isinstance(node, ast.IfExp):
            yield from self.functions(node.body, step, depth - 1)
            yield from self.functions(node.orelse, step, depth - 1)
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            yield from self.functions(node.elt, step, depth - 1)
        elif isinstance(node, (ast.Subscript, ast.Starred, ast.NamedExpr)):
            yield from self.functions(node.value, step, depth - 1)

    def _named(self, name: str, step: Step, depth: int) -> Iterator[_Function]:
        yield from (_Function(scope) for scope in self._names.get(name, ()) if scope.class_name is None)
        owner = step.scope.owner_of(name)
        for write in self._given.get(name, ()):
            if write.step.scope.owner_of(name) is owner:
                yield from self.functions(write.value, write.step, depth)
        if name in owner.parameters:
            for call in self._program.spelled_callers(owner):
                yield from self.functions(argument_node(call, owner, name), call.step, depth)

    def _made(self, node: ast.Call, step: Step, depth: int) -> Iterator[_Function]:
        """Yield the functions that a call returns, binds or wraps: `partial(f, x)`, `make_hook(name)`, `Recorder()`."""
        name = bare_name(node.func)
        if name == "partial" and node.args:
            for scope, bound, method in self.functions(node.args[0], step, depth):
                yield _Function(scope, (*bound, *node.args[1:]), method)
        elif name in _CARRIERS:
            for argument in node.args:
                yield from self.functions(argument, step, depth)
        elif name in _READERS and isinstance(node.func, ast.Attribute):
            yield from self.functions(node.func.value, step, depth)
        else:
            yield from (
                _Function(scope) for scope in self._names.get("__call__", ()) if scope.class_name == name and name
            )
            for value, at in returns_of(self._program, node):
                yield from self.functions(value, at, depth)


def _element(values: ast.expr) -> ast.expr:
    """Spell some element of a value."""
    return ast.copy_location(ast.Subscript(values, ast.Name("_", ast.Load()), ast.Load()), values)
