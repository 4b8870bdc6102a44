"""What a written expression is to PyTorch: by the live object it names, else by what the text makes of it."""

from __future__ import annotations

import ast
import builtins
import sys
from collections import deque
from collections.abc import Iterator
from typing import Any

from torchmagic.checking.elements import arguments, displays, drawn_from, parts_of_display
from torchmagic.checking.facts import Facts
from torchmagic.kinds import TorchKind, is_from_torch, kind_of_class, kind_of_value, returns_tensor
from torchmagic.namespace.resolve import MISSING, get_attribute, get_item
from torchmagic.source import ANY, Ref, Step, ref_of

_DEEPEST = 8
_RETURNS_SELF = frozenset({"cuda", "cpu", "to", "train", "eval", "half", "float", "double", "requires_grad_", "apply"})
_TENSOR_ATTRIBUTES = frozenset({"data", "grad", "T", "mT", "H", "real", "imag"})


def kind_of(facts: Facts, node: ast.AST | None, step: Step, depth: int = _DEEPEST) -> TorchKind | None:
    """Tell whether an expression in a statement is a tensor, a module, an optimizer; None when it is not known."""
    if not depth or node is None:
        return None
    if (value := live_value(facts, node, step)) is not MISSING:
        return kind_of_value(value)
    below = depth - 1
    if isinstance(node, ast.Name):
        return _kind_of_name(facts, node.id, step, below)
    if isinstance(node, ast.BinOp):
        return _tensor_among(facts, (node.left, node.right), step, below)
    if isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.Not):
        return kind_of(facts, node.operand, step, below)
    if isinstance(node, ast.Compare) and all(
        not isinstance(op, (ast.Is, ast.IsNot, ast.In, ast.NotIn)) for op in node.ops
    ):
        return _tensor_among(facts, (node.left, *node.comparators), step, below)
    if isinstance(node, ast.Subscript):
        return _kind_of_item(facts, node, step, below)
    if isinstance(node, ast.Attribute):
        if node.attr in _TENSOR_ATTRIBUTES and kind_of(facts, node.value, step, below) == "tensor":
            return "tensor"
        return _kind_of_own_attribute(facts, node, step, below)
    return _kind_of_call(facts, node, step, below) if isinstance(node, ast.Call) else None


def _tensor_among(facts: Facts, nodes: tuple[ast.expr, ...], step: Step, depth: int) -> TorchKind | None:
    return "tensor" if any(kind_of(facts, node, step, depth) == "tensor" for node in nodes) else None


def live_value(facts: Facts, node: ast.AST, step: Step) -> Any:
    """Return the live object that a path names where it stands, or MISSING.

    A local name of a function has a live value when the cell's error left the function's frame.
    """
    ref = ref_of(node)
    if ref is None or _comprehension_of(ref.root, step) is not None:
        return MISSING
    value = facts.value(ref, step.scope)
    if value is MISSING and not isinstance(step.scope.owner_of(ref.root).node, ast.Module):
        for frame in facts.failed_frames:
            if frame.function == step.scope.name and frame.filename == step.scope.unit.source.filename:
                value = follow(frame.variables.get(ref.root, MISSING), ref.steps)
    elif value is MISSING and ref.steps:
        value = follow(facts.value(Ref(ref.root), step.scope), ref.steps)
    return value


def follow(value: Any, steps: tuple[tuple[str, Any], ...]) -> Any:
    """Follow attributes and items of builtin containers; of a computed index, the first element stands for all."""
    for kind, key in steps:
        if value is MISSING:
            return MISSING
        if kind == "attr":
            value = get_attribute(value, key)
        elif kind_of_value(value) == "tensor":
            return value  # a part of a tensor is a tensor
        else:
            value = element_of(value) if key is ANY else get_item(value, key)
    return value


