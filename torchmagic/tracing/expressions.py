"""The text of an operation: the expression that a frame was running, and what stands where its operand does."""

from __future__ import annotations

import ast
import linecache
from functools import lru_cache
from types import CodeType
from typing import Final

from torchmagic.source.refs import bare_name, ref_of
from torchmagic.tracing.names import is_called
from torchmagic.tracing.sites import line_at, span

_LONGEST: Final = 60
_PACKAGES: Final = frozenset({"torch", "F", "nn", "np", "functional", "special", "linalg"})
_OPERATORS: Final = frozenset(
    {"add", "sub", "mul", "div", "true_divide", "pow", "mm", "bmm", "mv", "dot", "matmul", "remainder", "floor_divide"}
)
"""Operations that are written as operators, of which the operands stand left and right."""


def statement_at(code: CodeType, offset: int) -> ast.stmt | None:
    """Return the innermost statement that an instruction belongs to, from the file's text as it is known now."""
    tree = _tree("".join(linecache.getlines(code.co_filename)))
    line = line_at(code, offset)
    found: ast.stmt | None = None
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)] if tree is not None else []
    for node in statements:
        is_there = node.lineno <= line <= (node.end_lineno or 0)
        if is_there and (found is None or node.lineno >= found.lineno):
            found = node
    return found


def expression_at(code: CodeType, offset: int) -> ast.expr | ast.AugAssign | None:
    """Return the expression that an instruction evaluates, or `a /= b`, where Python tells (3.11 and later)."""
    statement, where = statement_at(code, offset), span(code, offset)
    if statement is None or where is None:
        return None
    if isinstance(statement, ast.AugAssign) and where[:2] == (statement.lineno, statement.col_offset):
        return statement
    ending = [
        node
        for node in ast.walk(statement)
        if isinstance(node, ast.expr) and (node.end_lineno, node.end_col_offset) == where[2:]
    ]
    exact = [node for node in ending if (node.lineno, node.col_offset) == where[:2]]
    # The call of a method on a line of its own starts, for Python, where the method's name does.
    calls = [node for node in ending if isinstance(node, ast.Call)]
    return (exact or calls or [None])[0]


def text_of(node: ast.expr | ast.AugAssign | None) -> str:
    """Return an expression as it is written; of a long one the function that it calls, or nothing."""
    text = ast.unparse(node) if node is not None else ""
    if len(text) > _LONGEST and isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute)):
        text = f"{ast.unparse(node.func)}(...)"
        if len(text) > _LONGEST:
            text = f"{bare_name(node.func)}(...)"
    return text if len(text) <= _LONGEST else ""


def operand_texts(node: ast.expr | ast.AugAssign | None, operation: str) -> list[str]:
    """Return what is written where an operation's operands stand, if the expression is that operation; else nothing."""
    if isinstance(node, ast.BinOp):
        return [text_of(node.left), text_of(node.right)] if operation.removesuffix("_") in _OPERATORS else []
    if isinstance(node, ast.AugAssign):
        return [text_of(node.target), text_of(node.value)] if operation.removesuffix("_") in _OPERATORS else []
    if not isinstance(node, ast.Call) or not is_called(operation, bare_name(node.func)):
        return []
    receiver: list[ast.expr] = []
    if isinstance(node.func, ast.Attribute):
        ref = ref_of(node.func.value)
        if ref is None or ref.last_name not in _PACKAGES:
            receiver = [node.func.value]
    given = [part for part in node.args if not (isinstance(part, ast.Constant) and isinstance(part.value, str))]
    return [text_of(part) for part in [*receiver, *given]]


@lru_cache(maxsize=16)
def _tree(text: str) -> ast.Module | None:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
