"""How many steps a held graph goes back, and by how much each of them makes it larger."""

from __future__ import annotations

import collections
from dataclasses import dataclass
from itertools import islice

from torchmagic.autograd_graph import Graph, grad_node, read_graph
from torchmagic.checking.facts import Facts
from torchmagic.history.added import values_added
from torchmagic.history.held import Held

_MOST_LOSSES = 8


@dataclass(frozen=True)
class Growth:
    """What one step more adds to a graph; `about` where steps differ and this is their mean."""

    nodes: int
    saved_bytes: int
    about: bool


def uses_of_one_step(held: Held, held_graph: Graph, facts: Facts) -> int:
    """Return how often the last loss of the same parameters uses them, as a state that each step cuts does too."""
    own = {id(seen.obj) for seen in held.tensors}
    losses = (
        seen.obj
        for seen in facts.found.of_kind("tensor")
        if grad_node(seen.obj) is not None and not seen.obj.dim() and id(seen.obj) not in own
    )
    graphs = (read_graph([loss]) for loss in islice(losses, _MOST_LOSSES))
    return min((graph.most_uses for graph in graphs if graph.leaves.keys() & held_graph.leaves.keys()), default=0)


def steps_of(held: Held, graph: Graph, facts: Facts) -> int:
    """Return how many steps left their history in what is held."""
    if held.accumulation.shape == "container":
        return len(set(_steps(held)))
    if held.accumulation.shape == "sum" and graph.most_uses == 1:
        return values_added(held.tensors[0].obj)  # each of another model
    uses, one_step = graph.most_uses, uses_of_one_step(held, graph, facts)
    if one_step > 1 and uses >= 2 * one_step and uses % one_step == 0:
        return uses // one_step
    return uses


def growth_of(held: Held, graph: Graph, steps: int) -> Growth | None:
    """Return by how much a step makes the graph larger; None where steps do not make it larger, or nothing tells."""
    if held.accumulation.shape == "best" or steps < 2:
        return None
    if held.accumulation.shape == "container":
        return _of_entries(held, graph)
    own_nodes = graph.nodes - len(graph.leaves)  # a parameter's node is there once for all steps
    about = bool(own_nodes % steps or graph.saved_bytes % steps or graph.is_cut)
    return Growth(round(own_nodes / steps), round(graph.saved_bytes / steps), about)


def _of_entries(held: Held, graph: Graph) -> Growth | None:
    """Return what the steps after the first one added; the first has the parameters' own nodes too."""
    if graph.is_cut or any(_is_bounded(owner) for owner in _owners(held)):
        return None
    added: dict[object, tuple[int, int]] = {}
    for step, part in zip(_steps(held), graph.parts, strict=True):
        nodes, saved_bytes = added.get(step, (0, 0))
        added[step] = (nodes + part.nodes, saved_bytes + part.saved_bytes)
    later = list(added.values())[1:]
    if not later or not any(nodes for nodes, _ in later):
        return None
    nodes, saved_bytes = (round(sum(column) / len(later)) for column in zip(*later, strict=True))
    return Growth(nodes, saved_bytes, about=len(set(later)) > 1)


def _steps(held: Held) -> list[object]:
    """Return, for each tensor, the entry of the holder that it lies in: one step's."""
    return [link.key if link is not None else None for link in held.entries]


def _owners(held: Held) -> list[object]:
    return list({id(link.owner): link.owner for link in held.entries if link is not None}.values())


def _is_bounded(owner: object) -> bool:
    """Tell whether a container drops its oldest entry when it is full."""
    return issubclass(type(owner), collections.deque) and collections.deque.maxlen.__get__(owner) is not None
