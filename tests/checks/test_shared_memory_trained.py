"""shared-memory: tensors trained by themselves, entries that are second names, and modules copied shallowly."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

MISTAKES = {
    "attacked image is the image": (
        (
            """
image = torch.rand(1, 4)
delta_base = image.requires_grad_()
opt = torch.optim.SGD([image], lr=0.5)
original = image.detach()
for _ in range(3):
    opt.zero_grad()
    (-image.pow(2).sum()).backward()
    opt.step()
change = (image - original).abs().max().item()
""",
        ),
        [("original", 4)],
    ),
    "numpy before": (
        (
            """
theta = torch.randn(3, requires_grad=True)
theta0 = theta.detach().numpy()
opt = torch.optim.SGD([theta], lr=0.5)
for _ in range(3):
    opt.zero_grad()
    theta.pow(2).sum().backward()
    opt.step()
shift = np.abs(theta.detach().numpy() - theta0).max()
""",
        ),
        [("theta0", 2)],
    ),
    "best theta of a plain loop": (
        (
            """
theta = torch.randn(3, requires_grad=True)
opt = torch.optim.SGD([theta], lr=0.5)
best_loss, best = float("inf"), None
for _ in range(5):
    opt.zero_grad()
    loss = theta.pow(2).sum()
    loss.backward()
    if loss.item() < best_loss:
        best_loss, best = loss.item(), theta.data
    opt.step()
final = best.pow(2).sum().item()
""",
        ),
        [("best", 9)],
    ),
    "plain detach, trained": (
        (
            """
class Head:
    def __init__(self):
        self.w = torch.randn(3, requires_grad=True)
head = Head()
start = head.w.detach()
opt = torch.optim.SGD([head.w], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    head.w.pow(2).sum().backward()
    opt.step()
moved = (head.w - start).norm().item()
""",
        ),
        [("start", 5)],
    ),
    "plain variable, trained": (
        (
            """
w = torch.randn(3, requires_grad=True)
start = w.detach()
opt = torch.optim.SGD([w], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    w.pow(2).sum().backward()
    opt.step()
moved = (w - start).norm().item()
""",
        ),
        [("start", 2)],
    ),
    "property whole of a buffer": (
        (
            """
class Sim:
    def __init__(self):
        self.pos = torch.zeros(3)
    @property
    def flat(self):
        return self.pos.view(-1)
    def step(self):
        self.pos += 1
sim = Sim()
path = []
for _ in range(3):
    sim.step()
    path.append(sim.flat)
""",
        ),
        [("path", 13)],
    ),
    "property whole of a buffer, two": (
        (
            """
class Sim:
    def __init__(self):
        self.pos = torch.zeros(3)
    @property
    def where(self):
        return self.pos
    def step(self):
        self.pos += 1
sim = Sim()
first = sim.where
sim.step()
gone = (sim.where - first).norm().item()
""",
        ),
        [("first", 10)],
    ),
    "dict store then changed, read": (
        (
            """
w = torch.ones(3)
log = {}
log["start"] = w
w.mul_(3)
moved = (w - log["start"]).norm().item()
""",
        ),
        [("log['start']", 3)],
    ),
    "dict store detach then changed, read": (
        (
            """
w = torch.ones(3)
log = {}
log["start"] = w.detach()
w.mul_(3)
moved = (w - log["start"]).norm().item()
""",
        ),
        [("log['start']", 3)],
    ),
    "attribute then changed, read": (
        (
            """
class A: pass
a = A()
w = torch.ones(3)
a.start = w.detach()
w.mul_(3)
moved = (w - a.start).norm().item()
""",
        ),
        [("a.start", 4)],
    ),
    "namespace of a net and its copy": (
        (
            """
from types import SimpleNamespace
def build(q):
    return SimpleNamespace(
        q=q, q_target=copy.copy(q), opt=torch.optim.Adam(q.parameters(), lr=0.05))
agent = build(nn.Linear(4, 2))
for _ in range(3):
    agent.opt.zero_grad()
    (agent.q(torch.randn(8, 4)) - agent.q_target(torch.randn(8, 4)).detach()).pow(2).mean().backward()
    agent.opt.step()
""",
        ),
        [("agent.q_target", 4)],
    ),
    "dict of a net and its copy": (
        (
            """
def build():
    net = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2))
    return {"online": net, "frozen": copy.copy(net)}
