"""A watch changes nothing, comes off whatever happens, and keeps nothing alive."""

from __future__ import annotations

import gc
import os
import threading
import weakref
from contextlib import contextmanager

import pytest
import torch
from torch import nn
from torch.func import grad, vmap
from torch.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset

from tests.fingerprints import fingerprint, global_state
from torchmagic.tracing.watch import Watch


@contextmanager
def watched():
    """Watch a block, and hand over a list in which the trace will stand."""
    watch, traces = Watch(), []
    watch.begin()
    try:
        yield traces
    finally:
        traces.append(watch.end())


def train(steps=3):
    """Train a small network and return all that it left."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(), nn.ReLU(), nn.Linear(8, 2))
    opt = torch.optim.Adam(net.parameters())
    for _ in range(steps):
        loss = nn.functional.cross_entropy(net(torch.randn(6, 4)), torch.randint(0, 2, (6,)))
        opt.zero_grad()
        loss.backward()
        opt.step()
    return [loss.detach(), *net.state_dict().values(), *(p.grad for p in net.parameters())]


def test_training_is_the_same_to_the_bit():
    """Values, gradients and random numbers are those of the bare run."""
    bare, state = train(), torch.get_rng_state()
    with watched() as traces:
        followed = train()

    assert [fingerprint(t)[2:5] + fingerprint(t)[6:7] for t in followed] == [
        fingerprint(t)[2:5] + fingerprint(t)[6:7] for t in bare
    ]
    assert torch.equal(torch.get_rng_state(), state)
    assert [event for event in traces[0].events if event.kind != "unwritten"] == []  # dropout uses `empty_like`
    assert traces[0].steps.backward_passes == 3
    assert len(traces[0].steps.norms) == 3
    assert traces[0].operations > 200


def test_global_state_is_untouched():
    """Modes, hooks, random states and settings are as before."""
    before = global_state()
    with watched():
        pass

    assert global_state() == before
    assert _get_current_dispatch_mode_stack() == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_the_mode_comes_off_after_an_error(error):
    """Whatever ends the block, no mode is left on the stack."""
    with pytest.raises(error), watched():
        raise error

    assert _get_current_dispatch_mode_stack() == []


def test_the_mode_comes_off_from_under_another():
    """A mode that the user's code left on stays where it is."""

    class Left(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    left = Left()
    with watched():
        left.__enter__()

    assert _get_current_dispatch_mode_stack() == [left]
    left.__exit__(None, None, None)
    assert _get_current_dispatch_mode_stack() == []


def test_an_interrupt_inside_an_operation_is_the_users():
    """An exception from below the handler goes on its way, and the watch ends in order."""

    class Stops(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            raise KeyboardInterrupt

    odd = torch.Tensor._make_subclass(Stops, torch.ones(2))
    with pytest.raises(KeyboardInterrupt), watched():
        odd + 1

    assert _get_current_dispatch_mode_stack() == []


def test_nothing_is_kept_alive():
    """A tensor that was bad, its module and its graph are gone as soon as the user lets go of them."""
    with watched() as traces:
        net = nn.Linear(2, 2)
        out = (net(torch.zeros(1, 2)) * float("nan")).log()
        out.sum().backward()
        held = [weakref.ref(net), weakref.ref(out), weakref.ref(net.weight)]
        del net, out
        gc.collect()
        assert [reference() for reference in held] == [None, None, None]
    assert traces[0].events != []


def test_memory_that_is_used_again_is_not_taken_for_the_old():
    """A finite tensor in the memory of a bad one that is gone has no event."""
    with watched() as traces:
        for _ in range(50):
            bad = torch.zeros(1000) / 0
            del bad
            good = torch.ones(1000)
    assert traces[0].event_of(good) is None


def test_workers_of_a_loader_are_left_alone():
    """A forked worker hands its operations on without a look, and its batches arrive as they are."""
    data = torch.arange(12.0).reshape(6, 2)
    with watched() as traces:
        batches = [batch for (batch,) in DataLoader(TensorDataset(data), batch_size=2, num_workers=2)]

    assert torch.equal(torch.cat(batches), data)
    assert traces[0].unseen == []


def test_a_forked_child_looks_at_nothing():
    """The mode of a child process hands every operation on."""
    with watched() as traces:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            bad = torch.zeros(1).log()
            os.write(write, b"1" if float(bad) == -float("inf") else b"0")
            os._exit(0)
        os.waitpid(child, 0)
        assert os.read(read, 1) == b"1"
    assert [event for event in traces[0].events if event.kind != "unwritten"] == []  # dropout uses `empty_like`


def test_a_thread_of_the_users_is_not_followed():
    """The mode belongs to the thread of the cell."""
    with watched() as traces:
        thread = threading.Thread(target=lambda: torch.zeros(2).log())
        thread.start()
        thread.join()
    assert [event for event in traces[0].events if event.kind != "unwritten"] == []  # dropout uses `empty_like`


def kinds(trace):
    """Return the kinds and operations of a trace's events."""
    return [(event.kind, event.operation) for event in trace.events]


def test_transforms():
    """`vmap` and `grad` run below the mode as ordinary operations."""
    x = torch.tensor([[0.0, 1.0], [1.0, 2.0]])
    bare = vmap(grad(lambda row: row.sqrt().sum()))(x)
    with watched() as traces:
        followed = vmap(grad(lambda row: row.sqrt().sum()))(x)

    assert torch.equal(followed, bare)
    assert traces[0].unseen == []
    assert kinds(traces[0])[0] == ("born", "div")


def test_jit_trace_and_script():
    """`torch.jit.trace` hands Python numbers where operations want tensors; it gets them made into tensors."""
    with watched() as traces:
        traced = torch.jit.trace(lambda x: (x * 2).log(), torch.ones(3))
        out = traced(torch.zeros(3))

    assert out.tolist() == [-float("inf")] * 3
    assert ("born", "log") in kinds(traces[0])


def test_checkpoint_and_autocast():
    """What is computed again in the backward pass is followed there too."""
    net = nn.Linear(2, 2)
    x = torch.ones(3, 2, requires_grad=True)
    with watched() as traces, torch.autocast("cpu", dtype=torch.bfloat16):
        checkpoint(lambda v: net(v).relu().sum(), x, use_reentrant=False).backward()

    assert x.grad is not None
    assert traces[0].unseen == []


def test_inference_mode_and_no_grad():
    """Tensors of inference mode are looked at like any other."""
    with watched() as traces, torch.inference_mode():
        torch.zeros(2).log()
    assert kinds(traces[0]) == [("born", "log")]


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_compiled_code_runs_uncompiled_and_is_compiled_afterwards(backend):
    """Under a mode torch runs compiled functions as they are written; nothing of the handler is compiled."""
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    new = torch.compile(lambda x: (x * 2).log(), backend=backend)
    old = torch.compile(lambda x: (x * 3).log(), backend=backend)
    old(torch.zeros(2))
    with watched() as traces:
        followed = [new(torch.zeros(2)), old(torch.zeros(2))]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    after = [new(torch.zeros(2)), old(torch.zeros(2))]

    assert [t.tolist() for t in followed + after] == [[-float("inf")] * 2] * 4
    assert kinds(traces[0]) == [("born", "log"), ("born", "log")]
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 3


def test_kinds_of_tensors_that_have_no_values_to_read():
    """Sparse, nested, meta, quantized, complex and empty tensors neither break the watch nor are blamed."""
    with watched() as traces:
        torch.eye(3).to_sparse() @ torch.ones(3, 1)
        torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2
        torch.ones(3, device="meta") * 2
        torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8).dequantize()
        torch.ones(2, dtype=torch.complex64) * 2j
        torch.empty(0).sum()
        torch.fft.rfft(torch.ones(8))
    assert (traces[0].events, traces[0].unseen) == ([], [])


def test_a_large_expanded_tensor_is_read_once():
    """One number seen a billion times is one number."""
    with watched() as traces:
        (torch.ones(1).expand(10**9)[:1] + 0).sum()
    assert traces[0].operations > 0


def test_slowdown_is_told():
    """The estimate is at least 1, and more for a cell of tiny operations than for one of large ones."""
    with watched() as tiny:
        x = torch.ones(4)
        for _ in range(2000):
            x = x * 1.0
    with watched() as large:
        y = torch.ones(600, 600)
        for _ in range(5):
            y = (y @ y) / 600
    assert 1.0 <= large[0].slowdown < tiny[0].slowdown


def test_a_step_that_divides_by_zero():
    """A step's operations are not looked at one by one; its parameters are, and the optimizer is named."""
    weights = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.Adam([weights], eps=0.0)
    with watched() as traces:
        (weights * torch.tensor([1.0, 0.0, 1.0])).sum().backward()
        optimizer.step()

    assert kinds(traces[0]) == [("born", "Adam.step")]
    assert traces[0].event_of(weights) is traces[0].events[0]


def test_a_step_that_fails_does_not_end_the_looking():
    """After an error in a step, what follows is looked at again."""

    class Fails(torch.optim.SGD):
        __module__ = "torch.optim.fails"

        def step(self, closure=None):
            raise RuntimeError

    weights = nn.Parameter(torch.ones(3))
    optimizer = Fails([weights], lr=0.1)
    with watched() as traces:
        weights.sum().backward()
        with pytest.raises(RuntimeError):
            optimizer.step()
        (weights * 0).log()

    assert kinds(traces[0]) == [("born", "log")]


def test_a_closure_is_looked_at():
    """LBFGS runs the forward and backward passes inside its step."""
    weights = nn.Parameter(torch.ones(3))
    optimizer = torch.optim.LBFGS([weights], max_iter=2)

    def closure():
        optimizer.zero_grad()
        loss = (weights * 0).log().sum()
        loss.backward()
        return loss

    with watched() as traces:
        optimizer.step(closure)

    assert kinds(traces[0])[0] == ("born", "log")


def test_the_price_is_measured_on_the_host():
    """A default device of the user's is not touched when the watch ends."""
    try:
        with watched() as traces:
            torch.set_default_device("meta")
            torch.ones(3) * 2
    finally:
        torch.set_default_device(None)  # "cpu" would leave a mode on

    assert traces[0].slowdown >= 1.0
    assert traces[0].unseen == []
