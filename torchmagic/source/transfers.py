"""Calls that bring a tensor or module to another device, as the text writes them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

_MOVES = frozenset({"cuda", "cpu", "xpu", "npu", "mps", "type_as", "to_empty"})
_DTYPES = frozenset(
    {
        "dtype", "float", "float16", "float32", "float64", "double", "half", "bfloat16", "int", "int8", "int16",
        "int32", "int64", "long", "short", "uint8", "bool", "complex64", "complex128",
    }
)  # fmt: skip


def is_transfer(node: ast.AST) -> bool:
    """Tell whether a node is a call that may move its receiver; `x.to(torch.float16)` changes the type alone."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if node.func.attr != "to":
        return node.func.attr in _MOVES
    if not node.args:
        return any(keyword.arg != "dtype" for keyword in node.keywords)
    first = node.args[0]
    return not (isinstance(first, ast.Attribute) and first.attr in _DTYPES)


def transfers(node: ast.AST) -> Iterator[ast.Call]:
    """Yield the transfers inside a node."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call) and is_transfer(part):
            yield part
