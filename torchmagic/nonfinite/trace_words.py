"""What a report says of a traced outbreak: the operation, what it was given, the way from there, the steps before."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from torchmagic.checking.facts import Facts
from torchmagic.checking.usercode import is_text_of
from torchmagic.nonfinite.traced import OVERFLOWING, Tale, place_of
from torchmagic.tracing.events import Event, Operand
from torchmagic.tracing.evidence import DIVISIONS
from torchmagic.tracing.names import called_as, is_called, of_node, plain_name_of_node, short_name, spelled, spelled_in
from torchmagic.tracing.sites import Spot
from torchmagic.tracing.steps import Growth, sparkline

_SAYS_NOTHING = frozenset(
    {
        "view", "_unsafe_view", "unsafe_view", "reshape", "clone", "detach", "expand", "t", "transpose", "permute",
        "unsqueeze", "squeeze", "slice", "select", "alias", "_to_copy", "copy_", "contiguous", "select_backward",
        "slice_backward", "as_strided", "split", "unbind", "_local_scalar_dense",
    }
)  # fmt: skip
_MOST_ON_WAY = 10
_OF_DTYPE = {"float16": 65504.0, "bfloat16": 3.39e38, "float32": 3.4e38, "float64": 1.8e308}


def birth_words(facts: Facts, tale: Tale) -> str:
    """Say in which operation it began, and what of the operands explains it."""
    origin = tale.origin
    if origin.kind == "unwritten":
        return "it was read from `torch.empty` before anything was written there"
    name = spelled_in(origin.expression, origin.operation)
    what = f"`{name}`" if not name.startswith("the ") else name
    if origin.node:
        forward = of_node(origin.node)
        place = f" in line {tale.backward_line}" if tale.backward_line is not None else ""
        if tale.hidden:
            return f"the loss is finite, but the backward pass{place} meets it again in the derivative of `{forward}`"
        if origin.own_code:
            own = f"`{origin.expression}`" if origin.expression else f"`{name}`"
            return f"born in line {tale.line} in {own}, in the backward pass{place}{_because(origin)}"
        whole = f"`{origin.expression}`" if is_told_by(origin, plain_name_of_node(origin.node)) else f"`{forward}`"
        line = f" (line {tale.line})" if tale.line is not None else ""
        return f"born in the backward pass{place}, in the derivative of {whole}{line}{_because(origin)}"
    shown = f"`{origin.expression}`" if is_told_by(origin, origin.operation) else ""
    where = _from_line(facts, tale)
    module = module_path(facts, origin)
    inside = f" of `{module}`" if module and not shown else ""
    inside += f", called by `{origin.expression}`" if origin.expression and not shown else ""
    birth = f"born{where} in {shown or what}{inside}{_because(origin)}"
    return f"{birth}; the loss does not show it, but its gradient does" if tale.hidden else birth


def _from_line(facts: Facts, tale: Tale) -> str:
    """Return the line of the cell that the operation stands in, or that led to it."""
    if tale.line is None:
        return ""
    inner = tale.spots[0] if tale.spots else None
    is_there = inner is None or facts.source is None or is_text_of(inner.filename, facts.source)
    return f" in line {tale.line}" if is_there else f" below line {tale.line}"


def read_words(tale: Tale) -> str:
    """Say how bad values came in with the data: written in a line, or read from memory that held them."""
    origin = tale.origin
    where = f" in line {tale.line}" if tale.line is not None else ""
    if origin.kind == "written":
        return f"they were written{where}: find those rows, and fill or drop them"
    operand = next((operand for operand in origin.operands if operand.name), None)
    counts = origin.counts
    first = f", first at {list(counts.first)}" if counts is not None and counts.first else ""
    held = f"`{operand.name}`" if operand is not None else "the tensor"
    return (
        f"`{spelled(origin.operation)}`{where} was the first to read them, from {held}{first}: fill or drop those rows"
    )


def is_told_by(origin: Event, operation: str) -> bool:
    """Tell whether the expression on the line is the operation itself, and not something that led to it."""
    expression, name = origin.expression, short_name(operation).strip("_")
    is_there = (
        re.search(rf"(?<!\w){re.escape(name)}_*(?!\w)", expression) if name.isidentifier() else name in expression
    )
    return bool(expression) and (bool(is_there) or bool(called_as(operation, expression)))


def _because(origin: Event) -> str:
    """Say which values explain the result, or how large they were."""
    seen = list(dict.fromkeys(_seen(origin, operand) for operand in origin.operands if operand.seen))
    if seen:
        return f": {'; '.join(seen)}"
    largest = max(origin.operands, key=lambda operand: operand.largest, default=None)
    if largest is None or not largest.largest:
        return ""
    whose = f" of `{largest.name}`" if largest.name else " that it was given"
    limit = _OF_DTYPE.get(origin.dtype)
    is_huge = largest.largest > (limit or math.inf) ** 0.5
    if not is_huge and (origin.has_nan or origin.operation not in OVERFLOWING):
        return ""
    end = f", and {origin.dtype} ends at {limit:,.0f}" if origin.dtype == "float16" and limit else ""
    return f": it overflowed, the largest value{whose} is {_number(largest.largest)}{end}"


def _seen(origin: Event, operand: Operand) -> str:
    """Say what was seen of an operand, by its name or else by what was done with it."""
    if not operand.name:
        return _seen_without_name(origin, operand.seen)
    if operand.seen.startswith("it "):
        return f"`{operand.name}` {operand.seen.removeprefix('it ')}"
    return (
        f"{operand.seen.replace(' values ', f' values of `{operand.name}` ', 1)}"
        if " values " in operand.seen
        else (f"`{operand.name}`: {operand.seen}")
    )


def _seen_without_name(origin: Event, seen: str) -> str:
    if " values " not in seen and not seen.startswith("it is"):
        return seen
    if origin.operation in DIVISIONS:
        done = "divides by"
    elif origin.node and not origin.own_code and not is_called(plain_name_of_node(origin.node), origin.operation):
        done = f"takes the `{short_name(origin.operation)}` of"
    else:
        return f"{seen} in what it was given" if " values " in seen else seen
    if " values " in seen:
        return seen.replace(" values ", f" values that it {done} ", 1)
    return f"what it {done} is {seen.removeprefix('it is ')}"


def tale_details(facts: Facts, tale: Tale) -> Iterator[str]:
    """Yield the sentences that unfold below the finding: where, the way, the steps before."""
    where = _where(facts, tale.spots)
    if where:
        yield where
    if tale.origin.node and tale.backward_line is not None and tale.line not in (None, tale.backward_line):
        yield f"The backward pass that met it starts in line {tale.backward_line}."
    yield from filter(None, (_given(facts, tale), _way(tale)))
    if tale.growth is not None:
        yield growth_words(tale.growth)
    before = tale.origin.step - bool(tale.origin.node)
    if before > 0 and tale.growth is None:
        passes = "1 backward pass" if before == 1 else f"{before:,} backward passes"
        yield f"{passes} of this cell came before it."


def _where(facts: Facts, told: tuple[Spot, ...]) -> str:
    """Return the way through the user's functions when the operation stands in one: innermost first."""
    if not told or (len(told) == 1 and not told[0].function):
        return ""
    parts = [_place(facts, spot) for spot in told]
    calls = "".join(f", called from {place}" for place in parts[1:])
    return f"It stands in {parts[0]}{calls}."


