"""Say when one device of several carries more than its share, where the reason is known."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Final

from torchmagic.holdings import DeviceMemory
from torchmagic.namespace import Namespace
from torchmagic.render.words import size

_CLEARLY_MORE: Final = 1.3


def imbalances(devices: Sequence[DeviceMemory], found: Namespace) -> Iterator[str]:
    """Yield a sentence for each `DataParallel` whose first device has clearly more in tensors than its others.

    It gathers the outputs, the loss and the gradients of all replicas on one device
    (https://docs.pytorch.org/docs/stable/generated/torch.nn.DataParallel.html).
    """
    torch = sys.modules["torch"]
    held = {device.device: device.allocated_bytes for device in devices}
    for seen in found.of_kind("module"):
        if not issubclass(type(seen.obj), torch.nn.DataParallel):
            continue
        state = object.__getattribute__(seen.obj, "__dict__")
        names = [f"cuda:{index}" for index in state.get("device_ids") or ()]
        first = f"cuda:{state.get('output_device')}"
        others = [number for name in names if name != first and (number := held.get(name)) is not None]
        most = held.get(first)
        if most is not None and others and most > _CLEARLY_MORE * max(others):
            yield (
                f"{first} has {size(most)} in tensors and the other devices of `{seen.subject}` {size(max(others))} at"
                " most: DataParallel gathers outputs and gradients there, DistributedDataParallel would spread them"
            )
