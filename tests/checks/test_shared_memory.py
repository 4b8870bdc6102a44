"""shared-memory: memory that two holders share and one writes is named; sharing that is meant is left alone."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = (
    COMMON
    + """
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
"""
)

SHARED = {
    "whole slice kept as a copy": (
        """
image, versions = np.zeros((2, 2)), []
versions.append(image[:])
image[0] = 1.0
""",
        [("versions[0]", 3)],
    ),
    "shapes changed by an assignment that reads them": (
        """
def clip(points, most):
    inside = points
    inside[:, 0] = inside[:, 0].clamp(max=most)
    return inside
cloud = torch.tensor([[5.0, 1.0], [0.0, 2.0]])
clipped = clip(cloud, 1.0)
lost = float(cloud.max())
""",
        [("clipped", 3)],
    ),
    "states drawn from a generator": (
        """
def walk(position, n):
    for _ in range(n):
        position += 1.0
        yield position
path = []
for where in walk(np.zeros(2), 3):
    path.append(where)
""",
        [("path", 8)],
    ),
    "two results in one out buffer": (
        """
room = np.empty(3)
views = {"up": np.add(np.ones(3), 1, out=room)}
views["down"] = np.subtract(np.ones(3), 1, out=room)
""",
        [("views", 3)],
    ),
    "shallow copy of a module": (
        """
import copy
net = nn.Linear(2, 1)
before = copy.copy(net)
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(3, 2)).sum().backward()
sgd.step()
change = (before.weight - net.weight).abs().sum()
""",
        [("before", 4)],
    ),
    "windows that overlap": (
        """
signal = np.arange(6, dtype=np.float32)
frames = torch.from_numpy(signal).as_strided((4, 3), (1, 1))
frames.mul_(torch.hann_window(3))
""",
        [("frames", 3)],
    ),
    "buffer that should hold a first value": (
        """
