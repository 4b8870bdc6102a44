"""Put the mode on for a cell, and take it off again, whatever the cell did."""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from torchmagic.tracing.compiled import Recompilation, allow_uncompiled, demand_compiled
from torchmagic.tracing.forks import LOOKING
from torchmagic.tracing.lineage import Lineage
from torchmagic.tracing.mode import make_mode
from torchmagic.tracing.onlooker import Onlooker
from torchmagic.tracing.optimizer_steps import OptimizerSteps
from torchmagic.tracing.steps import Steps
from torchmagic.tracing.trace import Trace

_TRIALS: Final = 100
_ROUNDS: Final = 3


class Watch:
    """Watches the operations of one thread between `begin` and `end`."""

    def __init__(self) -> None:
        import torch  # noqa: F401 - asked to follow a cell, we need what the cell is about to import

        self._lineage, self._steps = Lineage(), Steps([], [])
        self._onlooker = Onlooker(self._lineage, self._steps)
        self._mode = make_mode(self._onlooker)
        self._optimizers = OptimizerSteps(self._onlooker, self._mode)
        self._is_on = False
        self._recompilation = Recompilation()
        self._started = 0.0

    def begin(self) -> None:
        """Begin to watch."""
        self._optimizers.begin()
        self._recompilation.begin()
        allow_uncompiled()
        self._mode.__enter__()
        self._is_on = True
        LOOKING.add(self)
        self._onlooker.sequence = sys.modules["torch"]._C._autograd._get_sequence_nr()  # noqa: SLF001
        self._started = time.perf_counter()

    def end(self) -> Trace:
        """Take the mode off, wherever in the stack it is by now, and return what was seen. A second call is none."""
        seconds = time.perf_counter() - self._started
        self.leave()
        operations = self._mode.operations
        trace = Trace(self._lineage, self._steps, operations=operations)
        if self._mode.failure:
            trace.unseen.append(f"the trace broke off: {self._mode.failure}")
        extra = operations * price_of_operation() + self._onlooker.reader.seconds
        trace.slowdown = seconds / max(seconds - extra, seconds / 100)
        self._lineage.sweep()
        return trace

    def leave(self) -> None:
        """Take the mode off, without a result."""
        LOOKING.discard(self)
        self.stop()
        if self._is_on:
            self._is_on = False
            self._optimizers.end()
            take_off(self._mode)
            self._recompilation.end()

    def stop(self) -> None:
        """Look at nothing any more; the mode hands every operation on."""
        self._mode.active = False


def take_off(mode: Any) -> None:
    """Take a mode off the stack from under those that the user's code left above it."""
    from torch.utils._python_dispatch import _get_current_dispatch_mode_stack, _pop_mode, _push_mode

    demand_compiled()
    above: list[Any] = []
    stack = _get_current_dispatch_mode_stack()
    if not any(entry is mode for entry in stack):
        return
    while stack and stack[-1] is not mode:
        above.append(_pop_mode())
        stack = _get_current_dispatch_mode_stack()
    mode.__exit__(None, None, None)
    for other in reversed(above):
        _push_mode(other)


def price_of_operation() -> float:
    """Return the seconds that watching adds to an operation on a few numbers, measured now."""
    torch = sys.modules["torch"]
    mode = make_mode(Onlooker(Lineage(), Steps([], [])))
    # On the host, whatever device the user has made the default one: looking starts no accelerator.
    few, weights = torch.ones(8, device="cpu"), torch.ones(8, device="cpu", requires_grad=True)

    def seconds() -> float:
        start = time.perf_counter()
        for _ in range(_TRIALS):
            torch.mul(few, weights)
        return (time.perf_counter() - start) / _TRIALS

    # The mean and not the least: the cell ran on the machine as it is, other programs and all.
    bare = sum(seconds() for _ in range(_ROUNDS)) / _ROUNDS
    with mode:
        watched = sum(seconds() for _ in range(_ROUNDS)) / _ROUNDS
    demand_compiled()
    return max(0.0, watched - bare)
