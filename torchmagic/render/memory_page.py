"""What a look at memory says: a bar and its parts for each device, and below it who holds the tensors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from torchmagic.render.memory_words import LABELS, amount, hint, percent
from torchmagic.render.words import Code, Sentence, count, cut, duration, listed, marked, size, visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from torchmagic.holdings import DeviceMemory, Holder, Memory, Part, PartKind, Use

MOST_HOLDERS: Final = 10
"""Holders shown on a device; the rest are counted."""

_MOST_INSIDE: Final = 12
_MOST_DEPTH: Final = 4
_LONGEST_PATH: Final = 48


@dataclass(frozen=True)
class PartRow:
    """One part of a device's memory: its kind, its name, its size, its share of the bar, and a hint."""

    kind: PartKind
    label: str
    amount: str
    share: float
    hint: Sentence


@dataclass(frozen=True)
class HolderRow:
    """One holder: how deep it lies in an opened one, its path, size and share, and what it is made of."""

    depth: int
    path: Sentence
    amount: str
    share: str
    split: str
    note: Sentence


@dataclass(frozen=True)
class DeviceSection:
    """One device: its name, the facts beside the name, the parts of its bar, its holders, and what else to know."""

    name: str
    facts: tuple[str, ...]
    parts: tuple[PartRow, ...]
    holders: tuple[HolderRow, ...]
    rest: Sentence
    remarks: tuple[Sentence, ...]


@dataclass(frozen=True)
class MemoryPage:
    """A whole look: its first line, the devices, and sentences about the look itself."""

    title: str
    tails: tuple[str, ...]
    devices: tuple[DeviceSection, ...]
    remarks: tuple[Sentence, ...]


def memory_page(memory: Memory, top: int = MOST_HOLDERS) -> MemoryPage:
    """Put a look into words; of each device, the `top` largest holders are shown one by one."""
    return MemoryPage(
        title=f"gpumem: {_title(memory.devices)}",
        tails=(duration(memory.seconds),) if memory.seconds else (),
        devices=tuple(_section(device, memory, top) for device in memory.devices),
        remarks=(*_nothing(memory.opened), *(marked(_sentence(text)) for text in memory.remarks)),
    )


def device_section(device: DeviceMemory) -> DeviceSection:
    """Return a device without its holders, which a panel shows while a cell runs."""
    return DeviceSection(_name(device), _facts(device), _parts(device), (), (), _remarks(device))


def _title(devices: Sequence[DeviceMemory]) -> str:
    used = [f"{device.device} {_used(device)}" for device in devices]
    return ", ".join(used) or "no device could be read"


def _used(device: DeviceMemory) -> str:
    used = device.used_bytes
    if used is None:
        return f"{amount(device.allocated_bytes)} in tensors"
    if device.total_bytes is None:
        return f"{size(used)} used"
    return f"{size(used)} of {size(device.total_bytes)} used"


def _section(device: DeviceMemory, memory: Memory, top: int) -> DeviceSection:
    if memory.opened:
        rows = [row for tree in memory.opened if tree.device == device.device for row in _tree(tree, tree.bytes)]
        return DeviceSection(_name(device), _facts(device), _parts(device), tuple(rows), (), _remarks(device))
    holders = [holder for holder in memory.holders if holder.device == device.device]
    whole = device.allocated_bytes or sum(holder.bytes for holder in holders)
    # "and 1 more" takes as much room as the one.
    kept = holders if len(holders) <= top + 1 else holders[:top]
    rest: Sentence = ()
    if len(kept) < len(holders):
        left = holders[len(kept) :]
        rest = (f"and {count(len(left), 'more holder')}, {size(sum(holder.bytes for holder in left))} together",)
    rows = [_row(holder, whole, 0) for holder in kept]
    return DeviceSection(_name(device), _facts(device), _parts(device), tuple(rows), rest, _remarks(device))


def _name(device: DeviceMemory) -> str:
    return visible(f"{device.device} · {device.name}" if device.name else device.device)


