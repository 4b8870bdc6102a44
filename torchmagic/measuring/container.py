"""The memory limit of the container that this process runs in, by Linux's control groups, version 1 and 2.

See https://docs.kernel.org/admin-guide/cgroup-v2.html#memory and
https://docs.kernel.org/admin-guide/cgroup-v1/memory.html.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

_NO_LIMIT: Final = 1 << 62
"""Version 1 writes the greatest number of whole pages where there is no limit."""


class Limit(NamedTuple):
    """How many bytes a group of processes may use, and how many it does, without what can be taken back at once."""

    limit_bytes: int
    used_bytes: int | None


class _Files(NamedTuple):
    limit: str
    used: str
    reclaimable: str


_VERSION_2: Final = _Files("memory.max", "memory.current", "inactive_file")
_VERSION_1: Final = _Files("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")


def container_limit(proc: Path) -> Limit | None:
    """Return the smallest limit of the groups that this process is in, or None where none limits it."""
    limits = [limit for folder, files in _groups(proc) if (limit := _limit_of(folder, files)) is not None]
    return min(limits, key=lambda limit: limit.limit_bytes, default=None)


def _limit_of(folder: Path, files: _Files) -> Limit | None:
    limit = _number(folder / files.limit)
    if limit is None or limit >= _NO_LIMIT:
        return None
    used = _number(folder / files.used)
    if used is not None:
        used = max(used - _statistic(folder / "memory.stat", files.reclaimable), 0)
    return Limit(limit, used)


def _groups(proc: Path) -> Iterator[tuple[Path, _Files]]:
    """Yield the folders of this process's groups, from its own up to the mount, with the names of their files."""
    paths = _own_paths(proc)
    for line in _lines(proc / "self" / "mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) < 5 or len(kind) < 3:
            continue
        if kind[0] == "cgroup2":
            path, files = paths.get(""), _VERSION_2
        elif kind[0] == "cgroup" and "memory" in kind[2].split(","):
            path, files = paths.get("memory"), _VERSION_1
        else:
            continue
        root, mount = Path(fields[3]), Path(fields[4])
        folder = mount
        if path is not None:
            # A container sees its own group as the mount's root, whatever path the group has outside.
            folder = mount / path.relative_to(root) if path.is_relative_to(root) else mount
            folder = folder if folder.is_dir() else mount
        while True:
            yield folder, files
            if folder == mount:
                break
            folder = folder.parent


def _own_paths(proc: Path) -> dict[str, Path]:
    """Return the path of this process's group by controller; version 2 has one for all, under the empty name."""
    paths = {}
    for line in _lines(proc / "self" / "cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        for controller in controllers.split(","):
            paths[controller] = Path(path)
    return paths


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _number(path: Path) -> int | None:
    text = "".join(_lines(path)).strip()
    return int(text) if text.isdigit() else None


def _statistic(path: Path, name: str) -> int:
    for line in _lines(path):
        word, _, number = line.partition(" ")
        if word == name and number.isdigit():
            return int(number)
    return 0
