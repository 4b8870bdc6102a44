"""How many steps, each ended by its own `backward()`, lie behind one tensor, by looking at its graph alone.

`backward()` frees what the nodes it went through had saved. What was made of a loss afterwards, a sum or a mean, stands
above freed nodes: nobody can take a gradient of it any more. The freed parts below it that have no node in common are
the steps.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torchmagic.autograd_graph import following, grad_node, is_freed_node, leaves_of, read_graph

_MOST_NODES = 20_000
_MOST_TENSORS = 64


@dataclass(frozen=True)
class StepsBehind:
    """`count` freed parts use one and the same leaf; `made_after` says that a node above them still holds values."""

    count: int = 0
    made_after: bool = False


def steps_behind(tensor: Any) -> StepsBehind:
    """Read one tensor's graph; a graph that is too large to read has no steps to speak of."""
    root = grad_node(tensor)
    if root is None:
        return StepsBehind()
    tops, made_after = _freed_below(root)
    if tops is None:
        return StepsBehind()
    part_of: dict[Any, int] = {}
    joined: dict[int, int] = {}
    uses: dict[int, set[int]] = {}
    for number, top in enumerate(tops):
        joined[number] = number
        waiting = [top]
        while waiting:
            node = waiting.pop()
            if node in part_of:
                _join(joined, part_of[node], number)
                continue
            if len(part_of) > _MOST_NODES:
                return StepsBehind()
            part_of[node] = number
            for leaf in leaves_of(node):
                uses.setdefault(id(leaf), set()).add(number)
            waiting += following(node)
    counts = Counter({leaf: len({_first(joined, number) for number in numbers}) for leaf, numbers in uses.items()})
    return StepsBehind(max(counts.values(), default=0), made_after)


def are_of_several_steps(tensors: Sequence[Any]) -> bool:
    """Tell whether all are made from the same leaves, and none by way of what made another."""
    return are_steps([[tensor] for tensor in tensors])


def are_steps(records: Sequence[Sequence[Any]]) -> bool:
    """Tell whether all records of tensors are made from the same leaves, and none by way of what made another."""
    records = records[:_MOST_TENSORS]
    graph = read_graph([tensor for record in records for tensor in record])
    if graph.is_cut or not graph.leaves:
        return False
    alone = [read_graph(record) for record in records]
    if len({frozenset(one.leaves) for one in alone}) != 1:
        return False
    own = sum(one.nodes - len(one.leaves) for one in alone)
    return own == graph.nodes - len(graph.leaves)


def _freed_below(root: Any) -> tuple[list[Any] | None, bool]:
    """Return the highest freed nodes, and whether a node above them holds values; None when they are too many."""
    tops: list[Any] = []
    made_after = False
    waiting, known = [root], {root}
    while waiting:
        node = waiting.pop()
        freed = is_freed_node(node)
        if freed:
            tops.append(node)
            continue
        made_after = made_after or freed is False
        for later in following(node):
            if later not in known:
                known.add(later)
                waiting.append(later)
        if len(known) > _MOST_NODES:
            return None, False
    return tops, made_after


def _first(joined: dict[int, int], number: int) -> int:
    while joined[number] != number:
        number = joined[number]
    return number


def _join(joined: dict[int, int], one: int, other: int) -> None:
    joined[_first(joined, one)] = _first(joined, other)
