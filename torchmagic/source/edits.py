"""Change a few characters of the cell's text and leave the rest as it was typed."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import TypeVar

from torchmagic.source.text import SourceText

_Part = TypeVar("_Part", ast.expr, ast.stmt)


def spelled(source: SourceText, node: ast.AST) -> str:
    """Return an expression as it was typed; without its place in the text, as Python would print it."""
    return ast.get_source_segment(source.text, node) or ast.unparse(node)


def first_words(source: SourceText, node: ast.AST, most: int = 60) -> str:
    """Return an expression on one line, for a message."""
    text = " ".join(spelled(source, node).split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def add_after(source: SourceText, line: int, additions: Iterable[tuple[ast.expr, str]]) -> str | None:
    """Return an editor line, without its indentation, with a text added behind each of these expressions.

    None when an expression does not end on the line, or does not stand where its position says.
    """
    raw = source.line(line).encode()
    ends: list[tuple[int, bytes]] = []
    for node, addition in additions:
        if node.end_lineno != line or node.end_col_offset is None:
            return None
        if not raw[: node.end_col_offset].endswith(_last_token(node)):
            return None  # Python before 3.12 misplaces what stands inside an f-string
        ends.append((node.end_col_offset, addition.encode()))
    for end, addition_bytes in sorted(set(ends), reverse=True):
        raw = raw[:end] + addition_bytes + raw[end:]
    return raw.decode().strip()


def _last_token(node: ast.expr) -> bytes:
    if isinstance(node, ast.Name):
        return node.id.encode()
    if isinstance(node, ast.Attribute):
        return node.attr.encode()
    return {ast.Call: b")", ast.Subscript: b"]"}.get(type(node), b"")


def replace_all(source: SourceText, line: int, texts: Mapping[_Part, str]) -> str | None:
    """Return an editor line, without its indentation, in which parts are replaced, and what else is on it is kept.

    None if a part is not on the line.
    """
    raw = source.line(line).encode()
    for node in sorted(texts, key=lambda node: node.col_offset, reverse=True):
        if node.lineno != line or node.end_lineno != line or node.end_col_offset is None:
            return None
        if raw[node.col_offset : node.end_col_offset].decode(errors="replace") != spelled(source, node):
            return None
        raw = raw[: node.col_offset] + texts[node].encode() + raw[node.end_col_offset :]
    return raw.decode().strip() if texts else None
