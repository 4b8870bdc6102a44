"""Name the tensor whose dtype does not fit, and put a cast after it wherever the line names it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from torchmagic.checking.failing_line import FailingLine, Operand, failing_lines, top_level_name
from torchmagic.findings import Fix
from torchmagic.mismatch.failed_call import Part
from torchmagic.mismatch.refusal import Explained, Refusal
from torchmagic.mismatch.shape_words import shape_of
from torchmagic.source import ref_of
from torchmagic.source.edits import first_words, replace_all, spelled


def parts_in(failure: Refusal, node: ast.AST | None) -> Iterator[Part]:
    """Yield the tensors that an expression of the failing line names; of `x[0]` and `x.T` the value is `x`."""
    for operand in _operands_in(failure.here, node):
        if operand.kind == "tensor" and not operand.converted:
            path = top_level_name(failure.facts, operand.value)
            local = first_words(failure.source, operand.node)
            known = not path or failure.here.is_top_level or local.startswith(path)
            text = f"`{local}`" if known else f"`{local}` (your `{path}`)"
            yield Part(text, path, shape_of(operand.value) or (), operand.node, operand.value)


def only_one(parts: Iterator[Part]) -> Part | None:
    """Return the part when it is one; several spellings of one object are one."""
    found = {id(part.value): part for part in reversed(list(parts))}
    return next(iter(found.values())) if len(found) == 1 else None


def cast(failure: Refusal, part: Part, fact: str, call: str) -> Explained:
    """Explain by a fact, and advise a cast."""
    advice = failure.with_call(part, call) if part.node is not None else call
    local = str(ref) if (ref := ref_of(part.node)) is not None else ""
    path = part.path or _path_of_node(failure, part.node) or local
    named = Part(part.text, path, part.shape, part.node, part.value)
    return failure.explained(named, f"{fact}: `{advice}`", cast_fix(failure, [part], call))


def cast_fix(failure: Refusal, parts: list[Part], call: str) -> Fix | None:
    """Put a cast after every spelling of some tensors in the failing expression.

    When that line is not the cell's, after the argument of the cell's own line that is the same object.
    """
    values = {id(part.value) for part in parts}
    whole = failure.expressions[0]
    for line in failing_lines(failure.facts):
        if not line.frame.is_cell:
            continue
        inside = whole if line.frame is failure.here.frame else line.step.node
        nodes = [o.node for o in _operands_in(line, inside) if id(o.value) in values and not o.converted]
        if not nodes and line.frame is failure.here.frame:
            nodes = [part.node for part in parts if part.node is not None]
        source = line.step.scope.unit.source
        text = replace_all(source, line.frame.line, {node: f"{_grouped(source, node)}{call}" for node in nodes})
        return Fix(text) if text is not None else None
    return None


def _operands_in(line: FailingLine, node: ast.AST | None) -> list[Operand]:
    inside = {id(part) for part in ast.walk(node)} if node is not None else set()
    return [operand for operand in line.operands if id(operand.node) in inside]


def _path_of_node(failure: Refusal, node: ast.AST | None) -> str:
    operand = next((o for o in failure.here.operands if o.node is node and o.kind == "tensor"), None)
    return top_level_name(failure.facts, operand.value) if operand is not None else ""


def _grouped(source: Any, node: ast.expr) -> str:
    text = " ".join(spelled(source, node).split())
    return text if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call)) else f"({text})"
