"""The magics: parse the line, call one function, show what it returns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchmagic.cells.registration import stop_listening
from torchmagic.magics.gpumem import load_gpumem, unload_gpumem
from torchmagic.magics.torchcheck import load_torchcheck, unload_torchcheck

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


def load(shell: InteractiveShell) -> None:
    """Register every magic in `shell`, in place of any copy that is there already."""
    unload(shell)
    load_torchcheck(shell)
    # Last to hear that a cell ends: a trace that began after it, below it, is over by then.
    load_gpumem(shell)


def unload(shell: InteractiveShell) -> None:
    """Take every magic away from `shell`."""
    stop_listening(shell)
    unload_gpumem(shell)
    unload_torchcheck(shell)
