"""How a write is told of: the statement that made it, and what the holder that did not write contains now."""

from __future__ import annotations

import ast
import math
from typing import Any

from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.pairs import speaks_of
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import at_line
from torchmagic.source import ref_of
from torchmagic.source.edits import first_words

_LONGEST_CODE = 40
_SIMPLE = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Expr, ast.expr)
_MOST_VALUES, _MOST_ROWS = 3, 2


def doer(change: Change) -> str:
    """Name the statement of a change: "line 3 (`a[0] = 1`)", "line 7 (`opt.step()` in `train`)"."""
    scope, node = change.step.scope, change.node
    inside = "" if isinstance(scope.node, ast.Module) or not scope.name else f" in `{scope.name}`"
    code = first_words(scope.unit.source, node, _LONGEST_CODE) if isinstance(node, _SIMPLE) else ""
    if not code or "`" in code:  # a quote would end the code in the message
        return f"{at_line(change.line)}{inside}"
    return f"{at_line(change.line)} (`{code}`{inside})"


def other_side(change: Change, new: Holder, old: Holder) -> Holder:
    """Return the one of two holders whose name the change did not write by."""
    return old if speaks_of(change, new) and not speaks_of(change, old) else new


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


def starting(entry: Holder) -> str:
    """Say what each of several entries contains that are one, or nothing: ", and each now is [3, 3]"."""
    said = contents(plain(entry.seen.obj), "each").replace("`", "")
    return f", and {said}" if said else ""


def copy_there(capture: Capture | None, holder: Holder, advice: str) -> str:
    """Return the advice, with the place to follow it when an earlier cell made what is shared."""
    return advice if capture is not None else f"{advice} in the cell that makes `{holder.place.root}`"


def _written_part(holder: Holder, change: Change, timeline: Timeline) -> tuple[Any, str]:
    """Return what was written of a holder, when the text tells the place and it is the same for both; else all."""
    obj, node = plain(holder.seen.obj), change.node
    target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
    if not isinstance(target, ast.Subscript) or not isinstance(change.step.scope.node, ast.Module):
        return obj, holder.text
    if (ref := ref_of(target.value)) is not None:
        try:
            if tuple(timeline.facts.value(ref).shape) == tuple(obj.shape):
                code = ast.unparse(target.slice).removeprefix("(").removesuffix(")")
                return obj[_index(target.slice)], f"{holder.text}[{code}]"
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
    if 0 in obj.shape:
        return "", path, True
    while len(obj.shape) > 2:
        obj, path = obj[0], f"{path}[0]"
    if not len(obj.shape):
        return _spell(obj.item()), path, True
    if len(obj.shape) == 1:
        return _row(obj), path, len(obj) <= _MOST_VALUES
    cut = len(obj) > _MOST_ROWS
    rows = [_row(row) for row in obj[: 1 if cut else _MOST_ROWS]]
    whole = not cut and obj.shape[1] <= _MOST_VALUES
    return f"[{', '.join(rows)}{', ...' if cut else ''}]", path, whole


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
