"""What the page of a rule says, and the list of all rules."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from torchmagic.render.blocks import Block, Heading, Paragraph, code, joined, prose
from torchmagic.render.words import Code, Sentence, cut, marked, visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from torchmagic.findings import Lesson

RULES_HINT: Final = marked("`%torchcheck explain RULE` says why, and shows a bad and a good cell.")
"""The line below the list of rules."""

_LONGEST_REASON: Final = 320

_SENTENCE_END: Final = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


def lesson_blocks(lesson: Lesson) -> tuple[Block, ...]:
    """Return the page of a rule: what, why, a bad cell, a good cell, how to silence it."""
    line, cell = f"`{silencing_comment(lesson.rule)}`", f"`%%torchcheck --ignore {lesson.rule}`"
    return (
        Heading((Code(visible(lesson.rule)),), level=3),
        Paragraph(marked(joined(lesson.summary))),
        Heading(("Why",)),
        *prose(lesson.reasons),
        Heading(("Instead of",)),
        code(lesson.bad),
        Heading(("Write",)),
        code(lesson.good),
        Heading(("To silence it",)),
        Paragraph(marked(f"{line} at the end of a line, or {cell} for a whole cell.")),
    )


def rule_lines(lessons: Sequence[Lesson]) -> tuple[tuple[str, Sentence], ...]:
    """Return each rule's name and what it finds."""
    return tuple((visible(lesson.rule), marked(joined(lesson.summary))) for lesson in lessons)


def silencing_comment(rule: str) -> str:
    """Return what silences the rule at the end of a line."""
    return f"# torchcheck: ignore[{rule}]"


def short_reason(lesson: Lesson) -> Sentence:
    """Return what the rule finds, and the first sentences of why."""
    return marked(f"{joined(lesson.summary)} {_first_sentences(lesson.reasons)}".rstrip())


def _first_sentences(reasons: str) -> str:
    """Return the whole sentences of the first paragraph that fit into a few lines, and at least one."""
    first, *others = _SENTENCE_END.split(joined(reasons.strip().split("\n\n")[0]))
    kept = cut(first, _LONGEST_REASON)
    for sentence in others:
        if len(kept) + 1 + len(sentence) > _LONGEST_REASON:
            break
        kept = f"{kept} {sentence}"
    return kept
