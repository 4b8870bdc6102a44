"""The backends of this machine, in the order in which devices are shown."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.accelerator import Accelerator
from torchmagic.measuring.backend import Backend
from torchmagic.measuring.cuda import Cuda
from torchmagic.measuring.host import Host
from torchmagic.measuring.mps import Mps
from torchmagic.measuring.nvml import load_nvml
from torchmagic.measuring.xpu import Xpu


def backends() -> list[Backend]:
    """Return what reads this machine: one backend for each kind of accelerator that torch may know, and the host."""
    torch = sys.modules.get("torch")
    found: list[Backend] = [Cuda(torch, load_nvml())]
    if torch is not None and hasattr(torch, "nn"):
        found += [Mps(torch), Xpu(torch), Accelerator(torch)]
    return [*found, Host()]


def no_accelerator(devices: Sequence[DeviceMemory]) -> list[str]:
    """Return a sentence that says why no accelerator is shown, where none is."""
    if any(not device.is_host for device in devices):
        return []
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        return ["no accelerator is shown: torch has not been imported, and NVIDIA's driver tells of none"]
    version = str(torch.__version__)
    if not (torch.backends.cuda.is_built() or torch.backends.mps.is_built()) and "+cpu" in version:
        return [f"no accelerator is shown: this torch ({version}) was built for the CPU alone"]
    return ["no accelerator is shown: torch finds none on this machine"]
