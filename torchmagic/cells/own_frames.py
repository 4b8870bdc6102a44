"""Show the user's errors without the frames that following a cell puts below theirs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import torchmagic.tracing

if TYPE_CHECKING:
    from types import TracebackType

    from IPython.core.interactiveshell import InteractiveShell

_OURS: Final = f"{Path(torchmagic.tracing.__file__).parent}{os.sep}"
_WRAPPERS: Final = (f"{os.sep}torch{os.sep}_dynamo{os.sep}", f"{os.sep}torch{os.sep}_compile.py")
_MOST_CHAINED: Final = 100


class OwnFrames:
    """While it is hidden, an error of a cell is shown as that of the bare cell.

    IPython's custom exception handler is the one place between an error and its traceback; one that the user has set
    is called as before.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._before: tuple[Any, Any] | None = None
        self._ours: Any = None

    def hide(self) -> None:
        """Take the frames out of every error from now on."""
        shell: Any = self._shell
        self._before = (shell.custom_exceptions, shell.CustomTB)
        shell.set_custom_exc((BaseException,), self._handle)
        self._ours = shell.CustomTB

    def restore(self) -> None:
        """Let IPython show errors as before, unless somebody else has taken the place since."""
        shell: Any = self._shell
        if self._before is not None and shell.CustomTB is self._ours:
            shell.custom_exceptions, shell.CustomTB = self._before
        self._before = None

    def _handle(self, shell: Any, etype: type, value: BaseException, tb: Any, tb_offset: int | None = None) -> Any:
        without_own_frames(value)
        wanted, show = self._before or ((), None)
        if wanted and show is not None and issubclass(etype, wanted):
            return show(etype, value, tb, tb_offset=tb_offset)
        shell.showtraceback((etype, value, tb), tb_offset=tb_offset, running_compiled_code=True)
        return None


def without_own_frames(error: BaseException) -> None:
    """Take the frames of this package out of the traceback of an error, and of those that it came from."""
    waiting: list[BaseException] = [error]
    known: set[int] = set()
    while waiting and len(known) < _MOST_CHAINED:
        current = waiting.pop()
        if id(current) in known:
            continue
        known.add(id(current))
        _cut(current.__traceback__)
        waiting += [other for other in (current.__cause__, current.__context__) if other is not None]


def _cut(tb: TracebackType | None) -> None:
    """Take entries out of a chain behind its first one, which is IPython's own."""
    entries = []
    while tb is not None:
        entries.append(tb)
        tb = tb.tb_next
    ours = {i for i, entry in enumerate(entries) if i and entry.tb_frame.f_code.co_filename.startswith(_OURS)}
    for index in sorted(ours):
        before = index - 1
        while before > 0 and any(part in entries[before].tb_frame.f_code.co_filename for part in _WRAPPERS):
            ours.add(before)
            before -= 1
    kept = [entry for index, entry in enumerate(entries) if index not in ours]
    for entry, following in zip(kept, [*kept[1:], None], strict=True):
        if entry.tb_next is not following:
            entry.tb_next = following