class Proximal(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("start", self.weight.data)
    def forward(self, x):
        return (x * self.weight).sum() + (self.weight - self.start).abs().sum()
net = Proximal()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    sgd.zero_grad()
    net(torch.ones(4)).backward()
    sgd.step()
""",
        [("net.start", 6)],
    ),
    "an optimizer state loaded for each trial": (
        """
adam = torch.optim.Adam(model.parameters())
def train(batches):
    for x, y in batches:
        adam.zero_grad()
        F.cross_entropy(model(x), y).backward()
        adam.step()
train(data)
saved = copy.deepcopy(adam.state_dict())
for trial in range(2):
    adam.load_state_dict(saved)
    train(data)
""",
        [("saved", 11)],
    ),
    "an array written by numpy through out=": (
        """
a = np.ones(5)
b = torch.from_numpy(a)
np.add(a, 1, out=a)
print(b)
""",
        [("b", 3)],
    ),
    "an array of a tensor that is written": (
        """
t = torch.ones(5)
n = t.numpy()
t.add_(1)
print(n)
""",
        [("n", 3)],
    ),
    "the best state of a loop": (
        """
best, best_state = 9e9, None
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    val = sum(F.cross_entropy(model(x), y).item() for x, y in data)
    if val < best:
        best = val
        best_state = model.state_dict()
model.load_state_dict(best_state)
""",
        [("best_state", 12)],
    ),
    "the best state in an early stopper": (
        """
class Stopper:
    def __init__(self):
        self.best = 1e9
        self.state = None
    def __call__(self, val, net):
        if val < self.best:
            self.best = val
            self.state = net.state_dict()
stopper = Stopper()
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    stopper(loss.item(), model)
""",
        [("stopper.state", 9)],
    ),
    "the best model": (
        """
best, best_model = 9e9, None
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    if loss.item() < best:
        best = loss.item()
        best_model = model
""",
        [("best_model", 11)],
    ),
    "a list of state dicts": (
        """
checkpoints = []
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    checkpoints.append(model.state_dict())
""",
        [("checkpoints", 8)],
    ),
    "a dict of checkpoints": (
        """
checkpoints = {}
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    checkpoints[epoch] = {"model": model.state_dict(), "epoch": epoch}
""",
        [("checkpoints", 8)],
    ),
    "the path of an optimised point": (
        """
x = torch.tensor([3.0, -2.0], requires_grad=True)
sgd = torch.optim.SGD([x], lr=0.1)
path = []
for _ in range(4):
    sgd.zero_grad()
    (x ** 2).sum().backward()
    sgd.step()
    path.append(x.detach())
""",
        [("path", 9)],
    ),
    "a trace of plain gradient descent": (
        """
w = torch.zeros(2, requires_grad=True)
trace = []
for _ in range(3):
    loss = ((w - 1) ** 2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        w.grad.zero_()
    trace.append(w.data)
""",
        [("trace", 10)],
    ),
    "gradients that add up": (
        """
w = torch.ones(2, requires_grad=True)
grads = []
for k in range(3):
    (w * k).sum().backward()
    grads.append(w.grad)
""",
        [("grads", 6)],
    ),
    "two gradients compared": (
        """
w = torch.ones(2, requires_grad=True)
(w * 2).sum().backward()
g1 = w.grad
(w * 3).sum().backward()
g2 = w.grad
print(g1 - g2)
""",
        [("g1", 4)],
    ),
    "one tensor under two keys": (
        """
totals = dict.fromkeys(["a", "b"], torch.zeros(2))
totals["a"] += 1
""",
        [("totals", 2)],
    ),
    "one list under two keys": (
        """
history = dict.fromkeys(["train", "val"], [])
for e in range(2):
    history["train"].append(torch.tensor(1.0))
    history["val"].append(torch.tensor(2.0))
""",
        [("history", 2)],
    ),
    "one list in three places": (
        """
buckets = [[]] * 3
for i, (x, y) in enumerate(data[:3]):
    buckets[i].append(x)
""",
        [("buckets", 2)],
    ),
    "two names unpacked from one tensor": (
        """
m, v = [torch.zeros(3)] * 2
m += 1
v.mul_(2)
""",
        [("m", 2)],
    ),
    "two names of one assignment": (
        """
m = v = torch.zeros(3)
m += 1
""",
        [("m", 2)],
    ),
    "two attributes of one assignment": (
        """
class Meter:
    def __init__(self):
        self.sum = self.count = torch.zeros(2)
    def update(self, v):
        self.sum += v
        self.count += 1
meter = Meter()
meter.update(torch.ones(2))
""",
        [("meter.sum", 4)],
    ),
    "a layer repeated in a module list": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(4, 4)] * 3)
    def forward(self, x):
        for l in self.layers:
            x = l(x)
        return x
net = Net()
out = net(torch.randn(2, 4))
""",
        [("net.layers", 5)],
    ),
    "a layer repeated by a comprehension": (
        """
block = nn.Linear(4, 4)
stack = nn.Sequential(*[block for _ in range(3)])
out = stack(torch.randn(2, 4))
""",
        [("stack", 3)],
    ),
    "a block repeated in a sequence": (
        """
net = nn.Sequential(*[nn.Linear(4, 4), nn.ReLU()] * 2)
out = net(torch.randn(2, 4))
""",
        [("net", 2)],
    ),
    "a teacher that is the student": (
        """
student = nn.Linear(5, 3)
teacher = student
sgd = torch.optim.SGD(student.parameters(), lr=0.1)
for x, y in data:
    sgd.zero_grad()
    F.mse_loss(student(x), teacher(x).detach()).backward()
    sgd.step()
""",
        [("teacher", 3)],
    ),
    "a convergence test against itself": (
        """
x = torch.rand(4)
while True:
    prev = x
    x.mul_(0.5)
    if (x - prev).abs().max() < 1e-3:
        break
""",
        [("prev", 4)],
    ),
    "a weight compared with its detached self": (
        """
w0 = model[0].weight.detach()
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
print((model[0].weight - w0).norm())
""",
        [("w0", 2)],
    ),
    "a list of the weights before": (
        """
before = [p.data for p in model.parameters()]
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
diff = sum((p - b).norm() for p, b in zip(model.parameters(), before))
""",
        [("before", 2)],
    ),
    "the parameters before and after": (
        """
before = list(model.parameters())
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
after = list(model.parameters())
diff = sum((a - b).norm() for a, b in zip(after, before))
""",
        [("before[0]", 2)],
    ),
    "a state kept around a training function": (
        """
def train(net, batches):
    sgd = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in batches:
        sgd.zero_grad()
        F.cross_entropy(net(x), y).backward()
        sgd.step()
start = model.state_dict()
train(model, data)
model.load_state_dict(start)
""",
        [("start", 8)],
    ),
    "a shallow copy of a dict": (
        """
params = {"w": torch.ones(2), "b": torch.zeros(1)}
backup = params.copy()
params["w"] -= 0.5
""",
        [("backup['w']", 3)],
    ),
    "a second name of a dict": (
        """
params = {"w": torch.ones(2), "b": torch.zeros(1)}
old = params
params["w"] -= 0.5
print(old["w"])
""",
        [("old['w']", 3)],
    ),
    "a shallow copy of an object": (
        """
class State:
    def __init__(self):
        self.pos = torch.zeros(3)
s = State()
saved = copy.copy(s)
s.pos += 1
""",
        [("saved.pos", 6)],
    ),
    "a shallow copy of a list": (
        """
bufs = [torch.zeros(2), torch.ones(2)]
snap = list(bufs)
bufs[0] += 5
""",
        [("snap[0]", 3)],
    ),
    "a slice taken for a copy": (
        """
a = np.arange(5.0)
b = a[:]
b[0] = 100
print(a)
""",
        [("b", 3)],
    ),
    "frames of a camera that reuses its array": (
        """
class Cam:
    def __init__(self):
        self.frame = np.zeros((2, 2))
    def read(self):
        self.frame[:] = np.random.rand(2, 2)
        return self.frame
cam = Cam()
frames = [cam.read() for _ in range(4)]
video = np.stack(frames)
""",
        [("frames", 7)],
    ),
    "transitions of one state array": (
        """
from collections import deque
state = np.zeros(3)
memory = deque(maxlen=10)
for t in range(5):
    action = t % 2
    old_state = state
    state += action
    memory.append((old_state, action, state))
""",
        [("memory", 9)],
    ),
    "transitions of an environment that returns its state": (
        """
class Replay:
    def __init__(self):
        self.items = []
    def push(self, *args):
        self.items.append(args)
class Env:
    def __init__(self):
        self.s = torch.zeros(2)
    def reset(self):
        self.s.zero_()
        return self.s
    def step(self, a):
        self.s += a
        return self.s, 1.0
env, replay = Env(), Replay()
s = env.reset()
for t in range(4):
    s2, r = env.step(t)
    replay.push(s, t, r, s2)
    s = s2
""",
        [("replay.items", 6)],
    ),
    "a shift that torch refuses": (
        """
hist = torch.arange(6.0)
hist[1:] = hist[:-1]
""",
        [("hist", 3)],
    ),
    "a shift by a width that is handed in": (
        """
def push(buf, x):
    n = x.shape[0]
    buf[:, n:] = buf[:, :-n]
    buf[:, :n] = x
    return buf
frames = torch.zeros(3, 8)
frames = push(frames, torch.ones(2))
""",
        [("frames", 4)],
    ),
    "a shift with copy_": (
        """
buf = torch.arange(12.0).view(3, 4).clone()
buf[:, 1:].copy_(buf[:, :-1])
""",
        [("buf", 3)],
    ),
    "a row of an expanded tensor": (
        """
m = torch.zeros(1, 3).expand(4, 3)
m[0] = 1
""",
        [("m", 2)],
    ),
    "an expanded tensor refused in a function": (
        """
def pad(x):
    m = torch.ones(1, 3).expand(4, 3)
    m += x
    return m
out = pad(torch.randn(4, 3))
""",
        [("m", 3)],
    ),
    "an expanded tensor refused by add_": (
        """
bias = torch.zeros(3)
rows = bias.expand(4, 3)
rows.add_(torch.randn(4, 3))
""",
        [("rows", 3)],
    ),
    "a function that normalises its argument": (
        """
def normalise(x):
    x -= x.mean()
    x /= x.std()
    return x
raw = torch.randn(10)
z = normalise(raw)
print(raw.mean())
""",
        [("z", 3)],
    ),
    "a data set that adds noise to its rows": (
        """
class DS(torch.utils.data.Dataset):
    def __init__(self, x):
        self.x = x
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        sample = self.x[i]
        sample += 0.1 * torch.randn(3)
        return sample
X = torch.zeros(5, 3)
ds = DS(X)
for epoch in range(2):
    for i in range(5):
        s = ds[i]
""",
        [("s", 8)],
    ),
    "a data set that masks its images": (
        """
class DS(torch.utils.data.Dataset):
    def __init__(self):
        self.x = torch.ones(5, 3, 3)
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        img = self.x[i]
        img[:2] = 0
        return img, i
ds = DS()
img, idx = ds[0]
loader = torch.utils.data.DataLoader(ds, batch_size=2)
for b, i in loader: pass
""",
        [("img", 8)],
    ),
    "a preparation step called twice": (
        """
def prep(img):
    t = torch.as_tensor(img)
    t /= 255
    return t
img = np.full((2, 2), 255.0)
t1 = prep(img)
t2 = prep(img)
""",
        [("t1", 3)],
    ),
    "a perturbed image that is the image": (
        """
images = torch.rand(4, 3)
adv = images.detach()
adv += 0.1
delta = (adv - images).abs().max()
""",
        [("adv", 3)],
    ),
    "a list of one model": (
        """
versions = []
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    versions.append(model)
""",
        [("versions", 8)],
    ),
    "a shuffled array under a tensor": (
        """
X = np.arange(12.0).reshape(4, 3)
t = torch.from_numpy(X)
np.random.shuffle(X)
""",
        [("t", 3)],
    ),
    "a write through a view of the tensor": (
        """
X = np.zeros((4, 3))
t = torch.from_numpy(X)
t.view(-1)[0] = 7
""",
        [("t", 3)],
    ),
    "a state moved to the CPU it is on": (
        """
best = {k: v.cpu() for k, v in model.state_dict().items()}
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
model.load_state_dict(best)
""",
        [("best", 2)],
    ),
    "a tensor as a default argument": (
        """
def acc(x, total=torch.zeros(2)):
    total += x
    return total
a = acc(torch.ones(2))
b = acc(torch.ones(2))
""",
        [("a", 2)],
    ),
    "results that are one output buffer": (
        """
out = torch.zeros(4)
results = []
for k in range(3):
    torch.mul(torch.ones(4), k, out=out)
    results.append({"k": k, "pred": out})
""",
        [("results", 6)],
    ),
    "an optimizer state kept for later": (
        """
adam = torch.optim.Adam(model.parameters())
saved = {"model": copy.deepcopy(model.state_dict()), "opt": adam.state_dict()}
for x, y in data:
    adam.zero_grad()
    F.cross_entropy(model(x), y).backward()
    adam.step()
saved2 = {"model": copy.deepcopy(model.state_dict()), "opt": adam.state_dict()}
for x, y in data:
    adam.zero_grad()
    F.cross_entropy(model(x), y).backward()
    adam.step()
adam.load_state_dict(saved2["opt"])
""",
        [("saved2", 8)],
    ),
    "the legacy constructor": (
        """
arr = np.arange(4, dtype=np.float32)
t = torch.Tensor(arr)
arr[0] = 99
print(t[0])
""",
        [("t", 3)],
    ),
    "a trajectory returned by a method": (
        """
class Sim:
    def __init__(self, n):
        self.x = torch.zeros(n)
    def run(self, steps):
        traj = []
        for _ in range(steps):
            self.x += 1
            traj.append(self.x)
        return traj
sim = Sim(2)
traj = sim.run(4)
stacked = torch.stack(traj)
""",
        [("traj", 9)],
    ),
    "hidden states in a dict": (
        """
hidden = torch.zeros(1, 4)
states = {}
for t in range(3):
    hidden.add_(1)
    states[t] = hidden
""",
        [("states", 6)],
    ),
    "observations in one array": (
        """
obs_buf = np.zeros((2, 3), dtype=np.float32)
def get_obs(t):
    obs_buf[:] = t
    return torch.from_numpy(obs_buf)
first = get_obs(1)
second = get_obs(2)
print((first - second).abs().sum())
""",
        [("first", 5)],
    ),
    "a buffer that is handed one state": (
        """
class Buffer:
    def __init__(self):
        self.data = []
    def add(self, s, a):
        self.data.append((s, a))
buf = Buffer()
s = np.zeros(2)
for i in range(3):
    s[i % 2] += 1
    buf.add(s, i)
""",
        [("buf.data", 6)],
    ),
    "layers repeated in a list": (
        """
layers = [nn.Linear(4, 4)] * 3
mlp = nn.Sequential(*layers)
print(sum(p.numel() for p in mlp.parameters()))
""",
        [("layers", 2)],
    ),
    "an array standardised through its tensor": (
        """
import numpy as np
data_np = np.random.rand(4, 3).astype(np.float32)
X = torch.as_tensor(data_np)
X.sub_(X.mean(0))
print(data_np.mean(0))
""",
        [("X", 4)],
    ),
    "two results of one function": (
        """
def make_views(x):
    a = x
    b = x
    a += 1
    return a, b
x = torch.zeros(3)
a, b = make_views(x)
""",
        [("a", 3)],
    ),
    "a target network that is the network": (
        """
q = nn.Linear(3, 2)
q_target = q
o = torch.optim.Adam(q.parameters())
for _ in range(3):
    target = q_target(torch.randn(4, 3)).max(1).values.detach()
    loss = F.mse_loss(q(torch.randn(4, 3)).max(1).values, target)
    o.zero_grad(); loss.backward(); o.step()
""",
        [("q_target", 3)],
    ),
    "a target encoder that is the encoder": (
        """
class BYOL(nn.Module):
    def __init__(self, enc):
        super().__init__()
        self.online = enc
        self.target = enc
        self.head = nn.Linear(3, 3)
byol = BYOL(nn.Linear(5, 3))
o = torch.optim.SGD(byol.parameters(), lr=0.1)
for x, _ in data:
    loss = F.mse_loss(byol.head(byol.online(x)), byol.target(x).detach())
    o.zero_grad(); loss.backward(); o.step()
""",
        [("byol.target", 6)],
    ),
    "a mask made by expand": (
        """
mask = torch.ones(1, 4).expand(3, 4)
mask[0, 1] = 0
""",
        [("mask", 2)],
    ),
    "an addition that torch refuses": (
        """
x = torch.arange(8.0)
x[2:] += x[:-2]
""",
        [("x", 3)],
    ),
    "a window shifted to the left": (
        """
window = torch.zeros(5, 2)
for t in range(3):
    window[:-1] = window[1:]
    window[-1] = t
""",
        [("window", 4)],
    ),
    "a shifted tensor over an array": (
        """
h = torch.from_numpy(np.zeros((3, 4)))
h[:, :-1] = h[:, 1:]
""",
        [("h", 3)],
    ),
    "a changed copy of a configuration": (
        """
config = {"mean": torch.zeros(3), "std": torch.ones(3)}
def scaled(cfg, k):
    new = dict(cfg)
    new["std"] *= k
    return new
big = scaled(config, 10)
""",
        [("big['std']", 4)],
    ),
    "a replaced field of a dataclass": (
        """
from dataclasses import dataclass, replace
@dataclass
class Particle:
    pos: torch.Tensor
    mass: float
p = Particle(torch.zeros(2), 1.0)
q = replace(p, mass=2.0)
q.pos += 1
""",
        [("q.pos", 8)],
    ),
    "annotations resized twice": (
        """
targets = [{"boxes": torch.ones(2, 4)} for _ in range(2)]
def resize(t, f):
    t["boxes"] *= f
    return t
resized = [resize(t, 0.5) for t in targets]
again = [resize(t, 0.5) for t in targets]
""",
        [("resized[0]['boxes']", 4)],
    ),
    "first weights kept in the module": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 3)
        self.init_w = self.fc.weight.data
