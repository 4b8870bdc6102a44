"""What a finding says beyond its count: line, cause and reason, as the trace has it where there is one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from torchmagic.checking.facts import Facts
from torchmagic.findings import Fix
from torchmagic.nonfinite.advice import blame_words
from torchmagic.nonfinite.causes import Cause
from torchmagic.nonfinite.outbreaks import Outbreak
from torchmagic.nonfinite.trace_words import birth_words, is_told_by, read_words, tale_details
from torchmagic.nonfinite.traced import Tale, tale_of
from torchmagic.source.repairs import clamped_argument
from torchmagic.tracing.names import is_called, plain_name_of_node, short_name, spelled, spelled_in
from torchmagic.values import Counts

HOW_TO_TRACE: Final = "To see the operation it was born in, run the cell again with `%%torchcheck --trace`."


@dataclass(frozen=True)
class Told:
    """The changing parts of a finding. `reason` goes on from the count, and begins with a semicolon where it is any."""

    line: int | None
    cause: Cause | None
    reason: str
    details: tuple[str, ...] = ()
    evidence: Mapping[str, Any] = field(default_factory=dict)


def told_by_trace(facts: Facts, outbreak: Outbreak, fix: Fix | None) -> Told | None:
    """Return what the trace tells of an outbreak, or None when it does not know it."""
    tale = tale_of(facts, outbreak)
    if tale is None:
        return None
    details = tuple(tale_details(facts, tale))
    evidence = _evidence(tale)
    if tale.cause == "data":
        if outbreak.cause == "data" and outbreak.line not in (None, tale.line) and tale.origin.kind == "written":
            return None  # the text knows where the data come from; the trace saw them become a tensor
        line = outbreak.line if outbreak.cause == "data" and outbreak.line is not None else tale.line
        return Told(line, "data", f"; {read_words(tale)}" if outbreak.harmful else "", details, evidence)
    keeps_line = tale.line is None or (tale.cause == "explosion" and outbreak.is_clipped_norm)
    line = outbreak.line if keeps_line else tale.line
    return Told(
        line, tale.cause, f"; {birth_words(facts, tale)}{_way_out(facts, outbreak, tale, fix)}", details, evidence
    )


def _way_out(facts: Facts, outbreak: Outbreak, tale: Tale, fix: Fix | None) -> str:
    """Return the advice that fits the operation: the text's, where the text blames the same line."""
    if tale.cause == "explosion":
        trains = facts.trace is not None and facts.trace.steps.backward_passes > 0
        way_out = "lower the learning rate, clip gradients or start smaller"
        return f": {way_out if trains else 'keep the numbers smaller on the way there'}"
    suspect, operation = outbreak.suspect, _operation_of(tale)
    if suspect is None or suspect.line != tale.line:
        return ""
    name = suspect.hazard.name
    if (
        name != short_name(operation).rstrip("=")
        and not is_called(operation, name)
        and is_told_by(tale.origin, operation)
    ):
        return ""  # another operation of that line
    if name in ("**", "pow") and not tale.origin.node and not tale.origin.has_nan:
        return ". A negative power of 0 is infinite: keep the base away from 0"
    repair = clamped_argument(suspect.hazard) if fix is not None else None
    advice = blame_words(suspect, repair).rpartition(": `")[0] if repair is not None else blame_words(suspect, None)
    way_out = advice.partition(": ")[2] or advice
    return f". {way_out[0].upper()}{way_out[1:]}" + (f": `{repair}`" if repair is not None else "")


def _operation_of(tale: Tale) -> str:
    """Return the operation to blame; for one of a backward pass, the forward operation."""
    origin = tale.origin
    return plain_name_of_node(origin.node) if origin.node and not origin.own_code else origin.operation


def _evidence(tale: Tale) -> dict[str, Any]:
    origin, counts = tale.origin, tale.origin.counts
    found: dict[str, Any] = {
        "operation": spelled_in(origin.expression, _operation_of(tale)),
        "born": origin.kind,
        "backward_line": tale.backward_line,
        "way": [spelled(event.operation) for event in tale.way],
        "backward_passes": origin.step,
        "operands": {operand.name: operand.words for operand in origin.operands if operand.name},
    }
    if isinstance(counts, Counts) and counts.first is not None:
        found["first_in_operation"] = list(counts.first)
    if tale.growth is not None:
        found["growth"] = list(tale.growth.numbers)
        found["left_the_ground"] = tale.growth.left_the_ground
    return found
