"""-Inf by accident: the logarithm of 0 or an overflow, and not "never" in log space."""

from __future__ import annotations

import ast
import sys
from typing import Any

from torchmagic.nonfinite.poison import Node, Poison
from torchmagic.source.hazards import HALF_FLOOR, hazards, nonfinite_literal
from torchmagic.source.operations import call_name, calls, derives, finds_best, masks, selects

_LOGARITHMS = frozenset({"log", "log2", "log10", "logit"})
_MOST_READ = 1 << 22
_CLOSE = 1e-3
_NEAR_THE_END = 1e-3


def is_accident(node: Node, poison: Poison) -> bool:
    """Tell whether a node's -Inf are a mistake: a derivative, an overflow, a logarithm of 0 not taken for "never"."""
    own = list(poison.path(node))
    if any(derives(definition.value) for definition in own):
        return True
    path = [*own, *(definition for source in node.sources for definition in poison.path(source))]
    if any(nonfinite_literal(definition.value) or masks(definition.value) for definition in path):
        return False
    if not any(_takes_logarithm(d.value, node) for d in path):
        return all(_overflowed(value.obj, value.counts.largest) for value in node.values)
    return not _is_compared(node, poison) and not any(_is_log_table(value.obj) for value in node.values)


def _takes_logarithm(value: ast.expr | None, node: Node) -> bool:
    half = any(str(getattr(bad.obj, "dtype", "")) == "torch.float16" for bad in node.values)
    found = hazards(value, HALF_FLOOR if half else 0.0) if value is not None else ()
    return any(hazard.name in _LOGARITHMS for hazard in found)


def _is_compared(node: Node, poison: Poison) -> bool:
    """Tell whether the text goes on with the logarithms as scores, of which -Inf never wins."""
    known = {d for other in {node, *node.sources, *poison.downstream(node)} for d in other.definitions}
    flow = poison.flow
    users = (d for d in (flow.definitions if flow is not None else ()) if d.needs & known)
    own = (part for d in known for part in calls(d.value) if _holds_logarithm(part))
    return any(selects(d.value) or finds_best(d.value) for d in users) or any(
        selects(ast.Expr(part)) or finds_best(ast.Expr(part)) for part in own
    )


def _holds_logarithm(call: ast.Call) -> bool:
    """Tell whether a call is made on logarithms: `p.log().max()`, not `p.clamp(0).log()`."""
    inner = [part for part in ast.walk(call) if isinstance(part, ast.Call) and part is not call]
    return call_name(call) not in _LOGARITHMS and any(call_name(part) in _LOGARITHMS for part in inner)


def _overflowed(obj: Any, largest: float) -> bool:
    """Tell whether the finite values beside -Inf come near the end of their type, or there are none."""
    torch = sys.modules["torch"]
    if not issubclass(type(obj), torch.Tensor) or not obj.is_floating_point():
        return False
    return largest > float(torch.finfo(obj.dtype).max) * _NEAR_THE_END


def _is_log_table(obj: Any) -> bool:
    """Tell whether values are logarithms of probabilities, rows that sum to 1 or are empty, or of a 0-1 mask."""
    torch = sys.modules["torch"]
    if not issubclass(type(obj), torch.Tensor) or obj.numel() > _MOST_READ or obj.layout is not torch.strided:
        return True  # cannot be told
    if obj.numel() == 1:
        return False
    values = obj.detach().double().exp()
    if bool(((values == 0) | (values == 1)).all()):
        return True
    sums = [values.sum(), *(values.sum(dim) for dim in range(values.dim()))]
    return any(bool((((total - 1).abs() < _CLOSE) | (total == 0)).all()) for total in sums if bool(total.any()))
