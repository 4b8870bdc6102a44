"""Apple's devices, whose memory is the machine's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.backend import asked

SHARED: Final = "this device shares the machine's memory; its total is what Metal recommends to use at most"


class Mps:
    """Reads `torch.mps`; `torch.accelerator` has no numbers for it (https://github.com/pytorch/pytorch/issues/186430)."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def read(self) -> Iterator[DeviceMemory]:
        """Yield the device, where there is one."""
        if not self._torch.backends.mps.is_built() or not self._torch.backends.mps.is_available():
            return
        mps = self._torch.mps
        yield DeviceMemory(
            "mps",
            name="Apple GPU",
            total_bytes=asked(mps.recommended_max_memory) or None,
            allocated_bytes=asked(mps.current_allocated_memory),
            # What Metal gave this process: the allocator's, and what Metal's own libraries took.
            reserved_bytes=asked(mps.driver_allocated_memory),
            remarks=(SHARED,),
        )
