"""shared-memory: one memory handed out again and again, and stored data that its readers edit, whoever calls them."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

AGAIN = {
    "collate sorts boxes in helper": (
        """
def to_unit(sample, size):
    sample["boxes"] /= size
    return sample
def collate(batch):
    batch = [to_unit(s, 100.0) for s in batch]
    return torch.stack([s["boxes"] for s in batch])
store = [{"boxes": torch.rand(2, 4) * 100} for _ in range(4)]
loader = torch.utils.data.DataLoader(store, batch_size=2, collate_fn=collate)
for epoch in range(2):
    for boxes in loader:
        mean = boxes.mean().item()
""",
        [("store[0]['boxes']", 2)],
    ),
    "collate tuple items": (
        """
class Clips(torch.utils.data.Dataset):
    def __init__(self):
        self.items = [(torch.ones(3) * i, i) for i in range(4)]
    def __len__(self):
        return len(self.items)
    def __getitem__(self, i):
        return self.items[i]
def collate(batch):
    xs, ys = [], []
    for x, y in batch:
        x -= x.mean()
        x.mul_(0.5)
        xs.append(x)
        ys.append(y)
    return torch.stack(xs), torch.tensor(ys)
clips = Clips()
loader = torch.utils.data.DataLoader(clips, batch_size=2, collate_fn=collate)
for epoch in range(2):
    for xb, yb in loader:
        s = xb.sum().item()
""",
        [("clips.items[0][0]", 11)],
    ),
    "dataset getitem through loader": (
        """
class Noisy(torch.utils.data.Dataset):
    def __init__(self, n):
        self.images = torch.rand(n, 2, 2)
    def __len__(self):
        return len(self.images)
    def __getitem__(self, i):
        img = self.images[i]
        img += 0.1
        return img
noisy = Noisy(6)
loader = torch.utils.data.DataLoader(noisy, batch_size=2)
means = []
for epoch in range(3):
    for b in loader:
        means.append(b.mean().item())
""",
        [("noisy.images", 7)],
    ),
    "dataset getitem helper numpy": (
        """
def normalise(img):
    img -= img.mean()
    img /= img.std() + 1e-6
    return img
class Arr(torch.utils.data.Dataset):
    def __init__(self, arrays):
        self.arrays = arrays
    def __len__(self):
        return len(self.arrays)
    def __getitem__(self, i):
        return torch.from_numpy(normalise(self.arrays[i]))
raw = [np.random.rand(4).astype(np.float32) for _ in range(4)]
ds = Arr(raw)
for epoch in range(2):
    for x in torch.utils.data.DataLoader(ds, batch_size=2):
        total = x.sum().item()
""",
        [("ds.arrays[0]", 2)],
    ),
    "lambda transform": (
        """
class DS(torch.utils.data.Dataset):
    def __init__(self, data, transform):
        self.data, self.transform = data, transform
    def __len__(self):
        return len(self.data)
    def __getitem__(self, i):
        return self.transform(self.data[i])
images = torch.ones(4, 3)
ds = DS(images, transform=lambda t: t.sub_(0.5).div_(0.5))
batches = [b for b in torch.utils.data.DataLoader(ds, batch_size=2) for _ in range(1)]
again = torch.stack([ds[i] for i in range(4)])
""",
        [("ds.data", 9)],
    ),
    "generator one buffer to list()": (
        """
def windows(n):
    buf = np.zeros(3)
    for i in range(n):
        buf[:] = i
        yield buf
rows = list(windows(3))
spread = float(rows[0][0] - rows[2][0])
""",
        [("rows", 6)],
    ),
    "generator class __next__": (
        """
class Reader:
    def __init__(self, n):
        self.n, self.i, self.buf = n, 0, torch.zeros(2)
    def __iter__(self):
        return self
    def __next__(self):
        if self.i >= self.n:
            raise StopIteration
        self.buf.fill_(self.i)
        self.i += 1
        return self.buf
frames = []
for f in Reader(3):
    frames.append(f)
diff = (frames[0] - frames[2]).abs().sum().item()
""",
        [("frames", 14)],
    ),
    "dataclass records": (
        """
from dataclasses import dataclass
@dataclass
class Record:
    t: int
    pos: torch.Tensor
class Sim:
    def __init__(self):
        self.pos = torch.zeros(2)
        self.log = []
    def advance(self):
        self.pos += 0.5
    def record(self, t):
        self.log.append(Record(t, self.pos))
sim = Sim()
for t in range(4):
    sim.advance()
    sim.record(t)
xs = [r.pos[0].item() for r in sim.log]
""",
        [("sim.log", 13)],
    ),
    "observer callback list": (
        """
