"""What the trace of a cell knows of an outbreak: the operation it began with, and the way from there."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from types import CodeType

from torchmagic.checking.facts import Facts
from torchmagic.checking.usercode import is_text_of
from torchmagic.nonfinite.bad_values import BadValue
from torchmagic.nonfinite.causes import Cause
from torchmagic.nonfinite.outbreaks import Outbreak
from torchmagic.tracing.events import Event
from torchmagic.tracing.evidence import SOFTMAXES
from torchmagic.tracing.names import is_called, plain_name_of_node
from torchmagic.tracing.sites import Site, Spot, spots
from torchmagic.tracing.steps import Growth
from torchmagic.tracing.trace import Trace

OVERFLOWING = frozenset(
    {
        "add", "add_", "sub", "sub_", "rsub", "mul", "mul_", "mm", "bmm", "addmm", "baddbmm", "mv", "dot", "sum",
        "mean", "cumsum", "prod", "cumprod", "pow", "square", "convolution", "linear", "mse_loss", "linalg_vector_norm",
        "lerp_",
        "addcmul", "addcmul_", "addcdiv", "addcdiv_", "native_batch_norm", "var", "std", "norm", "smooth_l1_loss",
        "huber_loss", "_foreach_mul_", "_foreach_add_", "_foreach_norm", "_foreach_addcdiv_", "mse_loss_backward",
        "convolution_backward", "native_batch_norm_backward", "matmul", "exp", "expm1", "exp2", "cosh", "sinh",
    }
)  # fmt: skip
"""Operations whose results overflow when their operands are large."""

_EXPONENTIAL = frozenset({"exp", "expm1", "exp2", "cosh", "sinh"})
_LONGEST_WAY = 60
_LARGE = 1e6
"""Operands from which on an overflow is one of numbers that grew; smaller ones overflow in an exponential only."""


Place = tuple[str, CodeType | None, int, str, bool]
"""What tells operations of a program apart: name, code, instruction, node of the graph, and whether it only read."""


@dataclass(frozen=True)
class Tale:
    """How an outbreak began.

    `origin` is the event to blame, and `way` the operations from there on in the same step: to the loss, or to a
    gradient where the origin is an operation of a backward pass. `names` are the variables by the place that fills
    them, and `then` those that were reached after the way's end. `line` is the line of the cell, `backward_line` that
    of the backward pass where the origin is one of its operations, `spots` the user's lines from the innermost on.
    `hidden` tells that the loss was finite all the same. `growth` is there for an explosion.
    """

    origin: Event
    way: tuple[Event, ...]
    names: dict[Place, str]
    then: tuple[str, ...]
    cause: Cause
    line: int | None
    backward_line: int | None
    spots: tuple[Spot, ...]
    hidden: bool
    growth: Growth | None


def tale_of(facts: Facts, outbreak: Outbreak) -> Tale | None:
    """Return what the trace tells of an outbreak; None when the cell was not watched, or that memory not seen."""
    trace = facts.trace
    if trace is None or not trace.events:
        return None
    event = _event_of_root(facts, trace, outbreak)
    if event is None:
        return None
    origin, hidden = _origin(trace, trace.way_to(event))
    origin = _first_time(trace, origin)
    names: dict[Place, str] = {}
    for value in (outbreak.root, *outbreak.reached):
        own = _event_of(trace, value)
        if own is not None:
            names.setdefault(place_of(own), value.subject)
    growth = trace.steps.growth()
    cause = _cause(origin, growth, hidden=hidden)
    backward = _outermost(origin.site) if origin.node else None
    site = origin.forward if origin.node and origin.forward and not origin.own_code else origin.site
    return Tale(
        origin=origin,
        way=tuple(_way_from(trace, origin)),
        names=names,
        then=tuple(_reached_after(outbreak)),
        cause=cause,
        line=_line(facts, site),
        backward_line=_line(facts, backward) if backward is not None else None,
        spots=tuple(_told_spots(facts, site)),
        hidden=hidden,
        growth=growth if cause == "explosion" else None,
    )


def _event_of_root(facts: Facts, trace: Trace, outbreak: Outbreak) -> Event | None:
    """Return the event that made the root bad: by its memory, else by what it reached, else by the number read."""
    own = _event_of(trace, outbreak.root)
    if own is not None:
        return own
    if outbreak.root.role == "number":
        read = [event for event in trace.events if event.operation == "_local_scalar_dense"]
        return next((event for event in read if _line(facts, event.site) in outbreak.lines), read[0] if read else None)
    found = [event for value in outbreak.reached if (event := _event_of(trace, value)) is not None]
    return min(found, key=lambda event: event.number, default=None)


def _event_of(trace: Trace, value: BadValue) -> Event | None:
    return trace.event_of(value.obj) if value.role != "number" else None


def _origin(trace: Trace, way: list[Event]) -> tuple[Event, bool]:
    """Return the event to blame, and whether it is hidden from a finite loss."""
    masked = next((e for e in way if e.operation in SOFTMAXES and e.kind == "born" and _is_masked(e, way[0])), None)
    if masked is not None:
        return masked, False
    begin = _forward_of(trace, way[0]) or way[0]
    crossing = next((event for event in way if event.node), None)
    hidden = crossing is not None and not begin.node and _was_finite(trace, crossing)
    if hidden and begin.kind in ("written", "entered") and crossing is not None:
        return crossing, True
    return begin, hidden


def _forward_of(trace: Trace, begin: Event) -> Event | None:
    """Return the event of a forward operation whose derivative an event is of, where the loss showed it already."""
    if not begin.node or begin.own_code or begin.forward is None or _was_finite(trace, begin):
        return None
    name = plain_name_of_node(begin.node)
    earlier = (event for event in reversed(trace.events[: begin.number]) if event.step == begin.step - 1)
    return next(
        (
            e
            for e in earlier
            if e.kind == "born" and not e.node and e.site == begin.forward and is_called(e.operation, name)
        ),
        None,
    )


def _first_time(trace: Trace, origin: Event) -> Event:
    """Return the first event of the same place: in a loop the operation may have failed in many rounds before."""
    place = place_of(origin)
    return next(event for event in trace.events if event.kind == origin.kind and place_of(event) == place)


def _is_masked(event: Event, begin: Event) -> bool:
    """Tell whether a softmax was given nothing but markers of a mask; +Inf that was computed is to blame itself."""
    marks = ("masked", "-inf") if begin.kind == "born" else ("masked", "-inf", "+Inf")
    return any(mark in operand.seen for operand in event.operands for mark in marks)


def _was_finite(trace: Trace, event: Event) -> bool:
    """Tell whether the loss was finite from which the backward pass of an event started."""
    losses = trace.steps.losses
    return 0 < event.step <= len(losses) and math.isfinite(losses[event.step - 1])


def _cause(origin: Event, growth: Growth | None, *, hidden: bool) -> Cause:
    if origin.kind in ("entered", "written"):
        return "data"
    if origin.kind != "born" or hidden:
        return "design"
    if origin.dtype == "float16" or any(operand.seen for operand in origin.operands):
        return "design"
    if origin.operation not in OVERFLOWING:
        return "design"
    if origin.operation in _EXPONENTIAL:
        return "explosion" if growth is not None else "design"
    large = max((operand.largest for operand in origin.operands), default=0.0)
    return "explosion" if growth is not None or large > _LARGE else "design"


def _line(facts: Facts, site: Site) -> int | None:
    """Return the innermost line of a site that stands in the cell."""
    source = facts.source
    if source is None:
        return None
    return next((spot.line for spot in spots(site) if is_text_of(spot.filename, source)), None)


def _outermost(site: Site) -> Site:
    """Return the last frame of a site: where the cell itself called `backward()`."""
    return site[-1:]


def _told_spots(facts: Facts, site: Site) -> Iterator[Spot]:
    """Yield the spots of a site from the innermost to the first that stands in the cell at its top level."""
    for spot in spots(site):
        yield spot
        if facts.source is not None and is_text_of(spot.filename, facts.source) and not spot.function:
            return


def place_of(event: Event) -> Place:
    """Return what the same operation has in common in every round of a loop."""
    code, offset = event.site[0] if event.site else (None, 0)
    return event.operation, code, offset, event.node, event.kind == "entered"


def _way_from(trace: Trace, origin: Event) -> list[Event]:
    """Return the events that follow from the origin in its step: in the forward pass, or in the backward pass.

    From a forward operation that the loss hides, the way goes on in the backward pass.
    """
    children: dict[int, list[Event]] = defaultdict(list)
    for event in trace.events[origin.number + 1 :]:
        if event.step > origin.step + 1:
            break
        for parent in event.parents:
            children[parent].append(event)
    way = [origin]
    for backward in (False, True):
        while len(way) < _LONGEST_WAY:
            later = [event for event in children[way[-1].number] if bool(event.node) == backward]
            if not later:
                break
            way.append(later[0])
        if not origin.node and len(way) > 1:
            break
    return way


def _reached_after(outbreak: Outbreak) -> Iterator[str]:
    """Yield a gradient and its parameter, or a parameter, of those that an outbreak reached."""
    values = (outbreak.root, *outbreak.reached)
    gradient = next((value for value in values if value.role == "gradient"), None)
    if gradient is not None:
        yield gradient.subject
    own = gradient.subject.removesuffix(".grad") if gradient is not None else None
    parameters = [value.subject for value in values if value.role == "parameter"]
    yield from [name for name in parameters if own in (None, name)][:1]
