"""Open one variable: everything it reaches, as a tree down to modules and layers."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from torchmagic.holdings import USES, Holder, Use
from torchmagic.measuring.attribution import Attribution, Block, attribute
from torchmagic.measuring.routes import Routes
from torchmagic.namespace import Place
from torchmagic.namespace.resolve import MISSING, resolve

_MOST_DEPTH = 12
_PLACEHOLDER = "opened"


@dataclass
class _Node:
    """A step on the way to tensors, with what lies below it by use, and by the holder it is counted under."""

    path: str
    split: dict[Use, int] = field(default_factory=lambda: defaultdict(int))
    elsewhere: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    inside: dict[str, _Node] = field(default_factory=dict)

    def add(self, block: Block, owner: str | None) -> None:
        self.split[block.use] += block.bytes
        if owner is not None:
            self.elsewhere[owner] += block.bytes

    def holder(self, device: str) -> Holder:
        inside = sorted((node.holder(device) for node in self.inside.values()), key=_largest_first)
        split = {use: self.split[use] for use in USES if use in self.split}
        return Holder(self.path, device, sum(split.values()), split, "", tuple(inside), dict(self.elsewhere))


def find_path(names: Mapping[str, Any], path: str) -> Any:
    """Return the object that a path such as `model.layers[0]` leads to, or MISSING; nothing is called."""
    try:
        node = ast.parse(path, mode="eval").body
    except (SyntaxError, ValueError):
        return MISSING
    steps: list[tuple[str, Any]] = []
    while not isinstance(node, ast.Name):
        if isinstance(node, ast.Attribute):
            steps.append(("attr", node.attr))
        elif isinstance(node, ast.Subscript):
            try:
                steps.append(("item", ast.literal_eval(node.slice)))
            except ValueError:
                return MISSING
        else:
            return MISSING
        node = node.value
    return resolve(names, node.id, steps[::-1])


def opened(path: str, value: Any, whole: Attribution) -> list[Holder]:
    """Return what an object reaches, a tree for each device, the largest first.

    `whole` says under which holder each byte is counted, so that what another one has is told apart.
    """
    owners = {claim.stretch: block.owner.holder for block in whole.blocks for claim in block.claims}
    root = path.split(".", 1)[0].split("[", 1)[0]
    trees: dict[str, _Node] = {}
    part = attribute({_PLACEHOLDER: value})
    routes = Routes(part.found)
    for block in part.blocks:
        claim = block.owner
        held_by = next((owners[one.stretch] for one in block.claims if one.stretch in owners), None)
        owner = held_by if held_by not in (None, root, path) else None
        node = trees.setdefault(block.device, _Node(path))
        node.add(block, owner)
        for step in _steps(path, routes.chain(claim.seen)):
            node = node.inside.setdefault(step, _Node(step))
            node.add(block, owner)
    return sorted((node.holder(device) for device, node in trees.items()), key=_largest_first)


def _largest_first(holder: Holder) -> tuple[int, str]:
    return -holder.bytes, holder.path


def _steps(path: str, chain: list[Place]) -> Iterator[str]:
    """Yield the paths of the parts on the way to a tensor, from the outside in, down to what a layer is."""
    text = path
    for place in chain[1:][:_MOST_DEPTH]:
        if place.role in ("parameter", "buffer", "grad"):
            return
        if place.role == "state":
            # One row for all first moments says more than one for each parameter.
            yield f"{text}.state[...][{place.key!r}]"
            return
        if place.role == "group":
            yield f"{text}.param_groups"
            return
        text += place.step
        yield text
