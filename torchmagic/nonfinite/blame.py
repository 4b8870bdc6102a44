"""Which operation of the text made finite numbers non-finite, confirmed by its live argument where that is possible."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from torchmagic.namespace.resolve import MISSING
from torchmagic.nonfinite.harm import Harm
from torchmagic.nonfinite.poison import Node
from torchmagic.source import ref_of
from torchmagic.source.definitions import GRAD, Definition
from torchmagic.source.hazards import HALF_FLOOR, IGNORED, Hazard, hazards
from torchmagic.source.operations import asks, call_name, calls, narrows

_SELDOM_FORWARD = frozenset({"sqrt", "rsqrt", "pow", "**", "acos", "asin", "arccos", "arcsin"})
"""Operations whose derivative fails at the edge of their domain, where they themselves do not."""

_CERTAIN = 20
_LATE = "it keeps NaN out of the loss but not out of the gradients: fill it before the operations, not after them"
_NAN_TIMES_ZERO = "NaN times 0 is NaN: put finite numbers in its place before, with `torch.where` or `nan_to_num`"
_SOFTMAX = frozenset({"softmax", "log_softmax", "logsumexp"})
_LABELLED = frozenset({"CrossEntropyLoss", "NLLLoss"})
_MOST_READ = 1 << 22


class _Evidence(NamedTuple):
    """What a live argument holds, in words, empty where that cannot be told; and whether it is outside the domain."""

    words: str = ""
    beyond: bool = False


@dataclass(frozen=True)
class Suspect:
    """An operation, its line, how much it is suspected, and what its live argument holds at the edge of its domain.

    `beyond` tells that it holds something outside the domain. `differentiated` tells that a backward pass went through
    the operation, `alone` that nothing else on the way is to be suspected. `alike` names the suspects of the line that
    the same advice holds for.
    """

    hazard: Hazard
    line: int | None
    weight: int
    edge: str
    beyond: bool = False
    differentiated: bool = False
    alone: bool = False
    alike: tuple[str, ...] = ()


def is_certain(suspect: Suspect | None) -> bool:
    """Tell whether an operation is proven guilty: NaN stands behind it, and a loss that does not show it before it."""
    return suspect is not None and suspect.weight == _CERTAIN


class Blame:
    """Finds the most suspicious operation on the way to a node."""

    def __init__(self, harm: Harm) -> None:
        self._harm, self._poison = harm, harm.poison
        self._known: dict[Node, Suspect | None] = {}

    def of(self, root: Node) -> Suspect | None:
        """Return the most suspicious operation on the way to a node."""
        if root not in self._known:
            found = list(self._suspects(root))
            first = max(found, key=lambda suspect: suspect.weight, default=None)
            alone = sum(suspect.hazard.weight > 1 for suspect in found) == 1
            self._known[root] = replace(first, alone=alone, alike=_alike(first, found)) if first is not None else None
        return self._known[root]

    def _suspects(self, root: Node) -> Iterator[Suspect]:
        backward = root.key.endswith(GRAD) or root.has("parameter")
        if backward and (late := self._late_masks(root)) is not None:
            yield from late
            return
        flow = self._poison.flow
        trained = root in self._poison.downstream(root)  # what a step of the training leads back to
        differentiated = backward or trained or (flow is not None and root.key in flow.losses)
        path = list(self._backward_path(root) if backward else self._forward_path(root))
        masked = any(self._harm.writes_markers(definition) for definition in path)
        floor = HALF_FLOOR if _is_half(root) or any(narrows(definition.value) for definition in path) else 0.0
        for definition in path:
            if (product := _late_zero(definition)) is not None:
                yield Suspect(Hazard("*", _CERTAIN, product, _NAN_TIMES_ZERO), definition.line, _CERTAIN, "")
            value = definition.value if definition.how != "hidden" else None
            found = list(hazards(value, floor)) if value is not None else []
            found += [] if backward or trained else self._means_of_labels(definition)
            for hazard in found:
                if hazard.weight <= 1 and backward:
                    continue
                evidence = self._evidence(hazard, definition)
                if evidence is not None:
                    weight = hazard.weight + self._bonus(hazard, evidence.words, differentiated, masked)
                    edge, beyond = evidence
                    yield Suspect(hazard, _line_of(hazard, definition), weight, edge, beyond, differentiated)

    def _means_of_labels(self, definition: Definition) -> Iterator[Hazard]:
        """Yield the calls of live modules that average over the labels that are not ignored."""
        for call in calls(definition.value):
            ref = ref_of(call.func)
            kind = type(self._poison.facts.value(ref)) if ref is not None else None
            if kind is not None and kind.__module__ == "torch.nn.modules.loss" and kind.__name__ in _LABELLED:
                yield Hazard(kind.__name__, 3, call, IGNORED)

    def _late_masks(self, root: Node) -> list[Suspect] | None:
        """Return the operations that keep NaN out of the losses of a gradient, but not out of the gradient.

        None where no NaN stands behind the losses, or where the losses do not hide it.
        """
        passes = [start for start in self._poison.path(root) if start.how == "backward"]
        behind = {definition for start in passes for definition in start.upstream(hidden=True)}
        if not any(map(self._harm.brings_nan, behind)):
            return None
        masks = [
            Suspect(Hazard(_name(d.value), _CERTAIN, d.value, _LATE), d.line, _CERTAIN, "", differentiated=True)
            for d in sorted(behind, key=lambda d: d.line or 0)
            if d.how == "hidden" and d.value is not None and any(map(self._harm.brings_nan, d.upstream(hidden=True)))
        ]
        finite = passes and all(self._poison.is_clean(loss) for start in passes for loss in start.needs if loss.top)
        return masks or ([] if finite else None)

    @staticmethod
    def _bonus(hazard: Hazard, edge: str, differentiated: bool, masked: bool) -> int:
        if edge:
            return 10
        if hazard.name in _SOFTMAX and masked:
            return 3
        return -2 if not differentiated and hazard.name in _SELDOM_FORWARD else 0

    def _forward_path(self, root: Node) -> Iterator[Definition]:
        yield from self._poison.path(root)
        for source in root.sources:
            if self._harm.is_mask(source):
                yield from self._poison.path(source)

    def _backward_path(self, root: Node) -> Iterator[Definition]:
        """Yield the forward definitions between a leaf and the losses whose backward pass filled its gradient."""
        leaf = root.key.removesuffix(GRAD)
        known: set[Definition] = set()
        for start in self._poison.path(root):
            for definition in start.upstream(hidden=True) if start.how == "backward" else ():
                if definition in known or definition.value is None or definition.key == leaf:
                    continue
                known.add(definition)
                if any(_holds(need.key, leaf) for need in definition.upstream(hidden=True)):
                    yield definition

    def _evidence(self, hazard: Hazard, definition: Definition) -> _Evidence | None:
        """Say what the live argument holds at the edge of an operation's domain, or beyond.

        Empty where that cannot be told; None when it holds nothing there, so that the operation is innocent.
        """
        ref = ref_of(hazard.argument)
        flow = self._poison.flow
        if ref is None or flow is None or definition.looped or not definition.top:
            return _Evidence()
        value = self._poison.facts.value(ref)
        later = any(d.line is not None and d.line >= (definition.line or 0) for d in flow.final(ref.root))
        if value is MISSING or later:
            return _Evidence()
        if type(value) in (int, float):
            return None if value and math.isfinite(value) else _Evidence()
        torch = sys.modules["torch"]
        if not issubclass(type(value), torch.Tensor) or not value.is_floating_point() or value.numel() > _MOST_READ:
            return _Evidence()
        return _at_the_edge(hazard.name, value, str(ref))


def _holds(key: str, leaf: str) -> bool:
    """Tell whether a variable is a leaf, or an object of whose attributes the text does not tell: `scene`."""
    return key == leaf or leaf.startswith(f"{key}.")


def _is_half(root: Node) -> bool:
    return any(
        str(getattr(value.obj, "dtype", "")).endswith("float16") and value.obj.itemsize == 2 for value in root.values
    )


def _line_of(hazard: Hazard, definition: Definition) -> int | None:
    """Return the line of an operation in a statement of several lines; that of the call for one outside the cell."""
    node = hazard.node
    if definition.step is None or not definition.step.scope.unit.is_cell:
        return definition.line
    return node.func.end_lineno if isinstance(node, ast.Call) else node.lineno


def _late_zero(definition: Definition) -> ast.expr | None:
    """Return the product of values and a mask of those that are finite, which leaves NaN in place."""
    masks = {d.key for d in definition.needs if any(asks(call_name(call)) for call in calls(d.value))}
    for node in ast.walk(definition.value) if definition.value is not None and masks else ():
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            names = (side.id for side in (node.left, node.right) if isinstance(side, ast.Name))
            if any(name in masks for name in names):
                return node
    return None


def _name(node: ast.expr) -> str:
    return call_name(node) if isinstance(node, ast.Call) else ast.unparse(node)


def _alike(first: Suspect, found: list[Suspect]) -> tuple[str, ...]:
    """Name the operations on the line of the first suspect that the same advice holds for, each place once."""
    places = {
        (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset): other.hazard.name
        for other in found
        if other.line == first.line and other.hazard.advice == first.hazard.advice and (node := other.hazard.node)
    }
    return tuple(name for _, name in sorted(places.items()))


@dataclass(frozen=True)
class _Test:
    """Which values stand at the edge of a domain, or beyond it; `bends` where the derivative alone fails there."""

    finds: Callable[[Any], Any]
    words: str
    beyond: bool = False
    bends: bool = False


_ZERO, _NOT_ABOVE = _Test(lambda v: v == 0, "0"), _Test(lambda v: v <= 0, "0 or less")
_TESTS: dict[str, tuple[_Test, ...]] = {
    **dict.fromkeys(("log", "log2", "log10", "rsqrt", "pow", "**"), (_NOT_ABOVE,)),
    "sqrt": (_Test(lambda v: v < 0, "below 0", beyond=True), _Test(lambda v: v == 0, "0", bends=True)),
    **dict.fromkeys(("/", "reciprocal", "div", "divide", "true_divide"), (_ZERO,)),
    **dict.fromkeys(
        ("acos", "arccos", "asin", "arcsin"),
        (
            _Test(lambda v: v.abs() > 1, "above 1 in size", beyond=True),
            _Test(lambda v: v.abs() == 1, "1 or -1", bends=True),
        ),
    ),
    "half": (_Test(lambda v: v.abs() > 65504, "above 65504"),),
}


def _at_the_edge(name: str, value: Any, path: str) -> _Evidence | None:
    total = value.numel()
    if name in ("std", "var"):
        return _Evidence(f"`{path}` has 1 value" if total == 1 else "")
    if name not in _TESTS:
        return _Evidence()
    for test in _TESTS[name]:
        count = int(test.finds(value.detach()).sum()) if value.requires_grad or not test.bends else 0
        if count:
            verb = "is" if count == 1 else "are"
            subject = f"`{path}` is" if total == 1 else f"{count} of {total} values of `{path}` {verb}"
            return _Evidence(f"{subject} {test.words}", test.beyond)
    return None
