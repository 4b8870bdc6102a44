"""`%%gpumem --exact` counts the host's tensors operation by operation, and leaves the cell what it is."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from torchmagic.tracing.allocations import Allocations


@pytest.fixture
def counted():
    """Return a function that counts what another one does, beginning with some tensors."""

    def count(function, held=()):
        allocations = Allocations()
        allocations.begin(dict(held).values())
        try:
            function()
        finally:
            allocations.end()
        assert torch._C._len_torch_dispatch_stack() == 0
        return allocations.now, allocations.most

    return count


def test_what_is_made_and_let_go_of(counted):
    """Views are nothing new, and what was there before can only go."""
    held = {"x": torch.ones(1000)}

    def work():
        y = held["x"] * 2
        part = y[3:].view(-1)
        del y
        held["z"] = part.exp()
        del part, held["x"]

    assert counted(work, held) == (3988 - 4000, 4000 + 3988)


def test_a_backward_pass_and_a_step_in_place(counted):
    """Gradients are counted, operations in place are not."""
    layer = nn.Linear(100, 100, bias=False)

    def work():
        layer(torch.ones(1, 100)).sum().backward()
        with torch.no_grad():
            layer.weight -= layer.weight.grad

    now, most = counted(work)

    assert now == 40_000
    assert 40_000 < most < 42_000


def test_cells_of_special_kinds_run(counted):
    """Compiled, traced, mapped and checkpointed code, and what makes several tensors at once."""

    def work():
        x = torch.ones(4, 4, requires_grad=True)
        torch.compile(lambda t: t.sin() + 1, backend="eager")(x).sum().backward()
        torch.jit.trace(lambda t: t.sum(1) * 2, torch.ones(3, 3))
        torch.func.vmap(torch.func.grad(lambda t: t.pow(2).sum()))(torch.ones(3, 2))
        torch.utils.checkpoint.checkpoint(lambda t: t.exp(), x, use_reentrant=False).sum().backward()
        torch.linalg.svd(torch.eye(3))
        torch.zeros(3, device="meta") + 1

    now, most = counted(work)

    assert 0 <= now < most


def test_the_report_has_the_tensors_own_peak(shell, run):
    """Beside the samples of the resident size; the by-name row has it."""
    run("import torch\nx = torch.ones(1000)")
    ran = run("%%gpumem --exact -o kept\ny = (x * 2).exp()\nNone")
    by_name = shell.user_ns["kept"].swings[-1]

    assert (by_name.before_bytes, by_name.after_bytes, by_name.peak_bytes) == (4000, 8000, 12_000)
    assert "peak 12 kB, operation by operation" in ran.out


def test_a_traceback_is_that_of_the_bare_cell(shell, run):
    """The frames below the user's are not shown, and the shell shows later errors as before."""
    bare = run("import torch\ntorch.ones(3) @ torch.ones(4)").out
    before = shell.custom_exceptions, shell.CustomTB
    ran = run("%%gpumem --exact\ntorch.ones(3) @ torch.ones(4)")

    assert "allocations.py" not in ran.out
    assert bare.splitlines()[-1] in ran.out.splitlines()
    assert (shell.custom_exceptions, shell.CustomTB) == before


@pytest.mark.parametrize(
    ("head", "peaks"),
    [("%%gpumem --exact\n%%torchcheck --trace", 1), ("%%torchcheck --trace\n%%gpumem --exact", 0)],
)
def test_beside_a_trace(shell, run, head, peaks):
    """Below a trace that is on already nothing is counted, and the report says so; both leave the shell as it was."""
    run("import torch")
    before = shell.custom_exceptions, shell.CustomTB
    ran = run(f"{head}\nx = torch.ones(10) * 2\nNone")

    assert ran.out.count("operation by operation") == peaks
    assert ran.out.count("The tensors were not counted") == 1 - peaks
    assert ran.reports == 1
    assert torch._C._len_torch_dispatch_stack() == 0
    assert (shell.custom_exceptions, shell.CustomTB) == before
    assert not [call for call in shell.events.callbacks["post_execute"] if "MemoryWatch" in repr(call)]


def test_it_wants_a_cell(run):
    """On a line of its own there is nothing to count."""
    assert run("%gpumem --exact").err == "UsageError: --exact counts while a cell runs: %%gpumem --exact above it\n"
