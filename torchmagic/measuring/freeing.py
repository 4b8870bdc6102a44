"""Tell how many bytes come back when something is let go of, and hand allocators' caches back."""

from __future__ import annotations

import gc
import sys
import weakref
from collections import defaultdict
from collections.abc import Callable
from typing import Any

from torchmagic.measuring.attribution import Attribution
from torchmagic.measuring.backend import asked
from torchmagic.namespace.storage import allocation, array_span


class AliveStorages:
    """Every storage that is alive now, known by weak references; `gone` tells what has died since the last time.

    The tensors are those that Python's collector tracks, whoever holds them; arrays are not tracked, and are those that
    the attribution found.
    """

    def __init__(self, whole: Attribution) -> None:
        self._known: dict[tuple[str, int], tuple[weakref.ref[Any], int]] = {}
        torch = sys.modules["torch"]
        for obj in gc.get_objects():
            if issubclass(type(obj), torch.Tensor):
                self._note_tensor(obj)
        for block in whole.blocks:
            for claim in block.claims:
                if claim.seen.kind != "tensor":
                    self._note_array(claim.seen.obj)

    def gone(self) -> dict[str, int]:
        """Return the bytes that have come back on each device since the last time."""
        freed: dict[str, int] = defaultdict(int)
        for key, (reference, size) in list(self._known.items()):
            if reference() is None:
                freed[key[0]] += size
                del self._known[key]
        return dict(freed)

    def _note_tensor(self, tensor: Any) -> None:
        held = allocation(tensor)
        if held is not None:
            self._known[str(tensor.device), held[0]] = (weakref.ref(tensor.untyped_storage()), held[1])

    def _note_array(self, array: Any) -> None:
        ndarray = sys.modules["numpy"].ndarray
        owner = array
        while type(base := ndarray.base.__get__(owner)) is ndarray:
            owner = base
        span = array_span(owner)
        # Memory that a tensor or a file lends to an array comes back with these.
        if span is not None and ndarray.base.__get__(owner) is None:
            self._known["cpu", span.start] = (weakref.ref(owner), span.storage_bytes)


def collect() -> None:
    """Free what only refers to itself."""
    gc.collect()


def empty_caches() -> dict[str, int]:
    """Hand back to the driver what no tensor is in, and return how many bytes each allocator gave.

    Only allocators that were started are asked.
    """
    torch = sys.modules["torch"]
    freed: dict[str, int] = {}
    for kind in ("cuda", "xpu"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_initialized():
            indices = range(module.device_count())
            freed |= _emptied(
                module.empty_cache, {f"{kind}:{index}": (module.memory_reserved, index) for index in indices}
            )
    if torch.backends.mps.is_built() and torch.backends.mps.is_available():
        freed |= _emptied(torch.mps.empty_cache, {"mps": (torch.mps.driver_allocated_memory,)})
    return freed


def _emptied(empty: Callable[[], None], questions: dict[str, tuple[Any, ...]]) -> dict[str, int]:
    before = {name: asked(*question) for name, question in questions.items()}
    asked(empty)
    freed = {}
    for name, question in questions.items():
        was, now = before[name], asked(*question)
        if was is not None and now is not None and was > now:
            freed[name] = was - now
    return freed
