"""shared-memory: what runs without a call in the text, as properties, caches and `with` blocks do."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

MISTAKES = {
    "cached property asarray clamped": (
        (
            """
from functools import cached_property
class Survey:
    def __init__(self, depth):
        self.depth = depth
    @cached_property
    def tensor(self):
        kept = 1
        return torch.asarray(self.depth)
    def outliers(self, limit=50.0):
        return int((self.depth > limit).sum())
survey = Survey(np.array([[3.0, 80.0, 12.0], [55.0, 7.0, 90.0]]))
before = survey.outliers()

heat = survey.tensor.clamp_(max=50.0).div_(50.0)
after = survey.outliers()
""",
        ),
        [("survey.tensor", 8)],
    ),
    "property numpy of tensor scaled": (
        (
            """
class Image:
    def __init__(self, px):
        self.px = px
    @property
    def array(self):
        return self.px.numpy()
image = Image(torch.rand(2, 3))
shown = image.array
shown *= 255
mean = image.px.mean().item()
""",
        ),
        [("shown", 8)],
    ),
    "lru cache augmented": (
        (
            """
from functools import lru_cache
@lru_cache(maxsize=None)
def load(path):
    g = torch.Generator().manual_seed(len(path))
    return torch.rand(3, 4, generator=g)

def sample(path, brightness):
    img = load(path)
    img *= brightness
    img[:, 0] = 0
    return img

first = sample("cat.png", 0.5)
first_mean = first.mean().item()
second = sample("cat.png", 0.5)
change = (second - first).abs().max().item()
""",
        ),
        [("first", 8)],
    ),
    "functools cache at top level": (
        (
            """
import functools
@functools.cache
def basis(n):
    return torch.eye(n)
a = basis(3)
a[0, 0] = 5
b = basis(3)
off = (b - torch.eye(3)).abs().sum().item()
""",
        ),
        [("a", 5)],
    ),
    "cached function returns a local name": (
        (
            """
import functools
@functools.lru_cache
def mask(n):
    m = torch.ones(n, n).tril()
    return m
causal = mask(4)
causal.fill_diagonal_(0)
plain = mask(4)
hidden = plain.sum().item()
""",
        ),
        [("causal", 6)],
    ),
    "cache of an own dict": (
        (
            """
CACHE = {}
def noise(n):
    if n not in CACHE:
        CACHE[n] = torch.randn(n)
    return CACHE[n]
a = noise(3)
a.mul_(10)
b = noise(3)
gap = (a - b).norm().item()
""",
        ),
        [("CACHE[3]", 4)],
    ),
    "cached, changed in a loop of epochs": (
        (
            """
import functools
@functools.lru_cache(maxsize=8)
def positions(n):
    return torch.arange(n).float()
seen = []
for epoch in range(3):
    pos = positions(5)
    pos /= pos.max()
    pos += 1
    seen.append(pos.sum().item())
""",
        ),
        [("pos", 7)],
    ),
    "cached frame over module data": (
        (
            """
from functools import lru_cache
RAW = np.arange(6.0).reshape(2, 3)
@lru_cache
def frame(i):
    return torch.from_numpy(RAW[i])
one = frame(0)
one.sub_(one.mean())
total = RAW.sum()
""",
        ),
        [("one", 5)],
    ),
    "property detach, written": (
        (
            """
class Head:
    def __init__(self):
        self.w = torch.randn(3, requires_grad=True)
    @property
    def values(self):
        return self.w.detach()
head = Head()
start = head.values
opt = torch.optim.SGD([head.w], lr=0.1)
for _ in range(3):
    opt.zero_grad()
    head.w.pow(2).sum().backward()
    opt.step()
moved = (head.values - start).norm().item()
""",
        ),
        [("start", 8)],
    ),
    "watcher on enter and exit": (
        (
            """
class WatchDrift:
    def __init__(self, module):
        self.module = module

    def _grab(self):
        return {n: p.detach().numpy() for n, p in self.module.named_parameters()}

    def __enter__(self):
        self.before = self._grab()
        return self

    def __exit__(self, *exc):
        after = self._grab()
        self.drift = {n: float(np.abs(after[n] - old).max()) for n, old in self.before.items()}

words = nn.EmbeddingBag(12, 4)
opt = torch.optim.SGD(words.parameters(), lr=0.5)
with WatchDrift(words) as watch:
    for _ in range(4):
        opt.zero_grad()
        words(torch.randint(0, 12, (3, 5))).pow(2).sum().backward()
        opt.step()
""",
        ),
        [("watch.before", 6)],
    ),
    "ema swap in and out that does not copy": (
        (
            """
class Swapped:
    def __init__(self, net, shadow):
        self.net, self.shadow = net, shadow
    def __enter__(self):
        self.kept = {n: p.data for n, p in self.net.named_parameters()}
        for n, p in self.net.named_parameters():
            p.data.copy_(self.shadow[n])
        return self
    def __exit__(self, *exc):
        for n, p in self.net.named_parameters():
            p.data.copy_(self.kept[n])
