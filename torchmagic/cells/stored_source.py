"""The source that IPython stores when it compiles a cell: its name, and what tracebacks show of it."""

from __future__ import annotations

import linecache
import re
import sys
from typing import TYPE_CHECKING, Any, Final

from torchmagic.cells.transformer import line_as_typed

if TYPE_CHECKING:
    from types import FrameType

    from IPython.core.interactiveshell import ExecutionResult, InteractiveShell


_OLD_NAME: Final = re.compile(r"<ipython-input-(?P<number>\d+)-")
"""How IPython 7 names the code of a cell."""


def find_cell_frame(namespace: dict[str, Any]) -> FrameType | None:
    """Return the nearest calling frame that runs in `namespace`: inside a magic, that of the cell which called it."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001
    while frame is not None and frame.f_globals is not namespace:
        frame = frame.f_back
    return frame


def find_filename(shell: InteractiveShell, result: ExecutionResult) -> str | None:
    """Return the name under which the cell that ended with `result` was compiled, or None when it is not stored."""
    raw = result.info.raw_cell if result.info is not None else None
    if raw is None:
        return None
    # The static half of what IPython does to a cell; the other half, for single lines, may print what it rewrote.
    code = shell.input_transformer_manager.transform_cell(raw)
    # IPython 7 gives no number to a cell that leaves no history.
    number = shell.execution_count if result.execution_count is None else result.execution_count
    filename: str = shell.compile.get_code_name(raw, code, number)
    return filename if filename in linecache.cache else None


def title_of(shell: InteractiveShell, filename: str) -> str:
    """Return the name by which people know the cell that was compiled under `filename`, such as `In[3]`, or nothing."""
    number = getattr(shell.compile, "_filename_map", {}).get(filename)
    old = _OLD_NAME.match(filename)
    if number is None and old is not None:
        number = old["number"]
    return f"In[{number}]" if number is not None else ""


def text_of_other_code(shell: InteractiveShell, raw_cell: str, filename: str) -> str | None:
    """Return the text of `filename` if it is something else than the cell as typed, or None.

    So it is when the name of a macro was typed, or `%edit`.
    """
    text = "".join(linecache.getlines(filename))
    if not text or text.splitlines() == shell.input_transformer_manager.transform_cell(raw_cell).splitlines():
        return None
    return text


def show_as_typed(filename: str, line: int) -> None:
    """Make the stored source of `filename` show line `line` as the user typed it.

    Tracebacks read this source, in which the magic is a call.
    """
    for cache in _stores():
        entry = cache.get(filename)
        # An entry of one item is a source that nobody has read yet.
        if entry is None or len(entry) != 4 or len(entry[2]) < line:
            continue
        size, changed, lines, name = entry
        shown = list(lines)
        shown[line - 1] = line_as_typed(shown[line - 1])
        cache[filename] = (size, changed, shown, name)


def _stores() -> list[dict[str, Any]]:
    """Return the places where sources are stored.

    IPython 7 keeps a second one, `linecache._ipython_cache` (seen in 7.34), from which it restores the first; later
    versions do without.
    """
    return [linecache.cache, getattr(linecache, "_ipython_cache", {})]
