"""Which bytes of memory a tensor or an array covers."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple


class Span(NamedTuple):
    """Memory between the addresses `start` and `end` (exclusive) on one device.

    `storage_start` and `storage_bytes` describe the whole allocation that the span is a part of.
    """

    device: str
    start: int
    end: int
    storage_start: int
    storage_bytes: int

    def overlaps(self, other: Span) -> bool:
        """Tell whether the two share an address."""
        return self.device == other.device and self.start < other.end and other.start < self.end


def tensor_span(tensor: Any) -> Span | None:
    """Return the bytes that the elements of a strided tensor lie in, from the first to the last.

    None for tensors without memory of their own to speak of: meta, fake and other subclasses that answer for
    themselves, empty, sparse, nested, quantized by channel, mkldnn, uninitialized parameters.
    """
    torch = sys.modules["torch"]
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return None
    try:
        if tensor.layout is not torch.strided or tensor.is_nested or tensor.device.type == "meta":
            return None
        storage = tensor.untyped_storage()
        base, elements = int(storage.data_ptr()), int(tensor.numel())
        if not base or not elements:
            return None
        size = tensor.element_size()
        first = base + int(tensor.storage_offset()) * size
        if not tensor.is_contiguous():
            elements = 1 + sum((n - 1) * stride for n, stride in zip(tensor.shape, tensor.stride(), strict=True))
        device = "cpu" if tensor.is_cpu else str(tensor.device)
        return Span(device, first, first + int(elements) * size, base, int(storage.nbytes()))
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
        return None  # a tensor type that has no storage says so by raising


def allocation(tensor: Any) -> tuple[int, int] | None:
    """Return the address and the bytes of the allocation that a tensor lies in; None for one that owns no memory."""
    torch = sys.modules["torch"]
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return None
    try:
        storage = tensor.untyped_storage()
        address = int(storage.data_ptr())
        return (address, int(storage.nbytes())) if address else None
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return None  # a tensor type that has no storage says so by raising


def array_span(array: Any) -> Span | None:
    """Return the bytes that the elements of a numpy array lie in; None for an empty array.

    Follows `numpy.lib.array_utils.byte_bounds`, which numpy 1 keeps elsewhere.
    """
    ndarray = sys.modules["numpy"].ndarray
    if not ndarray.size.__get__(array):
        return None
    start = int(ndarray.__array_interface__.__get__(array)["data"][0])
    low = high = start
    for length, stride in zip(ndarray.shape.__get__(array), ndarray.strides.__get__(array), strict=True):
        low += min(0, (length - 1) * stride)
        high += max(0, (length - 1) * stride)
    high += int(ndarray.itemsize.__get__(array))
    owner = array
    while type(base := ndarray.base.__get__(owner)) is ndarray:
        owner = base
    whole = int(ndarray.__array_interface__.__get__(owner)["data"][0])
    return Span("cpu", low, high, min(whole, low), int(ndarray.nbytes.__get__(owner)))
