"""A module that was copied with `copy.copy`, which makes a second module of the same parameters."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator

from torchmagic.namespace import Namespace, Seen
from torchmagic.sharing.copies import deep_copied
from torchmagic.sharing.holders import Holder
from torchmagic.sharing.roles import parameters_of
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import doer


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
    for new, old in itertools.permutations([Holder(seen, seen.places[0]) for seen in copies], 2):
        capture = timeline.capture_of(new)
        later = [c for c in timeline.changes if c.trained & trained and timeline.follows(c, capture)]
        if capture is None or not later or not timeline.is_newer(new, old):
            continue
        step, value = timeline.maker(capture)
        yield Sharing(
            subject=new.text,
            message=f"`{new.text}`: a shallow copy that has its parameters in common with `{old.text}`, so "
            f"{doer(later[0])} trains both; make it a deep copy",
            line=timeline.line_of(step),
            others=(old.text,),
            fix=deep_copied(timeline, step, value),
            evidence={"trained_on_line": later[0].line},
        )
        return
