"""What is told of the host: this process, the limit of its container, and the machine."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
import torch

import torchmagic
from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.bar import with_parts
from torchmagic.measuring.container import Limit, container_limit
from torchmagic.measuring.host import Host

GB = 1 << 30
MB = 1 << 20


def machine(proc, *, total=16 * GB, available=10 * GB, anonymous=2 * GB, shared=0):
    """Write what Linux tells of a machine and this process."""
    (proc / "self").mkdir(parents=True)
    (proc / "meminfo").write_text(
        f"MemTotal: {total >> 10} kB\nMemAvailable: {available >> 10} kB\nHugePages_Total: 0\n"
    )
    (proc / "self" / "status").write_text(
        f"Name:\tpython\nVmHWM:\t{3 * GB >> 10} kB\nVmRSS:\t{5 * GB >> 10} kB\nRssAnon:\t{anonymous >> 10} kB\n"
        f"RssFile:\t{GB >> 10} kB\nRssShmem:\t{shared >> 10} kB\n"
    )


def groups(tmp_path, own, *, version=2, root="/", **files):
    """Write a mount of control groups with these files, `folder__file`, and the group that this process is in."""
    proc, mount = tmp_path / "proc", tmp_path / "cgroup"
    (proc / "self").mkdir(parents=True, exist_ok=True)
    kind = "cgroup2 cgroup2 rw" if version == 2 else "cgroup cgroup rw,memory"
    (proc / "self" / "mountinfo").write_text(
        f"22 1 0:20 / /proc rw - proc proc rw\n30 1 0:26 {root} {mount} rw,nosuid shared:4 - {kind}\n"
    )
    line = f"0::{own}\n" if version == 2 else f"7:cpu,cpuacct:/\n4:memory:{own}\n0::/\n"
    (proc / "self" / "cgroup").write_text(line)
    for name, text in files.items():
        *folders, file = name.split("__")
        folder = mount.joinpath(*folders)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.replace("_dot_", ".")).write_text(text)
    return proc


def parts(device):
    """Return the parts of a device by their kinds."""
    return {part.kind: part.bytes for part in with_parts(device).parts}


def test_a_machine_without_a_limit(tmp_path):
    """This process is what no file backs; available memory is free, whatever caches files in it."""
    machine(tmp_path, shared=GB)
    (device,) = Host(tmp_path, psutil=None).read()

    assert (device.device, device.name, device.peak_bytes) == ("cpu", "this machine", 3 * GB)
    assert parts(device) == {"process": 3 * GB, "others": 3 * GB, "free": 10 * GB}


def test_a_container_with_a_limit(tmp_path):
    """The limit is the total, and what can be taken back at once is not used; psutil would tell the machine's."""
    proc = groups(
        tmp_path,
        "/",
        memory_dot_max=f"{4 * GB}\n",
        memory_dot_current=f"{3 * GB}\n",
        memory_dot_stat=f"anon 1\ninactive_file {512 * MB}\nactive_file {MB}\n",
    )
    (proc / "self" / "status").write_text(f"RssAnon:\t{2 * GB >> 10} kB\n")
    (proc / "meminfo").write_text(f"MemTotal: {64 * GB >> 10} kB\nMemAvailable: {60 * GB >> 10} kB\n")
    (device,) = Host(proc, psutil=None).read()

    assert (device.name, device.total_bytes) == ("this container", 4 * GB)
    assert parts(device) == {"process": 2 * GB, "others": 512 * MB, "free": GB + 512 * MB}


def test_the_smallest_limit_on_the_way_up_counts(tmp_path):
    """A group may use no more than those that it is in."""
    proc = groups(
        tmp_path,
        "/slice/job",
        memory_dot_stat="",
        slice__memory_dot_max=f"{GB}\n",
        slice__memory_dot_current=f"{MB}\n",
        slice__job__memory_dot_max=f"{2 * GB}\n",
        slice__job__memory_dot_current=f"{MB // 2}\n",
    )

    assert container_limit(proc) == Limit(GB, MB)


def test_no_limit_is_written_as_max(tmp_path):
    """In version 2."""
    assert container_limit(groups(tmp_path, "/", memory_dot_max="max\n", memory_dot_current="5\n")) is None


def test_version_1(tmp_path):
    """Its files have other names, and the greatest number of pages means no limit."""
    files = {"memory_dot_usage_in_bytes": f"{GB}\n", "memory_dot_stat": f"inactive_file 7\ntotal_inactive_file {MB}\n"}
    limited = groups(tmp_path / "a", "/", version=1, memory_dot_limit_in_bytes=f"{2 * GB}\n", **files)
    free = groups(tmp_path / "b", "/", version=1, memory_dot_limit_in_bytes="9223372036854771712\n", **files)

    assert container_limit(limited) == Limit(2 * GB, GB - MB)
    assert container_limit(free) is None


@pytest.mark.parametrize("root", ["/docker/abc", "/"])
def test_a_container_sees_its_own_group_as_the_root_of_the_mount(tmp_path, root):
    """While its path is told as the machine's."""
    proc = groups(tmp_path, "/docker/abc", root=root, memory_dot_max=f"{GB}\n", memory_dot_current="0\n")

    assert container_limit(proc) == Limit(GB, 0)


def test_without_proc_psutil_is_asked(tmp_path):
    """As on macOS and Windows; the peak is the system's word."""
    psutil = SimpleNamespace(
        virtual_memory=lambda: SimpleNamespace(total=16 * GB, available=10 * GB),
        Process=lambda: SimpleNamespace(memory_info=lambda: SimpleNamespace(rss=2 * GB)),
    )
    (device,) = Host(tmp_path, psutil=psutil).read()

    assert parts(device) == {"process": 2 * GB, "others": 4 * GB, "free": 10 * GB}


def test_without_proc_and_psutil_there_are_dashes(tmp_path):
    """And a sentence that says what would help."""
    (device,) = Host(tmp_path, psutil=None).read()

    assert parts(device) == {"process or others": None, "free": None}
    assert device.remarks == ("the machine does not tell its memory here; with the package psutil it would",)


def test_tensors_that_take_no_memory_yet():
    """What was never written is in nobody's memory, so the process is not divided."""
    device = DeviceMemory("cpu", total_bytes=10, used_bytes=5, process_bytes=3, named_bytes=8, graph_bytes=0)

    assert parts(device) == {"process": 3, "others": 2, "free": 5}


def test_this_machine_as_it_is():
    """The parts add up, this process is in them, and writing a tensor makes it larger by the tensor."""
    small = torchmagic.memory({}).devices[-1]
    x = torch.ones(64 * MB // 4)
    large = torchmagic.memory({"x": x}).devices[-1]

    assert sum(part.bytes or 0 for part in large.parts) == large.total_bytes
    assert large.named_bytes == 64 * MB
    assert (large.process_bytes or 0) - (small.process_bytes or 0) == pytest.approx(64 * MB, abs=8 * MB)
    assert (large.peak_bytes or 0) >= (large.process_bytes or 0)
    assert (large.total_bytes or 0) <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
