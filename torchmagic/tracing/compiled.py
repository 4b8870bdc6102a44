"""Compiled code, which torch runs uncompiled under a dispatch mode: say so, and let it be compiled again afterwards."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from types import FunctionType
from typing import Any

_MARK = "_torchdynamo_orig_callable"
"""What `torch.compile` leaves on a function (seen in torch 2.4 to 2.13)."""


def compiled_names(variables: Mapping[str, Any], read: Collection[str]) -> Iterator[str]:
    """Yield the names among those that a cell reads whose functions or modules are compiled."""
    if "torch._dynamo" not in sys.modules:
        return
    for name in sorted(read):
        value = variables.get(name)
        kind = type(value)
        is_module = kind.__name__ == "OptimizedModule" and kind.__module__.startswith("torch._dynamo")
        if is_module or (kind is FunctionType and _MARK in value.__dict__):
            yield name


def unseen_words(names: list[str]) -> list[str]:
    """Say that compiled code ran uncompiled."""
    if not names:
        return []
    shown = " and ".join(f"`{name}`" for name in names[:3])
    return [
        f"the compilation of {shown}: torch runs it uncompiled while a cell is followed, and compiles it afterwards"
    ]


_COUNTER = "set_fullgraph_compiled_frame_count"
"""What TorchDynamo counts the compiled functions of a `fullgraph=True` call with (seen in torch 2.13)."""


def allow_uncompiled() -> None:
    """Let a function that must be compiled as a whole run uncompiled, which is an error of TorchDynamo's otherwise."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    count = getattr(frames, _COUNTER, None)
    if count is None or hasattr(count, "counts"):
        return

    def stand_in(number: int) -> int:
        if number < 0:  # a call that began before us ends
            count(number)
            return 1
        return 0

    stand_in.counts = count  # type: ignore[attr-defined]
    setattr(frames, _COUNTER, stand_in)


def demand_compiled() -> None:
    """Undo `allow_uncompiled`."""
    frames = sys.modules.get("torch._dynamo.eval_frame")
    count = getattr(getattr(frames, _COUNTER, None), "counts", None)
    if count is not None:
        setattr(frames, _COUNTER, count)


class Recompilation:
    """Notes the code that torch leaves uncompiled for the sake of a mode, which it would never compile again.

    Private names of TorchDynamo, seen in torch 2.4 to 2.13: `convert_frame.input_codes`, to which it adds the code that
    it is about to decide on, and `reset_code`, which makes it decide anew. Where they are missing, nothing is done.
    """

    def __init__(self) -> None:
        self._codes: dict[int, Any] = {}
        self._tracker: Any = None

    def begin(self) -> None:
        """Note what is decided on from now on."""
        frames = sys.modules.get("torch._dynamo.convert_frame")
        tracker = getattr(frames, "input_codes", None)
        if tracker is not None and hasattr(tracker, "add"):
            self._tracker = tracker
            frames.input_codes = self  # type: ignore[union-attr]

    def add(self, code: Any) -> None:
        """Stand in for TorchDynamo's own record, which gets the code too."""
        self._codes[id(code)] = code
        self._tracker.add(code)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tracker, name)

    def __contains__(self, code: Any) -> bool:
        return code in self._tracker

    def end(self) -> None:
        """Let the code that was decided on be decided on again."""
        frames = sys.modules.get("torch._dynamo.convert_frame")
        if self._tracker is not None:
            frames.input_codes = self._tracker  # type: ignore[union-attr]
            codes = list(self._codes.values())
        else:  # imported while the cell ran: all that it knows it met then
            codes = [reference() for reference in getattr(getattr(frames, "input_codes", None), "seen", ())]
        reset = getattr(sys.modules.get("torch._C._dynamo.eval_frame"), "reset_code", None)
        if reset is not None:
            for code in codes:
                if code is not None:
                    reset(code)
        self._codes.clear()
