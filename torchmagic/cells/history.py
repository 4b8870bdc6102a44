"""What a shell keeps of earlier cells, and how to let go of it: outputs, the last exception, the last result.

Seen in IPython 7.34 and 9.18; an attribute that another version lacks is passed over.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from IPython.core.interactiveshell import InteractiveShell

_LAST_RESULTS: Final = ("_", "__", "___")
_LAST_ERROR: Final = ("last_type", "last_value", "last_traceback", "last_exc")


def last_errors(shell: InteractiveShell) -> list[BaseException]:
    """Return the exceptions that Python and IPython keep for `%debug` and `%tb`."""
    result = shell.last_execution_result
    kept = [getattr(sys, name, None) for name in ("last_exc", "last_value")]
    if result is not None:
        kept += [result.error_in_exec, result.error_before_exec]
    return [error for error in kept if isinstance(error, BaseException)]


def clear_outputs(shell: InteractiveShell) -> int:
    """Empty `Out` and its short names, and return how many outputs there were.

    A name that the user has taken over, such as the `_` of a loop, is left alone.
    """
    out = shell.user_ns.get("_oh")
    if not isinstance(out, dict):
        return 0
    count = len(out)
    hook: Any = shell.displayhook
    for number in list(out):
        _remove(shell, f"_{number}", out[number])
    out.clear()
    for name in _LAST_RESULTS:
        kept = getattr(hook, name, "")
        if shell.user_ns.get(name) is kept:
            shell.user_ns[name] = ""
        if name in shell.user_ns_hidden:
            shell.user_ns_hidden[name] = ""
        setattr(hook, name, "")
    return count


def _remove(shell: InteractiveShell, name: str, value: object) -> None:
    for names in (shell.user_ns, shell.user_ns_hidden):
        if names.get(name) is value:
            del names[name]


def clear_errors(shell: InteractiveShell, errors: Iterable[BaseException], users: Collection[int]) -> None:
    """Let go of the frames of these exceptions, and forget which was the last.

    Neither `sys.last_traceback = None` nor `traceback.clear_frames` does that. `users` are the identities of exceptions
    that a variable of the user's holds: those keep their frames.
    """
    for error in errors:
        if id(error) not in users:
            error.__traceback__ = None
    for name in _LAST_ERROR:
        if hasattr(sys, name):
            delattr(sys, name)
    formatter = getattr(shell, "InteractiveTB", None)
    # The debugger keeps the frames that it stopped in; IPython makes a new one when it is wanted.
    for name in ("tb", "pdb"):
        if getattr(formatter, name, None) is not None:
            setattr(formatter, name, None)


def clear_result(shell: InteractiveShell) -> bool:
    """Forget the result of the last cell; return whether there was one."""
    had = shell.last_execution_result is not None
    shell.last_execution_result = None
    return had
