"""How the methods of a class use one of its attributes."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator
from dataclasses import dataclass, replace

from torchmagic.source.attribute_names import (
    ASKS_ONLY,
    LOOKS_THROUGH,
    Attribute,
    Names,
    continues,
    is_it,
    new_aliases,
    wrapped,
)
from torchmagic.source.attribute_renewals import is_renewed
from torchmagic.source.program import Program
from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Scope, Step
from torchmagic.source.transfers import is_transfer, transfers

_PLACES_ITSELF = frozenset({"device", "type_as", "get_device", "is_cuda"})
_FORWARD = frozenset({"forward", "__call__"})


@dataclass(frozen=True)
class AttributeUses:
    """What the methods do with `self.name`.

    `read`: some statement mentions it; `mixed`: it meets other tensors; `looked_after`: its device is cared for.
    """

    mixed: bool = False
    looked_after: bool = False
    read: bool = False

    def __or__(self, other: AttributeUses) -> AttributeUses:
        return AttributeUses(
            self.mixed or other.mixed, self.looked_after or other.looked_after, self.read or other.read
        )


def attribute_uses(program: Program, attribute: Attribute, *, through: int = 2) -> AttributeUses:
    """Read the methods of a class that its forward pass or the cell runs.

    Args:
        program: the cell and the functions it uses.
        attribute: what to look for.
        through: how many properties and methods that return it are followed.
    """
    found = AttributeUses()
    for scope in _methods(program, attribute.classes):
        names = Names(attribute.classes | {scope.parameters[0]}, set())
        steps = [step for step in program.steps if step.scope is scope]
        moves_something = any(True for step in steps for own in step.own_expressions() for _ in transfers(own))
        compares = any(map(_compares_devices, steps))
        for step in steps:
            if is_renewed(program, step, steps, attribute, names.owners):
                continue
            names.aliases |= new_aliases(step, attribute, names)
            for node, chain in _uses(step, attribute, names):
                use = _use(program, node, chain, attribute, names)
                cared = use.looked_after or (use.mixed and moves_something) or compares
                found |= AttributeUses(use.mixed, cared, read=True)
                if isinstance(chain[-1], ast.Return):
                    if scope.name in _FORWARD:
                        found |= AttributeUses(mixed=True)  # a layer's result is computed with
                    elif through:
                        returned = replace(attribute, name=scope.name, inner=frozenset())
                        found |= attribute_uses(program, returned, through=through - 1)
    return found


def _use(program: Program, node: ast.expr, chain: list[ast.AST], attribute: Attribute, names: Names) -> AttributeUses:
    """Judge one mention of the attribute."""
    if any(_cares(part) for part in chain):
        return AttributeUses(looked_after=True)
    fields = {part.attr for part in chain if isinstance(part, ast.Attribute)}
    unpacked = isinstance(node, ast.Name) and not fields
    if attribute.inner and not (fields & attribute.inner or unpacked):
        return AttributeUses()  # another field of the object
    if not _mixes(program, node, chain, attribute, names):
        return AttributeUses()
    handed = (part for part in chain if getattr(part, "func", None) is not node)  # `self.name(x)` asks for it
    return AttributeUses(mixed=True, looked_after=any(_is_cared_for_inside(program, part) for part in handed))


def is_read_anywhere(program: Program, attribute: Attribute) -> bool:
    """Tell whether any statement outside of the constructors reads an attribute of this name."""
    return any(
        (isinstance(node, ast.Attribute) and node.attr == attribute.name and isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.Constant) and node.value == attribute.name)
        for step in program.steps
        if not (step.scope.class_name in attribute.classes and step.scope.name == "__init__")
        for own in step.own_expressions()
        for node in ast.walk(own)
    )


def _methods(program: Program, classes: frozenset[str]) -> Iterator[Scope]:
    """Yield the forward method, the methods and properties it uses, and those that are called from outside.

    A method whose result is moved where it is called, `net.prepare(x).to(device)`, works on the host.
    """
    methods = [s for s in program.scopes if s.class_name in classes and s.parameters and s.name != "__init__"]
    used = set(_FORWARD)
    moved = {
        id(part)
        for call, _ in program.calls
        if is_transfer(call) and isinstance(call.func, ast.Attribute)
        for part in ast.walk(call.func.value)
    }
    for call, step in program.calls:
        if isinstance(call.func, ast.Attribute) and step.scope.class_name not in classes and id(call) not in moved:
            used.add(call.func.attr)
    while True:
        reached = [scope for scope in methods if scope.name in used]
        inner = {
            node.attr
            for step in program.steps
            if step.scope in reached
            for own in step.own_expressions()
            for node in ast.walk(own)
            if isinstance(node, ast.Attribute)
        }
        if inner <= used:
            return iter(reached)
        used |= inner


def _uses(step: Step, attribute: Attribute, names: Names) -> Iterator[tuple[ast.expr, list[ast.AST]]]:
    """Yield each mention of the attribute or of a local name for it, with what is done to it, innermost first."""
    parents = {
        child: node for own in step.own_expressions() for node in ast.walk(own) for child in ast.iter_child_nodes(node)
    }
    own_nodes = [node for own in step.own_expressions() for node in ast.walk(own)]
    found = [node for node in own_nodes if isinstance(node, ast.expr) and is_it(node, attribute.name, names)]
    for node in found:
        chain: list[ast.AST] = []
        inner: ast.AST = node
        while (parent := parents.get(inner)) is not None and (
            continues(parent, inner) or wrapped(parent, attribute.modules) is inner
        ):
            chain.append(parent)
            inner = parent
        chain.append(parent if parent is not None else step.node)
        yield node, chain


def _cares(part: ast.AST) -> bool:
    if isinstance(part, ast.Subscript):
        return any(isinstance(inner, ast.Attribute) and inner.attr == "device" for inner in ast.walk(part.slice))
    return is_transfer(part) or (isinstance(part, ast.Attribute) and part.attr in _PLACES_ITSELF)


def _compares_devices(step: Step) -> bool:
    """Tell whether a statement asks if two devices are the same, as what is built anew for each of them does."""
    asked = (part for own in step.own_expressions() for part in ast.walk(own) if isinstance(part, ast.Compare))
    return any("device" in bare_name(part) for test in asked for part in (test.left, *test.comparators))


def _is_cared_for_inside(program: Program, part: ast.AST) -> bool:
    """Tell whether a call hands something to a function of the program that moves what it is given."""
    if not isinstance(part, ast.Call) or not bare_name(part.func):
        return False
    inside = [step for step in program.steps if step.scope.name == bare_name(part.func)]
    return any(
        _cares(node) for step in inside for own in step.own_expressions() for node in ast.walk(own)
    )  # fmt: skip


def _mixes(program: Program, node: ast.expr, chain: list[ast.AST], attribute: Attribute, names: Names) -> bool:
    """Tell whether the attribute's values meet those of something else, in an operator or a call."""
    if any(isinstance(part, ast.Attribute) and part.attr in ASKS_ONLY for part in chain):
        return False
    end = chain[-1]
    if isinstance(end, ast.keyword):
        return True
    meetings = [part for part in chain[:-1] if _takes_operands(program, part)]  # self.mask.mul(x)
    is_layer = isinstance(end, ast.Call) and end.func in (node, *chain[:-1])  # a layer of a list is called
    if isinstance(end, (ast.BinOp, ast.Compare, ast.AugAssign)) or is_layer or _takes_operands(program, end):
        meetings.append(end)
    own = {id(part) for part in ast.walk(node)}
    for part in chain:
        own |= {id(inner) for inner in ast.walk(part.slice)} if isinstance(part, ast.Subscript) else set()
    return any(_has_stranger(meeting, own, attribute, names) for meeting in meetings)


