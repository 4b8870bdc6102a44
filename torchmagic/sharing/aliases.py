"""Two tensors, or two arrays, that look independent and are not: backups by assignment, values taken twice."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.namespace import Place
from torchmagic.namespace.overlap import layout_key
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value, deep_copied
from torchmagic.sharing.holders import Capture, Holder, reaches
from torchmagic.sharing.intent import KEPT_WORDS, words_of
from torchmagic.sharing.origins import reads_from
from torchmagic.sharing.pairs import Pair, first_verdict, speaks_of
from torchmagic.sharing.shallow_parts import shallow_copy
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values, kind_word
from torchmagic.sharing.words import doer, now_holds, other_side
from torchmagic.source import Ref, Step
from torchmagic.source.memory_paths import memory_paths
from torchmagic.source.order import may_follow, shared_loops

TWICE = "was taken before and after"


def judge_aliases(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield the first verdict about two holders of one library's memory."""
    yield from first_verdict(timeline, holders, changes, (shallow_copy, _taken_twice, _second_name, _kept_whole))


def _taken_twice(pair: Pair) -> Sharing | None:
    """Judge two values that were taken at different times from memory that changed in between."""
    timeline, first, second = pair.timeline, pair.new, pair.old
    one, two = timeline.capture_of(first), timeline.capture_of(second)
    if one is None or two is None or one.write is two.write or first.place.root == second.place.root:
        return None
    if layout_key(first.seen) != layout_key(second.seen) or first.seen.kind != second.seen.kind:
        return None
    if first.place.owner is second.place.owner and first.place.key == second.place.key:
        return None  # two ways to one slot
    if any(_is_door(change, first, one) or _is_door(change, second, two) for change in pair.changes):
        return None
    if timeline.is_alias(two) == Ref(first.place.root):
        return None
    handed_on = timeline.is_alias(one) == Ref(second.place.root)
    if handed_on and not _is_carried(pair, one, two):
        return None
    picked = _is_picked(pair, two)
    for change in pair.changes:
        inside = any(two.outer in context.steps for context in change.contexts)
        if handed_on or picked:
            found = inside
        else:
            found = timeline.follows(change, one) and _precedes(change, two) and _is_missed(pair, one, change)
        if found:
            return _verdict(pair, one, change, TWICE)
    return None


def _is_picked(pair: Pair, two: Capture) -> bool:
    """Tell whether the value that was taken last was taken from the first: a view of it, or it out of many."""
    timeline, first, second = pair.timeline, pair.new, pair.old
    given = two.given or two.write
    spelled = Capture(given, two.contexts, two.kept)
    if _takes_from(timeline, spelled, Pair(timeline, second, first, pair.changes, pair.group)):
        return True
    return first.seen.obj is second.seen.obj and reads_from(timeline.program, given, first.place.root)


def _is_missed(pair: Pair, one: Capture, change: Change) -> bool:
    """Tell whether what was taken first is looked at after the change, for the value it had before, or not yet at all.

    A weight of a model has many names: only one that says so, or is compared with the other, stands for an old value.
    """
    timeline, first, second = pair.timeline, pair.new, pair.old
    readings = timeline.reads(first)
    if any(place.role == "parameter" for place in first.seen.places) and not words_of(_name(first)) & KEPT_WORDS:
        return any(timeline.mentions(step, _name(second)) for step in readings)
    return not readings or any(_is_late(timeline, step, change, one) for step in readings)


def _is_late(timeline: Timeline, reading: Step, change: Change, capture: Capture) -> bool:
    """Tell whether a statement reads what was taken before a change, and not what a later pass took anew."""
    for context in timeline.program.contexts(reading):
        for taken in capture.contexts:
            if shared_loops(context, taken) and reading.order < capture.outer.order:
                return True
            if any(may_follow(later, taken) and may_follow(context, later) for later in change.contexts):
                return True
    return False


def _is_carried(pair: Pair, one: Capture, two: Capture) -> bool:
    """Tell whether `state = next_state` ends a loop that reads the old state after it has got the next one."""
    if not set(one.outer.loops) & set(two.outer.loops):
        return False
    return any(
        step.scope is one.outer.scope and two.outer.order < step.order < one.outer.order
        for step in pair.timeline.reads(pair.new)
    )


def _is_door(change: Change, holder: Holder, capture: Capture) -> bool:
    """Tell whether a holder is there to write the memory through, and not merely bound to what a call returns."""
    returned = any(capture.outer in context.steps for context in change.contexts)
    return speaks_of(change, holder) and not (returned and not isinstance(change.step.scope.node, ast.Module))


def _precedes(change: Change, capture: Capture) -> bool:
    return any(
        capture.outer in before.steps or may_follow(after, before)
        for before in change.contexts
        for after in capture.contexts
    )


