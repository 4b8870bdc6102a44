"""What a watch leaves: the events, the steps, and what the watching cost."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

from torchmagic.tracing.events import Event
from torchmagic.tracing.lineage import Lineage
from torchmagic.tracing.steps import Steps


@dataclass
class Trace:
    """The outcome of a watch.

    `operations` counts the operations seen, in forward and backward passes; `slowdown` estimates how many times as
    long as without a watch the cell took. `unseen` says, a sentence each, what could not be followed.
    """

    lineage: Lineage
    steps: Steps
    operations: int = 0
    slowdown: float = 1.0
    unseen: list[str] = field(default_factory=list)

    @property
    def events(self) -> list[Event]:
        """All events, in the order in which they happened."""
        return self.lineage.events

    def event_of(self, tensor: Any) -> Event | None:
        """Return the latest event that made a tensor's memory bad, or that of an array of numpy."""
        numpy = sys.modules.get("numpy")
        if numpy is not None and issubclass(type(tensor), numpy.ndarray):
            number = self.lineage.event_at(tensor.__array_interface__["data"][0])
        else:
            number = self.lineage.event_of(tensor)
        return self.events[number] if number is not None else None

    def way_to(self, event: Event) -> list[Event]:
        """Return the events from the one that began it to `event`, along the parents that came first."""
        way = [event]
        while way[-1].parents:
            way.append(self.events[min(way[-1].parents)])
        return way[::-1]

    def was_born(self, value: Any) -> bool:
        """Tell whether a tensor's or array's bad values were made by an operation of a forward pass, of good ones."""
        event = self.event_of(value)
        begin = self.way_to(event)[0] if event is not None else None
        return begin is not None and begin.kind == "born" and not begin.node

    def forget(self) -> None:
        """Let go of everything."""
        self.lineage = Lineage()
