"""What a report says: its first line, an entry for each finding, and what was left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torchmagic.findings import LEVELS
from torchmagic.render.blocks import Block, Paragraph, diff
from torchmagic.render.lesson_page import short_reason, silencing_comment
from torchmagic.render.words import Code, Sentence, count, cut, duration, listed, marked, size, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchmagic.findings import Finding, Followed, Inspection, Lesson, Level, Looked

MOST_ENTRIES: Final = 20
"""Findings shown one by one; the rest are counted. A screenful is read, a thousand lines are not."""

_MOST_REMARKS: Final = 3
_MOST_OPERANDS: Final = 12
_LONGEST_SUBJECT: Final = 60
_LONGEST_MESSAGE: Final = 300


@dataclass(frozen=True)
class Entry:
    """One finding: its level, the fact, the place, and what unfolds below it.

    `details` belong to this finding alone, `reasons` to its rule; `told` says that an entry above has shown them.
    """

    level: Level
    fact: Sentence
    place: str
    details: tuple[Block, ...]
    reasons: tuple[Block, ...]
    told: bool


@dataclass(frozen=True)
class Section:
    """Entries under a title, cut to a readable number; `rest` says how many are left out, else it is empty."""

    title: str
    entries: tuple[Entry, ...]
    rest: Sentence


@dataclass(frozen=True)
class Page:
    """A whole report: `title` and `tails` make its first line, and each of its sections may have no entries."""

    title: str
    tails: tuple[str, ...]
    findings: Section
    earlier: Section
    notes: Section
    remarks: tuple[Sentence, ...]


def report_page(inspection: Inspection) -> Page:
    """Put an inspection into words."""
    here = [finding for finding in inspection.findings if not finding.earlier]
    earlier = [finding for finding in inspection.findings if finding.earlier]
    told: set[str] = set()
    return Page(
        title=f"torchcheck: {_verdict(inspection, len(here), len(earlier))}",
        tails=_tails(inspection),
        findings=_section("", here, inspection, told),
        earlier=_section(f"{len(earlier):,} from earlier cells", earlier, inspection, told),
        notes=_section(_by_level(inspection.notes), inspection.notes, inspection, told),
        remarks=(*_remarks("Skipped", inspection.skipped), *_remarks("Rule failed", inspection.failures)),
    )


def _verdict(inspection: Inspection, here: int, earlier: int) -> str:
    if not inspection.findings:
        if any(finding.level != "note" for finding in inspection.notes):
            return "no errors"
        if inspection.failed:
            return "no mistake found behind the error"
        return "nothing new" if inspection.still_standing else "nothing wrong"
    if all(finding.explains and finding.level == "note" for finding in inspection.findings):
        return "the error, explained"
    if not earlier:
        return count(here, "finding")
    if not here:
        return f"{count(earlier, 'finding')} from earlier cells"
    return f"{count(here, 'finding')}, and {earlier:,} from earlier cells"


def _tails(inspection: Inspection) -> tuple[str, ...]:
    tails = [_looked_at(inspection.looked), duration(inspection.looked.seconds)]
    if inspection.followed is not None:
        tails.append(_followed(inspection.followed))
    if inspection.still_standing == 1:
        tails.append("1 earlier finding still stands")
    elif inspection.still_standing:
        tails.append(f"{inspection.still_standing:,} earlier findings still stand")
    if inspection.silenced:
        tails.append(f"{inspection.silenced:,} silenced")
    return tuple(tails)


def _followed(followed: Followed) -> str:
    """Say what following the cell cost; below a tenth it is not told from noise."""
    told = f", which made the cell take about {followed.slowdown:.1f} times as long"
    return f"{count(followed.operations, 'operation')} followed{told if followed.slowdown >= 1.1 else ''}"


def _looked_at(looked: Looked) -> str:
    held = [count(number, noun) for number, noun in ((looked.tensors, "tensor"), (looked.arrays, "array")) if number]
    if held:
        sized = f" ({size(looked.bytes)})" if looked.bytes else ""
        parts = [" and ".join(held) + sized]
    else:
        parts = ["no tensors or arrays to look at"]
    for number, noun in ((looked.modules, "module"), (looked.optimizers, "optimizer")):
        if number:
            parts.append(count(number, noun))
    return ", ".join(parts)


def _by_level(findings: Sequence[Finding]) -> str:
    levels = [finding.level for finding in findings]
    return ", ".join(count(levels.count(level), level) for level in reversed(LEVELS) if level in levels)


def _section(title: str, findings: Sequence[Finding], inspection: Inspection, told: set[str]) -> Section:
    entries = []
    # "and 1 more" takes as much room as the one.
    kept = findings if len(findings) <= MOST_ENTRIES + 1 else findings[:MOST_ENTRIES]
    for finding in kept:
        entries.append(_entry(finding, inspection, told=finding.rule in told))
        told.add(finding.rule)
    rest: Sentence = ()
    if len(kept) < len(findings):
        more = f"and {len(findings) - len(kept):,} more; `%%torchcheck --output report` keeps all of them in `report`."
        rest = marked(more)
    return Section(title, tuple(entries), rest)


def _entry(finding: Finding, inspection: Inspection, *, told: bool) -> Entry:
    place = [] if finding.line is None else [f"line {finding.line}"]
    return Entry(
        level=finding.level,
        fact=_fact(finding),
        place=" · ".join([*place, visible(finding.rule)]),
        details=_details(finding, inspection.source_lines),
        reasons=_reasons(finding, inspection.lessons.get(finding.rule)),
        told=told,
    )


def _fact(finding: Finding) -> Sentence:
    """Return the message with its subject cut to a readable length, whatever quotes the subject contains."""
    if not finding.subject:
        return _said(finding.message)
    head = f"`{finding.subject}`"
    rest = finding.message[len(head) :] if finding.message.startswith(head) else f": {finding.message}"
    return (Code(cut(visible(finding.subject), _LONGEST_SUBJECT)), *_said(rest))


def _details(finding: Finding, source_lines: Sequence[str]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if finding.fix is not None:
        line = finding.line or 0
        old = source_lines[line - 1] if 1 <= line <= len(source_lines) else ""
        blocks.append(diff(old, finding.fix.replacement))
        if finding.fix.caveat:
            blocks.append(Paragraph(_said(finding.fix.caveat)))
    if finding.operands:
        blocks.append(Paragraph(("Where it failed: ", *_operands(finding.operands), ".")))
    blocks += [Paragraph(_said(sentence)) for sentence in finding.details]
    others = [name for name in finding.others if f"`{name}`" not in finding.message and name not in finding.operands]
    if others:
        blocks.append(Paragraph(("Also involved: ", *listed(others), ".")))
    if finding.consequences:
        blocks.append(Paragraph(("It reached: ", *listed(finding.consequences), ".")))
    return tuple(blocks)


def _operands(described: Mapping[str, str]) -> Sentence:
    """Return "`x` is float32 [3, 5], `net` is a Linear", a screenful at most."""
    pieces: list[str] = []
    for name, words in list(described.items())[:_MOST_OPERANDS]:
        pieces += [", "] if pieces else []
        pieces += [Code(cut(visible(name), _LONGEST_SUBJECT)), f" is {visible(words)}"]
    left = len(described) - _MOST_OPERANDS
    return (*pieces, f" and {left:,} more") if left > 0 else tuple(pieces)


def _reasons(finding: Finding, lesson: Lesson | None) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if lesson is not None:
        blocks.append(Paragraph(("Why: ", *short_reason(lesson))))
    comment = silencing_comment(finding.rule)
    silence = f"use `--ignore {finding.rule}`" if finding.line is None else f"end the line with `{comment}`"
    blocks.append(Paragraph(marked(f"More: `%torchcheck explain {finding.rule}`.")))
    blocks.append(Paragraph(marked(f"To silence it, {silence}.")))
    return tuple(blocks)


def _remarks(label: str, sentences: Sequence[str]) -> tuple[Sentence, ...]:
    remarks = [(f"{label}: ", *_said(sentence)) for sentence in sentences[:_MOST_REMARKS]]
    if len(sentences) > _MOST_REMARKS:
        remarks.append((f"{label}: {len(sentences) - _MOST_REMARKS:,} more.",))
    return tuple(remarks)


def _said(text: str) -> Sentence:
    return marked(cut(visible(text), _LONGEST_MESSAGE))
