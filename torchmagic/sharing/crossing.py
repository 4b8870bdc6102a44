"""An array and a tensor over the same bytes, one of which is written."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.namespace.overlap import shares_bytes
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values, kind_word
from torchmagic.sharing.words import copy_there, doer, now_holds, other_side

_BLANK = frozenset({"empty", "empty_like", "new_empty"})
_CLEAN = frozenset({"zeros", "zeros_like", "new_zeros"})


def judge_crossing(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield a verdict for the first array and tensor of a group that share what a write changed after they met."""
    users = [h for h in holders if h.place.root not in timeline.loop_variables]
    arrays = [holder for holder in users if holder.seen.kind == "array"]
    tensors = [holder for holder in users if holder.seen.kind == "tensor"]
    for array in arrays:
        for tensor in tensors:
            if (array.is_machinery and tensor.is_machinery) or not shares_bytes(array.seen, tensor.seen):
                continue
            array_is_newer = timeline.is_newer(array, tensor) or _is_parameter(tensor)
            newer, older = (array, tensor) if array_is_newer else (tensor, array)
            change = _written_since(timeline, newer, older, changes)
            if change is not None:
                yield _verdict(timeline, newer, older, change, holders)
                return


def note_crossing(holders: list[Holder]) -> Iterator[Sharing]:
    """Yield a note about an array and a tensor that share memory nobody has written since."""
    users = [holder for holder in holders if not holder.is_machinery]
    array = next((holder for holder in users if holder.seen.kind == "array"), None)
    tensor = next((holder for holder in users if holder.seen.kind == "tensor"), None)
    if array is not None and tensor is not None and shares_bytes(array.seen, tensor.seen):
        yield Sharing(
            subject=tensor.text,
            message=f"`{tensor.text}`: the same memory as the array `{array.text}`; a write in place changes both",
            line=None,
            others=(array.text,),
            level="note",
            topic=(tensor.container or tensor.place).text,
        )


def _written_since(timeline: Timeline, newer: Holder, older: Holder, changes: list[Change]) -> Change | None:
    """Return a write that comes after the sharing, unless one side is there to be filled through the other."""
    capture, first = timeline.capture_of(newer), timeline.capture_of(older)
    if first is not None and is_blank(first.write.value):
        return None
    clean = first is not None and is_blank(first.write.value, _CLEAN)
    for change in changes:
        if change.kind != "write" or not (change.touches(newer) or change.touches(older)):
            continue
        if not timeline.follows(change, capture) and not _made_inside(change, capture):
            continue
        reader = older if change.names(newer) else newer
        readings = timeline.reads(reader)
        if any(timeline.in_one_loop(change, step, capture) and step is not change.step for step in readings):
            continue  # a buffer that each pass of a loop fills, and a view of it that the pass reads
        if clean and set(readings) == set(timeline.reads_after(reader, [change])):
            continue  # zeros to be filled, looked at when they are
        if (capture is None or older.is_machinery) and not timeline.reads_after(reader, [change]):
            continue
        return change
    return None


def _is_parameter(holder: Holder) -> bool:
    """Tell whether a tensor is a module's own parameter, under whatever name: what shares its memory came later."""
    return any(place.role == "parameter" for place in holder.seen.places)


def _made_inside(change: Change, capture: Capture | None) -> bool:
    """Tell whether the call that made the sharing went on to write what it shares: a transform that works in place."""
    if capture is None or isinstance(change.step.scope.node, ast.Module):
        return False
    return any(capture.outer in context.steps for context in change.contexts)


def is_blank(value: ast.expr | None, makers: frozenset[str] = _BLANK) -> bool:
    """Tell whether memory was made without values of its own, to be filled."""
    function = value.func if isinstance(value, ast.Call) else None
    return isinstance(function, ast.Attribute) and function.attr in makers


def _verdict(timeline: Timeline, newer: Holder, older: Holder, change: Change, group: list[Holder]) -> Sharing:
    capture = timeline.capture_of(newer)
    fix, line = None, change.line
    if capture is not None:
        step, value = timeline.maker(capture)
        line = timeline.line_of(step)
        fix = copied_value(timeline, step, value, newer.seen, group)
    new, old = kind_word(newer.seen), kind_word(older.seen)
    other = other_side(change, newer, older)
    return Sharing(
        subject=newer.text,
        message=f"`{newer.text}`: the {new} and the {old} `{older.text}` are the same memory; "
        f"{doer(change)} writes it{now_holds(other, change, timeline)}; "
        f"{copy_there(capture, newer, 'make one a copy')}",
        line=line,
        others=(older.text,),
        fix=fix,
        evidence={"written_on_line": change.line, "first_values": first_values(other.seen)},
        topic=(newer.container or newer.place).text,
    )
