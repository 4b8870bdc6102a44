"""What following a cell costs: bare, under `detect_anomaly`, under an empty dispatch mode and under a watch, in turns.

The promises: on a small CNN's training cell (40 steps, batch 32, one thread) at most 1.5 times the bare cell and no
more than `torch.autograd.detect_anomaly()`; at most 1.25 times with batch 512; on a cell of tiny operations at most 1.3
times an empty handler. The second column is the bare cell against itself: what the machine's noise makes of nothing.

    python benchmarks/trace_cost.py
"""

from __future__ import annotations

import statistics
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import torch
from side_by_side import Promises
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from torchmagic.tracing.watch import Watch


class Empty(TorchDispatchMode):
    """The least that a dispatch mode can do."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        return func(*args, **(kwargs or {}))


class Watched:
    """A watch as a context manager."""

    def __enter__(self) -> None:
        self.watch = Watch()
        self.watch.begin()

    def __exit__(self, *error: object) -> None:
        self.watch.leave()


CNN = """
torch.manual_seed(0)
net = nn.Sequential(
    nn.Conv2d(1, 8, 3, padding=1),
    nn.BatchNorm2d(8),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Conv2d(8, 16, 3, padding=1),
    nn.ReLU(),
    nn.AdaptiveAvgPool2d(4),
    nn.Flatten(),
    nn.Linear(256, 10),
)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
images, labels = torch.randn(batch, 1, 28, 28), torch.randint(0, 10, (batch,))
for _ in range(steps):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(images), labels)
    loss.backward()
    optimizer.step()
"""

TINY = """
weights, numbers = torch.ones(8, requires_grad=True), torch.rand(8)
for _ in range(200):
    value = numbers
    for _ in range(5):
        value = torch.tanh(value * weights + 0.1) / 2
    value.sum().backward()
"""


def cell(text: str, **numbers: int) -> Callable[[], None]:
    """Return what runs a cell, in a namespace of its own."""
    code = compile(text, "<cell>", "exec")

    def run() -> None:
        exec(code, {"torch": torch, "nn": nn, **numbers})

    return run


CELLS: dict[str, tuple[Callable[[], None], int]] = {
    "CNN, batch 32": (cell(CNN, batch=32, steps=40), 5),
    "CNN, batch 512": (cell(CNN, batch=512, steps=4), 5),
    "tiny operations": (cell(TINY), 15),
}
MODES: dict[str, Callable[[], AbstractContextManager[object]]] = {
    "bare": nullcontext,
    "bare again": nullcontext,
    "detect_anomaly": torch.autograd.detect_anomaly,
    "empty mode": Empty,
    "watch": Watched,  # type: ignore[dict-item]
}


def seconds(run: Callable[[], None], mode: Callable[[], AbstractContextManager[object]]) -> float:
    """Return the processor time of a cell under a mode; entering and leaving it is not counted."""
    with mode():
        start = time.process_time()
        run()
        return time.process_time() - start


def ratios(run: Callable[[], None], rounds: int) -> dict[str, float]:
    """Return the median over rounds of each mode's time against that of the bare cell in the same round."""
    taken = [{name: seconds(run, mode) for name, mode in MODES.items()} for _ in range(rounds + 1)][1:]
    return {name: statistics.median(row[name] / row["bare"] for row in taken) for name in MODES}


def main() -> int:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'':16}" + "".join(f"{name:>16}" for name in MODES))
    measured = {}
    for name, (run, rounds) in CELLS.items():
        measured[name] = ratios(run, rounds)
        print(f"{name:16}" + "".join(f"{value:16.2f}" for value in measured[name].values()))
    promise = Promises()
    small, large, tiny = measured.values()
    promise(f"batch 32: {small['watch']:.2f} times the bare cell (at most 1.5)", holds=small["watch"] <= 1.5)
    promise(
        f"batch 32: {small['watch']:.2f} against {small['detect_anomaly']:.2f} of detect_anomaly",
        holds=small["watch"] <= small["detect_anomaly"],
    )
    promise(f"batch 512: {large['watch']:.2f} times the bare cell (at most 1.25)", holds=large["watch"] <= 1.25)
    share = tiny["watch"] / tiny["empty mode"]
    promise(f"tiny operations: {share:.2f} times an empty handler (at most 1.3)", holds=share <= 1.3)
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
