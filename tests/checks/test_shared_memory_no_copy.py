"""shared-memory: what looks like a copy and is none, and what looks like one memory and is not."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SHARED = {
    "fromkeys return plain": (
        (
            """
def tally(keys):
    table = dict.fromkeys(keys, torch.zeros(3))
    for i, k in enumerate(keys):
        table[k][i] += 1
    return table
table = tally(["a", "b", "c"])
""",
        ),
        [("table", 3)],
    ),
    "fromkeys in object": (
        (
            """
class Meter:
    def __init__(self, names):
        self.sums = dict.fromkeys(names, torch.zeros(1))
    def add(self, name, v):
        self.sums[name] += v
meter = Meter(["loss", "acc"])
meter.add("loss", 1.0)
meter.add("acc", 5.0)
print(meter.sums)
""",
        ),
        [("meter.sums", 4)],
    ),
    "setdefault shared zero": (
        (
            """
zero = torch.zeros(2); sums = {}
for k in "abab":
    sums.setdefault(k, zero).add_(1)
print(sums["a"], sums["b"])
""",
        ),
        [("sums", 4)],
    ),
    "expand method": (
        (
            """
class Grid:
    def __init__(self, n):
        self.w = torch.zeros(1, 3).expand(n, 3)
    def bump(self, i):
        for j in range(3):
            self.w[i][j] += i
grid = Grid(4)
grid.bump(2)
""",
        ),
        [("grid.w", 4)],
    ),
    "expand view of expanded": (
        (
            """
base = torch.zeros(1, 3).expand(2, 3)
row = base[0]
row += 5
s = base.sum()
""",
        ),
        [("base", 2)],
    ),
    "shift names": (
        (
            """
x = torch.arange(6.0)
dst = x[1:]
src = x[:-1]
dst.copy_(src)
""",
        ),
        [("x", 5)],
    ),
    "shift narrow": (
        (
            """
buf = torch.arange(10.0)
buf.narrow(0, 1, 9).copy_(buf.narrow(0, 0, 9))
""",
        ),
        [("buf", 3)],
    ),
    "shift method": (
        (
            """
class Delay:
    def __init__(self, n):
        self.line = torch.arange(float(n))
    def push(self, v):
        keep = self.line[:-1]
        self.line[1:] = keep
        self.line[0] = v
d = Delay(5)
d.push(9.0)
""",
        ),
        [("d.line", 7)],
    ),
    "ema shadow object": (
        (
            """
class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow = model, decay, {}
        for name, p in model.named_parameters():
            self.shadow[name] = p.data
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name] = self.decay * self.shadow[name] + (1 - self.decay) * p.data
m = nn.Linear(2, 1)
ema = EMA(m, 0.9)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
m(torch.ones(3, 2)).mean().backward()
opt.step()
drift = sum((ema.shadow[n] - p).abs().sum() for n, p in m.named_parameters())
""",
        ),
        [("ema.shadow", 6)],
    ),
    "ema shadow inplace": (
        (
            """
class EMA:
    def __init__(self, model, decay):
        self.model, self.decay, self.shadow = model, decay, {}
        for name, p in model.named_parameters():
            self.shadow[name] = p.data
    def update(self):
        for name, p in self.model.named_parameters():
            self.shadow[name].mul_(self.decay).add_(p.data, alpha=1 - self.decay)
m = nn.Linear(2, 1)
ema = EMA(m, 0.9)
opt = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad()
    m(torch.ones(3, 2)).mean().backward()
    opt.step()
    ema.update()
""",
        ),
        [("ema.shadow", 6)],
    ),
    "copy copy obj": (
        (
            """
import copy
from dataclasses import dataclass
@dataclass
class State:
    pos: torch.Tensor
    t: int = 0
a = State(torch.zeros(2)); b = copy.copy(a)
b.pos += 1
gap = (a.pos - b.pos).abs().sum()
""",
        ),
        [("b.pos", 8)],
    ),
    "replace in method": (
        (
            """
from dataclasses import dataclass, replace
@dataclass
class State:
    pos: torch.Tensor
    t: int = 0
