"""-Inf that is the logarithm of 0 by accident, and not a probability of zero in log space."""

from __future__ import annotations

import sys
from typing import Any

from torchmagic.nonfinite.poison import Node, Poison
from torchmagic.source.definitions import Definition
from torchmagic.source.hazards import hazards, nonfinite_literal
from torchmagic.source.operations import call_name, calls, derives, finds_best, masks, selects

_LOGARITHMS = frozenset({"log", "log2", "log10", "logit"})
_MOST_READ = 1 << 22
_CLOSE = 1e-3


def is_accident(node: Node, poison: Poison) -> bool:
    """Tell whether a node's -Inf are a mistake: a derivative, or logarithms of 0 that nothing takes for "never"."""
    path = [d for other in {node, *node.sources} for d in poison.path(other)]
    if any(derives(d.value) for d in poison.path(node)):
        return True
    if not any(_takes_logarithm(d) for d in path) or any(nonfinite_literal(d.value) or masks(d.value) for d in path):
        return False
    known = {d for other in {node, *node.sources, *poison.downstream(node)} for d in other.definitions}
    flow = poison.flow
    used = (d for d in (flow.definitions if flow is not None else ()) if d.needs & known or d in known)
    if any(selects(d.value) or finds_best(d.value) for d in used):
        return False
    return not any(_is_log_table(value.obj) for value in node.values)


def _takes_logarithm(definition: Definition) -> bool:
    if definition.value is None:
        return False
    return any(call_name(call) in _LOGARITHMS for call in calls(definition.value)) and any(
        hazard.name in _LOGARITHMS for hazard in hazards(definition.value)
    )


def _is_log_table(obj: Any) -> bool:
    """Tell whether values are logarithms of probabilities that sum to 1, or of a mask of 0 and 1."""
    torch = sys.modules["torch"]
    if not issubclass(type(obj), torch.Tensor) or obj.numel() > _MOST_READ or obj.layout is not torch.strided:
        return True  # cannot be told
    if obj.numel() == 1:
        return False
    values = obj.detach().double().exp()
    if bool(((values == 0) | (values == 1)).all()):
        return True
    sums = [values.sum(), *(values.sum(dim) for dim in range(values.dim()))]
    return any(bool(((total - 1).abs() < _CLOSE).all()) for total in sums)
