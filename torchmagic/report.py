"""A report that shows itself, as text in a terminal and as HTML in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torchmagic.findings import Inspection
from torchmagic.render.html import report_html
from torchmagic.render.text import report_text

if TYPE_CHECKING:
    from collections.abc import Collection


class Report(Inspection):
    """The outcome of `torchmagic.check`: findings, what was looked at, and how to show them."""

    def __str__(self) -> str:
        return report_text(self)

    __repr__ = __str__

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, Any]:
        """Give a front end the same words as text and as HTML.

        See https://ipython.readthedocs.io/en/stable/config/integrating.html for the protocol.
        """
        del include, exclude
        return {"text/plain": report_text(self), "text/html": report_html(self)}
