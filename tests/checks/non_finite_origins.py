"""Shapes in which NaN and infinity come about, or are dealt with; each mistake with its root, line and cause."""

from __future__ import annotations

ORIGINS = {
    "logarithm of 0 in a mean": (
        """
def score(p):
    q = p / p.sum()
    return torch.log(q).mean()
s = score(torch.tensor([2.0, 0.0, 1.0]))
""",
        ("s", 4, "design"),
    ),
    "logarithm of 0 as a feature": (
        """
freq = torch.tensor([3.0, 0.0, 5.0])
logits = torch.log(freq / freq.sum())
penalty = (logits * torch.tensor([0.1, 0.2, 0.3])).sum()
""",
        ("logits", 3, "design"),
    ),
    "root of an unnamed loss": (
        """
v = torch.tensor([0.0, 4.0], requires_grad=True)
v.sqrt().sum().backward()
""",
        ("v.grad", 3, "design"),
    ),
    "derivative asked of a function": (
        """
p = torch.tensor([1.0, 0.5], requires_grad=True)
f = lambda t: torch.acos(t).sum()
g, = torch.autograd.grad(f(p), p)
""",
        ("g", 3, "design"),
    ),
    "small number lost in float16": (
        """
EPS = 1e-8
probs = torch.tensor([0.0, 1.0]).half()
def nll(p):
    return -torch.log(p + EPS)
logp = nll(probs)
total = logp.mean()
""",
        ("logp", 5, "design"),
    ),
    "product of norms in float16": (
        """
a = torch.zeros(3, 4, dtype=torch.float16); b = torch.randn(3, 4).half()
def cosine(a, b, eps=1e-8):
    dot = (a * b).sum(-1)
    return dot / (a.norm(dim=-1) * b.norm(dim=-1) + eps)
with torch.no_grad():
    sim = cosine(a, b)
""",
        ("sim", 5, "design"),
    ),
    "nan in a file of lines": (
        r"""
import io, csv
text = "a,b,y\n1,2,3\n4,nan,6\n"
reader = csv.DictReader(io.StringIO(text))
rows = [[float(r[c]) for c in ("a", "b")] for r in reader]
X = torch.tensor(rows)
net = nn.Linear(2, 1)
pred = net(X)
loss = pred.mean(); loss.backward()
""",
        ("X", 6, "data"),
    ),
    "NaN of JSON": (
        """
import json
payload = '{"temps": [20.5, NaN, 21.0]}'
readings = json.loads(payload)["temps"]
x = torch.tensor(readings)
mean = x.mean()
scaled = (x - mean) / x.std()
""",
        ("x", 5, "data"),
    ),
    "running mean of an own class": (
        """
class Standardise:
    def __init__(self, n):
        self.n, self.mean, self.m2 = 0, torch.zeros(n), torch.zeros(n)
    def update(self, row):
        self.n += 1
        d = row - self.mean
        self.mean = self.mean + d / self.n
        self.m2 = self.m2 + d * (row - self.mean)
x = torch.randn(5, 2)
x[3, 1] = float("nan")
norm = Standardise(2)
for row in x:
    norm.update(row)
""",
        ("x", 11, "data"),
    ),
    "batch of a generator that is gone": (
        """
def stream():
    for i in range(3):
        b = torch.randn(4, 2)
        if i == 1:
            b[0, 0] = float("nan")
        yield b
net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 1))
with torch.no_grad():
    for batch in stream():
        net(batch)
del batch
""",
        ("net[0].running_mean", 6, "data"),
    ),
    "mask that came with the batch": (
        """
head = nn.Linear(3, 1)
def step(batch):
    pred = head(batch["x"]).squeeze(1)
    sq = (pred - batch["y"]).square()
    sq = sq.masked_fill(~batch["ok"], 0.0)
    loss = sq.sum() / batch["ok"].sum()
    loss.backward()
    return loss.item()
batch = {"x": torch.randn(3, 3), "y": torch.tensor([1.0, float("nan"), 2.0]), "ok": torch.tensor([True, False, True])}
value = step(batch)
""",
        ("head.weight.grad", 6, "design"),
    ),
    "attention of an empty row, of which a part is looked at": (
        """
class Attn:
    def __init__(self, d): self.scale = d ** -0.5
    def __call__(self, q, k, v, mask):
        s = (q @ k.mT) * self.scale
        neg = torch.full_like(s, float("-inf"))
        s = torch.where(mask[:, None, :], s, neg)
        p = torch.softmax(s, -1)
        return p @ v
q = k = v = torch.randn(2, 3, 4)
ctx = Attn(4)(q, k, v, torch.tensor([[True, True, False], [False, False, False]]))
first = ctx[0]
""",
        ("ctx", 11, "design"),
    ),
    "loss module with nothing but ignored labels": (
        """
crit = nn.CrossEntropyLoss(ignore_index=0)
logits = torch.randn(4, 2, 5)
target = torch.tensor([[1, 2], [0, 0], [3, 4], [1, 0]])
losses = []
for l, t in zip(logits, target):
    losses.append(crit(l, t).item())
""",
        ("losses[1]", 7, "design"),
    ),
    "recurrence in a comprehension": (
        """
W = torch.randn(16, 16) * 3
h = torch.ones(16)
outs = [h := torch.relu(W @ h) for _ in range(60)]
last = outs[-1].mean()
""",
        ("h", 4, "explosion"),
    ),
    "training by a chained call": (
        """
class Trainer:
    def __init__(self, model, lr):
        self.model = model
        self.opt = torch.optim.SGD(model.parameters(), lr=lr)
        self.losses = []
    def fit(self, x, y, n):
        for _ in range(n):
            self.opt.zero_grad()
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            self.opt.step()
            self.losses.append(loss.detach().item())
        return self
x = torch.arange(30.0)[:, None]; y = 2 * x
model = nn.Linear(1, 1)
trainer = Trainer(model, 0.5).fit(x, y, 50)
""",
        ("model.weight.grad", 11, "explosion"),
    ),
    "geometric mean of a row with 0": (
        """
def geo(x):
    return torch.log(x).mean(-1)
g = geo(torch.tensor([[1.0, 0.0], [2.0, 3.0]]))
""",
        ("g", 3, "design"),
    ),
    "peak signal of equal images": (
        """
def psnr(a, b):
    mse = ((a - b) ** 2).mean()
    return 10 * torch.log10(1 / mse)
img = torch.rand(3, 4)
scores = [psnr(img, img).item(), psnr(img, img + 0.1).item()]
""",
        ("scores[0]", 4, "design"),
    ),
    "normalize of a zero row in float16": (
        """
v = torch.zeros(2, 8).half()
n = F.normalize(v, dim=-1)
""",
        ("n", 3, "design"),
    ),
    "clamp lost in float16": (
        """
p = torch.tensor([0.0, 1.0], dtype=torch.half)
ll = p.clamp(min=1e-10).log()
s = ll.sum()
""",
        ("ll", 3, "design"),
    ),
    "layers of float16 that overflow": (
        """
net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8)).half()
with torch.no_grad(): net[0].weight.fill_(30.0); net[2].weight.fill_(30.)
y = net(torch.full((1, 64), 20.0).half())
""",
        ("y", 4, "design"),
    ),
    "method of an object made on the spot": (
        r"""
class Scaler:
    def fit(self, x):
        self.mean, self.std = x.mean(0), x.std(0)
        return self
raw = "3.1 2.2\n1.0 nan\n0.3 0.4"
train = torch.tensor([[float(c) for c in r.split()] for r in raw.split("\n")])
scaler = Scaler().fit(train)
""",
        ("train", 7, "data"),
    ),
    "norm by hand": (
        """
net = nn.Linear(2, 1)
x = torch.full((2, 2), 3e19)
F.mse_loss(net(x), torch.zeros(2, 1)).backward()
total = torch.sqrt(sum((p.grad ** 2).sum() for p in net.parameters()))
for p in net.parameters():
    p.grad *= 1.0 / total
""",
        ("net.weight.grad", 4, "explosion"),
    ),
    "nansum in an own loss": (
        '''
class Crit(nn.Module):
    """Missing labels are NaN."""
    def forward(self, out, labels):
        per = F.binary_cross_entropy_with_logits(out, labels, reduction="none")
        return per.nansum() / (~labels.isnan()).sum()
model = nn.Linear(3, 2)
labels = torch.tensor([[1.0, float("nan")], [0.0, 1.0]])
value = Crit()(model(torch.randn(2, 3)), labels)
value.backward()
''',
        ("model.weight.grad", 6, "design"),
    ),
    "mask as a factor": (
        """
net = nn.Linear(1, 1)
t = torch.tensor([[1.0], [float("nan")]])
m = torch.isfinite(t).float()
loss = (((net(torch.ones(2, 1)) - t) ** 2) * m).sum()
loss.backward()
""",
        ("loss", 5, "design"),
    ),
    "metric of a chained call": (
        """
from dataclasses import dataclass
@dataclass
class Metric:
    tp: float; fp: float; fn: float
    f1: float = 0.0
    def compute(self):
        p = torch.tensor(self.tp) / torch.tensor(self.tp + self.fp)
        self.f1 = (2 * p / (p + 1)).item()
        return self
metrics = [Metric(0.0, 0.0, 3.0).compute(), Metric(1.0, 1.0, 0.0).compute()]
""",
        ("metrics[0].f1", 8, "design"),
    ),
    "nan in percent": (
        '''
text = """name,pct
a,10%
b,nan%
c,30%"""
vals = [float(line.rsplit(",", 1)[1].rstrip("%")) / 100 for line in text.splitlines()[1:]]
y = torch.tensor(vals)
model = nn.Linear(1, 1)
loss = F.mse_loss(model(torch.ones(3, 1)).squeeze(), y)
loss.backward()
''',
        ("y", 7, "data"),
    ),
}

