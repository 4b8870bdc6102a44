"""Which allocations a tensor or an array keeps alive, whatever its layout, read from addresses alone."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from torchmagic.devices import device_of
from torchmagic.namespace.children import object_state
from torchmagic.namespace.storage import allocation, array_span

_MOST_BASES = 100


class Stretch(NamedTuple):
    """Memory between two addresses on one device, the second not included."""

    device: str
    start: int
    end: int


def stretches_of(obj: Any, kind: str) -> Iterator[Stretch]:
    """Yield the memory behind a tensor, or an array or column of numpy's (`kind` says which)."""
    if kind == "tensor":
        yield from tensor_stretches(obj)
    else:
        yield from _array_stretches(obj)


def tensor_stretches(tensor: Any, depth: int = 0) -> Iterator[Stretch]:
    """Yield the memory of a tensor: one storage, or those of the tensors that a sparse or wrapped one is made of.

    A tensor without memory (meta, fake, empty) has none to yield, and what oneDNN keeps in a layout of its own is not
    told.
    """
    held = allocation(tensor)
    if held is not None:
        if held[1]:
            yield Stretch(device_of(tensor) or "cpu", held[0], held[0] + held[1])
        return
    if depth < 3:
        for part in _parts_of(tensor):
            yield from tensor_stretches(part, depth + 1)


def _parts_of(tensor: Any) -> Iterator[Any]:
    """Yield the tensors that a sparse tensor is made of, or that a subclass wraps."""
    torch = sys.modules["torch"]
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        # Such a class keeps what it wraps in attributes, which are read without asking it.
        for _, value in object_state(tensor):
            if issubclass(type(value), torch.Tensor):
                yield value
        return
    try:
        for name in _SPARSE_PARTS.get(str(tensor.layout), ()):
            yield getattr(torch.Tensor, name)(tensor)
    except (RuntimeError, NotImplementedError, TypeError, AttributeError):
        return


_SPARSE_PARTS = {
    # The public names want a coalesced tensor.
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _array_stretches(array: Any) -> Iterator[Stretch]:
    """Yield the memory that an array keeps alive: that of the last array or tensor it is a view of.

    An array that shows a mapped file has no memory of its own.
    """
    numpy, torch = sys.modules["numpy"], sys.modules.get("torch")
    owner = array
    for _ in range(_MOST_BASES):
        base = numpy.ndarray.base.__get__(owner)
        if torch is not None and issubclass(type(base), torch.Tensor):
            yield from tensor_stretches(base)
            return
        if type(base).__module__ == "mmap":
            return
        if not issubclass(type(base), numpy.ndarray):
            break
        owner = base
    span = array_span(array)
    if span is not None:
        yield Stretch("cpu", span.storage_start, max(span.storage_start + span.storage_bytes, span.end))