def _takes_operands(program: Program, part: ast.AST) -> bool:
    """Tell whether a node is a call of a method, or of a function of the program, with arguments."""
    if not isinstance(part, ast.Call) or not part.args:
        return False
    if isinstance(part.func, ast.Attribute):
        return part.func.attr not in LOOKS_THROUGH
    name = bare_name(part.func)
    is_users = any(scope.name == name and scope.class_name is None for scope in program.scopes)
    return bool(name) and is_users and not hasattr(builtins, name)


def _has_stranger(meeting: ast.AST, own: set[int], attribute: Attribute, names: Names) -> bool:
    """Tell whether an expression names anything besides the attribute that may be a tensor of another device."""
    if isinstance(meeting, ast.AugAssign) and not any(id(part) in own for part in ast.walk(meeting.value)):
        return False
    functions = {id(part.func) for part in ast.walk(meeting) if isinstance(part, ast.Call)}
    known = names.owners | attribute.modules | names.aliases
    for part in ast.walk(meeting):
        if id(part) in own or (id(part) in functions and isinstance(part, ast.Name)):
            continue
        if isinstance(part, ast.Name) and part.id not in known:
            return True
        is_own = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in names.owners
        if is_own and part.attr not in attribute.plain | {attribute.name}:  # type: ignore[attr-defined]
            return True
    return False
