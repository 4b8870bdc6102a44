"""The statements of a text in order, each with its scope, its loops and its conditions."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from torchmagic.source.text import SourceText

Loop = ast.For | ast.AsyncFor | ast.While | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(eq=False)
class Unit:
    """A text that belongs to the program: the checked cell itself, or an earlier text that defines what it uses."""

    source: SourceText
    is_cell: bool


@dataclass(eq=False)
class Scope:
    """A module or function body. `class_name` is the class that a method belongs to."""

    node: ast.Module | FunctionNode | ast.Lambda
    unit: Unit
    parent: Scope | None = None
    class_name: str | None = None
    locals: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """The function's name; empty for a module."""
        return self.node.name if isinstance(self.node, (ast.FunctionDef, ast.AsyncFunctionDef)) else ""

    @property
    def parameters(self) -> list[str]:
        """The parameter names in order, keyword-only ones last."""
        if isinstance(self.node, ast.Module):
            return []
        arguments = self.node.args
        return [a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]]

    @cached_property
    def yields(self) -> bool:
        """Whether it is a generator function, which runs while something draws from it."""
        return any(isinstance(part, (ast.Yield, ast.YieldFrom)) for part in _walk_scope(self.node))

    def owner_of(self, name: str) -> Scope:
        """Return the scope in which a name that is used here lives."""
        scope: Scope = self
        while scope.parent is not None and (name not in scope.locals or name in scope.outer):
            scope = scope.parent
        return scope


@dataclass(eq=False)
class Step:
    """A statement, where it stands. `loops` and `tests` are those around it in its own scope, outermost first."""

    node: ast.stmt
    scope: Scope
    loops: tuple[Loop, ...]
    tests: tuple[ast.expr, ...]
    order: float

    @property
    def line(self) -> int:
        """The line of the statement in its unit."""
        return self.node.lineno

    def own_expressions(self) -> Iterator[ast.expr]:
        """Yield the expressions of this statement itself, not those of statements nested in it."""
        for child in ast.iter_child_nodes(self.node):
            if isinstance(child, ast.expr):
                yield child
            elif isinstance(child, ast.withitem):
                yield child.context_expr

    @cached_property
    def nodes(self) -> tuple[ast.AST, ...]:
        """Every node of the statement's own expressions."""
        return tuple(node for own in self.own_expressions() for node in ast.walk(own))

    @cached_property
    def comprehensions(self) -> tuple[Comprehension, ...]:
        """The comprehensions in the statement's own expressions."""
        return tuple(node for node in self.nodes if isinstance(node, _COMPREHENSIONS))


def read_unit(unit: Unit, only: set[str] | None = None) -> tuple[list[Step], list[Scope]]:
    """List the statements and scopes of a unit.

    Args:
        unit: the text.
        only: when given, of the top level only these functions and classes are read.
    """
    tree = unit.source.tree
    if tree is None:
        return [], []
    reader = _Reader(unit)
    body = tree.body
    if only is not None:
        body = [node for node in body if isinstance(node, (FunctionDef, ast.ClassDef)) and node.name in only]
    top = reader.new_scope(tree, None, None)
    reader.read_block(body, top, _Around())
    return reader.steps, reader.scopes


FunctionDef = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class _Around:
    """What a block of statements stands in, outermost first."""

    loops: tuple[Loop, ...] = ()
    tests: tuple[ast.expr, ...] = ()


class _Reader:
    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.steps: list[Step] = []
        self.scopes: list[Scope] = []

    def new_scope(
        self, node: ast.Module | FunctionNode | ast.Lambda, parent: Scope | None, class_name: str | None
    ) -> Scope:
        scope = Scope(node, self.unit, parent, class_name)
        scope.locals = set(scope.parameters) | _bound_names(node)
        for part in _walk_scope(node):
            if isinstance(part, (ast.Global, ast.Nonlocal)):
                scope.outer.update(part.names)
        self.scopes.append(scope)
        return scope

    def read_block(self, body: list[ast.stmt], scope: Scope, around: _Around, class_name: str | None = None) -> None:
        for node in body:
            step = Step(node, scope, around.loops, around.tests, len(self.steps))
            self.steps.append(step)
            if isinstance(node, FunctionDef):
                self.read_block(node.body, self.new_scope(node, scope, class_name), _Around())
            elif isinstance(node, ast.ClassDef):
                self.read_block(node.body, scope, around, node.name)
            elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)):
                self.read_block(node.body, scope, replace(around, loops=(*around.loops, node)))
                self.read_block(node.orelse, scope, around)
            elif isinstance(node, ast.If):
                inside = replace(around, tests=(*around.tests, node.test))
                self.read_block(node.body, scope, inside)
                self.read_block(node.orelse, scope, inside)
            elif isinstance(node, (ast.With, ast.AsyncWith)):
                self.read_block(node.body, scope, around)
            else:
                for block in _blocks(node):
                    self.read_block(block, scope, around)


def _blocks(node: ast.stmt) -> Iterator[list[ast.stmt]]:
    if isinstance(node, ast.Try) or type(node).__name__ == "TryStar":
        for name in ("body", "orelse", "finalbody"):
            yield getattr(node, name)
        for handler in getattr(node, "handlers", ()):
            yield handler.body
    elif isinstance(node, ast.Match):
        for case in node.cases:
            yield case.body


def _walk_scope(scope: ast.AST) -> Iterator[ast.AST]:
    """Visit the nodes of one scope, without entering nested functions and classes."""
    stack = list(ast.iter_child_nodes(scope))
    while stack:
        node = stack.pop()
        yield node
        if not isinstance(node, (*FunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))


def _bound_names(scope: ast.AST) -> set[str]:
    names = set()
    for node in _walk_scope(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, (*FunctionDef, ast.ClassDef)):
            names.add(node.name)
    return names


def is_displayed(step: Step) -> bool:
    """Tell whether a notebook shows the value of a statement: the cell's last expression, without a semicolon."""
    module = step.scope.node
    if not isinstance(module, ast.Module) or not step.scope.unit.is_cell or module.body[-1] is not step.node:
        return False
    end = (
        step.scope.unit.source.line(step.node.end_lineno).encode()[step.node.end_col_offset :].decode(errors="replace")
    )
    return isinstance(step.node, ast.Expr) and not end.partition("#")[0].rstrip().endswith(";")


def comprehensions(node: ast.AST) -> Iterator[Comprehension]:
    """Yield the comprehensions inside a node."""
    for part in ast.walk(node):
        if isinstance(part, _COMPREHENSIONS):
            yield part
