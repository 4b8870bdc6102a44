"""The blocks that reports and lessons are made of, which the text and the HTML renderer both walk."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from torchmagic.render.words import Sentence, cut, marked, visible

_MOST_DIFF_LINES: Final = 24
_LONGEST_CODE_LINE: Final = 240


@dataclass(frozen=True)
class Heading:
    """The title of what follows, at its level of a page's headings."""

    sentence: Sentence
    level: int = 4


@dataclass(frozen=True)
class Paragraph:
    """One paragraph of prose."""

    sentence: Sentence


@dataclass(frozen=True)
class Snippet:
    """Lines of code, each with its mark: "-" goes, "+" comes, " " stays; all marks are empty outside of a diff."""

    lines: tuple[tuple[str, str], ...]


Block = Heading | Paragraph | Snippet


def diff(line: str, replacement: str) -> Snippet:
    """Return a line of source, empty where it is not known, against the lines that replace it."""
    old = _code_line(line.strip())
    new = [_code_line(text) for text in replacement.split("\n")]
    gone = [("-", old)] if old and old not in new else []
    return Snippet(_shortened([*gone, *((" " if text == old else "+", text) for text in new)]))


def code(source: str) -> Snippet:
    """Return the lines of a cell."""
    return Snippet(tuple(("", _code_line(line)) for line in source.strip("\n").split("\n")))


def prose(text: str) -> tuple[Block, ...]:
    """Return paragraphs as paragraphs and indented blocks as code."""
    blocks: list[Block] = []
    for part in re.split(r"\n\s*\n", text.strip("\n")):
        if all(line.startswith("    ") for line in part.split("\n")):
            blocks.append(code("\n".join(line[4:] for line in part.split("\n"))))
        else:
            blocks.append(Paragraph(marked(joined(part))))
    return tuple(blocks)


def joined(text: str) -> str:
    """Return prose that was wrapped in a docstring as one line."""
    return " ".join(text.split())


def _code_line(line: str) -> str:
    return cut(visible(line.rstrip().expandtabs(4)), _LONGEST_CODE_LINE)


def _shortened(lines: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    if len(lines) <= _MOST_DIFF_LINES:
        return tuple(lines)
    return (*lines[:_MOST_DIFF_LINES], (" ", f"... and {len(lines) - _MOST_DIFF_LINES:,} more lines"))
