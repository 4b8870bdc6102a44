"""What libraries were doing when the cell failed: the calls below the user's code, and what they were given."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import FrameType
from typing import Any

from torchmagic.checking.facts import Facts
from torchmagic.kinds import kind_of_value
from torchmagic.source.user_files import is_user_file

_CALLERS = frozenset({"_wrapped_call_impl", "_call_impl"})


@dataclass(frozen=True, eq=False)
class LibraryCall:
    """A frame of a library: the function's name, and its arguments by the names of its parameters.

    `module` is the module whose method it is, else None; a module's `self` is not among the arguments.
    """

    function: str
    module: Any
    arguments: Mapping[str, Any]


def library_calls(facts: Facts) -> list[LibraryCall]:
    """Return the calls below the user's innermost frame, the innermost first.

    An operator of torch's, such as `a @ b`, leaves no frame: the list is then empty, as it is without an error.
    """
    return [_call_of(frame) for frame in _library_frames(facts) if frame.f_code.co_name not in _CALLERS][::-1]


def failing_module(calls: list[LibraryCall]) -> LibraryCall | None:
    """Return the outermost call of the module that ran when it failed: its `forward`, not a function `forward` uses."""
    inner = next((call.module for call in calls if call.module is not None), None)
    own = [call for call in calls if call.module is inner and inner is not None]
    return own[-1] if own else None


def _library_frames(facts: Facts) -> Iterator[FrameType]:
    """Yield the frames below the user's innermost one, the innermost last."""
    frames: list[FrameType] = []
    trace = facts.error.__traceback__ if facts.error is not None else None
    while trace is not None:
        frames.append(trace.tb_frame)
        trace = trace.tb_next
    last = max((i for i, frame in enumerate(frames) if is_user_file(frame.f_code.co_filename)), default=-1)
    yield from frames[last + 1 :] if last >= 0 else ()


def _call_of(frame: FrameType) -> LibraryCall:
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    given = {name: values[name] for name in names if name in values}
    owner = given.get("self") if names[:1] == ("self",) else None
    if kind_of_value(owner) != "module":
        return LibraryCall(code.co_name, None, given)
    del given["self"]
    return LibraryCall(code.co_name, owner, given)
