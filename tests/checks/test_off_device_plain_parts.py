"""off-device: tensors and layers that a module reaches past its tables, however deep and however they got there."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
DEV = torch.device("meta")  # stands in for the accelerator
"""
)

LEFT = {
    "tables built on demand and returned by a method": (
        """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.known, self.out = 0, nn.Linear(4, 4)
    def tables(self, x):
        if x.size(1) > self.known:
            self.known = x.size(1)
            angle = torch.outer(torch.arange(self.known, device=x.device), torch.ones(4, device=x.device))
            self.both = angle.cos(), angle.sin()
        return self.both
    def forward(self, x):
        cos, sin = (t[:x.size(1)] for t in self.tables(x))
        return self.out(x * cos + x * sin)
net = nn.Sequential(Rotary(), Rotary())
net(torch.randn(1, 5, 4))
net.to(DEV)
""",
        [("net[0].both", 9)],
    ),
    "a mask built at the first call": (
        """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.kept = nn.Linear(4, 4), None
    def mask(self, x):
        if self.kept is None:
            self.kept = torch.ones(4, 4, device=x.device).tril()
        return self.kept
    def forward(self, x):
        return self.out(x) * self.mask(x)
net = Masked()
net(torch.randn(4, 4))
net = net.to(DEV)
""",
        [("net.kept", 7)],
    ),
    "named tuple that is unpacked": (
        """
from typing import NamedTuple
class Consts(NamedTuple):
    mean: torch.Tensor
    std: torch.Tensor
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.consts = Consts(torch.zeros(4), torch.ones(4))
    def forward(self, x):
        mean, std = self.consts
        return self.fc((x - mean) / std)
net = Net().to(DEV)
""",
        [("net.consts", 9)],
    ),
    "attribute set from outside": (
        """
class Wrap(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
    def forward(self, x):
        return self.body(x) * self.gain
w = Wrap(nn.Linear(4, 4))
w.gain = torch.ones(4)
w.to(DEV)
""",
        [("w.gain", 8)],
    ),
    "constant of the class": (
        """
class Norm(nn.Module):
    mean = torch.tensor([0.4, 0.5, 0.6])
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        return self.fc(x - Norm.mean)
norm = Norm()
norm.to(DEV)
""",
        [("Norm.mean", 2)],
    ),
    "tensors in a dataclass": (
        """
from dataclasses import dataclass
@dataclass
class Stats:
    mean: torch.Tensor
    std: torch.Tensor
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.stats = Stats(torch.zeros(3), torch.ones(3))
    def forward(self, x):
        return self.fc((x - self.stats.mean) / self.stats.std)
net = Net().to(DEV)
""",
        [("net.stats", 10)],
    ),
    "weight in a partial": (
        """
import functools
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.loss = functools.partial(F.cross_entropy, weight=torch.ones(3))
    def forward(self, x, y):
        return self.loss(self.fc(x), y)
head = Head().to(DEV)
""",
        [("head.loss", 6)],
    ),
    "mask in a closure": (
        """
def make_mask(n):
    m = torch.tril(torch.ones(n, n))
    return lambda s: s * m
class Att(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.mask = make_mask(4)
    def forward(self, x):
        return self.mask(self.q(x))
att = Att()
att = att.to(DEV)
""",
        [("att.mask", 8)],
    ),
    "tables of a plain object": (
        """
class Rope:
    def __init__(self, d):
        self.cos = torch.ones(d)
    def __call__(self, x):
        return x * self.cos
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = Rope(4)
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        return self.rope(self.fc(x))
model = nn.Sequential(Block(), Block())
model.to(DEV)
""",
        [("model[0].rope.cos", 9)],
    ),
    "tables handed to a function": (
        """
def rotate(x, cos, sin):
    return x * cos + x.flip(-1) * sin
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        ang = torch.arange(4.0)
        self.cos, self.sin = ang.cos(), ang.sin()
    def forward(self, x):
        return rotate(self.fc(x), self.cos, self.sin)
m = Block().to(DEV)
""",
        [("m.cos", 8), ("m.sin", 8)],
    ),
    "window behind a property": (
        """
class Win(nn.Module):
    def __init__(self):
        super().__init__()
        self._w = torch.hann_window(4)
        self.fc = nn.Linear(4, 4)
    @property
    def window(self):
        return self._w[None]
    def forward(self, x):
        return self.fc(x * self.window)
win = Win().to(DEV)
""",
        [("win._w", 4)],
    ),
    "tensors set by name": (
        """
class Multi(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        for i in range(2):
            setattr(self, f"scale_{i}", torch.ones(4))
    def forward(self, x):
        for i in range(2):
            x = self.fc(x) * getattr(self, f"scale_{i}")
        return x
multi = Multi().to(DEV)
""",
        [("multi.scale_0", 6), ("multi.scale_1", 6)],
    ),
    "weights drawn by zip": (
        """
class Mix(nn.Module):
    def __init__(self):
        super().__init__()
        self.convs = nn.ModuleList([nn.Linear(3, 3) for _ in range(2)])
        self.weights = [torch.rand(3) for _ in range(2)]
    def forward(self, x):
        return sum(w * c(x) for w, c in zip(self.weights, self.convs))
mix = Mix().to(DEV)
""",
        [("mix.weights", 5)],
    ),
    "list of all the layers there are": (
        """
class MLP(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.layers = [nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])]
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x
mlp = MLP([3, 4, 5])
mlp.to(DEV)
""",
        [("mlp.layers", 4)],
    ),
    "layers that update a dict": (
        """
class Heads(nn.Module):
    def __init__(self, tasks):
        super().__init__()
        self.body = nn.Linear(3, 3)
        self.heads = {}
        self.heads.update({t: nn.Linear(3, 2) for t in tasks})
    def forward(self, x):
        return {t: h(self.body(x)) for t, h in self.heads.items()}
heads = Heads(["a", "b"]).to(DEV)
""",
        [("heads.heads", 6)],
    ),
    "layers that extend a list": (
        """
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(3, 3)
        self.rest = []
        self.rest += [nn.Linear(3, 3) for _ in range(2)]
    def forward(self, x):
        x = self.inp(x)
        for r in self.rest: x = r(x)
        return x
deep = Deep().to(DEV)
""",
        [("deep.rest", 6)],
    ),
    "module that a trainer moves": (
        """
class Pos(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Linear(3, 3)
        self.pos = torch.randn(10, 3)
    def forward(self, x):
        return self.emb(x) + self.pos[: x.shape[1]]
class Trainer:
    def __init__(self, model, device):
        self.model = model.to(device)
t = Trainer(Pos(), DEV)
""",
        [("t.model.pos", 5)],
    ),
    "tensors in pairs in a list": (
        """
class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(3, 3)
        self.filters = [("a", torch.ones(3)), ("b", torch.ones(3))]
    def forward(self, x):
        out = 0
        for name, k in self.filters:
            out = out + self.net(x) * k
        return out
loss = Loss().to(DEV)
""",
        [("loss.filters", 5)],
    ),
    "deque of keys": (
        """
from collections import deque
class Bank(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(3, 3)
        self.bank = deque([torch.randn(3) for _ in range(4)], maxlen=4)
    def forward(self, x):
        keys = torch.stack(list(self.bank))
        return self.enc(x) @ keys.T
bank = Bank().to(DEV)
""",
        [("bank.bank", 6)],
    ),
    "cache by size that was filled on the host": (
        """
class Alibi(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.cache = {}
    def bias(self, n):
        if n not in self.cache:
            self.cache[n] = torch.arange(n).float()
        return self.cache[n]
    def forward(self, x):
        return self.q(x) + self.bias(4)
alibi = Alibi()
with torch.no_grad(): alibi(torch.ones(2, 4))
alibi.to(DEV)
""",
        [("alibi.cache", 8)],
    ),
    "layer set past nn.Module": (
        """
class Ref(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        object.__setattr__(self, "frozen", nn.Linear(3, 3))
    def forward(self, x):
        return self.fc(x) + self.frozen(x)
ref = Ref().to(DEV)
""",
        [("ref.frozen", 5)],
    ),
}

