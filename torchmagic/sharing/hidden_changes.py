"""Changes to memory that no live variable names as the text does: known by where the memory comes from."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.origins import Origin, meet, origins
from torchmagic.sharing.timeline import Timeline
from torchmagic.source import Step
from torchmagic.source.memory_paths import CONVERSIONS
from torchmagic.source.order import shared_loops
from torchmagic.source.refs import bare_name


def changes_behind(timeline: Timeline, holders: list[Holder], entries: list[Holder], capture: Capture) -> list[Change]:
    """Return the changes to what entries hold: those that name a holder, then those to where it was taken from."""
    group = list({id(holder.seen.obj): holder.seen for holder in holders}.values())
    named = timeline.changes_to(group, holders)
    is_written = any(
        seen.kind != "tensor" or timeline.facts.version_moved(seen.obj) for seen in (entry.seen for entry in entries)
    )
    if not is_written and not _is_converted(timeline, capture):
        return named
    taken = _taken(timeline, capture)
    hidden = [
        change
        for change in timeline.changes
        if change.kind == "write"
        and change.target is not None
        and change not in named
        and meet(taken, origins(timeline.program, change.target, change.step))
    ]
    return [*named, *hidden]


def _is_converted(timeline: Timeline, capture: Capture) -> bool:
    """Tell whether the captured memory is another library's, whose writes no version counter counts."""
    values = [capture.write.value, *(value for value, _ in _drawn_in(timeline, capture))]
    calls = (node for value in values if value is not None for node in ast.walk(value) if isinstance(node, ast.Call))
    return any(bare_name(call.func) in CONVERSIONS for call in calls)


def _taken(timeline: Timeline, capture: Capture) -> list[Origin]:
    """Return where the captured memory comes from, also through functions that the statement draws from."""
    found = origins(timeline.program, capture.write.value, capture.step)
    for value, step in _drawn_in(timeline, capture):
        found += origins(timeline.program, value, step)
    return found


def _drawn_in(timeline: Timeline, capture: Capture) -> Iterator[tuple[ast.expr, Step]]:
    """Yield what functions that run inside the capturing statement hand out, with the statements."""
    for scope in timeline.program.scopes:
        if scope.parent is not None:
            for value, step in timeline.program.results.get(scope, ()):
                if any(capture.step in context.steps for context in timeline.program.contexts(step)):
                    yield value, step


def writes_between_drawing(timeline: Timeline, change: Change, capture: Capture) -> bool:
    """Tell whether a statement collects what a function hands out several times, and a change writes in between."""
    outer = max((len(context.loops) for context in capture.contexts), default=0) if not capture.kept else 0
    written = origins(timeline.program, change.target, change.step) if change.target is not None else []
    for value, step in _drawn_in(timeline, capture):
        together = max(
            (
                shared_loops(a, b)
                for a in change.contexts
                if capture.step in a.steps
                for b in timeline.program.contexts(step)
                if capture.step in b.steps
            ),
            default=0,
        )
        if together > outer and meet(written, origins(timeline.program, value, step)):
            return True
    return False
