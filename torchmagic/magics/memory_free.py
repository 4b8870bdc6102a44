"""`%gpumem --free`: let go of what only the notebook's history holds, and say how much came back from each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchmagic.cells.history import clear_errors, clear_outputs, clear_result, last_errors
from torchmagic.cells.own_names import own_names
from torchmagic.memory_changes import Freed, FreedStep

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from torchmagic.measuring.freeing import AliveStorages


def free(shell: InteractiveShell) -> Freed:
    """Let go of the outputs, the last exception and the last result, collect garbage, and empty the caches."""
    from torchmagic.measuring.freeing import collect, empty_caches
    from torchmagic.measuring.leftovers import chained

    errors = chained(last_errors(shell))
    alive, users = _before(shell, errors)
    steps = []
    count = clear_outputs(shell)
    steps.append(FreedStep("outputs: `Out`, `_` and their like", alive.gone()))
    clear_errors(shell, errors, users)
    had_errors = bool(errors)
    errors.clear()
    steps.append(FreedStep("the frames of the last exception", alive.gone()))
    clear_result(shell)
    steps.append(FreedStep("the result of the last cell", alive.gone()))
    collect()
    steps.append(FreedStep("what only referred to itself", alive.gone()))
    steps.append(FreedStep("caches of allocators", empty_caches()))
    return Freed(tuple(steps), _lost(count, had_errors=had_errors and not users), _kept(users))


def _before(shell: InteractiveShell, errors: list[BaseException]) -> tuple[AliveStorages, dict[int, str]]:
    """Return what is alive, and which of the exceptions a variable of the user's holds, by its path."""
    from torchmagic.measuring.attribution import attribute
    from torchmagic.measuring.freeing import AliveStorages
    from torchmagic.measuring.leftovers import leftovers
    from torchmagic.namespace import undisturbed

    with undisturbed():
        whole = attribute(shell.user_ns, leftovers(shell.user_ns), own_names(shell))
        users = {id(error): seen.subject for error in errors if (seen := whole.found.find(error)) is not None}
        return AliveStorages(whole), users


def _lost(outputs: int, *, had_errors: bool) -> tuple[str, ...]:
    lost = []
    if outputs:
        results = "1 result was" if outputs == 1 else f"{outputs:,} results were"
        lost.append(f"`Out`, `_` and `_1` are empty now; {results} in them.")
    if had_errors:
        lost.append("`%debug` and `%tb` have no exception to show any more.")
    return tuple(lost)


def _kept(users: dict[int, str]) -> tuple[str, ...]:
    return tuple(
        f"`{path}` is the last exception, or in its chain: its frames stay, with what they hold."
        for path in users.values()
    )
