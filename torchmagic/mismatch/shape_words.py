"""Sizes in words: `[3, 5]`, `3 x 5`, and the calls that bring one shape into another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Shape = tuple[int, ...]


def shape_of(tensor: Any) -> Shape | None:
    """Return a tensor's sizes; None when a dimension is ragged or symbolic."""
    try:
        shape = tuple(tensor.shape)
    except (RuntimeError, TypeError, AttributeError):
        return None
    return shape if all(type(size) is int for size in shape) else None


def listed(shape: Iterable[int]) -> str:
    """Write sizes as a list."""
    return str(list(shape))


def crossed(shape: Iterable[int]) -> str:
    """Write sizes as people do for images: `8 x 8`."""
    return " x ".join(str(size) for size in shape)


def permuted(dims: Iterable[int]) -> str:
    """Write the call that rearranges dimensions."""
    return f".permute({', '.join(str(dim) for dim in dims)})"


def channels_first(dims: int) -> str:
    """Write the call that brings the last dimension of a batch behind the first: channels last to channels first."""
    return ".transpose(1, 2)" if dims == 3 else permuted((0, dims - 1, *range(1, dims - 1)))
