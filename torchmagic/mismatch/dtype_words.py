"""Dtypes in words, and the calls that bring one dtype into another."""

from __future__ import annotations

import sys
from typing import Any

_CASTS = {
    "float32": ".float()",
    "float64": ".double()",
    "float16": ".half()",
    "bfloat16": ".bfloat16()",
    "int64": ".long()",
    "int32": ".int()",
    "bool": ".bool()",
}

NAMES = {
    "Float": "float32", "Double": "float64", "Half": "float16", "BFloat16": "bfloat16", "Long": "int64",
    "Int": "int32", "Short": "int16", "Char": "int8", "Byte": "uint8", "Bool": "bool", "ComplexFloat": "complex64",
}  # fmt: skip
"""How torch's messages call the dtypes."""


def dtype_name(dtype: Any) -> str:
    """Return a dtype as people write it: `float32`."""
    return str(dtype).removeprefix("torch.")


def cast_to(dtype: Any) -> str:
    """Write the call that brings a tensor into a dtype."""
    name = dtype_name(dtype)
    return _CASTS.get(name, f".to(torch.{name})")


def is_whole(dtype: Any) -> bool:
    """Tell whether a dtype holds whole numbers only, booleans among them."""
    return not dtype.is_floating_point and not dtype.is_complex


def numpys(dtype: Any) -> str:
    """Add to a float64 where it comes from as a rule; to other dtypes nothing."""
    return " (numpy's default)" if dtype is sys.modules["torch"].float64 else ""
