"""The line that keeps history, rewritten to keep the number or the detached tensor."""

from __future__ import annotations

import ast

from torchmagic.checking.facts import Facts
from torchmagic.findings import Fix
from torchmagic.history.held import Held
from torchmagic.source import ANY, ref_of
from torchmagic.source.tensor_use import serves_as_tensor


def is_number(held: Held) -> bool:
    """Tell whether what is held are single numbers, kept in a sum or a list."""
    return held.accumulation.shape in ("sum", "container") and all(seen.obj.numel() == 1 for seen in held.tensors)


def history_fix(held: Held, facts: Facts) -> Fix | None:
    """Return the line with `.item()` or `.detach()` added, where the line alone decides what is kept."""
    write, source, program = held.accumulation.write, facts.source, facts.program
    node, value = write.step.node, write.value
    if source is None or program is None or value is None or not write.step.scope.unit.is_cell:
        return None
    if node.lineno != node.end_lineno or not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
        return None
    if write.position is not None or not _holds_directly(held) or any(key is ANY for _, key in write.target.steps):
        return None
    call = ".item()" if is_number(held) and not serves_as_tensor(write, program) else ".detach()"
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and ref_of(value.left) == write.target:
        value = value.right  # total = total + loss: the new part is what loses its history
    return _rewrite(node, value, call, source.text)


def _holds_directly(held: Held) -> bool:
    """Tell whether the tensors themselves, not something around them, are what the write keeps."""
    depth = 1 if held.accumulation.shape == "container" or held.accumulation.of_entry else 0
    return all(
        any(place is held.holder or (depth and place.parent is held.holder) for place in seen.places)
        for seen in held.tensors
    )


def _rewrite(node: ast.stmt, value: ast.expr, call: str, text: str) -> Fix | None:
    line, expression = ast.get_source_segment(text, node), ast.get_source_segment(text, value)
    literal = (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)
    if line is None or expression is None or isinstance(value, literal):
        return None
    simple = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    start = len(text.splitlines()[node.lineno - 1].encode()[node.col_offset : value.col_offset].decode())
    kept = f"{expression}{call}" if simple else f"({expression}){call}"
    return Fix(line[:start] + kept + line[start + len(expression) :])
