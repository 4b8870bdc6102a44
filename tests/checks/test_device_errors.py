"""off-device on torch's own errors: a second device of Python's making, which torch refuses to mix with the CPU."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.looking import COMMON

SETUP = (
    COMMON
    + """
DEV = "npy"
net = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2)).to(DEV)
conv = nn.Conv2d(3, 4, 3).to(DEV)
lstm = nn.LSTM(4, 5).to(DEV)
x = torch.randn(8, 4)
y = torch.tensor([0, 1] * 4)
there = x.to(DEV)
labels = y.to(DEV)
image = torch.zeros(2, 3, 8, 8)
table = torch.ones(4, 2)
"""
)

ON_ONE_DEVICE = "this line needs them on one device; move"

REFUSED = {
    "out = net(x)": (
        f"`x` is on cpu, and `net` is on npy:0: {ON_ONE_DEVICE} `x`",
        "out = net(x.to(DEV))",
        {"net": "a Sequential on npy:0", "x": "float32 [8, 4] on cpu"},
    ),
    "h = conv(image)": (
        f"`image` is on cpu, and `conv` is on npy:0: {ON_ONE_DEVICE} `image`",
        "h = conv(image.to(DEV))",
        {"conv": "a Conv2d on npy:0", "image": "float32 [2, 3, 8, 8] on cpu"},
    ),
    "o, (a, b) = lstm(x)": (
        f"`x` is on cpu, and `lstm` is on npy:0: {ON_ONE_DEVICE} `x`",
        "o, (a, b) = lstm(x.to(DEV))",
        {"lstm": "an LSTM on npy:0", "x": "float32 [8, 4] on cpu"},
    ),
    "loss = F.cross_entropy(net(there), y)": (
        f"`y` is on cpu, and `net` and `there` are on npy:0: {ON_ONE_DEVICE} `y`",
        "loss = F.cross_entropy(net(there), y.to(DEV))",
        {"net": "a Sequential on npy:0", "there": "float32 [8, 4] on npy:0", "y": "int64 [8] on cpu"},
    ),
    "q = there @ table": (
        f"`table` is on cpu, and `there` is on npy:0: {ON_ONE_DEVICE} `table`",
        "q = there @ table.to(DEV)",
        {"there": "float32 [8, 4] on npy:0", "table": "float32 [4, 2] on cpu"},
    ),
    "r = x[labels]": (
        f"`labels` is on npy:0, and `x` is on cpu: {ON_ONE_DEVICE} `labels`",
        "r = x[labels.cpu()]",
        {"x": "float32 [8, 4] on cpu", "labels": "int64 [8] on npy:0"},
    ),
    "n = there.numpy()": (
        "`there` is on npy:0, and numpy reads only memory of the cpu; bring it there first",
        "n = there.cpu().numpy()",
        {"there": "float32 [8, 4]"},
    ),
    "out = [net(b) for b in x.split(4)]": (
        f"`b` is on cpu, and `net` is on npy:0: {ON_ONE_DEVICE} `b`",
        "out = [net(b.to(DEV)) for b in x.split(4)]",
        {"net": "a Sequential on npy:0", "b": "float32 [4, 4] on cpu", "x": "float32 [8, 4] on cpu"},
    ),
    "net[0].weight.data = x[:3]": (
        f"`x` is on cpu, and `net[0].weight` is on npy:0: {ON_ONE_DEVICE} `x`",
        "net[0].weight.data = x[:3].to(DEV)",
        {"x": "float32 [8, 4] on cpu", "net[0].weight": "float32 [3, 4] on npy:0"},
    ),
    "h0 = torch.zeros(1, 5); o = lstm(there, (h0, h0))": (
        f"`h0` is on cpu, and `lstm` and `there` are on npy:0: {ON_ONE_DEVICE} `h0`",
        "h0 = torch.zeros(1, 5); o = lstm(there, (h0.to(DEV), h0.to(DEV)))",
        {"lstm": "an LSTM on npy:0", "there": "float32 [8, 4] on npy:0", "h0": "float32 [1, 5] on cpu"},
    ),
    """def join(first, second):
    doubled = first * 2
    return torch.cat([doubled, second])

z = join(x, there)""": (
        f"`x` is on cpu, and `there` is on npy:0: {ON_ONE_DEVICE} `x`",
        "z = join(x.to(DEV), there)",
        {"x": "float32 [8, 4] on cpu", "there": "float32 [8, 4] on npy:0"},
    ),
    """optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(there).sum().backward()
optimizer.step()
for state in optimizer.state.values():
    state["momentum_buffer"] = state["momentum_buffer"].cpu()
optimizer.step()""": (
        "`optimizer.state[0]['momentum_buffer']`: 4 state tensors of the optimizer are on cpu, and the parameters are "
        "on npy:0, so the next `step()` mixes both; build the optimizer after the move, or move its state too",
        None,
        {},
    ),
}


@pytest.fixture(scope="module")
def answers():
    """What the reports say, from a process of its own."""
    accelerators = pytest.importorskip("torch.utils.backend_registration")
    if not hasattr(accelerators, "_setup_privateuseone_for_python_backend"):
        pytest.skip("this torch takes no device made of Python")
    fixed = [fix for _, fix, _ in REFUSED.values() if fix is not None and not fix.startswith("z = join")]
    asked = json.dumps([[SETUP, cell] for cell in (*REFUSED, *fixed)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.second_device"],
        input=asked, capture_output=True, text=True, check=True, timeout=300,
        cwd=Path(__file__).parents[2], env=os.environ | {"OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    return dict(zip((*REFUSED, *fixed), json.loads(done.stdout), strict=True))


@pytest.mark.parametrize("cell", REFUSED)
def test_what_torch_refused_is_explained(answers, cell):
    """The report says what has to move, describes what stands on the line, and writes the line that works."""
    (finding,) = answers[cell]["findings"]
    message, fix, operands = REFUSED[cell]

    assert (finding["rule"], finding["level"], answers[cell]["failures"]) == ("off-device", "error", [])
    assert finding["message"] == message
    assert finding["operands"] == operands
    assert (finding["fix"] or {"replacement": None})["replacement"] == fix


@pytest.mark.parametrize("cell", [cell for cell, (_, fix, _) in REFUSED.items() if fix and not fix.startswith("z =")])
def test_the_fixed_line_runs(answers, cell):
    """With the fix there is nothing to say, and torch speaks of devices no more; the device has not every operation."""
    fixed = answers[REFUSED[cell][1]]

    assert fixed["findings"] == []
    assert fixed["error"] == "None" or "overrideable not implemented" in fixed["error"] or "_cell'" in fixed["error"]
