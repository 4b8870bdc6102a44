"""What a caching function hands out again and again, written in place by one of those who asked."""

from __future__ import annotations

import ast
import functools
from collections.abc import Iterator
from typing import NamedTuple

from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import copied_value
from torchmagic.sharing.crossing import is_blank
from torchmagic.sharing.holders import Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values
from torchmagic.sharing.words import doer, now_holds
from torchmagic.source import Ref, Scope, Step, Write
from torchmagic.source.calls import Call, argument_node
from torchmagic.source.decorators import keeps_results
from torchmagic.source.memory_paths import last_bind, memory_ref
from torchmagic.source.order import may_follow

_DEEPEST = 6
_CACHING = type(functools.lru_cache(len))


class Asked(NamedTuple):
    """A change to what a caching function returned, and the statement that asked for it."""

    scope: Scope
    write: Write
    change: Change


def written_results(timeline: Timeline) -> Iterator[Asked]:
    """Yield the changes to results that are asked for again after the change."""
    for scope in timeline.program.scopes:
        if keeps_results(scope) and _was_asked_again(timeline, scope) and not _returns_blank(timeline, scope):
            calls = timeline.program.spelled_callers(scope)
            for change in timeline.changes:
                if change.kind != "write" or change.fills or change.target is None:
                    continue
                asked = _asked(timeline, change.target, change.step, calls, _DEEPEST)
                if asked is not None and _is_followed(timeline, change, calls):
                    yield Asked(scope, asked, change)
                    break


def judge_result(timeline: Timeline, asked: Asked) -> Iterator[Sharing]:
    """Yield a verdict about the variable that holds the written result, or about the function."""
    scope, write, change = asked
    tensors = timeline.facts.found.of_kind("tensor", "array")
    holders = (Holder(seen, place) for seen in tensors for place in seen.places)
    holder = next((h for h in holders if not h.is_machinery and change.names(h)), None)
    subject = holder.text if holder is not None else scope.name
    now = now_holds(holder, change, timeline) if holder is not None else ""
    yield Sharing(
        subject=subject,
        message=f"`{subject}`: `{scope.name}` keeps what it returns and hands it out again, and {doer(change)} writes "
        f"it{now}; write a copy",
        line=timeline.line_of(write.step),
        others=(scope.name,),
        fix=copied_value(timeline, write.step, write.value, holder.seen, [holder]) if holder is not None else None,
        evidence={
            "written_on_line": change.line,
            "first_values": first_values(holder.seen) if holder is not None else [],
        },
    )


def _was_asked_again(timeline: Timeline, scope: Scope) -> bool:
    """Tell whether the live function has handed out a result that it had kept."""
    function = timeline.facts.value(Ref(scope.name)) if scope.class_name is None else None
    return type(function) is _CACHING and function.cache_info().hits > 0


def _returns_blank(timeline: Timeline, scope: Scope) -> bool:
    """Tell whether a function hands out memory to work in, or memory that has another holder anyway."""
    returned = [_made_as(timeline, value, step) for value, step in timeline.program.results.get(scope, ())]
    return not returned or any(is_blank(value) or memory_ref(value) is not None for value in returned)


def _made_as(timeline: Timeline, value: ast.expr, step: Step) -> ast.expr:
    if isinstance(value, ast.Name):
        bound = last_bind(timeline.program, value.id, step.scope.owner_of(value.id), step)
        if bound is not None and bound.value is not None and bound.position is None:
            return bound.value
    return value


def _asked(timeline: Timeline, target: Ref, step: Step, calls: list[Call], depth: int) -> Write | None:
    """Return the statement that got what a path leads into from one of these calls."""
    program, owner = timeline.program, step.scope.owner_of(target.root)
    bound = last_bind(program, target.root, owner, step)
    if bound is not None:
        if any(call.node is bound.value for call in calls):
            return bound
        source = memory_ref(bound.value) if bound.how in ("=", ":=") else None
        deeper = source is not None and depth and source.root != target.root
        return _asked(timeline, source, bound.step, calls, depth - 1) if source is not None and deeper else None
    for caller in program.callers(owner) if target.root in owner.parameters and depth else ():
        given = memory_ref(argument_node(caller, owner, target.root))
        found = _asked(timeline, given, caller.step, calls, depth - 1) if given is not None else None
        if found is not None:
            return found
    return None


def _is_followed(timeline: Timeline, change: Change, calls: list[Call]) -> bool:
    """Tell whether one of the calls runs after a change, be it the same in another pass."""
    again = [context for call in calls for context in timeline.program.contexts(call.step, call.node)]
    return any(
        may_follow(later, changing, kept=True)
        for later in again
        for changing in change.contexts
        if later is not changing
    )
