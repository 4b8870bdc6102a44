"""The line that keeps history, rewritten to keep the number or the detached tensor."""

from __future__ import annotations

import ast

from torchmagic.checking.facts import Facts
from torchmagic.findings import Fix
from torchmagic.history.held import Held
from torchmagic.source import ANY, SourceText, ref_of
from torchmagic.source.edits import replace_all, spelled
from torchmagic.source.tensor_use import serves_as_tensor


def release(held: Held, facts: Facts) -> str:
    """Return the call that lets go of the history: `.item()` for numbers that serve as numbers, else `.detach()`."""
    number = held.accumulation.shape in ("sum", "container") and all(seen.obj.numel() == 1 for seen in held.tensors)
    serves = facts.program is not None and serves_as_tensor(held.accumulation.write, facts.program)
    return ".item()" if number and not serves else ".detach()"


def history_fix(held: Held, facts: Facts, *, evaluating: bool) -> Fix | None:
    """Return the line with `.item()` or `.detach()` added, where the line alone decides what is kept."""
    write, source = held.accumulation.write, facts.source
    node, value = write.step.node, write.value
    if source is None or value is None or not write.step.scope.unit.is_cell or held.by_looking:
        return None
    if node.lineno != node.end_lineno or not isinstance(node, (ast.Assign, ast.AugAssign, ast.Expr)):
        return None
    if write.position is not None or not _holds_directly(held) or any(key is ANY for _, key in write.target.steps):
        return None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Add) and ref_of(value.left) == write.target:
        value = value.right  # total = total + loss: the new part is what loses its history
    call = release(held, facts)
    caveat = ""
    if evaluating:
        caveat = "Under `torch.no_grad()` around the loop nothing is recorded in the first place."
    elif call == ".detach()" and held.accumulation.shape in ("state", "sum"):
        caveat = "Gradients no longer reach the steps before."
    return _rewrite(value, call, source, caveat)


def _holds_directly(held: Held) -> bool:
    """Tell whether the tensors themselves, not something around them, are what the write keeps."""
    depth = 1 if held.accumulation.shape == "container" or held.accumulation.of_entry else 0
    return all(
        any(place is held.holder or (depth and place.parent is held.holder) for place in seen.places)
        for seen in held.tensors
    )


def _rewrite(value: ast.expr, call: str, source: SourceText, caveat: str) -> Fix | None:
    if isinstance(value, (ast.List, ast.Tuple, ast.Dict, ast.ListComp, ast.DictComp)):
        return None
    simple = isinstance(value, (ast.Name, ast.Attribute, ast.Call, ast.Subscript))
    expression = spelled(source, value)
    text = replace_all(source, value.lineno, {value: f"{expression if simple else f'({expression})'}{call}"})
    return Fix(text, caveat) if text is not None else None
