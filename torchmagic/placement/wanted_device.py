"""Tensors off the device that the user named."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torchmagic import devices
from torchmagic.checking import Facts
from torchmagic.findings import Fix
from torchmagic.namespace import Seen
from torchmagic.placement.host_indices import is_host_index
from torchmagic.placement.misplaced import Misplaced, grouped
from torchmagic.source.edits import replace_all

_DATA = ("torch.utils.data",)


def strays_by_name(facts: Facts) -> list[list[Seen]]:
    """Return the tensors off the device the user asked for, one list for each variable that reaches some."""
    strays: dict[str, list[Seen]] = {}
    for seen in facts.found.of_kind("tensor") if facts.device is not None else ():
        if _is_off(facts, seen):
            strays.setdefault(seen.places[0].root, []).append(seen)
    return list(strays.values())


def off_wanted_device(facts: Facts, strays: list[Seen]) -> Iterator[Misplaced]:
    """Report what one variable reaches, by the variable when all of it is elsewhere."""
    if facts.device is None:
        return
    first = strays[0]
    whole = facts.found.find(facts.found.names.get(first.places[0].root))
    device = str(devices.device_of(first.obj))
    all_off = whole is not None and whole.kind == "module" and devices.home_of(whole.obj) == device
    subject = whole.subject if whole is not None and all_off else first.subject
    count = f"{len(strays)} tensors are" if len(strays) > 1 else "this tensor is"
    yield Misplaced(
        subject=subject,
        fact=f"{count} on {device}, not on {facts.device}",
        objects=tuple(stray.obj for stray in strays),
        device=device,
        wanted=facts.device,
        line=_line(facts, whole or first),
        consequences=tuple(stray.subject for stray in strays[1:6]),
        fix=_fix(facts, whole or first),
    )


def _is_off(facts: Facts, seen: Seen) -> bool:
    device, place = devices.device_of(seen.obj), seen.places[0]
    if device is None or facts.device is None or devices.same(device, facts.device) or devices.is_scalar(seen.obj):
        return False
    if place.role in ("grad", "closure", "self") or place.key == "step":
        return False
    return not is_host_index(facts, seen) and not any(_is_data_set(link.owner) for link in place.chain)


def _is_data_set(owner: Any) -> bool:
    kinds = type.__getattribute__(type(owner), "__mro__")
    return any(str(kind.__module__).startswith(_DATA) for kind in kinds)


def _line(facts: Facts, seen: Seen) -> int | None:
    write = next((w for w in reversed(facts.writes_to(seen)) if w.kind == "bind"), None)
    return facts.line_of(write) if write is not None else None


def _fix(facts: Facts, seen: Seen) -> Fix | None:
    """Move the value where it is bound, when one plain binding of the cell makes it."""
    binds = [w for w in facts.writes_to(seen) if w.kind == "bind"]
    if len(binds) != 1 or facts.source is None or binds[0].value is None or not binds[0].step.scope.unit.is_cell:
        return None
    write = binds[0]
    if write.how != "=" or write.position is not None or seen.kind not in ("tensor", "module") or write.value is None:
        return None
    text = replace_all(
        facts.source, write.line, {write.value: f'{grouped(facts.source, write.value)}.to("{facts.device}")'}
    )
    return Fix(text) if text is not None else None
