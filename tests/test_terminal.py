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
    """Type a cell and return what the terminal shows until it asks for the next one."""
    child.sendline("\n".join(lines))
    child.expect(rf"In \[{number + 1}\]: ")
    return child.before.replace("\r\n", "\n")


def test_a_mistake_is_reported_once(terminal: pexpect.spawn) -> None:
    """The report names the variable and the line in plain text: no object's repr, no HTML, no second copy."""
    shown = run(
        terminal, 2, ["%%torchcheck", "import torch", "weights = torch.ones(2, 2) / torch.zeros(2, 2)", "", "", ""]
    )

    assert shown.count("torchcheck: ") == 1
    assert shown.count("line 3") == 1
    assert "`weights`" in shown
    assert "<" not in shown


def test_a_right_cell_costs_one_line(terminal: pexpect.spawn) -> None:
    """A cell without a mistake is followed by one line."""
    shown = run(terminal, 2, ["%%torchcheck", "import torch", "weights = torch.ones(2, 2)", "", "", ""])

    assert [line for line in shown.split("\n") if "torchcheck" in line or "weights" in line] == [
        "torchcheck: nothing to report"
    ]
