"""Variables and containers that hold a bound method of a tensor, module or optimizer instead of a value."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.checking.facts import Facts
from torchmagic.kinds import VALUES, TorchKind, is_from_torch, kind_of_value, needs_no_argument
from torchmagic.namespace import Place, Seen
from torchmagic.namespace.children import elements_of
from torchmagic.source import Program, Scope, Step, Write, ref_of
from torchmagic.source.refs import bare_name, read_names

_METHODS = (types.MethodType, types.BuiltinFunctionType)
RETURNS_SELF = frozenset(
    {"eval", "train", "cuda", "cpu", "xpu", "half", "float", "double", "bfloat16", "requires_grad_"}
)
"""Methods of a module that return the module, so that the method can stand where the module was meant."""

_TAKES_ARGUMENT = frozenset({"train", "cuda", "xpu", "requires_grad_"})
_OF_METHODS = frozenset(dir(types.MethodType))
_TAKES_NO_FUNCTION = frozenset({"print", "len", "list", "tuple", "load_state_dict", "deepcopy", "save"})


@dataclass(frozen=True, eq=False)
class Held:
    """The methods of one name and kind that a variable holds, or that stand in like places of one container."""

    place: Place
    methods: tuple[Seen, ...]
    name: str
    kind: TorchKind
    container: Seen | None

    @property
    def subject(self) -> str:
        """The path of the method, or that of the container all of them are in."""
        if len(self.methods) == 1:
            return self.place.text
        chains = [method.places[0].chain for method in self.methods]
        shared = [links[0] for links in zip(*chains, strict=False) if len({link.step for link in links}) == 1]
        whole = shared[: next((i for i, link in enumerate(shared) if link is not chains[0][i]), len(shared))]
        return whole[-1].text if whole else self.place.text


def held_methods(facts: Facts) -> Iterator[Held]:
    """Yield the bound methods that a call would have turned into a value, one group per container and name."""
    groups: dict[tuple[Any, ...], list[Seen]] = {}
    for seen in facts.found.of_kind("method"):
        kind = kind_of_value(seen.obj.__self__)
        if kind is not None and needs_no_argument(kind, seen.obj.__name__) and _is_users(seen.places[0]):
            shape = tuple("*" if type(link.key) is int else link.step for link in seen.places[0].chain)
            groups.setdefault((shape, seen.obj.__name__, kind), []).append(seen)
    for (_, name, kind), methods in groups.items():
        place = methods[0].places[0]
        container = facts.found.find(place.owner) if place.role == "item" else None
        yield Held(place, tuple(methods), name, kind, container)


def _is_users(place: Place) -> bool:
    """Tell whether the path runs through the user's own containers and objects alone."""
    for link in place.chain:
        if link.role not in ("name", "item", "attribute"):
            return False
        if link.role != "name" and is_from_torch(type(link.owner)):
            return False
    return True


def is_table_of_functions(held: Held) -> bool:
    """Tell whether a container's elements are all callables, and not all of one name: a table to choose from."""
    if held.container is None:
        return False
    values = list(elements_of(held.container.obj))
    return all(map(callable, values)) and any(
        type(value) not in _METHODS or value.__name__ != held.name for value in values
    )


def writes_of_method(facts: Facts, held: Held) -> list[tuple[Write, ast.Attribute]]:
    """Return the writes that put the method where it is held, with the expression that names it."""
    seen = held.container if held.container is not None else held.methods[0]
    found = []
    for write in [*facts.writes_to(seen), *(facts.writes_to(held.methods[0]) if held.container is not None else [])]:
        called = {id(n.func) for n in ast.walk(write.value) if isinstance(n, ast.Call)} if write.value else set()
        found += [
            (write, node)
            for node in (ast.walk(write.value) if write.value is not None else ())
            if isinstance(node, ast.Attribute) and node.attr == held.name and id(node) not in called
        ]
    return found


def is_meant_as_function(facts: Facts, held: Held, written: list[tuple[Write, ast.Attribute]]) -> bool:
    """Tell whether a method may be held in order to be called later.

    `net = net.cuda` is never meant. A method of a module that the cell does not store may be called by the next cell.
    """
    if any(write.target == ref_of(node.value) for write, node in written if write.kind == "bind"):
        return False
    if held.kind != "tensor" and any(isinstance(node.value, ast.Call) for _, node in written):
        return False  # nobody keeps the method of a module that has no name
    if held.kind == "module" and held.name in RETURNS_SELF and is_used_as_owner(facts, held):
        return False
    if held.name not in VALUES[held.kind] or is_table_of_functions(held):
        return True
    if held.kind != "tensor" and not written:
        return True
    program = facts.program
    if program is None:
        return False
    names = {link.key for link in held.place.chain if link.role in ("name", "attribute")}
    names |= {write.target.last_name for write, _ in written}
    return any(is_called(program, name, held.kind, by_item=held.container is not None) for name in names)


