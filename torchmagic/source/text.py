"""The text of a cell: its lines, its syntax tree, and the rules its comments silence."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from dataclasses import dataclass, field

_SILENCE = re.compile(r"#\s*torchcheck:\s*ignore(?:\[([^\]]*)\])?")

EVERY_RULE = "*"


@dataclass(frozen=True)
class SourceText:
    """Python text with editor lines. `tree` is None when the text does not parse."""

    text: str
    filename: str = "<source>"
    tree: ast.Module | None = None
    lines: tuple[str, ...] = ()
    silenced: dict[int, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def read(cls, text: str, filename: str = "<source>") -> SourceText:
        """Parse the text; text that does not parse keeps its lines and has no tree."""
        try:
            tree: ast.Module | None = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            tree = None
        return cls(text, filename, tree, tuple(text.splitlines()), _silenced_lines(text))

    def line(self, number: int | None) -> str:
        """Return a line by its editor number, or nothing."""
        return self.lines[number - 1] if number is not None and 0 < number <= len(self.lines) else ""

    def is_silenced(self, rule: str, line: int | None) -> bool:
        """Tell whether a comment at the end of the line silences the rule."""
        names = self.silenced.get(line, frozenset()) if line is not None else frozenset()
        return rule in names or EVERY_RULE in names


def _silenced_lines(text: str) -> dict[int, frozenset[str]]:
    """Find the `# torchcheck: ignore[RULE, RULE]` comments; without a bracket, every rule is meant."""
    silenced: dict[int, frozenset[str]] = {}
    if "torchcheck" not in text:
        return silenced
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and (match := _SILENCE.search(token.string)):
                listed = match.group(1)
                names = [name.strip() for name in (listed or EVERY_RULE).split(",")]
                silenced[token.start[0]] = frozenset(name for name in names if name)
    except (tokenize.TokenError, SyntaxError, IndentationError):
        pass  # what was read before the odd token counts
    return silenced
