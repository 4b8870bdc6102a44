"""Measure what a look at memory costs.

The promises: under 50 ms of processor time for 1,000 names, and under 3 ms for the numbers that a live panel refreshes,
in which no name is looked up.

    python benchmarks/memory_look.py [NAMES]      1,000 when left out
"""

from __future__ import annotations

import sys
import time

import torch
from side_by_side import Promises
from torch import nn

from torchmagic.measuring import look, read_devices
from torchmagic.panel.live import LivePanel


def milliseconds(function, times=15):
    """Return the least processor time of a call; the least is what the call itself needs."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return 1000 * min(taken)


def main() -> None:
    """Measure both and say whether the promises hold."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    names: dict[str, object] = {f"x{number}": torch.zeros(100) for number in range(count)}
    tensors = milliseconds(lambda: look(names))
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(count // 10)))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(1, 8)).sum().backward()
    optimizer.step()
    mixed = names | {"model": model, "optimizer": optimizer, "loss": model(torch.zeros(1, 8)).sum()}
    print(f"{count:,} tensors: {tensors:.1f} ms")
    print(
        f"and a model of {count // 10:,} layers, its optimizer and a loss: {milliseconds(lambda: look(mixed)):.1f} ms"
    )
    panel = LivePanel(read_devices, 60.0, lambda: None)
    panel.show_names(look(mixed))
    for _ in range(240):
        panel.refresh()
    live = milliseconds(panel.refresh, 50)
    print(f"the devices alone: {milliseconds(read_devices, 50):.2f} ms; drawn with a full curve: {live:.2f} ms")
    promise = Promises()
    promise(f"1,000 names take {tensors * 1000 / count:.1f} ms, under 50 ms", holds=tensors * 1000 / count < 50)
    promise(f"a live refresh takes {live:.2f} ms, under 3 ms", holds=live < 3)
    sys.exit(promise.broken > 0)


if __name__ == "__main__":
    main()