CORRECT = {
    "built anew for each device": """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.out, self.kept, self.where = nn.Linear(4, 4), None, None
    def mask(self, x):
        if self.kept is None or self.where != x.device:
            self.where = x.device
            self.kept = torch.ones(4, 4, device=x.device).tril()
        return self.kept
    def forward(self, x):
        return self.out(x) * self.mask(x)
net = Masked()
net(torch.randn(4, 4))
net = net.to(DEV)
""",
    "built anew at each call": """
class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def forward(self, x):
        self.mask = torch.ones(4, 4, device=x.device).tril()
        return self.out(x) * self.mask
net = Masked()
net(torch.randn(4, 4))
net.to(DEV)
""",
    "the last activations, kept to be looked at": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def forward(self, x):
        self.hidden = self.out(x)
        return self.hidden.relu() + x
    def sparsity(self):
        return (self.hidden > 0).float().mean()
net = Net()
net(torch.randn(4, 4))
share = net.sparsity()
net = net.to(DEV)
""",
    "built by a helper that each call runs first": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(4, 4)
    def prepare(self, x):
        self.waves = x.cos(), x.sin()
    def forward(self, x):
        self.prepare(x)
        cos, sin = self.waves
        return self.out(x) * cos + sin
net = Net()
net(torch.randn(4, 4))
net.to(DEV)
""",
    "preparation on the host": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.mean = torch.zeros(4)
    def prepare(self, x):
        return x - self.mean
    def forward(self, x):
        return self.fc(x)
net = Net().to(DEV)
x = net.prepare(torch.ones(2, 4)).to(DEV)
y = net(x)
""",
    "teacher on the host that knows": """
class Student(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.fc = nn.Linear(4, 2)
        self._teacher = (teacher,)
    def forward(self, x):
        with torch.no_grad():
            t = self._teacher[0](x.cpu()).to(x.device)
        return self.fc(x) - t
s = Student(nn.Linear(4, 2)).to(DEV)
""",
    "cared for in helper": """
def rotate(x, cos):
    return x * cos.to(x.device)
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cos = torch.ones(4)
    def forward(self, x):
        return rotate(self.fc(x), self.cos)
m = Block().to(DEV)
""",
    "keyed by size and device": """
class Alibi(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 4)
        self.cache = {}
    def forward(self, x):
        key = (x.size(-1), str(x.device))
        if key not in self.cache:
            self.cache[key] = torch.arange(4, device=x.device).float()
        return self.q(x) + self.cache[key]
alibi = Alibi()
with torch.no_grad(): alibi(torch.ones(2, 4))
alibi.to(DEV)
""",
    "replay buffer on the host": """
class Replay:
    def __init__(self, n):
        self.obs = torch.zeros(n, 4); self.i = 0
    def push(self, o):
        self.obs[self.i] = o
        self.i += 1
    def sample(self, k):
        idx = torch.randint(0, self.i, (k,))
        return self.obs[idx]
class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.q = nn.Linear(4, 2)
        self.memory = Replay(8)
    def remember(self, o):
        self.memory.push(o)
    def forward(self, x):
        return self.q(x)
agent = Agent().to(DEV)
agent.remember(torch.ones(4))
batch = agent.memory.sample(1).to(DEV)
""",
    "history of outputs": """
class Log(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.seen = []
    def forward(self, x):
        y = self.fc(x)
        self.seen.append(torch.zeros(3))
        return y
log = Log().to(DEV)
log(torch.ones(2, 3, device=DEV))
""",
    "class constant moved in forward": """
class Norm(nn.Module):
    mean = torch.tensor([0.4, 0.5, 0.6])
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
    def forward(self, x):
        return self.fc(x - self.mean.to(x))
norm = Norm().to(DEV)
""",
    "_apply override moves list": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.consts = [torch.ones(3), torch.ones(3)]
    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.consts = [fn(c) for c in self.consts]
        return self
    def forward(self, x):
        return self.fc(x) * self.consts[0]
net = Net().to(DEV)
""",
    "data set inside": """
from torch.utils.data import TensorDataset
class Probe(nn.Module):
    def __init__(self, data):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.data = data
    def forward(self, i):
        x = self.data[i][0].to(self.fc.weight.device)
        return self.fc(x)
probe = Probe(TensorDataset(torch.ones(4, 3))).to(DEV)
""",
    "labels of classes as integers": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.class_ids = torch.tensor([3, 5, 7])
    def forward(self, x):
        return self.fc(x)
net = Net().to(DEV)
""",
    "statistics shown on the host": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.counts = torch.zeros(3, 3)
    def forward(self, x):
        return self.fc(x)
net = Net().to(DEV)
net.counts += torch.ones(3, 3)
print(net.counts.sum())
""",
    "config with tensors only read as numbers": """
from types import SimpleNamespace
class Net(nn.Module):
    def __init__(self, cfg):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.cfg = cfg
    def forward(self, x):
        return self.fc(x) * self.cfg.scales.max().item()
net = Net(SimpleNamespace(scales=torch.ones(3, 2))).to(DEV)
""",
}


@pytest.mark.parametrize(("cell", "expected"), LEFT.values(), ids=list(LEFT))
def test_what_a_move_does_not_reach(cell: str, expected: list[tuple[str, int]]) -> None:
    """The finding names the attribute, and the line that gave it its value."""
    assert flags(look(SETUP, cell.removeprefix("\n"), only=["off-device"]), "off-device") == expected


@pytest.mark.parametrize("cell", CORRECT.values(), ids=list(CORRECT))
def test_what_is_right_where_it_is(cell: str) -> None:
    """Nothing is said about what is brought along, kept by device, or for the host."""
    report = look(SETUP, cell.removeprefix("\n"), only=["off-device"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []
    assert report.failures == ()


def test_modules_of_one_class_are_one_finding() -> None:
    """One line of the class is to be changed, however many modules there are."""
    cell = """class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.scale = torch.ones(3)
    def forward(self, x):
        return self.fc(x) * self.scale
net = nn.Sequential(Scaled(), Scaled(), Scaled()).to(DEV)"""
    (finding,) = look(SETUP, cell, only=["off-device"]).findings

    assert finding.message == (
        "`net[0].scale`: a plain attribute, on cpu, while the parameters of `net[0]` are on meta: `.to()` does not "
        "reach it; register it as a buffer; 2 more of this class have the same"
    )
    assert finding.consequences == ("net[1].scale", "net[2].scale")