def is_used_as_owner(facts: Facts, held: Held) -> bool:
    """Tell whether the program uses what is held as the module itself, which the call would have returned.

    It is called with arguments that `eval()` or `cuda()` do not take, or asked for what a method has not.
    """
    program, name, found = facts.program, held.place.key, False
    if program is None or held.place.role not in ("attribute", "name"):
        return False
    for node, step in _expressions(program):
        if isinstance(node, ast.Call) and bare_name(node.func) == name and _leads_to(facts, node.func, step, held):
            if not node.args or (held.name in _TAKES_ARGUMENT and kind_of(facts, node.args[0], step) != "tensor"):
                return False  # called as what it is
            found = True
        elif isinstance(node, ast.Attribute) and bare_name(node.value) == name and node.attr not in _OF_METHODS:
            found = found or _leads_to(facts, node.value, step, held)
    return found


def _expressions(program: Program) -> Iterator[tuple[ast.AST, Step]]:
    return ((node, step) for step in program.steps for own in step.own_expressions() for node in ast.walk(own))


def _leads_to(facts: Facts, node: ast.expr, step: Step, held: Held) -> bool:
    """Tell whether a path is where the method is held, or may be: an attribute of that name of the same class."""
    value = live_value(facts, node, step)
    if type(value) in _METHODS:
        return bool(value.__name__ == held.name)
    owner = type(held.place.owner).__name__
    return step.scope.class_name == owner and isinstance(node, ast.Attribute)


def is_called(
    program: Program, name: str, kind: TorchKind, *, by_item: bool, scope: Scope | None = None, depth: int = 3
) -> bool:
    """Tell whether the program calls what a variable or attribute holds, or hands a module's method on.

    Args:
        program: the cell's statements.
        name: the variable or attribute.
        kind: whose method is held.
        by_item: the variable is a container, and its elements are in question.
        scope: the function whose variable it is; by default every mention of the name counts.
        depth: how many functions deep a value is followed that is handed on.
    """
    calls = [(call, step) for call, step in program.calls if scope is None or step.scope is scope]
    called = {ref.root for call, _ in calls if (ref := ref_of(call.func)) is not None and not ref.steps}
    for call, _ in calls:
        function = call.func
        if isinstance(function, (ast.Subscript, ast.Call)) and name in _names(function):
            return True
        if not by_item and bare_name(function) == name:
            return True
        handed = any(bare_name(argument) == name for argument in [*call.args, *(k.value for k in call.keywords)])
        if handed and any(isinstance(argument, ast.Lambda) for argument in call.args):
            return True
        if handed and kind != "tensor" and bare_name(function) not in _TAKES_NO_FUNCTION:
            return True
        if handed and depth and _calls_parameter(program, call, name, kind, by_item=by_item, depth=depth - 1):
            return True
    steps = [step for step in program.steps if scope is None or step.scope is scope]
    for write in program.writes:
        if (
            write.kind == "bind"
            and (scope is None or write.step.scope is scope)
            and write.target.root in called
            and name in _names(write.value)
            and write.target.root != name
        ):
            return True
    return any(
        name in _names(node.iter) and called & read_names(node.target)
        for step in steps
        for node in _comprehensions(step.node)
    )


def _calls_parameter(
    program: Program, call: ast.Call, name: str, kind: TorchKind, *, by_item: bool, depth: int
) -> bool:
    """Tell whether a function of the program calls what it is given under a name, or its elements."""
    for scope in program.scopes:
        if not any(known.node is call for known in (program.callers(scope) if scope.name else ())):
            continue
        method = scope.class_name is not None
        given = dict(zip(scope.parameters[1 if method else 0 :], call.args, strict=False))
        given |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
        for parameter, argument in given.items():
            if bare_name(argument) == name and is_called(
                program, parameter, kind, by_item=by_item, scope=scope, depth=depth
            ):
                return True
    return False


def _comprehensions(statement: ast.stmt) -> Iterator[ast.comprehension]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.comprehension))


def _names(node: ast.AST | None) -> set[str]:
    """Return the variables and attributes that an expression mentions."""
    if node is None:
        return set()
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return read_names(node) | attributes
