"""Linear and Bilinear: the last dimension holds another number of features than the layer was made for."""

from __future__ import annotations

import ast
from math import prod
from typing import Any

from torchmagic.kinds import name_of
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import listed
from torchmagic.source.refs import bare_name

_FLATTENED = 8
"""From this number of features on, a multiple of it in one row is taken to be several rows that were flattened."""


def linear(failure: Refusal) -> Explained | None:
    """Explain a Linear layer whose input has another number of features."""
    if failure.is_layer("Bilinear"):
        return _bilinear(failure)
    if not failure.is_layer("Linear") or failure.layer_call is None:
        return None
    layer: Any = failure.layer
    part = failure.given("input")
    if part is None or (part.shape and part.shape[-1] == layer.in_features):
        return None
    if not part.shape:
        message = failure.meets(part, "rows of features", "a single number")
        return failure.explained(part, f"{message}: `{failure.with_call(part, '.reshape(1, 1)')}`")
    wanted, got = layer.in_features, part.shape[-1]
    message = failure.meets(part, f"{features(wanted)} in the last dimension", str(got))
    if (lost := _lost_batch(failure, part, wanted, message)) is not None:
        return lost
    call, why = _repair(part.shape, wanted)
    if call:
        fix = failure.call_fix(part, call)
        return failure.explained(part, f"{message}: {why}: `{failure.with_call(part, call)}`", fix)
    return failure.explained(part, f"{message}: {_advice(part, layer)}")


def _repair(shape: tuple[int, ...], wanted: int) -> tuple[str, str]:
    """Return the call that makes an input fit, and why, when there is one; else nothing."""
    fitting = []
    if wanted == 1:
        fitting.append((".unsqueeze(-1)", "one feature is a dimension of its own"))
    if len(shape) > 2 and prod(shape[1:]) == wanted:
        fitting.append((".flatten(1)", f"each row has {wanted} values, so make one dimension of them"))
    elif len(shape) > 1 and prod(shape) == wanted:
        fitting.append((".flatten()", f"these are {wanted} values, so make one dimension of them"))
    if len(shape) == 3 and shape[1] == wanted:
        fitting.append((".transpose(1, 2)", f"the {wanted} are in dimension 1 here"))
    if len(shape) == 4 and shape[1] == wanted:
        fitting.append((".permute(0, 2, 3, 1)", f"the {wanted} are in dimension 1 here"))
    return fitting[0] if len(fitting) == 1 else ("", "")


def _lost_batch(failure: Refusal, part: Part, wanted: int, message: str) -> Explained | None:
    """Explain features that came out wrong because the batch was flattened too, or was never there."""
    shape, got = part.shape, part.shape[-1]
    flattens = isinstance(part.node, ast.Call) and bare_name(part.node.func) == "flatten"
    if len(shape) == 2 and prod(shape) == wanted and (flattens or (part.node is None and not part.path)):
        fact = f"{message}: these are the {wanted} values of one input, so its batch seems to be missing"
        entered = failure.part_entered()
        if entered is None or len(entered.shape) < 3:
            return failure.explained(part, fact)
        fix = failure.call_fix(entered, ".unsqueeze(0)")
        return failure.explained(part, f"{fact}: `{failure.with_call(entered, '.unsqueeze(0)')}`", fix)
    rows = got // wanted
    if got != rows * wanted or not rows or wanted < _FLATTENED or any(size != 1 for size in shape[:-1]):
        return None
    fact = f"{message}: {got} is {rows} times {wanted}, so the rows of the batch became one; keep them"
    kept = _flatten_from_one(failure, part, wanted)
    return failure.explained(part, f"{fact}: `{kept or '.flatten(1)'}`", failure.fix(part.node, kept) if kept else None)


def _flatten_from_one(failure: Refusal, part: Part, wanted: int) -> str:
    """Write `x.flatten()` so that it keeps dimension 0; empty when the expression is another one."""
    node = part.node
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.args or node.keywords:
        return ""
    whole = failure.part_of_node(node.func.value)
    if node.func.attr != "flatten" or whole is None or len(whole.shape) < 2 or prod(whole.shape[1:]) != wanted:
        return ""
    return failure.with_call(whole, ".flatten(1)")


def _advice(part: Part, layer: Any) -> str:
    shape, wanted = part.shape, layer.in_features
    bias = "" if layer.bias is not None else ", bias=False"
    make = f"make it `nn.Linear({shape[-1]}, {layer.out_features}{bias})`"
    if len(shape) == 2 and shape[0] == wanted and part.path:
        return f"{make}, or give it `{part.path}.T` if the rows are in dimension 1"
    return f"{make}, or check what comes in" if part.path else make


def _bilinear(failure: Refusal) -> Explained | None:
    layer: Any = failure.layer
    for name, wanted in (("input1", layer.in1_features), ("input2", layer.in2_features)):
        part = failure.given(name)
        if part is not None and part.shape[-1:] != (wanted,):
            got = str(part.shape[-1]) if part.shape else "none"
            return failure.explained(part, failure.meets(part, f"{features(wanted)} in its {name}", got))
    return None


def direct_linear(failure: Refusal) -> Explained | None:
    """Explain `F.linear(x, w)`, which leaves no frame of its own."""
    call = failure.call_node
    if call is None or failure.calls or len(call.args) < 2:
        return None
    if name_of(failure.sizes.live(call.func)) != "linear":
        return None
    part, weight = failure.part_of_node(call.args[0]), failure.part_of_node(call.args[1])
    if part is None or weight is None or not part.shape or part.shape[-1] == weight.shape[-1]:
        return None
    fact = f"{part.text} is {listed(part.shape)} and {weight.text} {listed(weight.shape)}"
    ends = f"a weight is [outputs, inputs], so its last dimension must be {part.shape[-1]}"
    about = failure.first_named(part, weight)
    if len(weight.shape) == 2 and weight.shape[0] == part.shape[-1]:
        text = failure.with_call(weight, ".T")
        return failure.explained(about, f"{fact}: {ends}; `{text}` fits", failure.fix(weight.node, text))
    return failure.explained(about, f"{fact}: {ends}")


def features(number: int) -> str:
    """Return "1 feature" or "4 features"."""
    return f"{number} feature{'' if number == 1 else 's'}"
