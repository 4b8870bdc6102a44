"""A tensor or array over the bytes of a bytearray, which are read as they were after it was written."""

from __future__ import annotations

import array
import ast
from collections.abc import Iterator

from torchmagic.namespace import Seen
from torchmagic.sharing.holders import Capture, Holder
from torchmagic.sharing.timeline import Timeline
from torchmagic.sharing.verdict import Sharing, first_values, kind_word
from torchmagic.sharing.words import doer
from torchmagic.source import Ref, ref_of
from torchmagic.source.memory_paths import last_bind
from torchmagic.source.order import may_follow
from torchmagic.source.refs import bare_name

_BYTES = (bytearray, memoryview, array.array)


def over_bytes(timeline: Timeline) -> Iterator[tuple[Seen, Capture, Ref]]:
    """Yield what `frombuffer` made of a variable with bytes in it, with the statement and the variable."""
    if not timeline.program.calls_of("frombuffer"):
        return
    for seen in timeline.facts.found.of_kind("tensor", "array"):
        capture = timeline.capture_of(Holder(seen, seen.places[0]))
        for node in ast.walk(capture.write.value) if capture is not None and capture.write.value is not None else ():
            if (
                capture is not None
                and isinstance(node, ast.Call)
                and bare_name(node.func) == "frombuffer"
                and node.args
            ):
                raw = ref_of(node.args[0])
                if raw is not None and type(timeline.facts.value(raw, capture.step.scope)) in _BYTES:
                    yield seen, capture, raw


def judge_bytes(timeline: Timeline, seen: Seen, capture: Capture, raw: Ref) -> Iterator[Sharing]:
    """Yield a verdict when the bytes are read after a write in place; bytes without values are there to be filled."""
    holder = Holder(seen, seen.places[0])
    if timeline.source_of(capture) is None or _is_blank(timeline, raw, capture):
        return
    for change in timeline.changes:
        if change.kind != "write" or not change.names(holder) or not timeline.follows(change, capture):
            continue
        readings = [step for step in timeline.program.steps if timeline.mentions(step, raw.last_name)]
        after = [c for step in readings for c in timeline.program.contexts(step) if step is not change.step]
        if any(may_follow(reading, changing) for reading in after for changing in change.contexts):
            word = kind_word(seen)
            yield Sharing(
                subject=holder.text,
                message=f"`{holder.text}`: the {word} lies in the bytes of `{raw}`, so {doer(change)} writes them too; "
                f"copy the {word}",
                line=timeline.line_of(capture.step),
                others=(str(raw),),
                evidence={"written_on_line": change.line, "first_values": first_values(seen)},
            )
            return


def _is_blank(timeline: Timeline, raw: Ref, capture: Capture) -> bool:
    """Tell whether the bytes were made by their number: `bytearray(16)`."""
    scope = capture.step.scope.owner_of(raw.root)
    bound = last_bind(timeline.program, raw.root, scope, capture.step) if not raw.steps else None
    call = bound.value if bound is not None else None
    if not isinstance(call, ast.Call) or bare_name(call.func) != "bytearray" or len(call.args) != 1:
        return False
    size = call.args[0]
    live = (
        size.value if isinstance(size, ast.Constant) else timeline.facts.value(ref) if (ref := ref_of(size)) else None
    )
    return type(live) is int or isinstance(size, ast.BinOp)
