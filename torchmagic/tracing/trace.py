"""What a watch leaves: the events, the steps, and what the watching cost."""

from __future__ import annotations

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
        """Return the latest event that made a tensor's memory bad."""
        number = self.lineage.event_of(tensor)
        return self.events[number] if number is not None else None

    def way_to(self, event: Event) -> list[Event]:
        """Return the events from the one that began it to `event`, along the parents that came first."""
        way = [event]
        while way[-1].parents:
            way.append(self.events[min(way[-1].parents)])
        return way[::-1]

    def forget(self) -> None:
        """Let go of everything."""
        self.lineage = Lineage()
