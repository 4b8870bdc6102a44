"""What is told of CUDA devices: numbers that add up, dashes where nobody knows, and nothing started by asking."""

from __future__ import annotations

import os
from dataclasses import replace
from types import SimpleNamespace

import pytest

from tests.memory.scenarios import GB, MB, FakeNvml, Gpu, fake_torch
from torchmagic.holdings import DeviceMemory, Holder, Memory, OtherProcess
from torchmagic.measuring.bar import with_parts
from torchmagic.measuring.cuda import Cuda
from torchmagic.measuring.nvml import Nvml
from torchmagic.render.memory_text import memory_text

OWN = os.getpid()


def training(**changes) -> Gpu:
    """Return a device on which this process trains: 10 GB in tensors, 2 GB in the cache, 500 MB of context."""
    numbers = {"allocated": 10 * GB, "reserved": 12 * GB, "peak": 11 * GB, "context": True, "busy": 87}
    return Gpu(**{"uuid": "aa", "processes": {OWN: 12 * GB + 500 * MB}, **numbers, **changes})


def read(torch, nvml=None) -> list[DeviceMemory]:
    """Return the devices with their parts."""
    return [with_parts(device) for device in Cuda(torch, None if nvml is None else Nvml(nvml)).read()]


def parts(device: DeviceMemory) -> dict[str, int | None]:
    """Return the parts by their kinds."""
    return {part.kind: part.bytes for part in device.parts}


def test_the_parts_add_up_to_the_total():
    """The driver's own part and another process on the device stand beside this process's."""
    gpu = training(processes={OWN: 12 * GB + 500 * MB, 1: 3 * GB})
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert parts(device) == {
        "tensors": 10 * GB,
        "cache": 2 * GB,
        "context": 500 * MB,
        "others": 3 * GB,
        "driver": 600 * MB,
        "free": 40 * GB - 600 * MB - 15 * GB - 500 * MB,
    }
    assert sum(part.bytes or 0 for part in device.parts) == device.total_bytes == 40 * GB
    assert (device.peak_bytes, device.busy_percent) == (11 * GB, 87)
    assert [(process.pid, process.used_bytes) for process in device.processes or ()] == [(1, 3 * GB)]


def test_names_divide_the_tensors():
    """What nobody is seen to hold is the rest."""
    gpu = training()
    (device,) = Cuda(fake_torch(gpu), Nvml(FakeNvml(gpu))).read()
    named = with_parts(DeviceMemory(**{**vars(device), "named_bytes": 7 * GB, "graph_bytes": 2 * GB}))

    assert named.unattributed_bytes == GB
    assert [(part.kind, part.bytes) for part in named.parts[:4]] == [
        ("named", 7 * GB),
        ("graph", 2 * GB),
        ("unnamed", GB),
        ("cache", 2 * GB),
    ]
    assert sum(part.bytes or 0 for part in named.parts) == 40 * GB