def _facts(device: DeviceMemory) -> tuple[str, ...]:
    facts = [_used(device)]
    if device.peak_bytes is not None:
        most = size(device.peak_bytes)
        facts.append(
            f"this process at most {most} since the start"
            if device.is_host
            else f"peak {most} in tensors since the start or a reset"
        )
    if device.busy_percent is not None:
        facts.append(f"{device.busy_percent} % busy")
    return tuple(facts)


def _parts(device: DeviceMemory) -> tuple[PartRow, ...]:
    known = sum(part.bytes or 0 for part in device.parts)
    whole = max(device.total_bytes or 0, known)
    return tuple(_part(part, device, whole) for part in device.parts)


def _part(part: Part, device: DeviceMemory, whole: int) -> PartRow:
    share = (part.bytes or 0) / whole if whole else 0.0
    words = marked(hint(part.kind, device, part.bytes))
    label = LABELS[part.kind]
    if device.is_host and part.kind == "named":
        label = "tensors and arrays by name"
    if part.kind == "process" and all(other.kind != "named" for other in device.parts):
        label, words = "this process", ("with its tensors and arrays",)
    return PartRow(part.kind, label, amount(part.bytes), share, words)


def _row(holder: Holder, whole: int, depth: int) -> HolderRow:
    note: Sentence = marked(holder.note)
    if holder.elsewhere:
        note = (*note, *_elsewhere(holder.elsewhere))
    return HolderRow(
        depth, named(holder.path), size(holder.bytes), percent(holder.bytes, whole), _split(holder.split), note
    )


def named(path: str) -> Sentence:
    """Return a holder's path as code; of "frame train" the name of the function is."""
    word, _, function = path.partition(" ")
    if word == "frame" and function:
        return (f"{word} ", Code(cut(visible(function), _LONGEST_PATH)))
    return (Code(cut(visible(path), _LONGEST_PATH)),)


def _elsewhere(elsewhere: Mapping[str, int]) -> Sentence:
    pieces: list[str] = ["of this, "]
    largest = sorted(elsewhere.items(), key=lambda item: -item[1])
    for index, (path, number) in enumerate(largest[:3]):
        pieces += [", " if index else "", size(number), " is counted under ", Code(cut(visible(path), _LONGEST_PATH))]
    return tuple(piece for piece in pieces if piece)


def _split(split: Mapping[Use, int]) -> str:
    """Return "parameters 45 MB, gradients 45 MB", or the use alone where there is one."""
    if len(split) == 1:
        use = next(iter(split))
        return "" if use == "other" else use
    return ", ".join(f"{use} {size(number)}" for use, number in split.items())


def _tree(holder: Holder, whole: int, depth: int = 0, *, told: bool = False) -> list[HolderRow]:
    """Return a row for a holder and those inside it; `told` says that a row above tells whose its bytes are."""
    rows = [_row(replace(holder, elsewhere={}) if told else holder, whole, depth)]
    told = told or list(holder.elsewhere.values()) == [holder.bytes]
    if depth >= _MOST_DEPTH:
        return rows
    inside = holder.inside
    kept = inside if len(inside) <= _MOST_INSIDE + 1 else inside[:_MOST_INSIDE]
    for part in kept:
        rows += _tree(part, whole, depth + 1, told=told)
    if len(kept) < len(inside):
        left = inside[len(kept) :]
        together = sum(part.bytes for part in left)
        words = f"and {len(left):,} more"
        rows.append(HolderRow(depth + 1, (words,), size(together), percent(together, whole), "", ()))
    return rows


def _nothing(opened: Sequence[Holder]) -> list[Sentence]:
    empty = [holder.path for holder in opened if not holder.device]
    if not empty:
        return []
    return [(*listed(empty), f" {'holds' if len(empty) == 1 else 'hold'} no tensor and no array.")]


def _remarks(device: DeviceMemory) -> tuple[Sentence, ...]:
    return tuple(marked(_sentence(text)) for text in device.remarks)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
