"""A checked cell that is pasted into a terminal with a line editor runs once and is reported on once."""

from __future__ import annotations

import os
import re
import sys

import pexpect

CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\r")

COMMAND = [sys.executable, "-m", "IPython", "--colors=NoColor", "--no-banner", "--no-confirm-exit"]

PASTED, RUN = "\x1b[200~{}\x1b[201~", "\x1b\r"
"""How a terminal marks what was pasted, and the keys that run a cell of several lines: escape and enter."""


def test_a_pasted_cell_is_reported_on(tmp_path):
    """The line editor asks whether the cell is complete before it runs it."""
    environment = os.environ | {"TERM": "xterm", "IPYTHONDIR": str(tmp_path), "PROMPT_TOOLKIT_NO_CPR": "1"}
    child = pexpect.spawn(
        COMMAND[0], COMMAND[1:], env=environment, encoding="utf-8", echo=False, timeout=60, dimensions=(50, 120)
    )
    child.expect(r"\[1\]:")
    child.send("%load_ext torchmagic\r")
    child.expect(r"\[2\]:")
    child.send(PASTED.format("%%torchcheck\nprint(40 + 2)") + RUN)
    child.expect(r"\[3\]:")
    shown = CONTROL.sub("", child.before)
    child.close(force=True)

    assert re.search(r"^42\ntorchcheck: nothing wrong", shown, re.MULTILINE)
    assert shown.count("torchcheck: ") == 1
