"""Watch the memory of a cell: what there was before, the most on the way, and what is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.attribution import attribute
from torchmagic.measuring.backend import Backend, asked
from torchmagic.measuring.host import Host
from torchmagic.measuring.leftovers import leftovers
from torchmagic.measuring.look import read_devices
from torchmagic.measuring.sampling import Sampler
from torchmagic.memory_changes import HolderChange, Swing
from torchmagic.memory_report import CellReport
from torchmagic.namespace import undisturbed
from torchmagic.tracing.allocations import Allocations, is_followed

INTERVAL_SECONDS: Final = 0.02

_IN_TENSORS: Final = "in tensors"
_RESIDENT: Final = "resident"
_BY_NAME: Final = "tensors and arrays by name"


class MemoryWatch:
    """A cell that runs. What is kept of the time before are numbers and names, so nothing stays alive by it.

    With `exact` the host's tensors are counted operation by operation, which gives their own peak and takes time.
    """

    def __init__(
        self,
        names: Mapping[str, Any],
        hidden: Collection[str] = (),
        sources: Sequence[Backend] | None = None,
        *,
        exact: bool = False,
    ) -> None:
        self._names = names
        self._hidden = hidden
        self._sources = sources
        self._exact = exact
        self._allocations: Allocations | None = None
        self._seconds: float | None = None
        self._remarks: list[str] = []
        self._before = self._holders()
        self._devices = read_devices(sources)
        self._sampler = Sampler(_question(self._devices), INTERVAL_SECONDS)
        self._start = time.perf_counter()

    def begin(self) -> None:
        """Start to sample; the cell runs next."""
        if self._exact:
            self._begin_counting()
        self._sampler.begin()
        self._start = time.perf_counter()

    @property
    def is_counting(self) -> bool:
        """Whether operations are counted, so that frames of ours stand below the user's."""
        return self._allocations is not None

    def note_end(self) -> None:
        """Take the time, since others may have something to do between the cell's end and `end`."""
        self._seconds = time.perf_counter() - self._start

    def end(self) -> CellReport:
        """Return what the cell did."""
        seconds = self._seconds if self._seconds is not None else time.perf_counter() - self._start
        self.drop()
        after = self._holders()
        devices = read_devices(self._sources)
        return CellReport(
            swings=tuple(self._swings(devices, after)),
            changes=tuple(self._changes(after)),
            remarks=tuple(self._remarks),
            seconds=seconds,
        )

    def drop(self) -> None:
        """Stop sampling and counting."""
        self._sampler.end()
        if self._allocations is not None:
            self._allocations.end()

    def _begin_counting(self) -> None:
        import torch  # noqa: F401 -- asked to follow a cell, we need what the cell is about to import

        if is_followed():
            self._remarks.append("The tensors were not counted: the cell's operations are followed by something else.")
            return
        with undisturbed():
            whole = attribute(self._names, leftovers(self._names), self._hidden)
            claims = [claim for block in whole.blocks for claim in block.claims if claim.seen.kind == "tensor"]
            tensors = [claim.seen.obj for claim in claims]
        self._allocations = Allocations()
        self._allocations.begin(tensors)

    def _holders(self) -> dict[tuple[str, str], int]:
        if "torch" not in sys.modules:
            return {}
        with undisturbed():
            whole = attribute(self._names, leftovers(self._names), self._hidden)
            return {(holder.device, holder.path): holder.bytes for holder in whole.holders()}

    def _swings(self, devices: Sequence[DeviceMemory], after: Mapping[tuple[str, str], int]) -> list[Swing]:
        before = {device.device: device for device in self._devices}
        swings = []
        for device in devices:
            old = before.get(device.device)
            if device.is_host:
                swings += self._host_swings(device, old, after)
            elif device.allocated_bytes is not None:
                swings.append(self._allocator_swing(device, old))
        return swings

    def _allocator_swing(self, device: DeviceMemory, old: DeviceMemory | None) -> Swing:
        # A device that was not there before was not started.
        was = old.allocated_bytes if old is not None else 0
        highest = old.peak_bytes if old is not None else 0
        peak, ceiling, sampled = device.peak_bytes, None, False
        if peak is None or (highest is not None and peak <= highest):
            # The allocator's own peak is from before the cell, and may not be reset: it is the user's.
            ceiling, sampled = peak, True
            peak = max(self._sampler.peaks.get(device.device, 0), was or 0, device.allocated_bytes or 0)
        return Swing(device.device, _IN_TENSORS, was, device.allocated_bytes, peak, sampled, ceiling)

    def _host_swings(
        self, device: DeviceMemory, old: DeviceMemory | None, after: Mapping[tuple[str, str], int]
    ) -> list[Swing]:
        was = old.process_bytes if old is not None else None
        now = device.process_bytes
        swings = []
        if now is not None:
            peak = max(self._sampler.peaks.get(device.device, 0), was or 0, now)
            swings.append(Swing(device.device, _RESIDENT, was, now, peak, is_sampled=True))
        before = _held(self._before, device)
        most = None if self._allocations is None else before + self._allocations.most
        return [*swings, Swing(device.device, _BY_NAME, before, _held(after, device), most)]

    def _changes(self, after: Mapping[tuple[str, str], int]) -> list[HolderChange]:
        changes = [
            HolderChange(path, device, self._before.get((device, path), 0), after.get((device, path), 0))
            for device, path in self._before.keys() | after.keys()
        ]
        changed = [change for change in changes if change.change_bytes]
        return sorted(changed, key=lambda change: (-abs(change.change_bytes), change.path))


def _held(holders: Mapping[tuple[str, str], int], device: DeviceMemory) -> int:
    return sum(size for (place, _), size in holders.items() if place == device.device)


def _question(devices: Sequence[DeviceMemory]) -> Callable[[], dict[str, int]]:
    """Return what asks for the bytes in tensors of each accelerator that was started, and the resident ones."""
    torch = sys.modules.get("torch")
    asking: dict[str, Callable[[], int | None]] = {}
    for device in devices:
        kind, _, index = device.device.partition(":")
        if device.is_host:
            asking[device.device] = Host().process_bytes
        elif kind == "mps":
            asking[device.device] = partial(asked, torch.mps.current_allocated_memory)  # type: ignore[union-attr]
        elif kind in ("cuda", "xpu") and torch is not None:
            asking[device.device] = partial(asked, getattr(torch, kind).memory_allocated, int(index))

    def ask() -> dict[str, int]:
        answers = {name: question() for name, question in asking.items()}
        return {name: answer for name, answer in answers.items() if answer is not None}

    return ask
