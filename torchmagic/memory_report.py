"""A look at memory that shows itself, as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchmagic.holdings import Memory
from torchmagic.memory_changes import CellMemory
from torchmagic.render.memory_change import change_html, change_text
from torchmagic.render.memory_html import memory_html
from torchmagic.render.memory_text import memory_text

if TYPE_CHECKING:
    from collections.abc import Collection


class MemoryReport(Memory):
    """The outcome of `torchmagic.memory`: the devices, who holds their memory, and how to show it."""

    def __str__(self) -> str:
        return memory_text(self)

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Give a front end the same words as text and as HTML.

        See https://ipython.readthedocs.io/en/stable/config/integrating.html for the protocol.
        """
        del include, exclude
        return {"text/plain": memory_text(self), "text/html": memory_html(self)}


class CellReport(CellMemory):
    """What a cell under `%%gpumem` did to memory, and how to show it."""

    def __str__(self) -> str:
        return change_text(self)

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Give a front end the same words as text and as HTML."""
        del include, exclude
        return {"text/plain": change_text(self), "text/html": change_html(self)}
