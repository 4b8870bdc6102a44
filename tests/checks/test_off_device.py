"""off-device: what is not where it is used is named; host data, caches and deliberate splits are not."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
DEV = torch.device("meta")  # stands in for the accelerator
"""
)

MISPLACED = {
    "constant of the class": (
        """
class Shifted(nn.Module):
    shift = torch.ones(4)
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)
    def forward(self, x):
        return self.body(x) + self.shift
shifted = Shifted().to(DEV)
y = shifted(torch.ones(2, 4, device=DEV))
""",
        [("Shifted.shift", 2)],
    ),
    "table that a function is applied to": (
        """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.angles = torch.arange(4.0)
    def forward(self, x):
        turn = torch.sin(-self.angles)
        return self.mix(x) * turn
rotary = Rotary().to(DEV)
""",
        [("rotary.angles", 5)],
    ),
    "head that is new after the move": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 9)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
net = Net()
net.to(DEV)
net.head = nn.Linear(4, 2)
""",
        [("net.head", 9)],
    ),
    "plain tensor attribute that fails": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)
    def forward(self, x):
        h = self.fc(x)
        return h * self.scale
net = Net().to(DEV)
out = net(torch.randn(2, 4, device=DEV))
""",
        [("net.scale", 5)],
    ),
    "plain tensor attribute of a layer without parameters": (
        """
class Pos(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.pe = torch.randn(10, d)
    def forward(self, x):
        return x + self.pe[: x.size(1)]
model = nn.Sequential(nn.Linear(4, 4), Pos(4)).to(DEV)
""",
        [("model[1].pe", 4)],
    ),
    "plain attribute that was to be trained": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.temp = torch.ones(4, requires_grad=True)
    def forward(self, x):
        return torch.mul(self.fc(x), self.temp)
net = Net()
net = net.to(DEV)
""",
        [("net.temp", 5)],
    ),
    "input of a loop": (
        """
x = torch.randn(3, 4)
y = torch.randn(3, 2)
model = nn.Linear(4, 2).to(DEV)
for epoch in range(2):
    pred = model(x)
    loss = F.mse_loss(pred, y)
""",
        [("x", 5)],
    ),
    "model left behind": (
        """
model = nn.Linear(4, 2)
x = torch.randn(3, 4, device=DEV)
out = model(x)
""",
        [("model", 3)],
    ),
    "operand of a helper": (
        """
def loss_fn(a, b):
    return ((a - b) ** 2).mean()
pred = torch.randn(3, 2, device=DEV)
target = torch.zeros(3, 2)
loss = loss_fn(pred, target)
""",
        [("target", 2)],
    ),
    "hidden state": (
        """
lstm = nn.LSTM(4, 4, batch_first=True).to(DEV)
x = torch.randn(2, 3, 4, device=DEV)
h0, c0 = torch.zeros(1, 2, 4), torch.zeros(1, 2, 4)
out, _ = lstm(x, (h0, c0))
""",
        [("h0", 4)],
    ),
    "one field of a batch": (
        """
batch = {"ids": torch.randn(2, 4), "mask": torch.ones(2, 4), "labels": torch.randn(2, 4)}
for k in ("ids", "mask"):
    batch[k] = batch[k].to(DEV)
loss = F.mse_loss(batch["ids"] * batch["mask"], batch["labels"])
""",
        [("batch['labels']", 4)],
    ),
    "made in forward": (
        """
class M(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
    def forward(self, x):
        noise = torch.randn(x.shape)
        return self.fc(x) + noise
m = M().to(DEV)
x = torch.randn(2, 4, device=DEV)
y = m(x)
""",
        [("noise", 7)],
    ),
    "weight of a loss": (
        """
model = nn.Linear(4, 2).to(DEV)
w = torch.tensor([1.0, 2.0])
criterion = nn.BCEWithLogitsLoss(pos_weight=w)
x = torch.randn(3, 4, device=DEV)
out = model(x)
""",
        [("criterion.pos_weight", 3)],
    ),
    "optimizer built before the move": (
        """
model = nn.Linear(4, 2)
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
model = model.to(DEV)
x = torch.randn(3, 4, device=DEV)
model(x).sum().backward()
opt.step()
""",
        [("opt", 3)],
    ),
    "optimizer of an agent": (
        """
class Agent:
    def __init__(self):
        self.net = nn.Linear(4, 2)
        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)
    def to(self, d):
        self.net.to(d)
        return self
