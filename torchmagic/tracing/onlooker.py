"""Looks at the results of a cell's operations, and keeps an event of each that is not finite."""

from __future__ import annotations

import ast
import math
import os
import sys
import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import FrameType
from typing import Any, Final, NamedTuple

from torchmagic.source.refs import bare_name
from torchmagic.source.user_files import is_user_file
from torchmagic.tracing.events import Event, Kind, Operand
from torchmagic.tracing.evidence import OWN_NAN
from torchmagic.tracing.expressions import expression_at, operand_texts, text_of
from torchmagic.tracing.finite import FINITE, INFINITE, NAN, Reader
from torchmagic.tracing.lineage import Lineage, has_address, is_tensor
from torchmagic.tracing.names import plain_name_of_node
from torchmagic.tracing.operands import operands_of, saved_operands
from torchmagic.tracing.plans import LOOKS, READS, SEEDS, Plan
from torchmagic.tracing.sites import Site, Sites, frame_of_thread, user_frame, variables_of
from torchmagic.tracing.steps import Steps
from torchmagic.values import count_tensor

_MOST_EVENTS: Final = 100_000
_MOST_DESCRIBED: Final = 64
_MOST_PLACES: Final = 1_000
_MOST_LINES: Final = 400_000
_MOST_NODES: Final = 5
_LARGEST_COUNTED: Final = 1 << 24
_ENGINE: Final = f"{os.sep}torch{os.sep}autograd{os.sep}"


class Call(NamedTuple):
    """An operation that ran: how to look at it, what it was given and what it returned."""

    plan: Plan
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    out: Any

    @property
    def given(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.args, *self.kwargs.values())

    def written(self) -> list[Any]:
        """Return the operands that it wrote into."""
        return [part for place in self.plan.writes for part in _tensors(self._argument(place))]

    def _argument(self, place: int | str) -> Any:
        if type(place) is int:
            return self.args[place] if place < len(self.args) else None
        return self.kwargs.get(str(place))


