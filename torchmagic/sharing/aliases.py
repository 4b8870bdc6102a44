"""Two tensors, or two arrays, that look independent and are not: backups by assignment, shallow copies, snapshots."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchmagic.namespace import Place
from torchmagic.namespace.overlap import layout_key, shares_bytes
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value, deep_copied
from torchmagic.sharing.holders import Capture, Holder, reaches
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, at_line, first_values, kind_word, now_starts
from torchmagic.source import Ref
from torchmagic.source.memory_paths import last_bind
from torchmagic.source.order import may_follow
from torchmagic.source.writes import is_inplace_name

KEPT_WORDS = frozenset(
    {
        "old", "prev", "previous", "before", "initial", "backup", "saved", "snapshot", "best", "orig", "original", "start",
        "copy", "copied", "past", "frozen", "reference", "last",
    }
)  # fmt: skip
"""Words in a name that say the value is meant to stay as it is."""

_MOST_USERS = 16


def judge_edits(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield the first verdict about a function that edits what it hands out."""
    yield from _first(timeline, holders, changes, (_edited_on_the_way,))


def judge_aliases(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield the first verdict about two holders of one library's memory."""
    yield from _first(timeline, holders, changes, (_taken_twice, _shallow_copy, _second_name))


def _first(
    timeline: Timeline, holders: list[Holder], changes: list[Change], judges: tuple[_Judge, ...]
) -> Iterator[Sharing]:
    users = [h for h in holders if not h.is_machinery and h.place.root not in timeline.loop_variables][:_MOST_USERS]
    for judge in judges:
        for one, other in itertools.permutations(users, 2):
            found = judge(_Pair(timeline, one, other, changes, holders)) if shares_bytes(one.seen, other.seen) else None
            if found is not None:
                yield found
                return


@dataclass(frozen=True)
class _Pair:
    """Two holders that share bytes, and what is known about their group."""

    timeline: Timeline
    new: Holder
    old: Holder
    changes: list[Change]
    group: list[Holder]

    @property
    def writes(self) -> list[Change]:
        return [change for change in self.changes if change.kind == "write"]


_Judge = Callable[[_Pair], "Sharing | None"]


def words_of(name: str) -> set[str]:
    """Return the words of a name in snake or camel case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}


def _edited_on_the_way(pair: _Pair) -> Sharing | None:
    """Judge a function that edits what is stored and hands it out: a data set whose samples change when they are read."""
    timeline, new, stored = pair.timeline, pair.new, pair.old
    capture = timeline.capture_of(new)
    if capture is None or new.place.root == stored.place.root or not timeline.is_newer(new, stored):
        return None
    first = timeline.capture_of(stored)
    for change in pair.writes:
        if first is not None and any(first.step in context.steps for context in change.contexts):
            continue  # handed out by the same function
        scope = change.step.scope
        if isinstance(scope.node, ast.Module) or change.target is None or is_inplace_name(scope.name):
            continue
        if scope.class_name is not None and scope.parameters[:1] == [change.target.root]:
            continue  # an object that updates its own state says so
        if (change.fills or _is_store(change)) and scope.name != "__getitem__":
            continue
        inside = any(capture.step in context.steps for context in change.contexts)
        if inside and change.names(stored) and shares_bytes(new.seen, stored.seen):
            bound = last_bind(timeline.program, change.target.root, scope, change.step)
            step = bound.step if bound is not None else change.step
            fix = copied_value(timeline, step, bound.value if bound is not None else None, stored.seen, pair.group)
            return Sharing(
                subject=new.text,
                message=f"`{new.text}`: the same memory as `{stored.text}`, which {at_line(change.line)} edits in place each "
                "time it is read; edit a copy",
                line=timeline.line_of(step),
                others=(stored.text,),
                fix=fix,
                evidence={"written_on_line": change.line, "first_values": first_values(stored.seen)},
            )
    return None


def _is_store(change: Change) -> bool:
    return isinstance(change.step.node, ast.Assign)


def _taken_twice(pair: _Pair) -> Sharing | None:
    """Judge two values that were taken at different times from memory that changed in between."""
    timeline, first, second = pair.timeline, pair.new, pair.old
    one, two = timeline.capture_of(first), timeline.capture_of(second)
    if one is None or two is None or one.write is two.write or first.place.root == second.place.root:
        return None
    if layout_key(first.seen) != layout_key(second.seen):
        return None
    if any(_is_door(change, first, one, two) or _is_door(change, second, one, two) for change in pair.changes):
        return None
    if timeline.is_alias(one) == Ref(second.place.root) or timeline.is_alias(two) == Ref(first.place.root):
        return None
    for change in pair.changes:
        if timeline.follows(change, one) and _precedes(change, two):
            return _verdict(pair, one, change, "was taken before and after")
    return None


def _is_door(change: Change, holder: Holder, *captures: Capture) -> bool:
    """Tell whether a holder is there to write the memory through, and not merely bound to what a call returns."""
    returned = any(capture.step in context.steps for capture in captures for context in change.contexts)
    return _speaks_of(change, holder) and not (returned and not isinstance(change.step.scope.node, ast.Module))


def _precedes(change: Change, capture: Capture) -> bool:
    return any(
        capture.step in before.steps or may_follow(after, before)
        for before in change.contexts
        for after in capture.contexts
    )


def _shallow_copy(pair: _Pair) -> Sharing | None:
    """Judge a container or object that was copied without what is in it."""
    timeline, new, old = pair.timeline, pair.new, pair.old
    capture = timeline.capture_of(new)
    if new.place.parent is None or old.place.parent is None or capture is None or not timeline.is_newer(new, old):
        return None
    same_slot = new.place.key == old.place.key and type(new.place.owner) is type(old.place.owner)
    if not same_slot or new.place.owner is old.place.owner or new.place.root == old.place.root:
        return None
    value = capture.write.value
    copies = value is not None and not isinstance(value, ast.Subscript)
    steps = [step for context in capture.contexts for step in context.steps]
    if not copies or not any(timeline.mentions(step, old.place.root) for step in steps):
        return None
    for change in pair.writes:
        if change.names(new) != change.names(old) and timeline.follows(change, capture):
            step, made = timeline.maker(capture)
            fix = copied_value(timeline, step, made, new.seen, pair.group) or deep_copied(timeline, step, made)
            return Sharing(
                subject=new.text,
                message=f"`{new.text}`: the same {kind_word(new.seen)} as `{old.text}`, which the copy did not copy; "
                f"{at_line(change.line)} writes both{now_starts(new.seen, new.text)}; copy the {kind_word(new.seen)} too",
                line=timeline.line_of(step),
                others=(old.text,),
                fix=fix,
                evidence={"written_on_line": change.line, "first_values": first_values(new.seen)},
                topic=(new.container or new.place).text,
            )
    return None


def _second_name(pair: _Pair) -> Sharing | None:
    """Judge a variable that was made a second name of a tensor, and looks like a second tensor."""
    timeline, new, old = pair.timeline, pair.new, pair.old
    capture, first = timeline.capture_of(new), timeline.capture_of(old)
    if capture is None or capture.write.kind != "bind":
        return None
    if first is not None and first.write is not capture.write and first.write.value is capture.write.value:
        change = next((c for c in pair.writes if timeline.follows(c, capture)), None)
        return None if change is None else _verdict(pair, capture, change, "got one value with")
    if capture.write.target != Ref(new.place.root):
        return None
    source = timeline.source_of(capture)
    below = tuple(_as_step(link) for link in new.place.chain[1:])
    if source is None or not timeline.is_newer(new, old) or not reaches(source + below, old.place):
        return None
    is_plain = timeline.is_alias(capture) is not None and len(old.place.chain) == len(new.place.chain)
    is_whole = isinstance(capture.write.value, ast.Subscript) and isinstance(capture.write.value.slice, ast.Slice)
    for change in pair.writes:
        if not timeline.follows(change, capture):
            continue
        reader = old if _speaks_of(change, new) else new
        readings = [step for step in timeline.reads_after(reader, [change]) if not _writes_it(pair.writes, step)]
        compared = any(timeline.mentions(step, _name(new)) and timeline.mentions(step, _name(old)) for step in readings)
        kept = bool(words_of(_name(new)) & KEPT_WORDS) and reader is new
        unread = is_plain and reader is new and not timeline.reads(new)
        same = layout_key(new.seen) == layout_key(old.seen)
        if same and (
            ((is_plain or is_whole and old.is_variable) and (readings or unread)) or (kept and readings) or compared
        ):
            return _verdict(pair, capture, change, "is another name of")
    return None


def _as_step(link: Place) -> tuple[str, object]:
    return ("item" if link.step.startswith("[") else "attr", link.key)


def _writes_it(changes: list[Change], step: object) -> bool:
    return any(change.step is step for change in changes)


def _speaks_of(change: Change, holder: Holder) -> bool:
    """Tell whether the text of a write begins at the holder's own variable."""
    if change.target is None or not isinstance(change.step.scope.node, ast.Module):
        return change.names(holder)
    return reaches(change.target, holder.place)


def _name(holder: Holder) -> str:
    return str(holder.place.key) if holder.place.role in ("name", "attribute") else holder.place.root


def _verdict(pair: _Pair, capture: Capture, change: Change, relation: str) -> Sharing:
    timeline, new, old = pair.timeline, pair.new, pair.old
    step, value = timeline.maker(capture)
    word = kind_word(new.seen)
    facts = {
        "was taken before and after": f"taken before {at_line(change.line)} writes it, and `{old.text}` after; both are one "
        f"{word}{now_starts(new.seen, new.text)}; take a copy",
        "got one value with": f"`{old.text}` is the same {word}, and {at_line(change.line)} writes both; make two",
        "is another name of": f"another name for `{old.text}`, so {at_line(change.line)} writes both"
        f"{now_starts(new.seen, new.text)}; keep a copy",
    }
    fix = None
    if relation != "got one value with":
        fix = copied_value(timeline, step, value, new.seen, pair.group)
        if fix is None and new.place.parent is not None and isinstance(value, (ast.Name, ast.Call)):
            fix = deep_copied(timeline, step, value)
    return Sharing(
        subject=new.text,
        message=f"`{new.text}`: {facts[relation]}",
        line=timeline.line_of(step),
        others=(old.text,),
        fix=fix,
        evidence={"written_on_line": change.line, "first_values": first_values(new.seen)},
        topic=(new.container or new.place).text,
    )
