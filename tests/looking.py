"""Run cells in one namespace as IPython would, and look at what the last one left."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from torchmagic.checking import check, take_snapshot
from torchmagic.tracing.watch import Watch

if TYPE_CHECKING:
    from types import CodeType

    from torchmagic.report import Report

COMMON = """
import copy
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(0)
"""


def look(*cells: str, **options: Any) -> Report:
    """Run the cells and check the namespace after the last, which may fail."""
    return look_around(*cells, **options)[0]


def look_around(*cells: str, trace: bool = False, **options: Any) -> tuple[Report, dict[str, Any], Exception | None]:
    """Run the cells, check the namespace after the last, and return the report, the namespace and the last error.

    With `trace` the last cell is followed.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    *setup, cell = cells
    for earlier in setup:
        exec(_compiled(earlier), namespace)
    before, code, error = take_snapshot(namespace), _compiled(cell), None
    watch = Watch() if trace else None
    if watch is not None:
        watch.begin()
    try:
        exec(code, namespace)
    except Exception as problem:
        error = problem
    finally:
        if watch is not None:
            options["trace"] = watch.end()
    report = check(namespace, source=cell, error=error, before=before, filename=code.co_filename, **options)
    return report, namespace, error


def _compiled(cell: str) -> CodeType:
    """Compile a cell under a name by which its text can be found, as IPython does."""
    filename = f"<cell {abs(hash(cell))}>"
    linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
    return compile(cell, filename, "exec", dont_inherit=True)


def flags(report: Report, rule: str) -> list[tuple[str, int | None]]:
    """Return the subjects and lines of a rule's findings, in the order of the report."""
    assert report.failures == ()
    return [(finding.subject, finding.line) for finding in report.findings if finding.rule == rule]
