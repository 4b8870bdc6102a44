"""What stands for an attribute inside a function of its class: `self.name`, local names, elements of a loop."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from torchmagic.source.loop_names import names_drawn_from
from torchmagic.source.refs import bare_name
from torchmagic.source.scopes import Step
from torchmagic.source.transfers import is_transfer
from torchmagic.source.writes import writes_of

ASKS_ONLY = frozenset({"shape", "dtype", "ndim", "size", "dim", "numel", "requires_grad", "tolist", "item"})
_COPIES = frozenset({"list", "tuple", "sorted", "reversed"})
LOOKS_THROUGH = frozenset({"values", "items", "get", "setdefault"})


@dataclass(frozen=True)
class Attribute:
    """The attribute in question, and names that are no tensors of another device beside it.

    `classes` are the class and its bases; `plain` are the other attributes that no move reaches; `modules` are the
    imported modules; `inner` are attributes of what it holds, one of which leads to the tensors in question.
    """

    name: str
    classes: frozenset[str]
    plain: frozenset[str] = frozenset()
    modules: frozenset[str] = frozenset()
    inner: frozenset[str] = frozenset()


@dataclass
class Names:
    """What stands for the attribute inside one function: the object it is an attribute of, and local names for it."""

    owners: frozenset[str]
    aliases: set[str]


def new_aliases(step: Step, attribute: Attribute, names: Names) -> set[str]:
    """Return the local names that a statement makes stand for the attribute, an element of it, or what it becomes."""
    found = {
        write.target.root
        for write in writes_of(step)
        if write.kind == "bind" and write.how != "for" and not write.target.steps and write.value is not None
        if not any(isinstance(part, (ast.BinOp, ast.Call)) for part in ast.walk(write.value))
        or is_it(_innermost(write.value, attribute.modules), attribute.name, names)
        if _mentions(write.value, attribute, names)
    }
    loops: list[ast.For | ast.AsyncFor | ast.comprehension] = []
    loops += [step.node] if isinstance(step.node, (ast.For, ast.AsyncFor)) else []
    loops += [part for own in step.own_expressions() for part in ast.walk(own) if isinstance(part, ast.comprehension)]
    for loop in loops:
        found |= names_drawn_from(loop.target, loop.iter, lambda part: _mentions(part, attribute, names))
    return found


def _mentions(node: ast.expr, attribute: Attribute, names: Names) -> bool:
    return any(isinstance(part, ast.expr) and is_it(part, attribute.name, names) for part in ast.walk(node))


def is_it(node: ast.expr, name: str, names: Names) -> bool:
    """Tell whether an expression is the attribute or a local name for it, not what lies inside."""
    if isinstance(node, ast.Attribute):
        owner = node.value
        if isinstance(owner, ast.Attribute) and owner.attr == "__class__":
            owner = owner.value
        if isinstance(owner, ast.Call) and bare_name(owner.func) == "type" and len(owner.args) == 1:
            owner = owner.args[0]
        return node.attr == name and isinstance(owner, ast.Name) and owner.id in names.owners
    if isinstance(node, ast.Call) and bare_name(node.func) == "getattr" and len(node.args) > 1:
        owner, key = node.args[:2]
        written = key.value == name if isinstance(key, ast.Constant) else isinstance(key, ast.JoinedStr)
        return written and isinstance(owner, ast.Name) and owner.id in names.owners
    return isinstance(node, ast.Name) and node.id in names.aliases and isinstance(node.ctx, ast.Load)


def continues(parent: ast.AST, inner: ast.AST) -> bool:
    """Tell whether `parent` is an attribute, an item or a method call of `inner`."""
    if isinstance(parent, (ast.Attribute, ast.Subscript)):
        return parent.value is inner
    return isinstance(parent, ast.Call) and parent.func is inner and isinstance(inner, ast.Attribute)


def wrapped(node: ast.AST, modules: frozenset[str]) -> ast.expr | None:
    """Return the one value that an expression computes with, if nothing else goes in: `torch.cos(v)`, `-v`, `2 * v`."""
    if isinstance(node, ast.UnaryOp):
        return node.operand
    if isinstance(node, ast.BinOp):
        sides = [side for side in (node.left, node.right) if not isinstance(side, ast.Constant)]
        return sides[0] if len(sides) == 1 else None
    if isinstance(node, ast.Call) and bare_name(node.func) in _COPIES and isinstance(node.func, ast.Name):
        return node.args[0] if len(node.args) == 1 else None
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr in ASKS_ONLY:
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
        inner = wrapped(node, modules)
        if inner is None and isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            passes = node.func.attr in LOOKS_THROUGH or all(isinstance(a, ast.Constant) for a in node.args)
            inner = node.func.value if passes and not is_transfer(node) and node.func.attr not in ASKS_ONLY else None
        if inner is None and isinstance(node, ast.Subscript):
            inner = node.value
        if inner is None:
            return node
        node = inner
