"""The program with the calls that its text does not spell: lambdas, functions handed over, and what drawing runs."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from typing import Any

from torchmagic.checking import Facts
from torchmagic.checking.usercode import earlier_texts
from torchmagic.kinds import kind_of_value
from torchmagic.sharing.drawn import PROTOCOL, Drawing
from torchmagic.sharing.handed import HandedFunctions
from torchmagic.sharing.with_blocks import WithBlocks
from torchmagic.source import Context, Program, Ref, Scope, SourceText, Step
from torchmagic.source.calls import Call
from torchmagic.source.decorators import KEPT_PROPERTY, decorators, is_property
from torchmagic.source.lambdas import named_lambdas
from torchmagic.source.memory_paths import memory_ref
from torchmagic.source.refs import Steps, bare_name, ref_of
from torchmagic.source.writes import Write, writes_of

_MOST = 12


class WholeProgram(Program):
    """The cell and what it uses, for a rule that asks in which order things happened, whoever called them."""

    def __init__(self, facts: Facts, cell: SourceText) -> None:
        earlier = [(named_lambdas(text), names) for text, names in earlier_texts(facts.found, cell)]
        super().__init__(named_lambdas(cell), earlier, self._live_run, facts.is_foreign)
        self._facts = facts
        self._spelled: dict[Scope, list[Call]] = {}
        self._handed = HandedFunctions(self)
        self._drawing = Drawing(self, facts, self._handed)
        self._blocks = WithBlocks(self, facts)

    def _live_run(self, ref: Ref, at: Scope, target: Scope, by_item: bool) -> bool:
        if target in self.forward_hooks:
            return not by_item and kind_of_value(self._facts.value(ref, at)) == "module"
        return self._facts.runs(ref, at, target, by_item)

    @cached_property
    def spelled_writes(self) -> list[Write]:
        """The writes that the text spells; a list that is added to another one is stored in it."""
        return [_as_store(write) for step in self.steps for write in writes_of(step)]

    @cached_property
    def writes(self) -> list[Write]:
        """Every write, also through a method of a container that was handed over: `minimise(x, path.append)`."""
        written = [*self.spelled_writes, *self._handed.stores(), *self._kept_properties()]
        return sorted(written, key=lambda write: write.step.order)

    def _kept_properties(self) -> Iterator[Write]:
        """Yield what the results of cached properties are: attributes of their objects."""
        for scope in self.scopes:
            if scope.class_name is not None and KEPT_PROPERTY in decorators(scope) and scope.parameters:
                attribute = Ref(scope.parameters[0], (("attr", scope.name),))
                yield from (Write("bind", attribute, value, at, at.node) for value, at in self.results.get(scope, ()))

    @cached_property
    def results(self) -> dict[Scope, list[tuple[ast.expr, Step]]]:
        """What each function returns or yields, with the statements."""
        table: dict[Scope, list[tuple[ast.expr, Step]]] = defaultdict(list)
        for step in self.steps:
            node = step.node
            value = node.value if isinstance(node, (ast.Return, ast.Expr, ast.Assign)) else None
            if isinstance(value, ast.Yield):
                value = value.value
            elif not isinstance(node, ast.Return):
                continue
            if value is not None and not isinstance(step.scope.node, ast.Module):
                table[step.scope].append((value, step))
        return table

    def spelled_callers(self, scope: Scope) -> list[Call]:
        """Return the calls that name a function, or whose live object shows that they run it."""
        if scope not in self._spelled:
            self._spelled[scope] = [call for call in super()._find_callers(scope) if not _is_handed(call, scope)]
        return self._spelled[scope][:_MOST]

    def is_drawn(self, scope: Scope) -> bool:
        """Tell whether a function is a loader's own, which it runs on the elements of its data set."""
        return scope.name not in PROTOCOL and any(True for _ in self._drawing.callers(scope))

    @cached_property
    def property_sources(self) -> dict[str, list[Steps]]:
        """Where below their object the results of properties lie, by name."""
        table: dict[str, list[Steps]] = defaultdict(list)
        for scope in filter(is_property, self.scopes):
            for value, _ in self.results.get(scope, ()):
                ref = memory_ref(value)
                if ref is not None and ref.steps and ref.root == scope.parameters[0] and ref.steps[0][1] != scope.name:
                    table[scope.name].append(ref.steps)
        return dict(table)

    def _readers(self, scope: Scope) -> Iterator[Call]:
        """Yield the attributes whose reading runs a property."""
        for node, step in self._expressions if is_property(scope) else ():
            if isinstance(node, ast.Attribute) and node.attr == scope.name and isinstance(node.ctx, ast.Load):
                yield Call(node, step, ref_of(node.value))

    def _ways_to(self, step: Step, depth: int) -> list[Context]:
        return self._blocks.moved(super()._ways_to(step, depth), step)

    def _find_callers(self, scope: Scope) -> Iterator[Call]:
        found = [
            *self._readers(scope),
            *self._blocks.callers(scope),
            *self.spelled_callers(scope),
            *self._handed.callers(scope),
        ]
        if scope.name in PROTOCOL or not found:
            found += self._drawing.callers(scope)
        yield from found or self._handed.mentions(scope)


def _as_store(write: Write) -> Write:
    """Return `log += [x]` and `log = log + [x]` as the store that they are, other writes as they are."""
    value = write.value
    if write.kind == "bind" and isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add):
        added = value.right if ref_of(value.left) == write.target else None
    else:
        added = value if write.kind == "augment" and write.how == "Add" else None
    if not isinstance(added, (ast.List, ast.ListComp)):
        return write
    return replace(write, kind="store", value=added, how="extend")


def _is_handed(call: Call, scope: Scope) -> bool:
    """Tell whether a call is taken to run a function because it is given the function."""
    node: Any = call.node
    if not isinstance(node, ast.Call) or scope.class_name is not None or bare_name(node.func) == scope.name:
        return False
    return any(isinstance(argument, ast.Name) and argument.id == scope.name for argument in node.args)


def whole_program(facts: Facts) -> WholeProgram | None:
    """Return the program of a look; None without a cell that parses."""
    cell = facts.source
    return WholeProgram(facts, cell) if cell is not None and cell.tree is not None else None