net = Net()
o = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    o.zero_grad(); F.cross_entropy(net(x), y).backward(); o.step()
drift = (net.fc.weight - net.init_w).norm()
""",
        [("net.init_w", 6)],
    ),
    "snapshots of parameter lists": (
        """
snapshots = []
w = nn.Linear(2, 1)
o = torch.optim.SGD(w.parameters(), lr=0.1)
for _ in range(4):
    o.zero_grad()
    w(torch.ones(3, 2)).pow(2).mean().backward()
    o.step()
    snapshots.append([p.data for p in w.parameters()])
""",
        [("snapshots", 9)],
    ),
    "snapshots in numpy": (
        """
snapshots = {}
w = nn.Linear(2, 1)
o = torch.optim.SGD(w.parameters(), lr=0.1)
for e in range(4):
    o.zero_grad()
    w(torch.ones(3, 2)).pow(2).mean().backward()
    o.step()
    snapshots[e] = w.weight.detach().cpu().numpy()
""",
        [("snapshots", 9)],
    ),
    "states compared": (
        """
early = dict(model.state_dict())
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
late = dict(model.state_dict())
same = all(torch.equal(early[k], late[k]) for k in early)
""",
        [("early", 2)],
    ),
    "a proximal reference": (
        """
ref = [p.detach() for p in model.parameters()]
for x, y in data:
    opt.zero_grad()
    prox = sum(((p - r) ** 2).sum() for p, r in zip(model.parameters(), ref))
    (F.cross_entropy(model(x), y) + prox).backward()
    opt.step()
""",
        [("ref", 2)],
    ),
    "an image drawn after it was wrapped": (
        """
weights = {n: p.clone() for n, p in model.named_parameters()}
img = np.zeros((4, 4), dtype=np.uint8)
tens = torch.from_numpy(img)
dark = tens.sum()
img[1:3, 1:3] = 255
flipped = tens.flip(0)
""",
        [("tens", 4)],
    ),
    "an original that is clamped": (
        """
scores = torch.tensor([3.0, 1.0, 2.0])
original = scores
scores.clamp_(max=2)
print(original)
""",
        [("original", 3)],
    ),
    "an array sorted in place": (
        """
scores = torch.tensor([3.0, 1.0, 2.0])
arr = scores.numpy()
arr.sort()
""",
        [("arr", 3)],
    ),
    "pairs of one tensor": (
        """
a = torch.zeros(3)
pairs = [(a, i) for i in range(3)]
pairs[0][0].fill_(1)
""",
        [("pairs", 3)],
    ),
    "sums repeated in an object": (
        """
class Accum:
    def __init__(self, n):
        self.sums = [torch.zeros(2)] * n
    def add(self, i, v):
        self.sums[i] += v
acc = Accum(3)
for i in range(3):
    acc.add(i, torch.ones(2))
""",
        [("acc.sums", 4)],
    ),
    "rows of an expanded tensor": (
        """
rows = list(torch.zeros(1, 2).expand(3, 2))
rows[0] += 1
""",
        [("rows", 2)],
    ),
    "one tensor under two literal keys": (
        """
sync = torch.zeros(2)
d = {"train": sync, "val": sync}
d["train"] += 1
""",
        [("d", 3)],
    ),
    "frames of one array": (
        """
arr = np.zeros(3)
frames = []
for t in range(3):
    arr[t] = 1
    frames.append(torch.from_numpy(arr))
