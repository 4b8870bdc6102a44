"""What is remembered from before a cell, to tell afterwards what the cell changed; it keeps nothing alive."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmagic.namespace.walk import walk


@dataclass
class Snapshot:
    """Version counters of the tensors, and which object each variable named, before the cell ran."""

    bindings: dict[str, int] = field(default_factory=dict)
    versions: dict[int, tuple[weakref.ref[Any], int]] = field(default_factory=dict)

    def version_before(self, tensor: Any) -> int | None:
        """Return the version counter a tensor had before the cell; None when the cell made the tensor."""
        known = self.versions.get(id(tensor))
        return known[1] if known is not None and known[0]() is tensor else None

    def is_rebound(self, name: str, value: Any) -> bool:
        """Tell whether the variable names another object than before the cell."""
        return self.bindings.get(name) != id(value)


def take_snapshot(names: Mapping[str, Any], *, hidden: Collection[str] = ()) -> Snapshot:
    """Note the version counter of every tensor that the variables reach."""
    snapshot = Snapshot({name: id(value) for name, value in names.items()})
    if "torch" not in sys.modules:
        return snapshot
    for seen in walk(names, hidden=hidden).of_kind("tensor"):
        try:
            snapshot.versions[id(seen.obj)] = (weakref.ref(seen.obj), seen.obj._version)
        except RuntimeError:
            continue  # tensors made under inference_mode keep no version counter
    return snapshot
