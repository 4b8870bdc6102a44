"""Let a shell tell a lifecycle of its cells, and turn the magics' first lines into calls; and end both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from torchmagic.cells.transformer import arm_cell

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.cells.lifecycle import Lifecycle

_EVENTS: Final = ("pre_run_cell", "post_run_cell")


def listen(shell: InteractiveShell, lifecycle: Lifecycle) -> None:
    """Register a lifecycle for the shell's events, and the transformer."""
    register_transformer(shell)
    for event in _EVENTS:
        shell.events.register(event, getattr(lifecycle, event))


def register_transformer(shell: InteractiveShell) -> None:
    """Put the transformer into its place, where it is not there already."""
    if arm_cell not in shell.input_transformers_cleanup:
        shell.input_transformers_cleanup.append(arm_cell)


def stop_listening(shell: InteractiveShell) -> None:
    """Take the transformer and every lifecycle away, whichever copy of this package registered them."""
    transformers = shell.input_transformers_cleanup
    transformers[:] = [transformer for transformer in transformers if not _is_ours(transformer)]
    for event in _EVENTS:
        callbacks = shell.events.callbacks[event]
        callbacks[:] = [callback for callback in callbacks if not _is_ours(callback)]


def _is_ours(function: object) -> bool:
    """Tell whether this package, in this copy or another one, registered `function`."""
    return getattr(function, "__module__", "").startswith("torchmagic.cells.")
