"""Run a checked cell as if it were bare, and be told when it ends."""

from __future__ import annotations
