"""Read the autograd graph that a value holds, without running a hook or recomputing a checkpoint."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from torchmagic.namespace.storage import allocation

MOST_NODES = 200_000

_RAW = "_raw_saved_"
_LEAF_NODE = "AccumulateGrad"


@dataclass
class Part:
    """What one value adds to the graph of those before it."""

    nodes: int = 0
    saved_bytes: int = 0


@dataclass
class Graph:
    """What hangs on some values' `grad_fn`.

    `leaf_uses` counts, for each leaf tensor by its id, how often the graph uses it: a parameter that one forward pass
    uses once and the graph uses 30 times was used by 30 forward passes. `saved_bytes` are the bytes of activations that
    the graph keeps alive, leaves not counted; `backward()` frees them. `full_nodes` still hold what they saved,
    `freed_nodes` do not. `hooked` values were packed by a hook and not opened. `is_cut` says that the graph is larger
    than what was read. `parts` says what each value adds to those before it.
    """

    nodes: int = 0
    full_nodes: int = 0
    freed_nodes: int = 0
    saved_bytes: int = 0
    hooked: int = 0
    is_cut: bool = False
    leaf_uses: Counter[int] = field(default_factory=Counter)
    leaves: dict[int, Any] = field(default_factory=dict)
    parts: list[Part] = field(default_factory=list)

    @property
    def most_uses(self) -> int:
        """How often the leaf that is used most is used."""
        return max(self.leaf_uses.values(), default=0)

    @property
    def is_freed(self) -> bool:
        """Whether backward ran: most nodes that save something hold nothing any more.

        A sum that was added to after `backward()` has a few nodes of its own, which are full.
        """
        return self.freed_nodes > self.full_nodes


def read_graph(values: Iterable[Any], most_nodes: int = MOST_NODES) -> Graph:
    """Read the graph behind the tensors, each node once.

    Saved tensors are looked at through `_raw_saved_*` (a SavedTensor or a tuple of them, seen in torch 2.0 to 2.13),
    whose `data` runs no hook; `_saved_*` would run the user's hooks and raises after backward.
    """
    graph = Graph()
    spans: dict[int, tuple[int, Part]] = {}
    known: set[Any] = set()
    names: dict[type, tuple[str, ...]] = {}
    for value in values:
        graph.parts.append(Part())
        if not graph.is_cut and (node := grad_node(value)) is not None and node not in known:
            known.add(node)
            for reached in _nodes_from(node, graph, known, most_nodes):
                _count_saved(reached, graph, spans, names)
    own = {held[0] for leaf in graph.leaves.values() if (held := allocation(leaf)) is not None}
    for start, (size, part) in spans.items():
        if start not in own:
            part.saved_bytes += size
            graph.saved_bytes += size
    return graph


def _nodes_from(start: Any, graph: Graph, known: set[Any], most_nodes: int) -> Iterator[Any]:
    """Yield the nodes behind one node that are not known yet, that node first."""
    waiting, part = [start], graph.parts[-1]
    while waiting:
        node = waiting.pop()
        if graph.nodes >= most_nodes:
            graph.is_cut = True
            return
        graph.nodes += 1
        part.nodes += 1
        yield node
        for following, _ in node.next_functions:
            if following is None:
                continue
            if type(following).__name__ == _LEAF_NODE:
                leaf = following.variable
                graph.leaf_uses[id(leaf)] += 1
                graph.leaves[id(leaf)] = leaf
            if following not in known:
                known.add(following)
                waiting.append(following)


def held_tensors(values: Iterable[Any], graph: Graph) -> Iterator[tuple[int, Any]]:
    """Yield every tensor that the graphs behind some values keep alive, with the position of the first such value.

    Those are what the nodes saved, the leaves with their gradients, and the tensors that a `Function` of the user's
    keeps on its `ctx`. `graph` is filled on the way; it says whether the graphs were read to their ends.
    """
    known: set[Any] = set()
    names: dict[type, tuple[str, ...]] = {}
    tensor = sys.modules["torch"].Tensor
    for index, value in enumerate(values):
        graph.parts.append(Part())
        node = grad_node(value)
        if graph.is_cut or node is None or node in known:
            continue
        known.add(node)
        before = len(graph.leaves)
        for reached in _nodes_from(node, graph, known, MOST_NODES):
            for one in _saved_by(reached, names):
                if getattr(one, "unpack_hook", None) is not None:
                    graph.hooked += 1
                elif (data := getattr(one, "data", None)) is not None:
                    yield index, data
            for kept in getattr(reached, "__dict__", {}).values():
                if issubclass(type(kept), tensor):
                    yield index, kept
        for leaf in list(graph.leaves.values())[before:]:
            yield index, leaf
            if leaf.grad is not None:
                yield index, leaf.grad


def following(node: Any) -> Iterator[Any]:
    """Yield the nodes that a node hands its gradient on to, those of leaves left out."""
    for later, _ in node.next_functions:
        if later is not None and type(later).__name__ != _LEAF_NODE:
            yield later


def leaves_of(node: Any) -> Iterator[Any]:
    """Yield the leaf tensors that a node hands its gradient on to."""
    for later, _ in node.next_functions:
        if later is not None and type(later).__name__ == _LEAF_NODE:
            yield later.variable


def saved_tensors(node: Any) -> Iterator[Any]:
    """Yield what one node saved and still holds; what a hook packed is not opened."""
    for one in _saved_by(node, {}):
        if getattr(one, "unpack_hook", None) is None and (data := getattr(one, "data", None)) is not None:
            yield data


def is_freed_node(node: Any) -> bool | None:
    """Tell whether backward freed what a node saved; None for a node that saves nothing."""
    graph = Graph(parts=[Part()])
    _count_saved(node, graph, {}, {})
    return bool(graph.freed_nodes) if graph.freed_nodes or graph.full_nodes else None


def grad_node(tensor: Any) -> Any:
    """Return a tensor's `grad_fn`; None too for a view whose base was since written, which refuses to tell."""
    try:
        return tensor.grad_fn
    except RuntimeError:
        return None


def is_trained_leaf(tensor: Any) -> bool:
    """Tell whether a tensor is a leaf that gets a gradient; a view whose base was since written refuses to tell."""
    try:
        return bool(tensor.is_leaf and tensor.requires_grad)
    except RuntimeError:
        return False


def _count_saved(
    node: Any, graph: Graph, spans: dict[int, tuple[int, Part]], names: dict[type, tuple[str, ...]]
) -> None:
    full = False
    for one in _saved_by(node, names):
        if getattr(one, "unpack_hook", None) is not None:
            graph.hooked += 1
            full = True
        elif (data := getattr(one, "data", None)) is not None:
            full = True
            if (held := allocation(data)) is not None:
                spans.setdefault(held[0], (held[1], graph.parts[-1]))
    if names[type(node)]:
        graph.full_nodes += full
        graph.freed_nodes += not full


def _saved_by(node: Any, names: dict[type, tuple[str, ...]]) -> Iterator[Any]:
    """Yield what a node saved, still wrapped; `names` remembers where each type of node keeps it."""
    own_names = names.get(type(node))
    if own_names is None:
        own_names = names[type(node)] = tuple(name for name in dir(node) if name.startswith(_RAW))
    for name in own_names:
        try:
            saved = getattr(node, name)
        except (RuntimeError, AttributeError):
            continue  # a custom Function after backward
        yield from saved if isinstance(saved, tuple) else (saved,)
