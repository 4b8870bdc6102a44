"""What a watch cannot see as it would have run: compiled code, which torch runs uncompiled under a dispatch mode."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import Any

_MARK = "_torchdynamo_orig_callable"
"""What `torch.compile` leaves on a function (seen in torch 2.4 to 2.13)."""


def compiled_names(variables: Mapping[str, Any], read: Collection[str]) -> Iterator[str]:
    """Yield the names among those that a cell reads whose functions or modules are compiled."""
    if "torch._dynamo" not in sys.modules:
        return
    for name in sorted(read):
        value = variables.get(name)
        kind = type(value)
        is_module = kind.__name__ == "OptimizedModule" and kind.__module__.startswith("torch._dynamo")
        if is_module or (kind is FunctionType and _MARK in value.__dict__):
            yield name


def unseen_words(names: list[str]) -> list[str]:
    """Say that compiled code ran uncompiled."""
    if not names:
        return []
    shown = " and ".join(f"`{name}`" for name in names[:3])
    return [f"the compilation of {shown}: torch runs it uncompiled while a cell is followed"]
