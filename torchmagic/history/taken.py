"""Whether everything that uses what is held takes it without its history: `torch.stack(values).detach()`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from torchmagic.history.held import Held
from torchmagic.source import Program, Step
from torchmagic.source.refs import bare_name, read_names

_METHODS = frozenset({"detach", "item", "tolist", "numpy", "argmax", "size", "dim", "numel", "clear"})
_FUNCTIONS = frozenset({"int", "float", "bool", "len", "print", "display", "str", "repr", "type", "isinstance"})
_LOOPS = frozenset({"max", "min", "sorted", "list", "tuple", "set", "iter", "enumerate"})
_ATTRIBUTES = frozenset({"data", "shape", "dtype", "device", "ndim"})
_UNRECORDED = frozenset({"no_grad", "inference_mode"})
_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Use(NamedTuple):
    """A place that reads a value: the nodes around it, the innermost first, and its statement."""

    node: ast.expr
    around: tuple[ast.AST, ...]
    step: Step


def is_taken_without_history(held: Held, program: Program) -> bool:
    """Tell whether statements use what is held, beside those that fill it, and none of them needs its history."""
    chain = held.holder.chain
    spoken = next((str(link.key) for link in reversed(chain) if link.role in ("attribute", "name")), held.holder.root)
    keys = {link.key for link in chain if link.role == "item"}
    by_key = spoken if all(link is not None and issubclass(type(link.owner), dict) for link in held.entries) else None
    uses = _Uses(program, {id(step) for step in held.accumulation.context.steps}, keys, by_key)
    if spoken == held.holder.root:
        return uses.need_no_history(spoken)
    if any(not uses.leads_on(use) for use in uses.of(held.holder.root)):
        return False  # the object itself goes where nothing of it can be seen
    return uses.need_no_history(spoken, is_attribute=True)


class _Uses:
    """Follows values through the variables that take them over.

    Args:
        program: the program.
        filling: the identities of the statements that fill the container.
        keys: the keys under which an outer container has the values.
        by_key: the name of the container, when it is a dict: who loops over it gets its keys.
    """

    def __init__(self, program: Program, filling: set[int], keys: set[object], by_key: str | None) -> None:
        self._program, self._filling, self._keys, self._by_key = program, filling, keys, by_key
        self._known: set[str] = set()

    def of(self, name: str, *, is_attribute: bool = False) -> list[_Use]:
        """Return the places that read a variable, or an attribute of that name."""
        return [
            use
            for step in self._program.steps
            if id(step) not in self._filling
            for own in step.own_expressions()
            for use in _walk(own, (), step)
            if _is_read_of(use.node, name, is_attribute=is_attribute) and not self._is_other_entry(use)
        ]

    def _is_other_entry(self, use: _Use) -> bool:
        """Tell whether a place reads an entry under another key than those of the values."""
        index = use.around[0].slice if use.around and isinstance(use.around[0], ast.Subscript) else None
        return bool(self._keys) and isinstance(index, ast.Constant) and index.value not in self._keys

    def need_no_history(self, name: str, *, is_attribute: bool = False) -> bool:
        """Tell whether there are such places, and all take the value without its history."""
        if name in self._known:
            return True
        self._known.add(name)
        uses = self.of(name, is_attribute=is_attribute)
        return bool(uses) and all(self._is_without(use) for use in uses)

    def leads_on(self, use: _Use) -> bool:
        """Tell whether the text follows an object: to an attribute of it, or into a function of the program."""
        outer = use.around[0] if use.around else None
        if isinstance(outer, ast.Call) and outer.func is not use.node:
            name = bare_name(outer.func)
            return name in _FUNCTIONS or any(scope.name == name for scope in self._program.scopes)
        return isinstance(outer, ast.Attribute)

    def _is_without(self, use: _Use) -> bool:
        if _is_unrecorded(use.step, self._program) or self._gets_keys(use):
            return True
        inner: ast.AST = use.node
        for node in use.around:
            if _takes_no_history(node, inner) or (isinstance(node, ast.Call) and self._handed_without(node, inner)):
                return True
            if isinstance(node, ast.comprehension) and inner is node.iter:
                return self._drawn_without(use, node)
            inner = node
        return self._bound_without(use)

    def _gets_keys(self, use: _Use) -> bool:
        """Tell whether a place loops over the dict, or has a function that does, and so gets its keys."""
        if bare_name(use.node) != self._by_key:
            return False
        outer = use.around[0] if use.around else None
        if isinstance(outer, ast.Call):
            return outer.func is not use.node and bare_name(outer.func) in _LOOPS
        return isinstance(outer, ast.comprehension) or (outer is None and isinstance(use.step.node, ast.For))

    def _handed_without(self, call: ast.Call, argument: ast.AST) -> bool:
        """Tell whether the functions of the program that a call hands a value to need no history of it."""
        named = [scope for scope in self._program.scopes if scope.name and scope.name == bare_name(call.func)]
        places = [keyword.arg for keyword in call.keywords if keyword.value is argument]
        index = next((i for i, each in enumerate(call.args) if each is argument), None)
        for scope in named:
            names = [*places, *(scope.parameters[index + bool(scope.class_name) :][:1] if index is not None else [])]
            if not names or not all(name is not None and self.need_no_history(name) for name in names):
                return False
        return bool(named)

    def _drawn_without(self, use: _Use, generator: ast.comprehension) -> bool:
        """Tell whether what a comprehension draws, or the comprehension itself, is used without history."""
        index = next(i for i, node in enumerate(use.around) if isinstance(node, _COMPREHENSIONS))
        whole = use.around[index]
        names = read_names(generator.target)
        inside = [
            each
            for each in _walk(whole, use.around[index + 1 :], use.step)
            if isinstance(each.node, ast.Name) and each.node.id in names and isinstance(each.node.ctx, ast.Load)
        ]
        outside = _Use(generator.iter, use.around[index:], use.step)
        return (bool(inside) and all(map(self._is_without, inside))) or self._is_without(outside)

    def _bound_without(self, use: _Use) -> bool:
        """Tell whether a statement gives the value to variables that are used without history."""
        node = use.step.node
        targets: list[ast.expr] = []
        if isinstance(node, ast.Assign):
            targets = node.targets
        elif isinstance(node, (ast.For, ast.AsyncFor)):
            targets = [node.target]
        elif isinstance(node, ast.Expr):
            return not any(isinstance(around, ast.Call) for around in use.around)
        parts = [part for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
        plain = all(isinstance(target, (ast.Name, ast.Tuple)) for target in targets)
        used = [part.id for part in parts if self.of(part.id) or len(parts) == 1]
        return bool(used) and plain and all(map(self.need_no_history, used))


def _walk(node: ast.AST, around: tuple[ast.AST, ...], step: Step) -> Iterator[_Use]:
    if isinstance(node, ast.expr):
        yield _Use(node, around, step)
    for child in ast.iter_child_nodes(node):
        yield from _walk(child, (node, *around), step)


def _is_read_of(node: ast.expr, name: str, *, is_attribute: bool) -> bool:
    if is_attribute:
        return isinstance(node, ast.Attribute) and node.attr == name and isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Load)


def _takes_no_history(node: ast.AST, inner: ast.AST) -> bool:
    """Tell whether an expression makes of its part something that has no history, or asks for its form alone."""
    if isinstance(node, ast.Attribute):
        return node.attr in _ATTRIBUTES | _METHODS
    if isinstance(node, ast.Call):
        return inner is not node.func and bare_name(node.func) in _FUNCTIONS
    return isinstance(node, (ast.Compare, ast.JoinedStr))


def _is_unrecorded(step: Step, program: Program) -> bool:
    """Tell whether a statement stands where nothing is recorded: under `no_grad`, or in a function decorated so."""
    decorators = getattr(step.scope.node, "decorator_list", ())
    blocks = [
        item.context_expr
        for other in program.steps
        if isinstance(other.node, ast.With)
        and other.scope is step.scope
        and other.order < step.order
        and step.node.lineno <= (other.node.end_lineno or 0)
        for item in other.node.items
    ]
    named = [node.func if isinstance(node, ast.Call) else node for node in [*decorators, *blocks]]
    return any(bare_name(node) in _UNRECORDED for node in named)
