"""What is told of devices that are not NVIDIA's, and of several devices together."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import nn

from tests.memory.scenarios import GB, MB
from torchmagic.holdings import DeviceMemory
from torchmagic.measuring.accelerator import Accelerator
from torchmagic.measuring.bar import with_parts
from torchmagic.measuring.devices import no_accelerator
from torchmagic.measuring.imbalance import imbalances
from torchmagic.measuring.mps import Mps
from torchmagic.measuring.xpu import Xpu
from torchmagic.namespace import walk


def refuse(*arguments):
    """Answer as a device does that does not know."""
    raise RuntimeError("not implemented for this device")


def parts(device):
    """Return the parts of a device by their kinds."""
    return {part.kind: part.bytes for part in with_parts(device).parts}


def apple(*, built=True, available=True):
    """Return what a backend sees of torch on a Mac."""
    mps = SimpleNamespace(
        recommended_max_memory=lambda: 24 * GB,
        current_allocated_memory=lambda: 5 * GB,
        driver_allocated_memory=lambda: 6 * GB,
    )
    backend = SimpleNamespace(is_built=lambda: built, is_available=lambda: available)
    return SimpleNamespace(mps=mps, backends=SimpleNamespace(mps=backend))


def test_apples_device():
    """What of the rest is free is not told: the memory is the machine's."""
    (device,) = Mps(apple()).read()

    assert (device.device, device.total_bytes, device.peak_bytes) == ("mps", 24 * GB, None)
    assert parts(device) == {"tensors": 5 * GB, "cache": GB, "unknown": 18 * GB}


def test_a_torch_without_metal_has_no_such_device():
    """Nothing is asked of it."""
    assert list(Mps(apple(built=False)).read()) == []
    assert list(Mps(apple(available=False)).read()) == []


def intel(mem_get_info, *, started=True):
    """Return what a backend sees of torch with one of Intel's devices."""
    stats = {
        "allocated_bytes.all.current": 3 * GB,
        "reserved_bytes.all.current": 4 * GB,
        "allocated_bytes.all.peak": 5 * GB,
    }
    return SimpleNamespace(
        xpu=SimpleNamespace(
            is_initialized=lambda: started,
            device_count=lambda: 1,
            memory_stats=lambda index: stats,
            get_device_properties=lambda index: SimpleNamespace(name="Arc", total_memory=16 * GB),
            mem_get_info=mem_get_info,
        )
    )


def test_intels_device():
    """The driver tells what is free, and not whose the rest is."""
    (device,) = Xpu(intel(lambda index: (10 * GB, 16 * GB))).read()

    assert parts(device) == {"tensors": 3 * GB, "cache": GB, "context or others": 2 * GB, "free": 10 * GB}


def test_intels_device_whose_driver_does_not_tell_what_is_free():
    """The rest is not known, and its size is."""
    (device,) = Xpu(intel(refuse)).read()

    assert parts(device) == {"tensors": 3 * GB, "cache": GB, "unknown": 12 * GB}
    assert list(Xpu(intel(refuse, started=False)).read()) == []


def other(**functions):
    """Return what a backend sees of torch with an accelerator of another make."""
    known = {"current_accelerator": lambda: SimpleNamespace(type="npu"), "device_count": lambda: 1}
    return SimpleNamespace(accelerator=SimpleNamespace(**known, **functions))


def test_any_other_accelerator():
    """By the interface that all of them share."""
    stats = {"allocated_bytes.all.current": 3 * GB, "reserved_bytes.all.current": 4 * GB}
    (device,) = Accelerator(
        other(memory_stats=lambda index: stats, get_memory_info=lambda index: (10 * GB, 16 * GB))
    ).read()

    assert (device.device, device.peak_bytes) == ("npu:0", None)
    assert parts(device) == {"tensors": 3 * GB, "cache": GB, "context or others": 2 * GB, "free": 10 * GB}


