"""Who names the operation, the line and the variable that a NaN comes from: `detect_anomaly`, `DebugMode`, a watch.

Each tool is given the same cells and read as a person would read it: an answer counts when the tool points at one
operation, line or variable, and it is the right one. `DebugMode` prints every operation with a norm of its result; the
first that is not finite is taken for its answer, which is more than it says by itself.

    python benchmarks/trace_comparison.py
"""

from __future__ import annotations

import contextlib
import io
import linecache
import re
import sys
import warnings
from dataclasses import dataclass

import torch
from side_by_side import Promises
from torch import nn
from torch.nn import functional
from torch.utils._debug_mode import DebugMode

from torchmagic.checking import check, take_snapshot
from torchmagic.tracing.watch import Watch


@dataclass(frozen=True)
class Cell:
    """A cell, and what is to blame: words that name the operation, its line, and the variable it was given."""

    title: str
    text: str
    operation: tuple[str, ...]
    line: int
    variable: str


CELLS = [
    Cell(
        "log of 0",
        "p = torch.tensor([0.5, 0.0, 0.5], requires_grad=True)\nloss = -(p * torch.log(p)).sum()\nloss.backward()",
        ("log",),
        2,
        "p",
    ),
    Cell(
        "acos at 1",
        "a = torch.tensor([1.0, 0.5], requires_grad=True)\ncosine = a * 1.0\nangle = torch.acos(cosine)\n"
        "loss = angle.sum()\nloss.backward()",
        ("acos",),
        3,
        "cosine",
    ),
    Cell(
        "branch not taken",
        "raw = torch.tensor([0.5, 200.0], requires_grad=True)\nout = torch.where(raw < 1, torch.exp(raw), raw)\n"
        "loss = out.sum()\nloss.backward()",
        ("exp",),
        2,
        "raw",
    ),
    Cell(
        "row masked everywhere",
        'scores = torch.randn(2, 3, requires_grad=True)\nmask = torch.tensor([[0.0] * 3, [float("-inf")] * 3])\n'
        "masked = scores + mask\nprobs = masked.softmax(-1)\nloss = probs.sum()\nloss.backward()",
        ("softmax",),
        4,
        "masked",
    ),
    Cell(
        "half precision",
        "acts = torch.full((4,), 300.0, dtype=torch.float16, requires_grad=True)\nsquares = acts * acts\n"
        "loss = (squares - squares).sum()\nloss.backward()",
        ("mul", "*"),
        2,
        "acts",
    ),
    Cell(
        "0 / 0 in a function",
        "def rate(hits, seen):\n    return hits / seen\n\nhits = torch.tensor([1.0, 0.0], requires_grad=True)\n"
        "seen = torch.tensor([2.0, 0.0])\nloss = rate(hits, seen).sum()\nloss.backward()",
        ("div", "/"),
        2,
        "seen",
    ),
]


def run(cell: Cell) -> dict[str, object]:
    """Run a cell under a file name of its own, and return its variables."""
    filename = f"<cell {cell.title}>"
    linecache.cache[filename] = (len(cell.text), None, cell.text.splitlines(keepends=True), filename)
    variables: dict[str, object] = {"torch": torch, "nn": nn, "F": functional, "__name__": "__main__"}
    exec(compile(cell.text, filename, "exec"), variables)
    return variables


def of_detect_anomaly(cell: Cell) -> tuple[bool, bool, bool]:
    """Read the error and the warning of anomaly mode."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        error = ""
        try:
            with torch.autograd.detect_anomaly():
                run(cell)
        except RuntimeError as problem:
            error = str(problem)
    node = re.search(r"Function '(\w+?)Backward\d*'", error)
    told = "".join(str(warning.message) for warning in caught)
    lines = re.findall(rf'"<cell {re.escape(cell.title)}>", line (\d+)', told)
    operation = node is not None and node[1].lower() in cell.operation
    return operation, bool(lines) and int(lines[-1]) == cell.line, False


def of_debug_mode(cell: Cell) -> tuple[bool, bool, bool]:
    """Read the first operation whose norm is not finite, and the line above it."""
    with DebugMode(record_stack_trace=True) as mode, DebugMode.log_tensor_hashes("norm"):
        run(cell)
    line = 0
    for text in mode.debug_string(show_stack_trace=True).splitlines():
        place = re.search(rf"<cell {re.escape(cell.title)}>:(\d+)", text)
        line = int(place[1]) if place else line
        if "'hash': nan" in text or "'hash': inf" in text:
            name = re.search(r"aten::(\w+)", text)
            return name is not None and name[1].strip("_") in cell.operation, line == cell.line, False
    return False, False, False


def of_watch(cell: Cell) -> tuple[bool, bool, bool]:
    """Read the finding of a followed cell."""
    watch = Watch()
    watch.begin()
    variables: dict[str, object] = {}
    try:
        variables = run(cell)
    finally:
        trace = watch.end()
    report = check(variables, source=cell.text, filename=f"<cell {cell.title}>", before=take_snapshot({}), trace=trace)
    finding = next(finding for finding in report.findings if finding.rule == "non-finite")
    operation = str(finding.evidence["operation"]).rpartition(".")[2]
    return operation in cell.operation, finding.line == cell.line, f"`{cell.variable}`" in finding.message


TOOLS = {"detect_anomaly": of_detect_anomaly, "DebugMode": of_debug_mode, "torchmagic": of_watch}


def main() -> int:
    torch.manual_seed(0)
    right = dict.fromkeys(TOOLS, 0)
    print(f"{'':24}" + "".join(f"{tool:>34}" for tool in TOOLS))
    for cell in CELLS:
        row = f"{cell.title:24}"
        for tool, read in TOOLS.items():
            with contextlib.redirect_stderr(io.StringIO()):
                answers = read(cell)
            right[tool] += sum(answers)
            words = [name for name, holds in zip(("operation", "line", "variable"), answers, strict=True) if holds]
            row += f"{', '.join(words) or '-':>34}"
        print(row)
    promise = Promises()
    promise(f"{right['torchmagic']} of {3 * len(CELLS)} answers are right", holds=right["torchmagic"] == 3 * len(CELLS))
    return promise.broken


if __name__ == "__main__":
    sys.exit(main())
