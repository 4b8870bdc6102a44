"""`[[]] * n` and `dict.fromkeys(keys, [])`: one list under many entries, filled through one of them."""

from __future__ import annotations

import collections
from collections.abc import Iterator

from torchmagic.namespace import Namespace, Seen
from torchmagic.sharing.copies import repeated, repeats_one_value
from torchmagic.sharing.holders import Holder, covers
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, at_line

_CONTAINERS = (list, dict, set, collections.deque)


def shared_lists(found: Namespace) -> Iterator[Seen]:
    """Yield the lists, dicts, sets and deques that one list or dict holds under several entries."""
    for seen in found.of_kind("other"):
        if issubclass(type(seen.obj), _CONTAINERS) and len(seen.places) > 1:
            first, second = seen.places[:2]
            if first.role == second.role == "item" and first.owner is second.owner:
                yield seen


def judge_list(timeline: Timeline, seen: Seen) -> Iterator[Sharing]:
    """Yield a verdict when a store goes into one of the entries."""
    capture = timeline.capture_of(Holder(seen, seen.places[0]))
    parent = seen.places[0].parent
    if capture is None or parent is None or not repeats_one_value(capture.write.value):
        return
    for write in timeline.program.writes:
        if write.kind not in ("store", "clear", "augment"):
            continue
        refs = timeline.program.spellings(write.target, write.step.scope)
        if any(ref.steps and covers(ref, place) == 0 for ref in refs for place in seen.places):
            count, word = len(seen.places) + seen.more_places, type(seen.obj).__name__
            line = timeline.line_of(write.step)
            yield Sharing(
                subject=parent.text,
                message=f"`{parent.text}`: its {count} entries are one {word}, so what {at_line(line)} stores in one "
                f"is in all; make a {word} for each",
                line=timeline.line_of(capture.step),
                others=tuple(place.text for place in seen.places[:4]),
                fix=repeated(capture.step, capture.write.value),
                evidence={"entries": count, "written_on_line": line},
            )
            return
