"""The memory that Python itself lives in: this process, the container's limit, and the machine."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.backend import asked
from torchmagic.measuring.container import Limit, container_limit

PROC: Final = Path("/proc")


class Host:
    """Reads `/proc` where there is one, else asks psutil, which may be missing."""

    def __init__(self, proc: Path = PROC, psutil: Any = "import") -> None:
        self._proc = proc
        self._psutil = _imported() if psutil == "import" else psutil

    def read(self) -> Iterator[DeviceMemory]:
        """Yield the host: the container where one limits this process, else the machine."""
        total, used = self._machine()
        limit = container_limit(self._proc)
        name, remarks = "this machine", []
        if limit is not None and (total is None or limit.limit_bytes < total):
            name, total, used = "this container", limit.limit_bytes, _used_in(limit)
        if total is None:
            remarks.append("the machine does not tell its memory here; with the package psutil it would")
        yield DeviceMemory(
            "cpu",
            name=name,
            total_bytes=total,
            used_bytes=used,
            process_bytes=self.process_bytes(),
            peak_bytes=self._peak_bytes(),
            remarks=tuple(remarks),
        )

    def _machine(self) -> tuple[int | None, int | None]:
        """Return the machine's memory, and how much of it is not available."""
        told = _kilobytes(self._proc / "meminfo")
        if "MemTotal" in told and "MemAvailable" in told:
            return told["MemTotal"], told["MemTotal"] - told["MemAvailable"]
        memory = asked(self._psutil.virtual_memory) if self._psutil is not None else None
        return (None, None) if memory is None else (int(memory.total), int(memory.total - memory.available))

    def process_bytes(self) -> int | None:
        """Return the resident bytes of this process that no file backs: the others the system can take back."""
        told = _kilobytes(self._proc / "self" / "status")
        if "RssAnon" in told:
            return told["RssAnon"] + told.get("RssShmem", 0)
        memory = asked(self._psutil.Process().memory_info) if self._psutil is not None else None
        return None if memory is None else int(memory.rss)

    def _peak_bytes(self) -> int | None:
        told = _kilobytes(self._proc / "self" / "status")
        if "VmHWM" in told:
            return told["VmHWM"]
        try:
            import resource
        except ImportError:  # Windows
            return None
        # Kilobytes, but for macOS, by the manual pages of getrusage.
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _imported() -> Any:
    try:
        return importlib.import_module("psutil")
    except Exception:
        return None


def _used_in(limit: Limit) -> int | None:
    return None if limit.used_bytes is None else min(limit.used_bytes, limit.limit_bytes)


def _kilobytes(path: Path) -> dict[str, int]:
    """Return the lines `Name:  123 kB` of a file of `/proc`, in bytes."""
    try:
        lines = path.read_text("ascii", errors="replace").splitlines()
    except OSError:
        return {}
    told = {}
    for line in lines:
        name, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 2 and words[1] == "kB" and words[0].isdigit():
            told[name] = int(words[0]) * 1024
    return told
