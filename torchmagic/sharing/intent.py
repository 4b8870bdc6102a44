"""What a name says about the value it stands for."""

from __future__ import annotations

import re

KEPT_WORDS = frozenset(
    {
        "old", "prev", "previous", "before", "initial", "backup", "saved", "snapshot", "best", "orig", "original",
        "start", "copy", "copied", "past", "frozen", "reference", "last", "init", "rollback",
    }
)  # fmt: skip
"""Words in a name that say the value is meant to stay as it is."""


def words_of(name: str) -> set[str]:
    """Return the words of a name in snake or camel case."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