class Sim:
    def __init__(self): self.s = State(torch.zeros(2)); self.log = []
    def step(self):
        self.log.append(replace(self.s, t=self.s.t + 1))
        self.s.pos += 1.0
sim = Sim()
for _ in range(3):
    sim.step()
""",
        ),
        [("sim.log", 10)],
    ),
    "replace branch": (
        (
            """
from dataclasses import dataclass, replace
@dataclass
class State:
    pos: torch.Tensor
    t: int = 0
def advance(s, v):
    new = replace(s, t=s.t + 1)
    new.pos.add_(v)
    return new
s0 = State(torch.zeros(2))
s1 = advance(s0, 1.0)
s2 = advance(s1, 1.0)
moved = float((s2.pos - s0.pos).norm())
""",
        ),
        [("s1.pos", 8)],
    ),
    "dict copy in function": (
        (
            """
def augment(sample):
    out = dict(sample)
    out["x"] *= 2
    return out
sample = {"x": torch.ones(3), "y": 1}
aug = augment(sample)
diff = (aug["x"] - sample["x"]).abs().sum()
""",
        ),
        [("aug['x']", 3)],
    ),
    "list copy method": (
        (
            """
class Net:
    def __init__(self): self.w = [torch.zeros(2), torch.zeros(2)]
    def perturbed(self, e):
        w = list(self.w)
        for t in w: t += e
        return w
n = Net()
plus = n.perturbed(0.1)
minus = n.perturbed(-0.1)
g = [(a - b) / 0.2 for a, b in zip(plus, minus)]
""",
        ),
        [("plus[0]", 5)],
    ),
    "d copy attr": (
        (
            """
class Trainer:
    def __init__(self): self.stats = {"m": torch.zeros(2)}; self.prev = None
    def run(self):
        for i in range(3):
            self.prev = self.stats.copy()
            x = torch.full((2,), float(i))
            self.stats["m"] += x
t = Trainer()
t.run()
delta = t.stats["m"] - t.prev["m"]
""",
        ),
        [("t.prev['m']", 6)],
    ),
    "prev view closure": (
        (
            """
def make_solver(n):
    x = torch.zeros(n, 1); prev = None
    def step():
        nonlocal prev
        prev = x.view(-1)
        x.add_(1.0)
        return (x.view(-1) - prev).norm().item()
    return step
step = make_solver(3)
deltas = [step() for _ in range(3)]
""",
        ),
        [("step.__closure__[0].cell_contents", 6)],
    ),
    "prev in function local": (
        (
            """
def iterate(A, b, n):
    x = torch.zeros_like(b)
    for i in range(n):
        old = x
        x += 0.1 * (b - A @ x)
        if (x - old).norm() < 1e-9:
            break
    return x, old, i
x, old, i = iterate(torch.eye(2), torch.ones(2), 50)
""",
        ),
        [("old", 5)],
    ),
    "prev view method": (
        (
            """
class Jac:
    def __init__(self): self.x = torch.ones(4, 1); self.last = None
    def sweep(self):
        x = self.x
        self.last = x.flatten()
        x.mul_(0.5)
    def delta(self):
        return (self.x.flatten() - self.last).norm()
j = Jac()
j.sweep()
d = j.delta()
""",
        ),
        [("j.last", 6)],
    ),
    "numpy in dict": (
        (
            """
class Log:
    def __init__(self): self.rows = {}
    def keep(self, name, t):
        self.rows[name] = t.detach().numpy()
log = Log(); w = torch.zeros(2)
log.keep("start", w)
w += 1
log.keep("end", w)
change = log.rows["end"] - log.rows["start"]
""",
        ),
        [("log.rows", 5)],
    ),
    "best in train fn": (
        (
            """
def fit(model, opt, data):
    best, best_state = 1e9, None
    for x, y in data:
        loss = F.mse_loss(model(x), y)
        opt.zero_grad(); loss.backward(); opt.step()
        if loss.item() < best:
            best = loss.item()
            best_state = model.state_dict()
    return best_state
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
data = [(torch.randn(4, 2), torch.zeros(4, 1)) for _ in range(5)]
best_state = fit(model, opt, data)
model.load_state_dict(best_state)
""",
        ),
        [("best_state", 9)],
    ),
    "best callback": (
        (
            """