agent = Agent().to(DEV)
""",
        [("agent.opt", 6)],
    ),
    "operator that does not fail": (
        """
a = torch.randn(3, 3)
b = torch.randn(3, 3, device=DEV)
c = a @ b
""",
        [("a", 3)],
    ),
    "layers in a list": (
        """
class Ens(nn.Module):
    def __init__(self):
        super().__init__()
        self.members = [nn.Linear(3, 1) for _ in range(3)]
        self.bias = nn.Parameter(torch.zeros(1))
    def forward(self, x):
        return sum(m(x) for m in self.members) + self.bias
ens = Ens().to(DEV)
""",
        [("ens.members", 4)],
    ),
    "batch inside a trainer": (
        """
class Tr:
    def __init__(self, model, crit):
        self.model, self.crit = model.to(DEV), crit
    def step(self, batch):
        x, y = batch
        return self.crit(self.model(x), y)
tr = Tr(nn.Linear(4, 3), nn.CrossEntropyLoss())
data = [(torch.randn(2, 4), torch.zeros(2, dtype=torch.long))]
for batch in data:
    loss = tr.step(batch)
""",
        [("batch[0]", 6)],
    ),
    "input of a convolution": (
        """
model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU()).to(DEV)
img = torch.randn(1, 3, 8, 8)
feat = model(img)
""",
        [("img", 3)],
    ),
    "compared labels": (
        """
preds = torch.randn(4, 3, device=DEV)
targets = torch.zeros(4, dtype=torch.long)
acc = (preds.argmax(1) == targets).float().mean()
""",
        [("targets", 3)],
    ),
    "numpy of an accelerator's tensor": (
        """
t = torch.randn(4, device=DEV)
arr = t.numpy()
""",
        [("t", 2)],
    ),
    "state kept by the module": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.h = None
    def forward(self, x):
        if self.h is None:
            self.h = torch.zeros(x.size(0), 4)
        self.h = torch.tanh(self.fc(x) + self.h)
        return self.h
net = Net()
with torch.no_grad():
    net(torch.randn(2, 4))
net.to(DEV)
y = net(torch.randn(2, 4, device=DEV))
""",
        [("net.h", 9)],
    ),
    "mask": (
        """
mask = torch.ones(2, 4, dtype=torch.bool)
x = torch.randn(2, 4, device=DEV)
y = x.masked_fill(mask, 0.0)
""",
        [("mask", 3)],
    ),
    "one of two modules in a dict": (
        """
mods = {"a": nn.Linear(2, 2).to(DEV), "b": nn.Linear(2, 2)}
x = torch.randn(1, 2, device=DEV)
y = mods["b"](mods["a"](x))
""",
        [("mods['b']", 3)],
    ),
    "attribute of a plain object": (
        """
class Meter:
    def __init__(self): self.total = torch.zeros(3)
    def add(self, x): self.total = self.total + x
m = Meter()
m.add(torch.ones(3, device=DEV))
""",
        [("m.total", 3)],
    ),
    "teacher left behind": (
        """
teacher = nn.Linear(4, 3)
student = nn.Linear(4, 3).to(DEV)
x = torch.randn(2, 4, device=DEV)
with torch.no_grad():
    t = teacher(x)
""",
        [("teacher", 5)],
    ),
    "prototypes": (
        """
lr = nn.Linear(4, 3).to(DEV)
proto = torch.randn(3, 3)
q = lr(torch.randn(2, 4, device=DEV))
d = torch.cdist(q, proto)
""",
        [("proto", 4)],
    ),
    "tensors in a dict attribute": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.stats = {"mean": torch.zeros(4), "std": torch.ones(4)}
    def forward(self, x):
        x = (x - self.stats["mean"]) / self.stats["std"]
        return self.fc(x)
net = Net().to(DEV)
""",
        [("net.stats", 5)],
    ),
    "schedule used by a method the cell calls": (
        """
