"""Which tensors and arrays share bytes, told from addresses alone."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import Any

from torchmagic.namespace.walk import Namespace, Seen

_MOST_WORK = 20_000


def shared_groups(found: Namespace) -> Iterator[list[Seen]]:
    """Yield sets of objects that lie in one stretch of memory: several objects, or one that can be reached in two ways.

    Neighbours in a group overlap as intervals; whether two of its members share an element is for `shares_bytes`.
    """
    order = {id(seen): number for number, seen in enumerate(found.of_kind("tensor", "array"))}
    groups = [group for group in _stretches(found) if len(group) > 1 or _has_two_ways(found, group[0])]
    yield from sorted(groups, key=lambda group: min(order[id(seen)] for seen in group))


def _stretches(found: Namespace) -> Iterator[list[Seen]]:
    spanned = [(span, seen) for seen in found.of_kind("tensor", "array") if (span := seen.span) is not None]
    spanned.sort(key=lambda pair: (pair[0].device, pair[0].start))
    group: list[Seen] = []
    device, end = "", 0
    for span, seen in spanned:
        if group and (span.device != device or span.start >= end):
            yield group
            group, end = [], 0
        group.append(seen)
        device, end = span.device, max(end, span.end)
    if group:
        yield group


def _has_two_ways(found: Namespace, seen: Seen) -> bool:
    place = seen.places[0]
    if len(seen.places) > 1:
        return True
    while place.parent is not None:
        holder = found.find(place.owner)
        if holder is not None and len(holder.places) > 1 and holder.kind == "other":
            return True
        place = place.parent
    return False


def shares_bytes(one: Seen, other: Seen) -> bool:
    """Tell whether two objects have an element in common; two columns of one matrix have none."""
    if one.obj is other.obj:
        return True
    first, second = one.span, other.span
    if first is None or second is None or not first.overlaps(second):
        return False
    numpy = sys.modules.get("numpy")
    if numpy is None or first.device != "cpu":
        return True
    try:
        return bool(numpy.shares_memory(_addresses(one), _addresses(other), max_work=_MOST_WORK))
    except Exception:
        return True  # too hard to tell exactly: the intervals overlap


class _Layout:
    """Addresses and strides as numpy takes them; no byte behind them is read."""

    def __init__(self, interface: dict[str, Any]) -> None:
        self.__array_interface__ = interface


def _addresses(seen: Seen) -> Any:
    """Return an array of opaque elements that lie where those of the tensor or array lie."""
    numpy = sys.modules["numpy"]
    if seen.kind != "tensor":
        return numpy.ndarray.view(seen.obj, numpy.ndarray)
    tensor = seen.obj
    size = tensor.element_size()
    return numpy.asarray(
        _Layout(
            {
                "version": 3,
                "data": (tensor.data_ptr(), True),
                "shape": tuple(int(n) for n in tensor.shape),
                "strides": tuple(int(n) * size for n in tensor.stride()),
                "typestr": f"|V{size}",
            }
        )
    )


def layout_key(seen: Seen) -> tuple[Any, ...] | None:
    """Return what two objects have in common when they are the very same elements."""
    if seen.span is None:
        return None
    span = seen.span
    if seen.kind == "tensor":
        size = seen.obj.element_size()
        shape, strides = seen.obj.shape, [n * size for n in seen.obj.stride()]
    else:
        ndarray = sys.modules["numpy"].ndarray
        shape, strides = ndarray.shape.__get__(seen.obj), ndarray.strides.__get__(seen.obj)
    return (span.device, span.start, span.end, *map(int, shape), *map(int, strides))


def elements_and_places(tensor: Any) -> tuple[int, int]:
    """Return how many elements a tensor has, and in how many places of memory they lie at most; zeros if unknown."""
    try:
        sizes, strides = tuple(tensor.shape), tuple(tensor.stride())
    except (RuntimeError, NotImplementedError, TypeError):
        return 0, 0  # a tensor without strides
    if any(type(n) is not int for n in (*sizes, *strides)) or 0 in sizes:
        return 0, 0
    return math.prod(sizes), 1 + sum((n - 1) * s for n, s in zip(sizes, strides, strict=True))


def repeated_dimensions(tensor: Any) -> list[int]:
    """Return the dimensions along which the elements of a tensor are the same memory over and over (stride 0)."""
    try:
        return [i for i, (n, s) in enumerate(zip(tensor.shape, tensor.stride(), strict=True)) if n > 1 and s == 0]
    except (RuntimeError, NotImplementedError, TypeError):
        return []  # a tensor without strides
