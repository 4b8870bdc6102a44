"""What runs while something is drawn: `__iter__`, `__next__`, `__getitem__`, and a loader's collate function."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from torchmagic.checking import Facts
from torchmagic.kinds import is_from_torch
from torchmagic.namespace.resolve import MISSING
from torchmagic.sharing.handed import HandedFunctions
from torchmagic.source import Step, ref_of
from torchmagic.source.calls import Call, argument_node
from torchmagic.source.lambdas import LAMBDA
from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Loop, Scope, comprehensions

if TYPE_CHECKING:
    from torchmagic.sharing.whole_program import WholeProgram

PROTOCOL = frozenset({"__iter__", "__next__", "__getitem__"})

_THROUGH = frozenset(
    {"enumerate", "zip", "reversed", "iter", "tqdm", "islice", "cycle", "chain", "list", "tuple", "sorted", "next"}
)
_EAGER = frozenset({"list", "tuple", "sorted", "next", "deque", "set"})
_MOST_PARTS = 40


@dataclass
class Drawn:
    """What a drawn object is made of: its classes, the functions it runs on its elements, and the data below."""

    classes: set[str] = field(default_factory=set)
    codes: list[types.CodeType] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    data: ast.expr | None = None
    collates: bool = False

    def runs(self, scope: Scope) -> bool:
        """Tell whether drawing runs a function."""
        if scope.name in PROTOCOL:
            return scope.class_name in self.classes
        return scope in self.scopes or any(_is_code_of(code, scope) for code in self.codes)


def _is_code_of(code: types.CodeType, scope: Scope) -> bool:
    at_line = code.co_firstlineno == getattr(scope.node, "lineno", None)
    if scope.name.startswith(LAMBDA):
        return code.co_name == "<lambda>" and at_line
    return code.co_name == scope.name and (at_line or scope.class_name is None)


def _code_of(function: Any) -> types.CodeType | None:
    """Return the code of a function, a bound method, or what calling an object of the user's runs."""
    if type(function) is types.MethodType:
        function = function.__func__
    elif type(function) is not types.FunctionType:
        bases = type.__getattribute__(type(function), "__mro__")
        tables = (type.__getattribute__(base, "__dict__") for base in bases)
        function = next((table["__call__"] for table in tables if "__call__" in table), None)
    is_users = type(function) is types.FunctionType and not is_from_torch(function)
    return function.__code__ if is_users else None


class _Draw(NamedTuple):
    """A place that draws: from `node`, which may stand inside `whole`, in a statement and its loop or the like."""

    node: ast.expr
    whole: ast.expr
    step: Step
    loop: Loop
    drawn: Drawn


