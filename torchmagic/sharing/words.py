"""How a write is told of: the statement that made it, and what the holder that did not write contains now."""

from __future__ import annotations

import ast
import math
from typing import Any

from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import at_line
from torchmagic.source.edits import spelled

_LONGEST_CODE = 40
_MOST_VALUES, _MOST_ROWS = 3, 2


def doer(change: Change) -> str:
    """Name the statement of a change: "line 3 (`a[0] = 1`)", "line 7 (`opt.step()` in `train`)"."""
    code = _code(change)
    scope = change.step.scope
    inside = "" if isinstance(scope.node, ast.Module) or not scope.name else f" in `{scope.name}`"
    return f"{at_line(change.line)} (`{code}`{inside})" if code else f"{at_line(change.line)}{inside}"


def _code(change: Change) -> str:
    node = change.node
    whole = spelled(change.step.scope.unit.source, node)
    if "\n" not in whole and len(whole) <= _LONGEST_CODE:
        return _without_quotes(whole)
    if isinstance(node, ast.AugAssign):
        short = f"{ast.unparse(ast.AugAssign(node.target, node.op, ast.Constant(...)))}"
    elif isinstance(node, ast.Assign):
        short = f"{ast.unparse(node.targets[0])} = ..."
    elif isinstance(node, ast.Call):
        short = f"{ast.unparse(node.func)}(...)"
    else:
        return ""
    return _without_quotes(short) if len(short) <= _LONGEST_CODE else ""


def _without_quotes(code: str) -> str:
    return "" if "`" in code else code  # it would end the code in the message


def other_side(change: Change, new: Holder, old: Holder) -> Holder:
    """Return the one of two holders by whose path the change did not write."""
    return old if change.names(new) and not change.names(old) else new


def now_holds(holder: Holder, change: Change, timeline: Timeline) -> str:
    """Say what a holder contains since a change, or nothing: ", and `t[0]` now is 1.0"."""
    obj, path = _written_part(holder, change, timeline)
    said = contents(obj, path)
    return f", and {said}" if said else ""


def contents(obj: Any, path: str) -> str:
    """Say the first values of a tensor or array, or nothing: "`a` now starts [0, 1, 2, ...]"."""
    try:
        text, path, whole = _first(obj, path)
    except Exception:
        return ""  # it holds none that Python can show
    return f"`{path}` now {'is' if whole else 'starts'} {text}" if text else ""


def copy_there(capture: Capture | None, holder: Holder, advice: str) -> str:
    """Return the advice, with the place to follow it when an earlier cell made what is shared."""
    return advice if capture is not None else f"{advice} in the cell that makes `{holder.place.root}`"


def _written_part(holder: Holder, change: Change, timeline: Timeline) -> tuple[Any, str]:
    """Return what was written of a holder, when the text tells the place and it is the same for both; else all."""
    obj, node = plain(holder.seen.obj), change.node
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if isinstance(target, ast.Subscript) and isinstance(change.step.scope.node, ast.Module):
        written = timeline.facts.value_of(target.value)
        try:
            if tuple(written.shape) == tuple(obj.shape):
                code = ast.unparse(target.slice)
                return obj[_index(target.slice)], f"{holder.text}[{code.removeprefix('(').removesuffix(')')}]"
        except Exception:
            return obj, holder.text
    return obj, holder.text


def plain(obj: Any) -> Any:
    """Return a tensor without its history, and an array as it is."""
    return obj.detach() if hasattr(type(obj), "detach") else obj


def _index(node: ast.expr) -> Any:
    """Return the index that an expression of literal integers and slices writes; raises ValueError for others."""
    if isinstance(node, ast.Tuple):
        return tuple(map(_index, node.elts))
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else _index(part) for part in parts))
    value = ast.literal_eval(node)
    if type(value) is not int and value is not ...:
        raise ValueError(value)
    return value


def _first(obj: Any, path: str) -> tuple[str, str, bool]:
    """Return the first values as text, the path of what they are of, and whether they are all of it."""
    while len(obj.shape) > 2:
        obj, path = obj[0], f"{path}[0]"
    if not len(obj.shape):
        return _spell(obj.item()), path, True
    if len(obj.shape) == 1:
        return _row(obj), path, len(obj) <= _MOST_VALUES
    rows = [_row(row) for row in obj[:_MOST_ROWS]]
    whole = len(obj) <= _MOST_ROWS and obj.shape[1] <= _MOST_VALUES
    return f"[{', '.join(rows)}{', ...' if len(obj) > _MOST_ROWS else ''}]", path, whole


def _row(row: Any) -> str:
    values = ", ".join(map(_spell, row[:_MOST_VALUES].tolist()))
    return f"[{values}{', ...' if len(row) > _MOST_VALUES else ''}]"


def _spell(value: Any) -> str:
    if type(value) is float:
        return repr(round(value, 4) if abs(value) >= 0.001 or not math.isfinite(value) else float(f"{value:.2g}"))
    if type(value) is complex:
        return f"{_spell(value.real)}{'' if _spell(value.imag).startswith('-') else '+'}{_spell(value.imag)}j"
    if type(value) not in (bool, int):
        raise TypeError(type(value))
    return repr(value)
