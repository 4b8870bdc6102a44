"""Machines that nobody here has: devices as torch and NVML would tell of them, and a note of every call.

Numbers are in bytes. What a backend may not call has no entry, and fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

GB = 10**9
MB = 10**6


@dataclass
class Gpu:
    """One NVIDIA device: what is true of it, and which of its questions fail."""

    uuid: str
    name: str = "NVIDIA A100"
    total: int = 40 * GB
    driver: int = 600 * MB
    processes: dict[int, int | None] = field(default_factory=dict)
    allocated: int = 0
    reserved: int = 0
    peak: int = 0
    context: bool = False
    busy: int | None = 0
    mig: bool = False
    fails: frozenset[str] = frozenset()
    old_driver: bool = False
    hidden: int = 0

    @property
    def used(self) -> int:
        return sum(used or 0 for used in self.processes.values()) + self.hidden


class NvmlError(Exception):
    """What NVML answers when it cannot."""


class FakeNvml:
    """The module `pynvml`, for the devices in the order of `nvidia-smi`."""

    nvmlMemory_v2 = 0x2000028

    def __init__(self, *gpus: Gpu) -> None:
        self.gpus = gpus
        self.calls: list[str] = []

    def _ask(self, name: str, gpu: Gpu | None = None) -> None:
        self.calls.append(name)
        if gpu is not None and name in gpu.fails:
            raise NvmlError("Not Supported")

    def nvmlDeviceGetCount(self) -> int:
        self._ask("nvmlDeviceGetCount")
        return sum(not gpu.mig for gpu in self.gpus)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> Gpu:
        self._ask("nvmlDeviceGetHandleByIndex")
        return [gpu for gpu in self.gpus if not gpu.mig][index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> Gpu:
        self._ask("nvmlDeviceGetHandleByUUID")
        for gpu in self.gpus:
            if uuid == ("MIG-" if gpu.mig else "GPU-") + gpu.uuid:
                return gpu
        raise NvmlError("Not Found")

    def nvmlDeviceGetUUID(self, gpu: Gpu) -> str:
        self._ask("nvmlDeviceGetUUID", gpu)
        return f"GPU-{gpu.uuid}"

    def nvmlDeviceGetName(self, gpu: Gpu) -> bytes:
        self._ask("nvmlDeviceGetName", gpu)
        return gpu.name.encode()

    def nvmlDeviceGetMemoryInfo(self, gpu: Gpu, version: int | None = None) -> Any:
        self._ask("nvmlDeviceGetMemoryInfo", gpu)
        if version is not None and gpu.old_driver:
            raise NvmlError("Argument Version Mismatch")
        if version is None:
            return SimpleNamespace(total=gpu.total, used=gpu.used + gpu.driver)
        return SimpleNamespace(total=gpu.total, used=gpu.used, reserved=gpu.driver)

    def nvmlDeviceGetUtilizationRates(self, gpu: Gpu) -> Any:
        self._ask("nvmlDeviceGetUtilizationRates", gpu)
        if gpu.busy is None or gpu.mig:
            raise NvmlError("Not Supported")
        return SimpleNamespace(gpu=gpu.busy, memory=0)

    def nvmlDeviceGetComputeRunningProcesses(self, gpu: Gpu) -> list[Any]:
        self._ask("nvmlDeviceGetComputeRunningProcesses", gpu)
        return [SimpleNamespace(pid=pid, usedGpuMemory=used) for pid, used in gpu.processes.items()]

    def nvmlDeviceGetGraphicsRunningProcesses(self, gpu: Gpu) -> list[Any]:
        self._ask("nvmlDeviceGetGraphicsRunningProcesses", gpu)
        return []


class FakeCuda:
    """The module `torch.cuda`, for the devices in the order of CUDA."""

    def __init__(self, gpus: tuple[Gpu, ...], *, started: bool) -> None:
        self.gpus = gpus
        self.started = started
        self.calls: list[str] = []

    def _ask(self, name: str, index: int | None = None) -> None:
        self.calls.append(name)
        if index is not None and name in self.gpus[index].fails:
            raise RuntimeError("CUDA error: unspecified launch failure\nCUDA kernel errors might be")

    def is_initialized(self) -> bool:
        self._ask("is_initialized")
        return self.started

    def device_count(self) -> int:
        self._ask("device_count")
        return len(self.gpus)

    def memory_stats(self, index: int) -> dict[str, int]:
        self._ask("memory_stats", index)
        gpu = self.gpus[index]
        return {
            "allocated_bytes.all.current": gpu.allocated,
            "reserved_bytes.all.current": gpu.reserved,
            "reserved_bytes.all.peak": gpu.reserved,
            "allocated_bytes.all.peak": gpu.peak,
        }

    def get_device_properties(self, index: int) -> Any:
        self._ask("get_device_properties", index)
        gpu = self.gpus[index]
        return SimpleNamespace(name=gpu.name, total_memory=gpu.total - gpu.driver, uuid=gpu.uuid)

    def mem_get_info(self, index: int) -> tuple[int, int]:
        self._ask("mem_get_info", index)
        gpu = self.gpus[index]
        assert gpu.context, "this would start a context"
        return gpu.total - gpu.driver - gpu.used, gpu.total - gpu.driver


def fake_torch(*gpus: Gpu, started: bool = True) -> Any:
    """Return what a backend sees of torch, with the devices in the order of CUDA."""
    has_context = {"_cuda_hasPrimaryContext": lambda index: gpus[index].context}
    return SimpleNamespace(nn=None, cuda=FakeCuda(gpus, started=started), _C=SimpleNamespace(**has_context))
