"""out-of-memory: who holds the device that had no room, and which errors say that one had none."""

from __future__ import annotations

import pytest
import torch

from tests.looking import COMMON, look
from tests.memory.scenarios import GB, Gpu, fake_torch
from torchmagic.measuring.cuda import Cuda
from torchmagic.measuring.exhausted import Exhausted, exhausted
from torchmagic.measuring.look import holders_at_failure
from torchmagic.namespace import walk

CUDA = torch.cuda.OutOfMemoryError
NEW = (
    "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 1 has a total capacity of 79.15 GiB of which 1.02 GiB is free."
    " Process 4242 has 78.12 GiB memory in use. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 512.00"
    " MiB is reserved by PyTorch but unallocated."
)
OLD = "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 3; 10.76 GiB total capacity; 9.71 GiB already allocated)"


def found(report):
    """Return the rule's findings."""
    assert report.failures == ()
    return [finding for finding in report.findings if finding.rule == "out-of-memory"]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (CUDA(NEW), Exhausted("cuda:1", 2_684_354_560)),
        (CUDA(OLD), Exhausted("cuda:3", 20_971_520)),
        (
            CUDA("XPU out of memory. Tried to allocate 1.00 GiB. GPU 0 has a total capacity of 16"),
            Exhausted("xpu:0", 1 << 30),
        ),
        (CUDA("Caught OutOfMemoryError in replica 2 on device 2.\nOriginal Traceback"), Exhausted("cuda:2", None)),
        (
            RuntimeError(
                "MPS backend out of memory (MPS allocated: 8.95 GB). Tried to allocate 9.00 MB on private pool."
            ),
            Exhausted("mps", 9_437_184),
        ),
        (
            RuntimeError(
                "[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried to allocate 4000 bytes."
            ),
            Exhausted("cpu", 4000),
        ),
        (RuntimeError("DefaultCPUAllocator: not enough memory: you tried to allocate 80 bytes."), Exhausted("cpu", 80)),
        (MemoryError("Unable to allocate 1.00 MiB for an array with shape (131072,)"), Exhausted("cpu", 1 << 20)),
        (MemoryError(), Exhausted("cpu", None)),
        (RuntimeError("shape '[2]' is invalid for input of size 3"), None),
        (ValueError("out of memory"), None),
        (None, None),
    ],
)
def test_which_errors_tell_of_a_full_device(error, expected):
    """By torch's own class where there is one, else by torch's own words."""
    assert exhausted(error) == expected


def test_the_cause_counts_and_what_was_being_handled_does_not():
    """A trainer raises an error of its own from torch's; a retry after torch's may fail for a reason of its own."""
    trainer = RuntimeError("training failed")
    trainer.__cause__ = CUDA(NEW)
    retry = KeyError("smaller_batch")
    retry.__context__ = CUDA(NEW)

    assert exhausted(trainer) == Exhausted("cuda:1", 2_684_354_560)
    assert exhausted(retry) is None


def test_the_holders_are_named_with_the_line():
    """Variables, graphs and the frames of the error; the line is the cell's."""
    report = look(
        COMMON,
        "w = torch.zeros(500, requires_grad=True)\n"
        "def train():\n    batch = torch.zeros(200)\n    return batch.expand(10**14, 200).clone()\n"
        "kept = w.exp()\n"
        "train()",
    )
    (finding,) = found(report)

    assert (finding.level, finding.explains, finding.line) == ("note", True, 4)
    assert finding.evidence["holders"] == {"kept": 2000, "w": 2000, "frame train": 800}
    assert finding.evidence["asked_bytes"] == 80_000_000_000_000_000
    assert finding.message.startswith(
        "`kept` holds 2.0 kB of cpu, `w` holds 2.0 kB, frame `train` holds 800 bytes; this line asks for 80 PB on cpu"
    )


def test_outputs_are_holders_and_a_way_out_is_said():
    """What nothing but the history holds can be let go of at once."""
    (finding,) = found(look(COMMON, "_oh = {3: torch.zeros(300)}\nx = torch.empty(10**15)"))

    assert finding.evidence["holders"] == {"Out[3]": 1200}
    assert finding.details[0] == "`Out[3]`: 1.2 kB (shown in cell 3)"
    assert finding.details[-1] == "`%gpumem --free` lets go of outputs and of the frames of the exception"


@pytest.mark.parametrize(
    "cell",
    [
        "x = torch.zeros(10)",
        "try:\n    torch.empty(10**15)\nexcept RuntimeError:\n    x = torch.zeros(10)",
        "torch.zeros(3) + torch.zeros(4)",
        "raise MyOutOfMemory if False else ValueError('out of memory')",
    ],
)
def test_other_cells_are_quiet(cell):
    """A cell that recovered, and other errors, however they are worded."""
    assert found(look(COMMON, cell)) == []


def test_the_device_is_shown_as_it_was_left():
    """The parts are read after the error; of another device nothing is told."""
    gpu = Gpu("aa", allocated=10 * GB, reserved=12 * GB, peak=13 * GB, context=True)
    names = {"x": torch.zeros(10)}
    device, holders = holders_at_failure(walk(names), None, "cuda:0", [Cuda(fake_torch(gpu), None)])

    assert (device.device, device.allocated_bytes, holders) == ("cuda:0", 10 * GB, [])


def test_it_is_shown_once(run):
    """Under `%torchcheck on` the next cell says nothing of it."""
    run("import torch\n%torchcheck on")
    failed = run("x = torch.zeros(100)\ntorch.empty(10**15)")
    after = run("y = 1")
    run("%torchcheck off")

    assert failed.out.count("out-of-memory\n") == 1
    assert "out-of-memory" not in after.out
