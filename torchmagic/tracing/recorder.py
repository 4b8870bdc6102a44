"""Keeps an event of an operation: where the user called it, what it was given, and what explains its result."""

from __future__ import annotations

import ast
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any, Final

from torchmagic.source.user_files import is_user_file
from torchmagic.tracing.calls import Call
from torchmagic.tracing.events import Event, Kind, Operand
from torchmagic.tracing.evidence import OWN_NAN
from torchmagic.tracing.expressions import expression_at, operand_texts, text_of
from torchmagic.tracing.finite import NAN
from torchmagic.tracing.lineage import Lineage
from torchmagic.tracing.names import plain_name_of_node
from torchmagic.tracing.operands import operands_of, saved_operands
from torchmagic.tracing.sites import Site, Sites, frame_of_thread, user_frame, variables_of
from torchmagic.tracing.steps import Steps
from torchmagic.values import count_tensor

_MOST_EVENTS: Final = 100_000
_MOST_DESCRIBED: Final = 64
_MOST_PLACES: Final = 1_000
_LARGEST_COUNTED: Final = 1 << 24
_ENGINE: Final = f"{os.sep}torch{os.sep}autograd{os.sep}"


class Recorder:
    """Writes the events of a watch into its lineage.

    `forward` are the user's lines of forward operations, by the sequence number of their node in the graph.
    """

    def __init__(self, lineage: Lineage, steps: Steps, sites: Sites, forward: dict[int, Site]) -> None:
        self._lineage, self._steps = lineage, steps
        self.sites, self.forward = sites, forward
        self._thread = threading.get_ident()
        self._node = sys.modules["torch"]._C._current_autograd_node  # noqa: SLF001 - seen in torch 2.4 to 2.13
        self._described = 0
        self._places: set[tuple[str, int, str]] = set()

    def keep(
        self,
        call: Call,
        kind: Kind,
        worst: int,
        parents: list[int] | tuple[()] = (),
        targets: list[Any] | tuple[()] = (),
    ) -> int:
        """Keep that an operation made something bad, and return the event's number."""
        events = self._lineage.events
        if len(events) >= _MOST_EVENTS:
            return min(parents) if parents else len(events) - 1
        node, top = self._node(), self.frame()
        own_code = node is not None and not _is_called_by_engine(top)
        operands: tuple[Operand, ...] = ()
        expression, counts = "", None
        site = self.sites.site_of(top)
        tells = kind != "passed" or self._is_crossing(node, parents)
        if tells and self._is_to_be_described(call.plan.name, site, node.name() if node is not None else ""):
            written = self._written(node, top, own_code=own_code)
            expression = text_of(written)
            # Tensors inside a transform such as `vmap` do not tell all of it.
            with suppress(RuntimeError, TypeError, NotImplementedError, AttributeError):
                operands = self._operands(call, None if own_code else node, top, written)
            if targets and targets[0].numel() <= _LARGEST_COUNTED:
                counts = count_tensor(targets[0])
        events.append(
            Event(
                number=len(events),
                kind=kind,
                operation=call.plan.name,
                has_nan=worst == NAN,
                site=site,
                parents=tuple(parents),
                operands=operands,
                counts=counts,
                dtype=str(targets[0].dtype).removeprefix("torch.") if targets else "",
                node=node.name() if node is not None else "",
                forward=self.forward.get(node._sequence_nr()) if node is not None else None,  # noqa: SLF001
                modules=tuple(map(weakref.ref, _running_modules(top))) if kind == "born" else (),
                step=self._steps.backward_passes,
                expression=expression,
                own_code=own_code,
            )
        )
        return len(events) - 1

    def _is_to_be_described(self, operation: str, site: Site, node: str) -> bool:
        """Tell whether an event is one of the first, or the first of its place: a loop repeats the others."""
        place = (operation, id(site), node)
        if place in self._places and self._described >= _MOST_DESCRIBED:
            return False
        self._places.add(place)
        self._described += 1
        return len(self._places) <= _MOST_PLACES

    def frame(self) -> FrameType:
        """Return the frame to look for the user's lines from: a backward pass on a device has a thread of its own."""
        top = sys._getframe(1)  # noqa: SLF001
        if threading.get_ident() != self._thread and user_frame(top) is None:
            return frame_of_thread(self._thread) or top
        return top

    def _written(self, node: Any, top: FrameType, *, own_code: bool) -> ast.expr | ast.AugAssign | None:
        """Return the expression on the user's line that an operation, or its forward one, belongs to."""
        frame = user_frame(top)
        site = self.forward.get(node._sequence_nr()) if node is not None and not own_code else None  # noqa: SLF001
        if not site and frame is not None:
            site = ((frame.f_code, frame.f_lasti),)
        return expression_at(*site[0]) if site else None

    def _operands(self, call: Call, node: Any, top: FrameType, written: Any) -> tuple[Operand, ...]:
        """Return the operands of an operation; of one in a backward pass, those of the forward one that explain it."""
        if node is not None:
            operation = plain_name_of_node(node.name())
            saved = saved_operands(node, operation, operand_texts(written, operation))
            if saved:
                return saved
        texts = operand_texts(written, call.plan.name) if node is None else []
        if call.plan.name in OWN_NAN:
            return (Operand(next(iter(texts), ""), "", OWN_NAN[call.plan.name]),)
        module = next(_running_modules(top), None)
        operands = operands_of(call.plan.name, call.given, user_frame(top), module, call.plan.writes)
        return tuple(
            operand if operand.name else replace(operand, name=text)
            for operand, text in zip(operands, [*texts, *[""] * len(operands)], strict=False)
        )

    def _is_crossing(self, node: Any, parents: Sequence[int]) -> bool:
        """Tell whether a backward pass meets here what a forward pass made."""
        return node is not None and any(not self._lineage.events[parent].node for parent in parents)


def _is_called_by_engine(frame: FrameType | None) -> bool:
    """Tell whether autograd alone stands between an operation and the user's nearest line, `loss.backward()`."""
    while frame is not None:
        filename = frame.f_code.co_filename
        if _ENGINE in filename:
            return True
        if is_user_file(filename):
            return False
        frame = frame.f_back
    return True


def _running_modules(frame: FrameType | None) -> Iterator[Any]:
    """Yield the modules whose `forward` is running, the innermost first."""
    torch = sys.modules["torch"]
    known: set[int] = set()
    while frame is not None:
        code = frame.f_code
        if code.co_name == "forward" and code.co_varnames[:1] == ("self",):
            with variables_of(frame) as variables:
                owner = variables.get("self")
            if issubclass(type(owner), torch.nn.Module) and id(owner) not in known:
                known.add(id(owner))
                yield owner
        frame = frame.f_back
