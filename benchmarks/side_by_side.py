"""Time actions in turns, so that a busy machine slows all of them, and say whether a promise holds."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(
    repeats: int, *actions: Callable[[], object], clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Return the least seconds of each action; each runs once a round, after one round that does not count."""
    rounds = [[_timed(action, clock) for action in actions] for _ in range(repeats + 1)][1:]
    return [min(column) for column in zip(*rounds, strict=True)]


def _timed(action: Callable[[], object], clock: Callable[[], float]) -> float:
    start = clock()
    action()
    return clock() - start


class Promises:
    """What was promised, and what came of it."""

    def __init__(self) -> None:
        self.broken = 0

    def __call__(self, text: str, *, holds: bool) -> None:
        """Print one promise with its measure."""
        print(f"{'holds ' if holds else 'BROKEN'}  {text}")
        self.broken += not holds