def _place(facts: Facts, spot: Spot) -> str:
    inside = f" in `{spot.function}`" if spot.function else ""
    if facts.source is not None and is_text_of(spot.filename, facts.source):
        return f"line {spot.line}{inside}"
    title = facts.title_of(spot.filename)
    name = f"cell {title}" if title else f"`{spot.filename.replace(chr(92), '/').rpartition('/')[2]}`"
    return f"{name}, line {spot.line}{inside}"


def _way(tale: Tale) -> str:
    """Return "log -> mean -> loss -> weight.grad", from the operation to the variables that it reached."""
    steps: list[str] = []
    for event in tale.way:
        name = tale.names.get(place_of(event))
        if event.operation not in _SAYS_NOTHING and event.kind not in ("written", "entered"):
            in_derivative = event.node and not event.own_code
            word = f"derivative of {of_node(event.node)}" if in_derivative else short_name(event.operation)
            if not steps or steps[-1] != word:
                steps.append(word)
        if name is not None and name not in steps:
            steps.append(name)
    steps += [name for name in tale.then if name not in steps]
    if len(steps) < 2:
        return ""
    if len(steps) > _MOST_ON_WAY:
        steps = [*steps[: _MOST_ON_WAY // 2], "...", *steps[-_MOST_ON_WAY // 2 :]]
    return f"The way: {' -> '.join(steps)}."


def _given(facts: Facts, tale: Tale) -> str:
    """Return what the operation was given: names, dtypes and sizes."""
    if tale.origin.node or tale.origin.kind == "written" or not tale.origin.operands:
        return ""
    module = module_path(facts, tale.origin)
    parts = [f"{_operand_name(operand, module)}{operand.words}" for operand in tale.origin.operands if operand.words]
    return f"It was given {'; '.join(parts)}." if parts else ""


def _operand_name(operand: Operand, module: str) -> str:
    if operand.attribute and module:
        return f"`{module}.{operand.attribute}`: "
    return f"`{operand.name}`: " if operand.name else ""


def module_path(facts: Facts, event: Event) -> str:
    """Return the path of the module that was running, the innermost that the variables reach; empty without one."""
    for reference in event.modules:
        module = reference()
        seen = facts.found.find(module) if module is not None else None
        if seen is not None:
            return seen.subject
    return ""


def growth_words(growth: Growth) -> str:
    """Say how a number grew, and where it left the ground."""
    last = growth.numbers[-1]
    end = (
        ""
        if math.isfinite(last)
        else f", and {'NaN' if math.isnan(last) else 'infinite'} in step {len(growth.numbers)}"
    )
    return (
        f"The {growth.what} was {_number(growth.first)} in step 1, left the ground in step {growth.left_the_ground} "
        f"and reached {_number(growth.largest)}{end}: {sparkline(growth.numbers)}"
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e6 else f"{value:.3g}"
