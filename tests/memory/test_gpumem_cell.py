"""`%%gpumem` runs a cell as if it were bare, and tells what it did to memory."""

from __future__ import annotations

import re
import weakref

import pytest
import torch

from tests.memory.scenarios import GB, Gpu, fake_torch
from torchmagic.measuring import MemoryWatch
from torchmagic.measuring.cuda import Cuda
from torchmagic.memory_changes import HolderChange, Swing

MB = 10**6


def rows(text):
    """Return the lines about holders, as words."""
    return [line.split() for line in text.splitlines() if line.startswith(("  `", "  frame"))]


def test_names_that_came_went_grew_and_shrank(shell, run):
    """The largest change first; what did not change is not told."""
    shell.user_ns.update({f"x{number}": torch.zeros(100) for number in range(3)}, same=torch.zeros(9000))
    ran = run("%%gpumem\nimport torch\nx0 = torch.zeros(500)\nx1 = x1[:5].clone()\ndel x2\nnew = torch.ones(25)\nNone")

    assert rows(ran.out) == [
        ["`x0`", "400", "bytes", "2.0", "kB", "+1.6", "kB", "grew"],
        ["`x2`", "400", "bytes", "-400", "bytes", "went"],
        ["`x1`", "400", "bytes", "20", "bytes", "-380", "bytes", "shrank"],
        ["`new`", "100", "bytes", "+100", "bytes", "came"],
    ]


def test_the_peak_of_the_host_is_seen_by_samples(run):
    """What the cell took and gave back shows in the peak alone."""
    run("import torch, time")
    ran = run("%%gpumem -o kept\nbig = torch.ones(50_000_000)\ntime.sleep(0.1)\ndel big")
    resident = next(line for line in ran.out.splitlines() if line.startswith("  cpu resident"))

    assert resident.endswith(", by samples")
    assert run("print(kept.swings[0].peak_bytes - kept.swings[0].before_bytes > 190_000_000)").out == "True\n"
    assert run("print(abs(kept.swings[0].change_bytes) < 20_000_000)").out == "True\n"


def test_the_cell_is_the_bare_cell(shell, run):
    """Its result, its history and its top-level `await`."""
    ran = run("%%gpumem\nimport asyncio\nawait asyncio.sleep(0)\n40 + 2")

    assert ran.result.result == 42
    assert ran.out.startswith("Out[1]: 42\ngpumem: the cell ran ")
    assert (shell.user_ns["_"], shell.user_ns["_i1"].splitlines()[0]) == (42, "%%gpumem")


def test_a_failing_cell_fails_and_its_frames_are_holders(run):
    """Lines count as in the editor, and the traceback shows what was typed."""
    ran = run("%%gpumem\nimport torch\ndef train():\n    batch = torch.zeros(50)\n    1/0\ntrain()")

    assert isinstance(ran.result.error_in_exec, ZeroDivisionError)
    assert "run_line_magic" not in ran.out
    assert re.search(r"----> 5     1/0", ran.out)
    assert rows(ran.out) == [["frame", "`train`", "200", "bytes", "+200", "bytes", "came"]]


def test_both_magics_above_one_cell(run):
    """In either order, each with its report."""
    for head in ("%%gpumem\n%%torchcheck", "%%torchcheck\n%%gpumem"):
        ran = run(f"{head}\nimport torch\nw = torch.ones(2)\nw.half()\nNone")

        assert ran.reports == 1
        assert ran.out.count("gpumem: the cell ran") == 1
        assert "line 5 · discarded-transfer" in ran.out


def test_a_wrong_option_and_help_do_not_run_the_cell(shell, run):
    """One line, or the help."""
    assert run("%%gpumem model\nx = 1").err == "UsageError: model has a line of its own: %gpumem model\n"
    assert "--top" in run("%%gpumem -h\nx = 1").out
    assert "x" not in shell.user_ns


def test_what_goes_wrong_in_the_report_is_one_line(run, monkeypatch):
    """The cell has run."""

    def fail(*args):
        raise RuntimeError("no such device\nat all")

    monkeypatch.setattr("torchmagic.measuring.MemoryWatch.end", fail)

    assert run("%%gpumem\nprint('ran')").out == "ran\ngpumem: the report failed: RuntimeError: no such device\n"


def test_nothing_is_kept_alive():
    """What the cell lets go of goes, while it is watched and after."""
    names = {"x": torch.zeros(10)}
    storage = weakref.ref(names["x"].untyped_storage())
    watch = MemoryWatch(names, sources=[])
    watch.begin()
    del names["x"]

    assert storage() is None
    assert watch.end().changes == (HolderChange("x", "cpu", 40, 0),)


@pytest.mark.parametrize(
    ("peak_before", "during", "swing"),
    [
        (3 * GB, {"allocated": 2 * GB, "peak": 5 * GB}, Swing("cuda:0", "in tensors", GB, 2 * GB, 5 * GB)),
        (
            9 * GB,
            {"allocated": 2 * GB, "peak": 9 * GB},
            Swing("cuda:0", "in tensors", GB, 2 * GB, 2 * GB, is_sampled=True, ceiling_bytes=9 * GB),
        ),
    ],
)
def test_the_allocators_peak(peak_before, during, swing):
    """A new peak is the cell's; an older one only bounds it, since resetting it would take it from the user."""
    gpu = Gpu("aa", allocated=GB, reserved=GB, peak=peak_before, context=True)
    watch = MemoryWatch({}, sources=[Cuda(fake_torch(gpu), None)])
    watch.begin()
    vars(gpu).update(during)

    assert watch.end().swings == (swing,)


def test_a_device_that_the_cell_starts_had_nothing_before():
    """It is first seen after the cell."""
    gpu = Gpu("aa", allocated=GB, reserved=GB, peak=2 * GB, context=True)
    torch_before = fake_torch(gpu, started=False)
    watch = MemoryWatch({}, sources=[Cuda(torch_before, None)])
    watch.begin()
    torch_before.cuda.started = True

    assert watch.end().swings == (Swing("cuda:0", "in tensors", 0, GB, 2 * GB),)
