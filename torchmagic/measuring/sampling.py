"""Ask for a few numbers again and again while something else runs, and keep the largest of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping


class Sampler:
    """A daemon thread that asks every `interval` seconds. `peaks` are the largest answers, `times` how many there were.

    It prints nothing and raises nothing: what it cannot ask it leaves out.
    """

    def __init__(self, ask: Callable[[], Mapping[str, int]], interval: float) -> None:
        self.peaks: dict[str, int] = {}
        self.times = 0
        self._ask = ask
        self._interval = interval
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="torchmagic-sampler", daemon=True)

    def begin(self) -> None:
        """Start to ask."""
        self._thread.start()

    def end(self) -> None:
        """Ask for the last time, and let the thread end."""
        self._ended.set()
        self._thread.join(timeout=2)
        self._once()

    def _run(self) -> None:
        self._once()
        while not self._ended.wait(self._interval):
            self._once()

    def _once(self) -> None:
        try:
            answers = self._ask()
        except Exception:
            return
        self.times += 1
        for name, number in answers.items():
            self.peaks[name] = max(number, self.peaks.get(name, 0))