class Diffusion(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.betas = torch.linspace(0, 1, 10)
    def noised(self, x, t):
        return x * self.betas[t].view(-1, 1)
    def forward(self, x):
        return self.fc(x)
net = Diffusion().to(DEV)
y = net.noised(torch.randn(2, 3, device=DEV), torch.tensor([1, 2]))
""",
        [("net.betas", 5)],
    ),
    "indices of an embedding": (
        """
idx = torch.tensor([0, 1])
emb = nn.Embedding(4, 3).to(DEV)
v = emb(idx)
""",
        [("idx", 3)],
    ),
}

CORRECT = {
    "table that is brought along after a function": """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.angles = torch.arange(4.0)
    def forward(self, x):
        turn = torch.sin(-self.angles).to(x.device)
        return self.mix(x) * turn
rotary = Rotary().to(DEV)
""",
    "table that only its shape is asked of": """
class Rotary(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(4, 4)
        self.angles = torch.arange(4.0)
    def forward(self, x):
        scale = float(torch.sin(self.angles).sum())
        return self.mix(x) * scale + self.angles.numel()
rotary = Rotary().to(DEV)
""",
    "head replaced before the move, and one moved by itself": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 9)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))
net, other = Net(), Net()
net.head = nn.Linear(4, 2)
net.to(DEV)
other = other.to(DEV)
other.head = nn.Linear(4, 2).to(DEV)
""",
    "head kept on the host by a forward pass that knows": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 9)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)).to(self.head.weight.device))
net = Net().to(DEV)
net.head = nn.Linear(4, 2)
""",
    "attribute that is moved where it is used": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)
    def forward(self, x):
        return self.fc(x) * self.scale.to(x.device)
net = Net().to(DEV)
""",
    "attribute that is made again on another device": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.mask = None
    def forward(self, x):
        if self.mask is None or self.mask.device != x.device:
            self.mask = torch.ones(4, device=x.device)
        return self.fc(x) * self.mask
net = Net()
with torch.no_grad(): net(torch.randn(1, 4))
net.to(DEV)
""",
    "attribute that only selects": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.perm = torch.randperm(4)
    def forward(self, x):
        return self.fc(x)[:, self.perm]
net = Net().to(DEV)
""",
    "attribute kept for a look": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.last = None
    def forward(self, x):
        y = self.fc(x)
        self.last = y.detach().cpu() if y.device.type != "meta" else torch.zeros(2, 4)
        return y
net = Net().to(DEV)
y = net(torch.randn(2, 4, device=DEV))
""",
    "data set on the host": """
from torch.utils.data import TensorDataset, DataLoader
ds = TensorDataset(torch.randn(8, 4), torch.randn(8, 1))
dl = DataLoader(ds, batch_size=4)
net = nn.Linear(4, 1).to(DEV)
for xb, yb in dl:
    xb, yb = xb.to(DEV), yb.to(DEV)
    loss = F.mse_loss(net(xb), yb)
""",
    "optimizer built after the move": """
model = nn.Linear(4, 2)
model.to(DEV)
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for _ in range(2):
    opt.zero_grad(); model(torch.randn(2, 4, device=DEV)).sum().backward(); opt.step()
""",
    "skeleton made under a device": """
with torch.device("meta"):
    skel = nn.Linear(100, 100)
real = nn.Linear(4, 4)
n = sum(p.numel() for p in skel.parameters())
y = real(torch.randn(2, 4))
""",
    "skeleton layers": """
skel = nn.Sequential(nn.Linear(4, 4, device="meta"), nn.ReLU())
w = nn.Linear(4, 4)
skel.load_state_dict({"0.weight": w.weight, "0.bias": w.bias}, assign=True)
""",
    "trainer with host buffers": """
class Tr:
    def __init__(self):
        self.model = nn.Linear(4, 2).to(DEV)
        self.history = []
        self.best = torch.zeros(3)
        self.buffer = torch.zeros(10, 4)
    def run(self, xs):
        for x in xs:
            out = self.model(x.to(DEV))
tr = Tr()
tr.run([torch.randn(2, 4)])
""",
    "loss used on the host": """
model = nn.Linear(4, 3).to(DEV)
metric = nn.CrossEntropyLoss(weight=torch.ones(3))
logits = torch.randn(2, 3); y = torch.zeros(2, dtype=torch.long)
val = metric(logits.cpu(), y)
""",
    "teacher that is only referred to": """
class Net(nn.Module):
    def __init__(self, teacher):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self._teacher = [teacher]
    def forward(self, x):
        return self.fc(x)
teacher = nn.Linear(4, 4)
net = Net(teacher).to(DEV)
""",
    "lengths of a batch": """
batch = {"x": torch.randn(4, 3).to(DEV), "y": torch.randn(4, 1).to(DEV)}
batch["lengths"] = torch.tensor([3, 2, 1, 1])
net = nn.Linear(3, 1).to(DEV)
loss = F.mse_loss(net(batch["x"]), batch["y"])
""",
    "replay memory": """
