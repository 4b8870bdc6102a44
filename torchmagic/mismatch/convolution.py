"""Convolutions and pooling: channels that are not where they should be, a missing batch, images that are too small."""

from __future__ import annotations

import re
import sys
from typing import Any

from torchmagic.kinds import name_of
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import channels_first, crossed, listed, permuted

_LAYERS = ("Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d")
_POOLS = re.compile(r"(Max|Avg|LP)Pool([123])d")
_TOO_SMALL = re.compile(r"Kernel size can't be greater|[Oo]utput size is too small|Output size is too small|too small")


def convolution(failure: Refusal) -> Explained | None:
    """Explain a convolution that was given other channels or dimensions than it was made for."""
    if not failure.is_layer(*_LAYERS) or failure.layer_call is None:
        return None
    layer: Any = failure.layer
    part = failure.given("input")
    if part is None:
        return None
    return _channels(failure, part, len(layer.kernel_size), layer.in_channels, failure.name_of_layer())


def _channels(failure: Refusal, part: Part, spatial: int, wanted: int, name: str) -> Explained | None:
    """Explain what does not fit between images, of so many spatial dimensions, and the channels that are wanted."""
    takes = channels(wanted)
    shape, size = part.shape, len(part.shape)
    start = f"{part.text} is {listed(shape)}"
    if size == spatial + 2:
        return _batch(failure, part, wanted, f"{start}: {name} takes {takes} in dimension 1")
    if size == spatial + 1:
        return _without_one(failure, part, wanted, f"{start}: {name} takes {takes}", spatial)
    if size == spatial and wanted == 1:
        call = "[None, None]"
        return _repaired(failure, part, f"{start}: {name} takes [batch, {takes}, ...], and both are missing here", call)
    layout = "[batch, channels, " + ("length]" if spatial == 1 else "height, width]" if spatial == 2 else "...]")
    return failure.explained(part, f"{start}: {name} takes {spatial + 2} dimensions, {layout}, not {size}")


def _batch(failure: Refusal, part: Part, wanted: int, start: str) -> Explained | None:
    shape = part.shape
    if shape[1] == wanted:
        return _too_small(failure, part)
    if shape[-1] == wanted:
        where = "they are last here" if wanted != 1 else "it is last here"
        return _repaired(failure, part, f"{start}, and {where}", channels_first(len(shape)))
    if shape[0] == wanted:
        advice = "`" + failure.with_call(part, ".transpose(0, 1)") + "` if the channels are first and the batch second"
        return failure.explained(part, f"{start}, not {shape[1]}: {advice}")
    grey = shape[1] == 1 and wanted == 3
    one = f"; `{failure.with_call(part, '.expand(-1, 3' + ', -1' * (len(shape) - 2) + ')')}` repeats the one channel"
    kind = type(failure.layer).__name__ if failure.layer is not None else ""
    outs = getattr(failure.layer, "out_channels", None)
    made = f": make it `nn.{kind}({shape[1]}, {outs}, ...)`" if outs else ""
    return failure.explained(part, f"{start}, not {shape[1]}{made}{one if grey else ''}")


def _without_one(failure: Refusal, part: Part, wanted: int, start: str, spatial: int) -> Explained | None:
    """Explain an input that torch takes for one image without a batch."""
    shape = part.shape
    if shape[0] == wanted:
        return _too_small(failure, part)
    if shape[-1] == wanted:
        last = "it is last here" if wanted == 1 else "they are last here"
        call = permuted((spatial, *range(spatial)))
        return _repaired(failure, part, f"{start} in dimension 0 of a single input, and {last}", call)
    if wanted == 1:
        return _repaired(failure, part, f"{start}, and there is no dimension for it here", ".unsqueeze(1)")
    return failure.explained(part, f"{start}, and this counts as one input without a batch, of {channels(shape[0])}")


def _too_small(failure: Refusal, part: Part) -> Explained | None:
    layer: Any = failure.layer
    if layer is None or not _TOO_SMALL.search(failure.text) or not hasattr(layer, "kernel_size"):
        return None
    kernel = layer.kernel_size if type(layer.kernel_size) is tuple else (layer.kernel_size,)
    given = part.shape[-len(kernel) :]
    message = f"{part.text} is {listed(part.shape)}: {crossed(given)} is less than the window of "
    advice = "begin with larger images, or leave out a layer that halves them"
    return failure.explained(part, f"{message}{failure.name_of_layer()}, {crossed(kernel)}: {advice}")


def pooling(failure: Refusal) -> Explained | None:
    """Explain a pooling layer for which nothing is left to pool, or which lacks a dimension."""
    layer: Any = failure.layer
    found = _POOLS.fullmatch(type(layer).__name__) if layer is not None else None
    if found is None or type(layer) is not getattr(sys.modules["torch"].nn, found.group(), None):
        return None
    spatial = int(found.group(2))
    part = failure.given("input")
    if part is None:
        return None
    window = f"a window of {layer.kernel_size}" if type(layer.kernel_size) is int else "its window"
    if "too small" in failure.text:
        text = failure.meets(part, window, "that little")
        return failure.explained(part, f"{text}: begin with larger images, or leave out a layer that halves them")
    if len(part.shape) not in (spatial + 1, spatial + 2):
        return failure.explained(part, failure.meets(part, f"{spatial + 2} dimensions", str(len(part.shape))))
    return None


def direct_convolution(failure: Refusal) -> Explained | None:
    """Explain `F.conv2d(x, w)`, which leaves no frame of its own."""
    call = failure.call_node
    name = name_of(failure.sizes.live(call.func)) if call is not None else ""
    found = re.fullmatch(r"conv([123])d", name)
    if call is None or found is None or failure.calls or len(call.args) < 2:
        return None
    part, weight = failure.part_of_node(call.args[0]), failure.part_of_node(call.args[1])
    by_name = {keyword.arg: failure.sizes.value(keyword.value) for keyword in call.keywords}
    groups = by_name.get("groups", 1) if len(call.args) < 7 else None
    spatial = int(found.group(1))
    if part is None or weight is None or type(groups) is not int or len(weight.shape) != spatial + 2:
        return None
    wanted = weight.shape[1] * groups
    return _channels(failure, part, spatial, wanted, f"{weight.text} {listed(weight.shape)}")


def _repaired(failure: Refusal, part: Part, message: str, call: str) -> Explained:
    text = failure.with_call(part, call)
    return failure.explained(part, f"{message}: `{text}`", failure.call_fix(part, call))


def channels(number: int) -> str:
    """Return "1 channel" or "3 channels"."""
    return f"{number} channel{'' if number == 1 else 's'}"
