"""Whether results are only looked at: made by modules in evaluation mode, or read as numbers where nothing trains."""

from __future__ import annotations

import ast
from typing import Any

from torchmagic.autograd_graph import Graph
from torchmagic.checking import Facts
from torchmagic.history.held import Held
from torchmagic.kinds import is_from_torch
from torchmagic.namespace import Seen
from torchmagic.source.refs import bare_name, read_names

_READING = frozenset({"item", "tolist", "numpy", "float"})


def is_evaluating(graph: Graph, facts: Facts) -> bool:
    """Tell whether the modules whose parameters the graph uses are in evaluation mode, but for single plain layers.

    A layer that is the same in both modes, and stands by itself, is often forgotten when the model is put into
    evaluation mode; it does not speak against the others.
    """
    owners = [seen for seen in facts.found.of_kind("module") if _parameters(seen.obj) & graph.leaves.keys()]
    training = [seen for seen in owners if object.__getattribute__(seen.obj, "training")]
    return len(training) < len(owners) and all(map(_is_plain_layer, training))


def is_only_read(held: Held, graph: Graph, facts: Facts) -> bool:
    """Tell whether tensors of several values are read as numbers, while nothing in the notebook trains their leaves."""
    if any(True for _ in facts.found.of_kind("optimizer")) or all(seen.obj.numel() == 1 for seen in held.tensors):
        return False
    leaves = (leaf for leaf in graph.leaves.values() if hasattr(leaf, "grad"))
    if any(leaf.grad is not None for leaf in leaves) or facts.program is None:
        return False
    return any(
        held.holder.root in read_names(own) and _reads_numbers(step.node)
        for step in facts.program.steps
        for own in step.own_expressions()
    )


def _reads_numbers(node: ast.AST) -> bool:
    calls = (part for part in ast.walk(node) if isinstance(part, ast.Call))
    return any(bare_name(call.func) in _READING for call in calls)


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
