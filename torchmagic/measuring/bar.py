"""Divide a device's memory into parts that add up to its total."""

from __future__ import annotations

from dataclasses import replace

from torchmagic.holdings import DeviceMemory, Part


def with_parts(device: DeviceMemory) -> DeviceMemory:
    """Return the device with its parts, from the numbers that are known of it."""
    parts = _host_parts(device) if device.is_host else _accelerator_parts(device)
    return replace(device, parts=tuple(parts))


def _accelerator_parts(device: DeviceMemory) -> list[Part]:
    held, holding = _tensor_parts(device)
    cache = None
    if device.reserved_bytes is not None and device.allocated_bytes is not None:
        cache = max(device.reserved_bytes - device.allocated_bytes, 0)
    own = holding + (cache or 0)
    parts = [*held, Part("cache", cache)]
    total, used, process = device.total_bytes, device.used_bytes, device.process_bytes
    if used is None:
        # Where the device tells its size alone, the rest of it may be anything.
        return [*parts, Part("unknown", None if total is None else max(total - own, 0))]
    outside = max(used - own, 0)
    if process is None:
        parts.append(Part("context or others", outside))
    else:
        # The driver's number may be older than the allocator's.
        context = min(max(process - own, 0), outside)
        parts += [Part("context", context), Part("others", outside - context)]
    driver = device.driver_bytes or 0
    if driver:
        parts.append(Part("driver", driver))
    parts.append(Part("free", None if total is None else max(total - driver - own - outside, 0)))
    return parts


def _tensor_parts(device: DeviceMemory) -> tuple[list[Part], int]:
    """Return the parts that are tensors, and the bytes of all of them."""
    allocated, named, graph = device.allocated_bytes, device.named_bytes, device.graph_bytes
    if named is None or graph is None:
        return [Part("tensors", allocated)], allocated or 0
    unnamed = device.unattributed_bytes
    # Memory of another library's, such as a CuPy array's seen as a tensor, is named and not the allocator's.
    return [Part("named", named), Part("graph", graph), Part("unnamed", unnamed)], named + graph + (unnamed or 0)


def _host_parts(device: DeviceMemory) -> list[Part]:
    total, used, process = device.total_bytes, device.used_bytes, device.process_bytes
    named, graph = device.named_bytes, device.graph_bytes
    held, holding = [], 0
    if named is not None and graph is not None:
        held, holding = [Part("named", named), Part("graph", graph)], named + graph
    if used is not None and process is not None:
        used = max(used, process)
    free = Part("free", None if total is None or used is None else max(total - used, 0))
    if process is None:
        rest = None if used is None or holding > used else used - holding
        return [*held, Part("process or others", rest), free]
    if holding > process:
        # What was never written, is swapped out or is mapped from a file takes no memory, so the split is not known.
        held, holding = [], 0
    own = [*held, Part("process", process - holding)]
    return [*own, Part("others", None if used is None else used - process), free]
