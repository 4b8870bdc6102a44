"""Follow the storages that a cell makes and lets go of, to know the most that were alive at one time."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator
from typing import Any

from torchmagic.tracing.forks import LOOKING
from torchmagic.tracing.mode import leave_out_of_compilation, retried
from torchmagic.tracing.watch import take_off


class Allocations:
    """Counts the host's storages of one thread, operation by operation, between `begin` and `end`.

    `now` is how many bytes more than at the beginning are alive, and `most` the most there were. What an operation
    takes and gives back inside is not seen, nor what compiled code does.
    """

    def __init__(self) -> None:
        self.now = 0
        self.most = 0
        self._known: dict[int, _Watched] = {}
        self._mode: Any = None

    def begin(self, tensors: Iterable[Any]) -> None:
        """Begin to count; `tensors` are alive already, and their going counts."""
        for tensor in tensors:
            self.note(tensor, is_new=False)
        self._mode = _make_mode(self)
        self._mode.__enter__()
        LOOKING.add(self)

    def end(self) -> None:
        """Take the mode off, wherever in the stack it is by now."""
        self.stop()
        mode, self._mode = self._mode, None
        if mode is not None:
            take_off(mode)
        self._known.clear()

    def stop(self) -> None:
        """Count nothing any more; the mode hands every operation on."""
        LOOKING.discard(self)
        if self._mode is not None:
            self._mode.active = False

    def note(self, tensor: Any, *, is_new: bool = True) -> None:
        """Know the storage of a tensor, and count it when it is new."""
        try:
            if not tensor.is_cpu:
                return
            storage = tensor.untyped_storage()
            key, size = storage._cdata, storage.nbytes()  # noqa: SLF001 - its identity, whatever shows it
        except (RuntimeError, NotImplementedError, TypeError, ValueError, AttributeError):
            return  # a tensor type that has no storage says so by raising
        if key in self._known:
            return
        watched = self._known[key] = _Watched(storage, self._went)
        watched.key, watched.size = key, size
        if is_new:
            self.now += size
            self.most = max(self.most, self.now)

    def _went(self, reference: Any) -> None:
        if self._known.pop(reference.key, None) is not None:
            self.now -= reference.size


class _Watched(weakref.ref[Any]):
    """A weak reference that knows which storage it was to, and of how many bytes."""

    __slots__ = ("key", "size")
    key: int
    size: int


def is_followed() -> bool:
    """Tell whether some dispatch mode is on already, which may want its place back before ours is off."""
    torch = sys.modules["torch"]
    return bool(torch._C._len_torch_dispatch_stack())  # noqa: SLF001 - seen in torch 2.4 to 2.13


def _makes_storages(operation: Any) -> bool:
    """Tell whether an operation has a result that is no view of an operand and not written into one."""
    schema = getattr(operation, "_schema", None)
    return schema is None or any(result.alias_info is None for result in schema.returns)


def _tensors_in(out: Any) -> Iterator[Any]:
    if issubclass(type(out), sys.modules["torch"].Tensor):
        yield out
    elif type(out) in (tuple, list):
        for part in out:
            yield from _tensors_in(part)


def _make_mode(counting: Allocations) -> Any:
    """Return a dispatch mode of a class of its own; see `torchmagic.tracing.mode` for the reasons."""
    from torch.utils._python_dispatch import TorchDispatchMode

    fresh: dict[int, bool] = {}
    operations: list[Any] = []
    tensor, note = sys.modules["torch"].Tensor, counting.note

    class Counting(TorchDispatchMode):  # type: ignore[no-untyped-call]
        """Shows every operation to what counts."""

        active = True

        @classmethod
        def _should_skip_dynamo(cls) -> bool:
            return False

        @classmethod
        def ignore_compile_internals(cls) -> bool:
            """Let torch compile what the cell compiles."""
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            try:
                # What calling `func` does, without the call.
                out = func._op(*args, **kwargs) if kwargs else func._op(*args)  # noqa: SLF001
            except RuntimeError as error:
                out = retried(func, args, kwargs, error)
            if not self.active:
                return out
            try:
                makes = fresh.get(id(func))
                if makes is None:
                    makes = fresh[id(func)] = _makes_storages(func)
                    operations.append(func)  # kept, so that its identity stays its own
                    leave_out_of_compilation(type(self))
                if makes:
                    if type(out) is tensor:
                        note(out)
                    else:
                        for each in _tensors_in(out):
                            note(each)
            except Exception:
                self.active = False
            return out

    return Counting()  # type: ignore[no-untyped-call]
