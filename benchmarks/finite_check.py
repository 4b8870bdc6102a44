"""Compare a look at one large finite tensor with `torch.aminmax` and with two usual ways to ask for NaN, in one run.

The promise, for float32 and for bfloat16: at most 1.2 times `torch.aminmax`, with under 2 MB of extra memory; at least
5 times as fast as numpy's way (which has no bfloat16 and converts first), and 20 times as fast as `isfinite`. These two
need several times the tensor's memory, so they and the look beside them get a quarter of it. All on one thread, by
processor time.

    python benchmarks/finite_check.py [GIGABYTES]      4 when left out
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import torch
from side_by_side import Promises, fastest

from torchmagic import check

UNIT = 1 if sys.platform == "darwin" else 1024
"""What `ru_maxrss` counts in: bytes on macOS, else kilobytes."""


def peak_bytes() -> int:
    """Return the most memory that the process ever had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * UNIT


def numpy_way(tensor: torch.Tensor) -> bool:
    """Ask as people do, whose tensor may be one that numpy has no type for."""
    wide = tensor.float() if tensor.dtype is torch.bfloat16 else tensor
    return bool(np.any(np.isnan(wide.cpu().numpy())))


def extra_bytes(tensor: torch.Tensor) -> int:
    """Return by how much a look raises the peak; a large tensor that was just made is the peak so far."""
    before = peak_bytes()
    assert check({"tensor": tensor}).looked.tensors == 1
    return peak_bytes() - before


def measure(tensor: torch.Tensor, promise: Promises) -> None:
    bare, look = fastest(5, lambda: torch.aminmax(tensor), lambda: check({"tensor": tensor}), clock=time.process_time)
    part = tensor[: tensor.numel() // 4]
    part_look, by_numpy, by_isfinite = fastest(
        2,
        lambda: check({"part": part}),
        lambda: numpy_way(part),
        lambda: torch.isfinite(part).all(),
        clock=time.process_time,
    )
    print(f"{tensor.nbytes / 1e9:g} GB of {tensor.dtype}: aminmax {bare * 1e3:.0f} ms, look {look * 1e3:.0f} ms")
    promise(f"{look / bare:.2f} times aminmax (at most 1.2)", holds=look <= 1.2 * bare)
    promise(f"{by_numpy / part_look:.1f} times as fast as numpy (at least 5)", holds=by_numpy >= 5 * part_look)
    promise(
        f"{by_isfinite / part_look:.1f} times as fast as isfinite (at least 20)", holds=by_isfinite >= 20 * part_look
    )


def main() -> int:
    torch.set_num_threads(1)
    promise = Promises()
    for small in (torch.ones(2), torch.tensor([1.0, float("nan")])):
        check({"small": small})  # what is loaded once is no part of a look
    gigabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    single = torch.empty(int(gigabytes * 1e9) // 4).fill_(0.5)
    tensors = [single, single.view(torch.bfloat16)]  # the two halves of a single-precision 0.5 are 0 and 0.5
    for tensor in tensors:
        extra = extra_bytes(tensor)
        promise(f"a look at {tensor.dtype} takes {extra / 1e6:.2f} MB of extra memory (under 2)", holds=extra < 2e6)
        tensor[-1] = float("nan")
        extra = extra_bytes(tensor)
        tensor[-1] = 0.5
        promise(f"with a NaN at its end, {extra / 1e6:.2f} MB (under 2)", holds=extra < 2e6)
    for tensor in tensors:
        measure(tensor, promise)
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
