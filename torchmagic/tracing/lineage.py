"""Which memory holds bad values, and which event made it so."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from torchmagic.tracing.finite import dense_values, is_without_memory

if TYPE_CHECKING:
    from torchmagic.tracing.events import Event

_SWEEP_EVERY = 256


class Lineage:
    """The storages that hold bad values, by weak references: a storage's memory is free as soon as the user drops it.

    A weak reference keeps the few bytes of the storage's header, so its address means the same storage as long as it
    is remembered here.
    """

    def __init__(self) -> None:
        self.marks: dict[int, tuple[Any, int, range]] = {}
        """By the storage's address: a weak reference to it, the number of the event, and the addresses of its bytes.
        Empty while all is well."""
        self._until_sweep = _SWEEP_EVERY
        self.events: list[Event] = []

    def mark(self, tensor: Any, event: int) -> None:
        """Note that an event made the memory of a tensor bad."""
        storage = storage_of(tensor)
        if storage is None:
            return
        self.marks[storage._cdata] = (_weak(storage), event, _bytes_of(storage))  # noqa: SLF001 - torch's key of it
        self._until_sweep -= 1
        if not self._until_sweep:
            self.sweep()

    def event_of(self, tensor: Any) -> int | None:
        """Return the number of the latest event that made a tensor's memory bad, or None."""
        if not self.marks:
            return None
        storage = storage_of(tensor)
        mark = self.marks.get(storage._cdata) if storage is not None else None  # noqa: SLF001
        return mark[1] if mark is not None else None

    def event_at(self, address: int) -> int | None:
        """Return the number of the latest event that made the memory at an address bad, which numpy may share."""
        return max(
            (number for weak, number, where in self.marks.values() if address in where and not weak.expired()),
            default=None,
        )

    def clear(self, tensor: Any) -> None:
        """Note that all of a tensor's memory is finite again, if the tensor covers it."""
        storage = storage_of(tensor)
        if storage is not None and tensor.numel() * tensor.element_size() >= storage.nbytes():
            self.marks.pop(storage._cdata, None)  # noqa: SLF001

    def sweep(self) -> None:
        """Forget storages that are gone."""
        for key in [key for key, mark in self.marks.items() if mark[0].expired()]:
            del self.marks[key]
        self._until_sweep = max(_SWEEP_EVERY, len(self.marks))


def storage_of(tensor: Any) -> Any:
    """Return a tensor's storage, that of the values of a sparse one; None for those that have none."""
    try:
        return tensor.untyped_storage()
    except (RuntimeError, NotImplementedError, AttributeError, TypeError):
        return _storage_of_values(tensor)


def _storage_of_values(tensor: Any) -> Any:
    with suppress(RuntimeError, NotImplementedError, AttributeError, TypeError):
        values = dense_values(tensor)
        return values.untyped_storage() if values is not tensor else None
    return None


def _bytes_of(storage: Any) -> range:
    try:
        start = storage.data_ptr()
    except RuntimeError:
        return range(0)  # of a kind that has no memory
    return range(start, start + storage.nbytes())


def _weak(storage: Any) -> Any:
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(storage)  # type: ignore[no-untyped-call]


def has_address(tensor: Any) -> bool:
    """Tell whether a tensor's values lie in memory of the host."""
    return tensor.layout is sys.modules["torch"].strided and bool(tensor.is_cpu) and not is_without_memory(tensor)


def is_tensor(value: Any) -> bool:
    """Tell whether a value is a tensor, by its type."""
    return issubclass(type(value), sys.modules["torch"].Tensor)
