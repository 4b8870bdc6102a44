"""Look at very many small things: 100,000 tensors in 1,000 containers, and a list of 10 million floats.

The promise: under 3 s for the tensors, linear from 1,000 to 100,000 of them, and under 50 ms for the list. Processor
time counts.

    python benchmarks/many_tensors.py [TENSORS]      100,000 when left out
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import torch
from side_by_side import Promises, fastest

from torchmagic.checking import check, take_snapshot

IN_ONE = 100
CELL = """#%%torchcheck
for tensor in c0:
    tensor += 1
c1.append(c2)
"""


def containers(tensors: int) -> dict[str, object]:
    """Return lists of 100 tensors each."""
    return {f"c{i}": [torch.ones(4) for _ in range(IN_ONE)] for i in range(tensors // IN_ONE)}


def looks(tensors: int) -> tuple[Callable[[], object], Callable[[], object]]:
    """Return a look at the namespace as it is, and all that is done for a checked cell: a look before and one after."""
    names = containers(tensors)
    return (
        lambda: check(names),
        lambda: check(names, source=CELL, before=take_snapshot(names)),
    )


def main() -> int:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    promise, per_tensor = Promises(), []
    for tensors in (most // 100, most // 10, most):
        alone, cell = fastest(3, *looks(tensors), clock=time.process_time)
        per_tensor.append(cell / tensors)
        print(f"{tensors:,} tensors: look {alone:.3f} s, checked cell {cell:.3f} s, {cell / tensors * 1e6:.1f} us each")
    limit = 3.0 * most / 100_000
    promise(f"a look at {most:,} tensors takes {alone:.2f} s (under {limit:g})", holds=alone < limit)
    promise(f"a checked cell beside them takes {cell:.2f} s (under {limit:g})", holds=cell < limit)
    growth = per_tensor[-1] / per_tensor[0]
    promise(
        f"a tensor among {most:,} costs {growth:.2f} times one among {most // 100:,} (under 1.5)", holds=growth < 1.5
    )
    names = {"floats": [0.5] * (100 * most)}
    (numbers,) = fastest(3, lambda: check(names), clock=time.process_time)
    promise(f"a list of {100 * most:,} floats takes {numbers * 1e3:.0f} ms (under 50)", holds=numbers < 0.05)
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
