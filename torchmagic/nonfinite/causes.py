"""Why bad values began: they came in with the data, the design let an operation fail, or numbers exploded."""

from __future__ import annotations

import ast
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from torchmagic.nonfinite.bad_values import BadValue
from torchmagic.nonfinite.blame import Suspect, is_certain
from torchmagic.nonfinite.harm import Harm
from torchmagic.nonfinite.poison import Node
from torchmagic.source.definitions import Definition
from torchmagic.source.hazards import nonfinite_literal
from torchmagic.source.operations import call_name, calls, is_alias, masks

Cause = Literal["data", "design", "explosion"]
Growth = tuple[float, float]
"""The first and the greatest finite number recorded before the first bad one."""

_HUGE = 1e12
_GROWN = 100.0
_ORDINARY = 1e3
_SUSPICIOUS = 3


class Causes:
    """Tells the cause of a root, and the line to show for it."""

    def __init__(self, harm: Harm) -> None:
        self._harm, self._poison = harm, harm.poison

    def of(self, root: Node, group: set[Node], blamed: Suspect | None, growth: Growth | None) -> Cause | None:
        """Return the cause of a root; None when the text says nothing about it."""
        if self._harm.is_data(root):
            return "data"
        if is_clipped_norm(root):
            return "explosion"
        if not root.definitions or root.is_from_before:
            return None
        weight = blamed.weight if blamed is not None else 0
        if is_certain(blamed):
            return "design"
        if (
            root.nan
            and not root.has("number", "gradient", "parameter")
            and any(self._harm.brings_nan(d) and not masks(d.value) for d in self._poison.path(root))
        ):
            return "data"
        if root in self._poison.downstream(root):
            return self._training_cause(group, weight, growth)
        averages = root.has("buffer") and not any(node.has("parameter", "gradient", "number") for node in group)
        if not averages and any(definition.feeds_itself for definition in self._poison.path(root)):
            return "design" if weight >= _SUSPICIOUS else "explosion"
        if weight < _SUSPICIOUS and any(map(self._records_overflow, group)):
            return "explosion"
        if root.has("gradient", "parameter", "state", "buffer"):
            overflow = max(value.counts.largest for value in root.values) > _HUGE or not root.nan
            return "explosion" if overflow and weight < _SUSPICIOUS else "design"
        plain_call = any(self._harm.calls_module(d) for d in root.definitions) and not weight
        may_grow = self._is_full_precision(root) and not self._is_ordinary_beside(root)
        return "explosion" if plain_call and may_grow and not self._has_mask(root) else "design"

    def _training_cause(self, group: set[Node], weight: int, growth: Growth | None) -> Cause:
        if growth is not None:
            first, last = growth
            if last > _GROWN * max(first, 1e-12):
                return "explosion"
            if weight:
                return "design"
        if any(self._brings_nonfinite(node) for node in group):
            return "data"
        if max(v.counts.largest for node in group for v in node.values) > _HUGE:
            return "explosion"
        return "design" if weight >= _SUSPICIOUS or self._failed_at_once(group) else "explosion"

    def _records_overflow(self, node: Node) -> bool:
        """Tell whether a node holds an infinite norm of gradients, that clipping returned or the text computed."""
        infinite = any(value.counts.positive for value in node.values) and not node.has("gradient", "parameter")
        return infinite and any(_returns_norm(d) or _reads_gradients(d) for d in self._poison.path(node))

    def _failed_at_once(self, group: set[Node]) -> bool:
        """Tell whether a record goes from an ordinary number to NaN; what explodes becomes large before."""
        return any(value.counts.nan and before.largest < _ORDINARY for value, before in _records(group))

    def _brings_nonfinite(self, node: Node) -> bool:
        """Tell whether a written NaN is on the way to a node, in data that are no longer there."""
        return not node.has("number") and any(
            nonfinite_literal(d.value) is not None and not self._harm.writes_markers(d) for d in self._poison.path(node)
        )

    def _has_mask(self, root: Node) -> bool:
        return any(
            keyword.arg is not None and "mask" in keyword.arg
            for d in root.definitions for call in calls(d.value) for keyword in call.keywords
        )  # fmt: skip

    def _is_full_precision(self, root: Node) -> bool:
        return all(getattr(value.obj, "element_size", lambda: 4)() >= 4 for value in root.values)

    @staticmethod
    def _is_ordinary_beside(root: Node) -> bool:
        """Tell whether some values are NaN beside ordinary ones, and none is infinite: nothing overflowed."""
        counts = [value.counts for value in root.values]
        return all(c.nan == c.bad < c.total and c.largest < _ORDINARY for c in counts)

    def growth(self, group: set[Node]) -> Growth | None:
        """Return how a recorded list grew before its first bad number."""
        return next(((before.first, before.largest) for _, before in _records(group) if before.count >= 2), None)

    def line(self, root: Node, cause: Cause | None, blamed: Suspect | None) -> int | None:
        """Return the line of the cell to show for a root."""
        path = [definition for definition in self._poison.path(root) if definition.line is not None]
        if cause == "data":
            written = [d for d in path if nonfinite_literal(d.value) is not None]
            if len(written) == 1:
                return written[0].line
            outer = [d for d in path if d.top]
            if not written:
                blamed_line = blamed.line if blamed is not None else None
                return blamed_line or next((d.line for d in outer), None) or self._first_use(root)
            return next((d.line for d in [w for w in written if w.top] + outer), None)
        if cause == "design" and blamed is not None and blamed.line is not None:
            return blamed.line
        if root.has("buffer"):
            return next((d.line for d in reversed(path) if d.how == "call"), None) or path[0].line if path else None
        own = [d for d in path if d.how not in ("call", "entry") and not is_alias(d.value)] or path
        if root.has("gradient"):
            own = [d for d in own if d.how == "backward"] or own
        elif root.has("parameter"):
            own = [d for d in own if d.how == "step"] or own
        return next((d.line for d in own), None)

    def _first_use(self, root: Node) -> int | None:
        """Return the line that takes values of a variable from before the cell into one that they spoil."""
        taken = (
            definition.line
            for node in self._poison.nodes.values()
            if root in node.sources and node is not root
            for definition in self._poison.path(node)
            if definition.needs & root.definitions and definition.line is not None
        )
        return min(taken, default=None)


