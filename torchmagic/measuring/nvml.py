"""What NVIDIA's driver tells through NVML, which sees every process and starts no CUDA.

The package is nvidia-ml-py, whose module is `pynvml`; https://docs.nvidia.com/deploy/nvml-api/ says what each call
returns. A call that a device or driver does not know answers with an error, which becomes None here.
"""

from __future__ import annotations

import functools
import importlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from torchmagic.holdings import OtherProcess
from torchmagic.measuring.backend import asked

_FIRST_PID_NAMESPACE: Final = "pid:[4026531836]"
"""What `/proc/self/ns/pid` reads outside of containers: Linux's PROC_PID_INIT_INO."""

_SLACK_BYTES: Final = 64 << 20
"""What a device uses beside its processes, by the readings that are known."""


@dataclass(frozen=True)
class NvmlReading:
    """One device as NVML sees it; `driver_bytes` is in neither of the numbers beside it."""

    name: str = ""
    total_bytes: int | None = None
    used_bytes: int | None = None
    driver_bytes: int | None = None
    busy_percent: int | None = None
    processes: tuple[OtherProcess, ...] | None = None
    """All processes, this one among them."""


class Nvml:
    """Reads devices by their UUID: CUDA's and NVML's numbers differ as soon as devices are reordered or hidden."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def handles(self) -> list[Any]:
        """Return the handles of all devices, in the order of `nvidia-smi`."""
        count = asked(self._module.nvmlDeviceGetCount) or 0
        found = [asked(self._module.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
        return [handle for handle in found if handle is not None]

    def handle(self, uuid: str) -> Any:
        """Return the handle of a device, or of a part of one (MIG), by the UUID that CUDA tells; None if unknown."""
        for prefix in ("GPU-", "MIG-"):
            found = asked(self._module.nvmlDeviceGetHandleByUUID, prefix + uuid)
            if found is not None:
                return found
        return None

    def uuid(self, handle: Any) -> str:
        """Return the UUID of a device, with its prefix; empty if unknown."""
        return _text(asked(self._module.nvmlDeviceGetUUID, handle))

    def read(self, handle: Any) -> NvmlReading:
        """Read a device."""
        total, used, driver = self._memory(handle)
        rates = asked(self._module.nvmlDeviceGetUtilizationRates, handle)
        return NvmlReading(
            name=_text(asked(self._module.nvmlDeviceGetName, handle)),
            total_bytes=total,
            used_bytes=used,
            driver_bytes=driver,
            busy_percent=None if rates is None else int(rates.gpu),
            processes=self._processes(handle),
        )

    def _memory(self, handle: Any) -> tuple[int | None, int | None, int | None]:
        version = getattr(self._module, "nvmlMemory_v2", None)
        if version is not None:
            told = asked(self._module.nvmlDeviceGetMemoryInfo, handle, version)
            if told is not None:
                return int(told.total), int(told.used), int(told.reserved)
        # The first version counts the driver's part as used.
        told = asked(self._module.nvmlDeviceGetMemoryInfo, handle)
        return (None, None, None) if told is None else (int(told.total), int(told.used), None)

    def _processes(self, handle: Any) -> tuple[OtherProcess, ...] | None:
        """Return the processes on a device, or None where the driver does not tell."""
        lists = [
            asked(getattr(self._module, name), handle)
            for name in ("nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses")
        ]
        if lists[0] is None:
            return None
        told: dict[int, int | None] = {}
        for process in (process for processes in lists for process in processes or ()):
            known, used = told.get(process.pid), process.usedGpuMemory
            told[process.pid] = used if known is None else max(known, used or 0)
        return tuple(OtherProcess(pid, used, *_who(pid)) for pid, used in told.items())


def own_bytes(reading: NvmlReading, least: int, pid: int | None = None) -> tuple[int | None, int | None]:
    """Return this process's number on a device and its bytes there; None where it cannot be told apart.

    Inside a container the driver's numbers of processes are the machine's. Then the process that is alone on a device
    and explains all of its use is this one, which has tensors there. `least` are the bytes that this process surely
    has: a process with fewer is another one that happens to have its number.
    """
    pid = os.getpid() if pid is None else pid
    processes = reading.processes or ()
    for process in processes:
        if process.pid == pid and process.used_bytes is not None and process.used_bytes >= least:
            return pid, process.used_bytes
    if len(processes) == 1 and reading.used_bytes is not None:
        alone = processes[0]
        if alone.used_bytes is not None and alone.used_bytes >= max(least, reading.used_bytes - _SLACK_BYTES):
            return alone.pid, alone.used_bytes
    return None, None


def load_nvml() -> Nvml | None:
    """Return a reader of NVML, or None where the package or the driver is missing."""
    return _loaded(os.getpid())


@functools.lru_cache(maxsize=1)
def _loaded(pid: int) -> Nvml | None:
    """Start NVML once in each process: what a parent started is not the child's."""
    del pid
    try:
        module = importlib.import_module("pynvml")
        module.nvmlInit()
    except Exception:
        return None
    return Nvml(module)


def _who(pid: int) -> tuple[str, str]:
    """Return the name and the user of a process, empty where they are not known.

    In a container the same number may be another process.
    """
    try:
        if str(Path("/proc/self/ns/pid").readlink()) != _FIRST_PID_NAMESPACE:
            return "", ""
        folder = Path("/proc") / str(pid)
        import pwd

        return (folder / "comm").read_text().strip(), pwd.getpwuid(folder.stat().st_uid).pw_name
    except (OSError, ImportError, KeyError):
        return "", ""


def _text(told: Any) -> str:
    return told.decode("utf-8", "replace") if isinstance(told, bytes) else str(told or "")