class Solver:
    def __init__(self, callbacks):
        self.x = torch.ones(3)
        self.callbacks = callbacks
    def run(self, n):
        for k in range(n):
            self.x.mul_(0.5)
            for cb in self.callbacks:
                cb(k, self.x)
class Recorder:
    def __init__(self):
        self.by_step = {}
    def __call__(self, k, x):
        self.by_step[k] = x
rec = Recorder()
Solver([rec]).run(4)
first = rec.by_step[0].sum().item()
""",
        [("rec.by_step", 14)],
    ),
    "callback lambda dict": (
        """
def integrate(y, on_step, n=3):
    for k in range(n):
        y += 1.0
        on_step(k, y)
    return y
seen = {}
integrate(np.zeros(2), on_step=lambda k, y: seen.update({k: y}))
gap = seen[2][0] - seen[0][0]
""",
        [("seen", 7)],
    ),
    "while loop walrus": (
        """
class Src:
    def __init__(self): self.b, self.k = torch.zeros(2), 0
    def read(self):
        self.k += 1
        self.b.fill_(self.k)
        return self.b if self.k < 4 else None
src = Src()
chunks = []
while (c := src.read()) is not None:
    chunks.append(c)
total = sum(c.sum().item() for c in chunks)
""",
        [("chunks", 10)],
    ),
    "partial callback": (
        """
from functools import partial
def keep(store, x):
    store.append(x)
def run(x, hook):
    for _ in range(3):
        x.add_(1)
        hook(x)
store = []
run(torch.zeros(2), partial(keep, store))
d = (store[0] - store[-1]).abs().sum().item()
""",
        [("store", 3)],
    ),
    "callback function closure": (
        """
def minimise(x, callback, n=3):
    for k in range(n):
        x -= 0.1 * x
        callback(x)
    return x
path = []
final = minimise(torch.ones(2), path.append)
steps = [p.norm().item() for p in path]
""",
        [("path", 4)],
    ),
    "map over batches": (
        """
buf = torch.zeros(2)
def scaled(x):
    torch.mul(x, 2.0, out=buf)
    return buf
outs = list(map(scaled, torch.arange(6.0).view(3, 2)))
d = (outs[0] - outs[2]).abs().sum().item()
""",
        [("outs", 5)],
    ),
    "iterable dataset": (
        """
class Stream(torch.utils.data.IterableDataset):
    def __init__(self, data): self.data = data
    def __iter__(self):
        for row in self.data:
            row.mul_(0.5)
            yield row
data = torch.ones(4, 2)
stream = Stream(data)
for epoch in range(2):
    for row in stream:
        v = row.sum().item()
left = data.mean().item()
""",
        [("stream.data", 5)],
    ),
    "deque of frames": (
        """
from collections import deque
frames = deque(maxlen=3)
screen = torch.zeros(2, 2)
def render(t):
    screen.zero_()
    screen[t % 2, 0] = 1.0
    return screen
for t in range(5):
    frames.append(render(t))
stacked = torch.stack(tuple(frames))
""",
        [("frames", 9)],
    ),
    "records class with init": (
        """
class Step:
    def __init__(self, t, x):
        self.t = t
        self.x = x
class Tracker:
    def __init__(self):
        self.steps = []
    def on_step(self, t, x):
        self.steps.append(Step(t, x))
def simulate(n, tracker):
    x = torch.zeros(3)
    v = torch.ones(3)
    for t in range(n):
        x.add_(v, alpha=0.1)
        tracker.on_step(t, x)
tracker = Tracker()
simulate(5, tracker)
travelled = (tracker.steps[-1].x - tracker.steps[0].x).norm().item()
""",
        [("tracker.steps", 9)],
    ),
    "list comprehension in method, in place step": (
        """
class Chain:
    def __init__(self, n):
        self.theta = torch.zeros(n)
    def step(self):
        self.theta += torch.ones_like(self.theta)
        return self.theta
    def sample(self, n):
        return [self.step() for _ in range(n)]
draws = Chain(2).sample(5)
spread = torch.stack(draws).std().item()
""",
        [("draws", 6)],
    ),
    "sum list extend generator": (
        """
def positions(n):
    p = np.zeros(2)
    for k in range(n):
        p += 1
        yield p
visited = []
visited.extend(positions(4))
dist = np.linalg.norm(visited[-1] - visited[0])
""",
        [("visited", 7)],
    ),
    "callable collate object": (
        """
class Collate:
    def __init__(self, mean):
        self.mean = mean
    def __call__(self, batch):
        for x, y in batch:
            x -= self.mean
        return torch.stack([x for x, _ in batch]), torch.tensor([y for _, y in batch])