@pytest.mark.parametrize("functions", [{}, {"memory_stats": refuse}, {"memory_stats": lambda index: {}}])
def test_an_accelerator_that_tells_nothing(functions):
    """Its numbers are dashes; one whose allocator was not started is not asked further, which would start it."""
    (device,) = Accelerator(other(get_memory_info=lambda index: pytest.fail("started"), **functions)).read()

    assert parts(device) == {"tensors": None, "cache": None, "unknown": None}


def test_an_unknown_total():
    """What is known is told."""
    (device,) = Accelerator(other(memory_stats=lambda i: {"allocated_bytes.all.current": MB})).read()

    assert parts(device) == {"tensors": MB, "cache": None, "unknown": None}


def test_this_machine_has_no_accelerator():
    """The sentence says why."""
    assert list(Mps(torch).read()) == list(Xpu(torch).read()) == list(Accelerator(torch).read()) == []
    assert no_accelerator([DeviceMemory("cpu")]) == [
        f"no accelerator is shown: this torch ({torch.__version__}) was built for the CPU alone"
    ]
    assert no_accelerator([DeviceMemory("cpu"), DeviceMemory("mps")]) == []


def test_an_accelerator_made_of_python():
    """A device that torch itself takes for one, in a process of its own: it has no allocator that could be asked."""
    code = (
        "import torch, torchmagic\nfrom tests.second_device import register\nkept = register()\n"
        "x = torch.ones(10, device='npy')\nreport = torchmagic.memory({'x': x})\n"
        "print([(d.device, d.allocated_bytes) for d in report.devices if not d.is_host])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[('npy:0', None)]\n"


def devices_with(*allocated):
    """Return CUDA devices with these bytes in tensors."""
    return [DeviceMemory(f"cuda:{index}", allocated_bytes=held) for index, held in enumerate(allocated)]


def data_parallel():
    """Return a wrapper over three devices, made where there are none."""
    wrapper = nn.DataParallel(nn.Linear(1, 1))
    wrapper.device_ids, wrapper.output_device = [0, 1, 2], 0
    return wrapper


def test_the_imbalance_of_data_parallel_is_said():
    """With the reason, and only where there is a clear one."""
    found = walk({"net": data_parallel()})

    assert list(imbalances(devices_with(12 * GB, 4 * GB, 5 * GB), found)) == [
        "cuda:0 has 12 GB in tensors and the other devices of `net` 5.0 GB at most: DataParallel gathers outputs and"
        " gradients there, DistributedDataParallel would spread them"
    ]
    assert list(imbalances(devices_with(5 * GB, 4 * GB, 5 * GB), found)) == []
    assert list(imbalances(devices_with(12 * GB, None, None), found)) == []
    assert list(imbalances(devices_with(12 * GB, 4 * GB, 5 * GB), walk({"net": nn.Linear(1, 1)}))) == []


BYTES = st.none() | st.integers(0, 100)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.builds(
        DeviceMemory,
        st.sampled_from(["cuda:0", "cpu"]),
        total_bytes=BYTES,
        used_bytes=BYTES,
        driver_bytes=BYTES,
        process_bytes=BYTES,
        allocated_bytes=BYTES,
        reserved_bytes=BYTES,
        named_bytes=BYTES,
        graph_bytes=BYTES,
    )
)
def test_no_part_is_negative_and_known_parts_do_not_exceed_what_is_there(device):
    """Whatever is known, and however badly readings fit together; consistent ones add up to the total."""
    shown = with_parts(device)
    numbers = [part.bytes for part in shown.parts]
    own = max(device.allocated_bytes or 0, (device.named_bytes or 0) + (device.graph_bytes or 0))
    floor = max(own, device.reserved_bytes or 0, device.process_bytes or 0, device.used_bytes or 0)
    fits = device.total_bytes is not None and floor * 2 + (device.driver_bytes or 0) <= device.total_bytes

    assert all(number is None or number >= 0 for number in numbers)
    if fits and None not in numbers:
        assert sum(number or 0 for number in numbers) == device.total_bytes
