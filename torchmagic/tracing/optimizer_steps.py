"""The steps of optimizers: the norm of the gradients before, and whether the parameters are finite after."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from torchmagic.tracing.finite import FINITE
from torchmagic.tracing.onlooker import Onlooker

_MODEST: Final = 1e15
"""A norm of gradients whose squares are far from the end of float32: what a step makes of them is finite, too."""


class OptimizerSteps:
    """Hooks on every optimizer's step, taken off again at the end.

    An optimizer of torch's that starts from modest gradients, with nothing bad about, makes numbers that are not finite
    only by a division by 0; its many small operations are not looked at one by one, but the parameters afterwards.
    """

    def __init__(self, onlooker: Onlooker, mode: Any) -> None:
        self._onlooker, self._mode = onlooker, mode
        self._hooks: list[Any] = []

    def begin(self) -> None:
        """Put the hooks on."""
        from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

        self._hooks = [
            register_optimizer_step_pre_hook(self._before),
            register_optimizer_step_post_hook(self._after),
        ]

    def end(self) -> None:
        """Take the hooks off."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        """Note the norm of the gradients."""
        if not self._mode.active:
            return
        with self._unseen():
            norm = _norm(tensor.grad for tensor in _parameters(optimizer))
            if norm is None:
                return
            self._onlooker.steps.add_norm(norm)
        # A closure runs the forward and the backward pass inside the step.
        by_itself = len(args) < 2 and not any(kwargs.values()) and type(optimizer).__module__.startswith("torch.optim.")
        self._onlooker.rests = by_itself and norm < _MODEST and not self._onlooker.lineage.marks

    def _after(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        """Look at the parameters, if nothing was looked at during the step."""
        rested, self._onlooker.rests = self._onlooker.rests, False
        if not rested or not self._mode.active:
            return
        with self._unseen():
            norm = _norm(_parameters(optimizer))
            if norm is None or math.isfinite(norm):
                return
            for parameter in _parameters(optimizer):
                state = self._onlooker.reader.state_of(parameter)
                if state != FINITE:
                    self._onlooker.note_step(type(optimizer).__name__, parameter, state)

    @contextmanager
    def _unseen(self) -> Iterator[None]:
        """Keep what is computed here from being looked at."""
        self._mode.active = False
        try:
            with sys.modules["torch"].no_grad():
                yield
        finally:
            self._mode.active = True


def _parameters(optimizer: Any) -> Iterator[Any]:
    return (parameter for group in optimizer.param_groups for parameter in group["params"])


def _norm(tensors: Iterator[Any]) -> float | None:
    """Return the norm of all tensors together, 0 without any; None when they are of a kind that has none."""
    torch = sys.modules["torch"]
    dense = [tensor for tensor in tensors if tensor is not None and tensor.layout is torch.strided]
    if not dense:
        return 0.0
    try:
        norms = [float(norm) for norm in torch._foreach_norm(dense)]  # noqa: SLF001 - what clip_grad_norm_ calls
        return math.nan if any(map(math.isnan, norms)) else math.hypot(*norms)
    except (RuntimeError, TypeError, NotImplementedError, OverflowError):
        return None