def element_of(value: Any) -> Any:
    """Return an element of a builtin container to stand for all, or MISSING."""
    kind = type(value)
    if issubclass(kind, dict):
        return next(iter(dict.values(value)), MISSING)
    for sequence in (list, tuple, deque):
        if issubclass(kind, sequence):
            return next(sequence.__iter__(value), MISSING)
    return MISSING


def _kind_of_name(facts: Facts, name: str, step: Step, depth: int) -> TorchKind | None:
    """Judge a name without a live value by everything the text binds it to; all must agree."""
    if (bound := _comprehension_of(name, step)) is not None:
        return _kind_of_element(facts, bound[1], bound[0], step, depth, name=name)
    if facts.program is None:
        return None
    owner = step.scope.owner_of(name)
    kinds: set[TorchKind | None] = set()
    if name in owner.parameters:
        kinds |= {kind_of(facts, node, at, depth) for node, at in arguments(facts, owner, name)}
    for write in facts.program.writes:
        if write.kind == "bind" and write.target == Ref(name) and write.step.scope is owner and write.value is not None:
            if kinds and _is_made_from(name, write.value):
                continue
            if write.how == "for":
                kinds.add(_kind_of_element(facts, write.value, write.node, write.step, depth, name=name))
            else:
                kinds.add(kind_of(facts, write.value, write.step, depth) if write.position is None else None)
    known = kinds - {None}
    return next(iter(known)) if len(known) == 1 and (kinds == known or name not in owner.parameters) else None


def _is_made_from(name: str, value: ast.expr) -> bool:
    """Tell whether a value is what arithmetic or tensor methods make of a name: `x - x.mean()`, `x.to(device)`."""
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and returns_tensor(value.func.attr):
        value = value.func.value
    if isinstance(value, ast.BinOp):
        return _is_made_from(name, value.left) or _is_made_from(name, value.right)
    if isinstance(value, ast.UnaryOp):
        return _is_made_from(name, value.operand)
    if isinstance(value, ast.Subscript):
        return _is_made_from(name, value.value)
    return isinstance(value, ast.Name) and value.id == name


def _kind_of_own_attribute(facts: Facts, node: ast.Attribute, step: Step, depth: int) -> TorchKind | None:
    """Judge `self.name` where no instance is left, by what the methods of the class bind it to."""
    ref, scope = ref_of(node), step.scope
    if ref is None or len(ref.steps) != 1 or facts.program is None or scope.class_name is None:
        return None
    if scope.parameters[:1] != [ref.root]:
        return None
    kinds = {
        kind_of(facts, write.value, write.step, depth)
        for write in facts.program.writes
        if write.kind == "bind" and write.target == ref and write.step.scope.class_name == scope.class_name
    }
    return kinds.pop() if len(kinds) == 1 else None


def _comprehension_of(name: str, step: Step) -> tuple[ast.expr, ast.expr] | None:
    """Return target and iterable of the comprehension of a statement that binds a name."""
    for own in step.own_expressions():
        for part in ast.walk(own):
            if isinstance(part, ast.comprehension):
                for target in ast.walk(part.target):
                    if isinstance(target, ast.Name) and target.id == name:
                        return part.target, part.iter
    return None


def _kind_of_element(
    facts: Facts, values: ast.expr, binder: ast.AST, step: Step, depth: int, *, name: str
) -> TorchKind | None:
    """Judge what a loop binds a name to: the elements of what is looped over, or a part of each."""
    target = binder.target if isinstance(binder, (ast.For, ast.AsyncFor)) else binder
    values, target = drawn_from(values, target, name)
    if isinstance(target, ast.Name) and target.id == name:
        if isinstance(values, ast.Call) and isinstance(values.func, ast.Attribute) and values.func.attr == "parameters":
            return "tensor" if kind_of(facts, values.func.value, step, depth) == "module" else None
        if kind_of(facts, values, step, depth) == "tensor":
            return "tensor"
    kinds = {_kind_of_part(live, target, name) for live in _live_values(facts, values, step)}
    if not kinds and isinstance(target, ast.Name):
        kinds = {
            kind_of(facts, part, at, depth)
            for display, at in displays(facts, values, step)
            for part in parts_of_display(display)
        }
    return kinds.pop() if len(kinds) == 1 else None


