"""Run a training cell in a shell, bare and under `%torchcheck on`, in turns.

The promise: a clean cell under `on` takes at most 1.05 times the bare cell plus the one read of the bytes, which is
what `torch.aminmax` takes on all floating-point tensors that the namespace holds. On one thread, by processor time.
What `on` adds is the same whether the cell trains for one step or for many, and is measured on one step, where it is
not lost in the noise of the training.

    python benchmarks/torchcheck_on.py [SECONDS]      about how long the cell should take; 1.5 when left out
"""

from __future__ import annotations

import sys
import time
from contextlib import redirect_stdout
from io import StringIO

import torch
from IPython.core.interactiveshell import InteractiveShell
from side_by_side import Promises, fastest
from traitlets.config import Config

from torchmagic.namespace import walk

LONG_ROUNDS, SHORT_ROUNDS = 4, 30
SETUP = """
import torch
from torch import nn
torch.manual_seed(0)
images, labels = torch.rand(20_000, 784), torch.randint(0, 10, (20_000,))
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-4)
history = []
"""
CELL = """
model.train()
for step in range(steps):
    rows = torch.randint(0, len(images), (64,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(images[rows]), labels[rows])
    loss.backward()
    optimizer.step()
    history.append(loss.item())
"""


def new_shell() -> InteractiveShell:
    shell = InteractiveShell.instance(config=Config({"HistoryManager": {"hist_file": ":memory:"}}))
    shell.run_line_magic("load_ext", "torchmagic")
    shell.run_cell(SETUP).raise_error()
    return shell


def cell_seconds(shell: InteractiveShell, steps: int) -> tuple[float, str]:
    """Return the processor time of the cell with all that happens around it, and what was printed."""
    shell.user_ns["steps"] = steps
    with redirect_stdout(StringIO()) as out:
        start = time.process_time()
        shell.run_cell(CELL, store_history=True).raise_error()
        return time.process_time() - start, out.getvalue()


def bare_and_watched(shell: InteractiveShell, steps: int, rounds: int) -> tuple[float, float, str]:
    """Return the least time of the cell, the least time under `on`, and a report."""
    pairs, report = [], ""
    for _ in range(rounds):
        bare, _ = cell_seconds(shell, steps)
        shell.run_line_magic("torchcheck", "on")
        watched, report = cell_seconds(shell, steps)
        shell.run_line_magic("torchcheck", "off")
        pairs.append((bare, watched))
    return min(bare for bare, _ in pairs), min(watched for _, watched in pairs), report.strip()


def read_seconds(shell: InteractiveShell) -> float:
    """Return the least processor time of reading each floating-point tensor once."""
    tensors = [seen.obj.detach() for seen in walk(shell.user_ns).of_kind("tensor") if seen.obj.is_floating_point()]
    (seconds,) = fastest(7, lambda: [torch.aminmax(tensor) for tensor in tensors], clock=time.process_time)
    return seconds


def main() -> int:
    torch.set_num_threads(1)
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 1.5
    shell, promise = new_shell(), Promises()
    bare_and_watched(shell, 5, 2)
    one_bare, one_watched, _ = bare_and_watched(shell, 1, SHORT_ROUNDS)
    read = read_seconds(shell)
    steps = max(1, round(50 * seconds / cell_seconds(shell, 50)[0]))
    bare, watched, report = bare_and_watched(shell, steps, LONG_ROUNDS)
    added = one_watched - one_bare
    print(f"{steps} steps: bare {bare:.3f} s, under on {watched:.3f} s; {report}")
    print(f"`on` adds {added * 1e3:.0f} ms, of which one read of the bytes takes {read * 1e3:.0f} ms")
    promise(
        f"{(added - read) / bare:.1%} of the bare cell beyond the read (at most 5%)", holds=added <= 0.05 * bare + read
    )
    promise("the cell is clean: one line is printed", holds=len(report.splitlines()) == 1)
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
