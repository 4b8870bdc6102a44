"""Intel's devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.backend import asked, unreadable

NOT_APART: Final = "the driver does not tell the processes of this device apart"


class Xpu:
    """Reads `torch.xpu`, once it was started."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def read(self) -> Iterator[DeviceMemory]:
        """Yield the devices that this process sees."""
        xpu = getattr(self._torch, "xpu", None)
        if xpu is None or not xpu.is_initialized():
            return
        for index in range(xpu.device_count()):
            try:
                yield self._device(xpu, index)
            except Exception as problem:
                yield unreadable(f"xpu:{index}", problem)

    def _device(self, xpu: Any, index: int) -> DeviceMemory:
        stats = xpu.memory_stats(index)
        properties = xpu.get_device_properties(index)
        # Some drivers do not tell what is free.
        free, total = asked(xpu.mem_get_info, index) or (None, properties.total_memory)
        return DeviceMemory(
            f"xpu:{index}",
            name=str(properties.name),
            total_bytes=int(total),
            used_bytes=None if free is None else int(total - free),
            allocated_bytes=stats.get("allocated_bytes.all.current", 0),
            reserved_bytes=stats.get("reserved_bytes.all.current", 0),
            peak_bytes=stats.get("allocated_bytes.all.peak", 0),
            remarks=(NOT_APART,),
        )
