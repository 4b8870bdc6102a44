"""Every NaN and infinity among the live objects, under the variable it belongs to."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from torchmagic.checking.facts import Facts
from torchmagic.namespace import Place, Seen
from torchmagic.values import Counts, count_array, count_number, count_tensor

Role = Literal["parameter", "buffer", "state", "gradient", "tensor", "array", "number"]

_LARGE_BYTES = 1 << 20


@dataclass(frozen=True)
class BadValue:
    """A tensor, array or number with values that are not finite."""

    subject: str
    role: Role
    counts: Counts
    place: Place
    obj: Any
    stood_before: bool = False  # in a list that the cell at most added to

    @property
    def has_history(self) -> bool:
        """Tell whether it is a tensor that was computed with gradients."""
        return self.role == "tensor" and self.obj.grad_fn is not None

    @property
    def only_negative(self) -> bool:
        """Tell whether all that is wrong with it is -Inf, as in a mask or a logarithm of nothing."""
        return not self.counts.nan and not self.counts.positive

    @property
    def one_sign(self) -> bool:
        """Tell whether its bad values are infinities of one sign."""
        return not self.counts.nan and not (self.counts.positive and self.counts.negative)


@dataclass
class BadValues:
    """The bad values by the key of their variable, and the keys of everything that holds one of them."""

    by_key: dict[str, list[BadValue]] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)


def bad_values(facts: Facts) -> BadValues:
    """Read every tensor, array and number that the variables reach."""
    found = BadValues()
    for seen in facts.found.of_kind("tensor", "array", "column"):
        counts = _counts(facts, seen)
        if counts is not None:
            place = _home(facts, seen)
            value = BadValue(place.text, _role(seen), counts, place, seen.obj)
            found.by_key.setdefault(key_of(place), []).append(value)
            found.keys |= {key_of(path) for path in (place, *seen.places)}
    for value in sorted(_numbers(facts), key=lambda value: value.stood_before):
        found.by_key.setdefault(key_of(value.place), []).append(value)
        found.keys |= {key_of(value.place), *_other_keys(facts, value.place)}
    return found


def _home(facts: Facts, seen: Seen) -> Place:
    """Return the path to tell of: not one through the variable of a loop that was left with an element of something."""
    place = seen.places[0]
    if not _is_left_by_loop(facts, place.root):
        return place
    holder = facts.found.find(place.owner) if place.parent is not None else None
    others = [
        Place(other, place.step, place.role, place.key, place.owner) for other in (holder.places if holder else ())
    ]
    return next((p for p in (*seen.places, *others) if not _is_left_by_loop(facts, p.root)), place)


def _is_left_by_loop(facts: Facts, name: str) -> bool:
    """Tell whether nothing but loops binds a variable of the cell."""
    program = facts.program
    scope = (
        next((s for s in program.scopes if s.unit.is_cell and s.parent is None), None) if program is not None else None
    )
    binds = program.binds_of(name, scope) if program is not None and scope is not None else []
    return bool(binds) and all(write.how == "for" for write in binds)


def _numbers(facts: Facts) -> Iterator[BadValue]:
    for number, place in facts.found.numbers:
        stood_before = facts.before is not None and facts.before.was_listed(number, place)
        yield BadValue(place.text, "number", count_number(number), place, number, stood_before)


def _other_keys(facts: Facts, place: Place) -> Iterator[str]:
    """Yield the keys of the other variables that hold a number's container."""
    holder = facts.found.find(place.owner)
    for other in holder.places if holder is not None else ():
        yield key_of(Place(other, place.step, place.role, place.key, place.owner))


def _counts(facts: Facts, seen: Seen) -> Counts | None:
    if seen.kind != "tensor":
        return count_array(seen.obj)
    memory = facts.memory
    large = memory is not None and seen.span is not None and seen.span.end - seen.span.start >= _LARGE_BYTES
    if memory is None or not large:
        return count_tensor(seen.obj)
    if memory.is_known_finite(seen.obj) and not _may_have_changed(facts, seen):
        return None
    counts = count_tensor(seen.obj)
    if counts is None:
        memory.note_finite(seen.obj)
    return counts


def _may_have_changed(facts: Facts, seen: Seen) -> bool:
    """Tell whether a tensor may have been written without its version counter moving: by name, or through numpy."""
    if any(not facts.is_earlier(place.root) for place in seen.places):
        return True
    span = seen.span
    return span is not None and any(
        other.span is not None and other.span.overlaps(span) for other in facts.found.of_kind("array")
    )


def _role(seen: Seen) -> Role:
    if seen.kind != "tensor":
        return "array"
    roles = {place.role for place in seen.places}
    for role, name in _ROLES:
        if role in roles:
            return name
    return "parameter" if issubclass(type(seen.obj), sys.modules["torch"].nn.Parameter) else "tensor"


_ROLES: tuple[tuple[str, Role], ...] = (
    ("grad", "gradient"),
    ("parameter", "parameter"),
    ("buffer", "buffer"),
    ("group", "parameter"),
    ("state", "state"),
)


def key_of(place: Place) -> str:
    """Return the name under which the flow of the text keeps the place's variable."""
    chain = place.chain
    key = chain[0].step
    if len(chain) > 1 and chain[1].role == "attribute" and not is_module(chain[1].owner):
        key += chain[1].step
    return key + ".grad" if place.role == "grad" else key


def is_module(obj: Any) -> bool:
    """Tell whether an object is a module, by its type."""
    return issubclass(type(obj), sys.modules["torch"].nn.Module)
