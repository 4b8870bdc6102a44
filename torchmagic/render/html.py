"""Reports, lessons and the list of rules as HTML that needs neither script nor style sheet.

Every style is inline, and colours come from the page: text inherits them, marks are tinted with transparent colours
that work on light and on dark. Where a site strips the styles, the elements alone still read well.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from torchmagic.render.page import RULES_HINT, Heading, Paragraph, lesson_blocks, report_page, rule_lines
from torchmagic.render.words import Code

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from torchmagic.findings import Inspection, Lesson
    from torchmagic.render.page import Block, Entry, Section, Snippet
    from torchmagic.render.words import Sentence

_RED: Final = "211,47,47"
_AMBER: Final = "224,142,11"
_BLUE: Final = "90,130,180"
_GREEN: Final = "46,160,67"

_LEVEL_COLOURS: Final = {"error": _RED, "warning": _AMBER, "note": _BLUE}
_DIFF_COLOURS: Final = {"-": _RED, "+": _GREEN}

_MONOSPACE: Final = "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,'DejaVu Sans Mono',monospace)"
_QUIET: Final = "opacity:.75"


def report_html(inspection: Inspection) -> str:
    """Return a report as HTML: one line when nothing is wrong, else a line for each finding that unfolds to its fix."""
    page = report_page(inspection)
    rest = escape("".join(f" · {tail}" for tail in page.tails))
    parts = []
    if page.findings.entries or page.earlier.entries:
        # No <h3>: JupyterLab would list it in the notebook's table of contents.
        style = "margin:0 0 .4em;font-weight:600"
        parts.append(f'<p role="heading" aria-level="3" style="{style}">{escape(page.title)}{_quiet(rest)}</p>')
        parts.append(_entries(page.findings))
        parts.append(_folded(page.earlier, page.earlier.title))
        parts.append(_folded(page.notes, page.notes.title))
    elif page.notes.entries:
        parts.append(_folded(page.notes, f"{page.title}{rest} · {page.notes.title}"))
    else:
        parts.append(f'<p style="margin:0;{_QUIET}">{escape(page.title)}{rest}</p>')
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


def _folded(section: Section, title: str) -> str:
    if not section.entries:
        return ""
    summary = f'<summary style="cursor:pointer;{_QUIET}">{escape(title)}</summary>'
    return f'<details style="margin:.4em 0 0">{summary}{_entries(section)}</details>'


def _entries(section: Section) -> str:
    if not section.entries:
        return ""
    items = "".join(_entry(entry) for entry in section.entries)
    rest = _paragraph(_written(section.rest)) if section.rest else ""
    return f'<ul role="list" style="list-style:none;margin:0;padding:0">{items}</ul>{rest}'


def _entry(entry: Entry) -> str:
    colour = _LEVEL_COLOURS[entry.level]
    mark = f"padding:0 .45em;border-radius:3px;font-size:.9em;background:rgba({colour},.18)"
    summary = f'<span style="{mark}">{entry.level}</span> {_written(entry.fact)}{_quiet(escape(f" · {entry.place}"))}'
    body = "".join(_block(block) for block in (*entry.details, *entry.reasons))
    item = f"margin:.25em 0;padding:0 0 0 .6em;border-left:3px solid rgba({colour},.6)"
    return (
        f'<li style="{item}"><details><summary style="cursor:pointer">{summary}</summary>'
        f'<div style="margin:.2em 0 .6em 1.1em">{body}</div></details></li>'
    )


def _block(block: Block) -> str:
    if isinstance(block, Heading):
        style = "margin:.7em 0 .2em;font-weight:600"
        return f'<p role="heading" aria-level="4" style="{style}">{_written(block.sentence)}</p>'
    if isinstance(block, Paragraph):
        return _paragraph(_written(block.sentence))
    return _snippet(block)


def _snippet(snippet: Snippet) -> str:
    lines = []
    for mark, line in snippet.lines:
        text = escape(f"{mark} {line}" if mark else line)
        colour = _DIFF_COLOURS.get(mark)
        lines.append(f'<span style="background:rgba({colour},.16)">{text}</span>' if colour else text)
    style = "margin:.3em 0;padding:.4em .6em;background:rgba(127,127,127,.08);border-radius:3px;overflow-x:auto"
    return f'<pre style="{style}"><code style="background:none;padding:0">{chr(10).join(lines)}</code></pre>'


def _paragraph(inner: str) -> str:
    return f'<p style="margin:.3em 0">{inner}</p>'


def _quiet(inner: str) -> str:
    return f'<span style="font-weight:400;{_QUIET}">{inner}</span>'


def _written(sentence: Sentence) -> str:
    return "".join(_code(piece) if isinstance(piece, Code) else escape(piece) for piece in sentence)


def _code(text: str) -> str:
    style = f"{_MONOSPACE};font-size:.95em;padding:0 .25em;background:rgba(127,127,127,.12);unicode-bidi:isolate"
    return f'<code style="{style}">{escape(text)}</code>'
