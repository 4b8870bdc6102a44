"""A model's or optimizer's tensors kept for later, while training goes on writing into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from torchmagic.namespace.overlap import shares_bytes
from torchmagic.sharing.changes import Change
from torchmagic.sharing.copies import cloned_state, copied_value, deep_copied
from torchmagic.sharing.holders import MODULE_ROLES, Capture, Holder, covers, entry_of, reaches
from torchmagic.sharing.intent import KEPT_WORDS, words_of
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing
from torchmagic.sharing.words import contents, copy_there, doer, plain
from torchmagic.source import Ref, Step, Write, reads
from torchmagic.source.memory_paths import ALL, memory_paths, memory_ref

_COLLECTIONS = frozenset({"parameters", "named_parameters", "buffers", "named_buffers", "state_dict"})


def judge_kept(timeline: Timeline, holders: list[Holder], changes: list[Change]) -> Iterator[Sharing]:
    """Yield a verdict for each holder outside of the model that is meant to keep what training changes."""
    trained = {tensor for change in changes if change.kind == "training" for tensor in change.trained}
    trained -= {id(holder.seen.obj) for holder in holders if holder.is_machinery}
    owners = [holder for holder in holders if holder.is_machinery or id(holder.seen.obj) in trained]
    said: set[object] = set()
    for holder in holders:
        if holder.place.root in timeline.loop_variables or (holder.is_machinery and holder.place.role != "buffer"):
            continue
        owner = next((o for o in owners if _may_own(o, holder) and shares_bytes(o.seen, holder.seen)), None)
        if owner is None:
            continue
        if _is_owner_itself(holder, owner) and not (
            _is_kept_by_name(holder) or any(_mixes(timeline, change, holder, owner) for change in changes)
        ):
            continue
        verdict = _judge(timeline, holder, owner, changes)
        slot = (id(holder.place.owner), holder.place.key)
        if verdict is not None:
            if not {verdict.subject, slot} & said:
                yield verdict
            said |= {verdict.subject, slot}


def _judge(timeline: Timeline, holder: Holder, owner: Holder, changes: list[Change]) -> Sharing | None:
    capture = timeline.capture_of(holder)
    is_buffer = holder.place.role == "buffer"
    written = [change for change in changes if change.names(holder) and (not is_buffer or change.kind == "write")]
    if any(not _reads_owner(timeline, change.step, owner) for change in written):
        return None  # the holder is there to write the model through
    if capture is not None and _copies(entry_of(capture.write.value, holder)):
        capture = _loading(timeline, holder)
        if capture is None:
            return None
    joined = timeline.capture_of(owner)
    later = [c for c in changes if timeline.follows(c, capture) and not timeline.precedes(c, joined)]
    if not later:
        return None
    stale = [step for step in timeline.reads_after(holder, later) if not _is_fresh(step, capture)]
    compared = [step for step in stale if _reads_owner(timeline, step, owner)]
    stale = compared + [s for s in stale if not is_buffer and not timeline.in_one_loop(later[0], s, capture)]
    if holder.container is None and not (stale if owner.is_machinery else compared or _speaks_of_before(holder, stale)):
        return None
    if not stale and (timeline.reads(holder) if capture is not None else not _is_from_before(holder)):
        return None  # it was used at once: saved, or loaded elsewhere
    return _verdict(timeline, holder, owner, capture, later[0])


def _reads_owner(timeline: Timeline, step: Step, owner: Holder) -> bool:
    """Tell whether a statement reads the owner too: what it reads together it takes for two values."""
    names = {str(link.key) for link in owner.place.chain if link.role != "item"}
    if any(timeline.mentions(step, name) for name in names | _COLLECTIONS):
        return True
    refs = {ref for own in step.own_expressions() for ref in reads(own)}
    paths = {path for ref in refs for path in memory_paths(timeline.program, ref, step)}
    return any(reaches(path, owner.place) for path in paths) or _names_model(timeline, paths, owner)


def _names_model(timeline: Timeline, paths: set[Ref], owner: Holder) -> bool:
    """Tell whether a path stands for all parameters of a module that the owner belongs to, under any of its names."""
    modules = [timeline.facts.found.find(link.owner) for link in owner.place.chain if link.role in MODULE_ROLES]
    places = [place for module in modules if module is not None for place in module.places]
    every = (ALL, "parameters")
    starts = [Ref(path.root, path.steps[: path.steps.index(every)]) for path in paths if every in path.steps]
    return any(covers(start, place) == 0 for start in starts for place in places)


def _speaks_of_before(holder: Holder, stale: list[Step]) -> bool:
    """Tell whether what is read again is called a value from before: a tensor trained by itself may have a window."""
    return bool(stale) and bool(words_of(str(holder.place.key)) & KEPT_WORDS)


def _is_from_before(holder: Holder) -> bool:
    """Tell whether a container that an earlier cell made is called what people call values from before."""
    return bool(words_of(str(holder.place.chain[0].key)) & KEPT_WORDS)


def _may_own(owner: Holder, holder: Holder) -> bool:
    """Tell whether a holder could be the owner of what another one keeps; for a buffer, only a parameter is."""
    return holder.place.role != "buffer" or (owner.place.role == "parameter" and owner.seen is not holder.seen)


def _is_owner_itself(holder: Holder, owner: Holder) -> bool:
    """Tell whether a holder has the very tensor that is trained: a parameter, or what an optimizer was made for."""
    return owner.seen.obj is holder.seen.obj and (owner.place.role == "parameter" or not owner.is_machinery)


def _mixes(timeline: Timeline, change: Change, holder: Holder, owner: Holder) -> bool:
    """Tell whether a write puts together what a holder and the owner have, as an average does; a step reads `.grad`."""
    if change.kind != "write" or holder.container is None or not change.names(holder):
        return False
    refs = {ref for own in change.step.own_expressions() for ref in reads(own)}
    if any(step == ("attr", "grad") for ref in refs for step in ref.steps):
        return False
    others = [ref for ref in refs if change.target is None or ref.root != change.target.root]
    paths = [path for ref in others for path in memory_paths(timeline.program, ref, change.step)]
    return any(path.root != holder.place.root and _leads_to(timeline, path, owner) for path in paths)


def _leads_to(timeline: Timeline, path: Ref, owner: Holder) -> bool:
    return reaches(path, owner.place) or _names_model(timeline, {path}, owner)


def _is_kept_by_name(holder: Holder) -> bool:
    """Tell whether a variable is called what a person calls a value from before."""
    return holder.is_variable and bool(words_of(holder.text) & KEPT_WORDS)


def _copies(value: ast.expr | None) -> bool:
    """Tell whether a value is a copy, so that it came to be shared elsewhere."""
    calls = [node.func for node in ast.walk(value) if isinstance(node, ast.Call)] if value is not None else []
    return any(
        (f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "")) in ("deepcopy", "clone") for f in calls
    )


def _loading(timeline: Timeline, holder: Holder) -> Capture | None:
    """Return the `load_state_dict` that made an optimizer take over the holder's tensors, which it does not copy."""
    for call, step in timeline.program.calls_of("load_state_dict"):
        ref = memory_ref(call.args[0]) if call.args else None
        paths = memory_paths(timeline.program, ref, step) if ref is not None else []
        if ref is not None and any(covers(path, holder.place) is not None for path in paths):
            write = Write("inplace", ref, call.args[0], step, call, "load_state_dict")
            return Capture(write, tuple(timeline.program.contexts(step)), kept=False)
    return None


