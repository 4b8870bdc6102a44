"""Two holders of one group, side by side, and the first thing to say about any two."""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from torchmagic.namespace.overlap import shares_bytes
from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Holder, reaches
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing

_MOST_USERS = 16


@dataclass(frozen=True)
class Pair:
    """Two holders that share bytes, and what is known about their group."""

    timeline: Timeline
    new: Holder
    old: Holder
    changes: list[Change]
    group: list[Holder]

    @property
    def writes(self) -> list[Change]:
        """The changes that are writes in place, not training."""
        return [change for change in self.changes if change.kind == "write"]


Judge = Callable[[Pair], "Sharing | None"]


def first_verdict(
    timeline: Timeline, holders: list[Holder], changes: list[Change], judges: tuple[Judge, ...]
) -> Iterator[Sharing]:
    """Yield the first verdict that a judge, the first of them first, has about any two holders outside of a model."""
    users = [h for h in holders if not h.is_machinery and h.place.root not in timeline.loop_variables][:_MOST_USERS]
    for judge in judges:
        for one, other in itertools.permutations(users, 2):
            found = judge(Pair(timeline, one, other, changes, holders)) if shares_bytes(one.seen, other.seen) else None
            if found is not None:
                yield found
                return


def speaks_of(change: Change, holder: Holder) -> bool:
    """Tell whether the text of a write begins at the holder's own variable."""
    if change.target is None or not isinstance(change.step.scope.node, ast.Module):
        return change.names(holder)
    return reaches(change.target, holder.place)
