"""Give every byte of the tensors and arrays alive to one holder: a variable, an output, a frame, or a graph's value."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from torchmagic.autograd_graph import Graph, grad_node, held_tensors
from torchmagic.holdings import USES, Holder, Use
from torchmagic.measuring.leftovers import Leftover
from torchmagic.measuring.routes import Routes, rank
from torchmagic.measuring.storages import Stretch, stretches_of, tensor_stretches
from torchmagic.namespace import Namespace, Place, Seen, walk

_ROLE_USES: Mapping[str, Use] = {
    "parameter": "parameters",
    "grad": "gradients",
    "state": "optimizer state",
    "buffer": "buffers",
}


class Claim(NamedTuple):
    """A wish to hold a stretch of memory. Claims of a lower `stage`, then of a lower `rank`, win."""

    stretch: Stretch
    stage: int
    rank: tuple[int, int]
    holder: str
    use: Use
    seen: Seen


@dataclass
class Block:
    """Memory that hangs together because its claims overlap, so that letting go of a part of it frees nothing."""

    device: str
    bytes: int
    claims: list[Claim]

    @cached_property
    def owner(self) -> Claim:
        """The claim that wins."""
        return min(self.claims, key=lambda claim: (claim.stage, claim.rank))

    @cached_property
    def use(self) -> Use:
        """What the owner's holder uses the memory for."""
        if len(self.claims) == 1:
            return self.claims[0].use
        stage = self.owner.stage
        return min((claim.use for claim in self.claims if claim.stage == stage), key=USES.index)


@dataclass
class Attribution:
    """The blocks of one look. It holds the user's objects: drop it as soon as the holders are told."""

    found: Namespace
    blocks: list[Block] = field(default_factory=list)
    notes: dict[str, str] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)

    @cached_property
    def totals(self) -> dict[str, tuple[int, int]]:
        """Of each device, the bytes that names hold, and those that graphs alone keep alive."""
        totals: dict[str, list[int]] = {}
        for block in self.blocks:
            totals.setdefault(block.device, [0, 0])[block.use == "autograd graph"] += block.bytes
        return {device: (named, graph) for device, (named, graph) in totals.items()}

    def holders(self) -> Iterator[Holder]:
        """Yield each holder on each device, the largest first."""
        splits: dict[tuple[str, str], dict[Use, int]] = defaultdict(lambda: defaultdict(int))
        for block in self.blocks:
            splits[block.device, block.owner.holder][block.use] += block.bytes
        for (device, path), split in sorted(splits.items(), key=lambda item: (-sum(item[1].values()), item[0])):
            ordered = {use: split[use] for use in USES if use in split}
            yield Holder(path, device, sum(split.values()), ordered, self.notes.get(path, ""))


def attribute(
    names: Mapping[str, Any], leftovers: Sequence[Leftover] = (), hidden: Collection[str] = ()
) -> Attribution:
    """Walk the variables, then what the notebook's history holds, and give each byte to whoever names it best.

    A variable goes before the graph of a variable, and both before an output or a frame of the last exception: those
    get what nothing else holds.
    """
    return attribute_found(walk(names, hidden=hidden), leftovers)


def attribute_found(found: Namespace, leftovers: Sequence[Leftover] = ()) -> Attribution:
    """Do the same with a walk that was made already."""
    result = Attribution(found, skipped=list(found.skipped))
    claims = list(_claims(found, 0, result))
    roots: dict[str, Any] = {}
    labels: dict[str, str] = {}
    for number, leftover in enumerate(leftovers):
        # What a variable reaches is the variable's, so its walk is not repeated for every frame that names it too.
        if found.find(leftover.value) is None and leftover.value is not found.names:
            key = f"{leftover.label} {number}"
            roots[key], labels[key] = leftover.value, leftover.label
            result.notes[leftover.label] = leftover.note
    if roots:
        claims += _claims(walk(roots), 2, result, labels)
    result.blocks = blocks_of(claims)
    return result


def _claims(
    found: Namespace, stage: int, result: Attribution, labels: Mapping[str, str] | None = None
) -> Iterator[Claim]:
    """Yield what the objects of a walk hold, and what the graphs of its tensors do."""
    routes = Routes(found)
    holders: dict[int, str] = {}
    with_graph: list[Seen] = []
    for seen in found.of_kind("tensor", "array", "column"):
        root = routes.root(seen)
        holders[id(seen)] = holder = root if labels is None else labels[root]
        use, order = use_of(seen), rank(seen)
        for stretch in stretches_of(seen.obj, seen.kind):
            yield Claim(stretch, stage, order, holder, use, seen)
        if seen.kind == "tensor" and grad_node(seen.obj) is not None:
            with_graph.append(seen)
    graph = Graph()
    for index, tensor in held_tensors((seen.obj for seen in with_graph), graph):
        seen = with_graph[index]
        for stretch in tensor_stretches(tensor):
            yield Claim(stretch, stage + 1, (0, index), holders[id(seen)], "autograd graph", seen)
    if graph.is_cut:
        result.skipped.append(f"the autograd graphs are larger than the {graph.nodes:,} steps that were read")
    if graph.hooked:
        result.skipped.append(
            f"{graph.hooked:,} saved tensors of autograd graphs were packed by a hook, and were not opened"
        )


def blocks_of(claims: Iterable[Claim]) -> list[Block]:
    """Join claims that overlap; every address belongs to one block."""
    blocks: list[Block] = []
    device, end = "", 0
    for claim in sorted(claims, key=lambda claim: claim.stretch):
        stretch = claim.stretch
        if blocks and stretch.device == device and stretch.start < end:
            block = blocks[-1]
            block.claims.append(claim)
            block.bytes += max(stretch.end - end, 0)
            end = max(end, stretch.end)
        else:
            blocks.append(Block(stretch.device, stretch.end - stretch.start, [claim]))
            device, end = stretch.device, stretch.end
    return blocks


def use_of(seen: Seen) -> Use:
    """Return what a tensor is used for, from its type and the places that hold it."""
    uses: set[Use] = {_ROLE_USES[place.role] for place in seen.places if place.role in _ROLE_USES}
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(type(seen.obj), torch.nn.Parameter):
        uses.add("parameters")
    if not uses:
        # Optimizers keep lists and dicts of tensors as state too.
        place: Place | None = seen.places[0]
        while place is not None and place.role in ("item", "attribute"):
            place = place.parent
        if place is not None and place.role == "state":
            uses.add("optimizer state")
    return min(uses, key=USES.index, default="other")
