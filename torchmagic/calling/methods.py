"""Methods of PyTorch's objects that the cell names without calling them, and whether a call was meant."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torchmagic.calling.consumers import consumes, fails_here, stores
from torchmagic.calling.held_methods import is_called
from torchmagic.checking.expressions import kind_of, live_value
from torchmagic.checking.facts import Facts
from torchmagic.kinds import (
    ACTIONS,
    VALUES,
    TorchKind,
    is_complete_call,
    is_from_torch,
    is_inplace,
    kind_of_value,
    name_of,
)
from torchmagic.kinds import needs_no_argument as complete
from torchmagic.namespace.resolve import MISSING
from torchmagic.source import Step, ref_of, writes_of
from torchmagic.source.refs import bare_name
from torchmagic.source.uses import Use, uses_of

_BOUND = (types.MethodType, types.BuiltinFunctionType)
_FUNCTIONS = (types.FunctionType, types.BuiltinFunctionType)


@dataclass(frozen=True, eq=False)
class Uncalled:
    """An expression that names a method, or a function of torch, without a call."""

    use: Use
    node: ast.Attribute | ast.Name
    name: str
    kind: TorchKind | Literal["function"]
    value: Any

    @property
    def step(self) -> Step:
        """The statement it stands in."""
        return self.use.step

    @property
    def is_value(self) -> bool:
        """Whether the method is called for its result and needs no argument."""
        if self.kind == "function":
            own = name_of(self.value)
            return own.startswith("is_") or own.endswith("_count")
        return self.name in VALUES[self.kind]

    @property
    def is_action(self) -> bool:
        """Whether the method is called for what it does and needs no argument."""
        if self.kind == "function":
            return not issubclass(type(self.value), type) and is_complete_call(self.value)
        return self.name in ACTIONS[self.kind] or (self.kind == "tensor" and is_inplace(self.name))

    @property
    def needs_no_argument(self) -> bool:
        """Whether a pair of parentheses makes it right."""
        return is_complete_call(self.value) if self.kind == "function" else complete(self.kind, self.name)


def uncalled(facts: Facts) -> Iterator[Uncalled]:
    """Yield the methods that the statements of the cell name without calling them."""
    for step in facts.program.steps if facts.program is not None else ():
        if step.scope.unit.is_cell:
            for use in uses_of(step, (ast.Attribute, ast.Name)):
                if use.kind not in ("call", "other") and (found := _method(facts, use)) is not None:
                    yield found


def _method(facts: Facts, use: Use) -> Uncalled | None:
    node = use.node
    if isinstance(node, ast.Name):
        return _imported(facts, node, use)
    if not isinstance(node, ast.Attribute):
        return None
    value = live_value(facts, node, use.step)
    if type(value) in _BOUND and (kind := kind_of_value(value.__self__)) is not None:
        return Uncalled(use, node, node.attr, kind, value)
    if type(value) in _FUNCTIONS or issubclass(type(value), type):
        return Uncalled(use, node, node.attr, "function", value) if is_from_torch(value) else None
    if value is not MISSING or node.attr.startswith("__"):
        return None
    kind_read = kind_of(facts, node.value, use.step) or kind_by_use(facts, node, use)
    if kind_read is not None and complete(kind_read, node.attr):
        return Uncalled(use, node, node.attr, kind_read, MISSING)
    return None


def _imported(facts: Facts, node: ast.Name, use: Use) -> Uncalled | None:
    """Return a function or class of torch that a plain name stands for: `from torch import no_grad`."""
    value = live_value(facts, node, use.step)
    is_function = type(value) in _FUNCTIONS and kind_of_value(getattr(value, "__self__", None)) is None
    if not (is_function or issubclass(type(value), type)) or not is_from_torch(value):
        return None
    return Uncalled(use, node, node.id, "function", value)


def kind_by_use(facts: Facts, node: ast.Attribute, use: Use) -> TorchKind | None:
    """Judge a path in a function that nothing explains, by the methods of torch that the function calls on it.

    A bare `opt.zero_grad` needs no more evidence: no other object has an attribute that is worth a line of its own.
    """
    scope, path = use.step.scope, ref_of(node.value)
    if path is None or isinstance(scope.node, ast.Module) or scope.owner_of(path.root).unit is not scope.unit:
        return None
    if live_value(facts, node.value, use.step) is not MISSING or _is_defined_here(facts, node.attr):
        return None
    called = {
        call.func.attr
        for call, step in (facts.program.calls if facts.program is not None else ())
        if step.scope.unit is scope.unit and isinstance(call.func, ast.Attribute) and ref_of(call.func.value) == path
        if step.scope is scope or (step.scope.class_name is not None and step.scope.class_name == scope.class_name)
    }
    for kind, telling in _TELLING.items():
        if called & telling or (use.kind == "statement" and node.attr in telling):
            return kind
    return "optimizer" if use.kind == "statement" and node.attr == "step" else None


_TELLING: dict[TorchKind, frozenset[str]] = {
    "tensor": frozenset({"backward", "detach", "requires_grad_", "retain_grad", "detach_"}),
    "optimizer": frozenset({"zero_grad", "add_param_group"}),
    "module": frozenset({"eval", "train", "parameters", "named_parameters", "load_state_dict"}),
}
"""Methods by whose names torch's objects are known."""


