"""One module in two roles: a target network that is the policy itself, a layer repeated in a list."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.namespace import Place, Seen
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import deep_copied, repeated, repeats_one_value
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.intent import KEPT_WORDS, words_of
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.twins import judge_twins
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import doer
from torchmagic.source.order import shared_loops

_FOLLOWERS = frozenset({"target", "teacher", "ema", "momentum", "swa", "averaged", "shadow", "key"})
"""What a module is called that follows another one, and is therefore a module of its own."""

COPY_ROLES = KEPT_WORDS | _FOLLOWERS | {"ref", "copies", "clone", "cloned"}
_MEANT = frozenset({"shared", "share", "tied", "tie", "common"})


def shared_modules(found: Any) -> Iterator[Seen]:
    """Yield the modules with parameters that are held at more than one place."""
    for seen in found.of_kind("module"):
        if len(seen.places) > 1 and parameters_of(seen.obj):
            yield seen


def parameters_of(module: Any) -> list[Any]:
    """Return the parameters of a module and of its children, each once, without calling the module."""
    found: dict[int, Any] = {}
    for part in devices.submodules(module):
        table = object.__getattribute__(part, "__dict__").get("_parameters")
        if issubclass(type(table), dict):
            found.update((id(p), p) for p in dict.values(table) if p is not None)
    return list(found.values())


def judge_module(timeline: Timeline, seen: Seen) -> Iterator[Sharing]:
    """Yield a verdict about a module that stands where two modules should."""
    holders = [Holder(seen, place) for place in seen.places]
    identities = set(map(id, parameters_of(seen.obj)))
    trained = any(timeline.facts.version_moved(p) for p in parameters_of(seen.obj))
    trainings = [
        c for c in timeline.changes if c.kind == "training" and (trained and (c.trained & identities or c.paths))
    ]
    found = (
        _repeated(timeline, holders, trainings)
        or _collected(timeline, holders, trainings)
        or _roles(timeline, holders, trainings)
        or judge_twins(timeline, seen, holders, trainings)
    )
    if found is not None:
        yield found


def _roles(timeline: Timeline, holders: list[Holder], trainings: list[Change]) -> Sharing | None:
    for holder in holders:
        words = words_of(_last_name(holder.place))
        others = [other for other in holders if not words_of(_last_name(other.place)) & COPY_ROLES]
        if holder.is_variable and not words & _FOLLOWERS:
            others = [
                other for other in others if other.place.role != "submodule"
            ]  # `old_head = net.head` is a shorthand
        if not words & COPY_ROLES or not others:
            continue
        capture = timeline.capture_of(holder)
        change = next((c for c in trainings if timeline.follows(c, capture)), None)
        if (
            capture is None
            or change is None
            or isinstance(capture.write.value, ast.IfExp)
            or capture.write.how == "for"
        ):
            continue
        return Sharing(
            subject=holder.text,
            message=f"`{holder.text}`: the same module as `{others[0].text}`, so {doer(change)} trains both; "
            "make it a deep copy",
            line=timeline.line_of(capture.step),
            others=(others[0].text,),
            fix=deep_copied(timeline, capture.step, capture.write.value),
            evidence={"trained_on_line": change.line},
        )
    return None


def _last_name(place: Place) -> str:
    return str(place.key)


def _siblings(holders: list[Holder]) -> Iterator[list[Holder]]:
    """Yield the places of a module in one list, dict or module."""
    table: dict[int, list[Holder]] = defaultdict(list)
    for holder in holders:
        if holder.place.role in ("item", "submodule"):
            table[id(holder.place.owner)].append(holder)
    yield from (places for places in table.values() if len(places) > 1)


def _repeated(timeline: Timeline, holders: list[Holder], trainings: list[Change]) -> Sharing | None:
    """Judge `[layer] * n`, which makes n entries and one layer; names in a dict may be two words for one module."""
    for places in _siblings(holders):
        capture = timeline.capture_of(places[0])
        if capture is None or not repeats_one_value(capture.write.value) or _is_meant(capture):
            continue
        if isinstance(capture.write.value, ast.Dict) and not trainings:
            continue
        parent = places[0].place.parent
        if parent is None:
            continue
        count = len(places) + places[0].seen.more_places
        return Sharing(
            subject=parent.text,
            message=f"`{parent.text}`: {count} of its entries are one module with one set of parameters; "
            "make a module for each",
            line=timeline.line_of(capture.step),
            others=tuple(place.text for place in places[:4]),
            fix=repeated(capture.step, capture.write.value),
            evidence={"entries": count},
        )
    return None


def _is_meant(capture: Capture) -> bool:
    value = capture.write.value
    names = [node.id for node in ast.walk(value) if isinstance(node, ast.Name)] if value is not None else []
    names.append(capture.write.target.last_name)
    return any(words_of(name) & _MEANT for name in names)


def _collected(timeline: Timeline, holders: list[Holder], trainings: list[Change]) -> Sharing | None:
    """Judge a list that is given the same module after each epoch, to keep its versions."""
    for places in _siblings(holders):
        capture = timeline.capture_of(places[0])
        if capture is None or not capture.kept or places[0].place.role != "item":
            continue
        change = next(
            (c for c in trainings if any(shared_loops(a, b) for a in c.contexts for b in capture.contexts)), None
        )
        parent = places[0].place.parent
        if change is None or parent is None:
            continue
        count = len(places) + places[0].seen.more_places
        return Sharing(
            subject=parent.text,
            message=f"`{parent.text}`: {count} entries are one module, which {doer(change)} goes on training; "
            "store a deep copy",
            line=timeline.line_of(capture.step),
            others=tuple(place.text for place in places[:3]),
            fix=deep_copied(timeline, capture.step, capture.write.value),
            evidence={"entries": count, "trained_on_line": change.line},
        )
    return None