class Keep:
    best = None; score = 1e9
    def on_epoch_end(self, trainer, loss):
        if loss < self.score: self.score, self.best = loss, trainer.model.state_dict()
    def on_fit_end(self, trainer):
        trainer.model.load_state_dict(self.best)
class Trainer:
    def __init__(self, model, callbacks):
        self.model, self.callbacks = model, callbacks
        self.opt = torch.optim.Adam(model.parameters())
    def fit(self, data, epochs):
        for _ in range(epochs):
            for x, y in data:
                loss = F.mse_loss(self.model(x), y)
                self.opt.zero_grad(); loss.backward(); self.opt.step()
            for cb in self.callbacks:
                cb.on_epoch_end(self, loss.item())
        for cb in self.callbacks:
            cb.on_fit_end(self)
keep = Keep()
trainer = Trainer(nn.Linear(2, 1), [keep])
trainer.fit([(torch.ones(3, 2), torch.zeros(3, 1))], 3)
""",
        ),
        [("keep.best", 5)],
    ),
    "best setattr": (
        (
            """
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
class Run: pass
run = Run(); run.best = 1e9
for _ in range(3):
    loss = model(torch.ones(3, 2)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    if loss.item() < run.best:
        setattr(run, "weights", model.state_dict())
        run.best = loss.item()
model.load_state_dict(run.weights)
""",
        ),
        [("run.weights", 10)],
    ),
    "alias earlier cell noread": (
        (
            """
X = np.arange(6.0)
""",
            """
Y = X
Y[Y > 3] = 0
mean = Y.mean()
""",
        ),
        [("Y", 2)],
    ),
    "frombuffer": (
        (
            """
raw = bytearray(np.ones(4, dtype=np.float32).tobytes())
t = torch.frombuffer(raw, dtype=torch.float32)
t += 1
payload = bytes(raw)
""",
        ),
        [("t", 3)],
    ),
    "default arg": (
        (
            """
def accumulate(x, total=torch.zeros(2)):
    total += x
    return total
a = accumulate(torch.ones(2))
b = accumulate(torch.ones(2) * 10)
""",
        ),
        [("a", 2)],
    ),
    "dataclass default": (
        (
            """
from dataclasses import dataclass
@dataclass
class Acc:
    total: torch.Tensor = nn.Parameter(torch.zeros(2)).data
    def add(self, x):
        self.total += x
train, val = Acc(), Acc()
train.add(torch.ones(2))
val.add(torch.ones(2) * 5)
""",
        ),
        [("train.total", 5)],
    ),
    "class attr": (
        (
            """
class Acc:
    total = torch.zeros(2)
    def add(self, x):
        self.total += x
train, val = Acc(), Acc()
train.add(torch.ones(2))
val.add(torch.ones(2) * 5)
print(train.total, val.total)
""",
        ),
        [("train.total", 3)],
    ),
    "momentum checkpoint comp": (
        (
            """
m = nn.Linear(3, 1)
opt = torch.optim.Adam(m.parameters())
ck = {}
def save(step):
    ck.update(step=step, model={k: v.clone() for k, v in m.state_dict().items()},
              opt=opt.state_dict())
for step in range(4):
    opt.zero_grad()
    m(torch.ones(2, 3)).mean().backward()
    opt.step()
    if step == 1:
        save(step)
m.load_state_dict(ck["model"])
opt.load_state_dict(ck["opt"])
""",
        ),
        [("ck", 7)],
    ),
    "chained assign": (
        (
            """
train_hist = val_hist = torch.zeros(5)
for i in range(5):
    train_hist[i] = i
    val_hist[i] = -i
gap = train_hist - val_hist
""",
        ),
        [("train_hist", 2)],
    ),
    "walrus prev": (
        (
            """
x = torch.zeros(2)
for _ in range(5):
    x += 0.5 * (1 - (prev := x))
    if (x - prev).abs().max() < 1e-6:
        break
""",
        ),
        [("prev", 4)],
    ),
    "frombuffer object": (
        (
            """
class Packet:
    def __init__(self, data): self.data = bytearray(data)
    def floats(self):
        return torch.frombuffer(self.data, dtype=torch.float32)
p = Packet(np.ones(4, dtype=np.float32).tobytes()); t = p.floats()
t.div_(2)
checksum = sum(p.data)
""",
        ),
        [("t", 5)],
    ),
}

MEANT = {
    "fromkeys readonly": (
        """
zero = torch.zeros(2)
pads = dict.fromkeys("abc", zero)
batch = torch.stack([pads[k] + i for i, k in enumerate("abc")])
""",
    ),
    "fromkeys rebound": (
        """
def sums_of(rows, labels):
    sums = dict.fromkeys(set(labels), torch.zeros(2))
    for r, l in zip(rows, labels):
        sums[l] = sums[l] + r
    return sums
sums = sums_of(torch.ones(4, 2), "abab")
""",
    ),
    "fromkeys ints": (
        """
class M:
    def __init__(self, names): self.n = dict.fromkeys(names, 0)
    def add(self, k): self.n[k] += 1
m = M("ab"); m.add("a")
""",
    ),
    "expand clone": (
        """
def alibi(n):
    b = torch.zeros(n, n).expand(3, -1, -1).clone()
    for h in range(3):
        b[h] += h
    return b
b = alibi(2)
""",
    ),
    "expand rebound": (
        """
def alibi(n):
    b = torch.zeros(n, n).expand(3, -1, -1)
    b = b + torch.arange(3.0)[:, None, None]
    b[0] += 1
    return b
b = alibi(2)
mask = torch.ones(1, 4).expand(3, 4)
out = torch.randn(3, 4) * mask
""",
    ),
    "expand base filled": (
        """
base = torch.zeros(1, 3)
wide = base.expand(4, 3)
base.fill_(2.0)
out = wide.sum()
""",
    ),
    "shift clone": (
        """
def push(q, f):
    older, newer = q[:, 1:], q[:, :-1].clone()
    older.copy_(newer)
    q[:, 0] = f
q = torch.zeros(2, 5, 3)
push(q, torch.ones(2, 3))
r = torch.arange(6.0)
a, b = r[:3], r[3:]
a.copy_(b)
""",
    ),
    "prox clone": (
        """
class Client:
    def __init__(self, net):
        self.net = net
        self.anchor = [p.detach().clone() for p in net.parameters()]
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
    def train(self):
        prox = sum((p - a).pow(2).sum() for p, a in zip(self.net.parameters(), self.anchor))
        self.opt.zero_grad()
        (self.net(torch.ones(2, 2)).mean() + prox).backward()
        self.opt.step()
c = Client(nn.Linear(2, 1))
c.train()
""",
    ),
    "shared config objects": (
        """
from dataclasses import dataclass
@dataclass
class Cam:
    K: torch.Tensor
    pose: torch.Tensor
K = torch.eye(3)
K[0, 2] = 5
K[1, 2] = 5
cams = [Cam(K, torch.eye(4)) for _ in range(3)]
cams[0].pose[0, 3] = 1.0
proj = [c.K @ c.pose[:3, :3] for c in cams]
""",
    ),
    "evolution deepcopy": (
        """
import copy
class G:
    def __init__(self, g): self.genes = g
def mutate(p):
    c = copy.deepcopy(p)
    c.genes.add_(torch.randn(3))
    return c
def mutate2(p):
    c = copy.copy(p)
    c.genes = p.genes + torch.randn(3)
    c.genes.clamp_(-1, 1)
    return c
p = G(torch.zeros(3)); kids = [mutate(p) for _ in range(2)] + [mutate2(p) for _ in range(2)]
""",
    ),
    "solver clone": (
        """
class S:
    def __init__(self): self.x = torch.zeros(2); self.prev = None
    def sweep(self):
        self.prev = self.x.clone()
        self.x += 1
    def sweep2(self):
        self.prev = self.x
        self.x = self.x + 1
s = S(); s.sweep(); s.sweep2(); d = (s.x - s.prev).norm()
""",
    ),
    "alias short": (
        """
class Opt:
    def __init__(self, n): self.weights = torch.zeros(n)
    def step(self, g):
        w = self.weights
        w -= 0.1 * g
        return w.norm().item()
o = Opt(3)
for _ in range(2):
    n = o.step(torch.ones(3))
w = o.weights
w.clamp_(-1, 1)
""",
    ),
    "ema proper": (
        """
class EMA:
    def __init__(self, model):
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters()}; self.backup = {}
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(0.9).add_(p.detach(), alpha=0.1)
    def apply(self, model):
        for n, p in model.named_parameters():
            self.backup[n] = p.data
            p.data = self.shadow[n]
    def restore(self, model):
        for n, p in model.named_parameters():
            p.data = self.backup[n]
