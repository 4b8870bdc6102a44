"""What was added to one tensor or written into it, value by value: read off the nodes that additions leave."""

from __future__ import annotations

from typing import Any

from torchmagic.autograd_graph import Graph, grad_node
from torchmagic.checking import Facts

_KEEPS_FIRST = frozenset({"CopySlices", "IndexPutBackward0", "AddBackward0"})
"""Nodes whose first input is the tensor as it was before, and whose others are what came to it."""
_MOST = 10_000


def values_added(tensor: Any) -> int:
    """Return how many values with a history a tensor is the sum of, or was filled with."""
    count, node = 0, grad_node(tensor)
    while node is not None and count < _MOST:
        inputs = [later for later, _ in node.next_functions]
        if type(node).__name__ not in _KEEPS_FIRST:
            return count + 1
        count += sum(later is not None for later in inputs[1:])
        node = inputs[0] if inputs else None
    return count


def outlives_its_model(graph: Graph, facts: Facts) -> bool:
    """Tell whether the graph is all that still holds some of its leaves: nobody can train them any more."""
    return any(leaf.requires_grad and facts.found.find(leaf) is None for leaf in graph.leaves.values())
