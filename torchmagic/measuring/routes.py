"""Under which variable a person would look for an object that can be reached in several ways."""

from __future__ import annotations

from typing import Final

from torchmagic.namespace import Namespace, Place, Seen

_RANKS: Final = {"parameter": 0, "buffer": 0, "submodule": 0, "state": 0, "grad": 0, "name": 1, "group": 3}
"""What a module or an optimizer registers is theirs, whatever else names it: after `for p in model.parameters()` the
variable `p` names a weight of the model. An optimizer only borrows what stands in its groups."""


class Routes:
    """The ways to the objects of one walk."""

    def __init__(self, found: Namespace) -> None:
        self._found = found
        self._roots: dict[int, str] = {}

    def root(self, seen: Seen) -> str:
        """Return the variable that an object belongs to."""
        passed: list[int] = []
        current: Seen | None = seen
        root = ""
        while current is not None:
            if id(current) in passed:
                root = current.places[0].root
                break
            known = self._roots.get(id(current))
            if known is not None:
                root = known
                break
            passed.append(id(current))
            place = best_place(current)
            if place.parent is None:
                root = place.step
                break
            current = self._found.find(place.owner)
            root = place.root
        self._roots.update(dict.fromkeys(passed, root))
        return root

    def chain(self, seen: Seen) -> list[Place]:
        """Return the steps from the variable that an object belongs to, to the object."""
        steps: list[Place] = []
        passed: set[int] = set()
        current: Seen | None = seen
        while current is not None and id(current) not in passed:
            passed.add(id(current))
            place = best_place(current)
            steps.append(place)
            if place.parent is None:
                return steps[::-1]
            current = self._found.find(place.owner)
        return seen.places[0].chain


def best_place(seen: Seen) -> Place:
    """Return the place that names an object best."""
    if len(seen.places) == 1:
        return seen.places[0]
    return min(seen.places, key=lambda place: (_RANKS.get(place.role, 2), place.cost))


def rank(seen: Seen) -> tuple[int, int]:
    """Return how well an object's best place names what shares its memory; less is better."""
    place = best_place(seen)
    return _RANKS.get(place.role, 2), place.cost
