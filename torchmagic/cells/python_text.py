"""Turn a cell as typed into Python text whose line numbers are the editor's."""

from __future__ import annotations

import re
from typing import Any, Final

from IPython.core.inputtransformer2 import TransformerManager

from torchmagic.cells.transformer import MAGIC_LINE, line_as_typed

_PYTHON_BODIES: Final = frozenset({"torchcheck", "gpumem", "time", "timeit", "prun", "capture", "px", "debug"})
"""Cell magics whose body is Python that runs in the user's namespace or is written for it."""

_CELL_MAGIC: Final = re.compile(r"%%(?P<name>[^\s%?]+)")


def python_text(raw_cell: str) -> str | None:
    """Return the cell as Python text, or None when a cell magic says that its body is something else.

    Cell magics become comments, other IPython syntax becomes the calls that IPython runs, and a magic that spans
    several lines is followed by blank ones. When other cell magics stand above the checked cell's, the text begins
    at the checked cell's own, because the code they run counts its lines from there.
    """
    manager: Any = TransformerManager()  # type: ignore[no-untyped-call]
    lines = [line if line.endswith("\n") else line + "\n" for line in raw_cell.splitlines(keepends=True)]
    for transform in manager.cleanup_transforms:
        lines = transform(lines)
    head = _head_length(lines)
    for index, line in enumerate(lines[:head]):
        magic = _CELL_MAGIC.match(line)
        if magic is not None:
            if magic["name"] not in _PYTHON_BODIES:
                return None
            lines[index] = f"#{line}"
    own = next((index for index, line in enumerate(lines[:head]) if MAGIC_LINE.match(line, 1)), 0)
    return "".join(_as_calls(manager, [line_as_typed(line) for line in lines[own:]]))


def _head_length(lines: list[str]) -> int:
    """Count the lines of cell magics, and the blank ones between, that stand above the cell's code."""
    for index, line in enumerate(lines):
        if not line.isspace() and not line.startswith("%%"):
            return index
    return len(lines)


def _as_calls(manager: Any, lines: list[str]) -> list[str]:
    """Replace IPython's line syntax by the calls it stands for, one at a time, keeping the number of lines."""
    for _ in lines:
        try:
            changed, after = manager.do_one_token_transform(lines)
        except SyntaxError:
            # IPython 7 does not get to the end of lines that are no Python; nor does such a cell run.
            break
        if not changed:
            break
        joined = len(lines) - len(after)
        place = next((index for index, line in enumerate(after) if line != lines[index]), len(after) - 1)
        lines = [*after[: place + 1], *["\n"] * joined, *after[place + 1 :]]
    return lines
