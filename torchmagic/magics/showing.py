"""Show values in whatever front end the shell has: text in a terminal, text and HTML in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from IPython.display import display

if TYPE_CHECKING:
    from collections.abc import Callable

    from IPython.core.interactiveshell import InteractiveShell


def show(shell: InteractiveShell, text: Callable[[], str], html: Callable[[], str]) -> None:
    """Show one thing, made only in the forms that the front end can show.

    The forms are made here and not by `display`, which would answer an error in them with a traceback of its own.
    """
    # Only a kernel's shell knows a kernel.
    if getattr(shell, "kernel", None) is None:
        say(text())
    else:
        display({"text/plain": text(), "text/html": html()}, raw=True)  # type: ignore[no-untyped-call]


def say(text: str) -> None:
    """Print lines of ours, which a notebook and a terminal both show as they are."""
    print(text)  # noqa: T201