""",
        [("frames", 6)],
    ),
    "a state that its successor overwrites": (
        """
class Env:
    def __init__(self):
        self.state = np.zeros(2, dtype=np.float32)
    def reset(self):
        self.state[:] = 0
        return self.state
    def step(self, a):
        self.state += a
        return self.state, 1.0, False
env = Env()
state = env.reset()
for t in range(3):
    next_state, r, done = env.step(1)
    td = r + model[0].bias.sum().item() * (next_state - state).sum()
    state = next_state
""",
        [("state", 10)],
    ),
    "a view kept by name": (
        """
x = torch.ones(3)
y = x.view(3, 1)
y_before = y
x.zero_()
print(y_before)
""",
        [("y_before", 4)],
    ),
    "a bias before and after": (
        """
with torch.no_grad():
    old_bias = model[0].bias
    for p in model.parameters():
        p.add_(1.0)
    change = model[0].bias - old_bias
""",
        [("old_bias", 3)],
    ),
}

MEANT = {
    "whole slice of a list": """
image, versions = [torch.zeros(2), torch.ones(2)], []
versions.append(image[:])
image[0] = image[0] + 1.0
""",
    "generator that yields copies": """
def walk(position, n):
    for _ in range(n):
        position += 1.0
        yield position.copy()
path = list(walk(np.zeros(2), 3))
""",
    "generator whose values are used at once": """
def walk(position, n):
    for _ in range(n):
        position += 1.0
        yield position
lengths = [float(where.sum()) for where in walk(np.zeros(2), 3)]
""",
    "entry of a copied dict replaced": """
def scaled(cfg, k):
    new = dict(cfg)
    new["std"] = new["std"] * k
    return new
config = {"mean": torch.zeros(3), "std": torch.ones(3)}
big = scaled(config, 10)
""",
    "windows that are only read": """
signal = torch.arange(6.0)
frames = signal.unfold(0, 3, 1)
energy = (frames * torch.hann_window(3)).pow(2).sum(1)
""",
    "buffer with a copy of a weight": """
class Proximal(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("start", self.weight.detach().clone())
    def forward(self, x):
        return (x * self.weight).sum() + (self.weight - self.start).abs().sum()
net = Proximal()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.ones(4)).backward()
sgd.step()
""",
    "shallow copy for another mode": """
import copy
net = nn.Linear(2, 1)
probe = copy.copy(net)
probe.eval()
shown = probe(torch.ones(3, 2)).detach()
""",
    "an optimizer state, copied deeply and loaded": """
adam = torch.optim.Adam(model.parameters())
def train(batches):
    for x, y in batches:
        adam.zero_grad()
        F.cross_entropy(model(x), y).backward()
        adam.step()
train(data)
saved = copy.deepcopy(adam.state_dict())
train(data)
adam.load_state_dict(saved)
""",
    "training a classifier": """
losses = []
for epoch in range(2):
    running = 0.0
    for i, (x, y) in enumerate(data):
        opt.zero_grad()
        out = model(x)
        loss = F.cross_entropy(out, y)
        loss.backward()
        opt.step()
        running += loss.item()
    losses.append(running)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
""",
    "a GAN": """
G, D = nn.Linear(2, 5), nn.Linear(5, 1)
og, od = torch.optim.Adam(G.parameters()), torch.optim.Adam(D.parameters())
fixed_noise = torch.randn(4, 2)
img_list = []
for epoch in range(2):
    for x, _ in data:
        D.zero_grad()
        label = torch.full((4, 1), 1.0)
        errD = F.binary_cross_entropy_with_logits(D(x), label)
        errD.backward()
        fake = G(torch.randn(4, 2))
        label.fill_(0.0)
        errF = F.binary_cross_entropy_with_logits(D(fake.detach()), label)
        errF.backward()
        od.step()
        G.zero_grad()
        label.fill_(1.0)
        F.binary_cross_entropy_with_logits(D(fake), label).backward()
        og.step()
    with torch.no_grad():
        fake = G(fixed_noise).detach().cpu()
    img_list.append(fake)
for p in D.parameters():
    p.data.clamp_(-0.01, 0.01)
""",
    "DQN with a replay memory and soft updates": """
import random
from collections import deque, namedtuple
Transition = namedtuple("Transition", "state action next_state reward")
class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)
    def push(self, *args):
        self.memory.append(Transition(*args))
    def sample(self, n):
        return random.sample(self.memory, n)
    def __len__(self):
        return len(self.memory)
class Env:
    def reset(self):
        self.state = np.zeros(3, dtype=np.float32)
        return self.state
    def step(self, a):
        self.state = self.state + np.float32(a)
        return self.state, 1.0, False, {}
policy_net, target_net = nn.Linear(3, 2), nn.Linear(3, 2)
target_net.load_state_dict(policy_net.state_dict())
optimizer = torch.optim.AdamW(policy_net.parameters())
memory = ReplayMemory(100)
def optimize_model():
    if len(memory) < 4:
        return
    batch = Transition(*zip(*memory.sample(4)))
    s = torch.cat(batch.state)
    s2 = torch.cat(batch.next_state)
    q = policy_net(s).max(1).values
    with torch.no_grad():
        t = target_net(s2).max(1).values
    loss = F.smooth_l1_loss(q, t + 1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
env = Env()
for ep in range(2):
    state = env.reset()
    state = torch.tensor(state).unsqueeze(0)
    for t in range(6):
        action = random.randrange(2)
        obs, reward, done, _ = env.step(action)
        next_state = torch.from_numpy(obs).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state
        optimize_model()
        target_sd = target_net.state_dict()
        policy_sd = policy_net.state_dict()
        for key in policy_sd:
            target_sd[key] = policy_sd[key] * 0.005 + target_sd[key] * 0.995
        target_net.load_state_dict(target_sd)
""",
    "a target network that follows": """
target = copy.deepcopy(model)
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    for tp, p in zip(target.parameters(), model.parameters()):
        tp.data.copy_(0.01 * p.data + 0.99 * tp.data)
""",
    "a moving average written through its state dict": """
ema = copy.deepcopy(model)
ema_sd = ema.state_dict()
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    with torch.no_grad():
        for k, v in model.state_dict().items():
            ema_sd[k].mul_(0.9).add_(v, alpha=0.1)
""",
    "a moving average that is swapped in": """
class EMA:
    def __init__(self, net, decay):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in net.named_parameters()}
        self.backup = {}
    def update(self, net):
        for n, p in net.named_parameters():
            self.shadow[n] = self.decay * self.shadow[n] + (1 - self.decay) * p.data
    def apply(self, net):
        for n, p in net.named_parameters():
            self.backup[n] = p.data
            p.data = self.shadow[n]
    def restore(self, net):
        for n, p in net.named_parameters():
            p.data = self.backup[n]
        self.backup = {}
ema = EMA(model, 0.9)
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    ema.update(model)
ema.apply(model)
out = model(data[0][0])
ema.restore(model)
""",
    "Reptile": """
for task in range(3):
    before = copy.deepcopy(model.state_dict())
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    after = model.state_dict()
    model.load_state_dict({n: before[n] + (after[n] - before[n]) * 0.1 for n in before})
""",
    "MAML": """
params = {n: p for n, p in model.named_parameters()}
for it in range(2):
    meta = 0
    for x, y in data:
        loss = F.cross_entropy(torch.func.functional_call(model, params, (x,)), y)
        g = torch.autograd.grad(loss, list(params.values()), create_graph=True)
        fast = {n: p - 0.1 * gg for (n, p), gg in zip(params.items(), g)}
        meta = meta + F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
    opt.zero_grad()
    meta.backward()
    opt.step()
""",
    "a checkpoint that is saved at once": """
import io
for epoch in range(4):
    for x, y in data:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
    if epoch % 2 == 0:
        ckpt = {"model": model.state_dict(), "opt": opt.state_dict(), "epoch": epoch}
        f = io.BytesIO()
        torch.save(ckpt, f)
