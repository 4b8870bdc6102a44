"""`%gpumem` in a shell: the same report as the function's, and what may stand behind it."""

from __future__ import annotations

import re

import pytest
import torch
from torch import nn

import torchmagic


def test_it_shows_who_holds_the_memory(shell, run):
    """A line for the host, its bar and parts, and the variables, the largest first."""
    shell.user_ns["model"] = nn.Linear(1000, 100)
    shell.user_ns["x"] = torch.zeros(1000)
    lines = run("%gpumem").out.splitlines()

    assert lines[0].startswith("gpumem: cpu ")
    assert lines[2].startswith(("cpu · this machine", "cpu · this container"))
    assert lines[3].startswith("  [")
    assert len(lines[3]) == 64
    assert [line.split("  ")[1] for line in lines[4:9]] == [
        "█ tensors and arrays by name",
        "▓ autograd graphs",
        "+ the rest of this process",
        "x other processes",
        "· free",
    ]
    assert lines[10].split() == ["`model`", "400", "kB", "99", "%", "parameters"]
    assert lines[11].split() == ["`x`", "4.0", "kB", "under", "1", "%"]


@pytest.mark.parametrize("door", ["function", "magic"])
def test_both_doors_see_the_same(shell, run, door):
    """The magic keeps the report that it showed."""
    shell.user_ns["model"] = nn.Linear(9, 1)
    if door == "magic":
        run("%gpumem -o kept")
        report = shell.user_ns["kept"]
    else:
        report = torchmagic.memory(shell.user_ns)

    assert [(holder.path, holder.bytes) for holder in report.holders] == [("model", 40)]
    assert report.to_dict()["holders"][0]["split"] == {"parameters": 40}


def test_outputs_and_the_last_exception_are_holders(run):
    """Both are said to be what they are."""
    run("import torch\ntorch.zeros(50)")
    run("def train():\n    big = torch.zeros(60)\n    raise ValueError\ntrain()")
    lines = [line.strip() for line in run("%gpumem").out.splitlines()]

    assert [line.split("  ")[0] for line in lines if line.startswith(("`Out", "frame"))] == [
        "frame `train`",
        "`Out[1]`",
    ]
    assert any(line.endswith("a call of the last exception, ValueError") for line in lines)
    assert any(line.endswith("shown in cell 1") for line in lines)


def test_names_open_just_those(shell, run):
    """A tree, and no other holder."""
    shell.user_ns["model"] = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1))
    shell.user_ns["x"] = torch.zeros(1)
    rows = [line.split("  ") for line in run("%gpumem model").out.splitlines() if "`" in line]

    assert [next(word.strip() for word in row if word.strip()) for row in rows] == [
        "`model`",
        "`model[0]`",
        "`model[1]`",
    ]


def test_top_counts_the_rest(shell, run):
    """One more than asked for is shown, since saying so takes as much room."""
    shell.user_ns.update({f"x{number}": torch.zeros(10 - number) for number in range(9)})

    assert [line.strip() for line in run("%gpumem --top 3").out.splitlines() if "`x" in line or "more" in line] == [
        "`x0`  40 bytes       19 %",
        "`x1`  36 bytes       17 %",
        "`x2`  32 bytes       15 %",
        "and 6 more holders, 108 bytes together",
    ]
    assert "more" not in run("%gpumem --top 8").out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("--nope", "unrecognized arguments: --nope"),
        ("--top 0", "--top wants a number from 1 to 1,000, not 0"),
        ("--top x", "argument --top: invalid int value: 'x'"),
        ("-o 1x", "-o wants the name of a variable, not '1x'"),
        ("nothing", "nothing is named nothing"),
        ("x.y[", "nothing is named x.y["),
    ],
)
def test_a_wrong_option_is_one_line(shell, run, line, message):
    """It says what is wrong."""
    shell.user_ns["x"] = 1
    ran = run(f"%gpumem {line}")

    assert ran.err == f"UsageError: {message}\n"


def test_help_names_every_option(run):
    """The same text as `%gpumem?`."""
    text = run("%gpumem -h").out

    assert {*re.findall(r"--\w+", text)} == {"--top", "--live", "--free", "--exact", "--text", "--output", "--help"}


def test_a_notebook_without_torch_still_gets_the_host():
    """Nothing is imported for the look; see also test_light_import."""
    import subprocess
    import sys

    code = "import sys, torchmagic; print(torchmagic.memory()); assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("gpumem: cpu ")
    assert "torch has not been imported" in done.stdout
