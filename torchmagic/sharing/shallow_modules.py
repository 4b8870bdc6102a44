"""A module that was copied with `copy.copy`, which makes a second module of the same parameters."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from torchmagic.namespace import Namespace, Seen
from torchmagic.sharing.copies import copies_shallowly, deep_copied
from torchmagic.sharing.holders import Holder, entry_of
from torchmagic.sharing.intent import words_of
from torchmagic.sharing.roles import COPY_ROLES, parameters_of
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import copy_there, doer


def shallow_copies(found: Namespace) -> Iterator[list[Seen]]:
    """Yield the modules that have one table of parameters or of children between them, as shallow copies do."""
    tables: dict[int, list[Seen]] = defaultdict(list)
    for seen in found.of_kind("module"):
        attributes = object.__getattribute__(seen.obj, "__dict__")
        for table in (attributes.get("_parameters"), attributes.get("_modules")):
            if issubclass(type(table), dict) and dict.__len__(table) and parameters_of(seen.obj):
                tables[id(table)].append(seen)
                break
    yield from (copies for copies in tables.values() if len(copies) > 1)


def judge_shallow(timeline: Timeline, copies: list[Seen]) -> Iterator[Sharing]:
    """Yield a verdict when the cell trains the parameters after it made the copy."""
    trained = set(map(id, parameters_of(copies[0].obj)))
    if not any(timeline.facts.version_moved(parameter) for parameter in parameters_of(copies[0].obj)):
        return
    holders = [Holder(seen, seen.places[0]) for seen in copies]
    new, old = max(itertools.permutations(holders, 2), key=lambda pair: _likelihood(timeline, *pair))
    capture = timeline.capture_of(new)
    later = [c for c in timeline.changes if c.trained & trained and timeline.follows(c, capture)]
    if not later:
        return
    step, value = timeline.maker(capture) if capture is not None else (later[0].step, None)
    entry = entry_of(value, new)
    line = entry.lineno if entry is not None and step.scope.unit.is_cell else timeline.line_of(step)
    yield Sharing(
        subject=new.text,
        message=f"`{new.text}`: a shallow copy that has its parameters in common with `{old.text}`, so "
        f"{doer(later[0])} trains both; {copy_there(capture, new, 'make it a deep copy')}",
        line=line if capture is not None else later[0].line,
        others=(old.text,),
        fix=deep_copied(timeline, step, entry),
        evidence={"trained_on_line": later[0].line},
    )


def _likelihood(timeline: Timeline, new: Holder, old: Holder) -> int:
    """Return how much speaks for the first of two modules being the copy: the text, the order, or the name."""
    copied, kept = (_is_copied(timeline, holder) for holder in (new, old))
    if copied is not kept:
        return 3 if copied else 0
    if timeline.is_newer(new, old) or timeline.is_newer(old, new):
        return 2 if timeline.is_newer(new, old) else 0
    return 1 if words_of(str(new.place.key)) & COPY_ROLES else 0


def _is_copied(timeline: Timeline, holder: Holder) -> bool:
    capture = timeline.capture_of(holder)
    return capture is not None and copies_shallowly(entry_of(capture.write.value, holder))
