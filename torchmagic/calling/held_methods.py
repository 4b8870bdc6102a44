"""Variables and containers that hold a bound method of a tensor, module or optimizer instead of a value."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from torchmagic.checking.facts import Facts
from torchmagic.kinds import VALUES, TorchKind, is_from_torch, kind_of_value, needs_no_argument
from torchmagic.namespace import Place, Seen
from torchmagic.namespace.children import elements_of
from torchmagic.source import Program, Write, ref_of
from torchmagic.source.refs import bare_name, read_names

_METHODS = (types.MethodType, types.BuiltinFunctionType)
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


def is_called(program: Program, name: str, kind: TorchKind, *, by_item: bool) -> bool:
    """Tell whether the program calls what a variable or attribute holds, or hands a module's method on.

    Args:
        program: the cell's statements.
        name: the variable or attribute.
        kind: whose method is held.
        by_item: the variable is a container, and its elements are in question.
    """
    called = {ref.root for call, _ in program.calls if (ref := ref_of(call.func)) is not None and not ref.steps}
    for call, _ in program.calls:
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
    for write in program.writes:
        if (
            write.kind == "bind"
            and write.target.root in called
            and name in _names(write.value)
            and write.target.root != name
        ):
            return True
    return any(
        name in _names(node.iter) and called & read_names(node.target)
        for step in program.steps
        for node in _comprehensions(step.node)
    )


def _comprehensions(statement: ast.stmt) -> Iterator[ast.comprehension]:
    return (node for node in ast.walk(statement) if isinstance(node, ast.comprehension))


def _names(node: ast.AST | None) -> set[str]:
    """Return the variables and attributes that an expression mentions."""
    if node is None:
        return set()
    attributes = {part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return read_names(node) | attributes
