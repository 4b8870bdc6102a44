"""NVIDIA's and AMD's devices: torch's allocator knows the tensors, NVML the device and its other processes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.backend import asked, unreadable
from torchmagic.measuring.nvml import Nvml, own_bytes

NOT_STARTED: Final = "this process has not started CUDA, so only the driver was asked"
NO_NVML: Final = "NVML, of the package nvidia-ml-py, was not reached, so other processes are not told apart"
NO_PROCESSES: Final = "the driver does not tell the processes of this device apart"


class Cuda:
    """Reads what `torch.cuda` has, once it was started; before, only NVML is asked.

    `torch.cuda.mem_get_info` starts a context of several hundred megabytes on a device that has none
    (https://github.com/pytorch/pytorch/issues/86493), so it is asked only where there is one.
    """

    def __init__(self, torch: Any, nvml: Nvml | None) -> None:
        self._torch: Any = torch if torch is not None and hasattr(torch, "nn") else None
        self._nvml = nvml

    def read(self) -> Iterator[DeviceMemory]:
        """Yield the devices that this process sees."""
        if self._torch is None or not self._torch.cuda.is_initialized():
            yield from self._before_start()
            return
        for index in range(self._torch.cuda.device_count()):
            try:
                yield self._device(index)
            except Exception as problem:
                yield unreadable(f"cuda:{index}", problem)

    def _device(self, index: int) -> DeviceMemory:
        cuda = self._torch.cuda
        stats = cuda.memory_stats(index)
        properties = cuda.get_device_properties(index)
        device = DeviceMemory(
            f"cuda:{index}",
            name=str(properties.name),
            total_bytes=int(properties.total_memory),
            allocated_bytes=stats.get("allocated_bytes.all.current", 0),
            reserved_bytes=stats.get("reserved_bytes.all.current", 0),
            peak_bytes=stats.get("allocated_bytes.all.peak", 0),
        )
        uuid = getattr(properties, "uuid", None)
        handle = self._nvml.handle(str(uuid)) if self._nvml is not None and uuid is not None else None
        if self._nvml is None or handle is None:
            return self._without_nvml(device, index)
        return self._with_nvml(device, self._nvml, handle, index)

    def _with_nvml(self, device: DeviceMemory, nvml: Nvml, handle: Any, index: int) -> DeviceMemory:
        reading = nvml.read(handle)
        own_pid: int | None = None
        process_bytes: int | None = 0  # what has no context has nothing there
        remarks = []
        if self._has_context(index):
            own_pid, process_bytes = own_bytes(reading, device.reserved_bytes or 0)
            if own_pid is None and reading.used_bytes is not None:
                remarks.append(NO_PROCESSES)
        others = None
        if reading.processes is not None and process_bytes is not None:
            others = tuple(process for process in reading.processes if process.pid != own_pid)
        return replace(
            device,
            total_bytes=device.total_bytes if reading.total_bytes is None else reading.total_bytes,
            used_bytes=reading.used_bytes,
            driver_bytes=reading.driver_bytes,
            process_bytes=process_bytes,
            busy_percent=reading.busy_percent,
            processes=others,
            remarks=tuple(remarks),
        )

    def _without_nvml(self, device: DeviceMemory, index: int) -> DeviceMemory:
        # AMD's devices are `cuda` in torch too, and have no NVML.
        is_amd = getattr(getattr(self._torch, "version", None), "hip", None) is not None
        device = replace(device, remarks=(NO_PROCESSES if is_amd else NO_NVML,))
        if not self._has_context(index):
            return replace(device, process_bytes=0)
        told = asked(self._torch.cuda.mem_get_info, index)
        if told is None:
            return device
        free, total = told
        return replace(device, total_bytes=int(total), used_bytes=int(total - free))

    def _has_context(self, index: int) -> bool:
        """Tell whether this process has a context on a device.

        `_cuda_hasPrimaryContext` is private (seen in torch 1.8 to 2.13); without it, memory that the allocator took
        from the device shows that there is one.
        """
        has = getattr(self._torch._C, "_cuda_hasPrimaryContext", None)  # noqa: SLF001
        if has is not None:
            answer = asked(has, index)
            if answer is not None:
                return bool(answer)
        return bool(self._torch.cuda.memory_stats(index).get("reserved_bytes.all.peak", 0))

    def _before_start(self) -> Iterator[DeviceMemory]:
        if self._nvml is None:
            return
        for device, handle in visible(self._nvml):
            reading = self._nvml.read(handle)
            yield DeviceMemory(
                device,
                name=reading.name,
                total_bytes=reading.total_bytes,
                used_bytes=reading.used_bytes,
                driver_bytes=reading.driver_bytes,
                # What has no context has nothing there.
                process_bytes=0,
                allocated_bytes=0,
                reserved_bytes=0,
                busy_percent=reading.busy_percent,
                processes=reading.processes,
                remarks=(NOT_STARTED,),
            )


def visible(nvml: Nvml) -> list[tuple[str, Any]]:
    """Return the devices that CUDA would show, with CUDA's number where it is certain and `nvidia-smi`'s where not.

    CUDA numbers devices by speed unless `CUDA_DEVICE_ORDER` says otherwise, so a number in `CUDA_VISIBLE_DEVICES` alone
    does not say which device is meant. See
    https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#env-vars.
    """
    handles = nvml.handles()
    by_bus = os.environ.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID" or len(handles) == 1
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted is None:
        return [(f"{'cuda:' if by_bus else 'GPU '}{index}", handle) for index, handle in enumerate(handles)]
    chosen: list[Any] = []
    for word in wanted.split(","):
        name = word.strip()
        if name.startswith("MIG-"):
            found = nvml.handle(name.removeprefix("MIG-"))
        elif name.startswith("GPU-"):
            found = next((handle for handle in handles if nvml.uuid(handle).startswith(name)), None)
        elif not name.isdigit():
            found = None
        elif not by_bus:
            return [(f"GPU {index}", handle) for index, handle in enumerate(handles)]
        else:
            found = handles[int(name)] if int(name) < len(handles) else None
        if found is None:
            break  # CUDA hides what stands behind a name that it does not know
        chosen.append(found)
    return [(f"cuda:{index}", handle) for index, handle in enumerate(chosen)]
