"""What a notebook keeps alive beside its variables: the outputs, and the frames of the last exception."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from types import FrameType
from typing import Any, NamedTuple

_MOST_LINKS = 100
_LAST_RESULTS = ("_", "__", "___")


class Leftover(NamedTuple):
    """An object that history holds, who holds it, and what that is in a few words."""

    label: str
    note: str
    value: Any


def leftovers(names: Mapping[str, Any], error: BaseException | None = None) -> list[Leftover]:
    """Return what the outputs, the exception that was shown last, and `error` hold."""
    errors = [error] if error is not None else []
    errors += [last for last in (getattr(sys, "last_exc", None), getattr(sys, "last_value", None)) if last is not None]
    return [*_outputs(names), *_frames(errors, names)]


def _outputs(names: Mapping[str, Any]) -> Iterator[Leftover]:
    """Yield the results of earlier cells, which IPython keeps in `Out`, `_`, `__` and `___`."""
    out = names.get("_oh")
    if type(out) is dict:
        for number, value in list(out.items()):
            if type(number) is int:
                yield Leftover(f"Out[{number}]", f"shown in cell {number}", value)
        for name in _LAST_RESULTS:
            if name in names:
                yield Leftover(name, "the last result, or the `_` of a loop", names[name])


def _frames(errors: list[BaseException], names: Mapping[str, Any]) -> Iterator[Leftover]:
    """Yield the local variables of the frames that the exceptions' tracebacks keep, the innermost frame first.

    A frame that still runs is passed over: its variables are not the exception's.
    """
    running = set()
    frame: FrameType | None = sys._getframe()  # noqa: SLF001 -- the documented way to the running frames
    while frame is not None:
        running.add(id(frame))
        frame = frame.f_back
    known: set[int] = set()
    for error in chained(errors):
        note = f"a call of the last exception, {type(error).__name__}"
        for frame in reversed(_frames_of(error)):
            if id(frame) in known or id(frame) in running:
                continue
            known.add(id(frame))
            variables = frame.f_locals
            # The cell's own frame holds the notebook's variables.
            if variables is not names and variables is not frame.f_globals:
                for value in list(variables.values()):
                    yield Leftover(f"frame {frame.f_code.co_name}", note, value)


def _frames_of(error: BaseException) -> list[FrameType]:
    frames = []
    trace = error.__traceback__
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    return frames


def chained(errors: list[BaseException]) -> list[BaseException]:
    """Return the exceptions with those that caused them, came before them, or are grouped in them, each once."""
    found: dict[int, BaseException] = {}
    waiting = list(errors)
    while waiting and len(found) < _MOST_LINKS:
        error = waiting.pop(0)
        if id(error) in found:
            continue
        found[id(error)] = error
        inner = getattr(error, "exceptions", ()) if type(error).__name__.endswith("ExceptionGroup") else ()
        waiting += [link for link in (error.__cause__, error.__context__, *inner) if isinstance(link, BaseException)]
    return list(found.values())
