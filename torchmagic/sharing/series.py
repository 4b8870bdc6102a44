"""A list, deque or dict whose entries are the same memory again and again."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from torchmagic.namespace import Place, Seen
from torchmagic.namespace.overlap import layout_key
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import cloned_state, copied_value, repeated, repeats_one_value
from torchmagic.sharing.hidden_changes import changes_behind, writes_between_drawing
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values, kind_word
from torchmagic.sharing.words import doer, starting
from torchmagic.source.order import may_follow, shared_loops


class _Series(NamedTuple):
    """Entries of one container that are the same elements, and the statement that put them there."""

    container: Place
    entries: list[Holder]
    capture: Capture


def judge_series(timeline: Timeline, holders: list[Holder]) -> Iterator[Sharing]:
    """Yield one verdict for each container that holds the same elements several times while they are written."""
    for container, entries in _buckets(holders):
        capture = _capture(timeline, container, entries[0])
        if capture is None:
            continue
        series = _Series(container, entries, capture)
        changes = changes_behind(timeline, holders, series.entries, capture)
        if repeats_one_value(capture.write.value):
            change = _written_through(timeline, series, changes)
            if change is not None:
                yield _repeated(timeline, series, change)
        elif (change := _written_between(timeline, series, changes)) is not None:
            yield _collected(timeline, series, change, holders)


def _buckets(holders: list[Holder]) -> Iterator[tuple[Place, list[Holder]]]:
    """Yield the entries of one container, or of the records in it, that are the very same elements, two or more."""
    table: dict[tuple[int, object], dict[str, Holder]] = defaultdict(dict)
    for holder in holders:
        first = next((link for link in holder.place.chain if link.role == "item"), None)
        if first is not None and not holder.is_machinery:
            table[id(first.owner), layout_key(holder.seen)][holder.text] = holder
    for entries in table.values():
        if len(entries) > 1 and (container := _common(list(entries.values()))) is not None:
            yield container, list(entries.values())


def _common(entries: list[Holder]) -> Place | None:
    """Return the innermost place that all entries lie below; the objects it leads to must be held as items."""
    chains = [entry.place.chain for entry in entries]
    shared = list(itertools.takewhile(_is_one, zip(*chains, strict=False)))
    below = chains[0][len(shared)] if len(shared) < len(chains[0]) else None
    return shared[-1][0] if shared and below is not None and below.role == "item" else None


def _is_one(links: tuple[Place, ...]) -> bool:
    return len({link.step for link in links}) == 1


def _capture(timeline: Timeline, container: Place, entry: Holder) -> Capture | None:
    """Return the statement that put an entry into its container, or what is the entry into the record that is there."""
    capture = timeline.capture_of(entry)
    chain = entry.place.chain
    item = chain[len(container.chain)] if len(chain) > len(container.chain) else entry.place
    if item is entry.place or (capture is not None and capture.kept):
        return capture
    return timeline.capture_of(Holder(entry.seen, item)) or capture


def count_of(entries: list[Holder]) -> int:
    """Return how many entries there are, those beyond the walk's limit included."""
    objects: dict[int, Seen] = {id(entry.seen.obj): entry.seen for entry in entries}
    return len(entries) + sum(seen.more_places for seen in objects.values())


def _written_through(timeline: Timeline, series: _Series, changes: list[Change]) -> Change | None:
    """Return a write to one of the entries by its own path."""
    for change in changes:
        if (
            change.kind == "write"
            and any(change.names(entry) for entry in series.entries)
            and timeline.follows(change, series.capture)
        ):
            return change
    return None


def _written_between(timeline: Timeline, series: _Series, changes: list[Change]) -> Change | None:
    """Return a change that runs between the collecting of one entry and of the next."""
    captured = [_capture(timeline, series.container, entry) for entry in series.entries[:8]]
    captures = {id(capture.write): capture for capture in captured if capture is not None}
    for change in changes:
        for first in captures.values():
            together = any(shared_loops(a, b) for a in change.contexts for b in first.contexts)
            if first.kept and together and timeline.follows(change, first, kept=True):
                return change
            if writes_between_drawing(timeline, change, first):
                return change
            for second in captures.values():
                if second.write is not first.write and _between(change, first, second):
                    return change
        for first in captures.values():
            if len(first.contexts) > 1 and _between(change, first, first):
                return change
    return None


def _between(change: Change, first: Capture, second: Capture) -> bool:
    return any(
        may_follow(middle, before) and (may_follow(after, middle) or after.steps == middle.steps)
        for middle in change.contexts
        for before in first.contexts
        for after in second.contexts
        if before is not after
    )


def _repeated(timeline: Timeline, series: _Series, change: Change) -> Sharing:
    container, entries, capture = series
    count, word = count_of(entries), kind_word(entries[0].seen)
    line = timeline.line_of(capture.step)
    return Sharing(
        subject=container.text,
        message=f"`{container.text}`: its {count} entries are one {word}, so {doer(change)} writes all of "
        f"them{starting(entries[0])}; make a {word} for each",
        line=line,
        others=tuple(entry.text for entry in entries[:4]),
        fix=repeated(capture.step, capture.write.value),
        evidence={"entries": count, "written_on_line": change.line, "first_values": first_values(entries[0].seen)},
    )


def _collected(timeline: Timeline, series: _Series, change: Change, holders: list[Holder]) -> Sharing:
    container, entries, capture = series
    count, word = count_of(entries), kind_word(entries[0].seen)
    step, value = timeline.maker(capture) if capture.write.kind == "bind" else (capture.step, capture.write.value)
    fix = cloned_state(timeline, step, value) or copied_value(timeline, step, value, entries[0].seen, holders)
    values = first_values(entries[0].seen)
    others = tuple(entry.text for entry in entries[:3])
    owner = next((h.text for h in holders if not _lies_below(h.place, container)), None)
    return Sharing(
        subject=container.text,
        message=f"`{container.text}`: {count} entries are the same memory, which {doer(change)} changes in "
        f"place{starting(entries[0])}; store a copy",
        line=timeline.line_of(step),
        others=(*others, owner) if owner is not None else others,
        fix=fix,
        evidence={"entries": count, "written_on_line": change.line, "kind": word, "first_values": values},
    )


def _lies_below(place: Place, container: Place) -> bool:
    return any(link is container or link.text == container.text for link in place.chain)
