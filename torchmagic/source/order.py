"""Which of two statements can run after the other, through calls and loops."""

from __future__ import annotations

from torchmagic.source.calls import Context


def may_follow(later: Context, earlier: Context, *, kept: bool = False) -> bool:
    """Tell whether the statement of one context runs after that of another has finished for the last time.

    Args:
        later: how the statement that may come after is reached.
        earlier: how the statement that may come before is reached.
        kept: what the earlier statement makes in one pass of a loop outlives the next pass, as elements of a list do;
            then a statement above it in the same loop follows it too.
    """
    index = _common(later, earlier)
    if index == len(earlier.steps):
        return kept and bool(shared_loops(later, earlier))  # it runs inside the other, as part of a call
    if index == len(later.steps):
        return True  # a callback: what calls it goes on afterwards
    if later.steps[index].order > earlier.steps[index].order:
        return True
    return (kept or is_conditional(earlier, later)) and bool(shared_loops(later, earlier))


def shared_loops(one: Context, other: Context) -> int:
    """Return how many loops run both statements."""
    count = 0
    for first, second in zip(one.loops, other.loops, strict=False):
        if first is not second:
            break
        count += 1
    return count


def is_conditional(one: Context, other: Context) -> bool:
    """Tell whether a pass of a common loop may skip the one statement and run the other."""
    index = _common(one, other)
    if index >= len(one.steps) or index >= len(other.steps):
        return False
    outside = {id(test) for test in other.steps[index].tests}
    return any(id(test) not in outside for step in one.steps[index:] for test in step.tests)


def _common(one: Context, other: Context) -> int:
    index = 0
    for first, second in zip(one.steps, other.steps, strict=False):
        if first is not second:
            break
        index += 1
    return index
