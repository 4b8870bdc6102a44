"""Tensors that the cell computes with together although they are on different devices."""

from __future__ import annotations

import ast
import types
from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.findings import Fix
from torchmagic.kinds import is_from_torch, kind_of_value
from torchmagic.namespace import Seen
from torchmagic.placement.misplaced import Misplaced, device_text, grouped, is_moved_in_text
from torchmagic.source import Ref, Step, ref_of
from torchmagic.source.edits import first_words, replace_all
from torchmagic.source.transfers import is_transfer, transfers

_MAY_MIX = frozenset(
    {
        "save", "is_tensor", "numel", "is_floating_point", "is_complex", "copy_", "set_", "typename", "equal",
        "zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "result_type", "can_cast",
        "is_same_size", "broadcast_shapes", "register_hook", "backward", "to", "type_as", "view_as", "expand_as",
        "reshape_as", "pack_padded_sequence", "as_tensor", "tensor", "resize_as_", "is_set_to", "new_tensor",
    }
)  # fmt: skip
"""Functions and methods that take tensors of several devices, or only their shapes."""


def used_together(facts: Facts, step: Step) -> Iterator[Misplaced]:
    """Judge one top-level statement of the cell by the tensors its operators, torch functions and layers take."""
    if not step.scope.unit.is_cell or not isinstance(step.scope.node, ast.Module) or facts.source is None:
        return
    if any(isinstance(part, ast.comprehension) for own in step.own_expressions() for part in ast.walk(own)):
        return
    for own in step.own_expressions():
        for node in ast.walk(own):
            operands = list(_operands(facts, node, step)) if isinstance(node, (ast.BinOp, ast.Call)) else []
            homes = {home for _, _, home in operands}
            if len(homes) == 2 and devices.HOST in homes and all(_is_bound_once(facts, o) for o, _, _ in operands):
                yield _misplaced(facts, step, node, operands)
                return


def _operands(facts: Facts, node: ast.AST, step: Step) -> Iterator[tuple[ast.expr, Any, str]]:
    """Yield what an expression computes with on one device: paths with their values and homes."""
    ref = ref_of(node)
    if ref is not None and isinstance(node, ast.expr):
        value = live_value(facts, node, step)
        home = _home(value)
        if home is not None:
            yield node, value, home
    elif isinstance(node, ast.BinOp):
        yield from _operands(facts, node.left, step)
        yield from _operands(facts, node.right, step)
    elif isinstance(node, ast.UnaryOp):
        yield from _operands(facts, node.operand, step)
    elif isinstance(node, ast.Subscript):
        yield from _operands(facts, node.value, step)
    elif isinstance(node, (ast.List, ast.Tuple)):
        for element in node.elts:
            yield from _operands(facts, element, step)
    elif isinstance(node, ast.Call) and not is_transfer(node):
        yield from _operands_of_call(facts, node, step)


def _operands_of_call(facts: Facts, call: ast.Call, step: Step) -> Iterator[tuple[ast.expr, Any, str]]:
    function = live_value(facts, call.func, step)
    name = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    if any(keyword.arg in ("device", "out") for keyword in call.keywords) or name in _MAY_MIX:
        return
    if kind_of_value(function) == "module":
        if not keeps_its_device(facts, function):
            return
        yield from _operands(facts, call.func, step)
    elif isinstance(call.func, ast.Attribute) and _is_method_of_tensor(function):
        yield from _operands(facts, call.func.value, step)
    elif not _is_operation(function):
        return
    for argument in [*call.args, *(keyword.value for keyword in call.keywords)]:
        yield from _operands(facts, argument, step)


def _is_method_of_tensor(function: Any) -> bool:
    return type(function) in (types.BuiltinFunctionType, types.MethodType) and (
        kind_of_value(function.__self__) == "tensor"
    )


def _is_operation(function: Any) -> bool:
    """Tell whether a function is one of torch's operations on tensors."""
    if type(function) is types.BuiltinFunctionType:
        return is_from_torch(function)
    return type(function) is types.FunctionType and function.__module__ in ("torch.nn.functional", "torch.functional")