def test_before_cuda_is_started_only_the_driver_is_asked(monkeypatch):
    """All that is in use is others'; torch is asked one thing, whether it was started."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    gpu = Gpu("aa", processes={1: 3 * GB})
    torch, nvml = fake_torch(gpu, started=False), FakeNvml(gpu)
    (device,) = read(torch, nvml)

    assert torch.cuda.calls == ["is_initialized"]
    assert device.device == "cuda:0"
    assert parts(device) == {
        "tensors": 0,
        "cache": 0,
        "context": 0,
        "others": 3 * GB,
        "driver": 600 * MB,
        "free": 36 * GB + 400 * MB,
    }
    assert device.remarks == ("this process has not started CUDA, so only the driver was asked",)


def test_nothing_is_freed_or_reset():
    """Of all that torch and NVML can do, these questions are asked."""
    gpu = training()
    torch, nvml = fake_torch(gpu), FakeNvml(gpu)
    read(torch, nvml)

    assert set(torch.cuda.calls) == {"is_initialized", "device_count", "memory_stats", "get_device_properties"}
    assert all(call.startswith("nvmlDeviceGet") for call in nvml.calls)


def test_a_device_without_a_context_stays_without():
    """Two devices are seen, one is used: nothing is asked of the other that would start a context there."""
    used, idle = training(), Gpu("bb", processes={1: GB})
    torch = fake_torch(used, idle)
    first, second = read(torch)

    assert torch.cuda.calls.count("mem_get_info") == 1
    assert parts(first)["context or others"] == 500 * MB
    assert parts(second) == {"tensors": 0, "cache": 0, "unknown": 40 * GB - 600 * MB}
    (_, second) = read(torch, FakeNvml(used, idle))
    assert parts(second)["others"] == GB
    assert second.remarks == ()


def test_eight_devices_of_which_one_fails():
    """The failure is told on that device, in one line; the others are as they are."""
    gpus = [training(uuid=f"a{number}") for number in range(8)]
    gpus[3].fails = frozenset({"memory_stats"})
    devices = read(fake_torch(*gpus), FakeNvml(*gpus))

    assert [device.device for device in devices] == [f"cuda:{number}" for number in range(8)]
    assert [device.allocated_bytes for device in devices] == [10 * GB] * 3 + [None] + [10 * GB] * 4
    assert devices[3].remarks == ("its memory could not be read: RuntimeError: CUDA error: unspecified launch failure",)
    assert {part.bytes for part in devices[3].parts} == {None}


def test_devices_are_matched_by_their_uuid():
    """CUDA's first device is NVML's second: each has the other process that is on it."""
    slow = Gpu("slow", name="Quadro", total=8 * GB, processes={1: GB})
    fast = training(uuid="fast", processes={OWN: 13 * GB, 2: 2 * GB})
    first, second = read(fake_torch(fast, slow), FakeNvml(slow, fast))

    assert [process.pid for process in first.processes or ()] == [2]
    assert [process.pid for process in second.processes or ()] == [1]
    assert (first.total_bytes, second.total_bytes) == (40 * GB, 8 * GB)


@pytest.mark.parametrize(
    ("order", "visible", "shown"),
    [
        (None, None, [("GPU 0", "A"), ("GPU 1", "B"), ("GPU 2", "C")]),
        ("PCI_BUS_ID", None, [("cuda:0", "A"), ("cuda:1", "B"), ("cuda:2", "C")]),
        ("PCI_BUS_ID", "2,0", [("cuda:0", "C"), ("cuda:1", "A")]),
        ("PCI_BUS_ID", "1,7,0", [("cuda:0", "B")]),
        (None, "GPU-cc,GPU-aa", [("cuda:0", "C"), ("cuda:1", "A")]),
        (None, "2", [("GPU 0", "A"), ("GPU 1", "B"), ("GPU 2", "C")]),
        (None, "", []),
        (None, "-1", []),
    ],
)
def test_which_devices_are_visible_before_the_start(monkeypatch, order, visible, shown):
    """CUDA's numbers are given where they are certain, and `nvidia-smi`'s where not."""
    for name, value in (("CUDA_DEVICE_ORDER", order), ("CUDA_VISIBLE_DEVICES", visible)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    gpus = [Gpu(uuid, name=name) for uuid, name in (("aa", "A"), ("bb", "B"), ("cc", "C"))]
    devices = read(fake_torch(started=False), FakeNvml(*gpus))

    assert [(device.device, device.name) for device in devices] == shown


def test_a_part_of_a_device_is_found_by_its_own_uuid():
    """MIG has no utilisation, which is then not told."""
    whole, part = Gpu("whole", total=80 * GB), training(uuid="part", total=20 * GB, mig=True)
    (device,) = read(fake_torch(part), FakeNvml(whole, part))

    assert (device.total_bytes, device.busy_percent) == (20 * GB, None)
    assert parts(device)["context"] == 500 * MB


def test_windows_does_not_tell_processes_apart():
    """WDDM: the driver lists processes without bytes, so context and other processes are one part."""
    gpu = training(processes={OWN: None, 1: None}, hidden=20 * GB)
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert parts(device)["context or others"] == 8 * GB
    assert "context" not in parts(device)
    assert device.processes is None
    assert device.remarks == ("the driver does not tell the processes of this device apart",)


def test_a_driver_that_lists_no_processes():
    """Not supported is not none."""
    gpu = training(fails=frozenset({"nvmlDeviceGetComputeRunningProcesses"}))
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert parts(device)["context or others"] == 500 * MB
    assert device.processes is None


def test_in_a_container_the_process_that_explains_all_use_is_this_one():
    """The driver's numbers of processes are the machine's there."""
    alone = training(processes={4242: 12 * GB + 500 * MB}, hidden=5 * MB)
    (device,) = read(fake_torch(alone), FakeNvml(alone))

    assert (parts(device)["context"], parts(device)["others"]) == (500 * MB, 5 * MB)
    assert device.processes == ()

    beside = training(processes={4242: 12 * GB + 500 * MB, 4343: GB})
    (device,) = read(fake_torch(beside), FakeNvml(beside))
    assert parts(device)["context or others"] == GB + 500 * MB

    other = training(processes={4343: 13 * GB}, hidden=13 * GB)
    (device,) = read(fake_torch(other), FakeNvml(other))
    assert parts(device)["context or others"] == 14 * GB


def test_another_process_with_this_ones_number_is_not_this_one():
    """It has fewer bytes than this process surely has."""
    gpu = training(processes={OWN: GB, 4242: 13 * GB})
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert parts(device)["context or others"] == 2 * GB


def test_an_old_driver_counts_its_own_part_as_used():
    """The first version of the question has no number for it."""
    gpu = training(old_driver=True)
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert parts(device)["others"] == 600 * MB
    assert "driver" not in parts(device)
    assert sum(part.bytes or 0 for part in device.parts) == 40 * GB


def test_without_nvml_cuda_itself_tells_what_is_free():
    """On a device with a context; the processes cannot be told apart."""
    gpu = training(processes={OWN: 12 * GB + 500 * MB, 1: 3 * GB})
    (device,) = read(fake_torch(gpu))

    assert parts(device) == {
        "tensors": 10 * GB,
        "cache": 2 * GB,
        "context or others": 3 * GB + 500 * MB,
        "free": 40 * GB - 600 * MB - 15 * GB - 500 * MB,
    }
    assert device.remarks == (
        "NVML, of the package nvidia-ml-py, was not reached, so other processes are not told apart",
    )


def test_a_machine_without_torch_or_nvml_has_no_device():
    """And no error."""
    assert read(None) == []
    assert read(fake_torch(started=False)) == []


def test_a_stale_reading_adds_up_too():
    """NVML may lag behind the allocator: nothing becomes negative."""
    gpu = training(processes={OWN: 9 * GB})
    (device,) = read(fake_torch(gpu), FakeNvml(gpu))

    assert all(part.bytes is not None and part.bytes >= 0 for part in device.parts)
    assert sum(part.bytes or 0 for part in device.parts) == 40 * GB


def test_amds_devices_have_no_nvml():
    """They are not told to install it."""
    gpu = training(name="AMD Instinct MI300X")
    torch = fake_torch(gpu)
    torch.version = SimpleNamespace(hip="6.2")
    (device,) = read(torch)

    assert device.remarks == ("the driver does not tell the processes of this device apart",)
    assert parts(device)["context or others"] == 500 * MB


def test_how_it_looks():
    """A machine with one device in the middle of a training step, word by word."""
    gpu = training(processes={OWN: 12 * GB + 500 * MB, 1: 3 * GB})
    (device,) = Cuda(fake_torch(gpu), Nvml(FakeNvml(gpu))).read()
    device = with_parts(replace(device, named_bytes=7 * GB, graph_bytes=2 * GB, processes=(OtherProcess(1, 3 * GB),)))
    holders = (
        Holder("model", "cuda:0", 5 * GB, {"parameters": 3 * GB, "gradients": 2 * GB}),
        Holder(
            "frame train", "cuda:0", 4 * GB, {"autograd graph": 2 * GB, "other": 2 * GB}, "a call of the last exception"
        ),
    )

    assert memory_text(Memory((device,), holders)).splitlines() == [
        "gpumem: cuda:0 16 GB of 40 GB used",
        "",
        "cuda:0 · NVIDIA A100 · 16 GB of 40 GB used · peak 11 GB in tensors since the start or a reset ·",
        "87 % busy",
        "  [██████████▓▓▓▒▒░░░+xxxx-····································]",
        "  █ tensors by name          7.0 GB",
        "  ▓ autograd graphs          2.0 GB  what `backward()` will need, and no variable holds",
        "  ▒ tensors without a name   1.0 GB  usual suspects: workspaces of cuBLAS, graphs whose names are",
        "                                     gone, variables of running functions, CUDA graphs, buckets of",
        "                                     DistributedDataParallel",
        "  ░ allocator cache          2.0 GB  reserved: PyTorch keeps it for its next tensors, and no tensor",
        "                                     is in it now",
        "  + context and libraries    500 MB  CUDA itself, its kernels and libraries",
        "  x other processes          3.0 GB  process 1: 3.0 GB",
        "  - the driver's own         600 MB",
        "  · free                      24 GB",
        "",
        "  `model`         5.0 GB       50 %  parameters 3.0 GB, gradients 2.0 GB",
        "  frame `train`   4.0 GB       40 %  autograd graph 2.0 GB, other 2.0 GB · a call of the last",
        "                                     exception",
    ]


def test_dashes_stand_for_what_is_not_known():
    """Never a zero."""
    lines = memory_text(Memory((with_parts(DeviceMemory("npu:0", named_bytes=0, graph_bytes=0)),))).splitlines()

    assert lines == [
        "gpumem: npu:0 – in tensors",
        "",
        "npu:0 · – in tensors",
        "  █ tensors by name         0 bytes",
        "  ▓ autograd graphs         0 bytes",
        "  ▒ tensors without a name        –",
        "  ░ allocator cache               –",
        "  ? not known                     –",
    ]
