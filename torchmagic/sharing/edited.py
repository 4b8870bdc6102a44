"""A function that edits what is stored and hands it out: a data set whose samples change when they are read."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.pairs import Pair, first_verdict
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values
from torchmagic.sharing.words import doer, now_holds
from torchmagic.source import Ref, reads
from torchmagic.source.memory_paths import last_bind, memory_ref
from torchmagic.source.writes import is_inplace_name

SHAPES = frozenset(("attr", name) for name in ("shape", "dtype", "device", "ndim", "size", "dim", "numel"))


def judge_edits(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield the first verdict about a function that edits what it hands out."""
    yield from first_verdict(timeline, holders, changes, (_edited_on_the_way,))


def _edited_on_the_way(pair: Pair) -> Sharing | None:
    timeline, new, stored = pair.timeline, pair.new, pair.old
    capture, first = timeline.capture_of(new), timeline.capture_of(stored)
    if capture is None or new.place.root == stored.place.root or not timeline.is_newer(new, stored):
        return None
    for change in pair.writes:
        handed_out_too = first is not None and any(first.outer in context.steps for context in change.contexts)
        if (
            change.target is not None
            and not handed_out_too
            and _edits_what_it_returns(timeline, change, capture)
            and change.names(stored)
        ):
            return _verdict(pair, change, change.target)
    return None


def _edits_what_it_returns(timeline: Timeline, change: Change, capture: Capture) -> bool:
    """Tell whether a call that made a capture wrote in place what it had been given, or had taken from its object."""
    scope = change.step.scope
    if isinstance(scope.node, ast.Module) or change.target is None or is_inplace_name(scope.name):
        return False
    if scope.class_name is not None and scope.parameters[:1] == [change.target.root]:
        return False  # an object that updates its own state says so
    if gives_first_values(timeline, change) and scope.name != "__getitem__":
        return False  # that is what such a function is for
    return any(capture.outer in context.steps for context in change.contexts)


def gives_first_values(timeline: Timeline, change: Change) -> bool:
    """Tell whether a change does not mind what it writes over, and nothing was worked out from that before."""
    node = change.step.node
    if change.target is None or (isinstance(node, ast.Assign) and _reads_root(node.value, change.target)):
        return False
    if not change.fills and not isinstance(node, ast.Assign):
        return False
    return not any(
        step.scope is change.step.scope
        and step.order < change.step.order
        and isinstance(step.node, ast.Assign)
        and memory_ref(step.node.value) is None
        and _reads_root(step.node.value, change.target)
        for step in timeline.program.steps
    )


def _reads_root(value: ast.expr, target: Ref) -> bool:
    """Tell whether an expression reads the values of what a target begins with, and not its shape alone."""
    return any(read.root == target.root and not any(step in SHAPES for step in read.steps) for read in reads(value))


def _verdict(pair: Pair, change: Change, target: Ref) -> Sharing:
    timeline, new, stored = pair.timeline, pair.new, pair.old
    bound = last_bind(timeline.program, target.root, change.step.scope, change.step)
    step, value = (bound.step, bound.value) if bound is not None else (change.step, None)
    often = " each time it is read" if change.step.scope.name == "__getitem__" else ""
    return Sharing(
        subject=new.text,
        message=f"`{new.text}`: the same memory as `{stored.text}`, which {doer(change)} edits in place{often}"
        f"{now_holds(stored, change, timeline)}; edit a copy",
        line=timeline.line_of(step),
        others=(stored.text,),
        fix=copied_value(timeline, step, value, stored.seen, pair.group),
        evidence={"written_on_line": change.line, "first_values": first_values(stored.seen)},
        topic=(new.container or new.place).text,
    )
