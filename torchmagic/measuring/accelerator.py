"""Any other accelerator that torch knows, through the interface that all of them share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.backend import asked

_HAVE_THEIR_OWN: Final = frozenset({"cuda", "mps", "xpu", "cpu"})


class Accelerator:
    """Reads `torch.accelerator`, whose memory statistics came with torch 2.9; what an older one lacks is not known."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def read(self) -> Iterator[DeviceMemory]:
        """Yield the devices whose allocator was started."""
        accelerator: Any = getattr(self._torch, "accelerator", None)
        current: Any = asked(accelerator.current_accelerator) if accelerator is not None else None
        if current is None or current.type in _HAVE_THEIR_OWN:
            return
        for index in range(asked(accelerator.device_count) or 0):
            stats = asked(accelerator.memory_stats, index) if hasattr(accelerator, "memory_stats") else None
            if not stats:
                # Empty until the allocator starts: then nothing is asked that would start it.
                yield DeviceMemory(f"{current.type}:{index}", name=str(current.type))
                continue
            info = asked(accelerator.get_memory_info, index) if hasattr(accelerator, "get_memory_info") else None
            free, total = info if info is not None else (None, None)
            yield DeviceMemory(
                f"{current.type}:{index}",
                name=str(current.type),
                total_bytes=total,
                used_bytes=None if free is None or total is None else total - free,
                allocated_bytes=stats.get("allocated_bytes.all.current"),
                reserved_bytes=stats.get("reserved_bytes.all.current"),
                peak_bytes=stats.get("allocated_bytes.all.peak"),
            )
