"""What the trace saw being born is told where the text would take it for data, or would not follow it."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, look

BORN = [
    pytest.param(
        "x = torch.tensor([1.0, -1.0])\nx.log_()",
        ("x", 2, "warning", "Tensor.log_"),
        "born in line 2 in `x.log_()`: 1 of 2 values of `x` was below 0",
        id="in place, of which only the result is left to read",
    ),
    pytest.param(
        "x = torch.tensor([1.0, 0.0])\nx.log_()\ny = x * 0",
        ("x", 2, "warning", "Tensor.log_"),
        "it reached `y`; born in line 2 in `x.log_()`: 1 of 2 values of `x` was exactly 0",
        id="an infinity that becomes NaN",
    ),
    pytest.param(
        "def batches(x):\n"
        "    for row in x:\n"
        "        yield row / row.sum()\n"
        "rows = list(batches(torch.tensor([[1.0, 1.0], [0.0, 0.0]])))",
        ("rows[1]", 3, "warning", "/"),
        "born in line 3 in `row / row.sum()`: `row.sum()` is exactly 0",
        id="in a generator",
    ),
    pytest.param(
        "stats = {}\ndef add(name, v):\n    stats[name] = v / v.sum()\nadd('a', torch.zeros(3))",
        ("stats['a']", 3, "warning", "/"),
        "born in line 3 in `v / v.sum()`: `v.sum()` is exactly 0",
        id="stored by a function",
    ),
    pytest.param(
        "a = torch.zeros(2)\n"
        "c = (a / a).numpy()\n"
        "d = torch.from_numpy(c)\n"
        "net = nn.Linear(2, 1)\n"
        "loss = net(d).sum()\n"
        "loss.backward()",
        ("c", 2, "error", "/"),
        "born in line 2 in `a / a`: 2 of 2 values of `a` are exactly 0",
        id="through numpy and back",
    ),
]


@pytest.mark.parametrize(("cell", "found", "said"), BORN)
def test_it_is_no_data(cell, found, said):
    """A warning with the operation's line; without a trace the rule knows too little."""
    report = look(COMMON, cell, trace=True)
    (finding,) = report.findings

    assert (finding.subject, finding.line, finding.level, finding.evidence["operation"]) == found
    assert finding.cause == "design"
    assert said in finding.message
    assert report.skipped == ()


HANDLED = {
    "counted without": "iou = torch.tensor([3.0, 0.0]) / torch.tensor([4.0, 0.0])\nmean = iou.nanmean()",
    "filled": "acc = torch.tensor([3.0, 0.0]) / torch.tensor([4.0, 0.0])\nacc[acc.isnan()] = 0.0",
    "left out": "iou = torch.tensor([3.0, 0.0]) / torch.tensor([4.0, 0.0])\nmean = iou[~iou.isnan()].mean()",
    "a branch not taken": "p = torch.tensor([0.0, 0.5])\nlogs = p.log()\nh = torch.where(p > 0, p * logs, 0.0).sum()",
    "in decibels": "db = torch.tensor([0.0, 1.0]).log10()\ndb = db.clamp(min=-80)",
    "data of the user's": 'x = torch.tensor([1.0, float("nan")])\ny = x * 2',
}


@pytest.mark.parametrize("cell", HANDLED.values(), ids=HANDLED)
def test_what_is_handled_afterwards_is_no_finding(cell):
    """A note at most."""
    report = look(COMMON, cell, trace=True)

    assert report.findings == ()
    assert report.failures == ()
