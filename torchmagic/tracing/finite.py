"""Whether a result is finite, as cheaply as it can be told."""

from __future__ import annotations

import math
import sys
import time
from typing import Any, Final

FINITE: Final = 0
INFINITE: Final = 1
NAN: Final = 2

_FEW: Final = 16
"""Elements that are read one by one: sooner than an operation is called on them."""

_LARGE: Final = 1 << 14
"""Elements from which on the time of reading is worth the time of timing."""


class Reader:
    """Tells whether tensors are finite; `seconds` is the time that reading large ones took.

    Integers and booleans count as finite, and so do tensors whose values cannot be read: meta, fake, nested,
    quantized, and subclasses that handle operations themselves. To be used with no mode on the stack.
    """

    def __init__(self) -> None:
        torch = sys.modules["torch"]
        self.seconds = 0.0
        self._plain = frozenset({torch.Tensor, torch.nn.Parameter})
        self._strided = torch.strided
        self._aminmax = torch.aminmax
        self._dispatch = torch.Tensor.__torch_dispatch__

    def is_finite(self, tensor: Any) -> bool:
        """Tell whether a plain tensor's values are all finite; small ones, which are most, by the shortest way."""
        if tensor.numel() <= _FEW:
            try:
                values = tensor.tolist()
                # `hypot` scales its arguments: large ones do not overflow.
                return math.isfinite(values if type(values) is float else math.hypot(*values))
            except (TypeError, RuntimeError, NotImplementedError):
                pass  # complex numbers, rows of rows, tensors without values
        return not self.state_of(tensor)

    def state_of(self, tensor: Any) -> int:
        """Tell whether a tensor's values are all finite, include infinities, or include NaN."""
        if not tensor.is_floating_point():
            return self._complex_state(tensor) if tensor.is_complex() else FINITE
        return self._read(tensor)

    def _read(self, tensor: Any) -> int:
        try:
            if tensor.numel() < _LARGE:
                return self._state(tensor)
            start = time.perf_counter()
            state = self._state(tensor)
            self.seconds += time.perf_counter() - start
        except (RuntimeError, NotImplementedError, TypeError):
            return FINITE  # a kind of tensor that says by raising that it has no values to read
        return state

    def _state(self, tensor: Any) -> int:
        """Read each byte once: a sum hands NaN and infinities on, and seldom overflows by itself."""
        if type(tensor) not in self._plain and type(tensor).__torch_dispatch__ is not self._dispatch:
            return FINITE
        tensor = dense_values(tensor)
        if tensor is None or tensor.is_meta or not tensor.numel() or is_without_memory(tensor):
            return FINITE
        if 0 in tensor.stride():  # an expanded dimension holds one value many times
            for dim in range(tensor.dim() - 1, -1, -1):
                tensor = tensor.select(dim, 0) if tensor.stride(dim) == 0 else tensor
        if tensor.element_size() == 1:  # float8 has neither sum nor aminmax
            tensor = tensor.float()
        if math.isfinite(tensor.sum().item()):
            return FINITE
        low, high = self._aminmax(tensor)
        least, greatest = low.item(), high.item()
        if math.isfinite(least) and math.isfinite(greatest):
            return FINITE
        return _worst((least, greatest))

    def _complex_state(self, tensor: Any) -> int:
        view = sys.modules["torch"].view_as_real
        return self._read(view(tensor.resolve_conj())) if tensor.layout is self._strided else FINITE


def dense_values(tensor: Any) -> Any:
    """Return the values that a sparse tensor stores, or a dense tensor itself; None for other layouts."""
    torch = sys.modules["torch"]
    if tensor.layout is torch.strided:
        return tensor
    if tensor.layout is torch.sparse_coo:
        return tensor._values()  # noqa: SLF001 - `values` wants a coalesced tensor
    return tensor.values() if str(tensor.layout) in _COMPRESSED else None


_COMPRESSED: Final = frozenset(f"torch.sparse_{kind}" for kind in ("csr", "csc", "bsr", "bsc"))


def is_without_memory(tensor: Any) -> bool:
    """Tell whether a dense tensor's memory was given back, as sharded training does, or never was there.

    The latter are the zeros of forward derivatives. To read one of either kind ends the process.
    """
    return bool(tensor._is_zerotensor() or not tensor.untyped_storage().nbytes())  # noqa: SLF001


def _worst(values: Any) -> int:
    return NAN if any(map(math.isnan, values if type(values) in (list, tuple) else (values,))) else INFINITE
