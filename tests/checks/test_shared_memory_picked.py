"""shared-memory: what is finished in place before it is shared, and what is picked out of a container."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

MISTAKES = {
    "buffer changed afterwards": (
        (
            """
class Priors(nn.Module):
    def __init__(self, anchors):
        super().__init__()
        self.register_buffer("anchors", anchors)
anchors = torch.linspace(0, 1, 5)
priors = Priors(anchors)
priors.anchors.mul_(32)
scale = (priors.anchors / anchors).max().item()
""",
        ),
        [("anchors", 5)],
    ),
}

CORRECT = {
    "weights in loss": (
        """
counts = torch.tensor([50.0, 5.0, 20.0])
class_weights = 1 / counts
class_weights /= class_weights.sum()
criterion = nn.CrossEntropyLoss(weight=class_weights)
loss = criterion(torch.randn(4, 3), torch.tensor([0, 1, 2, 2])).item()
""",
    ),
    "buffer of a constructed module, in place before": (
        """
class Priors(nn.Module):
    def __init__(self, anchors):
        super().__init__()
        self.register_buffer("anchors", anchors)
anchors = torch.linspace(0, 1, 5)
anchors.mul_(32)
priors = Priors(anchors)
out = priors.anchors + anchors
""",
    ),
    "two steps in place then module, read after": (
        """
mean = torch.tensor([0.4, 0.5])
std = torch.ones(2)
std.mul_(2).clamp_(max=1.5)
mean -= 0.1
norm = nn.Module()
norm.register_buffer("mean", mean)
norm.register_buffer("std", std)
x = (torch.zeros(2) - mean) / std
""",
    ),
    "param init first": (
        """
w = torch.empty(3, 4)
nn.init.xavier_uniform_(w)
w[0] = 0
layer = nn.Linear(4, 3)
layer.weight = nn.Parameter(w)
print(w.sum().item(), layer.weight.sum().item())
""",
    ),
    "finished in a function": (
        """
def finish(a):
    a.mul_(2)
    return a
class Grid(nn.Module):
    def __init__(self, pts):
        super().__init__()
        self.register_buffer("pts", pts)
pts = finish(torch.rand(4))
grid = Grid(pts)
d = (grid.pts - pts).abs().max()
""",
    ),
    "particles": (
        """
def energy(p):
    return (p ** 2).sum()
swarm = [torch.randn(2, requires_grad=True) for _ in range(5)]
for sweep in range(4):
    for i, p in enumerate(swarm):
        force, = torch.autograd.grad(energy(p), p)
        with torch.no_grad():
            p.sub_(0.05 * force)
best = min(swarm, key=lambda p: energy(p).item())
""",
    ),
    "pick by index": (
        """
swarm = [torch.randn(2) for _ in range(5)]
for p in swarm:
    p.mul_(0.5)
best = swarm[torch.stack(swarm).norm(dim=1).argmin().item()]
worst = swarm[-1]
""",
    ),
    "pick sorted": (
        """
swarm = [torch.randn(2) for _ in range(5)]
for p in swarm:
    p.mul_(0.5)
elite = sorted(swarm, key=lambda p: p.norm().item())[:2]
champion = elite[0]
gap = (elite[0] - elite[1]).norm()
""",
    ),
    "pick next": (
        """
pool = {"a": torch.ones(2), "b": torch.zeros(2)}
for v in pool.values():
    v += 1
first = next(v for v in pool.values() if v.sum() > 3)
""",
    ),
    "pick by function": (
        """
def choose(items):
    return items[0] if items[0].sum() > items[1].sum() else items[1]
items = [torch.randn(3), torch.randn(3)]
items[0].add_(1)
items[1].add_(2)
chosen = choose(items)
print(chosen.sum().item())
""",
    ),
    "pick by method": (
        """
class Pool:
    def __init__(self):
        self.items = [torch.randn(3), torch.randn(3)]
    def nudge(self):
        for item in self.items:
            item.add_(0.1)
    def best(self):
        return max(self.items, key=lambda t: t.sum().item())
pool = Pool()
for _ in range(3):
    pool.nudge()
top = pool.best()
print(top.sum().item())
""",
    ),
    "pick filter": (
        """
cands = [torch.randn(2) for _ in range(5)]
for c in cands:
    c.clamp_(min=-1)
good = list(filter(lambda c: c.sum() > 0, cands))
both = [c for c in cands if c.sum() > -9]
""",
    ),
}


@pytest.mark.parametrize(("cells", "found"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(cells, found):
    """The rule names the holder that does not expect the write, and where it got the memory."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "shared-memory") == found


@pytest.mark.parametrize("cells", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_left_alone(cells):
    """A second way to what was there before is no second value."""
    report = look(COMMON, *(cell.removeprefix("\n") for cell in cells))

    assert flags(report, "shared-memory") == []
