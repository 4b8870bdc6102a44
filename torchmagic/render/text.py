"""Reports, lessons and the list of rules as plain text of about a hundred columns."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Final

from torchmagic.render.blocks import Heading, Paragraph
from torchmagic.render.lesson_page import RULES_HINT, lesson_blocks, rule_lines
from torchmagic.render.report_page import report_page
from torchmagic.render.words import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchmagic.findings import Inspection, Lesson
    from torchmagic.render.blocks import Block
    from torchmagic.render.report_page import Entry, Page, Section
    from torchmagic.render.words import Sentence

_COLUMNS: Final = 100
_LEVEL_COLUMN: Final = len("warning  ")


def report_text(inspection: Inspection) -> str:
    """Return a report as text: one line when nothing is wrong, else a line and its fix for each finding."""
    page = report_page(inspection)
    lines = _wrapped(_first_line(page))
    for section in (page.findings, page.earlier):
        lines.extend(_section(section, brief=section is page.earlier))
    if page.remarks:
        lines.extend([""] if len(lines) > 1 else [])
        lines.extend(line for remark in page.remarks for line in _wrapped(_written(remark)))
    return "\n".join(lines)


def lesson_text(lesson: Lesson) -> str:
    """Return the page that explains a rule: what, why, a bad cell, a good cell, how to silence it."""
    name, summary, *blocks = lesson_blocks(lesson)
    lines = [*_block(name), *_block(summary)]
    above: Block = summary
    for block in blocks:
        # Only a title's first block stands directly below it.
        lines += [] if isinstance(above, Heading) else [""]
        lines += _block(block, indent=0 if isinstance(block, Heading) else 4)
        above = block
    return "\n".join(lines)


def rules_text(lessons: Sequence[Lesson]) -> str:
    """Return the list of rules, one line each, with what they find."""
    rules = rule_lines(lessons)
    column = max((len(name) for name, _ in rules), default=0) + 2
    lines = [line for name, finds in rules for line in _wrapped(_written(finds), name.ljust(column), column)]
    return "\n".join([*lines, "", *_wrapped(_written(RULES_HINT))])


def _first_line(page: Page) -> str:
    notes = [f"{page.notes.title} (`--level note` shows them)"] if page.notes.entries else []
    return " · ".join([page.title, *(_unbroken(tail) for tail in (*page.tails, *notes))])


def _section(section: Section, *, brief: bool) -> Iterable[str]:
    """Return a section's lines; a brief one leaves out what would be folded."""
    if not section.entries:
        return
    yield ""
    if section.title:
        yield f"{section.title}:"
    for entry in section.entries:
        yield from _entry(entry, brief=brief)
    if section.rest:
        yield from _wrapped(_written(section.rest))


def _entry(entry: Entry, *, brief: bool) -> Iterable[str]:
    mark = entry.level.ljust(_LEVEL_COLUMN)
    yield from _wrapped(f"{_written(entry.fact)} · {_unbroken(entry.place)}", mark, _LEVEL_COLUMN)
    if brief:
        return
    for block in (*entry.details, *(() if entry.told else entry.reasons)):
        yield from _block(block, indent=_LEVEL_COLUMN)


def _block(block: Block, indent: int = 0) -> list[str]:
    margin = " " * indent
    if isinstance(block, (Heading, Paragraph)):
        return _wrapped(_written(block.sentence), margin, indent)
    return [f"{margin}{mark} {line}".rstrip() if mark else f"{margin}{line}".rstrip() for mark, line in block.lines]


def _written(sentence: Sentence) -> str:
    return "".join(f"`{_unbroken(piece)}`" if isinstance(piece, Code) else piece for piece in sentence)


def _unbroken(text: str) -> str:
    """Return text that `_wrapped` keeps on one line. No NUL can be in it: `visible` has been over every word."""
    return text.replace(" ", "\0")


def _wrapped(text: str, first: str = "", indent: int = 0) -> list[str]:
    lines = textwrap.wrap(text, _COLUMNS, initial_indent=first, subsequent_indent=" " * indent, break_on_hyphens=False)
    return [line.replace("\0", " ") for line in lines]
