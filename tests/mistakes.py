"""A cell with one mistake, for tests that want a finding."""

from __future__ import annotations

LOST = "import torch; w = torch.ones(2)\nw.half()\nx = w + 1\n"
"""Three lines, with a warning on the second."""
