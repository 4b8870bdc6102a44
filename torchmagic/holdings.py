"""The values that a look at memory produces: what each device holds, and who holds it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

Use = Literal["parameters", "gradients", "optimizer state", "buffers", "autograd graph", "other"]

USES: Final[tuple[Use, ...]] = ("parameters", "gradients", "optimizer state", "buffers", "autograd graph", "other")
"""What memory is used for. Memory that is several things at once counts as the first of them."""

PartKind = Literal[
    "named",
    "graph",
    "unnamed",
    "tensors",
    "cache",
    "context",
    "process",
    "others",
    "context or others",
    "process or others",
    "driver",
    "free",
    "free or others",
    "unknown",
]
"""The parts of a device's bar.

`named`: tensors of variables; `graph`: what autograd graphs alone hold; `unnamed`: the other tensors of the allocator;
`tensors`: all three, where names were not looked up; `cache`: held by the allocator, in use by no tensor; `context`:
the rest of this process on an accelerator; `process`: the rest of this process on the host; `others`: other processes;
`driver`: what the driver keeps for itself. The kinds with "or" are sums whose terms the system does not tell apart.
"""


@dataclass(frozen=True)
class Part:
    """One part of a device's memory; `bytes` is None where it cannot be known."""

    kind: PartKind
    bytes: int | None


@dataclass(frozen=True)
class OtherProcess:
    """Another process on a device. `used_bytes` is None, and `name` and `user` are empty, where they are not known."""

    pid: int
    used_bytes: int | None
    name: str = ""
    user: str = ""


@dataclass(frozen=True)
class DeviceMemory:
    """The memory of one device, in bytes; None is "not known".

    `device` is torch's name of it (`cuda:0`, `cpu`), or `GPU 0` while torch has not numbered it. `used_bytes` is what
    all processes use together, the driver's own part (`driver_bytes`) not counted, and `process_bytes` what this one
    does. `allocated_bytes`, `reserved_bytes` and `peak_bytes` are the allocator's: now in tensors, now taken from the
    driver, and most in tensors since the start; on the host the peak is that of the resident size. `named_bytes` and
    `graph_bytes` are those of the holders, None where no names were looked up. `parts` add up to `total_bytes` where
    all of them are known. `busy_percent` is the share of the last moments in which the device worked. `remarks` are
    sentences for the reader.
    """

    device: str
    name: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    driver_bytes: int | None = None
    process_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    peak_bytes: int | None = None
    named_bytes: int | None = None
    graph_bytes: int | None = None
    busy_percent: int | None = None
    processes: tuple[OtherProcess, ...] | None = None
    parts: tuple[Part, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def is_host(self) -> bool:
        """Whether this is the memory that Python itself lives in."""
        return self.device == "cpu"

    @property
    def unattributed_bytes(self) -> int | None:
        """Bytes in tensors that no variable, output, frame or graph was seen to hold; None where it is not known."""
        if self.allocated_bytes is None or self.named_bytes is None or self.graph_bytes is None:
            return None
        return max(self.allocated_bytes - self.named_bytes - self.graph_bytes, 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as values that `json` can write."""
        processes = None
        if self.processes is not None:
            processes = [vars(process) for process in self.processes]
        return {
            "device": self.device,
            "name": self.name,
            "total_bytes": self.total_bytes,
            "used_bytes": self.used_bytes,
            "driver_bytes": self.driver_bytes,
            "process_bytes": self.process_bytes,
            "allocated_bytes": self.allocated_bytes,
            "reserved_bytes": self.reserved_bytes,
            "peak_bytes": self.peak_bytes,
            "named_bytes": self.named_bytes,
            "graph_bytes": self.graph_bytes,
            "unattributed_bytes": self.unattributed_bytes,
            "busy_percent": self.busy_percent,
            "processes": processes,
            "parts": [vars(part) for part in self.parts],
            "remarks": list(self.remarks),
        }


@dataclass(frozen=True)
class Holder:
    """Who holds memory on one device: a variable, an output, or a frame of the last exception.

    `path` is what a person would type. `bytes` counts each storage once, under one holder; `split` divides it by use.
    `note` says where the holder comes from when it is no variable. `inside` are the parts of an opened holder, and
    `elsewhere` the bytes that it reaches too and that are counted under the holders named there.
    """

    path: str
    device: str
    bytes: int
    split: Mapping[Use, int] = field(default_factory=dict)
    note: str = ""
    inside: tuple[Holder, ...] = ()
    elsewhere: Mapping[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Return the holder as values that `json` can write."""
        return {
            "path": self.path,
            "device": self.device,
            "bytes": self.bytes,
            "split": dict(self.split),
            "note": self.note,
            "inside": [holder.to_dict() for holder in self.inside],
            "elsewhere": dict(self.elsewhere),
        }


@dataclass(frozen=True)
class Memory:
    """One look at memory: the devices, and the holders of each, the largest first.

    `opened` are the holders that were asked for by name. `remarks` are sentences about the look: what was
    not read, and what stands out.
    """

    devices: tuple[DeviceMemory, ...] = ()
    holders: tuple[Holder, ...] = ()
    opened: tuple[Holder, ...] = ()
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0

    @property
    def unattributed_bytes(self) -> int | None:
        """Bytes in tensors of the accelerators that nobody was seen to hold; None where no allocator tells them."""
        known = [device.unattributed_bytes for device in self.devices]
        told = [number for number in known if number is not None]
        return sum(told) if told else None

    def to_dict(self) -> dict[str, Any]:
        """Return the whole look as values that `json` can write."""
        return {
            "devices": [device.to_dict() for device in self.devices],
            "holders": [holder.to_dict() for holder in self.holders],
            "opened": [holder.to_dict() for holder in self.opened],
            "unattributed_bytes": self.unattributed_bytes,
            "remarks": list(self.remarks),
            "seconds": self.seconds,
        }
