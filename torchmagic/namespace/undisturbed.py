"""Read values as they are: no mode, subclass, graph or collector takes part in a look."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from torchmagic.namespace.collector import paused_collector


@contextmanager
def undisturbed() -> Iterator[None]:
    """Keep modes, subclasses, autograd and the collector out of the look, so that reading a value is nothing but that.

    `_disable_current_modes` is private (seen in torch 2.4 to 2.13); without it a mode that a cell left open would see
    the look's operations. Before torch is imported there is nothing but the collector.
    """
    torch = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "nn"):
        with paused_collector():
            yield
        return
    # The second is private too, and public under no name.
    with torch.no_grad(), torch._C.DisableTorchFunction(), paused_collector():  # noqa: SLF001
        try:
            from torch.utils._python_dispatch import _disable_current_modes
        except ImportError:
            yield
            return
        with _disable_current_modes():
            yield