""",
    "a first checkpoint that is saved at once": """
import io
ckpt = {"model": model.state_dict()}
f = io.BytesIO()
torch.save(ckpt, f)
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
""",
    "the best state, cloned": """
best, best_state = 9e9, copy.deepcopy(model.state_dict())
for epoch in range(3):
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
    if loss.item() < best:
        best = loss.item()
        best_state = {k: v.clone() for k, v in model.state_dict().items()}
model.load_state_dict(best_state)
""",
    "the state after training": """
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
final_state = model.state_dict()
W = model[0].weight.detach().numpy()
best_model = model
""",
    "a view that is read in each pass": """
w = model[0].weight.data
norms = []
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    norms.append(w.norm().item())
""",
    "short names for what is written": """
w = model[0].weight.data
w.clamp_(-1, 1)
g = torch.zeros(3)
buf = {"a": g}
b = buf["a"]
b += 1
row = data[0][0][1]
row.mul_(2)
""",
    "a buffer that is filled in each pass": """
buf = np.zeros((4, 5), dtype=np.float32)
t = torch.from_numpy(buf)
outs = []
for k in range(3):
    buf[:] = np.random.rand(4, 5)
    outs.append(model(t).sum().item())
""",
    "a tensor made anew after each write": """
buf = np.zeros((4, 5), dtype=np.float32)
for k in range(3):
    buf[:] = np.random.rand(4, 5)
    t = torch.from_numpy(buf)
    out = model(t)
""",
    "an empty array that torch fills": """
out = np.empty((4, 3), dtype=np.float32)
view = torch.from_numpy(out)
view.copy_(torch.ones(4, 3))
print(out.sum())
""",
    "writes before the sharing": """
a = np.zeros(3)
a[0] = 1
a += 2
t = torch.from_numpy(a)
u = t * 2
""",
    "an array whose name goes to the tensor": """
img = np.ones((2, 2))
img = torch.from_numpy(img)
img /= 2
img.sub_(1)
""",
    "copies of arrays": """
a = np.ones(3)
t = torch.from_numpy(a.copy())
t += 1
n = t.numpy().copy()
t.zero_()
""",
    "a conversion that copies": """
a = np.ones(3)
t = torch.from_numpy(a).float()
t += 1
""",
    "transitions that are copied": """
class Env:
    def __init__(self):
        self.s = np.zeros(2)
    def step(self, a):
        self.s += a
        return self.s.copy()
env, mem = Env(), []
s = env.s.copy()
for t in range(5):
    s2 = env.step(t)
    mem.append((s, t, s2))
    s = s2
""",
    "rollout storage": """
class Rollout:
    def __init__(self, n):
        self.obs = torch.zeros(n + 1, 3)
        self.rew = torch.zeros(n)
        self.n, self.i = n, 0
    def insert(self, o, r):
        self.obs[self.i + 1].copy_(o)
        self.rew[self.i] = r
        self.i = (self.i + 1) % self.n
    def after_update(self):
        self.obs[0].copy_(self.obs[-1])
roll = Rollout(4)
for u in range(2):
    for t in range(4):
        obs = roll.obs[t]
        roll.insert(obs + 1, 1.0)
    batch = roll.obs[:-1].view(-1, 3)
    loss = model(torch.randn(4, 5)).sum() + batch.sum()
    opt.zero_grad(); loss.backward(); opt.step()
    roll.after_update()
""",
    "PPO": """
obs = torch.zeros((4, 2, 5))
dones = torch.zeros((4, 2))
next_obs, next_done = torch.zeros(2, 5), torch.zeros(2)
for update in range(3):
    for step in range(4):
        obs[step] = next_obs
        dones[step] = next_done
        next_obs = torch.Tensor(np.random.rand(2, 5).astype(np.float32))
        next_done = torch.Tensor(np.zeros(2, dtype=np.float32))
    b_obs = obs.reshape((-1, 5))
    b_inds = np.arange(8)
    for ep in range(2):
        np.random.shuffle(b_inds)
        for start in range(0, 8, 4):
            mb = b_inds[start:start + 4]
            loss = model(b_obs[mb]).sum()
            opt.zero_grad(); loss.backward(); opt.step()
""",
    "style transfer": """
content = torch.rand(1, 3, 8, 8)
cnn = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(inplace=True), nn.Conv2d(4, 4, 3)).eval()
class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()
    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x
seq = nn.Sequential()
losses = []
i = 0
for layer in cnn.children():
    if isinstance(layer, nn.ReLU):
        layer = nn.ReLU(inplace=False)
    seq.add_module(f"l{i}", layer)
    i += 1
    if isinstance(layer, nn.Conv2d):
        target = seq(content).detach()
        cl = ContentLoss(target)
        seq.add_module(f"c{i}", cl)
        losses.append(cl)
input_img = content.clone()
input_img.requires_grad_(True)
lb = torch.optim.LBFGS([input_img])
def closure():
    with torch.no_grad():
        input_img.clamp_(0, 1)
    lb.zero_grad()
    seq(input_img)
    l = sum(c.loss for c in losses)
    l.backward()
    return l
lb.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
""",
    "tied weights": """
class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(7, 4)
        self.out = nn.Linear(4, 7, bias=False)
        self.out.weight = self.emb.weight
    def forward(self, x):
        return self.out(self.emb(x))
lm = LM()
o = torch.optim.SGD(lm.parameters(), lr=0.1)
for _ in range(3):
    o.zero_grad()
    lm(torch.tensor([1, 2])).sum().backward()
    o.step()
params = [lm.emb.weight, lm.out.weight]
""",
    "a layer that is shared by name": """
shared = nn.Linear(4, 4)
net = nn.Sequential(shared, nn.ReLU(), shared)
o = torch.optim.SGD(net.parameters(), lr=0.1)
net(torch.randn(2, 4)).sum().backward()
o.step()
""",
    "a table that two agents share": """
class Agent:
    def __init__(self, q):
        self.q = q
    def learn(self, s):
        self.q[s] += 1
q = torch.zeros(5)
agents = [Agent(q) for _ in range(2)]
for t in range(4):
    agents[t % 2].learn(t)
""",
    "a data set that edits a clone": """