def _is_fresh(step: Step, capture: Capture | None) -> bool:
    """Tell whether a reading stands right behind the capture, under the same conditions and in the same loops."""
    if capture is None or step.scope is not capture.step.scope or step.order < capture.step.order:
        return False
    same_loops = step.loops[: len(capture.step.loops)] == capture.step.loops
    return same_loops and bool(capture.step.tests) and step.tests[: len(capture.step.tests)] == capture.step.tests


def _verdict(timeline: Timeline, holder: Holder, owner: Holder, capture: Capture | None, change: Change) -> Sharing:
    place = holder.container or holder.place
    what = "the optimizer's state" if owner.place.role == "state" else f"the memory of `{owner.text}`"
    count = _entries_of(timeline, holder, owner)
    if count > 1 and owner.place.role != "state":
        what = f"the memory of `{_model(owner)}`"
    entries = f"{count} of its entries are" if count > 1 else "an entry is" if holder.container is not None else "it is"
    now = contents(plain(holder.seen.obj), holder.text)
    fix, line = None, change.line
    if capture is not None:
        step, value = timeline.maker(capture)
        entry = entry_of(value, holder)
        line = entry.lineno if entry is not None and step.scope.unit.is_cell else timeline.line_of(step)
        fix = cloned_state(timeline, step, value)
        if fix is None and owner.place.role == "state":
            fix = deep_copied(timeline, step, value)
        fix = fix or copied_value(timeline, step, value, holder.seen, [holder, owner])
    return Sharing(
        subject=place.text,
        message=f"`{place.text}`: {entries} {what}, which {doer(change)} goes on changing{now and f'; {now}'}; "
        f"{copy_there(capture, holder, 'keep a copy')}",
        line=line,
        others=(owner.text,),
        fix=fix,
        evidence={"changed_on_line": change.line, "entry": holder.text, "entries": count},
    )


def _model(owner: Holder) -> str:
    """Return the path of the outermost module that an owner belongs to, or its own."""
    chain = owner.place.chain
    first = next((link for link in chain if link.role in ("parameter", "buffer", "submodule")), None)
    return first.parent.text if first is not None and first.parent is not None else owner.text


def _entries_of(timeline: Timeline, holder: Holder, owner: Holder) -> int:
    """Return how many entries of the holder's container are memory of the same owner's: its model, or its optimizer."""
    if holder.container is None:
        return 0
    root, found = owner.place.root, timeline.facts.found
    seen_tensors = list(found.of_kind("tensor", "array"))
    owned = {
        seen.span.storage_start
        for seen in seen_tensors
        if seen.span is not None and any(p.root == root and Holder(seen, p).is_machinery for p in seen.places)
    }
    return sum(
        any(link is holder.container for link in place.chain)
        for seen in seen_tensors
        if seen.span is not None and seen.span.storage_start in owned
        for place in seen.places
    )