replay = [(torch.randn(4), 0, 1.0, torch.randn(4)) for _ in range(8)]
q = nn.Linear(4, 2).to(DEV)
states = torch.stack([r[0] for r in replay]).to(DEV)
qs = q(states)
""",
    "layers registered elsewhere too": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("pe", torch.randn(4, 4))
        self.fc = nn.Linear(4, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])
        self.order = [self.layers[1], self.layers[0]]
        self.anchor = torch.tensor(0.5)
    def forward(self, x):
        for l in self.order: x = l(x)
        return self.fc(x + self.pe) * self.anchor
net = Net().to(DEV)
y = net(torch.randn(4, 4, device=DEV))
""",
    "moved under another name": """
big = nn.Linear(4, 4)
x = torch.randn(2, 4)
y = big(x)
y_dev = y.to(DEV)
z = y_dev + 1
""",
    "rebound name": """
x = torch.randn(2, 4)
w = torch.randn(4, 4, device=DEV)
x = x.to(DEV)
y = x @ w
""",
    "module that moves its own attribute": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.scale = torch.ones(4)
    def _apply(self, fn, recurse=True):
        super()._apply(fn, recurse)
        self.scale = fn(self.scale)
        return self
    def forward(self, x): return self.fc(x) * self.scale
net = Net().to(DEV)
""",
    "error that was caught": """
try:
    z = torch.ones(3) + torch.ones(3, device=DEV)
except RuntimeError as e:
    z = None
ok = 1
""",
    "attribute that meets no other tensor": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.seen = torch.zeros(4)
    def forward(self, x): return self.fc(x)
    def summary(self): return self.seen.mean()
net = Net().to(DEV)
""",
    "layers that are moved in turns": """
class Offload(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = [nn.Linear(4, 4) for _ in range(2)]
        self.head = nn.Linear(4, 2)
    def forward(self, x):
        for b in self.blocks:
            b.to(x.device)
            x = b(x)
            b.to("cpu")
        return self.head(x)
m = Offload()
m.head.to(DEV)
""",
    "master weights": """
master = [p.detach().clone() for p in nn.Linear(3, 3).parameters()]
opt = torch.optim.SGD(master, lr=0.1)
net = nn.Linear(3, 3).to(DEV)
""",
    "pairs that are never combined": """
scores = torch.randn(5, device=DEV)
host = torch.randn(5)
ok = scores.shape == host.shape and scores.dtype == host.dtype
pair = (scores, host)
d = {"a": scores, "b": host}
torch.save(host, "/dev/null")
new = torch.zeros_like(host, device=DEV) + scores
""",
    "constant moved in a function": """
x = torch.randn(3, 4, device=DEV)
emb = nn.Linear(4, 2).to(DEV)
stats_mean = torch.zeros(4)
def norm(t):
    return (t - stats_mean.to(t.device))
y = emb(norm(x))
""",
    "constant of a schedule, read as a number": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 3)
        self.table = torch.ones(5)
        self.a, self.b = torch.ones(3), torch.ones(3)
    def forward(self, x, i=0):
        return self.fc(x) * float(self.table[i] * 2.0) * (self.a / self.b).sum().item()
    def report(self, factor):
        return self.a * factor
net = Net().to(DEV)
""",
    "cache by device": """
class Lazy(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 4)
        self.cache = {}
    def forward(self, x):
        key = x.device
        if key not in self.cache:
            self.cache[key] = torch.ones(4, device=key)
        return self.fc(x) * self.cache[key]