nets = build()
opt = torch.optim.SGD(nets["online"].parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    nets["online"](torch.randn(3, 4)).sum().backward()
    opt.step()
""",
        ),
        [("nets['frozen']", 3)],
    ),
    "dataclass holds both": (
        (
            """
from dataclasses import dataclass
@dataclass
class Pair:
    student: nn.Module
    teacher: nn.Module
student = nn.Linear(3, 3)
pair = Pair(student, copy.copy(student))
opt = torch.optim.SGD(pair.student.parameters(), lr=0.1)
opt.zero_grad()
(pair.student(torch.ones(2, 3)) - pair.teacher(torch.ones(2, 3)).detach() - 1).pow(2).mean().backward()
opt.step()
""",
        ),
        [("pair.teacher", 7)],
    ),
    "tuple unpacked": (
        (
            """
def twins(net):
    return net, copy.copy(net)
policy, target = twins(nn.Linear(4, 2))
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
policy(torch.randn(3, 4)).sum().backward()
opt.step()
""",
        ),
        [("target", 2)],
    ),
    "copied by an earlier cell": (
        (
            """
net = nn.Linear(2, 2)
target = copy.copy(net)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
""",
            """
for _ in range(3):
    opt.zero_grad()
    (net(torch.ones(1, 2)) - target(torch.ones(1, 2)).detach()).sum().backward()
    opt.step()
lag = (net.weight - target.weight).abs().max().item()
""",
        ),
        [("target", 4)],
    ),
    "positional tuple in a function": (
        (
            """
def twins():
    net = nn.Linear(4, 2)
    return copy.copy(net), net
lagging, policy = twins()
opt = torch.optim.SGD(policy.parameters(), lr=0.1)
policy(torch.randn(3, 4)).sum().backward()
opt.step()
""",
        ),
        [("lagging", 3)],
    ),
}

CORRECT = {
    "image optimised in place, result after": (
        """
content = torch.rand(3, 4)
img = content.clone().requires_grad_()
opt = torch.optim.Adam([img], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    (img - 0.5).pow(2).sum().backward()
    opt.step()
out = img.detach()
gap = (out - content).norm().item()
""",
    ),
    "a window on what is trained": (
        """
x = torch.zeros(4, requires_grad=True)
canvas = x.detach()
opt = torch.optim.SGD([x], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    (x - 1).pow(2).sum().backward()
    opt.step()
print(canvas.sum().item())
""",
    ),
    "clamped through data": (
        """
x = torch.rand(4, requires_grad=True)
opt = torch.optim.SGD([x], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    (x - 2).pow(2).sum().backward()
    opt.step()
    x.data.clamp_(0, 1)
final = x.data
""",
    ),
    "list of parameters": (
        """
w, b = torch.randn(3, requires_grad=True), torch.zeros(1, requires_grad=True)
params = [w, b]
opt = torch.optim.SGD(params, lr=0.1)
for _ in range(3):
    opt.zero_grad()
    ((torch.ones(2, 3) @ w + b) - 1).pow(2).mean().backward()
    opt.step()
norms = [p.norm().item() for p in params]
fit = (w.sum() + b).item()
""",
    ),
    "numpy before, copied": (
        """
theta = torch.randn(3, requires_grad=True)
theta0 = theta.detach().numpy().copy()
opt = torch.optim.SGD([theta], lr=0.5)
for _ in range(3):
    opt.zero_grad()
    theta.pow(2).sum().backward()
    opt.step()
shift = np.abs(theta.detach().numpy() - theta0).max()
theta_np = theta.detach().numpy()
""",
    ),
    "property copy": (
        """
class Sim:
    def __init__(self):
        self.pos = torch.zeros(3)
    @property
    def where(self):
        return self.pos.clone()
    def step(self):
        self.pos += 1
sim = Sim()
first = sim.where
sim.step()
gone = (sim.where - first).norm().item()
""",
    ),
    "property read after": (
        """
class Sim:
    def __init__(self):
        self.pos = torch.zeros(3)
    @property
    def where(self):
        return self.pos
    def step(self):
        self.pos += 1
sim = Sim()
sim.step()
now = sim.where
print(now.sum().item())
""",
    ),
    "dict of things under construction": (
        """
w = torch.ones(3)
log = {}
log["w"] = w
w.mul_(3)
print(log["w"].sum().item())
""",
    ),
    "deepcopy in a namespace": (
        """
from types import SimpleNamespace
def build(q):
    return SimpleNamespace(q=q, q_target=copy.deepcopy(q), opt=torch.optim.Adam(q.parameters(), lr=0.05))
agent = build(nn.Linear(4, 2))
for _ in range(3):
    agent.opt.zero_grad()
    (agent.q(torch.randn(8, 4)) - agent.q_target(torch.randn(8, 4)).detach() - 1).pow(2).mean().backward()
    agent.opt.step()
""",
    ),
    "copy of a parameterless module": (
        """
act = nn.ReLU()
other = copy.copy(act)
net = nn.Sequential(nn.Linear(2, 2), act, nn.Linear(2, 2), other)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(1, 2)).sum().backward()
opt.step()
""",
    ),
    "copied after training": (
        """
net = nn.Linear(2, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(1, 2)).sum().backward()
opt.step()
shown = copy.copy(net)
y = shown(torch.ones(1, 2)).sum().item()
""",
    ),
}


@pytest.mark.parametrize(("cells", "found"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(cells, found):
    """The rule names the holder that does not expect the write, and where it got the memory."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "shared-memory") == found


@pytest.mark.parametrize("cells", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_left_alone(cells):
    """Copies, windows on what changes, and what is looked at afterwards are no finding."""
    report = look(COMMON, *(cell.removeprefix("\n") for cell in cells))

    assert flags(report, "shared-memory") == []
