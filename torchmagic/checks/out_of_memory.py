"""out-of-memory: the cell failed because a device had no room, and others hold what it has."""

from __future__ import annotations

from collections.abc import Iterator

from torchmagic.checking import Facts, Rule
from torchmagic.findings import Finding
from torchmagic.holdings import DeviceMemory, Holder
from torchmagic.measuring.exhausted import Exhausted, exhausted
from torchmagic.measuring.look import holders_at_failure
from torchmagic.render.memory_words import LABELS
from torchmagic.render.words import size

_MOST_NAMED = 3
_MOST_LISTED = 8


class OutOfMemory(Rule):
    """The cell ended because a device had no room left.

    The message of PyTorch tells how much was asked for and how much is there, not who has it. In a notebook that is
    rarely the line that failed: models of earlier cells, outputs that `Out` keeps, the frames of the last exception
    with all of their tensors, and losses whose graphs hold the activations of every step stay until they are let go
    of.

    Look at the largest holders that the report names. `del` what is not needed; `%gpumem --free` lets go of what only
    the notebook's history holds. Where a model's own step is too large, make the batch smaller, evaluate under
    `torch.no_grad()`, or train in lower precision.
    """

    bad = """
    import torch
    features = torch.zeros(1_000_000, 16)
    distances = torch.empty(len(features), len(features))
    """
    good = """
    import torch
    features = torch.zeros(1_000_000, 16)
    for rows in features[:3000].split(1000):
        distances = torch.empty(len(rows), 3000)
    """

    def subjects(self, facts: Facts) -> Iterator[Exhausted]:
        """Return the device that had no room, where the cell ended for that."""
        found = exhausted(facts.error)
        if found is not None:
            yield found

    def judge(self, facts: Facts, subject: Exhausted) -> Iterator[Finding]:
        """Name who holds the device's memory; the cell left nothing wrong behind, so it is a note that explains."""
        device, holders = holders_at_failure(facts.found, facts.error, subject.device)
        yield Finding(
            rule=self.name(),
            level="note",
            subject=holders[0].path if holders and " " not in holders[0].path else "",
            message=_message(subject, device, holders),
            line=next((frame.line for frame in reversed(facts.failed_frames) if frame.is_cell), None),
            others=tuple(holder.path for holder in holders[1:_MOST_NAMED] if " " not in holder.path),
            evidence={
                "device": subject.device,
                "asked_bytes": subject.asked_bytes,
                "holders": {holder.path: holder.bytes for holder in holders},
            },
            details=tuple(_details(device, holders)),
            explains=True,
        )


def _message(subject: Exhausted, device: DeviceMemory, holders: list[Holder]) -> str:
    asked = "more" if subject.asked_bytes is None else size(subject.asked_bytes)
    if device.total_bytes is not None and (subject.asked_bytes or 0) > device.total_bytes:
        wanted = f"this line asks for {asked} on {subject.device}, which has {size(device.total_bytes)} altogether"
    else:
        wanted = f"{subject.device} has no room for {asked}"
    if not holders:
        return f"{wanted}; no variable holds anything there"
    first, *others = (f"{_named(holder)} holds {size(holder.bytes)}" for holder in holders[:_MOST_NAMED])
    return f"{first} of {subject.device}" + "".join(f", {other}" for other in others) + f"; {wanted}"


def _named(holder: Holder) -> str:
    word, _, function = holder.path.partition(" ")
    return f"{word} `{function}`" if function else f"`{holder.path}`"


def _details(device: DeviceMemory, holders: list[Holder]) -> Iterator[str]:
    for holder in holders[:_MOST_LISTED]:
        split = ", ".join(f"{use} {size(number)}" for use, number in holder.split.items() if use != "other")
        words = "; ".join(text for text in (split, holder.note) if text)
        yield f"{_named(holder)}: {size(holder.bytes)}" + (f" ({words})" if words else "")
    if len(holders) > _MOST_LISTED:
        yield f"and {len(holders) - _MOST_LISTED:,} more holders; `%gpumem` lists them"
    parts = [f"{LABELS[part.kind]} {size(part.bytes)}" for part in device.parts if part.bytes]
    if parts:
        yield f"{device.device} after the error: {', '.join(parts)}"
    if any(holder.note for holder in holders):
        yield "`%gpumem --free` lets go of outputs and of the frames of the exception"