net = Lazy()
net(torch.randn(2, 4))
net.to(DEV)
""",
}

KEPT_BY_ONE_FIX = ("input of a loop", "numpy of an accelerator's tensor", "one of two modules in a dict")
"""Cells in which a second thing is wrong, or meta itself stops what an accelerator allows."""


def fixed(cell: str, **options: str) -> str:
    """Apply the first fix to a cell."""
    lines = cell.split("\n")
    finding = next(f for f in look(SETUP, cell, only=["off-device"], **options).findings if f.fix is not None)
    assert finding.line is not None
    assert finding.fix is not None
    old = lines[finding.line - 1]
    indent = old[: len(old) - len(old.lstrip())]
    lines[finding.line - 1] = "\n".join(indent + line for line in finding.fix.replacement.split("\n"))
    return "\n".join(lines)


@pytest.mark.parametrize(("cell", "expected"), MISPLACED.values(), ids=list(MISPLACED))
def test_what_is_misplaced_is_named(cell: str, expected: list[tuple[str, int | None]]) -> None:
    """The finding names what has to move, and the line."""
    assert flags(look(SETUP, cell.removeprefix("\n"), only=["off-device"]), "off-device") == expected


@pytest.mark.parametrize("name", [name for name in MISPLACED if name not in KEPT_BY_ONE_FIX])
def test_the_fix_makes_the_cell_quiet(name: str) -> None:
    """With the fix, nothing is misplaced any more."""
    cell = MISPLACED[name][0].removeprefix("\n")
    if any(f.fix is None for f in look(SETUP, cell, only=["off-device"]).findings):
        pytest.skip("the words say what to do")

    assert flags(look(SETUP, fixed(cell), only=["off-device"]), "off-device") == []


@pytest.mark.parametrize("cell", CORRECT.values(), ids=list(CORRECT))
def test_what_belongs_where_it_is_stays_silent(cell: str) -> None:
    """Nothing is said about correct code."""
    report = look(SETUP, cell.removeprefix("\n"), only=["off-device"])

    assert [str(finding) for finding in [*report.findings, *report.notes]] == []
    assert report.failures == ()


@pytest.mark.parametrize(
    ("line", "subject", "fix"),
    [
        ("y = x + torch.ones(3)", "torch.ones(3)", "y = x + torch.ones(3, device=DEV)"),
        ("y = F.mse_loss(x[0], made(3))", "made(3)", "y = F.mse_loss(x[0], made(3).to(DEV))"),
    ],
)
def test_a_tensor_made_on_the_failing_line(line: str, subject: str, fix: str) -> None:
    """What has no name is named by its text."""
    cell = f"def made(n):\n    return torch.ones(n)\nx = torch.randn(2, 3, device=DEV)\n{line}"
    report = look(SETUP, cell, only=["off-device"])

    assert [(f.subject, f.line, f.fix and f.fix.replacement) for f in report.findings] == [(subject, 4, fix)]


def test_optimizer_state_that_did_not_move() -> None:
    """Momentum on another device than its parameter is one finding, with the other buffers as consequences."""
    cell = """net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(torch.randn(4, 3)).sum().backward()
opt.step()
torch.__future__.set_swap_module_params_on_conversion(True)  # keep the parameters, as a move to cuda does
net.to(DEV)
torch.__future__.set_swap_module_params_on_conversion(False)
"""
    report = look(SETUP, cell, only=["off-device"])

    assert [(f.subject, f.line, f.consequences) for f in report.findings] == [
        ("opt.state[0]['momentum_buffer']", 6, ("opt.state[1]['momentum_buffer']",))
    ]


def test_state_that_is_offloaded_on_purpose() -> None:
    """A cell that moves the state of its optimizer itself knows where it is."""
    cell = """net = nn.Linear(3, 1).to(DEV)
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
net(torch.randn(4, 3, device=DEV)).sum().backward()
opt.step()
for state in opt.state.values():
    for name, value in state.items():
        state[name] = torch.zeros(value.shape).to("cpu")
"""

    assert flags(look(SETUP, cell, only=["off-device"]), "off-device") == []


def test_fake_tensors_say_which_device_they_stand_for() -> None:
    """Under fake tensors the accelerator is cuda, and torch's own words arrive."""
    cell = """from torch._subclasses.fake_tensor import FakeTensorMode
gpu = FakeTensorMode(allow_non_fake_inputs=True)
with gpu:
    x = torch.randn(3, 4, device="cuda")
w = torch.randn(4, 2)
with gpu:
    y = x @ w
"""
    report = look(SETUP, cell, only=["off-device"])

    assert [f.message for f in report.findings] == [
        "`w` is on cpu, and `x` is on cuda:0: this line needs them on one device; move `w`"
    ]


def test_the_device_that_was_asked_for() -> None:
    """With a device, every tensor off it is named by its variable; scalars, indices and data sets are not."""
    cell = """from torch.utils.data import TensorDataset
model = nn.Linear(4, 2)
x = torch.randn(3, 4)
scale, order = torch.tensor(2.0), torch.randperm(3)
there = torch.randn(3, 4, device=DEV)
data = TensorDataset(torch.randn(8, 4))
"""
    report = look(SETUP, cell, only=["off-device"], device="meta")

    assert flags(report, "off-device") == [("model", 2), ("x", 3)]
    assert [f.fix and f.fix.replacement for f in report.findings] == [
        'model = nn.Linear(4, 2).to("meta")',
        'x = torch.randn(3, 4).to("meta")',
    ]