pairs = [(torch.ones(3) * k, k) for k in range(4)]
for epoch in range(2):
    for xb, yb in torch.utils.data.DataLoader(pairs, batch_size=2, collate_fn=Collate(0.5)):
        m = xb.mean().item()
""",
        [("pairs[0][0]", 6)],
    ),
    "subset wrapper getitem": (
        """
class Base(torch.utils.data.Dataset):
    def __init__(self):
        self.x = [torch.rand(3) * 255 for _ in range(6)]
    def __len__(self):
        return len(self.x)
    def __getitem__(self, i):
        img = self.x[i]
        return img.div_(255)
base = Base()
train, val = torch.utils.data.random_split(base, [4, 2])
for epoch in range(2):
    for xb in torch.utils.data.DataLoader(train, batch_size=2):
        m = xb.mean().item()
""",
        [("base.x[1]", 7)],
    ),
    "compose transforms list": (
        """
class Compose:
    def __init__(self, fns):
        self.fns = fns
    def __call__(self, x):
        for f in self.fns:
            x = f(x)
        return x
def centre(x):
    x -= x.mean()
    return x
class DS(torch.utils.data.Dataset):
    def __init__(self, xs, tf):
        self.xs, self.tf = xs, tf
    def __len__(self):
        return len(self.xs)
    def __getitem__(self, i):
        return self.tf(self.xs[i])
xs = [torch.arange(3.0) + k for k in range(4)]
ds = DS(xs, Compose([centre, torch.relu]))
outs = [ds[i] for i in range(4)]
means = [float(x.mean()) for x in xs]
""",
        [("ds.xs[0]", 9)],
    ),
}

MEANT = {
    "collate clones": """
def collate(batch):
    out = []
    for item in batch:
        k = item["k"].clone()
        k /= 2
        out.append(k)
    return {"k": out}
samples = [{"k": torch.ones(2) * i} for i in range(4)]
loader = torch.utils.data.DataLoader(samples, batch_size=2, collate_fn=collate)
for epoch in range(2):
    for batch in loader:
        m = torch.stack(batch["k"]).mean().item()
""",
    "collate edits fresh items": """
class DS(torch.utils.data.Dataset):
    def __init__(self): self.x = torch.rand(4, 3)
    def __len__(self): return 4
    def __getitem__(self, i): return {"x": self.x[i] * 2, "y": i}
def collate(batch):
    for b in batch:
        b["x"] /= 2
    return torch.stack([b["x"] for b in batch])
ds = DS()
for x in torch.utils.data.DataLoader(ds, batch_size=2, collate_fn=collate):
    m = x.mean().item()
""",
    "frames stacked at once": """
def frames(n):
    buf = torch.zeros(2)
    for i in range(n):
        buf.fill_(i)
        yield buf
video = torch.stack([f.clone() for f in frames(3)])
total = 0.0
for f in frames(3):
    total += f.sum().item()
means = [f.mean().item() for f in frames(3)]
""",
    "writers share one workspace": """
class Workspace:
    def __init__(self, n):
        self.flat = torch.zeros(n)
        self.parts = {"a": self.flat[:2], "b": self.flat[2:]}
    def reset(self):
        self.flat.zero_()
    def add(self, name, v):
        self.parts[name].add_(v)
ws = Workspace(4)
for k in range(3):
    ws.reset(); ws.add("a", 1.0); ws.add("b", 2.0)
s = ws.flat.sum().item()
""",
    "callback reads only": """
def run(x, cb):
    for k in range(3):
        x.add_(1)
        cb(k, x)
seen = {}
run(torch.zeros(2), lambda k, x: seen.update({k: x.sum().item()}))
copies = []
run(torch.zeros(2), lambda k, x: copies.append(x.clone()))
norm = []
def cb(k, x): norm.append(float(x.norm()))
run(torch.zeros(2), cb)
""",
    "shared config tensor in every record": """
weights = torch.ones(3)
weights /= weights.sum()
records = []
for k in range(4):
    x = torch.randn(3)
    records.append({"x": x, "w": weights})
loss = sum((r["x"] * r["w"]).sum() for r in records)
""",
    "inplace preprocessing once, whole list": """
images = [torch.rand(2, 2) for _ in range(3)]
for img in images:
    img.sub_(0.5).div_(0.5)
loader = torch.utils.data.DataLoader(images, batch_size=1)
for b in loader:
    m = b.mean().item()
""",
    "dataset preprocess in init": """
