"""One module under two names that the text uses as two: compared with itself, or trained by an optimizer for each."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator

from torchmagic.kinds import kind_of_class
from torchmagic.namespace import Seen
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import deep_copied
from torchmagic.sharing.holders import Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import doer
from torchmagic.source import Ref, Step, ref_of


def judge_twins(timeline: Timeline, seen: Seen, holders: list[Holder], trainings: list[Change]) -> Sharing | None:
    """Return a verdict about a module that training changes under two names, each of which stands for one of two."""
    named = [holder for holder in holders if holder.place.role in ("name", "attribute", "submodule")]
    if len(named) < 2 or not trainings:
        return None
    pair = _used_as_two(timeline, seen)
    if pair is None:
        return None
    for holder in sorted(named, key=lambda each: str(each.place.key), reverse=True):
        other = next((each for each in named if each is not holder and str(each.place.key) in pair), None)
        capture = timeline.capture_of(holder)
        if str(holder.place.key) in pair and other is not None and capture is not None:
            return Sharing(
                subject=holder.text,
                message=f"`{holder.text}`: the same module as `{other.text}`, so {doer(trainings[0])} trains both; "
                "make two modules",
                line=timeline.line_of(capture.step),
                others=(other.text,),
                fix=deep_copied(timeline, capture.step, capture.write.value)
                if timeline.is_alias(capture) is not None
                else None,
                evidence={"trained_on_line": trainings[0].line},
            )
    return None


def _used_as_two(timeline: Timeline, seen: Seen) -> set[str] | None:
    """Return the names under which the text uses a module as two."""
    optimized: set[str] = set()
    for step in timeline.program.steps:
        if isinstance(step.node, ast.Assert):
            continue
        together: dict[str, set[str]] = defaultdict(set)
        for ref, call in _calls(step):
            is_method = bool(ref.steps) and ref.steps[-1] == ("attr", "parameters")
            module = Ref(ref.root, ref.steps[:-1]) if is_method else ref
            if timeline.facts.value(module, step.scope) is not seen.obj:
                continue
            if not is_method:
                together[_given(call)].add(module.last_name)
            elif any(_makes_optimizer(timeline, step, outer, call) for outer in _outer_calls(step)):
                optimized.add(module.last_name)
        for names in together.values():
            if len(names) > 1:
                return names
    return optimized if len(optimized) > 1 else None


def _calls(step: Step) -> Iterator[tuple[Ref, ast.Call]]:
    for call in _outer_calls(step):
        if (ref := ref_of(call.func)) is not None:
            yield ref, call


def _outer_calls(step: Step) -> Iterator[ast.Call]:
    yield from (node for node in step.nodes if isinstance(node, ast.Call))


def _given(call: ast.Call) -> str:
    return " ".join(map(ast.dump, [*call.args, *call.keywords]))


def _makes_optimizer(timeline: Timeline, step: Step, outer: ast.Call, inner: ast.Call) -> bool:
    """Tell whether a call makes an optimizer of the parameters of one module."""
    made = ref_of(outer.func)
    if outer.args[:1] != [inner] or made is None:
        return False
    live = timeline.facts.value(made, step.scope)
    return issubclass(type(live), type) and kind_of_class(live) == "optimizer"