DEALT_WITH = {
    "hmm setup": """
emit = torch.tensor([[0.7, 0.3, 0.0], [0.4, 0.6, 0.0]])
log_start, log_emit = torch.tensor([1.0, 0.0]).log(), emit.log()
log_move = torch.tensor([[0.9, 0.1], [0.0, 1.0]]).log()
""",
    "viterbi": """
emit = torch.tensor([[0.7, 0.3], [0.0, 1.0]]).log()
move = torch.tensor([[0.5, 0.5], [0.0, 1.0]]).log()
score = torch.tensor([1.0, 0.0]).log()
back = []
for s in [0, 1, 1]:
    best, arg = (score[:, None] + move).max(0)
    score = best + emit[:, s]
    back.append(arg)
""",
    "early mask": """
net = nn.Linear(2, 1)
x, y = torch.randn(5, 2), torch.randn(5, 1)
y[2] = float("nan")
ok = ~y.isnan()
loss = (net(x)[ok] - y[ok]).square().mean()
loss.backward()
""",
    "early fill": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
x, y = torch.randn(5, 2), torch.randn(5, 1)
y[2] = float("nan")
for _ in range(3):
    seen = torch.isfinite(y)
    safe = torch.where(seen, y, torch.zeros_like(y))
    loss = ((net(x) - safe) ** 2 * seen).sum() / seen.sum()
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "double where": """
w = torch.tensor([0.0, 4.0], requires_grad=True)
def safe_sqrt(x):
    return torch.where(x > 0, torch.where(x > 0, x, 1.0).sqrt(), 0.0)
safe_sqrt(w).sum().backward()
""",
    "returns first nan": """
prices = pd.Series([1.0, 2.0, 3.0])
ret = torch.tensor(prices.pct_change().to_numpy())
x = ret[1:]
vol = x.std()
""",
    "diff edges": """
p = torch.tensor([1.0, 2.0, 4.0, 3.0])
grad = torch.cat([torch.tensor([float("nan")]), p[1:] - p[:-1]])
inner = grad[1:]
mean = inner.mean()
""",
    "roll edge": """
p = torch.tensor([0.0, 2.0, 4.0])
ratio = p / p.roll(1)
ratio[0] = 0
ratio[1] = 1
out = ratio.sum()
""",
    "nan table part": """
table = torch.full((3, 4), float("nan"))
table[0] = torch.arange(4.0)
table[1, :2] = 1.0
row = table[0]
""",
    "padded sequences": """
seqs = [torch.randn(3), torch.randn(5)]
padded = nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=float("nan"))
means = padded.nanmean(1)
""",
    "isnan function": """
def drop(x):
    keep = ~torch.isnan(x).any(1)
    return x[keep]
raw = torch.randn(4, 2); raw[1, 0] = float("nan")
clean = drop(raw)
net = nn.Linear(2, 1)
net(clean).mean().backward()
""",
    "text filtered": r"""
text = "1.0,nan\n2.0,3.0"
rows = [[float(v) for v in l.split(",")] for l in text.splitlines()]
rows = [r for r in rows if all(v == v for v in r)]
X = torch.tensor(rows)
out = nn.Linear(2, 1)(X)
""",
    "df dropna": """
df = pd.DataFrame({"a": [1.0, None, 3.0], "b": [1.0, 2.0, 3.0]})
X = torch.tensor(df.dropna().to_numpy(), dtype=torch.float32)
nn.Linear(2, 1)(X).mean().backward()
""",
    "log mask added": """
mask = torch.tensor([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
scores = torch.randn(2, 3)
masked = scores + mask.log()
p = masked.softmax(-1)
""",
    "alibi causal": """
n = 4
bias = torch.zeros(n, n).masked_fill(torch.ones(n, n).triu(1).bool(), float("-inf"))
out = F.scaled_dot_product_attention(*torch.randn(3, 1, 1, n, 4), attn_mask=bias)
""",
    "early stopping": """
class EarlyStopping:
    def __init__(self): self.best = float("inf"); self.bad = 0
    def step(self, v):
        if v < self.best: self.best = v
        else: self.bad += 1
        return self.bad > 2
es = EarlyStopping()
tracker = {"best": -float("inf"), "hist": [0.5, 0.4]}
""",
    "minmax running": """
lo, hi = torch.full((3,), float("inf")), torch.full((3,), -float("inf"))
for b in torch.randn(4, 5, 3):
    lo = torch.minimum(lo, b.min(0).values)
    hi = torch.maximum(hi, b.max(0).values)
""",
    "infinite clip": """
net = nn.Linear(2, 1)
net(torch.randn(3, 2)).sum().backward()
norm = nn.utils.clip_grad_norm_(net.parameters(), float("inf"))
""",
    "half eps": """
x = torch.zeros(2, 4, dtype=torch.float16)
out = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True) + 1e-6).half()
""",
    "neg inf score beam": """
scores = torch.full((3,), float("-inf")); scores[0] = 0
logp = torch.randn(3, 5).log_softmax(-1)
total = scores[:, None] + logp
top, idx = total.view(-1).topk(3)
""",
    "nan check raise": """
def train(net, x, y):
    out = net(x)
    loss = F.mse_loss(out, y)
    if not torch.isfinite(loss):
        return None
    loss.backward()
    return loss.item()
net = nn.Linear(1, 1)
y = torch.tensor([[float("nan")]])
res = train(net, torch.ones(1, 1), y)
""",
    "ema none": """
class Meter:
    def __init__(self): self.value = float("nan")
    def update(self, v): self.value = v if math.isnan(self.value) else 0.9 * self.value + 0.1 * v
m = Meter()
val = Meter()
for v in [1.0, 2.0]: m.update(v)
""",
    "metrics nan row": """
rows = [{"epoch": 0, "val": float("nan")}, {"epoch": 1, "val": 0.3}]
frame = pd.DataFrame(rows)
best = frame["val"].min()
""",
    "huber by hand": """
net = nn.Linear(2, 1)
x, y = torch.randn(4, 2), torch.randn(4, 1)
d = net(x) - y
loss = torch.where(d.abs() < 1, 0.5 * d ** 2, d.abs() - 0.5).mean()
loss.backward()
""",
    "iou nan absent class": """
conf = torch.tensor([[3.0, 1.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 0.0]])
iou = conf.diag() / (conf.sum(0) + conf.sum(1) - conf.diag())
miou = iou[~iou.isnan()].mean()
""",
    "log prob normal support": """
d = torch.distributions.Categorical(probs=torch.tensor([0.5, 0.5, 0.0]))
lp = d.log_prob(torch.tensor([0, 1]))
ent = d.entropy()
""",
    "inf in interval": """
bounds = torch.tensor([[0.0, float("inf")], [-float("inf"), 1.0]])
x = torch.tensor([5.0, -3.0])
inside = (x >= bounds[:, 0]) & (x <= bounds[:, 1])
clamped = x.clamp(bounds[:, 0], bounds[:, 1])
""",
    "inverse square distances": """
d2 = torch.cdist(torch.randn(3, 2), torch.randn(3, 2))
d2.fill_diagonal_(float("inf"))
near = d2.min(1).values
w = 1 / d2
""",
    "random mae mask": """
imgs = torch.randn(2, 3, 4)
imgs[0, 1] = float("nan")
valid = imgs.isfinite()
stats = {"mean": imgs[valid].mean().item(), "n": int(valid.sum())}
""",
    "log likelihood impossible": """
table = torch.tensor([[0.5, 0.5], [1.0, 0.0]])
logt = table.log()
best_path = logt.argmax(-1)
""",
    "sigmoid inf logit": """
logit = torch.logit(torch.tensor([0.0, 0.5, 1.0]))
p = torch.sigmoid(logit)
""",
    "text table with gap as note": r"""
text = "a 1.0\nb nan"
table = {k: float(v) for k, v in (l.split() for l in text.splitlines())}
known = {k: v for k, v in table.items() if not math.isnan(v)}
""",
    "first row part": """
out = torch.randn(3, 4)
out[2] = float("nan")
head = out[:2]
""",
    "interp nan then fill": """
x = np.array([1.0, np.nan, 3.0])
i = np.arange(3)
filled = np.interp(i, i[~np.isnan(x)], x[~np.isnan(x)])
t = torch.tensor(filled)
""",
    "scan nan grads skip": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), 0.1)