def _home(value: Any) -> str | None:
    kind = kind_of_value(value)
    if kind == "tensor":
        return None if devices.is_scalar(value) else devices.device_of(value)
    return devices.home_of(value) if kind == "module" else None


def keeps_its_device(facts: Facts, module: Any) -> bool:
    """Tell whether nothing in a module's own code moves what it is given."""
    if devices.is_split_on_purpose(module):
        return False
    for part in devices.submodules(module):
        if is_from_torch(type(part)):
            continue
        steps = facts.program.steps if facts.program is not None else []
        own = [s for s in steps if s.scope.class_name == type(part).__name__ and s.scope.name != "__init__"]
        if not own or any(True for s in own for e in s.own_expressions() for _ in transfers(e)):
            return False
    return True


def _is_bound_once(facts: Facts, node: ast.expr) -> bool:
    """Tell whether what a path names at the end of the cell is what it named at every line."""
    ref = ref_of(node)
    if ref is None or facts.program is None:
        return False
    writes = [w for w in facts.program.writes if w.target.root == ref.root and w.kind in ("bind", "store", "augment")]
    own = [w for w in writes if w.target == Ref(ref.root)]
    moved = any(
        isinstance(call.func, ast.Attribute) and is_transfer(call) and step.node.__class__ is ast.Expr
        and (receiver := ref_of(call.func.value)) is not None and receiver.root == ref.root
        for call, step in facts.program.calls
    )  # fmt: skip
    return len(own) <= 1 and len(writes) == len(own) and not moved


def _misplaced(facts: Facts, step: Step, node: ast.AST, operands: list[tuple[ast.expr, Any, str]]) -> Misplaced:
    stray, value, home = next(operand for operand in operands if operand[2] == devices.HOST)
    other, _, wanted = next(operand for operand in operands if operand[2] != devices.HOST)
    line = int(getattr(node, "lineno", step.line))
    source = step.scope.unit.source
    target = device_text(facts, wanted)
    texts = {o: f"{grouped(source, o)}.to({target})" for o, _, place in operands if place == home}
    text = replace_all(source, line, texts)
    both = first_words(source, node)
    return Misplaced(
        subject=str(ref_of(stray)),
        fact=f"is on {home} and `{ref_of(other)}` is on {wanted}, and `{both}` computes with both",
        objects=(value,),
        device=home,
        wanted=wanted,
        line=line,
        others=(str(ref_of(other)),),
        fix=Fix(text) if text is not None else None,
    )


def left_in_batch(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge one dict of tensors: the cell moved its other fields, and one large field stayed behind."""
    if type(seen.obj) is not dict or facts.program is None or seen.places[0].role not in ("name", "item"):
        return
    fields = {key: value for key, value in seen.obj.items() if kind_of_value(value) == "tensor" and _home(value)}
    homes = [_home(value) for value in fields.values()]
    accelerators = {home for home in homes if home is not None and home != devices.HOST}
    if len(fields) < 3 or len(accelerators) != 1 or homes.count(devices.HOST) != 1:
        return
    key, value = next((k, v) for k, v in fields.items() if _home(v) == devices.HOST)
    others = [v for v in fields.values() if v is not value]
    if any(value.shape[:1] != other.shape[:1] for other in others) or value.dim() < 2:
        return  # lengths, indices and labels for the host
    writes = [w for w in facts.writes_to(seen) if w.value is not None and any(True for _ in transfers(w.value))]
    found = facts.found.find(value)
    if not writes or found is None or is_moved_in_text(facts, value):
        return
    wanted = accelerators.pop()
    path = next((p.text for p in found.places if p.owner is seen.obj), found.subject)
    yield Misplaced(
        subject=path,
        fact=f"is on {devices.HOST}, and the other {len(others)} fields were moved to {wanted}; move it too",
        objects=(value,),
        device=devices.HOST,
        wanted=wanted,
        line=facts.line_of(writes[-1]),
        others=tuple(f"{seen.subject}[{other!r}]" for other in fields if other != key)[:5],
    )
