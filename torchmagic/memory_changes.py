"""The values that tell what changed: what a cell did to memory, and what came back when history was let go of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Swing:
    """What a cell did to one measure of a device, in bytes; None is "not known".

    `measure` is "in tensors" where an allocator counts them, "resident" for this process on the host, and "tensors and
    arrays by name" for what variables hold there. `peak_bytes` is the most during the cell. Where only samples tell,
    `is_sampled` is set and the peak is a lower bound, and `ceiling_bytes` an upper one where there is one: a peak from
    before the cell that the cell did not exceed.
    """

    device: str
    measure: str
    before_bytes: int | None = None
    after_bytes: int | None = None
    peak_bytes: int | None = None
    is_sampled: bool = False
    ceiling_bytes: int | None = None

    @property
    def change_bytes(self) -> int | None:
        """How much more there is after the cell; negative when there is less."""
        if self.before_bytes is None or self.after_bytes is None:
            return None
        return self.after_bytes - self.before_bytes


@dataclass(frozen=True)
class HolderChange:
    """A holder whose bytes a cell changed; 0 before is one that came, 0 after one that went."""

    path: str
    device: str
    before_bytes: int
    after_bytes: int

    @property
    def change_bytes(self) -> int:
        """How much more it holds after the cell; negative when it is less."""
        return self.after_bytes - self.before_bytes


@dataclass(frozen=True)
class CellMemory:
    """What a cell did to memory: the measures of each device, and the holders that changed, the largest change first.

    `seconds` is how long the cell ran.
    """

    swings: tuple[Swing, ...] = ()
    changes: tuple[HolderChange, ...] = ()
    remarks: tuple[str, ...] = ()
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return the whole as values that `json` can write."""
        return {
            "swings": [vars(swing) | {"change_bytes": swing.change_bytes} for swing in self.swings],
            "changes": [vars(change) | {"change_bytes": change.change_bytes} for change in self.changes],
            "remarks": list(self.remarks),
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class FreedStep:
    """One thing that was let go of, and the bytes that came back by it on each device."""

    what: str
    freed: Mapping[str, int]

    def to_dict(self) -> dict[str, Any]:
        """Return the step as values that `json` can write."""
        return {"what": self.what, "freed": dict(self.freed)}


@dataclass(frozen=True)
class Freed:
    """What came back when the notebook's history was let go of, in the order in which it was.

    `lost` says, a sentence each, what the user can do no more, and `kept` what was left alone and why.
    """

    steps: tuple[FreedStep, ...] = ()
    lost: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the whole as values that `json` can write."""
        return {"steps": [step.to_dict() for step in self.steps], "lost": list(self.lost), "kept": list(self.kept)}
