"""The losses and gradient norms of a cell, step by step, and where they left the ground."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

_MOST: Final = 100_000
_GROWN: Final = 100.0
_BARS: Final = "▁▂▃▄▅▆▇█"
_WIDTH: Final = 24


@dataclass(frozen=True)
class Growth:
    """How a number grew: `numbers` by step from 1, and the first step from which on it stayed far above the first."""

    what: str
    numbers: tuple[float, ...]
    left_the_ground: int

    @property
    def first(self) -> float:
        """The number of the first step."""
        return self.numbers[0]

    @property
    def largest(self) -> float:
        """The largest finite number."""
        return max(number for number in self.numbers if math.isfinite(number))


@dataclass
class Steps:
    """`losses` by backward pass, `norms` of all gradients by optimizer step; both in order, NaN and Inf included."""

    losses: list[float]
    norms: list[float]
    backward_passes: int = 0

    def begin_backward(self, loss: Any) -> None:
        """Note that a backward pass starts from a tensor; NaN stands for a loss that is not one number."""
        self.backward_passes += 1
        if len(self.losses) < _MOST:
            number = math.nan
            with suppress(RuntimeError, TypeError, NotImplementedError):  # meta and fake tensors have no number
                number = float(loss.item()) if loss.numel() == 1 else math.nan
            self.losses.append(number)

    def add_norm(self, norm: float) -> None:
        """Note the norm of the gradients that an optimizer is about to use."""
        if len(self.norms) < _MOST:
            self.norms.append(norm)

    def growth(self) -> Growth | None:
        """Return the growth of the gradient norms, else that of the losses; None when neither exploded."""
        for what, numbers in (("gradient norm", self.norms), ("loss", self.losses)):
            found = _growth(what, numbers)
            if found is not None:
                return found
        return None


def _growth(what: str, numbers: list[float]) -> Growth | None:
    """Return the growth of a series up to its first number that is not finite."""
    end = next((index for index, number in enumerate(numbers) if not math.isfinite(number)), len(numbers))
    sizes = [abs(number) for number in numbers[:end]]
    if len(sizes) < 2:
        return None
    ground = max(sorted(sizes[: max(1, len(sizes) // 2)])[max(0, (len(sizes) // 2 - 1) // 2)], 1e-30)
    ground = min(ground, max(sizes[0], 1e-30) * _GROWN)
    if max(sizes[-3:]) < _GROWN * ground:
        return None
    last_low = max((index for index, size in enumerate(sizes) if size < 10 * ground), default=-1)
    left = min(last_low + 1, len(sizes) - 1)
    return Growth(what, tuple(numbers[: min(end + 1, len(numbers))]), left + 1)


def sparkline(numbers: tuple[float, ...]) -> str:
    """Draw numbers on a logarithmic scale, the last 24 of them; what is not finite is drawn as the highest bar."""
    shown = [abs(number) for number in numbers[-_WIDTH:]]
    logs = [math.log10(number) for number in shown if math.isfinite(number) and number > 0]
    if not logs:
        return ""
    low, high = min(logs), max(logs)
    return "".join(_bar(number, low, high) for number in shown)


def _bar(number: float, low: float, high: float) -> str:
    if not math.isfinite(number):
        return _BARS[-1]
    if number <= 0 or high <= low:
        return _BARS[0]
    return _BARS[min(len(_BARS) - 1, int((math.log10(number) - low) / (high - low) * (len(_BARS) - 1)))]
