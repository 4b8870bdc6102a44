"""Read the values of tensors and arrays at memory speed: which are finite, and how many are not."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

_CHUNK = 1 << 15
"""Elements looked at together when the bad ones are counted: about half a megabyte of masks and copies."""

_FEW = 32
"""Elements that are told one by one sooner than an operation is called on them."""

_LARGEST_MAPPED_BYTES = 1 << 28


@dataclass(frozen=True)
class Counts:
    """How many values of a tensor are not finite.

    `first` is the index of the first one in row order; None where positions mean little (sparse values).
    `largest` is the greatest magnitude among the finite values.
    """

    total: int
    nan: int
    positive: int
    negative: int
    first: tuple[int, ...] | None
    largest: float

    @property
    def bad(self) -> int:
        """How many are NaN or infinite."""
        return self.nan + self.positive + self.negative


def count_number(value: float) -> Counts:
    """Count a single number."""
    return Counts(1, int(math.isnan(value)), int(value == math.inf), int(value == -math.inf), (), 0.0)


def count_tensor(tensor: Any) -> Counts | None:
    """Return the counts of a tensor with NaN or infinite values; None for a finite one, and where none can be read.

    Integers, booleans, meta, fake, quantized, mkldnn and empty tensors are not read, nor are subclasses that handle
    operations themselves.
    """
    try:
        values, has_positions = _readable(tensor)
        if values is None or _is_finite(values):
            return None
        return _count(values, has_positions)
    except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
        return None  # a kind of tensor that says by raising that it has no values to read


def count_array(array: Any) -> Counts | None:
    """Return the counts of a numpy array with NaN or infinite values; None for every other array.

    Masked arrays and large memory-mapped files are not read.
    """
    numpy, torch = sys.modules["numpy"], sys.modules["torch"]
    kind = type(array)
    if issubclass(kind, numpy.ma.MaskedArray) or numpy.ndarray.dtype.__get__(array).kind not in "fc":
        return None
    if issubclass(kind, numpy.memmap) and numpy.ndarray.nbytes.__get__(array) > _LARGEST_MAPPED_BYTES:
        return None
    plain = numpy.ndarray.view(array, numpy.ndarray)
    if not plain.size:
        return None
    with numpy.errstate(all="ignore"):
        # The least and the greatest of complex numbers say nothing about their parts: their sum does well enough.
        ends = (plain.min(), plain.max()) if plain.dtype.kind == "f" else (plain.sum(),)
        if all(bool(numpy.isfinite(end)) for end in ends):
            return None
    try:
        return count_tensor(torch.from_numpy(plain) if plain.flags.writeable else _copied(torch, numpy, plain))
    except (TypeError, ValueError):  # byte order, negative strides or precision that torch has no type for
        return count_tensor(_copied(torch, numpy, plain))


def _copied(torch: Any, numpy: Any, plain: Any) -> Any:
    return torch.from_numpy(numpy.array(plain, dtype=numpy.float64 if plain.dtype.kind == "f" else numpy.complex128))


def _readable(tensor: Any) -> tuple[Any, bool]:
    """Return a strided floating-point view of a tensor's values, and whether its indices are the tensor's."""
    torch = sys.modules["torch"]
    handles_itself = type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if handles_itself and not tensor.is_nested:
        return None, False
    if not (tensor.is_floating_point() or tensor.is_complex()) or tensor.is_quantized or tensor.device.type == "meta":
        return None, False
    if tensor.requires_grad:
        tensor = tensor.detach()
    if tensor.is_nested:
        values = tensor.values()  # the rows one after the other, without the gaps between them
        return (values if values.numel() else None), False
    if tensor.layout is torch.strided:
        return (tensor, True) if tensor.numel() else (None, False)
    values = torch.Tensor._values(tensor) if tensor.layout is torch.sparse_coo else None  # noqa: SLF001 - public only once coalesced
    if values is None and str(tensor.layout) in _COMPRESSED:
        values = tensor.values()
    return (values, False) if values is not None and values.numel() else (None, False)


_COMPRESSED = frozenset({"torch.sparse_csr", "torch.sparse_csc", "torch.sparse_bsr", "torch.sparse_bsc"})


def _is_finite(values: Any) -> bool:
    """Tell whether all values are finite, reading each byte once and making no mask.

    `aminmax` hands NaN on, and is about thirty times as fast as `isfinite().all()`.
    """
    torch = sys.modules["torch"]
    if values.numel() <= _FEW and not values.is_complex():
        return all(map(math.isfinite, values.flatten().tolist()))
    for dim in range(values.dim() - 1, -1, -1):
        if values.stride(dim) == 0:
            values = values.select(dim, 0)  # an expanded dimension holds one value many times
    if values.is_complex():
        values = torch.view_as_real(values.conj() if values.is_conj() else values)
    if values.element_size() == 1:  # float8 has no aminmax
        return all(bool(torch.isfinite(part.float()).all()) for part, _ in _chunks(values, ()))
    low, high = torch.aminmax(values)
    return math.isfinite(low.item()) and math.isfinite(high.item())


def _chunks(values: Any, at: tuple[int, ...]) -> Iterator[tuple[Any, tuple[int, ...]]]:
    """Yield parts of a tensor in row order, each with the index of its first element in the leading dimensions."""
    if values.numel() <= _CHUNK or not values.dim():
        yield values, at
        return
    rows = max(1, _CHUNK * values.shape[0] // values.numel())
    for start in range(0, values.shape[0], rows):
        if rows == 1:
            yield from _chunks(values[start], (*at, start))
        else:
            yield values[start : start + rows], (*at, -start - 1)


def _count(values: Any, has_positions: bool) -> Counts:
    nan = positive = negative = 0
    first: tuple[int, ...] | None = None
    largest = 0.0
    for part, at in _chunks(values, ()):
        if not part.is_complex() and part.element_size() > 1:
            low, high = (end.item() for end in sys.modules["torch"].aminmax(part))
            if math.isfinite(low) and math.isfinite(high):
                largest = max(largest, -low, high)
                continue
        is_nan, is_positive, is_negative, magnitude = _masks(part)
        bad = is_nan | is_positive | is_negative
        nan, positive, negative = (
            nan + int(is_nan.sum()),
            positive + int(is_positive.sum()),
            negative + int(is_negative.sum()),
        )
        largest = max(largest, float(magnitude.masked_fill(bad, 0).max()))
        if first is None and has_positions and bool(bad.any()):
            first = _position(bad.nonzero()[0].tolist() if bad.dim() else [], at)
    return Counts(values.numel(), nan, positive, negative, first, largest)


def _masks(part: Any) -> tuple[Any, Any, Any, Any]:
    """Return where a part is NaN, +Inf (any complex infinity) and -Inf, and its magnitudes."""
    torch = sys.modules["torch"]
    if part.is_complex():
        is_nan = torch.isnan(part)
        return is_nan, torch.isinf(part) & ~is_nan, torch.zeros_like(is_nan), part.abs()
    wide = part.float() if part.element_size() < 4 else part
    return torch.isnan(wide), torch.isposinf(wide), torch.isneginf(wide), wide.abs()


def _position(inside: list[int], at: tuple[int, ...]) -> tuple[int, ...]:
    """Return the index in the whole tensor of an index inside a part that `_chunks` yielded."""
    if at and at[-1] < 0:  # the part is a range of rows, from -at[-1] - 1 on
        return (*at[:-1], inside[0] - at[-1] - 1, *inside[1:])
    return (*at, *inside)
