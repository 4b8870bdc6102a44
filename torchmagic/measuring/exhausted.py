"""Read an out-of-memory error: which device had no room, and for how many bytes."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from torchmagic.measuring.leftovers import chained

_UNITS: Final = {
    "bytes": 0,
    "B": 0,
    "KiB": 1,
    "MiB": 2,
    "GiB": 3,
    "TiB": 4,
    "PiB": 5,
    "EiB": 6,
    "KB": 1,
    "MB": 2,
    "GB": 3,
}
"""All are powers of 1024: the messages of torch's allocator for Metal say MB and count so too."""

_ASKED: Final = re.compile(r"(?:[Tt]ried to allocate|Unable to allocate) ([\d.]+) ([KMGTPE]?i?B|bytes)")
_CUDA_DEVICE: Final = re.compile(r"\bGPU (\d+) has a total capacity|\(GPU (\d+);")
_REPLICA: Final = re.compile(r"on device (\d+)\.")
_HOST: Final = re.compile(r"DefaultCPUAllocator: (?:can't allocate|not enough) memory")


@dataclass(frozen=True)
class Exhausted:
    """A device that had no room. `asked_bytes` is None where the message does not tell."""

    device: str
    asked_bytes: int | None


def exhausted(error: BaseException | None) -> Exhausted | None:
    """Return what an error, or one that caused it, says of a device without room; None for every other error."""
    for link in _causes(error):
        device = _device(link)
        if device is not None:
            return Exhausted(device, _asked(str(link)))
    return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """Yield the error and what caused it. What was merely being handled when it came is another matter."""
    if error is None:
        return
    links = {id(link) for link in chained([error])}
    current: BaseException | None = error
    while current is not None and id(current) in links:
        links.discard(id(current))
        yield current
        current = current.__cause__


def _device(error: BaseException) -> str | None:
    torch, text = sys.modules["torch"], str(error)
    if issubclass(type(error), MemoryError) or _HOST.search(text):
        return "cpu"
    if text.startswith("MPS backend out of memory"):
        return "mps"
    if not issubclass(type(error), torch.cuda.OutOfMemoryError):
        return None
    kind = "xpu" if "XPU out of memory" in text else "cuda"
    found = _CUDA_DEVICE.search(text) or _REPLICA.search(text)
    index = next((group for group in found.groups() if group is not None), "0") if found is not None else "0"
    return f"{kind}:{index}"


def _asked(text: str) -> int | None:
    found = _ASKED.search(text)
    return None if found is None else int(float(found[1]) * 1024 ** _UNITS[found[2]])
