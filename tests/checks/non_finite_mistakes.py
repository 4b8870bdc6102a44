"""Cells with NaN or infinity in them by mistake; each with its root, the line and the cause."""

from __future__ import annotations

MISTAKES = {
    "property that divides": (
        """
class Tally:
    def __init__(self):
        self.right, self.asked = torch.tensor(0.0), 0

    def mark(self, right):
        self.right = self.right + right
        self.asked += 1

    @property
    def rate(self):
        return self.right / self.asked

def examine(answers):
    tally = Tally()
    for answer in answers:
        tally.mark(answer)
    return {"rate": float(tally.rate)}

result = examine([])
""",
        ("result['rate']", 12, "design"),
    ),
    "keyword arguments kept": (
        """
class Diary:
    def __init__(self):
        self.pages = []

    def note(self, **facts):
        self.pages.append(facts)

diary = Diary()
for weight in (torch.ones(3), torch.zeros(3)):
    diary.note(share=(weight[0] / weight.sum()).item(), size=3)
""",
        ("diary.pages[1]['share']", 11, "design"),
    ),
    "field of a named tuple": (
        """
from collections import namedtuple
Rates = namedtuple("Rates", "hit miss")
done = torch.zeros(2)
rates = Rates(hit=(done[0] / done.sum()).item(), miss=0.5)
""",
        ("rates.hit", 5, "design"),
    ),
    "infinity behind a saturated unit": (
        """
rows = torch.tensor([[0.1, 0.2], [float("inf"), 0.4]])
gate = nn.Linear(2, 3)
cost = torch.sigmoid(gate(rows)).mean()
cost.backward()
""",
        ("rows", 2, "data"),
    ),
    "tuple of results unpacked": (
        """
def judge(guess, truth):
    off = (guess - truth).abs()
    return off.max().item(), (off / truth).mean().item()

worst, relative = judge(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 2.0]))
""",
        ("relative", 4, "design"),
    ),
    "module out of a ModuleDict": (
        """
class Unit(nn.Module):
    def forward(self, x):
        return x / x.norm(dim=1, keepdim=True)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = nn.ModuleDict({"a": nn.Linear(2, 2, bias=False), "b": Unit()})

    def forward(self, x):
        return self.steps["b"](self.steps["a"](x)) + 1

net = Net()
out = net(torch.tensor([[1.0, 2.0], [0.0, 0.0]]))
""",
        ("out", 4, "design"),
    ),
    "module made and called at once": (
        """
class Hardness(nn.Module):
    def __init__(self, power):
        super().__init__()
        self.power = power

    def forward(self, p):
        return -((1 - p) ** self.power * torch.log(p)).mean()

cost = Hardness(2.0)(torch.tensor([0.3, 0.0]))
""",
        ("cost", 8, "design"),
    ),
    "metrics returned in a dict": (
        """
def report(found, wanted):
    hits = (found & wanted).sum()
    precision = hits / found.sum()
    return {"hits": int(hits), "precision": precision.item()}

scores = report(torch.zeros(4, dtype=torch.bool), torch.ones(4, dtype=torch.bool))
""",
        ("scores['precision']", 4, "design"),
    ),
    "metric kept in an object": (
        """
class Board:
    def __init__(self):
        self.table = {}

    def rate(self, name, done, tried):
        share = done / tried
        self.table[name] = share.item()
        return self.table

board = Board()
seen = board.rate("empty", torch.tensor(0.0), torch.tensor(0.0))
""",
        ("seen['empty']", 7, "design"),
    ),
    "loop ended by the error of a later round": (
        """
body = nn.Linear(2, 8)
arm = nn.Linear(8, 2)
opt = torch.optim.SGD([*body.parameters(), *arm.parameters()], lr=2.0)
for turn in range(60):
    z = body(torch.ones(3, 2))
    pick = torch.distributions.Categorical(logits=arm(z)).sample()
    cost = (arm(z) - 40.0).square().sum()
    opt.zero_grad()
    cost.backward()
    opt.step()
""",
        ("cost", 8, "explosion"),
    ),
    "power of a clamped parameter": (
        """
ink = nn.Parameter(torch.zeros(6))
opt = torch.optim.SGD([ink], lr=0.1)
for _ in range(3):
    tone = ink.clamp(min=0) ** 0.45
    cost = (tone - 0.5).abs().sum()
    opt.zero_grad()
    cost.backward()
    opt.step()
""",
        ("tone", 5, "design"),
    ),
    "descent in numpy": (
        """
a = np.arange(12.0).reshape(4, 3) * 10
theta = np.ones(3)
for _ in range(400):
    gap = a @ theta - 1
    theta -= 0.1 * a.T @ gap / len(a)
""",
        ("theta", 6, "explosion"),
    ),
    "every label ignored": (
        """
tagger = nn.Linear(3, 4)
opt = torch.optim.Adam(tagger.parameters())
curve = []
for tags in (torch.tensor([1, 2]), torch.tensor([-1, -1])):
    cost = F.nll_loss(tagger(torch.ones(2, 3)).log_softmax(1), tags, ignore_index=-1)
    opt.zero_grad()
    cost.backward()
    opt.step()
    curve.append(cost.item())
""",
        ("cost", 6, "design"),
    ),
    "entropy": (
        """
p = torch.tensor([0.5, 0.5, 0.0])
logp = torch.log(p)
entropy = -(p * logp).sum()
""",
        ("logp", 3, "design"),
    ),
    "bce by hand": (
        """
prob = torch.tensor([1.0, 0.3, 0.0])
target = torch.tensor([1.0, 0.0, 0.0])
bce = -(target * prob.log() + (1 - target) * (1 - prob).log()).mean()
""",
        ("bce", 4, "design"),
    ),
    "norm div": (
        """
def unit(v):
    n = v.pow(2).sum(-1, keepdim=True).sqrt()
    return v / n

vecs = torch.tensor([[3.0, 4.0], [0.0, 0.0]])
dirs = unit(vecs)
sim = dirs @ dirs.T
""",
        ("dirs", 4, "design"),
    ),
    "zscore constant column": (
        """
X = torch.randn(8, 3)
X[:, 1] = 4.0
Xn = (X - X.mean(0)) / X.std(0)
net = nn.Linear(3, 1)
out = net(Xn)
""",
        ("Xn", 4, "design"),
    ),
    "half overflow": (
        """
x = torch.full((2, 3), 300.0).half()
y = x * x
s = (y - y.mean()).sum()
""",
        ("y", 3, "design"),
    ),
    "exp softmax hand": (
        """
logits = torch.tensor([[1000.0, 1.0], [2.0, 3.0]])
e = torch.exp(logits)
probs = e / e.sum(1, keepdim=True)
""",
        ("e", 3, "design"),
    ),
    "var cancel": (
        """
a = torch.full((5,), 1e4)
a[0] += 1e-3
var = (a ** 2).mean() - a.mean() ** 2 - 10
sd = var.sqrt()
""",
        ("sd", 5, "design"),
    ),
    "ce all ignored": (
        """
logits = torch.randn(3, 4)
target = torch.full((3,), -100)
loss = F.cross_entropy(logits, target, ignore_index=-100)
""",
        ("loss", 4, "design"),
    ),
    "mean empty": (
        """
losses = torch.rand(6)
mask = losses > 2
hard = losses[mask].mean()
""",
        ("hard", 4, "design"),
    ),
    "sqrt grad zero": (
        """
net = nn.Linear(3, 2)
nn.init.zeros_(net.weight); nn.init.zeros_(net.bias)
x = torch.randn(4, 3)
dist = (net(x) ** 2).sum(1).sqrt()
loss = dist.mean()
loss.backward()
""",
        ("net.weight.grad", 5, "design"),
    ),
    "sqrt grad step loop": (
        """
emb = nn.Embedding(4, 2)
opt = torch.optim.SGD(emb.parameters(), lr=0.1)
for i in range(3):
    a, b = emb(torch.tensor([0])), emb(torch.tensor([0]))
    loss = torch.sqrt(((a - b) ** 2).sum())
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ("loss", 6, "design"),
    ),
    "adam eps0": (
        """
w = nn.Parameter(torch.tensor([1.0, 0.0]))
opt = torch.optim.Adam([w], lr=0.1, eps=0.0)
for _ in range(2):
    opt.zero_grad()
    loss = (w[0] * 2) ** 2
    loss.backward()
    opt.step()
""",
        ("w", 8, "explosion"),
    ),
    "class weights inf": (
        """
counts = torch.tensor([10.0, 0.0, 5.0])
weights = counts.sum() / counts
crit = nn.CrossEntropyLoss(weight=weights)
loss = crit(torch.randn(4, 3), torch.tensor([0, 1, 2, 0]))
""",
        ("weights", 3, "design"),
    ),
    "nan labels train": (
        """
X = torch.randn(16, 3)
y = torch.randn(16, 1)
y[5] = float("nan")
net = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
for xb, yb in DataLoader(TensorDataset(X, y), batch_size=4):
    loss = F.mse_loss(net(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ("y", 4, "data"),
    ),
    "train function nan": (
        """
def train(model, data, opt):
    hist = []
    for x, y in data:
        loss = ((model(x) - y) ** 2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        hist.append(loss.item())
    return hist

rows = np.random.default_rng(0).random((12, 4)).astype("float32")
rows[7, 2] = np.inf
data = [(torch.from_numpy(r[:3]), torch.from_numpy(r[3:])) for r in rows]
model = nn.Linear(3, 1)
history = train(model, data, torch.optim.SGD(model.parameters(), lr=0.01))
""",
        ("rows", 13, "data"),
    ),
    "diverge fn": (
        """
def fit(net, x, y, steps=80):
    opt = torch.optim.SGD(net.parameters(), lr=5.0)
    curve = []
    for _ in range(steps):
        opt.zero_grad()
        out = net(x)
        err = ((out - y) ** 2).mean()
        err.backward()
        opt.step()
        curve.append(float(err))
    return curve

x = torch.randn(20, 4) * 10
y = x.sum(1, keepdim=True)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
curve = fit(net, x, y)
""",
        ("net[0].weight", 10, "explosion"),
    ),
    "qlearning": (
        """
q = nn.Linear(2, 2)
opt = torch.optim.SGD(q.parameters(), lr=0.9)
s = torch.randn(32, 2) * 5
for it in range(200):
    target = 1.0 + 2.0 * q(s).max(1).values.detach()
    td = q(s)[:, 0] - target
    loss = (td ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("loss", 8, "explosion"),
    ),
    "power iter": (
        """
A = torch.randn(10, 10)
v = torch.randn(10)
for _ in range(300):
    v = A @ v
    v = v * 2
""",
        ("v", 6, "explosion"),
    ),
    "euler": (
        """
x, vel = torch.tensor(20.0), torch.tensor(0.3)
xs = []
for _ in range(4000):
    acc = -100.0 * x ** 3
    vel = vel + 0.1 * acc
    x = x + 0.1 * vel
    xs.append(x.clone())
""",
        ("x", 7, "explosion"),
    ),
    "multinomial raise": (
        """
logits = torch.tensor([[1.0, float("-inf")], [float("-inf"), float("-inf")]])
probs = logits.softmax(-1)
choice = torch.multinomial(probs, 1)
""",
        ("probs", 3, "design"),
    ),
    "module log": (
        """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, x):
        z = F.relu(self.fc(x) - 100)
        return torch.log(z)

head = Head()
x = torch.randn(4, 3)
out = head(x)
loss = (out * 0.0).mean()
loss.backward()
""",
        ("out", 9, "design"),
    ),
    "images log": (
        """
img = np.abs(np.random.default_rng(0).normal(size=(4, 8, 8)))
img[2, 3, 3] = 0
db = 20 * np.log10(img)
x = torch.tensor(db, dtype=torch.float32)
feat = nn.Conv2d(1, 2, 3)(x[:, None])
pooled = feat.mean((2, 3))
""",
        ("db", 4, "data"),
    ),
    "embedding nan": (
        """
table = torch.randn(5, 4)
table[2] = torch.nan
emb = nn.Embedding.from_pretrained(table)
vec = emb(torch.tensor([1, 2])).mean(0)
logit = nn.Linear(4, 1)(vec)
""",
        ("table", 3, "data"),
    ),
    "pandas nan": (
        """
import pandas as pd
df = pd.DataFrame({"a": [1.0, 2.0, None, 4.0], "b": [0.1, 0.2, 0.3, 0.4]})
X = torch.tensor(df[["a"]].values, dtype=torch.float32)
y = torch.tensor(df["b"].values, dtype=torch.float32)
model = nn.Linear(1, 1)
loss = F.mse_loss(model(X).squeeze(), y)
loss.backward()
""",
        ("df['a']", 3, "data"),
    ),
    "auc nan float": (
        """
scores = []
for fold in range(3):
    tp, total = [3, 0, 2][fold], [4, 0, 5][fold]
    precision = np.divide(np.float64(tp), total)
    scores.append(precision)
mean = np.mean(scores)
""",
        ("scores[1]", 5, "design"),
    ),
    "corr zero std": (
        """
pred = torch.zeros(6)
true = torch.randn(6)
r = ((pred - pred.mean()) * (true - true.mean())).sum() / (pred.std() * true.std() * 5)
""",
        ("r", 4, "design"),
    ),
    "kl hand": (
        """
p = torch.tensor([[0.2, 0.8], [1.0, 0.0]])
q = torch.tensor([[0.3, 0.7], [0.5, 0.5]])
kl = (p * (p / q).log()).sum(1)
""",
        ("kl", 4, "design"),
    ),
    "pow grad": (
        """
w = torch.zeros(3, requires_grad=True)
x = torch.tensor([1.0, 2.0, 0.0])
y = (w * x) ** 0.5
loss = y.sum()
loss.backward()
""",
        ("w.grad", 4, "design"),
    ),
    "where sqrt": (
        """
t = torch.tensor([4.0, 0.0, 9.0], requires_grad=True)
safe = torch.where(t > 0, torch.sqrt(t), torch.zeros_like(t))
safe.sum().backward()
""",
        ("t.grad", 3, "design"),
    ),
    "bn buffers inf step": (
        """
bn = nn.BatchNorm1d(2)
feats = torch.tensor([[1.0, 2.0], [1e25, 3.0], [2.0, 2.0]])
out = bn(feats)
bn.eval()
""",
        ("bn.running_var", 4, "explosion"),
    ),
    "gan log": (
        """
disc = nn.Sequential(nn.Linear(2, 1), nn.Sigmoid())
with torch.no_grad():
    disc[0].weight.fill_(400.0)
fake = torch.ones(4, 2)
g_loss = torch.log(1 - disc(fake)).mean()
g_loss.backward()
""",
        ("g_loss", 6, "design"),
    ),
    "fp16 scaler weights": (
        """
net = nn.Linear(4, 4).half()
x = torch.full((2, 4), 60000.0).half()
h = net(x) * 100
out = h.softmax(-1)
""",
        ("h", 4, "design"),
    ),
    "attn self mask": (
        """
def attention(q, k, v, mask):
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = scores.masked_fill(mask == 0, float("-inf"))
    return scores.softmax(-1) @ v

q = k = v = torch.randn(2, 3, 4)
mask = torch.ones(2, 3, 3)
mask[1] = 0
ctx = attention(q, k, v, mask)
""",
        ("ctx", 5, "design"),
    ),
    "ema nan": (
        """
stats = {"mean": torch.zeros(3)}
batches = [torch.randn(1, 3) for _ in range(4)]
for b in batches:
    stats["std"] = 0.9 * stats.get("std", torch.ones(3)) + 0.1 * b.std(0)
""",
        ("stats['std']", 5, "design"),
    ),
    "obj trainer": (
        """
class Trainer:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.SGD(net.parameters(), lr=50.0)
        self.losses = []

    def run(self, x, y, n):
        for _ in range(n):
            loss = F.mse_loss(self.net(x), y)
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
            self.losses.append(loss.item())

x = torch.randn(8, 3)
tr = Trainer(nn.Linear(3, 1))
tr.run(x, x.sum(1, keepdim=True), 100)
""",
        ("tr.net.weight", 13, "explosion"),
    ),
    "data csv": (
        """
import io
text = "1.0,2.0\\nnan,3.0\\n4.0,1.0"
arr = np.genfromtxt(io.StringIO(text), delimiter=",")
x = torch.tensor(arr[:, :1]).float()
w = torch.ones(1, requires_grad=True)
loss = ((x * w).squeeze() - torch.tensor(arr[:, 1]).float()).abs().mean()
loss.backward()
""",
        ("arr", 4, "data"),
    ),
    "langevin": (
        """
energy = lambda z: (z ** 4).sum()
z = torch.randn(5) * 3
for i in range(100):
    z = z.detach().requires_grad_(True)
    g, = torch.autograd.grad(energy(z), z)
    z = z - 0.5 * g + 0.1 * torch.randn(5)
""",
        ("z", 7, "explosion"),
    ),
    "lr scheduler": (
        """
model = nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(10, 2)
for epoch in range(3):
    for g in opt.param_groups:
        g["lr"] = np.float64(0.1) / epoch if epoch != 1 else 0.1
    loss = model(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("loss", 8, "explosion"),
    ),
    "vae": (
        """
enc = nn.Linear(4, 4)
x = torch.randn(6, 4) * 200
mu, logvar = enc(x).chunk(2, 1)
std = torch.exp(logvar)
z = mu + std * torch.randn_like(std)
kl = -0.5 * (1 + logvar - mu ** 2 - std).mean()
kl.backward()
""",
        ("std", 5, "design"),
    ),
    "argmax hides": (
        """
logits = torch.tensor([[0.1, 0.2], [0.4, 0.3]])
temp = torch.tensor([1.0, 0.0])
scaled = logits / temp[:, None]
probs = scaled.softmax(1)
pred = probs.argmax(1)
""",
        ("scaled", 4, "design"),
    ),
    "dataclass state": (
        """
from dataclasses import dataclass
@dataclass
class State:
    mean: torch.Tensor
    var: torch.Tensor

st = State(torch.zeros(2), torch.ones(2))
batch = torch.tensor([[1.0, 2.0]])
st.mean = batch.mean(0)
st.var = batch.var(0)
z = (batch - st.mean) / (st.var + 1e-5).sqrt()
""",
        ("st.var", 11, "design"),
    ),
    "dict batch": (
        """
batch = {"x": torch.randn(4, 3), "w": torch.tensor([1.0, 0.0, 2.0, 0.0])}
batch["w"] = 1.0 / batch["w"]
net = nn.Linear(3, 1)
loss = (net(batch["x"]).squeeze() * batch["w"]).mean()
loss.backward()
""",
        ("batch['w']", 3, "design"),
    ),
    "normalize dataset fn": (
        """
def standardize(a):
    return (a - a.mean(axis=0)) / a.std(axis=0)

raw = np.random.default_rng(1).random((10, 3)).astype("float32")
raw[:, 2] = 1.0
feats = standardize(raw)
x = torch.from_numpy(feats)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh())
emb = model(x)
""",
        ("feats", 3, "data"),
    ),
    "rl returns": (
        """
rewards = torch.tensor([1.0])
returns = rewards.flip(0).cumsum(0).flip(0)
returns = (returns - returns.mean()) / returns.std()
policy = nn.Linear(2, 2)
logp = policy(torch.randn(1, 2)).log_softmax(-1)[:, 0]
loss = -(logp * returns).sum()
loss.backward()
""",
        ("returns", 4, "design"),
    ),
    "cosine lr sgd momentum": (
        """
net = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 1))
opt = torch.optim.SGD(net.parameters(), lr=3.0, momentum=0.9)
X, Y = torch.randn(64, 5) * 4, torch.randn(64, 1)
losses = {"train": []}
for epoch in range(40):
    for xb, yb in DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True):
        pred = net(xb)
        loss = nn.functional.mse_loss(pred, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    losses["train"].append(loss.item())
""",
        ("loss", 9, "explosion"),
    ),
    "log in train": (
        """
net = nn.Sequential(nn.Linear(3, 2), nn.Softmax(-1))
opt = torch.optim.SGD(net.parameters(), lr=100.0)
x = torch.randn(8, 3) * 50
y = torch.randint(0, 2, (8,))
for i in range(4):
    p = net(x)
    nll = -torch.log(p[torch.arange(8), y]).mean()
    opt.zero_grad(); nll.backward(); opt.step()
""",
        ("nll", 8, "design"),
    ),
    "nan in middle batch": (
        """
class Rows(torch.utils.data.Dataset):
    def __init__(self, n):
        self.items = [torch.randn(3) for _ in range(n)]
        self.items[3] = torch.tensor([1.0, float("nan"), 0.0])
    def __len__(self):
        return len(self.items)
    def __getitem__(self, i):
        return self.items[i]

ds = Rows(8)
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x in DataLoader(ds, batch_size=2):
    loss = net(x).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("ds.items[3]", 5, "data"),
    ),
    "generator data": (
        """
def batches(n):
    for i in range(n):
        x = torch.randn(4, 2)
        if i == 1:
            x[0, 0] = float("inf")
        yield x, x.sum(1, keepdim=True)

net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
for x, y in batches(4):
    loss = F.mse_loss(net(x), y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("loss", 6, "data"),
    ),
    "weights init nan": (
        """
net = nn.Linear(4, 4)
with torch.no_grad():
    net.weight[1] = float("nan")
out = net(torch.randn(2, 4))
""",
        ("net.weight", 4, "design"),
    ),
    "checkpoint nan": (
        """
sd = {"weight": torch.full((2, 3), float("nan")), "bias": torch.zeros(2)}
net = nn.Linear(3, 2)
net.load_state_dict(sd)
out = net(torch.ones(1, 3))
""",
        ("sd['weight']", 2, "data"),
    ),
    "geomean": (
        """
vals = torch.tensor([2.0, 8.0, -1.0])
gm = vals.log().mean().exp()
""",
        ("gm", 3, "design"),
    ),
    "angle between": (
        """
def angle(u, v):
    c = F.cosine_similarity(u, v, dim=-1)
    return torch.acos(c)

pose = nn.Parameter(torch.tensor([[1.0, 0.0], [0.0, 2.0]]))
ref = torch.tensor([[2.0, 0.0], [1.0, 1.0]])
loss = angle(pose, ref).sum()
loss.backward()
""",
        ("pose.grad", 4, "design"),
    ),
    "dist sqrt model": (
        """
enc = nn.Linear(4, 2)
opt = torch.optim.Adam(enc.parameters(), lr=0.01)
a = torch.randn(6, 4)
pairs = torch.cat([a[:3], a[:3]])
d = enc(a[:3]) - enc(pairs[3:])
dist = (d * d).sum(-1) ** 0.5
loss = F.relu(1 - dist).mean()
opt.zero_grad()
loss.backward()
opt.step()
""",
        ("enc.weight.grad", 7, "design"),
    ),
    "var of one bn": (
        """
feat = torch.randn(1, 8)
mu, sd = feat.mean(0), feat.std(0)
white = (feat - mu) / sd
probe = nn.Linear(8, 2)(white)
""",
        ("sd", 3, "design"),
    ),
    "log1p neg": (
        """
x = torch.tensor([0.5, -1.5])
y = torch.log1p(x)
m = y.mean()
""",
        ("y", 3, "design"),
    ),
    "topk mask all": (
        """
scores = torch.randn(2, 5)
allowed = torch.zeros(2, 5, dtype=torch.bool)
allowed[0, :2] = True
scores[~allowed] = -torch.inf
probs = F.softmax(scores, dim=1)
pick = probs.argmax(1)
""",
        ("probs", 6, "design"),
    ),
    "mask bias add": (
        """
att = torch.randn(1, 3, 3)
bias = torch.where(torch.zeros(3, 3) > 0, 0.0, float("-inf"))
w = (att + bias).softmax(-1)
o = w @ torch.randn(3, 4)
""",
        ("w", 4, "design"),
    ),
    "half scores": (
        """
q = torch.randn(2, 4, 64, dtype=torch.float16) * 150
k = torch.randn(2, 4, 64, dtype=torch.float16) * 150
att = (q @ k.transpose(1, 2))
w = att.softmax(-1)
""",
        ("att", 4, "design"),
    ),
    "bf16 to half": (
        """
big = torch.tensor([1e5, 2.0, 3.0])
small = big.to(torch.float16)
norm = small / small.sum()
""",
        ("small", 3, "design"),
    ),
    "ratio metrics append": (
        """
metrics = {"f1": []}
for tp, fp, fn in [(3, 1, 0), (0, 0, 0), (2, 2, 1)]:
    p = torch.tensor(float(tp)) / (tp + fp)
    r = torch.tensor(float(tp)) / (tp + fn)
    metrics["f1"].append((2 * p * r / (p + r)).item())
avg = sum(metrics["f1"]) / 3
""",
        ("metrics['f1'][1]", 6, "design"),
    ),
    "grad explode rnn": (
        """
rnn = nn.RNN(1, 16, nonlinearity="relu", batch_first=True)
for p in rnn.parameters():
    nn.init.constant_(p, 1.0)
x = torch.ones(2, 200, 1)
out, h = rnn(x)
loss = out[:, -1].sum()
loss.backward()
""",
        ("out", 6, "explosion"),
    ),
    "clip norm nan": (
        """
net = nn.Linear(3, 1)
x = torch.tensor([[1e30, 1.0, 1.0]])
loss = (net(x) * 1e-20).pow(2).mean() * 1e3
loss.backward()
total = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
""",
        ("total", 6, "explosion"),
    ),
    "neural ode": (
        """
def f(y): return y ** 2
y = torch.tensor([1.0, 0.5])
traj = [y]
for step in range(400):
    y = y + 0.1 * f(y)
    traj.append(y)
final = traj[-1]
""",
        ("y", 6, "explosion"),
    ),
    "welford": (
        """
class RunningStd:
    def __init__(self):
        self.n, self.mean, self.m2 = 0, 0.0, 0.0
    def push(self, x):
        self.n += 1
        delta = x - self.mean
        self.mean = self.mean + delta / self.n
        self.m2 = self.m2 + delta * (x - self.mean)
    def std(self):
        return torch.sqrt(self.m2 / (self.n - 1))

rs = RunningStd()
rs.push(torch.tensor([3.0, 1.0]))
sd = rs.std()
scaled = torch.tensor([3.0, 1.0]) / sd
""",
        ("sd", 15, "design"),
    ),
    "labels log price": (
        """
price = torch.tensor([100.0, 0.0, 250.0])
y = torch.log(price)
net = nn.Linear(2, 1)
loss = F.mse_loss(net(torch.randn(3, 2)).squeeze(1), y)
loss.backward()
""",
        ("y", 3, "design"),
    ),
    "softmax temp0": (
        """
logits = torch.tensor([1.0, 2.0, 3.0])
T = 0.0
p = torch.softmax(logits / T, 0)
""",
        ("p", 4, "design"),
    ),
    "opt state nan": (
        """
w = nn.Parameter(torch.ones(2))
opt = torch.optim.Adam([w], lr=0.1)
w.grad = torch.tensor([float("nan"), 1.0])
opt.step()
""",
        ("w.grad", 4, "design"),
    ),
    "lightning like": (
        """
class Lit(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 1)
        self.scale = nn.Parameter(torch.zeros(1))

    def training_step(self, batch):
        x, y = batch
        pred = self.net(x) / self.scale
        return F.mse_loss(pred, y)

lit = Lit()
opt = torch.optim.SGD(lit.parameters(), lr=0.1)
for _ in range(2):
    loss = lit.training_step((torch.randn(3, 4), torch.randn(3, 1)))
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("loss", 10, "design"),
    ),
    "gumbel": (
        """
u = torch.tensor([0.2, 0.0, 0.9])
g = -torch.log(-torch.log(u))
logits = torch.zeros(3)
y = torch.softmax((logits + g) / 0.5, -1)
s = (y * g).sum()
""",
        ("s", 3, "design"),
    ),
    "ppo ratio": (
        """
old = torch.tensor([-200.0, -1.0])
pi = nn.Parameter(torch.tensor([0.0, -1.0]))
ratio = torch.exp(pi - old)
adv = torch.tensor([0.0, 1.0])
obj = -(ratio * adv).mean()
obj.backward()
""",
        ("ratio", 4, "design"),
    ),
    "pinv": (
        """
A = torch.zeros(2, 2)
A[0, 0] = 1.0
d = A.diagonal()
inv = torch.diag(1.0 / d)
x = inv @ torch.tensor([1.0, 0.0])
""",
        ("inv", 5, "design"),
    ),
    "word freq idf": (
        """
docs = np.array([[1, 0, 2], [3, 0, 1]])
df = (docs > 0).sum(0)
idf = np.log(len(docs) / df)
tfidf = docs * idf
X = torch.tensor(tfidf, dtype=torch.float32)
h = nn.Linear(3, 2)(X)
""",
        ("idf", 4, "data"),
    ),
    "iou union0": (
        """
def iou(p, t):
    inter = (p * t).sum((1, 2))
    union = ((p + t) > 0).float().sum((1, 2))
    return inter / union

pred = torch.zeros(2, 4, 4); true = torch.zeros(2, 4, 4)
pred[0, :2] = 1; true[0, 1:3] = 1
score = iou(pred, true)
mean_iou = score.mean()
""",
        ("score", 5, "design"),
    ),
    "dice loop": (
        """
scores = []
for k in range(3):
    a = torch.zeros(4) if k == 1 else torch.ones(4)
    scores.append(2 * (a * a).sum() / (a.sum() + a.sum()))
mean_dice = torch.stack(scores).mean()
""",
        ("scores[1]", 5, "design"),
    ),
    "gn penalty": (
        """
critic = nn.Linear(3, 1)
with torch.no_grad():
    critic.weight.zero_()
x = torch.randn(4, 3, requires_grad=True)
out = critic(x)
g, = torch.autograd.grad(out.sum(), x, create_graph=True)
penalty = ((g.pow(2).sum(1).sqrt() - 1) ** 2).mean()
penalty.backward()
""",
        ("critic.weight.grad", 8, "design"),
    ),
    "layer custom norm": (
        """
class MyNorm(nn.Module):
    def forward(self, x):
        return (x - x.mean(-1, keepdim=True)) / x.std(-1, keepdim=True)

model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), MyNorm(), nn.Linear(4, 2))
with torch.no_grad():
    model[0].bias.fill_(-50.0)
y = model(torch.randn(5, 3))
loss = y.pow(2).mean()
""",
        ("y", 4, "design"),
    ),
    "sequence lengths0": (
        """
h = torch.randn(3, 5, 4)
lengths = torch.tensor([5, 0, 2])
mask = (torch.arange(5)[None] < lengths[:, None]).float()
pooled = (h * mask[..., None]).sum(1) / lengths[:, None]
logits = nn.Linear(4, 2)(pooled)
""",
        ("pooled", 5, "design"),
    ),
    "attention einsum": (
        """
class Attn(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.q, self.k, self.v = nn.Linear(d, d), nn.Linear(d, d), nn.Linear(d, d)
    def forward(self, x, valid):
        s = torch.einsum("bid,bjd->bij", self.q(x), self.k(x)) / x.shape[-1] ** 0.5
        s = s.masked_fill(~valid[:, None, :], float("-inf"))
        return torch.einsum("bij,bjd->bid", torch.softmax(s, -1), self.v(x))

attn = Attn(4)
opt = torch.optim.Adam(attn.parameters(), lr=1e-3)
valid = torch.tensor([[True, True], [False, False]])
for _ in range(3):
    out = attn(torch.randn(2, 2, 4), valid)
    loss = out.pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ("out", 9, "design"),
    ),
    "poly features": (
        """
x = torch.linspace(0, 1000, 50)
P = torch.stack([x ** k for k in range(16)], 1)
w = torch.zeros(16, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.01)
for _ in range(5):
    loss = ((P @ w - x) ** 2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("P", 3, "design"),
    ),
    "meta sgd": (
        """
w = torch.tensor([1.0, -2.0])
losses = []
for step in range(50):
    w = w.detach().requires_grad_()
    loss = (w ** 4).sum()
    loss.backward()
    losses.append(float(loss))
    with torch.no_grad():
        w = w - 1.0 * w.grad
""",
        ("w", 10, "explosion"),
    ),
    "manual update": (
        """
W = torch.randn(4, 1, requires_grad=True)
X = torch.randn(30, 4) * 20; t = X.sum(1, keepdim=True)
for i in range(60):
    err = X @ W - t
    mse = (err ** 2).mean()
    mse.backward()
    with torch.no_grad():
        W -= 0.1 * W.grad
        W.grad.zero_()
""",
        ("mse", 6, "explosion"),
    ),
    "xlsx labels": (
        """
import pandas as pd
frame = pd.DataFrame({"f": np.arange(6.0), "label": [0, 1, np.nan, 1, 0, 1]})
f, label = frame["f"].to_numpy(), frame["label"].to_numpy()
ds = TensorDataset(torch.tensor(f).float()[:, None], torch.tensor(label).float())
clf = nn.Linear(1, 1)
opt = torch.optim.SGD(clf.parameters(), lr=0.1)
for xb, yb in DataLoader(ds, batch_size=3):
    loss = F.binary_cross_entropy_with_logits(clf(xb).squeeze(1), yb)
    opt.zero_grad(); loss.backward(); opt.step()
""",
        ("frame['label']", 3, "data"),
    ),
    "sensor inf list": (
        """
readings = [0.1, 0.2, float("inf"), 0.4]
x = torch.tensor(readings).unsqueeze(0)
mu = x.mean()
z = (x - mu) / (x.std() + 1e-8)
""",
        ("x", 3, "data"),
    ),
    "mixed precision norm": (
        """
act = torch.full((4, 512), 20.0, dtype=torch.float16)
rms = act.pow(2).sum(-1).sqrt()
unit = act / rms[:, None]
energy = act.pow(2).sum()
""",
        ("energy", 5, "design"),
    ),
    "simulator np": (
        """
pos, vel = np.array([0.0, 0.0]), np.array([1.0, 1.0])
states = []
for t in range(5):
    r = np.linalg.norm(pos)
    acc = -pos / r ** 3
    vel = vel + acc
    pos = pos + vel
    states.append(pos.copy())
target = torch.tensor(np.stack(states))
pred = torch.zeros(5, 2, requires_grad=True)
loss = F.mse_loss(pred, target.float())
loss.backward()
""",
        ("pos", 8, "data"),
    ),
    "bn eval neg var": (
        """
bn = nn.BatchNorm1d(2)
bn.running_var.fill_(-1.0)
bn.eval()
y = bn(torch.randn(3, 2))
""",
        ("y", 5, "explosion"),
    ),
    "scheduler val": (
        """
val_losses = []
model = nn.Linear(2, 1)
val = [torch.randn(3, 2), torch.randn(0, 2)]
with torch.no_grad():
    for vb in val:
        val_losses.append(model(vb).mean().item())
avg = sum(val_losses) / len(val_losses)
""",
        ("val_losses[1]", 7, "design"),
    ),
    "fn return dict": (
        """
def evaluate(model, x, y):
    p = model(x).sigmoid()
    out = {}
    out["nll"] = -(y * torch.log(p) + (1 - y) * torch.log(1 - p)).mean()
    out["acc"] = ((p > 0.5) == y.bool()).float().mean()
    return out

m = nn.Linear(1, 1)
with torch.no_grad():
    m.weight.fill_(100.0)
res = evaluate(m, torch.tensor([[5.0], [-5.0]]), torch.tensor([[1.0], [1.0]]))
""",
        ("res['nll']", 5, "design"),
    ),
}