def _kind_of_item(facts: Facts, node: ast.Subscript, step: Step, depth: int) -> TorchKind | None:
    """Judge an item of a tensor, or of a container that the text shows or a caller hands over."""
    if kind_of(facts, node.value, step, depth) == "tensor":
        return "tensor"
    key = node.slice.value if isinstance(node.slice, ast.Constant) else ANY
    kinds = {
        kind_of_value(element_of(live) if key is ANY else get_item(live, key))
        for live in _live_values(facts, node.value, step)
    }
    for display, at in displays(facts, node.value, step) if not kinds else ():
        parts = parts_of_display(display)
        if isinstance(display, ast.Dict) and key is not ANY:
            shown = zip(display.keys, display.values, strict=True)
            parts = [part for name, part in shown if isinstance(name, ast.Constant) and name.value == key]
        kinds |= {kind_of(facts, part, at, depth) for part in parts}
    return kinds.pop() if len(kinds) == 1 else None


def _live_values(facts: Facts, node: ast.expr, step: Step) -> Iterator[Any]:
    """Yield the live objects an expression may name; a parameter stands for what its callers hand over."""
    value = live_value(facts, node, step)
    ref = ref_of(node)
    if value is not MISSING:
        yield value
    elif ref is not None and facts.program is not None:
        for spelling in facts.program.spellings(ref, step.scope):
            value = facts.value(spelling)
            value = follow(facts.value(Ref(spelling.root)), spelling.steps) if value is MISSING else value
            if value is not MISSING:
                yield value


def _kind_of_part(values: Any, target: ast.AST, name: str) -> TorchKind | None:
    """Judge a name in a loop's target by an element of what is looped over; a DataLoader's batches are of tensors."""
    torch = sys.modules["torch"]
    if issubclass(type(values), torch.utils.data.DataLoader):
        return "tensor" if isinstance(target, (ast.Tuple, ast.List)) else None
    element = element_of(values)
    while isinstance(target, (ast.Tuple, ast.List)):
        if type(element) not in (tuple, list) or len(element) != len(target.elts):
            return None
        chosen = [
            i
            for i, part in enumerate(target.elts)
            if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(part))
        ]
        if len(chosen) != 1:
            return None
        target, element = target.elts[chosen[0]], element[chosen[0]]
    return kind_of_value(element) if element is not MISSING else None


def _kind_of_call(facts: Facts, call: ast.Call, step: Step, depth: int) -> TorchKind | None:
    function = call.func
    live = live_value(facts, function, step)
    if live is not MISSING and kind_of_value(live) == "module":
        return "tensor"
    if isinstance(function, ast.Attribute):
        receiver = kind_of(facts, function.value, step, depth)
        if receiver == "tensor":
            return "tensor" if returns_tensor(function.attr) else None
        if receiver == "module":
            return "module" if function.attr in _RETURNS_SELF else None
    if live is not MISSING and issubclass(type(live), type):
        return kind_of_class(live)
    if live is not MISSING and is_from_torch(live):
        return "tensor" if live is not sys.modules["torch"].is_tensor else None
    return _kind_of_result(facts, call, depth)


def _kind_of_result(facts: Facts, call: ast.Call, depth: int) -> TorchKind | None:
    """Judge a call of a function of the program by what the function returns."""
    if facts.program is None or not isinstance(call.func, ast.Name) or hasattr(builtins, call.func.id):
        return None
    kinds: set[TorchKind | None] = set()
    for inner in facts.program.steps:
        if isinstance(inner.node, ast.Return) and inner.scope.name == call.func.id and inner.scope.class_name is None:
            kinds.add(kind_of(facts, inner.node.value, inner, depth))
    return kinds.pop() if len(kinds) == 1 else None
