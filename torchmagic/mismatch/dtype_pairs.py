"""Operands of one operation that are of different dtypes."""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter
from typing import Any

from torchmagic import devices
from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.dtype_arguments import class_numbers, indices
from torchmagic.mismatch.dtype_casts import cast, cast_fix, parts_in
from torchmagic.mismatch.dtype_words import NAMES, cast_to, dtype_name, is_whole, numpys
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.source.edits import replace_all, spelled

_CLASS_LOSSES = ("cross_entropy", "nll_loss")
_RESULT = re.compile(r"result type (\w+) can't be cast")


def types_differ(failure: Refusal) -> Explained | None:
    """Explain operands of different dtypes: what a layer is given against its parameters, else one another."""
    loss = failure.call_of(*_CLASS_LOSSES)
    if loss is not None:
        return _class_weights(failure, loss.arguments) or class_numbers(failure)
    return _against_layer(failure) or _against_each_other(failure)


def in_place(failure: Refusal) -> Explained | None:
    """Explain a result that the tensor it is written into cannot hold: `counts += 0.5`."""
    statement = failure.here.step.node
    target = statement.target if isinstance(statement, ast.AugAssign) else _receiver(failure)
    part = failure.part_of_node(target)
    if part is None or part.value is None:
        return None
    dtype = dtype_name(part.value.dtype)
    told = _RESULT.search(failure.text)
    result = f", which is {NAMES[told.group(1)]}" if told is not None and told.group(1) in NAMES else ""
    fact = f"{part.text} is {dtype} and cannot hold the result of this line{result}"
    fix = _assigned(failure, statement, target)
    advice = f"`{fix.replacement}`" if fix is not None else "assign the result to a name, or make it a float"
    return failure.explained(part, f"{fact}: {advice}", fix)


def _assigned(failure: Refusal, statement: ast.stmt, target: ast.expr | None) -> Fix | None:
    """Write `x += y` as `x = x + y`."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(target, ast.Name) or not failure.here.frame.is_cell:
        return None
    sign = spelled(failure.source, statement).removeprefix(target.id).split("=", 1)[0].strip()
    value = spelled(failure.source, statement.value)
    simple = isinstance(statement.value, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
    line = f"{target.id} = {target.id} {sign} {value if simple else f'({value})'}"
    text = replace_all(failure.source, failure.here.frame.line, {statement: line})
    caveat = f"`{target.id}` is then a new tensor: another name of the old one keeps the old values."
    return Fix(text, caveat) if text is not None else None


def _receiver(failure: Refusal) -> ast.expr | None:
    call = failure.call_node
    inplace = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr.endswith("_")
    return call.func.value if inplace and call is not None and isinstance(call.func, ast.Attribute) else None


def _class_weights(failure: Refusal, given: Any) -> Explained | None:
    weight, logits = given.get("weight"), failure.part_of_value(given.get("input"))
    if kind_of_value(weight) != "tensor" or logits is None or weight.dtype == logits.value.dtype:
        return None
    part = failure.part_of_value(weight)
    if part is None:
        return None
    wanted = logits.value.dtype
    fact = f"{part.text} is {dtype_name(weight.dtype)}{numpys(weight.dtype)}, and {logits.text} is {dtype_name(wanted)}"
    return cast(failure, part, f"{fact}; class weights come in the dtype of the logits", cast_to(wanted))


def _against_layer(failure: Refusal) -> Explained | None:
    """Compare what the running module was given with its parameters."""
    call = failure.layer_call
    if call is None:
        return None
    own = {tensor.dtype for tensor in devices.own_tensors(call.module) if tensor.dtype.is_floating_point}
    if len(own) != 1:
        return None
    wanted = own.pop()
    stray = next((value for value in _tensors(call.arguments.values()) if value.dtype != wanted), None)
    part = failure.part_of_value(stray)
    if stray is None or part is None:
        return None
    name = part.text if part.node is not None or part.path else "a tensor it is given"
    fact = f"{name} is {dtype_name(stray.dtype)}{numpys(stray.dtype)}"
    return cast(failure, part, f"{fact}, and {failure.name_of_layer()} is {dtype_name(wanted)}", cast_to(wanted))


def _tensors(values: Any) -> Any:
    """Yield the tensors among some arguments, those in tuples and lists too: a recurrent layer's state."""
    for value in values:
        if kind_of_value(value) == "tensor":
            yield value
        elif type(value) in (tuple, list):
            yield from (item for item in value if kind_of_value(item) == "tensor")


def _against_each_other(failure: Refusal) -> Explained | None:
    """Compare the tensors that the failing expression names."""
    index = {id(part.node) for part in indices(failure)}
    named = [part for part in parts_in(failure, failure.expressions[0]) if id(part.node) not in index]
    parts = list({id(part.value): part for part in reversed(named)}.values())[::-1]
    wanted = _wanted([part.value for part in parts])
    strays = [part for part in parts if part.value.dtype != wanted]
    if wanted is None or len({part.value.dtype for part in strays}) != 1:
        return None
    first, dtype, call = strays[0], strays[0].value.dtype, cast_to(wanted)
    company = [part.text for part in parts if part.value.dtype == wanted]
    others = f"{' and '.join(company[:2])} {'are' if len(company) > 1 else 'is'} {dtype_name(wanted)}"
    fact = f"{first.text} is {dtype_name(dtype)}{numpys(dtype)}, and {others}"
    message = f"{fact}: `{failure.with_call(first, call)}`"
    return failure.explained(first, message, cast_fix(failure, strays, call))


def _wanted(tensors: list[Any]) -> Any:
    """Choose the dtype to bring all into: that of a trained tensor, else torch's default, else the most frequent."""
    kinds = Counter(tensor.dtype for tensor in tensors)
    if len(kinds) < 2:
        return None
    trained = [tensor.dtype for tensor in tensors if tensor.requires_grad]
    default = sys.modules["torch"].get_default_dtype()
    floats = [dtype for dtype, _ in kinds.most_common() if not is_whole(dtype)]
    return (trained or [default] if default in kinds else floats or [None])[0]
