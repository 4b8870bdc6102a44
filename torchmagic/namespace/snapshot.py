"""What is remembered from before a cell, to tell afterwards what the cell changed; it keeps no object alive."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmagic.namespace.collector import paused_collector
from torchmagic.namespace.places import Place
from torchmagic.namespace.walk import walk


@dataclass
class Snapshot:
    """Version counters of the tensors, and which object each variable named, before the cell ran.

    `listed` are the floats in lists that were NaN or infinite, by their list and index.
    """

    bindings: dict[str, int] = field(default_factory=dict)
    versions: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)
    listed: dict[tuple[int, int], float] = field(default_factory=dict)

    def version_before(self, tensor: Any) -> int | None:
        """Return the version counter a tensor had before the cell; None when the cell made the tensor."""
        known = self.versions.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def is_rebound(self, name: str, value: Any) -> bool:
        """Tell whether the variable names another object than before the cell."""
        return self.bindings.get(name) != id(value)

    def was_listed(self, number: float, place: Place) -> bool:
        """Tell whether a number that is not finite stood in its list, at its index, before the cell."""
        return type(place.owner) is list and self.listed.get((id(place.owner), place.key)) is number


def take_snapshot(names: Mapping[str, Any], *, hidden: Collection[str] = ()) -> Snapshot:
    """Note the version counter of every tensor that the variables reach, and the odd numbers in their lists."""
    snapshot = Snapshot({name: id(value) for name, value in names.items()})
    if "torch" not in sys.modules:
        return snapshot
    with paused_collector():
        found = walk(names, hidden=hidden)
        for seen in found.of_kind("tensor"):
            version = version_of(seen.obj)
            if version is not None:
                snapshot.versions[id(seen.obj)] = (weakref.ref(seen.obj), version)
        for number, place in found.numbers:
            if type(place.owner) is list:
                snapshot.listed[id(place.owner), place.key] = number
    return snapshot


def version_of(tensor: Any) -> int | None:
    """Return how often a tensor was written in place; None for one made under inference_mode, which does not count.

    `_version` is private and documented in torch's notes on autograd, seen in torch 1.0 to 2.13.
    """
    try:
        return int(tensor._version)  # noqa: SLF001 (there is no public way to ask)
    except (RuntimeError, AttributeError):
        return None
