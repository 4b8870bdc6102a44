"""Tell IPython's own names in the user's namespace from the user's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_HISTORY_NAME: Final = re.compile(r"_{1,3}|_i{1,3}|_i?\d+|_[iod]h|_exit_code|In|Out")

_ABSENT: Final = object()


def own_names(shell: InteractiveShell) -> frozenset[str]:
    """Return the names in `shell.user_ns` that IPython put there and the user has not taken over.

    As for `%who`, a name counts as the user's when it holds something else than what IPython put there.
    """
    put = shell.user_ns_hidden
    return frozenset(
        name
        for name, value in shell.user_ns.copy().items()
        if value is put.get(name, _ABSENT) or _HISTORY_NAME.fullmatch(name)
    )
