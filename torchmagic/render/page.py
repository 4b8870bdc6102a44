"""What a report, a lesson and the list of rules say, as blocks that the text and the HTML renderer both walk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from torchmagic.findings import LEVELS
from torchmagic.render.words import Code, Sentence, count, cut, duration, listed, marked, size, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchmagic.findings import Finding, Inspection, Lesson, Level, Looked

MOST_ENTRIES: Final = 20
"""Findings shown one by one; the rest are counted. A screenful is read, a thousand lines are not."""

_MOST_REMARKS: Final = 3
_MOST_CODE_LINES: Final = 24
_LONGEST_SUBJECT: Final = 60
_LONGEST_MESSAGE: Final = 300
_LONGEST_CODE_LINE: Final = 240
_LONGEST_REASON: Final = 320

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


@dataclass(frozen=True)
class Heading:
    """The title of what follows."""

    sentence: Sentence


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of prose."""

    sentence: Sentence


@dataclass(frozen=True)
class Snippet:
    """Lines of code, each with its mark: "-" goes, "+" comes, " " stays; all marks are empty outside of a diff."""

    lines: tuple[tuple[str, str], ...]


Block = Heading | Paragraph | Snippet


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


def lesson_blocks(lesson: Lesson) -> tuple[Block, ...]:
    """Return the page of a rule: what, why, a bad cell, a good cell, how to silence it."""
    silence = (
        f"`{_comment(lesson.rule)}` at the end of a line, or `%%torchcheck --ignore {lesson.rule}` for a whole cell."
    )
    return (
        Heading((Code(visible(lesson.rule)),)),
        Paragraph(marked(_joined(lesson.summary))),
        Heading(("Why",)),
        *_prose(lesson.reasons),
        Heading(("Instead of",)),
        _code(lesson.bad),
        Heading(("Write",)),
        _code(lesson.good),
        Heading(("To silence it",)),
        Paragraph(marked(silence)),
    )


def rule_lines(lessons: Sequence[Lesson]) -> tuple[tuple[str, Sentence], ...]:
    """Return each rule's name and what it finds."""
    return tuple((visible(lesson.rule), marked(_joined(lesson.summary))) for lesson in lessons)


RULES_HINT: Final = marked("`%torchcheck explain RULE` says why, and shows a bad and a good cell.")
"""The line below the list of rules."""


def _verdict(inspection: Inspection, here: int, earlier: int) -> str:
    if not inspection.findings:
        if any(finding.level != "note" for finding in inspection.notes):
            return "no errors"
        return "nothing new" if inspection.still_standing else "nothing wrong"
    if not earlier:
        return count(here, "finding")
    if not here:
        return f"{count(earlier, 'finding')} from earlier cells"
    return f"{count(here, 'finding')}, and {earlier:,} from earlier cells"


def _tails(inspection: Inspection) -> tuple[str, ...]:
    tails = [_looked_at(inspection.looked), duration(inspection.looked.seconds)]
    if inspection.still_standing == 1:
        tails.append("1 earlier finding still stands")
    elif inspection.still_standing:
        tails.append(f"{inspection.still_standing:,} earlier findings still stand")
    if inspection.silenced:
        tails.append(f"{inspection.silenced:,} silenced")
    return tuple(tails)


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
        return marked(cut(visible(finding.message), _LONGEST_MESSAGE))
    head = f"`{finding.subject}`"
    rest = finding.message[len(head) :] if finding.message.startswith(head) else f": {finding.message}"
    return (Code(cut(visible(finding.subject), _LONGEST_SUBJECT)), *marked(cut(visible(rest), _LONGEST_MESSAGE)))


def _details(finding: Finding, source_lines: Sequence[str]) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if finding.fix is not None:
        blocks.append(_diff(finding, finding.fix.replacement, source_lines))
        if finding.fix.caveat:
            blocks.append(Paragraph(marked(cut(visible(finding.fix.caveat), _LONGEST_MESSAGE))))
    others = [name for name in finding.others if f"`{name}`" not in finding.message]
    if others:
        blocks.append(Paragraph(("Also involved: ", *listed(others), ".")))
    if finding.consequences:
        blocks.append(Paragraph((f"Also {visible(finding.rule)} because of it: ", *listed(finding.consequences), ".")))
    return tuple(blocks)


def _diff(finding: Finding, replacement: str, source_lines: Sequence[str]) -> Snippet:
    new = [_code_line(line) for line in replacement.split("\n")]
    old = None
    if finding.line is not None and 1 <= finding.line <= len(source_lines):
        old = _code_line(source_lines[finding.line - 1].strip())
    lines = [("+" if line != old else " ", line) for line in new]
    if old and old not in new:
        lines.insert(0, ("-", old))
    return Snippet(_shortened(lines))


def _code(source: str) -> Snippet:
    return Snippet(_shortened([("", _code_line(line)) for line in source.strip("\n").split("\n")]))


def _code_line(line: str) -> str:
    return cut(visible(line.rstrip().expandtabs(4)), _LONGEST_CODE_LINE)


def _shortened(lines: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if len(lines) <= _MOST_CODE_LINES:
        return tuple(lines)
    return (*lines[:_MOST_CODE_LINES], (" ", f"... and {len(lines) - _MOST_CODE_LINES:,} more lines"))


def _reasons(finding: Finding, lesson: Lesson | None) -> tuple[Block, ...]:
    blocks: list[Block] = []
    if lesson is not None:
        blocks.append(Paragraph(marked(f"Why: {_joined(lesson.summary)} {_first_sentences(lesson.reasons)}".rstrip())))
    silence = f"end the line with `{_comment(finding.rule)}`" if finding.line else f"use `--ignore {finding.rule}`"
    blocks.append(Paragraph(marked(f"More: `%torchcheck explain {finding.rule}`.")))
    blocks.append(Paragraph(marked(f"To silence it, {silence}.")))
    return tuple(blocks)


def _comment(rule: str) -> str:
    return f"# torchcheck: ignore[{rule}]"


def _first_sentences(reasons: str) -> str:
    """Return the whole sentences of the first paragraph that fit into a few lines, and at least one."""
    first, *others = _SENTENCE_END.split(_joined(reasons.strip().split("\n\n")[0]))
    kept = cut(first, _LONGEST_REASON)
    for sentence in others:
        if len(kept) + 1 + len(sentence) > _LONGEST_REASON:
            break
        kept = f"{kept} {sentence}"
    return kept


def _prose(text: str) -> tuple[Block, ...]:
    """Return paragraphs as paragraphs and indented blocks as code."""
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if all(line.startswith("    ") for line in part.split("\n")):
            blocks.append(_code("\n".join(line[4:] for line in part.split("\n"))))
        else:
            blocks.append(Paragraph(marked(_joined(part))))
    return tuple(blocks)


def _joined(text: str) -> str:
    """Return prose that was wrapped in a docstring as one line."""
    return " ".join(text.split())


def _remarks(label: str, sentences: Sequence[str]) -> tuple[Sentence, ...]:
    remarks: list[Sentence] = [
        marked(f"{label}: {cut(visible(sentence), _LONGEST_MESSAGE)}") for sentence in sentences[:_MOST_REMARKS]
    ]
    if len(sentences) > _MOST_REMARKS:
        remarks.append((f"{label}: {len(sentences) - _MOST_REMARKS:,} more.",))
    return tuple(remarks)
