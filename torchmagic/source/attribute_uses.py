"""How the methods of a class use one of its attributes."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
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
    mentioned: bool = False


def attribute_uses(program: Program, classes: Iterable[str], name: str) -> AttributeUses:
    """Read the methods of a class and its bases, the constructor aside."""
    mixed = looked_after = mentioned = False
    for scope in _methods(program, set(classes)):
        steps = [step for step in program.steps if step.scope is scope]
        moves_something = any(True for step in steps for own in step.own_expressions() for _ in transfers(own))
        aliases: set[str] = set()
        for step in steps:
            aliases |= _new_aliases(step, scope, name, aliases)
            for node, chain in _uses(step, scope, name, aliases):
                mentioned = True
                if any(_cares(part) for part in chain):
                    looked_after = True
                elif _mixes(node, chain):
                    mixed = True
                    looked_after = looked_after or moves_something
    return AttributeUses(mixed, looked_after, mentioned)


def _methods(program: Program, classes: set[str]) -> Iterator[Scope]:
    for scope in program.scopes:
        if scope.class_name in classes and scope.parameters and scope.name not in ("__init__", "__repr__"):
            yield scope


def _uses(step: Step, scope: Scope, name: str, aliases: set[str]) -> Iterator[tuple[ast.expr, list[ast.AST]]]:
    """Yield each mention of the attribute or of a local name for it, with what is done to it, innermost first."""
    parents = {
        child: node for own in step.own_expressions() for node in ast.walk(own) for child in ast.iter_child_nodes(node)
    }
    own_nodes = [node for own in step.own_expressions() for node in ast.walk(own)]
    found = [node for node in own_nodes if isinstance(node, ast.expr) and _is_it(node, scope, name, aliases)]
    for node in found:
        chain: list[ast.AST] = []
        inner: ast.AST = node
        while (parent := parents.get(inner)) is not None and _continues(parent, inner):
            chain.append(parent)
            inner = parent
        chain.append(parent if parent is not None else step.node)
        yield node, chain


def _new_aliases(step: Step, scope: Scope, name: str, aliases: set[str]) -> set[str]:
    """Return the local names that a statement makes stand for the attribute or for an element of it."""
    return {
        write.target.root
        for write in writes_of(step)
        if write.kind == "bind" and not write.target.steps and write.value is not None
        if write.how == "for" or not any(isinstance(part, (ast.BinOp, ast.Call)) for part in ast.walk(write.value))
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


def _cares(part: ast.AST) -> bool:
    return is_transfer(part) or (isinstance(part, ast.Attribute) and part.attr in _PLACES_ITSELF)


def _mixes(node: ast.expr, chain: list[ast.AST]) -> bool:
    """Tell whether the attribute's values meet those of another operand."""
    if any(isinstance(part, ast.Attribute) and part.attr in _ASKS_ONLY for part in chain):
        return False
    for part in chain:
        if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute) and part.args:
            return part.func.attr not in _LOOKS_THROUGH  # self.mask.mul(x)
    end = chain[-1]
    inside = [node, *chain[:-1]]
    if isinstance(end, ast.BinOp):
        return not isinstance(end.right if end.left in inside else end.left, ast.Constant)
    if isinstance(end, ast.Compare):
        return not any(isinstance(side, ast.Constant) for side in (end.left, *end.comparators))
    if isinstance(end, ast.AugAssign):
        return not isinstance(end.value, ast.Constant) and end.value in inside
    if isinstance(end, ast.keyword):
        return True
    if isinstance(end, ast.Call):
        if end.func in inside:
            return bool(end.args or end.keywords)  # a layer of a list is called
        return _computes(end)
    return False


def _computes(call: ast.Call) -> bool:
    """Tell whether a call takes the attribute beside something else: a torch function, a method, a layer."""
    function = call.func
    if isinstance(function, ast.Name) or any(isinstance(a, ast.Starred) for a in call.args):
        return False
    return len(call.args) + len(call.keywords) > 1 or isinstance(function, ast.Attribute)
