"""Weights inside a loss that stayed on the host while the network went elsewhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.checking.expressions import live_value
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.placement.misplaced import Misplaced, device_text, grouped, is_moved_in_text
from torchmagic.source.edits import replace_all
from torchmagic.source.transfers import transfers


def left_in_loss(facts: Facts, seen: Seen) -> Iterator[Misplaced]:
    """Judge one loss module beside all the other modules that are in use."""
    loss = sys.modules["torch"].nn.modules.loss._Loss  # noqa: SLF001  the base of torch's losses, since torch 0.3
    home = devices.home_of(seen.obj)
    if not issubclass(type(seen.obj), loss) or home != devices.HOST:
        return
    homes: set[str] = set()
    for other in facts.found.of_kind("module"):
        if other.places[0].role != "submodule" and not issubclass(type(other.obj), loss):
            homes |= devices.devices_of_module(other.obj)
    if len(homes) != 1 or home in homes or _is_fed_from_host(facts, seen) or is_moved_in_text(facts, seen.obj):
        return
    wanted = homes.pop()
    weight = next(iter(devices.own_tensors(seen.obj)))
    inside = facts.found.find(weight)
    step = next((p.step for p in inside.places if p.owner is seen.obj), "") if inside is not None else ""
    write = next((w for w in reversed(facts.writes_to(seen)) if w.kind == "bind"), None)
    fix = None
    if write is not None and write.value is not None and write.step.scope.unit.is_cell and facts.source is not None:
        moved = f"{grouped(facts.source, write.value)}.to({device_text(facts, wanted)})"
        text = replace_all(facts.source, write.line, {write.value: moved})
        fix = Fix(text) if text is not None else None
    yield Misplaced(
        subject=f"{seen.subject}{step}",
        fact=f"the weight of this loss is on {home}, and every network is on {wanted}; move the loss too",
        objects=(seen.obj, weight),
        device=home,
        wanted=wanted,
        line=facts.line_of(write) if write is not None else None,
        fix=fix,
    )


def _is_fed_from_host(facts: Facts, seen: Seen) -> bool:
    """Tell whether the program calls the loss with what it brings to the host itself."""
    calls = [
        call
        for call, step in (facts.program.calls if facts.program is not None else ())
        if live_value(facts, call.func, step) is seen.obj
    ]
    return bool(calls) and all(any(True for a in call.args for _ in transfers(a)) for call in calls)
