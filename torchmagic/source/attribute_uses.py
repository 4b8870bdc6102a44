"""How the methods of a class use one of its attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from torchmagic.source.program import Program
from torchmagic.source.scopes import Scope, Step
from torchmagic.source.transfers import is_transfer, transfers
from torchmagic.source.writes import writes_of

_ASKS_ONLY = frozenset({"shape", "dtype", "ndim", "size", "dim", "numel", "requires_grad", "tolist", "item"})
_PLACES_ITSELF = frozenset({"device", "type_as", "get_device", "is_cuda"})
_LOOKS_THROUGH = frozenset({"values", "items", "get"})


@dataclass(frozen=True)
class AttributeUses:
    """What the methods do with `self.name`: whether it meets other tensors, and whether its device is looked after."""

    mixed: bool = False
    looked_after: bool = False


@dataclass(frozen=True)
class Attribute:
    """The attribute in question, and names that are no tensors of another device beside it.

    `classes` are the class and its bases; `plain` are the other attributes that no move reaches; `modules` are the
    imported modules.
    """

    name: str
    classes: frozenset[str]
    plain: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()


def attribute_uses(program: Program, attribute: Attribute) -> AttributeUses:
    """Read the methods of a class that its forward pass or the cell runs."""
    mixed = looked_after = False
    for scope in _methods(program, attribute.classes):
        steps = [step for step in program.steps if step.scope is scope]
        moves_something = any(True for step in steps for own in step.own_expressions() for _ in transfers(own))
        aliases: set[str] = set()
        for step in steps:
            aliases |= _new_aliases(step, scope, attribute, aliases)
            for node, chain in _uses(step, scope, attribute, aliases):
                if any(_cares(part) for part in chain):
                    looked_after = True
                elif _mixes(node, chain, scope, attribute, aliases):
                    mixed = True
                    looked_after = looked_after or moves_something
    return AttributeUses(mixed, looked_after)


def _methods(program: Program, classes: frozenset[str]) -> Iterator[Scope]:
    """Yield the forward method, those it calls, and those that are called from outside of the class."""
    methods = [s for s in program.scopes if s.class_name in classes and s.parameters and s.name != "__init__"]
    used = {"forward", "__call__"}
    for call, step in program.calls:
        if isinstance(call.func, ast.Attribute) and step.scope.class_name not in classes:
            used.add(call.func.attr)
    while True:
        reached = [scope for scope in methods if scope.name in used]
        inner = {
            call.func.attr
            for call, step in program.calls
            if step.scope in reached and isinstance(call.func, ast.Attribute)
        }
        if inner <= used:
            return iter(reached)
        used |= inner


def _uses(
    step: Step, scope: Scope, attribute: Attribute, aliases: set[str]
) -> Iterator[tuple[ast.expr, list[ast.AST]]]:
    """Yield each mention of the attribute or of a local name for it, with what is done to it, innermost first."""
    parents = {
        child: node for own in step.own_expressions() for node in ast.walk(own) for child in ast.iter_child_nodes(node)
    }
    own_nodes = [node for own in step.own_expressions() for node in ast.walk(own)]
    found = [node for node in own_nodes if isinstance(node, ast.expr) and _is_it(node, scope, attribute.name, aliases)]
    for node in found:
        chain: list[ast.AST] = []
        inner: ast.AST = node
        while (parent := parents.get(inner)) is not None and (
            _continues(parent, inner) or _wrapped(parent, attribute.modules) is inner
        ):
            chain.append(parent)
            inner = parent
        chain.append(parent if parent is not None else step.node)
        yield node, chain


def _new_aliases(step: Step, scope: Scope, attribute: Attribute, aliases: set[str]) -> set[str]:
    """Return the local names that a statement makes stand for the attribute, an element of it, or what it becomes."""
    name = attribute.name
    return {
        write.target.root
        for write in writes_of(step)
        if write.kind == "bind" and not write.target.steps and write.value is not None
        if write.how == "for"
        or not any(isinstance(part, (ast.BinOp, ast.Call)) for part in ast.walk(write.value))
        or _is_it(_innermost(write.value, attribute.modules), scope, name, aliases)
        if any(isinstance(p, ast.expr) and _is_it(p, scope, name, aliases) for p in ast.walk(write.value))
    }


def _is_it(node: ast.expr, scope: Scope, name: str, aliases: set[str]) -> bool:
    if isinstance(node, ast.Attribute):
        return node.attr == name and isinstance(node.value, ast.Name) and node.value.id == scope.parameters[0]
    return isinstance(node, ast.Name) and node.id in aliases and isinstance(node.ctx, ast.Load)


def _continues(parent: ast.AST, inner: ast.AST) -> bool:
    """Tell whether `parent` is an attribute, an item or a method call of `inner`."""
    if isinstance(parent, (ast.Attribute, ast.Subscript)):
        return parent.value is inner
    return isinstance(parent, ast.Call) and parent.func is inner and isinstance(inner, ast.Attribute)


def _wrapped(node: ast.AST, modules: frozenset[str]) -> ast.expr | None:
    """Return the one value that an expression computes with, if nothing else goes in: `torch.cos(v)`, `-v`, `2 * v`."""
    if isinstance(node, ast.UnaryOp):
        return node.operand
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        return sides[0] if len(sides) == 1 else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr in _ASKS_ONLY:
        return None
    root = node.func.value
    while isinstance(root, ast.Attribute):
        root = root.value
    rest = [*node.args[1:], *(keyword.value for keyword in node.keywords)]
    is_function = isinstance(root, ast.Name) and root.id in modules
    return node.args[0] if is_function and node.args and all(isinstance(a, ast.Constant) for a in rest) else None


def _innermost(node: ast.expr, modules: frozenset[str]) -> ast.expr:
    """Return what an expression computes with through functions, constants, indices and methods without operands."""
    while True:
        inner = _wrapped(node, modules)
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not is_transfer(node)
        if inner is None and is_method and node.func.attr not in _ASKS_ONLY:  # type: ignore[attr-defined]
            inner = node.func.value if all(isinstance(a, ast.Constant) for a in node.args) else None  # type: ignore[attr-defined]
        if inner is None and isinstance(node, ast.Subscript):
            inner = node.value
        if inner is None:
            return node
        node = inner


def _cares(part: ast.AST) -> bool:
    return is_transfer(part) or (isinstance(part, ast.Attribute) and part.attr in _PLACES_ITSELF)


def _mixes(node: ast.expr, chain: list[ast.AST], scope: Scope, attribute: Attribute, aliases: set[str]) -> bool:
    """Tell whether the attribute's values meet those of something else, in an operator or a call."""
    if any(isinstance(part, ast.Attribute) and part.attr in _ASKS_ONLY for part in chain):
        return False
    end = chain[-1]
    if isinstance(end, ast.keyword):
        return True
    meetings = [part for part in chain[:-1] if _takes_operands(part)]  # self.mask.mul(x)
    is_layer = isinstance(end, ast.Call) and end.func in (node, *chain[:-1])  # a layer of a list is called
    if isinstance(end, (ast.BinOp, ast.Compare, ast.AugAssign)) or is_layer or _takes_operands(end):
        meetings.append(end)
    own = {id(part) for part in ast.walk(node)}
    for part in chain:
        own |= {id(inner) for inner in ast.walk(part.slice)} if isinstance(part, ast.Subscript) else set()
    return any(_has_stranger(meeting, own, scope.parameters[0], attribute, aliases) for meeting in meetings)


def _takes_operands(part: ast.AST) -> bool:
    is_method_call = isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and bool(part.args)
    return is_method_call and part.func.attr not in _LOOKS_THROUGH  # type: ignore[attr-defined]


def _has_stranger(meeting: ast.AST, own: set[int], this: str, attribute: Attribute, aliases: set[str]) -> bool:
    """Tell whether an expression names anything besides the attribute that may be a tensor of another device."""
    if isinstance(meeting, ast.AugAssign) and not any(id(part) in own for part in ast.walk(meeting.value)):
        return False
    for part in ast.walk(meeting):
        if id(part) in own:
            continue
        if isinstance(part, ast.Name) and part.id != this and part.id not in attribute.modules | aliases:
            return True
        is_own = isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == this
        if is_own and part.attr not in attribute.plain | {attribute.name}:  # type: ignore[attr-defined]
            return True
    return False
