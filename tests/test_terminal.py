"""In a terminal, a report is text, and it appears once."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pexpect
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FIRST_PROMPT = r"In \[1\]: "


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[pexpect.spawn]:
    """Start IPython in a terminal that knows no colours, and load the extension."""
    environment = os.environ | {"TERM": "dumb", "IPYTHONDIR": str(tmp_path), "COLUMNS": "120"}
    command = [
        sys.executable,
        "-m",
        "IPython",
        "--simple-prompt",
        "--colors=NoColor",
        "--no-banner",
        "--no-confirm-exit",
    ]
    child = pexpect.spawn(
        command[0], command[1:], env=environment, encoding="utf-8", echo=False, timeout=60, dimensions=(50, 120)
    )
    child.expect(FIRST_PROMPT)
    run(child, 1, ["%load_ext torchmagic"])
    yield child
    child.close(force=True)


def run(child: pexpect.spawn, number: int, lines: list[str]) -> str:
    """Type a cell and return what the terminal shows below it until it asks for the next one."""
    child.sendline("\n".join(lines))
    child.expect(rf"In \[{number + 1}\]: ")
    return child.before.replace("\r\n", "\n").rpartition("...: ")[2].strip()


def test_a_mistake_is_reported_once(terminal: pexpect.spawn) -> None:
    """The report is plain text: no object's repr, no HTML, no second copy."""
    cell = ["%%torchcheck", "import torch", "weights = torch.ones(2, 2)", "weights.half()", "done = True"]
    shown = run(terminal, 2, [*cell, "", "", ""])

    assert shown.startswith("torchcheck: 1 finding · 1 tensor (16 bytes) · ")
    assert "\n\nwarning  `weights`: " in shown
    assert shown.count("1 finding") == shown.count("line 4 · discarded-transfer") == 1
    assert "         - weights.half()\n         + weights = weights.half()\n" in shown


def test_a_right_cell_costs_one_line(terminal: pexpect.spawn) -> None:
    """A cell without a mistake is followed by one line."""
    shown = run(terminal, 2, ["%%torchcheck", "import torch", "weights = torch.ones(2, 2)", "", "", ""])

    assert shown.startswith("torchcheck: nothing wrong · 1 tensor (16 bytes) · ")
    assert "\n" not in shown