@dataclass
class _Record:
    """The finite numbers at the beginning of a list, of which `read` entries were looked at."""

    read: int = 0
    count: int = 0
    first: float = 0.0
    largest: float = 0.0


def _records(group: set[Node]) -> Iterator[tuple[BadValue, _Record]]:
    """Yield the bad values that stand in lists behind finite numbers, each with those; every list is read once."""
    for node in group:
        records: dict[int, _Record] = {}
        for value in node.values:
            owner, key = value.place.owner, value.place.key
            if type(owner) is not list or type(key) is not int or value.role not in ("number", "tensor"):
                continue
            record = records.setdefault(id(owner), _Record())
            for number in map(_magnitude, owner[record.read : key]):
                if number is not None:
                    record.first = record.first if record.count else number
                    record.count, record.largest = record.count + 1, max(record.largest, number)
            record.read = max(record.read, key)
            if record.count:
                yield value, record


def _magnitude(value: Any) -> float | None:
    torch = sys.modules["torch"]
    if issubclass(type(value), torch.Tensor):
        value = value.detach().item() if value.numel() == 1 and value.device.type != "meta" else None
    if type(value) in (int, float):
        return abs(float(value)) if math.isfinite(value) else None
    numpy = sys.modules.get("numpy")
    is_number = numpy is not None and issubclass(type(value), numpy.floating)
    return abs(float(value)) if is_number and math.isfinite(value) else None


def is_clipped_norm(node: Node) -> bool:
    """Tell whether a node is the norm that clipping the gradients returned."""
    return any(_returns_norm(definition) for definition in node.definitions if definition.key == node.key)


def _returns_norm(definition: Definition) -> bool:
    return any(call_name(call).startswith("clip_grad_norm") for call in calls(definition.value))


def _reads_gradients(definition: Definition) -> bool:
    """Tell whether an expression is computed from gradients: `sum(p.grad.square().sum() for p in params).sqrt()`."""
    parts = ast.walk(definition.value) if definition.value is not None and definition.how == "=" else ()
    return any(isinstance(part, ast.Attribute) and part.attr == "grad" for part in parts)