m = nn.Linear(2, 1); ema = EMA(m); opt = torch.optim.SGD(m.parameters(), lr=0.1)
for _ in range(3):
    opt.zero_grad(); m(torch.ones(2, 2)).mean().backward(); opt.step()
    ema.update(m)
ema.apply(m)
out = m(torch.ones(1, 2))
ema.restore(m)
""",
    ),
    "state dict in fn saved": (
        """
import io
def save(model, opt, path):
    ck = {"model": model.state_dict(), "opt": opt.state_dict()}
    torch.save(ck, path)
    return ck
m = nn.Linear(2, 1); opt = torch.optim.Adam(m.parameters())
for e in range(3):
    opt.zero_grad(); m(torch.ones(2, 2)).mean().backward(); opt.step()
    last = save(m, opt, io.BytesIO())
""",
    ),
    "dict copy rebinds": (
        """
def norm(s):
    s = dict(s)
    s["x"] = s["x"] / 2
    s["x"].clamp_(0, 1)
    return s
data = [{"x": torch.ones(2), "y": torch.zeros(1)} for _ in range(2)]
out = [norm(s) for s in data]
out[0]["x"] += 1
""",
    ),
    "frombuffer filled first": (
        """
raw = bytearray(np.ones(3, dtype=np.float32).tobytes())
t = torch.frombuffer(raw, dtype=torch.float32).clone()
t += 1
""",
    ),
    "default none": (
        """
