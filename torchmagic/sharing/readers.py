"""Stored data that changes when it is read: by `__getitem__`, a transform, a collate function, a generator."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.namespace import Place
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value
from torchmagic.sharing.drawn import PROTOCOL
from torchmagic.sharing.edited import gives_first_values
from torchmagic.sharing.holders import Holder, holders_of
from torchmagic.sharing.origins import meet, origins
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values
from torchmagic.sharing.words import doer, now_holds
from torchmagic.source import Context, Step, reads
from torchmagic.source.memory_paths import last_bind
from torchmagic.source.scopes import Scope

_MOST_PLACES = 12


def judge_readers(timeline: Timeline) -> Iterator[Sharing]:
    """Yield a verdict for each change by which a function that reads stored data edits it and hands it out."""
    for change in timeline.changes:
        if change.kind == "write" and change.target is not None and not isinstance(change.step.scope.node, ast.Module):
            readings = [context for context in change.contexts if _drawing_step(timeline, context) is not None]
            if readings and _is_handed_out(timeline, change, readings):
                stored = next(_stored(timeline, change, readings), None)
                if stored is not None:
                    yield _verdict(timeline, change, stored)


def _drawing_step(timeline: Timeline, context: Context) -> Step | None:
    """Return the statement that draws, or takes an item, when a change is made while that is done."""
    for outer, inner in zip(context.steps, context.steps[1:], strict=False):
        if _is_reader(timeline, inner.scope):
            return outer
    return None


def _is_reader(timeline: Timeline, scope: Scope) -> bool:
    if isinstance(scope.node, ast.Module):
        return False
    return scope.name in PROTOCOL or scope.yields or timeline.program.is_drawn(scope)


def _is_handed_out(timeline: Timeline, change: Change, readings: list[Context]) -> bool:
    """Tell whether what a change edits goes into what one of the functions on the way to it hands out."""
    program, target = timeline.program, change.target
    own = change.step.scope.class_name is not None and change.step.scope.parameters[:1] == [getattr(target, "root", "")]
    if gives_first_values(timeline, change) or (own and change.step.scope.name != "__getitem__"):
        return False
    written = origins(program, target, change.step)
    scopes = {id(step.scope): step.scope for context in readings for step in context.steps}
    return any(
        meet(written, origins(program, read, step))
        for scope in scopes.values()
        if not isinstance(scope.node, ast.Module)
        for value, step in program.results.get(scope, ())
        for read in reads(value)
    )


def _stored(timeline: Timeline, change: Change, readings: list[Context]) -> Iterator[Holder]:
    """Yield the live tensors and arrays that a change edits, that were there before, and that are read again."""
    draws = {id(step): step for context in readings if (step := _drawing_step(timeline, context)) is not None}
    often = len(draws) > 1 or any(_outer_loops(context, draws) for context in readings)
    for seen in timeline.facts.found.of_kind("tensor", "array"):
        if seen.kind == "tensor" and not timeline.facts.version_moved(seen.obj):
            continue
        for holder in holders_of(timeline.facts.found, [seen], _MOST_PLACES):
            if holder.is_machinery or holder.place.root in timeline.loop_variables or not change.names(holder):
                continue
            capture = timeline.capture_of(holder)
            if capture is not None and any(_made_by(capture.step, context, draws) for context in readings):
                continue
            if often or any(id(step) not in draws for step in timeline.reads_after(holder, [change])):
                yield holder


def _outer_loops(context: Context, draws: dict[int, Step]) -> bool:
    """Tell whether the statement that draws runs in a loop."""
    for step in context.steps:
        if step.loops:
            return True
        if id(step) in draws:
            return False
    return False


def _made_by(step: Step, context: Context, draws: dict[int, Step]) -> bool:
    """Tell whether a statement gets its memory from the reading itself, or runs within it."""
    inside = any(step.scope is other.scope for other in context.steps if not isinstance(other.scope.node, ast.Module))
    return inside or step in context.steps or id(step) in draws


def _verdict(timeline: Timeline, change: Change, stored: Holder) -> Sharing:
    target = change.target
    bound = last_bind(timeline.program, target.root, change.step.scope, change.step) if target is not None else None
    is_for = bound is None or bound.how == "for" or not bound.step.scope.unit.is_cell
    step, value = (change.step, None) if is_for or bound is None else (bound.step, bound.value)
    container: Place = stored.container or stored.place
    return Sharing(
        subject=stored.text,
        message=f"`{stored.text}`: {doer(change)} edits it in place each time it is read"
        f"{now_holds(stored, change, timeline)}; edit a copy",
        line=timeline.line_of(step),
        others=(container.text,),
        fix=copied_value(timeline, step, value, stored.seen, [stored]),
        evidence={"written_on_line": change.line, "first_values": first_values(stored.seen)},
        topic=f"{container.text} edited",
        told_by_line=True,
    )
