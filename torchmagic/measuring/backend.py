"""What a backend is: it reads the devices of one kind, changes nothing, and knows how to say that it does not know."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, TypeVar

from torchmagic.holdings import DeviceMemory
from torchmagic.render.words import failure

_Value = TypeVar("_Value")


class Backend(Protocol):
    """Reads the devices of one kind."""

    def read(self) -> Iterator[DeviceMemory]:
        """Yield each device with the numbers that can be known, its parts not yet divided.

        Reading creates no context, starts no driver, frees nothing and resets nothing.
        """


def asked(function: Callable[..., _Value], *arguments: Any) -> _Value | None:
    """Return what a library answers, or None where it answers with an error."""
    try:
        return function(*arguments)
    except Exception:
        return None


def unreadable(device: str, problem: Exception) -> DeviceMemory:
    """Return a device of which nothing could be read, and why."""
    return DeviceMemory(device, remarks=(f"its memory could not be read: {failure(problem)}",))