def acc(x, total=None):
    total = torch.zeros(2) if total is None else total
    total += x
    return total
a = acc(torch.ones(2)); b = acc(torch.ones(2))
c = acc(torch.ones(2), acc(torch.zeros(2)))
""",
    ),
    "default arg readonly": (
        """
def norm(x, mean=torch.zeros(2), std=torch.ones(2)):
    y = x - mean
    y /= std
    return y
a = norm(torch.ones(2)); b = norm(torch.ones(2))
""",
    ),
    "class attr readonly": (
        """
class Vocab:
    table = torch.eye(4)
    def look(self, i): return self.table[i]
v, w = Vocab(), Vocab()
x = v.look(1).clone()
x += 1
""",
    ),
    "many names": (
        """
w = torch.ones(3)
t = {"w": w, "again": [w, (w, {"w": w})]}
net = nn.Linear(3, 1)
models = {"current": net, "best_so_far": net}
a = b = net
deep = w
for k in range(1500):
    deep = [deep] if k % 2 else {"down": deep}
""",
    ),
    "y is x written before": (
        """
X = torch.zeros(4)
X[0] = 1
Y = X
s = Y.sum()
""",
    ),
    "global step buffer": (
        """
from dataclasses import dataclass
@dataclass
class Env:
    obs: torch.Tensor
class Pool:
    def __init__(self, n): self.obs = torch.zeros(n, 2); self.envs = [Env(self.obs[i]) for i in range(n)]
    def step(self):
        for i, e in enumerate(self.envs):
            e.obs += i
        return self.obs.clone()
pool = Pool(3)
a = pool.step(); b = pool.step()
""",
    ),
    "shared between objects on purpose": (
        """
class Actor:
    def __init__(self, shared): self.shared = shared
    def run(self):
        self.shared += 1
counter = torch.zeros(1)
actors = [Actor(counter) for _ in range(3)]
for a in actors: a.run()
print(counter.item())
""",
    ),
    "own optimizer": (
        """
class SGD:
    def __init__(self, params, lr):
        self.params, self.lr = list(params), lr
    def step(self):
        for p in self.params:
            p.data -= self.lr * p.grad
W = torch.zeros(2, requires_grad=True); b = torch.zeros(1, requires_grad=True)
params = [W, b]
opt = SGD(params, 0.1)
for _ in range(3):
    loss = ((W.sum() + b - 1) ** 2).sum()
    loss.backward()
    opt.step()
