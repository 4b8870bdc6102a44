"""An operation that ran: what it was given, and what it wrote into."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torchmagic.tracing.lineage import is_tensor
from torchmagic.tracing.plans import Plan


class Call(NamedTuple):
    """An operation that ran: how to look at it, what it was given and what it returned."""

    plan: Plan
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    out: Any

    @property
    def given(self) -> tuple[Any, ...]:
        """All arguments."""
        return (*self.args, *self.kwargs.values())

    def written(self) -> list[Any]:
        """Return the operands that it wrote into."""
        return [part for place in self.plan.writes for part in tensors_in(self._argument(place))]

    @property
    def has_bad_number(self) -> bool:
        """Whether the user gave it NaN or an infinity as a number."""
        return any(type(value) is float and not math.isfinite(value) for value in self.given)

    def _argument(self, place: int | str) -> Any:
        if type(place) is int:
            return self.args[place] if place < len(self.args) else None
        return self.kwargs.get(str(place))


def tensors_in(value: Any) -> Iterator[Any]:
    """Yield a tensor, or the tensors of a list or tuple."""
    if is_tensor(value):
        yield value
    elif type(value) in (list, tuple):
        for item in value:
            if is_tensor(item):
                yield item
