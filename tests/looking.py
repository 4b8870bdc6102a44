"""Run cells in one namespace as IPython would, and look at what the last one left."""

from __future__ import annotations

import linecache
from typing import TYPE_CHECKING, Any

from torchmagic.checking import check, take_snapshot

if TYPE_CHECKING:
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
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(cells):
        filename = f"<cell {number}: {hash(cell)}>"
        linecache.cache[filename] = (len(cell), None, cell.splitlines(keepends=True), filename)
        code = compile(cell, filename, "exec")
        if number < len(cells) - 1:
            exec(code, namespace)
            continue
        before = take_snapshot(namespace)
        error = None
        try:
            exec(code, namespace)
        except Exception as problem:
            error = problem
        return check(namespace, source=cell, error=error, before=before, filename=filename, **options)
    raise ValueError("no cell")


def flags(report: Report, rule: str) -> list[tuple[str, int | None]]:
    """Return the subjects and lines of a rule's findings, in the order of the report."""
    assert report.failures == ()
    return [(finding.subject, finding.line) for finding in report.findings if finding.rule == rule]