class DS(torch.utils.data.Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        x = self.x[i].clone()
        x -= 0.5
        return x, self.y[i]
X, Y = torch.randn(6, 3), torch.arange(6)
X -= X.mean(0)
X /= X.std(0)
ds = DS(X, Y)
loader = torch.utils.data.DataLoader(ds, batch_size=2)
for xb, yb in loader:
    xb.mul_(2)
a, b = ds[0], ds[1]
""",
    "a data set that computes anew": """
class DS(torch.utils.data.Dataset):
    def __init__(self):
        self.x = np.ones((6, 3), dtype=np.float32)
    def __getitem__(self, i):
        x = self.x[i]
        x = x * 2
        x -= 0.5
        return torch.from_numpy(x)
ds = DS()
a, b = ds[0], ds[0]
""",
    "momentum by hand": """
params = [torch.zeros(3, requires_grad=True), torch.ones(2, requires_grad=True)]
vel = [torch.zeros_like(p) for p in params]
for it in range(3):
    loss = sum((p ** 2).sum() for p in params)
    grads = torch.autograd.grad(loss, params)
    with torch.no_grad():
        for p, v, g in zip(params, vel, grads):
            v.mul_(0.9).add_(g)
            p -= 0.1 * v
""",
    "shifts that do not overlap, and rows copied in a loop": """
buf = torch.arange(8.0).view(2, 4)
buf = torch.roll(buf, 1, 1)
buf[:, 0] = 5
buf2 = torch.zeros(2, 6)
buf2[:, 2:4] = buf2[:, :2]
buf2[:, :-2] = buf2[:, 2:].clone()
arr = np.arange(6.0)
arr[1:] = arr[:-1]
rows = torch.zeros(4, 3)
for i in range(3):
    rows[i + 1] = rows[i]
""",
    "an expanded tensor that is only read": """
bias = torch.zeros(3)
rows = bias.expand(4, 3)
out = rows + torch.randn(4, 3)
full = bias.expand(4, 3).clone()
full[0] = 1
rep = bias.repeat(4, 1)
rep += 1
bias += 1
""",
    "two buffers that change places": """
cur, nxt = torch.zeros(4), torch.zeros(4)
for t in range(5):
    torch.add(cur, 1, out=nxt)
    cur, nxt = nxt, cur
""",
    "a convergence test against a clone": """
x = torch.rand(4)
for _ in range(5):
    prev = x.clone()
    x.mul_(0.5)
    delta = (x - prev).abs().max()
prev = x
x = x + 1
""",
    "a live view of a board": """
class Board:
    def __init__(self):
        self.cells = np.zeros((3, 3), dtype=int)
    def play(self, i, j):
        self.cells[i, j] = 1
class View:
    def __init__(self, board):
        self.cells = board.cells
board = Board()
view = View(board)
board.play(0, 0)
board.play(1, 1)
col = board.cells[:, 0]
full = (col != 0).all()
""",
    "truncated backpropagation through time": """
rnn = nn.LSTM(3, 4)
o = torch.optim.SGD(rnn.parameters(), lr=0.1)
h = (torch.zeros(1, 2, 4), torch.zeros(1, 2, 4))
outs = []
for seg in torch.randn(3, 5, 2, 3):
    h = tuple(v.detach() for v in h)
    out, h = rnn(seg, h)
    o.zero_grad(); out.sum().backward(); o.step()
    outs.append(out.detach())
""",
    "gradient accumulation": """
opt.zero_grad()
grads = None
for i, (x, y) in enumerate(data):
    (F.cross_entropy(model(x), y) / 2).backward()
    if (i + 1) % 2 == 0:
        opt.step()
        opt.zero_grad()
total = torch.zeros(3)
for x, y in data:
    with torch.no_grad():
        total += model(x).sum(0)
""",
    "gradients scaled through a list": """
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    grads = [p.grad for p in model.parameters()]
    norm = torch.stack([g.norm() for g in grads]).norm()
    for g in grads:
        g.mul_(0.5)
    opt.step()
""",
    "a confusion matrix": """
conf = torch.zeros(3, 3)
hist = {"conf": [], "acc": []}
for x, y in data:
    p = model(x).argmax(1)
    for a, b in zip(y, p):
        conf[a, b] += 1
    hist["conf"].append(conf.clone())
    hist["acc"].append(conf.trace() / conf.sum())
""",
    "a buffer that a module keeps": """
class RunningNorm(nn.Module):
    def __init__(self, mean):
        super().__init__()
        self.register_buffer("mean", mean)
    def forward(self, x):
        self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
        return x - self.mean
m0 = torch.zeros(5)
norm = RunningNorm(m0)
for x, y in data:
    norm(x)
""",
    "transfer learning": """
backbone = nn.Linear(5, 4)
for p in backbone.parameters():
    p.requires_grad = False
clf = nn.Sequential(backbone, nn.Linear(4, 3))
o = torch.optim.SGD([p for p in clf.parameters() if p.requires_grad], lr=0.1)
old_fc = clf[1]
for x, y in data:
    o.zero_grad(); F.cross_entropy(clf(x), y).backward(); o.step()
trainable = [p for p in clf.parameters() if p.requires_grad]
""",
    "mixed precision": """
scaler = torch.amp.GradScaler("cpu")
for x, y in data:
    opt.zero_grad()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(x), y)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    scaler.step(opt)
    scaler.update()
""",
    "a transformer with masks": """
mask = torch.triu(torch.full((5, 5), float("-inf")), 1)
pe = torch.zeros(5, 8)
pos = torch.arange(5).unsqueeze(1)
div = torch.exp(torch.arange(0, 8, 2) * -0.5)
pe[:, 0::2] = torch.sin(pos * div)
pe[:, 1::2] = torch.cos(pos * div)
pe2 = pe.unsqueeze(0)
enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, batch_first=True), 2)
out = enc(torch.randn(2, 5, 8) + pe2, mask=mask)
tgt = torch.zeros(2, 6)
tgt_in, tgt_out = tgt[:, :-1], tgt[:, 1:]
""",
    "views": """
x = torch.rand(4, 6)
flat = x.view(-1)
x.clamp_(0.1, 0.9)
a, b = x[:2], x[2:]
first = x[0]
y = x.t()
""",
    "a trainer": """
class Trainer:
    def __init__(self, net, data):
        self.net, self.data = net, data
        self.opt = torch.optim.Adam(net.parameters())
        self.history = []
    def fit(self):
        for x, y in self.data:
            self.opt.zero_grad()
            loss = F.cross_entropy(self.net(x), y)
            loss.backward()
            self.opt.step()
            self.history.append(loss.detach())
        return self
trainer = Trainer(model, data).fit()
best = min(trainer.history)
""",
    "a learning rate schedule": """
sched = torch.optim.lr_scheduler.StepLR(opt, 1)
lrs = []
for e in range(2):
    for x, y in data:
        opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
    sched.step()
    lrs.append(sched.get_last_lr()[0])
""",
    "activations of the last batch": """
acts = {}
def hook(name):
    def fn(m, i, o):
        acts[name] = o.detach()
    return fn
for n, m in model.named_modules():
    m.register_forward_hook(hook(n))
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
""",
    "an environment with a new state each step": """
class Env:
    def __init__(self):
        self.pos = np.zeros(2)
    def step(self, a):
        self.pos = self.pos + a
        return {"pos": self.pos}
env = Env()
o1 = env.step(1)
o2 = env.step(2)
d = o2["pos"] - o1["pos"]
""",
    "stochastic weight averaging": """
swa = torch.optim.swa_utils.AveragedModel(model)
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
    swa.update_parameters(model)
""",
    "repeated values that nobody writes": """
acts = [nn.ReLU()] * 3
drops = [nn.Dropout(0.1)] * 2
zeros = [torch.zeros(2)] * 3
total = sum(zeros)
mean_std = ([0.5] * 3, [0.5] * 3)
""",
    "an attack": """
images = torch.rand(4, 5)
adv = images.clone().detach().requires_grad_(True)
for _ in range(3):
    loss = model(adv).sum()
    g, = torch.autograd.grad(loss, adv)
    adv = adv.detach() + 0.01 * g.sign()
    adv = torch.max(torch.min(adv, images + 0.1), images - 0.1).clamp_(0, 1).requires_grad_(True)
""",
    "a perturbation": """
delta = torch.zeros(4, 5, requires_grad=True)
x, y = data[0]
for _ in range(3):
    F.cross_entropy(model(x + delta), y).backward()
    delta.data = (delta + 0.1 * delta.grad.sign()).clamp(-0.3, 0.3)
    delta.grad.zero_()
adv = x + delta.detach()
""",
    "k-means": """
X = torch.randn(20, 2)
centers = X[:3].clone()
for it in range(5):
    assign = torch.cdist(X, centers).argmin(1)
    old = centers.clone()
    for k in range(3):
        if (assign == k).any():
            centers[k] = X[assign == k].mean(0)
    if torch.allclose(old, centers):
        break
""",
    "a relaxation": """
u = torch.zeros(6, 6)
u[0] = 1
for _ in range(5):
    new = u.clone()
    new[1:-1, 1:-1] = (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) / 4
    u = new
""",
    "parts of an array": """
X = np.random.rand(6, 3).astype(np.float32)
X_train, X_val = X[:4], X[4:]
mean = X_train.mean(0)
X_train = X_train - mean
train_t = torch.from_numpy(X_train)
val_t = torch.from_numpy(X_val)
""",
    "an array standardised first": """