for x in [torch.ones(1, 2), torch.full((1, 2), float("inf")), torch.ones(1, 2)]:
    opt.zero_grad()
    net(x).sum().backward()
    if all(p.grad.isfinite().all() for p in net.parameters()):
        opt.step()
opt.zero_grad()
""",
    "chain fit": """
class Scaler:
    def fit(self, x):
        m = torch.isfinite(x)
        self.mean = torch.nanmean(x, 0)
        return self
x = torch.randn(4, 2); x[0, 0] = float("nan")
sc = Scaler().fit(x)
""",
    "text scaled then masked": """
text = "10 nan 30"
vals = torch.tensor([float(v) / 100 for v in text.split()])
keep = ~torch.isnan(vals)
mean = vals[keep].mean()
""",
    "grad finite diff": """
x = torch.tensor([1.0, 2.0], requires_grad=True)
g, = torch.autograd.grad((x ** 2).sum(), x)
norm = g.norm()
""",
    "clipped then log": """
counts = torch.tensor([0.0, 3.0])
lg = counts.clamp(min=1e-6).log()
lg2 = torch.log1p(counts)
tot = (lg + lg2).sum()
""",
    "log then clamp": """
spec = torch.tensor([0.0, 1.0, 10.0])
db = (10 * spec.log10()).clamp(min=-80)
raw_db = 10 * torch.log10(spec)
floor = torch.maximum(raw_db, torch.tensor(-80.0))
""",
    "log softplus gate": """