def _second_name(pair: Pair) -> Sharing | None:
    """Judge a variable or attribute that was made a second name of a tensor, and looks like a second tensor."""
    timeline, new, old = pair.timeline, pair.new, pair.old
    capture, first = timeline.capture_of(new), timeline.capture_of(old)
    if capture is None or capture.kept:
        return None
    if not _takes_from(timeline, capture, pair) or not timeline.is_newer(new, old):
        if first is not None and first.write is not capture.write and _is_one_value(first, capture):
            change = next((c for c in pair.writes if timeline.follows(c, capture)), None)
            return None if change is None else _verdict(pair, capture, change, "got one value with")
        return None
    is_plain = timeline.is_alias(capture) is not None and len(old.place.chain) == len(new.place.chain)
    is_whole = isinstance(capture.write.value, ast.Subscript) and isinstance(capture.write.value.slice, ast.Slice)
    is_name = capture.write.target == Ref(new.place.root)
    same = layout_key(new.seen) == layout_key(old.seen)
    for change in pair.writes:
        if not timeline.follows(change, capture):
            continue
        reader = old if speaks_of(change, new) else new
        through = [other for other in pair.writes if other.names(reader)]
        readings = [step for step in timeline.reads_after(reader, [change]) if not _writes_it(through, step)]
        compared = _name(new) != _name(old) and any(
            timeline.mentions(step, _name(new)) and timeline.mentions(step, _name(old)) for step in readings
        )
        kept = bool(words_of(_name(new)) & KEPT_WORDS) and reader is new
        unread = is_plain and reader is new and not timeline.reads(new)
        foreign = is_plain and reader is old and first is None and not change.fills
        if is_name and same and (is_plain or (is_whole and old.is_variable)) and (readings or unread or foreign):
            return _verdict(pair, capture, change, "is another name of")
        if ((kept and readings) or compared) and _same_elements(new, old):
            return _verdict(pair, capture, change, "is another name of")
    return None


def _is_one_value(one: Capture, two: Capture) -> bool:
    """Tell whether one statement gave two names one value: `a = b = torch.zeros(3)`."""
    return one.outer is two.outer and one.write.value is two.write.value


def _takes_from(timeline: Timeline, capture: Capture, pair: Pair) -> bool:
    """Tell whether a capture takes its memory from the other holder, by the text."""
    source = timeline.source_of(capture)
    if source is None:
        return False
    below = (
        tuple(_as_step(link) for link in pair.new.place.chain[1:])
        if capture.write.target == Ref(pair.new.place.root)
        else ()
    )
    paths = [source, *memory_paths(timeline.program, source, capture.step)]
    return any(reaches(path + below, pair.old.place) for path in paths)


def _same_elements(new: Holder, old: Holder) -> bool:
    """Tell whether two holders have the same elements, if in another shape."""
    one, other = new.seen.span, old.seen.span
    return one is not None and other is not None and (one.start, one.end) == (other.start, other.end)


def _kept_whole(pair: Pair) -> Sharing | None:
    """Judge `kept.append(x[:])`, which copies a list but not a tensor or array."""
    timeline, new, old = pair.timeline, pair.new, pair.old
    capture = timeline.capture_of(new)
    if capture is None or not capture.kept or not _is_whole_slice(capture.write.value):
        return None
    if layout_key(new.seen) != layout_key(old.seen) or new.container is None or old.container is not None:
        return None
    for change in pair.writes:
        if change.names(old) and not change.names(new) and timeline.follows(change, capture, kept=True):
            return _verdict(pair, capture, change, "is another name of")
    return None


def _is_whole_slice(value: ast.expr | None) -> bool:
    part = value.slice if isinstance(value, ast.Subscript) else None
    return isinstance(part, ast.Slice) and part.lower is None and part.upper is None and part.step is None


def _as_step(link: Place) -> tuple[str, object]:
    return ("item" if link.step.startswith("[") else "attr", link.key)


def _writes_it(changes: list[Change], step: object) -> bool:
    return any(change.step is step for change in changes)


def _name(holder: Holder) -> str:
    return str(holder.place.key) if holder.place.role in ("name", "attribute", "closure") else holder.place.root


def _verdict(pair: Pair, capture: Capture, change: Change, relation: str) -> Sharing:
    timeline, new, old = pair.timeline, pair.new, pair.old
    source = (
        timeline.capture_of(old) if timeline.is_alias(capture) == Ref(old.place.root) and relation == TWICE else capture
    )
    is_alias = relation != TWICE and timeline.is_alias(capture) is not None and capture.step.scope.unit.is_cell
    step, value = (capture.step, capture.write.value) if is_alias else timeline.maker(source or capture)
    word, line, other = kind_word(new.seen), doer(change), other_side(change, new, old)
    now = now_holds(other, change, timeline)
    said = {
        TWICE: f"taken before {line} writes it, and `{old.text}` after; both are one {word}{now}; take a copy",
        "got one value with": f"`{old.text}` is the same {word}, and {line} writes both{now}; make two",
        "is another name of": f"another name for `{old.text}`, so {line} writes both{now}; keep a copy",
    }
    fix = None
    if relation != "got one value with":
        fix = copied_value(timeline, step, value, new.seen, pair.group)
        if fix is None and new.place.parent is not None and isinstance(value, (ast.Name, ast.Call)):
            fix = deep_copied(timeline, step, value)
    return Sharing(
        subject=new.text,
        message=f"`{new.text}`: {said[relation]}",
        line=timeline.line_of(step),
        others=(old.text,),
        fix=fix,
        evidence={"written_on_line": change.line, "first_values": first_values(other.seen)},
        topic=(new.container or new.place).text,
    )
