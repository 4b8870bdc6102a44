"""An operation that takes one dtype only, and was given another: class numbers, indices, masks, targets."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from typing import Any

from torchmagic.findings import Fix
from torchmagic.kinds import kind_of_value
from torchmagic.mismatch.dtype_casts import cast, only_one, parts_in
from torchmagic.mismatch.dtype_words import NAMES, cast_to, dtype_name, is_whole
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.source.edits import first_words, replace_all, spelled

_CLASS_LOSSES = ("cross_entropy", "nll_loss", "multi_margin_loss")
_TARGET_LOSSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits", "mse_loss", "l1_loss", "smooth_l1_loss")
_INDEX_PLACES = {
    "gather": 1, "index_select": 1, "scatter": 1, "scatter_": 1, "scatter_add": 1, "scatter_add_": 1,
    "scatter_reduce": 1, "scatter_reduce_": 1, "index_add": 1, "index_add_": 1, "index_fill": 1, "index_fill_": 1,
    "index_copy": 1, "index_copy_": 1, "take_along_dim": 0, "take": 0,
}  # fmt: skip
"""Where a tensor's method takes its index; the function of the same name takes the tensor before it."""
_MASK_PLACES = {"masked_fill": 0, "masked_fill_": 0, "masked_select": 0, "masked_scatter": 0, "masked_scatter_": 0}
_WHOLE_INPUT = ("one_hot", "bincount")
_NAMED = re.compile(r"not implemented for '(\w+)'|Got:? (\w+)")


def class_numbers(failure: Refusal) -> Explained | None:
    """Explain a loss that asks for class numbers and was given something else."""
    part = _given(failure, _CLASS_LOSSES, "target")
    if part is None:
        return None
    fact = f"{part.text} is {dtype_name(part.value.dtype)}, and the loss takes class numbers, which are int64"
    if not _has_whole_numbers(part.value):
        return failure.explained(part, f"{fact}; it holds numbers with fractions: for a regression, use `mse_loss`")
    return cast(failure, part, fact, ".long()")


def swapped(failure: Refusal) -> Explained | None:
    """Explain a loss that was given the labels where the logits belong."""
    first, second = _given(failure, _CLASS_LOSSES, "input"), _given(failure, _CLASS_LOSSES, "target")
    if first is None or second is None or not is_whole(first.value.dtype) or is_whole(second.value.dtype):
        return None
    if len(second.shape) <= len(first.shape):
        return None
    fact = f"{first.text} is {dtype_name(first.value.dtype)} {list(first.shape)} and stands where the logits belong"
    fix = None
    if first.node is not None and second.node is not None and failure.here.frame.is_cell:
        texts = {first.node: spelled(failure.source, second.node), second.node: spelled(failure.source, first.node)}
        line = replace_all(failure.source, failure.here.frame.line, texts)
        fix = Fix(line) if line is not None else None
    return failure.explained(first, f"{fact}: the loss takes {second.text} first, then {first.text}", fix)


def class_probabilities(failure: Refusal) -> Explained | None:
    """Explain integers of the shape of the logits, which are taken for probabilities."""
    part, logits = _given(failure, _CLASS_LOSSES, "target"), _given(failure, _CLASS_LOSSES, "input")
    if part is None or logits is None:
        return None
    fact = f"{part.text} is {dtype_name(part.value.dtype)} and has the shape of {logits.text}, {list(part.shape)}"
    if len(part.shape) < 2:
        return failure.explained(part, f"{fact}: give the logits as [rows, classes] and a class number for each row")
    advice = f"`{failure.with_call(part, '.argmax(1)')}` makes class numbers of one-hot rows"
    return failure.explained(part, f"{fact}, so it is taken for probabilities, which are floats: {advice}")


def index(failure: Refusal) -> Explained | None:
    """Explain an index that is no whole number."""
    part = _given(failure, ("embedding", "embedding_bag"), "input")
    if part is None:
        part = only_one(p for p in indices(failure) if _is_no_index(p.value))
    if part is None:
        return None
    return cast(failure, part, f"{part.text} is {dtype_name(part.value.dtype)}, and an index is int64", ".long()")


def mask(failure: Refusal) -> Explained | None:
    """Explain a mask that is not boolean."""
    torch = sys.modules["torch"]
    part = only_one(p for p in _masks(failure) if p.value.dtype is not torch.bool)
    if part is None:
        return None
    return cast(failure, part, f"{part.text} is {dtype_name(part.value.dtype)}, and a mask is bool", ".bool()")


def loss_target(failure: Refusal) -> Explained | None:
    """Explain a target that is not in the dtype of the predictions."""
    part, given = _given(failure, _TARGET_LOSSES, "target"), _given(failure, _TARGET_LOSSES, "input")
    if part is None or given is None or given.value.dtype == part.value.dtype:
        return None
    wanted = given.value.dtype
    fact = f"{part.text} is {dtype_name(part.value.dtype)}, and the loss takes the target as {dtype_name(wanted)}"
    return cast(failure, part, f"{fact}, like its input", cast_to(wanted))


