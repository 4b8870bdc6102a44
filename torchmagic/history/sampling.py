"""Several draws for one input, put together: what passes with dropout in training mode give, by the graph alone."""

from __future__ import annotations

from typing import Any

from torchmagic.autograd_graph import following, grad_node, leaves_of, saved_tensors
from torchmagic.history.held import Held

_MOST_NODES = 2_000
_LEAST_DRAWS = 3
"""Two passes with dropout are what a contrastive loss compares."""


def are_draws(held: Held) -> bool:
    """Tell whether every tensor joins at least three passes of the same parameters over the same input."""
    roots = [grad_node(seen.obj) for seen in held.tensors]
    return bool(roots) and all(root is not None and _joins_draws(root) for root in dict.fromkeys(roots))


def _joins_draws(root: Any) -> bool:
    waiting, known = [root], {root}
    while waiting and len(known) < _MOST_NODES:
        node = waiting.pop()
        later = list(following(node))
        if len(later) >= _LEAST_DRAWS:
            return _are_passes_of_one_input(later)
        waiting += [one for one in later if one not in known]
        known.update(later)
    return False


def _are_passes_of_one_input(tops: list[Any]) -> bool:
    """Tell whether the parts below some nodes have no node in common, but the leaves and a value they saved."""
    parts = [_nodes_below(top) for top in tops]
    if sum(map(len, parts)) != len(set().union(*parts)):
        return False
    leaves = [{id(leaf) for node in part for leaf in leaves_of(node)} for part in parts]
    if not leaves[0] or any(own != leaves[0] for own in leaves):
        return False
    pointers = {leaf.data_ptr() for part in parts[:1] for node in part for leaf in leaves_of(node)}
    saved = [{one.data_ptr() for node in part for one in saved_tensors(node) if one.numel()} for part in parts]
    return bool(set.intersection(*saved) - pointers - {0})


def _nodes_below(top: Any) -> set[Any]:
    waiting, known = [top], {top}
    while waiting and len(known) < _MOST_NODES:
        later = [one for one in following(waiting.pop()) if one not in known]
        known.update(later)
        waiting += later
    return known
