"""One panel: a widget, and a thread that refreshes it while cells run."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from ipywidgets import HTML

from torchmagic.holdings import DeviceMemory, Memory
from torchmagic.panel.history import History
from torchmagic.render.memory_live import LastLook, last_look, live_html, live_text
from torchmagic.render.words import failure

LIMIT_SECONDS: Final = 3600.0
"""A panel that nobody stops ends after an hour."""


class LivePanel:
    """A widget that shows the devices, refreshed every `interval` seconds by one daemon thread.

    While a cell runs only a thread gets a message through to the front end; where even that does not (Colab), `refresh`
    after each cell does. The thread reads numbers and looks up no names, because the variables belong to the cell that
    runs; the names are those of `show_names`. It sets one trait and does nothing else: what it printed would land in
    the cell that runs. `when_over` is called when the time is over, in the thread.
    """

    def __init__(
        self,
        read: Callable[[], Sequence[DeviceMemory]],
        interval: float,
        when_over: Callable[[], None],
        limit_seconds: float = LIMIT_SECONDS,
    ) -> None:
        self.widget: Any = HTML()
        self.interval = interval
        self._read = read
        self._when_over = when_over
        self._limit = limit_seconds
        self._history = History()
        self._memory = Memory()
        self._last = LastLook()
        self._problem = ""
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="torchmagic-panel", daemon=True)

    def begin(self, memory: Memory) -> None:
        """Show a look with its names, and start to refresh."""
        self.show_names(memory)
        self._thread.start()

    def show_names(self, memory: Memory) -> None:
        """Show a look with its names, which stay until the next one."""
        with self._lock:
            self._memory = memory
            self._last = last_look(memory)
            self._history.add(memory.devices)
            self._draw(memory.devices)

    def refresh(self) -> None:
        """Show the devices as they are now."""
        with self._lock:
            if self._ended.is_set():
                return
            try:
                devices = self._read()
                self._problem = ""
            except Exception as error:
                self._problem = failure(error)
                devices = self._memory.devices
            self._history.add(devices)
            self._draw(devices)

    def end(self) -> tuple[str, str]:
        """Stop, and return what was shown last as text and as HTML that need no widget."""
        self._ended.set()
        with self._lock:
            curves = self._history.curves()
            text = live_text(self._last, self._memory.devices, curves)
            html = live_html(self._last, self._memory.devices, curves)
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(timeout=2)
        return text, html

    def close(self) -> None:
        """Take the widget out of the front end and out of ipywidgets' registry."""
        self.widget.close()

    def _draw(self, devices: Sequence[DeviceMemory]) -> None:
        self.widget.value = live_html(self._last, devices, self._history.curves(), self._note())

    def _note(self) -> str:
        if self._problem:
            return f"the devices could not be read: {self._problem}"
        return f"refreshed every {self.interval:g} s, the names after each cell; `%gpumem stop` ends it"

    def _run(self) -> None:
        over = time.monotonic() + self._limit
        while not self._ended.wait(min(self.interval, max(over - time.monotonic(), 0.0))):
            if time.monotonic() >= over:
                self._when_over()
                return
            self.refresh()
