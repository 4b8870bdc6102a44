"""One look at memory: read the devices, attribute their tensors, divide the bars."""

from __future__ import annotations

import sys
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from torchmagic.holdings import DeviceMemory, Holder
from torchmagic.measuring.attribution import Attribution, attribute, attribute_found
from torchmagic.measuring.backend import Backend
from torchmagic.measuring.bar import with_parts
from torchmagic.measuring.devices import backends, no_accelerator
from torchmagic.measuring.imbalance import imbalances
from torchmagic.measuring.leftovers import leftovers
from torchmagic.measuring.opened import find_path, opened
from torchmagic.memory_report import MemoryReport
from torchmagic.namespace import Namespace, undisturbed
from torchmagic.namespace.resolve import MISSING


class NoSuchPathError(KeyError):
    """A path to open leads nowhere."""


def look(
    names: Mapping[str, Any],
    *,
    hidden: Collection[str] = (),
    paths: Sequence[str] = (),
    sources: Sequence[Backend] | None = None,
) -> MemoryReport:
    """Return who holds the memory of each device; see `torchmagic.memory`.

    Args:
        names: variable names and values.
        hidden: variables that are not the user's.
        paths: variables, or paths from them, to open.
        sources: the backends to read, those of this machine when left out.

    Raises:
        NoSuchPathError: a path that leads nowhere.
    """
    start = time.perf_counter()
    with undisturbed():
        values = {path: find_path(names, path) for path in paths}
        for path, value in values.items():
            if value is MISSING:
                raise NoSuchPathError(path)
        whole = attribute(names, leftovers(names), hidden) if "torch" in sys.modules else None
        trees: list[Holder] = []
        if whole is not None:
            trees = [tree for path, value in values.items() for tree in opened(path, value, whole) or [_empty(path)]]
        devices = read_devices(sources, whole)
        return MemoryReport(
            devices=tuple(devices),
            holders=() if whole is None else tuple(whole.holders()),
            opened=tuple(trees),
            remarks=(*_remarks(devices, whole), *no_accelerator(devices)),
            seconds=time.perf_counter() - start,
        )


def _remarks(devices: Sequence[DeviceMemory], whole: Attribution | None) -> list[str]:
    return [] if whole is None else [*imbalances(devices, whole.found), *whole.skipped]


def _empty(path: str) -> Holder:
    return Holder(path, "", 0)


def read_devices(sources: Sequence[Backend] | None = None, whole: Attribution | None = None) -> list[DeviceMemory]:
    """Return every device with its parts; names are told apart where an attribution is given."""
    devices = [device for source in (backends() if sources is None else sources) for device in source.read()]
    if whole is not None:
        devices = [_with_names(device, whole) for device in devices]
        known = {device.device for device in devices}
        for name in sorted(whole.totals.keys() - known):
            devices.append(_with_names(DeviceMemory(name), whole))
    return [with_parts(device) for device in devices]


def holders_at_failure(
    found: Namespace, error: BaseException | None, device: str, sources: Sequence[Backend] | None = None
) -> tuple[DeviceMemory, list[Holder]]:
    """Return a device and its holders, the frames of an error among them, from a walk that was made already."""
    whole = attribute_found(found, leftovers(found.names, error))
    devices = {each.device: each for each in read_devices(sources, whole)}
    return devices.get(device, DeviceMemory(device)), [holder for holder in whole.holders() if holder.device == device]


def _with_names(device: DeviceMemory, whole: Attribution) -> DeviceMemory:
    named, graph = whole.totals.get(device.device, (0, 0))
    return replace(device, named_bytes=named, graph_bytes=graph)
