"""RNN, GRU and LSTM, and their cells: features, dimensions and hidden states that do not fit."""

from __future__ import annotations

from typing import Any

from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.linear import features
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import Shape, listed


def recurrent(failure: Refusal) -> Explained | None:
    """Explain a recurrent layer whose input or state does not fit."""
    call = failure.layer_call
    is_cell = failure.is_layer("RNNCellBase")
    if call is None or not (is_cell or failure.is_layer("RNN", "GRU", "LSTM")):
        return None
    part = failure.given("input")
    if part is None:
        return None
    layer: Any = failure.layer
    dims = (1, 2) if is_cell else (2, 3)
    if len(part.shape) not in dims:
        order = "[batch, time, features]" if getattr(layer, "batch_first", False) else "[time, batch, features]"
        takes = "[batch, features]" if is_cell else order
        return failure.explained(part, failure.meets(part, takes, f"{len(part.shape)} dimensions"))
    if part.shape[-1] != layer.input_size:
        return _features(failure, part, layer)
    state: Any = call.arguments.get("hx")
    states = list(state) if type(state) in (tuple, list) else [state]
    parts = [failure.part_of_value(one) for one in states]
    return _cell_state(failure, part, parts) if is_cell else _state(failure, part, parts)


def _features(failure: Refusal, part: Part, layer: Any) -> Explained:
    wanted, got = layer.input_size, part.shape[-1]
    message = failure.meets(part, f"{features(wanted)} in the last dimension", str(got))
    kind = type(layer).__name__
    if wanted == 1 and len(part.shape) == 2 and not kind.endswith("Cell"):
        call = ".unsqueeze(-1)"
        text = failure.with_call(part, call)
        return failure.explained(part, f"{message}: `{text}` if each number is a step", failure.call_fix(part, call))
    if len(part.shape) == 3 and part.shape[1] == wanted and part.shape[0] != wanted:
        call = ".transpose(1, 2)"
        text = failure.with_call(part, call)
        return failure.explained(
            part, f"{message}; they are in dimension 1 here: `{text}`", failure.call_fix(part, call)
        )
    return failure.explained(
        part, f"{message}: make it `nn.{kind}({got}, {layer.hidden_size}, ...)`, or check what comes in"
    )


def _cell_state(failure: Refusal, part: Part, states: list[Part | None]) -> Explained | None:
    layer: Any = failure.layer
    wanted = (*part.shape[:-1], layer.hidden_size)
    odd = next((state for state in states if state is not None and state.shape != wanted), None)
    if odd is None or len(odd.shape) != len(wanted):
        return None
    needs = f"{failure.name_of_layer()} needs {listed(wanted)} with {part.text} {listed(part.shape)}"
    return failure.explained(odd, f"{odd.text} is {listed(odd.shape)}, and {needs}")


def _state(failure: Refusal, part: Part, states: list[Part | None]) -> Explained | None:
    layer: Any = failure.layer
    layers = layer.num_layers * (2 if layer.bidirectional else 1)
    batch = 0 if layer.batch_first else 1
    rows: Shape = (part.shape[batch],) if len(part.shape) == 3 else ()
    sizes = (layers, *rows, layer.hidden_size)
    second = (layers, *rows, layer.proj_size or layer.hidden_size)
    for state, wanted in zip(states, (second, sizes), strict=False):
        if state is None or state.shape == wanted:
            continue
        fact = f"{state.text} is {listed(state.shape)}, and {failure.name_of_layer()} needs {listed(wanted)} with"
        message = f"{fact} {part.text} {listed(part.shape)}"
        other = part.shape[1 - batch] if len(part.shape) == 3 else None
        if not layer.batch_first and len(state.shape) == 3 and state.shape[1] == other:
            hint = f": it reads [time, batch, features], so the batch is {rows[0]} here; `batch_first=True` reads"
            return failure.explained(state, f"{message}{hint} [batch, time, features]")
        meaning = "[layers, batch, hidden]" if rows else "[layers, hidden]"
        return failure.explained(state, f"{message}: {meaning}")
    return None
