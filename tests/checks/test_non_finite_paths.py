"""non-finite: ways by which NaN and infinity reach a value that the text tells of by other names."""

from __future__ import annotations

import pytest

from tests.checks.test_non_finite import SETUP
from tests.looking import look

PATHS = {
    "the greatest value of a row is no guard": (
        """
x = torch.rand(4, 3); x[2] = 0
y = x / x.max(dim=1, keepdim=True).values
""",
        ("y", 3, "design"),
    ),
    "the greatest value of a tensor is no guard": (
        """
def scaled(t):
    return t / torch.max(t)
z = scaled(torch.zeros(3))
""",
        ("z", 3, "design"),
    ),
    "running statistics do not explode by themselves": (
        """
norm = nn.BatchNorm1d(2)
for rows in (torch.zeros(3, 2), torch.ones(3, 2)):
    out = norm(rows / rows.sum())
""",
        ("norm.running_mean", 4, "design"),
    ),
    "a scheduler is no optimizer": (
        """
x = torch.randn(20, 2); y = x.sum(1, keepdim=True)
def fit(net, opt, schedule):
    for _ in range(80):
        loss = F.mse_loss(net(x), y)
        opt.zero_grad(); loss.backward()
        opt.step()
        schedule.step()
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
fit(net, opt, torch.optim.lr_scheduler.LambdaLR(opt, lambda k: 3.0 ** k))
""",
        ("net.weight", 7, "explosion"),
    ),
    "a gradient inside an object": (
        """
from dataclasses import dataclass
@dataclass
class Pose:
    angle: torch.Tensor
    shift: torch.Tensor
    def cost(self):
        return torch.acos(self.angle.cos()).sum() + self.shift.sum()
def start():
    return Pose(torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True))
pose = start()
pose.cost().backward()
""",
        ("pose.angle.grad", 8, "design"),
    ),
    "a gradient inside a named tuple": (
        """
from typing import NamedTuple
class Factors(NamedTuple):
    left: torch.Tensor
    right: torch.Tensor
factors = Factors(torch.zeros(3, requires_grad=True), right=torch.ones(3))
size = (factors.left * factors.right).square().sum().sqrt()
size.backward()
""",
        ("factors.left.grad", 7, "design"),
    ),
    "a mask of the wrong sign, written in place": (
        """
gaps = torch.cdist(torch.rand(4, 2), torch.rand(4, 2))
gaps.masked_fill_(torch.eye(4).bool(), float("inf"))
weights = gaps.softmax(1)
""",
        ("weights", 4, "design"),
    ),
    "gradients of half precision given to copies": (
        """
net = nn.Linear(3, 1, bias=False).half()
masters = [p.detach().float().requires_grad_() for p in net.parameters()]
opt = torch.optim.SGD(masters, lr=0.01)
loss = (net(torch.full((4, 3), 3.0).half()) - 7).float().pow(2).mean()
(loss * 2.0 ** 15).backward()
for i, (m, p) in enumerate(zip(masters, net.parameters())):
    m.grad = p.grad.float() / 2.0 ** 15
nn.utils.clip_grad_norm_(masters, 1.0)
opt.step()
""",
        ("net.weight.grad", 6, "explosion"),
    ),
}

CORRECT = {
    "a field of a dataclass that starts with NaN": """
from dataclasses import dataclass, field
@dataclass
class Log:
    losses: list = field(default_factory=lambda: [float("nan")])
    best: float = float("inf")
log = Log()
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(3):
    loss = net(torch.ones(2, 2)).square().mean()
    opt.zero_grad(); loss.backward(); opt.step()
    log.losses.append(loss.item())
""",
    "a row that a base class starts with NaN": """
from typing import NamedTuple
from dataclasses import dataclass
class First(NamedTuple):
    loss: float = float("nan")
@dataclass
class Base:
    rows: list
@dataclass
class Log(Base):
    name: str = "run"
log = Log([First()])
for _ in range(3):
    log.rows.append(First(torch.ones(2).mean().item()))
""",
    "the greater of two values is a guard": """
n = max(len([]), 1)
m = torch.ones(3).sum() / n
y = torch.zeros(3) / torch.maximum(torch.zeros(3), torch.tensor(1e-6))
z = torch.zeros(3) / torch.zeros(3).max(torch.tensor(1e-6))
""",
    "gaps beside parameters in an object": """
import types
state = types.SimpleNamespace(w=torch.ones(3, requires_grad=True), table=torch.tensor([1.0, float("nan")]))
loss = state.w.sqrt().sum()
loss.backward()
mean = torch.nanmean(state.table)
""",
    "distances to oneself, filled in place": """
gaps = torch.cdist(torch.rand(4, 2), torch.rand(4, 2))
gaps.fill_diagonal_(float("inf"))
nearest = gaps.argmin(1)
weights = (-gaps).softmax(1)
""",
}


@pytest.mark.parametrize(("cell", "expected"), PATHS.values(), ids=PATHS)
def test_the_origin_is_named(cell: str, expected: tuple[str, int, str]) -> None:
    """One finding, on the value where the NaN or infinity began, with its line and its cause."""
    report = look(SETUP, cell, only=["non-finite"])

    assert [(f.subject, f.line, f.cause) for f in report.findings] == [expected]
    assert report.failures == ()


@pytest.mark.parametrize("cell", CORRECT.values(), ids=CORRECT)
def test_what_is_right_is_left_alone(cell: str) -> None:
    """At most a note."""
    report = look(SETUP, cell, only=["non-finite"])

    assert [str(finding) for finding in report.findings] == []
    assert report.failures == ()
