"""BatchNorm, LayerNorm and GroupNorm: another number of features, or a batch of one."""

from __future__ import annotations

from typing import Any

from torchmagic.mismatch.convolution import channels
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.linear import features
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import channels_first, listed

_BATCH = {"BatchNorm1d": (2, 3), "BatchNorm2d": (4,), "BatchNorm3d": (5,)}


def normalization(failure: Refusal) -> Explained | None:
    """Explain a normalization whose input has other features than it was made for."""
    if failure.layer_call is None:
        return None
    part = failure.given("input")
    if part is None:
        return None
    if failure.is_layer(*_BATCH):
        return _batch_norm(failure, part)
    if failure.is_layer("LayerNorm"):
        return _layer_norm(failure, part)
    return _group_norm(failure, part) if failure.is_layer("GroupNorm") else None


def _batch_norm(failure: Refusal, part: Part) -> Explained | None:
    layer: Any = failure.layer
    shape, size = part.shape, len(part.shape)
    kind = next(name for name in _BATCH if failure.is_layer(name))
    if size not in _BATCH[kind]:
        made = next((name for name, sizes in _BATCH.items() if size in sizes), "")
        other = f": `nn.{made}({shape[1]})` is for those" if made else ""
        takes = " or ".join(str(number) for number in _BATCH[kind])
        return failure.explained(part, f"{failure.meets(part, f'{takes} dimensions', str(size))}{other}")
    wanted = layer.num_features
    if shape[1] != wanted:
        message = failure.meets(part, f"{features(wanted)} in dimension 1", str(shape[1]))
        if shape[-1] == wanted and size > 2:
            call = channels_first(size)
            text = failure.with_call(part, call)
            return failure.explained(part, f"{message}; they are last here: `{text}`", failure.call_fix(part, call))
        return failure.explained(part, f"{message}: make it `nn.{kind}({shape[1]})`, or check what comes in")
    if "more than 1 value per channel" in failure.text:
        model = (
            f"{part.text} is {listed(shape)}, and {failure.name_of_layer()} needs more than one value for each channel"
        )
        advice = "a larger batch (`drop_last=True` in the DataLoader), or `.eval()` to use what it learned"
        return failure.explained(part, f"{model} while it trains: {advice}")
    return None


def _layer_norm(failure: Refusal, part: Part) -> Explained | None:
    layer: Any = failure.layer
    wanted = tuple(layer.normalized_shape)
    if part.shape[-len(wanted) :] == wanted:
        return None
    last = part.shape[-len(wanted) :]
    if len(wanted) > 1:
        message = failure.meets(part, f"{listed(wanted)} in the last dimensions", listed(last))
        return failure.explained(part, f"{message}: make it `nn.LayerNorm({listed(last)})`, or check what comes in")
    message = failure.meets(part, f"{features(wanted[0])} in the last dimension", str(last[0] if last else "none"))
    if len(part.shape) > 2 and part.shape[1] == wanted[0]:
        return failure.explained(part, f"{message}; the {wanted[0]} are in dimension 1 here")
    made = f": make it `nn.LayerNorm({last[0]})`, or check what comes in" if last else ""
    return failure.explained(part, message + made)


def _group_norm(failure: Refusal, part: Part) -> Explained | None:
    layer: Any = failure.layer
    if len(part.shape) < 2 or part.shape[1] == layer.num_channels:
        return None
    message = failure.meets(part, f"{channels(layer.num_channels)} in dimension 1", str(part.shape[1]))
    if part.shape[-1] == layer.num_channels and len(part.shape) > 2:
        call = channels_first(len(part.shape))
        text = failure.with_call(part, call)
        return failure.explained(part, f"{message}; they are last here: `{text}`", failure.call_fix(part, call))
    return failure.explained(part, f"{message}: make it for {part.shape[1]}, or check what comes in")
