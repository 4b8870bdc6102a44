"""Reports, lessons and the list of rules as HTML that needs neither script nor style sheet.

Every style is inline, and colours come from the page: text inherits them, marks are tinted with transparent colours
that work on light and on dark. Where a site strips the styles, the elements alone still read well.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from torchmagic.render.blocks import Heading, Paragraph
from torchmagic.render.lesson_page import RULES_HINT, lesson_blocks, rule_lines
from torchmagic.render.report_page import report_page
from torchmagic.render.words import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchmagic.findings import Inspection, Lesson
    from torchmagic.render.blocks import Block, Snippet
    from torchmagic.render.report_page import Entry, Section
    from torchmagic.render.words import Sentence

_RED: Final = "211,47,47"
_AMBER: Final = "224,142,11"
_BLUE: Final = "90,130,180"
_GREEN: Final = "46,160,67"

_LEVEL_COLOURS: Final = {"error": _RED, "warning": _AMBER, "note": _BLUE}
_DIFF_COLOURS: Final = {"-": _RED, "+": _GREEN}

_SHADE: Final = "rgba(127,127,127,.1)"
_QUIET: Final = "opacity:.75"
_UNSELECTABLE: Final = "-webkit-user-select:none;user-select:none"

_LONGEST_UNBROKEN: Final = 28
"""Characters that still fit into a narrow window."""


def report_html(inspection: Inspection) -> str:
    """Return a report as HTML: one line when nothing is wrong, else a line for each finding that unfolds to its fix."""
    page = report_page(inspection)
    tails = "".join(f" · {_whole(tail)}" for tail in page.tails)
    folds = [section for section in (page.earlier, page.notes) if section.entries]
    if page.findings.entries:
        parts = [_title(page.title, tails), _entries(page.findings), *(_folded(fold, fold.title) for fold in folds)]
    elif len(folds) == 1:
        # Still one quiet line: it unfolds to what little there is.
        notes = f" · {page.notes.title}" if page.notes.entries else ""
        parts = [_folded(folds[0], f"{escape(page.title)}{tails}{notes}")]
    else:
        line = f'<p style="margin:0;{_QUIET}">{escape(page.title)}{tails}</p>'
        parts = [line, *(_folded(fold, fold.title) for fold in folds)]
    parts.extend(f'<p style="margin:.3em 0 0;{_QUIET}">{_written(remark)}</p>' for remark in page.remarks)
    return _framed(parts)


def lesson_html(lesson: Lesson) -> str:
    """Return the page that explains a rule: what, why, a bad cell, a good cell, how to silence it."""
    return _framed(_block(block) for block in lesson_blocks(lesson))


def rules_html(lessons: Sequence[Lesson]) -> str:
    """Return the list of rules, one line each, with what they find."""
    items = [f"<li>{_code(name)} {_written(finds)}</li>" for name, finds in rule_lines(lessons)]
    return _framed([f'<ul style="margin:0;padding-left:1.2em">{"".join(items)}</ul>', _paragraph(_written(RULES_HINT))])


def _framed(parts: Iterable[str]) -> str:
    return f'<div class="torchmagic" style="line-height:1.5;max-width:60em">{"".join(parts)}</div>'


def _title(title: str, tails: str) -> str:
    # No <h3>: JupyterLab would list it in the notebook's table of contents.
    heading = f'<p role="heading" aria-level="3" style="margin:0 0 .4em;font-weight:600">{escape(title)}'
    return f'{heading}<span style="font-weight:400;{_QUIET}">{tails}</span></p>'


def _folded(section: Section, summary: str) -> str:
    summary = f'<summary style="cursor:pointer;{_QUIET}">{summary}</summary>'
    return f'<details style="margin:.5em 0 0">{summary}{_entries(section)}</details>'


def _entries(section: Section) -> str:
    items = "".join(_entry(entry) for entry in section.entries)
    rest = _paragraph(_written(section.rest)) if section.rest else ""
    return f'<ul role="list" style="list-style:none;margin:0;padding:0">{items}</ul>{rest}'


def _entry(entry: Entry) -> str:
    colour = _LEVEL_COLOURS[entry.level]
    mark = f"padding:0 .45em;border-radius:3px;font-size:.9em;background:rgba({colour},.18)"
    place = f'<span style="{_QUIET}"> · {_whole(entry.place)}</span>'
    summary = f'<span style="{mark}">{entry.level}</span> {_written(entry.fact)}{place}'
    body = "".join(_block(block) for block in (*entry.details, *entry.reasons))
    item = f"margin:.25em 0;padding:0 0 0 .6em;border-left:3px solid rgba({colour},.6)"
    return (
        f'<li style="{item}"><details><summary style="cursor:pointer">{summary}</summary>'
        f'<div style="margin:.2em 0 .6em 1.1em">{body}</div></details></li>'
    )


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        style = "margin:.7em 0 .2em;font-weight:600"
        return f'<p role="heading" aria-level="{block.level}" style="{style}">{_written(block.sentence)}</p>'
    if isinstance(block, Paragraph):
        return _paragraph(_written(block.sentence))
    return _snippet(block)


def _snippet(snippet: Snippet) -> str:
    lines = "\n".join(_line(mark, line) for mark, line in snippet.lines)
    # The tint of a diff's lines reaches the edges, so its margin is the mark's.
    padding = ".4em 0" if any(mark for mark, _ in snippet.lines) else ".4em .6em"
    box = f"margin:.3em 0;padding:{padding};background:{_SHADE};border-radius:3px"
    flow = "overflow-x:auto;white-space:pre;line-height:1.5"
    return f'<pre style="{box};{flow}"><code style="background:none;padding:0;line-height:inherit">{lines}</code></pre>'


def _line(mark: str, line: str) -> str:
    if not mark:
        return escape(line)
    # Marks and removed lines are for the eye: what is copied from a diff should run.
    text = f'<span style="{_UNSELECTABLE};padding-left:.6em">{mark} </span>{escape(line)}'
    colour = _DIFF_COLOURS.get(mark)
    if colour is None:
        return text
    gone = f";{_UNSELECTABLE}" if mark == "-" else ""
    style = f"display:inline-block;min-width:100%;vertical-align:top;background:rgba({colour},.16){gone}"
    return f'<span style="{style}">{text}</span>'


def _paragraph(inner: str) -> str:
    return f'<p style="margin:.3em 0">{inner}</p>'


def _whole(text: str) -> str:
    """Return a few words that stay on one line, and more of them as they are."""
    return f'<span style="{_wrapping(text)}">{escape(text)}</span>'


def _wrapping(text: str) -> str:
    return "white-space:nowrap" if len(text) <= _LONGEST_UNBROKEN else "overflow-wrap:anywhere"


def _written(sentence: Sentence) -> str:
    return "".join(_code(piece) if isinstance(piece, Code) else escape(piece) for piece in sentence)


def _code(text: str) -> str:
    style = f"padding:0 .25em;background:{_SHADE};unicode-bidi:isolate;{_wrapping(text)}"
    return f'<code style="{style}">{escape(text)}</code>'
