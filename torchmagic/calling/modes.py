"""What a module has of the layers that behave differently in training and in evaluation."""

from __future__ import annotations

import sys
from typing import Any

from torchmagic import devices

_RATES = ("dropout", "p")


def layers_with_modes(module: Any) -> list[str]:
    """Return the kinds of torch's layers in a module, `dropout` and `batch norm`, for which the mode matters."""
    nn, found = sys.modules["torch"].nn, []
    parts = list(devices.submodules(module))
    drops = (nn.modules.dropout._DropoutNd, nn.RNNBase, nn.MultiheadAttention)  # noqa: SLF001  torch 1.0 and later
    if any(issubclass(type(part), drops) and _rate(part) > 0 for part in parts):
        found.append("dropout")
    if any(issubclass(type(part), nn.modules.batchnorm._NormBase) and _is_batch_norm(part) for part in parts):  # noqa: SLF001
        found.append("batch norm")
    return found


def _rate(layer: Any) -> float:
    state = object.__getattribute__(layer, "__dict__")
    rates = [state.get(name) for name in _RATES]
    return max((rate for rate in rates if type(rate) in (int, float)), default=0.0)


def _is_batch_norm(layer: Any) -> bool:
    """Tell whether a normalization keeps running statistics; instance norm is the same in both modes without them."""
    state = object.__getattribute__(layer, "__dict__")
    return bool(state.get("track_running_stats")) or "BatchNorm" in type(layer).__name__