logits = torch.randn(2, 3)
gate = torch.tensor([[1., 1., 0.], [1., 1., 1.]])
logp = F.log_softmax(logits + torch.log(gate), -1)
sample = logp.exp()
""",
    "log prior posterior": """
prior = torch.tensor([0.0, 0.5, 0.5]).log()
like = torch.randn(4, 3).log_softmax(-1).sum(0)
post = (prior + like) - torch.logsumexp(prior + like, 0)
""",
    "huber loop": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
x, y = torch.randn(6, 2), torch.randn(6, 1)
for _ in range(3):
    d = net(x) - y
    loss = torch.where(d.abs() < 1, d ** 2 / 2, d.abs() - 0.5).mean()
    opt.zero_grad(); loss.backward(); opt.step()
hist = [loss.item()]
""",
    "nan init then all filled": """
best = torch.full((3,), float("nan"))
for i in range(3):
    best[i] = torch.rand(1).item()
top = best.max()
""",
    "nan slots unfilled note": """
res = torch.full((4,), float("nan"))
for i, lr in enumerate([0.1, 0.2]):
    res[i] = lr * 2
done = res[:2]
""",
    "walrus loop": """
h = torch.ones(4)
W = torch.eye(4) * 0.5
outs = [h := W @ h for _ in range(5)]
inf = float("inf")
best = min([inf] + [o.sum().item() for o in outs])
""",
    "ratio border nan": """
x = torch.tensor([0.0, 1.0, 2.0])
cum = x.cumsum(0)
share = x / cum
tail = share[1:]
m = tail.mean()
""",
    "half safe": """
x = torch.randn(4, 8).half()
n = x / (x.float().norm(dim=-1, keepdim=True) + 1e-8).half()
y = x / x.norm(dim=-1, keepdim=True).clamp_min(1e-4)
""",
    "half div scalar": """
scores = torch.randn(2, 4).half() / 8 ** 0.5
p = scores.float().softmax(-1).half()
closed = torch.tensor([[False, True, True, True], [False, False, True, True]])
mask = torch.zeros(2, 4).half().masked_fill(closed, float("-inf"))
q = (scores + mask).softmax(-1)
""",
    "half mask min": """
mask = torch.full((3, 3), torch.finfo(torch.float16).min, dtype=torch.float16).triu(1)
att = (torch.randn(3, 3).half() + mask).softmax(-1)
""",
    "inf norm clip log": """
net = nn.Linear(2, 1)
net(torch.randn(3, 2)).sum().backward()
log = {"norm": nn.utils.clip_grad_norm_(net.parameters(), max_norm=math.inf).item(), "limit": math.inf}
""",
    "nan guarded step": """
def train(net, opt, data):
    skipped = 0
    for x, y in data:
        opt.zero_grad()
        loss = F.mse_loss(net(x), y)
        if torch.isnan(loss):
            skipped += 1
            continue
        loss.backward()
        opt.step()
    return skipped
net = nn.Linear(1, 1)
data = [(torch.ones(1, 1), torch.ones(1, 1)), (torch.ones(1, 1), torch.tensor([[float("nan")]]))]
n = train(net, torch.optim.SGD(net.parameters(), lr=0.1), data)
""",
    "dataset with gaps collated": """
class Gaps(torch.utils.data.Dataset):
    def __init__(self):
        self.y = torch.tensor([1.0, float("nan"), 3.0])
    def __len__(self): return 3
    def __getitem__(self, i): return torch.ones(1), torch.nan_to_num(self.y[i]), self.y[i].isfinite()
net = nn.Linear(1, 1)
ds = Gaps()
for x, y, ok in DataLoader(ds, batch_size=3):
    loss = (((net(x).squeeze(1) - y) ** 2) * ok).sum()
    loss.backward()
""",
    "ctc inf zero": """
lp = torch.randn(5, 1, 3).log_softmax(-1).requires_grad_()
loss = F.ctc_loss(lp, torch.tensor([[1, 1, 1, 2]]), torch.tensor([5]), torch.tensor([2]), zero_infinity=True)
loss.backward()
""",
    "rank scores": """
ids = torch.tensor([0, 2])
scores = torch.full((2, 4), -torch.inf)
scores[torch.arange(2), ids] = 1.0
order = scores.argsort(descending=True)
dcg = (1 / torch.log2(torch.arange(2, 6).float())).sum()
""",
    "part of data": """
data = torch.randn(5, 3); data[4] = float("nan")
train = data[:4]
net = nn.Linear(3, 1)
net(train).mean().backward()
""",
    "mask product early": """
t = torch.tensor([1.0, float("nan")])
m = torch.isfinite(t).float()
w = torch.ones(2, requires_grad=True)
loss = ((w - torch.nan_to_num(t)) ** 2 * m).sum() / m.sum()
loss.backward()
""",
    "bigrams of which some never begin": """
N = torch.tensor([[2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
log_p = (N / N.sum(1, keepdim=True).clamp(min=1)).log()
""",
}