print(params, W)
""",
    ),
    "object holds buffer": (
        """
class Writer:
    def __init__(self, buf): self.buf = buf; self.i = 0
    def push(self, v):
        self.buf[self.i] = v; self.i += 1
buf = torch.zeros(4)
w = Writer(buf)
for v in range(4): w.push(v)
print(buf)
""",
    ),
    "last of list": (
        """
class Roll:
    def __init__(self): self.states = [torch.zeros(2)]
    def step(self):
        last = self.states[-1]
        new = last + 1
        new.clamp_(max=5)
        self.states.append(new)
        self.last = new
r = Roll()
for _ in range(3): r.step()
d = r.last - r.states[0]
""",
    ),
    "prev assigned after": (
        """
class S:
    def __init__(self): self.x = torch.zeros(2); self.prev = torch.zeros(2)
    def sweep(self):
        self.prev.copy_(self.x)
        self.x += 1
        return (self.x - self.prev).norm()
s = S()
n = [s.sweep() for _ in range(3)]
""",
    ),
    "dict copy outofplace": (
        """
class T:
    def __init__(self): self.stats = {"m": torch.zeros(2)}; self.prev = None
    def run(self):
        for i in range(3):
            self.prev = self.stats.copy()
            self.stats["m"] = self.stats["m"] + i
t = T(); t.run(); d = t.stats["m"] - t.prev["m"]
""",
    ),
    "replace outofplace": (
        """
from dataclasses import dataclass, replace
@dataclass
class St:
    pos: torch.Tensor
    goal: torch.Tensor
    t: int = 0
s = St(torch.zeros(2), torch.ones(2))
hist = [s]
for _ in range(3):
    s = replace(s, pos=s.pos + 0.1, t=s.t + 1)
    s.pos.clamp_(0, 1)
    hist.append(s)
""",
    ),
    "config dict copy": (
        """
base = {"mean": torch.zeros(3), "std": torch.ones(3)}
base["std"] *= 2
runs = []
for lr in (0.1, 0.2):
    cfg = base.copy()
    cfg["lr"] = lr
    runs.append((torch.ones(3) - cfg["mean"]) / cfg["std"])
""",
    ),
    "nonlocal clone": (
        """
def make(n):
    x = torch.zeros(n); prev = None
    def step():
        nonlocal prev
        prev = x.clone()
        x.add_(1)
        return (x - prev).norm().item()
    return step
step = make(2)
v = [step() for _ in range(2)]
""",
    ),
    "earlier shorthand": (
        """
weights = torch.zeros(4)
""",
        """
w = weights
total = (w * 2).sum()
y = w + 1
y[0] = 3
""",
    ),
    "output buffer": (
        """
buffer = torch.empty(4)
""",
        """
out = buffer
torch.add(torch.ones(4), 1, out=out)
print(out)
""",
    ),
    "frombuffer fill": (
        """
raw = bytearray(16)
t = torch.frombuffer(raw, dtype=torch.float32)
t.copy_(torch.ones(4))
payload = bytes(raw)
""",
    ),
    "default scratch": (
        """
def norm(x, buf=torch.empty(3)):
    buf.copy_(x)
    return float(buf.sum())
a = norm(torch.ones(3)); b = norm(torch.zeros(3))
""",
    ),
    "class counter": (
        """
class Layer:
    calls = torch.zeros(1)
    def run(self): Layer.calls.add_(1)
a, b = Layer(), Layer(); a.run(); b.run()
print(Layer.calls)
""",
    ),
}


@pytest.mark.parametrize(("cells", "expected"), SHARED.values(), ids=SHARED)
def test_what_is_no_copy_is_named(cells: tuple[str, ...], expected: list[tuple[str, int]]) -> None:
    assert flags(look(COMMON, *cells), "shared-memory") == expected


@pytest.mark.parametrize("cells", MEANT.values(), ids=MEANT)
def test_what_is_a_copy_or_is_meant_is_left_alone(cells: tuple[str, ...]) -> None:
    assert flags(look(COMMON, *cells), "shared-memory") == []
