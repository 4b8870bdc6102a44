"""MultiheadAttention and what is built from it: features and masks that do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.linear import features
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import listed


def attention(failure: Refusal) -> Explained | None:
    """Explain attention whose features or masks do not fit."""
    call = failure.layer_call
    if call is None or not failure.is_layer("MultiheadAttention"):
        return None
    layer: Any = failure.layer
    query, key = (_as_given(failure, name) for name in ("query", "key"))
    if query is None or key is None or not query.shape or not key.shape:
        return None
    for part, wanted in ((query, layer.embed_dim), (key, layer.kdim)):
        if part.shape[-1] != wanted:
            message = failure.meets(part, f"{features(wanted)} in the last dimension", str(part.shape[-1]))
            if len(part.shape) == 3 and part.shape[1] == wanted:
                return failure.explained(part, f"{message}; they are in dimension 1 here: `.transpose(1, 2)`")
            return failure.explained(part, message)
    return _masks(failure, query, key)


def _as_given(failure: Refusal, name: str) -> Part | None:
    """Describe an input with the order of dimensions it came in: `forward` puts the time first."""
    part = failure.given(name)
    layer: Any = failure.layer
    if part is None or part.node is not None or part.path or not layer.batch_first or len(part.shape) != 3:
        return part
    given = (part.shape[1], part.shape[0], part.shape[2])
    for call in failure.calls:
        for value in call.arguments.values():
            whole = failure.part_of_value(value)
            if whole is not None and whole.path and whole.shape == given:
                return whole
    return replace(part, shape=given)


def _masks(failure: Refusal, query: Part, key: Part) -> Explained | None:
    layer: Any = failure.layer
    padding, mask = (failure.given(name) for name in ("key_padding_mask", "attn_mask"))
    if len(query.shape) != 3 or len(key.shape) != 3:
        return None
    rows, steps = (0, 1) if layer.batch_first else (1, 0)
    order = "[batch, time, features]" if layer.batch_first else "[time, batch, features]"
    if key.shape[rows] != query.shape[rows]:
        fact = (
            f"{query.text} is {listed(query.shape)} and {key.text} {listed(key.shape)}: dimension {rows} is the batch"
        )
        return failure.explained(query, f"{fact} of {failure.name_of_layer()}, and must be the same")
    wanted = (key.shape[rows], key.shape[steps])
    if padding is not None and padding.shape != wanted:
        fact = (
            f"{padding.text} is {listed(padding.shape)}, and must be {listed(wanted)}, batch by time, with {key.text}"
        )
        hint = f": {failure.name_of_layer()} reads {order}"
        swapped = "; `batch_first=True` reads [batch, time, features]" if padding.shape == wanted[::-1] else ""
        turned = swapped if not layer.batch_first else ""
        return failure.explained(padding, f"{fact} {listed(key.shape)}{hint}{turned}")
    pairs = (query.shape[steps], key.shape[steps])
    if mask is not None and len(mask.shape) == 2 and mask.shape != pairs:
        fact = f"{mask.text} is {listed(mask.shape)}, and must be {listed(pairs)}, the steps of {query.text}"
        return failure.explained(mask, f"{fact} {listed(query.shape)} by those of the keys: it reads {order}")
    return None