class DS(torch.utils.data.Dataset):
    def __init__(self, data):
        self.data = data.clone()
        self.data -= self.data.mean()
    def __len__(self): return len(self.data)
    def __getitem__(self, i): return self.data[i]
raw = torch.rand(4, 2)
ds = DS(raw)
for epoch in range(2):
    for b in torch.utils.data.DataLoader(ds, batch_size=2):
        s = b.sum().item()
""",
    "dataset caches lazily": """
class DS(torch.utils.data.Dataset):
    def __init__(self, n):
        self.cache = torch.full((n, 2), -1.0); self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i):
        if self.cache[i, 0] < 0:
            self.cache[i] = torch.ones(2) * i
        return self.cache[i]
ds = DS(4)
for epoch in range(2):
    for b in torch.utils.data.DataLoader(ds, batch_size=2):
        s = b.sum().item()
""",
    "consumed before next frame": """
def frames(n):
    buf = torch.zeros(2)
    for i in range(n):
        buf.fill_(i)
        yield buf
means, outs = [], []
net = nn.Linear(2, 2)
for f in frames(4):
    outs.append(net(f).detach())
    means.append(f.mean().item())
big = torch.stack([f * 2 for f in frames(3)])
arr = np.array([f.numpy().copy() for f in frames(3)])
""",
    "agents share one tensor": """
class Agent:
    def __init__(self, shared): self.shared = shared
    def act(self): self.shared += 1
blackboard = torch.zeros(3)
agents = []
for k in range(3):
    agents.append(Agent(blackboard))
for _ in range(2):
    for a in agents:
        a.act()
total = blackboard.sum().item()
""",
    "dataset counts reads": """
class DS(torch.utils.data.Dataset):
    def __init__(self, n):
        self.x = torch.rand(n, 2); self.reads = torch.zeros(n)
    def __len__(self): return len(self.x)
    def __getitem__(self, i):
        self.reads[i] += 1
        return self.x[i] * 2
ds = DS(4)
for epoch in range(2):
    for b in torch.utils.data.DataLoader(ds, batch_size=2):
        s = b.sum().item()
print(ds.reads)
""",
    "collate dict copies then edits": """
def collate(batch):
    batch = [dict(b) for b in batch]
    for b in batch:
        b["x"] = b["x"] / 2
        b["x"] += 1
    return torch.stack([b["x"] for b in batch])
rows = [{"x": torch.ones(2) * k} for k in range(4)]
for epoch in range(2):
    for b in torch.utils.data.DataLoader(rows, batch_size=2, collate_fn=collate):
        m = b.mean().item()
""",
    "getitem float copy then in place": """
class DS(torch.utils.data.Dataset):
    def __init__(self):
        self.raw = torch.randint(0, 255, (4, 3), dtype=torch.uint8)
    def __len__(self): return 4
    def __getitem__(self, i):
        img = self.raw[i].float()
        img /= 255
        img.sub_(0.5)
        return img
ds = DS()
for epoch in range(2):
    for b in torch.utils.data.DataLoader(ds, batch_size=2):
        s = b.sum().item()
""",
    "callback appends float and clones": """
def train(w, on_epoch, n=3):
    for e in range(n):
        w.mul_(0.9)
        on_epoch(e, w)
trace = {}
train(torch.ones(3), lambda e, w: trace.__setitem__(e, w.norm().item()))
snaps = []
train(torch.ones(3), lambda e, w: snaps.append(w.detach().clone()))
best = {}
def keep_best(e, w):
    best["w"] = w
    best["e"] = e
train(torch.ones(3), keep_best)
""",
    "generator in-place batch of copies": """
store = torch.rand(6, 2)
def batches(size, shuffle=True):
    order = torch.randperm(len(store))
    for i in range(0, len(store), size):
        xb = store[order[i:i + size]]
        xb += torch.randn_like(xb) * 0.01
        yield xb
for epoch in range(2):
    for xb in batches(2):
        m = xb.mean().item()
""",
}


@pytest.mark.parametrize(("cell", "found"), AGAIN.values(), ids=AGAIN)
def test_memory_handed_out_again_is_found(cell, found):
    """The rule names the container or the stored data, and the line that keeps or edits the memory."""
    assert flags(look(COMMON, cell.removeprefix("\n")), "shared-memory") == found


@pytest.mark.parametrize("cell", MEANT.values(), ids=MEANT)
def test_what_is_copied_or_meant_is_left_alone(cell):
    """Copies, memory used before it is written again, caches and counters are no finding of any rule."""
    report = look(COMMON, cell.removeprefix("\n"))

    assert [str(finding) for finding in report.findings] == []
    assert report.failures == ()
