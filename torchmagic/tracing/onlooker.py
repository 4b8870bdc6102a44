"""Looks at the results of a cell's operations, and has an event kept of each that is not finite."""

from __future__ import annotations

import ast
import math
import sys
from dataclasses import replace
from types import FrameType
from typing import Any, Final

from torchmagic.source.refs import bare_name
from torchmagic.tracing.calls import Call, tensors_in
from torchmagic.tracing.events import Kind
from torchmagic.tracing.evidence import OWN_NAN
from torchmagic.tracing.expressions import expression_at
from torchmagic.tracing.finite import FINITE, INFINITE, NAN, Reader
from torchmagic.tracing.lineage import Lineage, has_address, is_tensor
from torchmagic.tracing.plans import LOOKS, READS, SEEDS, Plan
from torchmagic.tracing.recorder import Recorder
from torchmagic.tracing.sites import Site, Sites, user_frame
from torchmagic.tracing.steps import Steps

_MOST_LINES: Final = 400_000
_MOST_NODES: Final = 5


class Onlooker:
    """Looks at the results of operations and tells what made them bad: the operation itself, or what it was given."""

    def __init__(self, lineage: Lineage, steps: Steps) -> None:
        self.lineage, self.steps = lineage, steps
        self.reader, self.sites = Reader(), Sites()
        self.forward: dict[int, Site] = {}
        """The user's lines of forward operations, by the sequence number of their node in the graph."""
        self.sequence = -1
        self.rests = False
        """While an optimizer steps: its result is looked at, not its operations. The next forward operation ends it."""
        self._recorder = Recorder(lineage, steps, self.sites, self.forward)

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
        targets = written or list(tensors_in(call.out))
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
        self.lineage.mark(parameter, self._recorder.keep(step, "born", state, (), [parameter]))

    def _event(self, call: Call, targets: list[Any], worst: int) -> int:
        """Keep the event that made bad values, and return its number."""
        plan = call.plan
        if plan.leaves_unwritten:
            return self._recorder.keep(call, "unwritten", worst)
        if plan.makes and (name := self._makes_its_own_nan(call)):
            return self._recorder.keep(call._replace(plan=replace(plan, name=name)), "born", worst)
        if plan.makes or (plan.fills and call.has_bad_number):
            known = self._known_by_address(call.out) if plan.makes else None
            return known if known is not None else self._recorder.keep(call, "written", worst)
        parents, state = self._parents(call, worst)
        if not parents and call.has_bad_number:
            return self._recorder.keep(call, "written", worst)
        kind: Kind = "born" if not parents or (worst == NAN and state != NAN) else "passed"
        return self._recorder.keep(call, kind, worst, parents, targets)

    def _known_by_address(self, tensor: Any) -> int | None:
        """Return the event that made memory bad which numpy handed on, and torch took as another storage."""
        return self.lineage.event_at(tensor.data_ptr()) if has_address(tensor) else None

    def _makes_its_own_nan(self, call: Call) -> str:
        """Return the name of the function of torch that wrote the NaN which a line seems to write, or nothing."""
        frame = user_frame(self._recorder.frame()) if call.plan.name == "scalar_tensor" else None
        written = expression_at(frame.f_code, frame.f_lasti) if frame is not None else None
        name = bare_name(written.func) if isinstance(written, ast.Call) else ""
        return name if name in OWN_NAN else ""

    def _parents(self, call: Call, worst: int) -> tuple[list[int], int]:
        """Return the events behind the bad operands of an operation, and the worst that these operands hold."""
        parents: list[int] = []
        state = FINITE
        overwritten = {id(target) for target in call.written()}
        operands = [part for argument in call.given for part in tensors_in(argument)]
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
        number = self._recorder.keep(call._replace(args=(operand,), kwargs={}), "entered", state, (), [operand])
        self.lineage.mark(operand, number)
        return number


def _is_seed() -> bool:
    """Tell whether it is autograd that makes a tensor of ones, to begin a backward pass from."""
    frame: FrameType | None = sys._getframe(3)  # noqa: SLF001
    return frame is not None and frame.f_code.co_name == "_make_grads"