net = nn.Linear(3, 1)
shadow = {n: p.detach() * 0.5 for n, p in net.named_parameters()}
with Swapped(net, shadow) as swap:
    score = net(torch.ones(2, 3)).mean().item()
""",
        ),
        [("swap.kept", 5)],
    ),
    "contextmanager function": (
        (
            """
from contextlib import contextmanager
@contextmanager
def measured(w, log):
    before = w.detach()
    log["start"] = before
    yield
    log["moved"] = (w - before).norm().item()
w = torch.ones(3)
log = {}
with measured(w, log):
    w.mul_(3)
print(log["moved"])
""",
        ),
        [("log['start']", 4)],
    ),
    "restore of a state kept by reference": (
        (
            """
class Keep:
    def __init__(self, state):
        self.state = state
    def __enter__(self):
        self.old = self.state["x"]
        return self
    def __exit__(self, *exc):
        self.state["x"].copy_(self.old)
state = {"x": torch.zeros(2)}
with Keep(state) as keep:
    state["x"] += 5
left = state["x"].sum().item()
""",
        ),
        [("keep.old", 5)],
    ),
}

CORRECT = {
    "property makes its own": (
        """
class Image:
    def __init__(self, px):
        self.px = px
    @property
    def array(self):
        return self.px.numpy().copy()
image = Image(torch.rand(2, 3))
shown = image.array
shown *= 255
mean = image.px.mean().item()
""",
    ),
    "cached property is only read": (
        """
from functools import cached_property
class Survey:
    def __init__(self, depth):
        self.depth = depth
    @cached_property
    def tensor(self):
        return torch.asarray(self.depth)
survey = Survey(np.array([3.0, 80.0]))
heat = survey.tensor.clamp(max=50.0)
after = survey.depth.max()
""",
    ),
    "property setter writes on purpose": (
        """
class Joint:
    def __init__(self):
        self.state = torch.zeros(4)
    @property
    def speed(self):
        return self.state[2:]
    @speed.setter
    def speed(self, value):
        self.state[2:] = value
joint = Joint()
joint.speed = 3.0
fast = joint.speed.sum().item()
""",
    ),
    "properties used to write through": (
        """
class Body:
    def __init__(self):
        self.state = torch.zeros(6)
    @property
    def position(self):
        return self.state[:3]
    @property
    def velocity(self):
        return self.state[3:]
body = Body()
body.velocity.fill_(1.0)
for _ in range(10):
    body.position.add_(body.velocity, alpha=0.1)
print(body.position, body.state)
""",
    ),
    "cached, but cloned": (
        """
import functools
@functools.lru_cache
def mask(n):
    return torch.ones(n, n).tril()
causal = mask(4).clone()
causal.fill_diagonal_(0)
plain = mask(4)
same = mask(4)
""",
    ),
    "workspace handed out again, used before": (
        """
import functools
@functools.lru_cache
def workspace(n):
    return torch.empty(n)
def rms(x):
    w = workspace(len(x))
    torch.mul(x, x, out=w)
    return w.mean().sqrt().item()
one = rms(torch.ones(3))
two = rms(torch.ones(3) * 2)
""",
    ),
    "cached with other arguments": (
        """
import functools
@functools.cache
def basis(n):
    return torch.eye(n)
a = basis(3)
a[0, 0] = 5
b = basis(4)
off = b.sum().item() + a.sum().item()
""",
    ),
    "cached result finished at once and never asked again": (
        """
import functools
@functools.lru_cache
def table(n):
    return torch.ones(n)
t = table(4)
t *= 2
print(t.sum().item())
""",
    ),
    "ema swap with clones": (
        """
class Swapped:
    def __init__(self, net, shadow):
        self.net, self.shadow = net, shadow
    def __enter__(self):
        self.kept = {n: p.detach().clone() for n, p in self.net.named_parameters()}
        for n, p in self.net.named_parameters():
            p.data.copy_(self.shadow[n])
        return self
    def __exit__(self, *exc):
        for n, p in self.net.named_parameters():
            p.data.copy_(self.kept[n])
net = nn.Linear(3, 1)
shadow = {n: p.detach() * 0.5 for n, p in net.named_parameters()}
with Swapped(net, shadow) as swap:
    score = net(torch.ones(2, 3)).mean().item()
""",
    ),
    "contextmanager with a clone": (
        """
from contextlib import contextmanager
@contextmanager
def measured(w, log):
    before = w.detach().clone()
    log["start"] = before
    yield
    log["moved"] = (w - before).norm().item()
w = torch.ones(3)
log = {}
with measured(w, log):
    w.mul_(3)
print(log["moved"])
""",
    ),
    "watcher looks after the block": (
        """
class Last:
    def __init__(self, w):
        self.w = w
    def __enter__(self):
        return self
    def __exit__(self, *exc):
        self.end = self.w.detach()
w = torch.ones(3)
with Last(w) as last:
    w.mul_(3)
print(last.end.sum().item())
""",
    ),
    "no_grad block": (
        """
w = torch.ones(3)
with torch.no_grad():
    v = w.view(-1)
    total = v.sum().item()
w2 = w * 2
w2 += 1
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