def numbers(failure: Refusal) -> Explained | None:
    """Explain an operation that is not defined for the dtype: a mean of integers, a softmax of float16 on the host."""
    torch = sys.modules["torch"]
    told = _NAMED.search(failure.text)
    name = NAMES.get(told.group(1) or told.group(2), "") if told is not None else ""
    half = "float16" in name
    wanted = cast_to(torch.float32 if half else torch.get_default_dtype())
    reason = "on the CPU this operation is not defined for it" if half else "this operation is defined for floats"
    part = _whole_input(failure, name)
    if part is None:
        return None
    fact = f"{part.text} is {dtype_name(part.value.dtype) if part.value is not None else name}, and {reason}"
    call = failure.call_node
    if call is not None and call.func is not part.node and _called(call).endswith("_"):
        return failure.explained(part, f"{fact}: cast it first, `{wanted}`")  # written in place, a copy would be lost
    return cast(failure, part, fact, wanted)


def _whole_input(failure: Refusal, name: str) -> Part | None:
    """Find the tensor that the operation is not defined for: by the library's frames, else by the failing call."""

    def fits(value: Any) -> bool:
        return dtype_name(value.dtype) == name if name else is_whole(value.dtype)

    for call in failure.calls:
        for value in call.arguments.values():
            if kind_of_value(value) == "tensor" and fits(value) and (part := failure.part_of_value(value)) is not None:
                return part
    node = _first_operand(failure)
    if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)):
        return only_one(p for p in parts_in(failure, node) if fits(p.value))
    if node is not None and name:
        return Part(f"`{first_words(failure.source, node)}`", "", (), node)
    return None


def _first_operand(failure: Refusal) -> ast.expr | None:
    """Return what the failing call is a method of, or the first argument of the function."""
    call = failure.call_node
    if call is None:
        return None
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    if receiver is not None and not _is_module_name(failure, receiver):
        return receiver
    return call.args[0] if call.args else None


def _is_module_name(failure: Refusal, node: ast.expr) -> bool:
    """Tell whether a path names a module of Python's, as `torch` and `torch.nn.functional` do."""
    while isinstance(node, ast.Attribute):
        node = node.value
    value = failure.facts.found.names.get(node.id) if isinstance(node, ast.Name) else None
    return type(value) is type(sys)


def _given(failure: Refusal, functions: tuple[str, ...], name: str) -> Part | None:
    """Return the tensor that one of torch's functions was given as this parameter."""
    call = failure.call_of(*functions)
    part = failure.part_of_value(call.arguments.get(name)) if call is not None else None
    return part if part is not None and part.value is not None else None


def _has_whole_numbers(tensor: Any) -> bool:
    try:
        return bool((tensor == tensor.trunc()).all())
    except (RuntimeError, NotImplementedError):
        return True


def _is_no_index(tensor: Any) -> bool:
    torch = sys.modules["torch"]
    return tensor.dtype not in (torch.int64, torch.int32, torch.bool, torch.uint8)


def indices(failure: Refusal) -> Iterator[Part]:
    """Yield the tensors that the failing line uses as an index."""
    for part in _nodes(failure):
        if isinstance(part, ast.Subscript):
            yield from parts_in(failure, part.slice)
        elif isinstance(part, ast.Call):
            yield from parts_in(failure, _argument(part, _INDEX_PLACES, "index"))
            if _called(part) in _WHOLE_INPUT:
                yield from parts_in(failure, part)


def _masks(failure: Refusal) -> Iterator[Part]:
    for part in _nodes(failure):
        if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Invert):
            yield from parts_in(failure, part.operand)
        elif isinstance(part, ast.Call):
            yield from parts_in(failure, _argument(part, _MASK_PLACES, "mask"))
            if _called(part) == "where" and part.args:
                yield from parts_in(failure, part.args[0])
            yield from parts_in(failure, next((k.value for k in part.keywords if k.arg == "attn_mask"), None))


def _nodes(failure: Refusal) -> Iterator[ast.AST]:
    return (part for whole in failure.expressions for part in ast.walk(whole))


def _called(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _argument(call: ast.Call, places: dict[str, int], keyword: str) -> ast.expr | None:
    """Return an argument of a tensor's method, or of torch's function of that name, by its place or keyword."""
    name = _called(call)
    if name not in places:
        return None
    by_name = next((k.value for k in call.keywords if k.arg == keyword), None)
    receiver = call.func.value if isinstance(call.func, ast.Attribute) else None
    is_function = isinstance(receiver, ast.Name) and receiver.id == "torch"
    place = places[name] + is_function
    return by_name if by_name is not None else call.args[place] if place < len(call.args) else None
