"""How the memory of each device went while a panel watched, in a bounded number of points."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence

from torchmagic.holdings import DeviceMemory

MOST_POINTS = 240


class History:
    """The last points of each device: bytes in tensors, on the host those of this process."""

    def __init__(self, most_points: int = MOST_POINTS) -> None:
        self._most = most_points
        self._points: dict[str, deque[int]] = {}

    def add(self, devices: Sequence[DeviceMemory]) -> None:
        """Note a reading; a device that does not tell gets no point."""
        for device in devices:
            number = device.process_bytes if device.is_host else device.allocated_bytes
            if number is not None:
                self._points.setdefault(device.device, deque(maxlen=self._most)).append(number)

    def curves(self) -> Mapping[str, tuple[int, ...]]:
        """Return the points of each device, the oldest first."""
        return {device: tuple(points) for device, points in self._points.items()}
