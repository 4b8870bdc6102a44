"""Where an object was found: the path a person would type to reach it."""

from __future__ import annotations

from typing import Any, Literal

Role = Literal[
    "name",
    "attribute",
    "item",
    "parameter",
    "buffer",
    "submodule",
    "grad",
    "state",
    "group",
    "closure",
    "self",
    "column",
]
"""How the holder holds the object. `item`: element of a container; `state` and `group`: an optimizer's state and
parameter groups; `self`: the object a bound method belongs to; `column`: a column of a pandas table."""

_PLAIN_KEYS = (str, int, float, bool, bytes, type(None))
_LONGEST_KEY = 60


class Place:
    """One way to reach an object: from the `parent` place, whose object is `owner`, by one more `step`.

    `key` is the bare attribute name, index or dict key of the step, and `role` says what kind of step it is.
    """

    __slots__ = ("cost", "key", "owner", "parent", "role", "step")

    def __init__(self, parent: Place | None, step: str, role: Role, key: Any, owner: Any) -> None:
        self.parent = parent
        self.step = step
        self.role: Role = role
        self.key = key
        self.owner = owner
        self.cost = 0

    @property
    def text(self) -> str:
        """The whole path, such as `model.layers[0].weight`."""
        steps = []
        place: Place | None = self
        while place is not None:
            steps.append(place.step)
            place = place.parent
        return "".join(reversed(steps))

    @property
    def root(self) -> str:
        """The variable the path starts from."""
        place = self
        while place.parent is not None:
            place = place.parent
        return place.step

    @property
    def chain(self) -> list[Place]:
        """The places from the variable to this one."""
        places = []
        place: Place | None = self
        while place is not None:
            places.append(place)
            place = place.parent
        return places[::-1]

    def __repr__(self) -> str:
        return f"<Place {self.text}>"


def attribute_step(name: str) -> str:
    """Spell the access to attribute `name`."""
    return f".{name}" if name.isidentifier() else f".__dict__[{name!r}]"


def key_step(key: Any) -> str:
    """Spell the access to a dict entry, without calling a foreign `__repr__`."""
    return f"[{_key_text(key)}]"


def _key_text(key: Any) -> str:
    kind = type(key)
    if kind in _PLAIN_KEYS:
        text = repr(key)
        return text if len(text) <= _LONGEST_KEY else f"{text[: _LONGEST_KEY - 4]}...{text[-1]}"
    if kind is tuple and len(key) <= 4:
        inner = ", ".join(_key_text(part) for part in key)
        return f"({inner},)" if len(key) == 1 else f"({inner})"
    return f"<{kind.__name__} object>"