class Onlooker:
    """Looks at the results of operations and keeps what had to do with bad values."""

    def __init__(self, lineage: Lineage, steps: Steps) -> None:
        torch = sys.modules["torch"]
        self.lineage, self.steps = lineage, steps
        self.reader, self.sites = Reader(), Sites()
        self.forward: dict[int, Site] = {}
        """The user's lines of forward operations, by the sequence number of their node in the graph."""
        self.sequence = -1
        self.rests = False
        """While an optimizer steps: its result is looked at, not its operations. The next forward operation ends it."""
        self._thread = threading.get_ident()
        self._node = torch._C._current_autograd_node  # noqa: SLF001 - the only door, seen in torch 2.4 to 2.13
        self._described = 0
        self._places: set[tuple[str, int, str]] = set()

    def note_line(self, sequence: int) -> None:
        """Keep the user's line of the forward operations whose nodes were made since the last one was kept.

        A node takes its number just before its operation runs, so that the counter stands one further.
        """
        site = self.sites.site_below(sys._getframe(2))  # noqa: SLF001
        forward = self.forward
        forward[sequence - 1] = site
        self.rests = False
        for number in range(self.sequence, sequence - 1) if sequence - self.sequence < _MOST_NODES else ():
            forward[number] = site
        self.sequence = sequence
        if len(forward) > _MOST_LINES:
            for number in list(forward)[: _MOST_LINES // 2]:
                del forward[number]

    def look(self, call: Call) -> None:
        """Look at the result of an operation."""
        plan = call.plan
        if plan.look == READS:
            if type(call.out) is float and not math.isfinite(call.out):
                self._event(call, [], NAN if math.isnan(call.out) else INFINITE)
            return
        if plan.look == SEEDS and is_tensor(call.args[0]) and _is_seed():
            self.steps.begin_backward(call.args[0])
        written = call.written()
        targets = written or list(_tensors(call.out))
        states = [self.reader.state_of(target) for target in targets]
        worst = max(states, default=FINITE)
        if worst == FINITE:
            for target in written if self.lineage.marks else ():
                self.lineage.clear(target)
            return
        if plan.is_view and not plan.makes:
            return  # the memory is an operand's, and marked if it was seen to go bad
        number = self._event(call, targets, worst)
        for target, state in zip(targets, states, strict=True):
            if state != FINITE:
                self.lineage.mark(target, number)

    def note_step(self, optimizer: str, parameter: Any, state: int) -> None:
        """Keep that a step of an optimizer made a parameter bad out of a finite gradient."""
        step = Call(Plan(None, LOOKS, f"{optimizer}.step", (), is_view=False), (parameter.grad,), {}, parameter)
        self.lineage.mark(parameter, self._keep(step, "born", state, (), [parameter]))

    def _event(self, call: Call, targets: list[Any], worst: int) -> int:
        """Keep the event that made bad values, and return its number."""
        plan, given = call.plan, call.given
        if plan.leaves_unwritten:
            return self._keep(call, "unwritten", worst)
        if plan.makes and (name := self._makes_its_own_nan(call)):
            return self._keep(call._replace(plan=replace(plan, name=name)), "born", worst)
        if plan.makes or (plan.fills and _bad_number(given)):
            known = self._known_by_address(call.out) if plan.makes else None
            return known if known is not None else self._keep(call, "written", worst)
        parents, state = self._parents(call, worst)
        if not parents and _bad_number(given):
            return self._keep(call, "written", worst)
        kind: Kind = "born" if not parents or (worst == NAN and state != NAN) else "passed"
        return self._keep(call, kind, worst, parents, targets)

    def _known_by_address(self, tensor: Any) -> int | None:
        """Return the event that made memory bad which numpy handed on, and torch took as another storage."""
        return self.lineage.event_at(tensor.data_ptr()) if has_address(tensor) else None

    def _makes_its_own_nan(self, call: Call) -> str:
        """Return the name of the function of torch that wrote the NaN which a line seems to write, or nothing."""
        frame = user_frame(self._frame()) if call.plan.name == "scalar_tensor" else None
        written = expression_at(frame.f_code, frame.f_lasti) if frame is not None else None
        name = bare_name(written.func) if isinstance(written, ast.Call) else ""
        return name if name in OWN_NAN else ""

    def _parents(self, call: Call, worst: int) -> tuple[list[int], int]:
        """Return the events behind the bad operands of an operation, and the worst that these operands hold."""
        parents: list[int] = []
        state = FINITE
        overwritten = {id(target) for target in call.written()}
        operands = [part for argument in call.given for part in _tensors(argument)]
        for operand in operands:
            marked = self.lineage.event_of(operand)
            if id(operand) in overwritten:
                if marked is not None:
                    parents.append(marked)
                    state = max(state, NAN if self.lineage.events[marked].has_nan else INFINITE)
                continue
            if marked is None and state == NAN:
                continue
            own = self.reader.state_of(operand)
            if own == FINITE:
                continue
            state = max(state, own)
            parents.append(marked if marked is not None else self._entered(call, operand, own))
        if worst == NAN and state != NAN and call.plan.makes_no_nan:
            # Nothing that came in was NaN, so the memory that was written into must have been, unseen.
            for operand in operands:
                if id(operand) in overwritten and self.lineage.event_of(operand) is None:
                    parents.append(self._entered(call, operand, NAN))
                    state = NAN
        return list(dict.fromkeys(parents)), state

    def _entered(self, call: Call, operand: Any, state: int) -> int:
        """Keep that memory which no watched operation made bad was read; numpy's may be a marked tensor's."""
        known = self._known_by_address(operand)
        if known is not None:
            self.lineage.mark(operand, known)
            return known
        number = self._keep(call._replace(args=(operand,), kwargs={}), "entered", state, (), [operand])
        self.lineage.mark(operand, number)
        return number

    def _keep(
        self,
        call: Call,
        kind: Kind,
        worst: int,
        parents: list[int] | tuple[()] = (),
        targets: list[Any] | tuple[()] = (),
    ) -> int:
        events = self.lineage.events
        if len(events) >= _MOST_EVENTS:
            return min(parents) if parents else len(events) - 1
        node, top = self._node(), self._frame()
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
                step=self.steps.backward_passes,
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

    def _frame(self) -> FrameType:
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
        return node is not None and any(not self.lineage.events[parent].node for parent in parents)


def _is_seed() -> bool:
    """Tell whether it is autograd that makes a tensor of ones, to begin a backward pass from."""
    frame: FrameType | None = sys._getframe(3)  # noqa: SLF001
    return frame is not None and frame.f_code.co_name == "_make_grads"


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


def _tensors(value: Any) -> Iterator[Any]:
    if is_tensor(value):
        yield value
    elif type(value) in (list, tuple):
        for item in value:
            if is_tensor(item):
                yield item


def _bad_number(given: tuple[Any, ...]) -> bool:
    return any(type(value) is float and not math.isfinite(value) for value in given)


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