def test_labels_are_wanted_where_the_model_is() -> None:
    """A vector of integers is left on the host when it selects or counts, not when it holds classes."""
    cell = """from torch.nn.utils.rnn import pack_padded_sequence
x = torch.randn(3, 4, device=DEV)
labels = torch.tensor([0, 1, 1])
lengths = torch.tensor([4, 2, 1])
rows = torch.tensor([2, 0])
packed = pack_padded_sequence(torch.ones(3, 4, 1, device=DEV), lengths, batch_first=True) if False else None
chosen = x[rows]
"""
    report = look(SETUP, cell, only=["off-device"], device="meta")

    assert flags(report, "off-device") == [("labels", 3)]


def test_an_error_that_is_about_something_else() -> None:
    """A message that merely speaks of devices is no evidence."""
    cell = "x = torch.randn(3)\nraise RuntimeError('the same device was used twice')"

    assert flags(look(SETUP, cell, only=["off-device"]), "off-device") == []


def test_a_lost_conversion_is_told_once() -> None:
    """Where the copy was dropped is the cause; the line that fails for it adds nothing."""
    cell = "net = nn.Linear(4, 2).to(DEV)\nx = torch.randn(3, 4)\nx.to(DEV)\ny = net(x)"
    report = look(SETUP, cell)

    assert [(f.rule, f.subject, f.line) for f in report.findings] == [("discarded-transfer", "x", 3)]


def test_a_fix_keeps_what_else_is_on_the_line() -> None:
    """Only the statement that keeps a plain attribute is rewritten."""
    cell = """
import torch
from torch import nn
class Net(nn.Module):
    def __init__(self):
        super().__init__(); self.table = torch.randn(5, 8); self.layer = nn.Linear(8, 8)
    def forward(self, x):
        return self.layer(x) @ self.table.T
net = Net().to("meta")
"""
    (finding,) = look(cell).findings

    assert finding.fix is not None
    assert finding.fix.replacement == (
        'super().__init__(); self.register_buffer("table", torch.randn(5, 8), persistent=False); '
        "self.layer = nn.Linear(8, 8)"
    )


HANDED_OVER = {
    "kept by a partial": (
        """from functools import partial
balance = torch.tensor([1.0, 2.0])
objective = partial(F.cross_entropy, weight=balance)
loss = objective(torch.randn(4, 2, device=DEV), torch.tensor([0, 1, 0, 1], device=DEV))""",
        ("balance", 4, None),
    ),
    "in a dict of keyword arguments": (
        """options = dict(weight=torch.tensor([1.0, 2.0]), reduction="sum")
out = torch.randn(4, 2, device=DEV)
loss = F.cross_entropy(out, torch.tensor([0, 1, 0, 1], device=DEV), **options)""",
        ("options['weight']", 3, None),
    ),
    "mapped over a list": (
        """layer = nn.Linear(3, 2).to(DEV)
rows = [torch.randn(4, 3), torch.randn(4, 3)]
outs = list(map(layer, rows))""",
        ("rows[0]", 3, None),
    ),
    "named where it is made": (
        """out = torch.randn(2, 3, device=DEV)
loss = F.mse_loss(out, target := torch.zeros(2, 3))""",
        ("target", 2, "loss = F.mse_loss(out, target := torch.zeros(2, 3).to(DEV))"),
    ),
    "beside what has no name": (
        """w = torch.ones(3)
z = (w * 2) + torch.zeros(3, device=DEV)""",
        ("w", 2, "z = (w.to(DEV) * 2) + torch.zeros(3, device=DEV)"),
    ),
}


@pytest.mark.parametrize(("cell", "expected"), HANDED_OVER.values(), ids=list(HANDED_OVER))
def test_what_the_failing_line_is_handed_otherwise(cell: str, expected: tuple[str, int, str | None]) -> None:
    """It is found where no path of the statement leads to it, and has a fix only where the line itself makes it."""
    (finding,) = look(SETUP, cell, only=["off-device"]).findings

    assert (finding.subject, finding.line, finding.fix and finding.fix.replacement) == expected
