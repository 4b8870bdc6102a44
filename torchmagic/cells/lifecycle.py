"""Know which cell is running, and tell its request when it ends."""

from __future__ import annotations

import os
import threading
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import ExecutionInfo, ExecutionResult, InteractiveShell


class Request(Protocol):
    """What somebody wants when a cell ends."""

    def end(self, result: ExecutionResult | None) -> None:
        """Do it. `result` is None when IPython has none, as after an interrupted `await`."""

    def drop(self) -> None:
        """Let go of what was begun for it: the cell ends, and nobody wants it any more."""


@dataclass
class OpenCell:
    """A cell that has started and not ended. `standing` tells that the request is that of every cell."""

    info: ExecutionInfo
    request: Request | None = None
    standing: bool = False

    @property
    def raw_cell(self) -> str:
        """The cell as typed."""
        return self.info.raw_cell or ""

    def drop(self) -> None:
        """Let the cell end without its request."""
        request, self.request = self.request, None
        if request is not None:
            request.drop()


class _Stack(threading.local):
    """The open cells of one thread, outermost first: kernels run subshells' cells side by side in threads."""

    def __init__(self) -> None:
        self.cells: list[OpenCell] = []


class Lifecycle:
    """The cells that one shell is running.

    `pre_run_cell` and `post_run_cell` are IPython's events and stay registered; a request belongs to one cell, so
    cells that run inside it, silent cells and other extensions' cells do not end it.
    """

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._stack = _Stack()
        self._standing: Callable[[OpenCell], Request | None] | None = None
        _LIFECYCLES.add(self)

    def current(self) -> OpenCell | None:
        """Return the cell whose code is running now, or None when there is none that will be told to have ended."""
        cells = self._stack.cells
        # IPython sets the result just before the cell's code, and takes it away after a cell within the cell.
        result = self._shell.displayhook.exec_result
        if result is not None:
            info = result.info
            if info is not None and info.silent:
                return None
            for cell in cells:
                if cell.info is info:
                    return cell
        return cells[-1] if cells else None

    def set_standing(self, make: Callable[[OpenCell], Request | None] | None) -> None:
        """Let every outermost cell from the next one on begin with the request that `make` returns; None ends it."""
        self._standing = make
        self.skip_standing()

    def skip_standing(self) -> None:
        """Let the cell that is running now end without the standing request."""
        for cell in self._stack.cells:
            if cell.standing:
                cell.drop()

    def pre_run_cell(self, info: ExecutionInfo) -> None:
        """Note that a cell starts."""
        cell = OpenCell(info)
        cells = self._stack.cells
        cells.append(cell)
        if self._standing is not None and len(cells) == 1:
            cell.standing = True
            cell.request = self._standing(cell)

    def post_run_cell(self, result: ExecutionResult | None) -> None:
        """Note that a cell has ended, and those inside it; then tell its own request."""
        cells = self._stack.cells
        index = self._index(result)
        if index is None:
            return
        request = cells[index].request
        for inner in cells[index + 1 :]:
            inner.drop()
        del cells[index:]
        if request is not None:
            request.end(result)

    def forget(self) -> None:
        """Forget every cell and the standing request."""
        for cell in self._stack.cells:
            cell.drop()
        self._stack = _Stack()
        self._standing = None

    def _index(self, result: ExecutionResult | None) -> int | None:
        """Find the open cell that `result` is about: blank cells, and the one that loads the extension, are unknown."""
        cells = self._stack.cells
        if result is None:
            # ipykernel has no result when the task that ran the cell was cancelled.
            return 0 if cells else None
        info = result.info
        for index, cell in enumerate(cells):
            if cell.info is info:
                return index
        # After an exception that escapes its own machinery IPython makes the same information anew.
        for index in range(len(cells) - 1, -1, -1):
            if info is not None and cells[index].raw_cell == info.raw_cell:
                return index
        return None


_LIFECYCLES: Final[weakref.WeakSet[Lifecycle]] = weakref.WeakSet()


def _forget_after_fork() -> None:
    """In a child process, leave the cells to the parent: a worker that gets back to IPython must not report."""
    for lifecycle in _LIFECYCLES:
        lifecycle.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_after_fork)
