"""shared-memory: two holders of the same bytes look independent, and one of them was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.namespace import Seen
from torchmagic.namespace.overlap import shared_groups
from torchmagic.sharing.aliases import judge_aliases
from torchmagic.sharing.buffers import judge_bytes, over_bytes
from torchmagic.sharing.cached import judge_result, written_results
from torchmagic.sharing.crossing import judge_crossing, note_crossing
from torchmagic.sharing.defaults import judge_attribute, judge_default, shared_attributes, written_defaults
from torchmagic.sharing.edited import judge_edits
from torchmagic.sharing.expanded import judge_expanded, judge_refused, overlaps_itself
from torchmagic.sharing.holders import Holder, distinct, holders_of
from torchmagic.sharing.kept import judge_kept
from torchmagic.sharing.readers import judge_readers
from torchmagic.sharing.roles import judge_module, shared_modules
from torchmagic.sharing.series import judge_series
from torchmagic.sharing.shallow_modules import judge_shallow, shallow_copies
from torchmagic.sharing.shared_lists import judge_list, shared_lists
from torchmagic.sharing.shifts import judge_shift, shifts
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.whole_program import whole_program

_MOST_MEMBERS = 60


class _Subject(NamedTuple):
    """Something to judge, and what judges it."""

    judge: Callable[[], Iterator[Sharing]]
    topics: frozenset[str] = frozenset()


class SharedMemory(Rule):
    """Two things that look independent are the same memory, and writing one changed the other.

    `b = a`, `from_numpy`, `.numpy()`, `.detach()`, `.data`, `state_dict()`, slices and `[x] * n` hand out the same
    bytes again. As long as nobody writes, that is quick and right. When one side is written in place, by `+=`, by a
    method such as `mul_`, by an item assignment or by an optimizer's step, the other side changes with it: a backup
    follows what it should keep, a list of snapshots holds the last one many times.

    Copy where the second holder is made: `.clone()` for a tensor, `.copy()` for an array, `torch.tensor(array)`,
    `copy.deepcopy(model.state_dict())`.
    """

    needs_text = True
    bad = """
    import torch
    position = torch.zeros(2)
    path = []
    for step in range(3):
        position += 1
        path.append(position)
    """
    good = """
    import torch
    position = torch.zeros(2)
    path = []
    for step in range(3):
        position += 1
        path.append(position.clone())
    """

    def __init__(self) -> None:
        self._said: set[str] = set()
        self._noted: set[str] = set()
        self._lines: set[int | None] = set()

    def subjects(self, facts: Facts) -> Iterator[_Subject]:
        """Return what shares memory: groups of tensors and arrays, modules, lists, and parts of one tensor."""
        program = whole_program(facts)
        if program is None:
            return
        timeline = Timeline(facts, program)
        yield _Subject(partial(judge_refused, facts, program))
        for shift in shifts(program):
            yield _Subject(partial(judge_shift, facts, program, shift))
        for seen in facts.found.of_kind("tensor"):
            if overlaps_itself(seen.obj):
                yield _Subject(partial(judge_expanded, timeline, seen))
        for default in written_defaults(timeline):
            yield _Subject(partial(judge_default, timeline, default))
        for asked in written_results(timeline):
            yield _Subject(partial(judge_result, timeline, asked))
        for seen in shared_attributes(timeline):
            yield _Subject(partial(judge_attribute, timeline, seen))
        for seen, capture, raw in over_bytes(timeline):
            yield _Subject(partial(judge_bytes, timeline, seen, capture, raw))
        for seen in shared_modules(facts.found):
            yield _Subject(partial(judge_module, timeline, seen))
        for copies in shallow_copies(facts.found):
            yield _Subject(partial(judge_shallow, timeline, copies))
        for seen in shared_lists(facts.found):
            yield _Subject(partial(judge_list, timeline, seen))
        for group in shared_groups(facts.found):
            yield _Subject(partial(_judge_group, timeline, group), frozenset(map(_container, group[:_MOST_MEMBERS])))
        yield _Subject(partial(judge_readers, timeline))

    def judge(self, facts: Facts, subject: _Subject) -> Iterator[Finding]:  # noqa: ARG002 (the judge knows them)
        """Yield what the subject's judge says, each topic once."""
        if subject.topics & self._said:
            return
        for sharing in subject.judge():
            topic = sharing.topic or sharing.subject
            if topic in self._said or (sharing.level == "note" and topic in self._noted):
                continue
            line = sharing.evidence.get("written_on_line")
            if sharing.told_by_line and line in self._lines:
                continue
            self._lines.add(line)
            (self._noted if sharing.level == "note" else self._said).add(topic)
            yield Finding(
                rule=self.name(),
                level=sharing.level,
                subject=sharing.subject,
                message=sharing.message,
                line=sharing.line,
                others=sharing.others,
                evidence=sharing.evidence,
                fix=sharing.fix,
            )


def _container(seen: Seen) -> str:
    """Return the container that a member of a group lies in, of which something may have been said."""
    return (Holder(seen, seen.places[0]).container or seen.places[0]).text


def _judge_group(timeline: Timeline, group: list[Seen]) -> Iterator[Sharing]:
    """Yield the first verdict about a group of objects in one stretch of memory."""
    holders: list[Holder] = list(distinct(holders_of(timeline.facts.found, group, _MOST_MEMBERS)))
    changes = timeline.changes_to(group, holders) if len(holders) > 1 else []
    if len(holders) > 1 and (found := list(judge_series(timeline, holders))):
        yield from found
        return
    for judge in (judge_kept, judge_edits, judge_crossing, judge_aliases) if changes else ():
        found = list(judge(timeline, holders, changes))
        if found:
            yield from found
            return
    yield from note_crossing(holders)
