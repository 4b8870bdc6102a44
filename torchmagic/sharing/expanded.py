"""A write into a tensor whose rows are one row, which `expand` made look like many."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Any

from torchmagic.checking import Facts
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.namespace.overlap import elements_and_places, repeated_dimensions, shares_bytes
from torchmagic.sharing.changes import Change
from torchmagic.sharing.holders import Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, at_line
from torchmagic.sharing.words import doer
from torchmagic.source import Program, Ref, Step, Write, reads
from torchmagic.source.edits import add_after
from torchmagic.source.memory_paths import last_bind
from torchmagic.source.writes import writes_of

REFUSED = "more than one element of the written-to tensor refers to a single memory location"


def judge_refused(facts: Facts, program: Program) -> Iterator[Sharing]:
    """Yield a verdict when torch refused to write into an expanded tensor."""
    if facts.error is None or REFUSED not in str(facts.error):
        return
    torch = sys.modules["torch"]
    for frame in reversed(facts.failed_frames):
        if not frame.is_cell:
            continue
        for step in (s for s in program.steps if s.scope.unit.is_cell and _covers(s, frame.line)):
            for ref in _written(step):
                value = frame.variables.get(ref.root)
                value = facts.value(ref, step.scope) if ref.steps or value is None else value
                if issubclass(type(value), torch.Tensor) and repeated_dimensions(value):
                    yield _verdict(facts, value, ref, step, _bound(program, ref, step), change=None)
                    return


def _covers(step: Step, line: int) -> bool:
    is_block = isinstance(step.node, (ast.For, ast.While, ast.If, ast.With, ast.FunctionDef, ast.ClassDef, ast.Try))
    return step.line == line if is_block else step.line <= line <= (step.node.end_lineno or step.line)


def _written(step: Step) -> Iterator[Ref]:
    for write in writes_of(step):
        if write.kind != "bind":
            yield write.target
    for own in step.own_expressions():
        yield from reads(own)


def overlaps_itself(tensor: Any) -> bool:
    """Tell whether elements of a tensor are the same memory: rows of an expanded one, windows of an unfolded one."""
    try:
        if tensor.is_contiguous():
            return False
    except (RuntimeError, NotImplementedError, TypeError):
        return False  # a tensor without strides
    elements, places = elements_and_places(tensor)
    return places < elements or bool(repeated_dimensions(tensor))


def judge_expanded(timeline: Timeline, seen: Seen) -> Iterator[Sharing]:
    """Yield a verdict when a write went through one row of an expanded tensor to all rows."""
    if not timeline.facts.version_moved(seen.obj):
        return
    holders = [Holder(seen, place) for place in seen.places]
    for change in timeline.changes:
        if change.kind != "write" or change.target is None:
            continue
        named = next((holder for holder in holders if change.names(holder)), None)
        capture = timeline.capture_of(named) if named is not None else None
        if named is not None and timeline.follows(change, capture):
            made = _bound(timeline.program, change.target, change.step) if capture is None else capture.write
            yield _verdict(timeline.facts, seen.obj, change.target, change.step, made, change=change)
            return


def _verdict(facts: Facts, value: Any, ref: Ref, step: Step, bound: Write | None, *, change: Change | None) -> Sharing:
    """Say what a change did to an expanded tensor, or that torch refused to run the statement."""
    known = facts.found.find(value)
    subject = known.subject if known is not None else str(ref)
    made = bound.step if bound is not None and bound.step.scope.unit.is_cell else step
    repeated = repeated_dimensions(value)
    line = made.line if made.scope.unit.is_cell else None
    refused = f"torch refuses to write it in {at_line(step.line)}"
    outcome = refused if change is None else f"{doer(change)} writes all of them"
    if repeated:
        size = int(value.shape[repeated[0]])
        fact = f"its {size} entries along dimension {repeated[0]} are one, repeated by `expand`"
        evidence = {"dimension": repeated[0], "size": size, "written_on_line": step.line}
    else:
        elements, places = elements_and_places(value)
        fact = f"its {elements} elements overlap and lie in {places} places of memory"
        evidence = {"elements": elements, "places": places, "written_on_line": step.line}
        outcome = outcome.replace("writes all of them", "writes some of them several times")
    return Sharing(
        subject=subject,
        message=f"`{subject}`: {fact}; {outcome}; add `.clone()`",
        line=line,
        others=tuple(_bases(facts, known)),
        level="error" if change is None else "warning",
        fix=_fix(bound),
        evidence=evidence,
    )


def _bound(program: Program, ref: Ref, step: Step) -> Write | None:
    if not ref.steps:
        return last_bind(program, ref.root, step.scope.owner_of(ref.root), step)
    binds = [w for w in program.writes if w.kind == "bind" and w.target == ref and w.how == "="]
    return binds[-1] if binds else None


def _fix(bound: Write | None) -> Fix | None:
    if bound is None or bound.value is None or not bound.step.scope.unit.is_cell or bound.how != "=":
        return None
    node = bound.step.node
    if node.lineno != node.end_lineno:
        return None
    text = add_after(bound.step.scope.unit.source, bound.step.line, [(bound.value, ".clone()")])
    return None if text is None else Fix(text, "The clone takes memory for each entry.")


def _bases(facts: Facts, known: Seen | None) -> Iterator[str]:
    if known is None:
        return
    for seen in facts.found.of_kind("tensor", "array"):
        if seen is not known and seen.span is not None and shares_bytes(seen, known):
            yield seen.subject
            return
