"""Who holds the members of a memory group, and which statement handed the memory to them."""

from __future__ import annotations

import ast
import collections
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from torchmagic.checking.facts import alignments
from torchmagic.namespace import Namespace, Place, Seen
from torchmagic.source import ANY, Context, Ref, Step, Write
from torchmagic.source.memory_paths import ALL, SAME_MEMORY
from torchmagic.source.refs import bare_name

_MACHINERY = frozenset({"parameter", "buffer", "group", "state", "grad"})
_CONTAINERS = (dict, list, tuple, collections.deque)
_MOST_WAYS = 6
MODULE_ROLES = frozenset({"parameter", "buffer", "submodule"})


@dataclass(frozen=True, eq=False)
class Holder:
    """One place that holds a tensor or array; `others` lead there by other names of an object or module on the way."""

    seen: Seen
    place: Place
    others: tuple[Place, ...] = ()

    @property
    def text(self) -> str:
        """The path of the place."""
        return self.place.text

    @cached_property
    def is_machinery(self) -> bool:
        """Whether a module, an optimizer or a gradient slot holds it: it is expected to change as training goes on."""
        return any(link.role in _MACHINERY for link in self.place.chain)

    @cached_property
    def container(self) -> Place | None:
        """The outermost of the builtin containers that lead down to it, when nothing else lies between."""
        place, found = self.place, None
        while place.role == "item" and place.parent is not None:
            place = found = place.parent
        return found

    @property
    def is_variable(self) -> bool:
        """Whether a variable itself names it."""
        return self.place.parent is None


@dataclass(frozen=True, eq=False)
class Capture:
    """The statement that put the memory into a holder's hands.

    `kept` is set when the statement puts a new element beside the old ones each time it runs. When a function made
    what the holder was given, `write` is the statement in the function and `outer` the holder's own.
    """

    write: Write
    contexts: tuple[Context, ...]
    kept: bool
    given: Write | None = None

    @property
    def outer(self) -> Step:
        """The statement in which the holder itself is named."""
        return (self.given or self.write).step

    @property
    def step(self) -> Step:
        """The statement."""
        return self.write.step


def holders_of(found: Namespace, group: list[Seen], most: int) -> list[Holder]:
    """Return the places of a group's members, the shortest paths first."""
    holders = [
        Holder(seen, place, tuple(other_ways(found, place, through_objects=True)))
        for seen in group[:most]
        for own in seen.places
        for place in (own, *other_ways(found, own))
    ]
    return sorted(holders, key=lambda holder: holder.place.cost)[: 2 * most]


def other_ways(found: Namespace, place: Place, *, through_objects: bool = False) -> Iterator[Place]:
    """Yield the other paths to a place, when a builtin container above it is held at several places itself.

    The walk opens everything once, so the tensors in it have one place each. With `through_objects` it is an object or
    module above the place that has other names.
    """
    below: list[Place] = []
    link = place
    while link.parent is not None:
        below.append(link)
        holder = found.find(link.owner)
        is_container = holder is not None and issubclass(type(holder.obj), _CONTAINERS)
        if holder is not None and len(holder.places) > 1 and is_container is not through_objects:
            for other in holder.places[1:_MOST_WAYS]:
                yield _rebuilt(other, below)
        link = link.parent


def _rebuilt(start: Place, below: list[Place]) -> Place:
    place = start
    for link in reversed(below):
        cost = place.cost + 1
        place = Place(place, link.step, link.role, link.key, link.owner)
        place.cost = cost
    return place


def reaches(ref: Ref, place: Place) -> bool:
    """Tell whether a path leads to the tensor or array at a place, or into it; a container that holds it is not it."""
    return any(_leads_into(steps, links) for steps, links in alignments(ref, place))


def _leads_into(steps: tuple[tuple[str, Any], ...], links: list[Place]) -> bool:
    position = 0
    for index, link in enumerate(links):
        while position < len(steps) and _is_view(steps[position]) and not _same_step(*steps[position], link):
            position += 1
        if position == len(steps):
            return False
        kind, key = steps[position]
        if kind == ALL:
            return all(rest.role in MODULE_ROLES for rest in links[index:])
        if not _same_step(kind, key, link):
            return False
        position += 1
    return all(step[0] == "item" or _is_view(step) for step in steps[position:])


def _is_view(step: tuple[str, Any]) -> bool:
    return step[0] == "attr" and step[1] in SAME_MEMORY


def _same_step(kind: str, key: Any, link: Place) -> bool:
    if (kind == "item") != link.step.startswith("["):
        return False
    return key is ANY or key == link.key or str(key) == link.key or (type(key) is int and key < 0)


def covers(ref: Ref, place: Place) -> int | None:
    """Return how many links of a place lie beyond a path that leads to it or to a holder of it; None when none does."""
    beyond = []
    for steps, links in alignments(ref, place):
        follows = len(steps) <= len(links) and all(
            _same_step(kind, key, link) for (kind, key), link in zip(steps, links, strict=False)
        )
        if follows:
            beyond.append(len(links) - len(steps))
    return min(beyond, default=None)


def is_kept(write: Write) -> bool:
    """Tell whether a write adds an element each time it runs."""
    if write.kind == "store":
        return write.how != "[]=" or not isinstance(write.key, (ast.Constant, ast.UnaryOp))
    return element_expression(write.value) is not None


def element_expression(value: ast.expr | None) -> ast.expr | None:
    """Return the expression that a comprehension runs for each element, also inside `list(...)` and its like."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and len(value.args) == 1:
        value = value.args[0]
    if isinstance(value, (ast.ListComp, ast.SetComp, ast.GeneratorExp)):
        return value.elt
    return value.value if isinstance(value, ast.DictComp) else None


def entry_of(value: ast.expr | None, holder: Holder) -> ast.expr | None:
    """Return the entry that the holder lies in, of a dict display or what a constructor is given; else the whole."""
    keys = [link.key for link in holder.place.chain if link.role in ("item", "attribute")]
    entries: list[tuple[object, ast.expr]] = []
    if isinstance(value, ast.Dict):
        pairs = zip(value.keys, value.values, strict=True)
        entries = [(key.value, entry) for key, entry in pairs if isinstance(key, ast.Constant)]
    elif isinstance(value, ast.Call) and (bare_name(value.func) == "dict" or bare_name(value.func)[:1].isupper()):
        entries = [(keyword.arg, keyword.value) for keyword in value.keywords]
    return next((entry for key, entry in entries if key in keys), value)


def is_empty(value: ast.expr | None) -> bool:
    """Tell whether a value is an empty container, or None: nothing that a holder has can have come from it."""
    if isinstance(value, ast.Dict):
        return not value.keys
    if isinstance(value, (ast.List, ast.Tuple)):
        return not value.elts
    if isinstance(value, ast.Call):
        named = isinstance(value.func, ast.Name) and value.func.id in ("dict", "list", "set", "tuple")
        return named and not value.args and not value.keywords
    return isinstance(value, ast.Constant)


def distinct(holders: list[Holder]) -> Iterator[Holder]:
    """Leave out the places by which an optimizer or a gradient slot knows what a module or variable has too."""
    plain = {
        id(holder.seen.obj) for holder in holders if not {"group", "state"} & {link.role for link in holder.place.chain}
    }
    for holder in holders:
        roles = {link.role for link in holder.place.chain}
        if not ("group" in roles and id(holder.seen.obj) in plain):
            yield holder