X = np.random.rand(6, 3).astype(np.float32)
X -= X.mean(0)
X /= X.std(0)
t = torch.from_numpy(X)
y = t.sum(1)
idx = np.arange(6)
np.random.shuffle(idx)
xb = t[idx[:3]]
""",
    "a checkpoint file of the best epoch": """
def evaluate(net, batches):
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in batches:
            correct += (net(x).argmax(1) == y).sum().item()
    return correct
best = 0
for epoch in range(2):
    for x, y in data:
        opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
    acc = evaluate(model, data)
    if acc > best:
        best = acc
        torch.save(model.state_dict(), "/tmp/x.pt")
""",
    "an image drawn, then wrapped": """
img = np.zeros((4, 4, 3), dtype=np.float32)
img[1:3] = 1
t = torch.from_numpy(img).permute(2, 0, 1)
t = (t - 0.5) / 0.5
batch = t.unsqueeze(0)
""",
    "a meter": """
class Meter:
    def __init__(self):
        self.total = torch.zeros(3)
        self.n = 0
    def update(self, v):
        self.total += v
        self.n += 1
    def compute(self):
        return self.total / self.n
m = Meter()
hist = []
for x, y in data:
    m.update(model(x).mean(0).detach())
    hist.append(m.compute())
""",
    "two parts standardised in place": """
x = torch.randn(6, 3)
train, val = x[:4], x[4:]
train -= train.mean(0)
val -= val.mean(0)
""",
    "rows of a pool": """
pool = torch.zeros(4, 3)
slots = [pool[i] for i in range(4)]
for i, s in enumerate(slots):
    s.fill_(i)
total = pool.sum()
""",
    "noise drawn anew": """
noise = torch.empty(4, 5)
for x, y in data:
    noise.normal_()
    out = model(x + noise)
""",
    "an optimizer state that is only read": """
opt_state = opt.state_dict()
lr = opt_state["param_groups"][0]["lr"]
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
""",
    "parameter groups": """
param_groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 0.01}]
sgd = torch.optim.SGD(param_groups, lr=0.1, momentum=0.9)
params = list(model.parameters())
for x, y in data:
    sgd.zero_grad(); F.cross_entropy(model(x), y).backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    sgd.step()
print(sum(p.norm() for p in params))
""",
    "two models compared": """
model2 = copy.deepcopy(model)
model2.load_state_dict(model.state_dict())
o2 = torch.optim.SGD(model2.parameters(), lr=0.1)
for x, y in data:
    o2.zero_grad(); F.cross_entropy(model2(x), y).backward(); o2.step()
sd1, sd2 = model.state_dict(), model2.state_dict()
diff = sum((sd1[k] - sd2[k]).abs().sum() for k in sd1)
""",
    "an average of weights": """
sd = model.state_dict()
avg = {k: torch.zeros_like(v) for k, v in sd.items()}
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
    for k, v in model.state_dict().items():
        avg[k] += v / len(data)
""",
    "federated averaging": """
global_model = nn.Linear(5, 3)
clients = []
for c in range(2):
    local = copy.deepcopy(global_model)
    o = torch.optim.SGD(local.parameters(), lr=0.1)
    for x, y in data:
        o.zero_grad(); F.cross_entropy(local(x), y).backward(); o.step()
    clients.append(local.state_dict())
new = {k: torch.stack([c[k] for c in clients]).mean(0) for k in clients[0]}
global_model.load_state_dict(new)
""",
    "a ring buffer": """
buf = torch.zeros(10, 3)
ptr = 0
for t in range(12):
    buf[ptr % 10] = torch.randn(3)
    ptr += 1
sample = buf[torch.randint(0, 10, (4,))]
last = buf[(ptr - 1) % 10]
""",
    "gradients looked at": """
x = torch.randn(4, 3, requires_grad=True)
y = x * 2
y_np = y.detach().numpy()
loss = y.sum()
loss.backward()
g = x.grad
g_np = x.grad.numpy()
x.grad.zero_()
""",
    "embeddings looked at before and after": """
emb = nn.Embedding(6, 3)
W = emb.weight.detach()
nearest = (W @ W[0]).argsort()
o = torch.optim.SGD(emb.parameters(), lr=0.1)
for _ in range(3):
    o.zero_grad(); emb(torch.tensor([1, 2])).sum().backward(); o.step()
W = emb.weight.detach()
nearest = (W @ W[0]).argsort()
""",
    "a symmetric matrix": """
A = np.random.rand(5, 5)
B = A.T
A += A.T.copy()
A /= 2
t = torch.from_numpy(A)
v, w = torch.linalg.eigh(t)
""",
    "repeated values that are stacked": """
z = torch.zeros(3)
a = [z] * 2
b = torch.stack(a)
b += 1
""",
    "rows of their own": """
grid = [[0] * 3 for _ in range(3)]
grid[0][0] = 1
rows = [[]  for _ in range(3)]
rows[0].append(torch.ones(1))
idx = [[0, 1]] * 2
names = [None] * 3
names[0] = torch.ones(2)
names[1] = torch.zeros(2)
""",
    "a cache": """
class Cache:
    def __init__(self, x):
        self.x = x
        self.store = {}
    def __getitem__(self, i):
        if i not in self.store:
            self.store[i] = self.x[i] * 2
        return self.store[i]
c = Cache(torch.randn(4, 3))
a, b = c[0], c[0]
""",
    "a counter in a data set": """
class Count:
    def __init__(self, x):
        self.x, self.hits = x, torch.zeros(4)
    def __getitem__(self, i):
        self.hits[i] += 1
        return self.x[i]
c = Count(torch.randn(4, 3))
a, b = c[0], c[1]
""",
    "initialisation": """
def init_weights(m):
    if isinstance(m, nn.Linear):
        nn.init.xavier_uniform_(m.weight)
        m.bias.data.fill_(0.01)
model.apply(init_weights)
w = model[0].weight
nn.init.zeros_(model[0].bias)
b = model[0].bias
""",
    "masks and picked rows": """
x = torch.rand(3, 4)
mask = x > 0.5
y = x.masked_fill(mask, 0)
x[mask] = 0
z = x[mask]
sel = x[[0, 1]]
sel += 1
""",
    "an output buffer that is read at once": """
out = torch.zeros(4)
for k in range(3):
    torch.mul(torch.ones(4), k, out=out)
    result = out.sum().item()
final = out
""",
    "a student and a teacher": """
student, teacher = nn.Linear(5, 3), nn.Linear(5, 3)
teacher.load_state_dict(student.state_dict())
o = torch.optim.SGD(student.parameters(), lr=0.1)
for x, y in data:
    with torch.no_grad():
        t = teacher(x)
    o.zero_grad(); F.mse_loss(student(x), t).backward(); o.step()
    with torch.no_grad():
        for ps, pt in zip(student.parameters(), teacher.parameters()):
            pt.mul_(0.99).add_(ps, alpha=0.01)
""",
    "arithmetic that makes new values": """
t = torch.arange(6)
n = t.numpy()
t = t + 1
n = n * 2
lst = t.tolist()
copy_np = np.array(t)
copy_np += 1
""",
    "the best output": """
best = None
for x, y in data:
    out = model(x).detach()
    score = out.max().item()
    if best is None or score > best[0]:
        best = (score, out)
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
""",
    "a matrix written through its diagonal": """
A = torch.zeros(3, 3)
diag = A.diagonal()
diag.fill_(1)
A[0] += 1
flat = A.view(-1)
flat[::4] = 2
""",
    "a gradient handed to two nodes": """
class Node:
    def __init__(self, v):
        self.v = v
        self.grad = torch.zeros_like(v)
    def accumulate(self, g):
        self.grad += g
a, b = Node(torch.ones(2)), Node(torch.ones(2))
shared = torch.ones(2)
a.accumulate(shared)
b.accumulate(shared)
""",
    "a rolled stack of frames": """