class Drawing:
    """Finds the loops, comprehensions and calls that draw from an object, and what each of them runs."""

    def __init__(self, program: WholeProgram, facts: Facts, handed: HandedFunctions) -> None:
        self._program, self._facts, self._handed = program, facts, handed

    def callers(self, scope: Scope) -> Iterator[Call]:
        """Yield the places where drawing from an object runs a function."""
        for draw in self._draws:
            if draw.drawn.runs(scope):
                yield from self._calls(scope, draw)

    def _calls(self, scope: Scope, draw: _Draw) -> Iterator[Call]:
        node, whole, step, loop, drawn = draw
        if scope.name not in PROTOCOL:  # it is given a list of what the data set gives
            for values, at in self._elements(drawn, step):
                run = ast.copy_location(ast.Call(node, [values], []), node)
                yield Call(run, at, None, () if at is not step else (loop,), whole)
            return
        direct = node if node is whole and not drawn.collates else ast.copy_location(ast.Tuple([], ast.Load()), node)
        yield Call(direct, step, None if drawn.collates else ref_of(node), (loop,))

    def _elements(self, drawn: Drawn, step: Step) -> Iterator[tuple[ast.expr, Step]]:
        """Yield expressions whose elements are what a data set gives, with the statements that spell them."""
        given = False
        for scope in self._program.scopes:
            if scope.name == "__getitem__" and scope.class_name in drawn.classes:
                for at in self._program.steps:
                    if (
                        at.scope is scope
                        and isinstance(at.node, ast.Return)
                        and isinstance(at.node.value, ast.Subscript)
                    ):
                        given = True
                        yield at.node.value.value, at
                    elif at.scope is scope and isinstance(at.node, ast.Return) and isinstance(at.node.value, ast.Name):
                        for write in self._program.binds_of(at.node.value.id, scope):
                            if isinstance(write.value, ast.Subscript):
                                given = True
                                yield write.value.value, write.step
        if not given:
            yield drawn.data or ast.Tuple([], ast.Load()), step

    @cached_property
    def _draws(self) -> list[_Draw]:
        found = []
        for step in self._program.steps:
            for whole, loop in _iterables(step):
                for node in _bases(whole):
                    drawn = Drawn()
                    self._look(node, step, drawn, 5)
                    if drawn.classes or drawn.codes or drawn.scopes:
                        found.append(_Draw(node, whole, step, loop, drawn))
        return found

    def _look(self, node: ast.AST | None, step: Step, drawn: Drawn, depth: int) -> None:
        """Note what drawing from the value of an expression runs."""
        if node is None or not depth:
            return
        ref = ref_of(node)
        live = self._facts.value(ref, step.scope) if ref is not None else MISSING
        if live is not MISSING:
            self._open(live, drawn)
            return
        if isinstance(node, ast.Call):
            self._look_at_call(node, step, drawn, depth - 1)
        elif isinstance(node, ast.Name):
            owner = step.scope.owner_of(node.id)
            for write in self._program.binds_of(node.id, owner)[-3:]:
                if write.how == "=" and write.position is None:
                    self._look(write.value, write.step, drawn, depth - 1)
            for call in self._program.spelled_callers(owner) if node.id in owner.parameters else ():
                self._look(argument_node(call, owner, node.id), call.step, drawn, depth - 1)

    def _look_at_call(self, node: ast.Call, step: Step, drawn: Drawn, depth: int) -> None:
        name = bare_name(node.func)
        if name == "DataLoader":
            function = next((k.value for k in node.keywords if k.arg == "collate_fn"), None)
            drawn.collates = function is None
            drawn.scopes += [made.scope for made in self._handed.functions(function, step) if made.scope is not None]
            data = node.args[0] if node.args else next((k.value for k in node.keywords if k.arg == "dataset"), None)
            drawn.data = data
            self._look(data, step, drawn, depth)
        elif any(scope.class_name == name for scope in self._program.scopes):
            drawn.classes.add(name)

    def _open(self, live: Any, drawn: Drawn) -> None:
        """Note what drawing from a live object runs: its class, and for a loader its data set and what that wraps."""
        waiting: list[Any] = [live]
        known: set[int] = set()
        while waiting and len(known) < _MOST_PARTS:
            part = waiting.pop()
            if id(part) in known:
                continue
            known.add(id(part))
            kind = type(part)
            table = object.__getattribute__(part, "__dict__") if _has_table(part) else {}
            if is_from_torch(kind) and kind.__module__.startswith("torch.utils.data"):
                if "collate_fn" in table:
                    self._open_loader(table, drawn)
                waiting += [table[name] for name in ("dataset",) if name in table]
                waiting += list(table["datasets"]) if type(table.get("datasets")) is list else []
            elif not is_from_torch(kind) and table is not None and kind.__module__ != "builtins":
                drawn.classes |= {base.__name__ for base in type.__getattribute__(kind, "__mro__")[:-1]}
                waiting += [part for name, part in table.items() if name in ("dataset", "base", "loader", "source")]

    def _open_loader(self, table: dict[str, Any], drawn: Drawn) -> None:
        code = _code_of(table["collate_fn"])
        if code is not None:
            drawn.codes.append(code)
        drawn.collates = code is None
        seen = self._facts.found.find(table.get("dataset"))
        if seen is not None:
            drawn.data = _spelled(seen.subject)


def _has_table(part: Any) -> bool:
    try:
        return isinstance(object.__getattribute__(part, "__dict__"), dict)
    except AttributeError:
        return False


def _spelled(path: str) -> ast.expr | None:
    try:
        return ast.parse(path, mode="eval").body
    except SyntaxError:
        return None


def _iterables(step: Step) -> Iterator[tuple[ast.expr, Loop]]:
    """Yield what a statement draws from, with what draws."""
    if isinstance(step.node, (ast.For, ast.AsyncFor)):
        yield step.node.iter, step.node
    for own in step.own_expressions():
        for comprehension in comprehensions(own):
            for part in comprehension.generators:
                yield part.iter, comprehension
        for node in ast.walk(own):
            if isinstance(node, ast.Call) and bare_name(node.func) in _EAGER and node.args:
                yield node.args[0], ast.copy_location(ast.GeneratorExp(node.args[0], []), node)


def _bases(whole: ast.expr) -> Iterator[ast.expr]:
    """Yield what is drawn from in the end: both of `zip(a, b)`, the loader in `enumerate(loader)`."""
    if isinstance(whole, ast.Call) and bare_name(whole.func) in _THROUGH:
        for argument in whole.args:
            yield from _bases(argument)
    else:
        yield whole