def _is_defined_here(facts: Facts, name: str) -> bool:
    """Tell whether a class of the program defines a method or property of this name itself."""
    scopes = facts.program.scopes if facts.program is not None else []
    return any(scope.name == name and scope.class_name is not None for scope in scopes)


def is_mistake(facts: Facts, method: Uncalled) -> bool:
    """Tell whether the result of the call was meant where the method stands."""
    use, parent = method.use, method.use.parent
    enters = isinstance(parent, ast.Call) and bare_name(parent.func) == "enter_context"
    if use.kind == "with" or enters:
        return "__enter__" not in _names_of(type(method.value))
    if use.kind in ("arithmetic", "iteration", "subscript"):
        is_class = issubclass(type(method.value), type)
        return not is_class and (
            method.is_value or not (isinstance(parent, ast.Subscript) and use.kind == "arithmetic")
        )
    if use.kind == "statement":
        return method.is_action or method.is_value
    if use.kind == "comparison":
        return isinstance(parent, ast.Compare) and _compares_numbers(facts, method, parent)
    if use.kind == "attribute":
        return isinstance(parent, ast.Attribute) and _lacks(method, parent.attr)
    if use.kind == "format":
        return method.is_value and not _shows_objects(parent)
    if isinstance(parent, ast.Call):
        if stores(parent):
            return _is_stored_as_value(facts, method) or (method.is_value and fails_here(facts, use))
        return method.needs_no_argument and consumes(facts, parent, method.use, is_value=method.is_value)
    if use.kind == "truth":
        return method.is_value
    return _is_stored_as_value(facts, method)


def _is_stored_as_value(facts: Facts, method: Uncalled) -> bool:
    """Tell whether a tensor's method is stored or returned and nothing in the program calls it there.

    What is stored under a variable that still exists is judged by the live object instead.
    """
    if not method.is_value or method.kind != "tensor" or facts.program is None:
        return False
    if method.use.kind == "return":
        names = {method.step.scope.name}
        return not any(is_called(facts.program, name, "tensor", by_item=True) for name in names)
    targets = [write.target for write in writes_of(method.step) if write.kind in ("bind", "store", "augment")]
    by_item = method.use.is_part or method.use.kind == "argument" or isinstance(method.use.parent, ast.Subscript)
    return bool(targets) and not any(
        is_called(facts.program, target.last_name, "tensor", by_item=by_item) for target in targets
    )


def _names_of(kind: type) -> set[str]:
    return {name for base in type.__getattribute__(kind, "__mro__") for name in type.__getattribute__(base, "__dict__")}


def _compares_numbers(facts: Facts, method: Uncalled, compare: ast.Compare) -> bool:
    """Tell whether a comparison is one of sizes; methods may be compared with each other and with None."""
    if any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in compare.ops):
        return True
    if not all(isinstance(op, (ast.Eq, ast.NotEq)) for op in compare.ops):
        return False
    others = [side for side in (compare.left, *compare.comparators) if side is not method.use.via]
    return method.is_value and all(
        (isinstance(side, ast.Constant) and type(side.value) in (int, float, bool))
        or kind_of(facts, side, method.step) == "tensor"
        for side in others
    )


def _lacks(method: Uncalled, attribute: str) -> bool:
    """Tell whether a method has no attribute of a name, so that its result must have been meant."""
    if attribute.startswith("__") or method.kind == "function":
        return False
    function = getattr(method.value, "__func__", None) if type(method.value) is types.MethodType else None
    if function is not None and attribute in _names_of(type(function)) | set(getattr(function, "__dict__", ())):
        return False
    return method.value is MISSING or type(method.value) in _BOUND


def _shows_objects(parent: ast.AST) -> bool:
    """Tell whether a format asks for what an object looks like: `{x!r}`, `%r`."""
    if isinstance(parent, ast.FormattedValue):
        return parent.conversion == ord("r")
    left = parent.left if isinstance(parent, ast.BinOp) else None
    return isinstance(left, ast.Constant) and isinstance(left.value, str) and "%r" in left.value