frames = torch.zeros(4, 8, 8)
stack = torch.zeros(4, 8, 8)
for t in range(5):
    frame = torch.rand(8, 8)
    stack = torch.roll(stack, -1, 0)
    stack[-1] = frame
obs = stack.clone()
stack[-1] = 0
""",
    "batches changed in place": """
ds = torch.utils.data.TensorDataset(torch.randn(6, 5), torch.zeros(6, dtype=torch.long))
loader = torch.utils.data.DataLoader(ds, batch_size=3)
for x, y in loader:
    x += 0.1 * torch.randn_like(x)
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
""",
    "velocities looked up by parameter": """
velocity = {p: torch.zeros_like(p) for p in model.parameters()}
for x, y in data:
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    with torch.no_grad():
        for p in model.parameters():
            v = velocity[p]
            v.mul_(0.9).add_(p.grad)
            p -= 0.1 * v
""",
    "names bound to new values": """
target = torch.zeros(3)
current = target
current = current + 1
best = current
current = current * 0.5
""",
    "a closure that clones": """
x = torch.zeros(3, requires_grad=True)
o = torch.optim.LBFGS([x])
xs = []
def closure():
    o.zero_grad()
    l = ((x - 1) ** 2).sum()
    l.backward()
    xs.append(x.detach().clone())
    return l
o.step(closure)
""",
    "an actor and a critic": """
actor, critic = nn.Linear(5, 2), nn.Linear(5, 1)
oa = torch.optim.Adam(actor.parameters())
logps, vals = [], []
obs = torch.randn(5)
for t in range(4):
    d = torch.distributions.Categorical(logits=actor(obs))
    a = d.sample()
    logps.append(d.log_prob(a)); vals.append(critic(obs))
    obs = torch.randn(5)
old_logps = torch.stack(logps).detach()
for ep in range(2):
    dist = torch.distributions.Categorical(logits=actor(torch.randn(4, 5)))
    ratio = (dist.log_prob(a) - old_logps).exp()
    oa.zero_grad(); ratio.mean().backward(); oa.step()
""",
    "copies of an array": """
x = np.linspace(0, 1, 5)
xt = torch.from_numpy(x)
y = xt.clone()
y[0] = 5
x2 = x.copy()
x2[0] = 7
view = x[1:]
""",
    "plain second names of a model": """
sched_model = model
trainee = model
for x, y in data:
    opt.zero_grad(); F.cross_entropy(trainee(x), y).backward(); opt.step()
final_model = trainee
trained_model = model
""",
    "a method of the same name on another object": """
class Vector:
    def step(self):
        done = np.zeros(2, dtype=np.float32)
        done[1] = 1.0
        return np.ones(2), done
environment = Vector()
for _ in range(2):
    seen, done = environment.step()
    ended = torch.Tensor(done)
    opt.step()
rest = 1 - ended
""",
    "two names of a weight, taken before and after training": """
live = model[0].weight
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
norm = live.norm()
first = model[0]
w, b = first.weight, first.bias
smallest = w.min()
""",
    "a checkpoint saved before training goes on": """
import io
buffer = io.BytesIO()
checkpoint = {"model": model.state_dict(), "epoch": 3}
torch.save(checkpoint, buffer)
for x, y in data:
    opt.zero_grad(); F.cross_entropy(model(x), y).backward(); opt.step()
renamed = {"body." + k: v for k, v in model.state_dict().items()}
""",
    "an observation that each pass of a loop takes anew and copies": """
class Room:
    def __init__(self): self.state = np.zeros(3)
    def step(self, k):
        self.state[:] = k
        return self.state
room, seen = Room(), []
for k in range(3):
    now = room.step(k)
    seen.append(now.copy())
for k in range(3):
    nxt = room.step(k)
    seen.append(nxt.copy())
""",
}


@pytest.mark.parametrize(("cell", "found"), SHARED.values(), ids=SHARED)
def test_what_is_shared_and_written_is_found(cell, found):
    """The rule names the holder that changed unseen, and the line that made the sharing."""
    assert flags(look(SETUP, cell), "shared-memory") == found


@pytest.mark.parametrize("cell", MEANT.values(), ids=MEANT)
def test_what_is_meant_is_left_alone(cell):
    """Sharing that nobody writes, or that is there to be written through, is not spoken of."""
    assert flags(look(SETUP, cell), "shared-memory") == []


@pytest.mark.parametrize("cell", [cell for cell, _ in SHARED.values()], ids=SHARED)
def test_the_fix_makes_the_cell_quiet(cell):
    """Every fix runs in the place of its line, and leaves nothing of its finding."""
    for finding in look(SETUP, cell).findings:
        if finding.rule == "shared-memory" and finding.fix is not None:
            lines = cell.split("\n")
            old = lines[finding.line - 1]
            margin = old[: len(old) - len(old.lstrip())]
            lines[finding.line - 1] = "\n".join(margin + line for line in finding.fix.replacement.split("\n"))
            repaired = look(SETUP, "\n".join(lines))
            assert finding.subject not in [subject for subject, _ in flags(repaired, "shared-memory")]


def test_unwritten_memory_of_an_array_is_a_note():
    """What nobody writes is said once, below the warnings."""
    report = look(SETUP, "\nfeatures = np.ones((3, 2))\nX = torch.from_numpy(features)\nrows = list(X)\n")

    assert flags(report, "shared-memory") == []
    assert [(note.subject, note.others) for note in report.notes] == [("X", ("features",))]


def test_a_note_does_not_hide_a_warning():
    """Of two tensors in one list, the one that was written is a warning all the same."""
    cell = "\na, b = np.ones(2), np.ones(2)\nts = [torch.from_numpy(a), torch.from_numpy(b)]\nb += 1\nprint(ts[1])\n"

    assert flags(look(SETUP, cell), "shared-memory") == [("ts[1]", 3)]


TRAINING = """
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
"""


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ("best = model.state_dict()\n", [("best", 5)]),
        ("initial_state = {k: v.detach() for k, v in model.state_dict().items()}\n", [("initial_state", 5)]),
        ("best = copy.deepcopy(model.state_dict())\n", []),
        ("weights = model.state_dict()\n", []),
        ("checkpoint = {'model': model.state_dict(), 'epoch': 3}\n", []),
    ],
)
def test_weights_kept_by_an_earlier_cell(kept, found):
    """What an earlier cell put aside under the name of something from before is watched while this one trains."""
    assert flags(look(SETUP, kept, TRAINING), "shared-memory") == found


def test_zeros_that_are_filled_before_anybody_looks():
    """A buffer that is made empty, wrapped and then filled is meant to be seen through both names."""
    cell = (
        "\nframes = np.zeros((4, 3), dtype=np.float32)\nview = torch.from_numpy(frames)\n"
        "for i in range(4):\n    frames[i] = i\ntotal = view.sum()\n"
    )

    assert flags(look(SETUP, cell), "shared-memory") == []


PARAMETERS_SCALED = """
params = list(model.parameters())
with torch.no_grad():
    for p in params:
        p.mul_(0.99)
"""


@pytest.mark.parametrize(
    ("looked_at", "found"), [("", []), ("print(kept['0.bias'])\n", [("kept", 5)])], ids=["never again", "afterwards"]
)
def test_a_parameter_is_never_the_copy(looked_at, found):
    """Where an array shares memory with a parameter, the array is what should have been copied."""
    kept = "kept = {n: p.detach().numpy() for n, p in model.named_parameters()}\n"

    assert flags(look(SETUP, kept, PARAMETERS_SCALED + looked_at), "shared-memory") == found


def test_values_that_json_has_no_word_for_are_texts() -> None:
    """What the other side contains can be written down, compared and read again."""
    report = look(COMMON + "a = torch.tensor([float('nan'), 1.0])\n", "e = a\ne[1] = 2\n", only=["shared-memory"])

    assert [f.evidence["first_values"] for f in report.findings] == [["nan", 2.0]]
