"""Whether results are only looked at: made by modules in evaluation mode, or draws for one input that are read."""

from __future__ import annotations

from typing import Any

from torchmagic.autograd_graph import Graph
from torchmagic.checking import Facts
from torchmagic.history.held import Held
from torchmagic.history.reading import is_read
from torchmagic.history.sampling import are_draws
from torchmagic.history.taken import is_taken_without_history
from torchmagic.kinds import is_from_torch
from torchmagic.namespace import Seen


def is_evaluating(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether the modules whose parameters the graph uses are in evaluation mode, but for single plain layers.

    A layer that is the same in both modes, and stands by itself, is often forgotten when the model is put into
    evaluation mode. It does not speak against the others where nothing trains it and the results are read as numbers.
    """
    owners = [seen for seen in facts.found.of_kind("module") if _parameters(seen.obj) & graph.leaves.keys()]
    training = [seen for seen in owners if object.__getattribute__(seen.obj, "training")]
    if not training:
        return bool(owners)
    if len(training) == len(owners) or not all(map(_is_plain_layer, training)):
        return False
    return not _may_be_trained(graph, facts) and facts.program is not None and is_read(held, facts.program)


def is_sampled(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether each step drew several results for one input, which are read as numbers, while nothing trains."""
    if facts.program is None or _may_be_trained(graph, facts) or not is_taken_without_history(held, facts.program):
        return False
    return are_draws(held)


def is_passed_by(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether the cell trained the leaves without going through what is held, whose uses need no history.

    A backward pass that had gone through it would have freed it.
    """
    if facts.program is None or facts.error is not None or graph.freed_nodes or not graph.full_nodes:
        return False
    if all(getattr(leaf, "grad", None) is None for leaf in graph.leaves.values()):
        return False
    return is_taken_without_history(held, facts.program)


def _may_be_trained(graph: Graph, facts: Facts) -> bool:
    """Tell whether the notebook has an optimizer, or gradients of the graph's leaves."""
    if any(True for _ in facts.found.of_kind("optimizer")):
        return True
    return any(getattr(leaf, "grad", None) is not None for leaf in graph.leaves.values())


def _parameters(module: Any) -> set[int]:
    own = object.__getattribute__(module, "_parameters")
    return {id(parameter) for parameter in own.values() if parameter is not None}


def _is_plain_layer(seen: Seen) -> bool:
    """Tell whether a module is one of torch's layers, held by itself, that does the same in both modes."""
    if not is_from_torch(type(seen.obj)) or any(place.role == "submodule" for place in seen.places):
        return False
    table = object.__getattribute__(seen.obj, "__dict__")
    rates = (table.get(name) for name in ("dropout", "p"))
    with_modes = any(type(rate) in (int, float) and rate > 0 for rate in rates) or "running_mean" in table["_buffers"]
    return not table["_modules"] and not with_modes
