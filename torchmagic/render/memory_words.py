"""What the parts of a device's memory are called, and the plain words that go with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torchmagic.render.words import size

if TYPE_CHECKING:
    from torchmagic.holdings import DeviceMemory, OtherProcess, PartKind

UNKNOWN: Final = "–"
"""What stands where a number cannot be known."""

LABELS: Final[dict[PartKind, str]] = {
    "named": "tensors by name",
    "graph": "autograd graphs",
    "unnamed": "tensors without a name",
    "tensors": "tensors",
    "cache": "allocator cache",
    "context": "context and libraries",
    "process": "the rest of this process",
    "others": "other processes",
    "context or others": "context, libraries and other processes",
    "process or others": "the rest of this process, and others",
    "driver": "the driver's own",
    "free": "free",
    "free or others": "free, or other processes",
    "unknown": "not known",
}

_HINTS: Final[dict[PartKind, str]] = {
    "graph": "what `backward()` will need, and no variable holds",
    "unnamed": "usual suspects: workspaces of cuBLAS, graphs whose names are gone, variables of running functions,"
    " CUDA graphs, buckets of DistributedDataParallel",
    "cache": "reserved: PyTorch keeps it for its next tensors, and no tensor is in it now",
    "context": "CUDA itself, its kernels and libraries",
    "process": "Python, libraries and everything that is no tensor or array",
    "unknown": "free, in other processes, or in libraries: this device does not tell",
}

_MOST_PROCESSES: Final = 4
_SMALL_SHARE: Final = 0.01


def amount(number: int | None) -> str:
    """Return a size in words, or a dash where it is not known."""
    return UNKNOWN if number is None else size(number)


def percent(part: int, whole: int) -> str:
    """Return a share in words: "12 %", and "under 1 %" where there is a little."""
    if not whole or not part:
        return "0 %"
    share = 100 * part / whole
    return "under 1 %" if share < 1 else f"{share:.0f} %"


def hint(kind: PartKind, device: DeviceMemory, number: int | None) -> str:
    """Return what a reader may want to know of a part; empty where there is nothing to say."""
    if not number:
        return ""
    if kind in ("others", "context or others") and device.processes:
        return _processes(device.processes)
    if kind == "unnamed" and number < _SMALL_SHARE * (device.allocated_bytes or 0):
        return "the allocator rounds sizes up"
    if kind == "others" and device.is_host:
        return "and the system"
    return _HINTS.get(kind, "")


def _processes(processes: tuple[OtherProcess, ...]) -> str:
    ordered = sorted(processes, key=lambda process: -(process.used_bytes or 0))
    told = [_process(process) for process in ordered[:_MOST_PROCESSES]]
    left = len(ordered) - len(told)
    return "; ".join([*told, *([f"and {left:,} more"] if left else [])])


def _process(process: OtherProcess) -> str:
    name = f" {process.name}" if process.name else ""
    user = f" of {process.user}" if process.user else ""
    return f"process {process.pid}{name}{user}: {amount(process.used_bytes)}"
