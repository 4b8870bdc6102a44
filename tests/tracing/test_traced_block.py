"""`torchmagic.trace()` follows a block of a script."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

import torchmagic


def test_a_block_of_a_function():
    """The report is that of the function's variables, with the file's lines."""
    with torchmagic.trace() as followed:
        p = torch.tensor([1.0, 0.0])
        loss = (p * p.log()).sum()
    (finding,) = followed.report.findings

    assert finding.subject == "loss"
    assert finding.evidence["operation"] == "torch.log"
    assert torch.isnan(loss)
    assert followed.report.source_lines[finding.line - 1].strip() == "loss = (p * p.log()).sum()"


def test_a_block_that_fails_still_has_its_report():
    """The exception goes on its way."""
    followed = torchmagic.trace()
    with pytest.raises(RuntimeError, match="inconsistent tensor size"), followed:
        torch.ones(3) @ torch.ones(4)

    assert followed.report.failed


def test_what_does_not_exist_is_refused():
    """Before anything runs."""
    with pytest.raises(ValueError, match="no rule named 'nan'"):
        torchmagic.trace(only=["nan"])


SCRIPT = """\
import torch
import torchmagic


def entropy(p):
    return -(p * p.log()).sum()


if True:
    with torchmagic.trace() as followed:
        x = torch.tensor([1.0, 0.0])
        h = entropy(x)
(finding,) = followed.report.findings
print(finding.subject, finding.line, finding.details[0])
x = "not a tensor any more"
"""


def test_a_script(tmp_path):
    """Lines are those of the file, and what stands below the block has not run."""
    path = tmp_path / "script.py"
    path.write_text(SCRIPT, "utf-8")
    ran = subprocess.run([sys.executable, path], capture_output=True, text=True, check=True)

    assert ran.stdout == "h 6 It stands in line 6 in `entropy`, called from line 12.\n"
