"""Correct cells with NaN or infinity in them on purpose, or on the way."""

from __future__ import annotations

CORRECT = {
    "causal": """
n = 4
mask = torch.full((n, n), float("-inf")).triu(1)
mha = nn.MultiheadAttention(8, 2, batch_first=True)
x = torch.randn(2, n, 8)
y, w = mha(x, x, x, attn_mask=mask)
y.sum().backward()
""",
    "best inf": """
best = float("inf"); best_np = np.inf; best_t = torch.tensor(float("inf"))
class Stop:
    def __init__(self): self.best = math.inf; self.last = float("nan")
s = Stop()
for v in [3.0, 2.0]:
    best_t = torch.minimum(best_t, torch.tensor(v))
""",
    "best never": """
best = float("inf")
best_t = torch.tensor(float("inf"))
cfg = {"min": -math.inf, "max": math.inf, "missing": float("nan")}
limits = [(-np.inf, 3.0), (3.0, np.inf)]
""",
    "plateau": """
net = nn.Linear(2, 1)
opt = torch.optim.Adam(net.parameters())
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt)
for _ in range(3):
    opt.zero_grad(); loss = net(torch.randn(4, 2)).pow(2).mean(); loss.backward(); opt.step()
""",
    "edges": """
edges = torch.tensor([-float("inf"), 0.0, 1.0, float("inf")])
idx = torch.bucketize(torch.randn(5), edges)
q = torch.distributions.Normal(0.0, 1.0).icdf(torch.linspace(0, 1, 6))
bins = np.concatenate([[-np.inf], np.quantile(np.arange(9.0), [0.3, 0.6]), [np.inf]])
""",
    "knn": """
pts = torch.randn(6, 2)
d = torch.cdist(pts, pts)
d.fill_diagonal_(float("inf"))
near = d.min(1).values
nn_idx = d.argmin(1)
d2 = torch.cdist(pts, pts) + torch.diag(torch.full((6,), float("inf")))
d3 = torch.cdist(pts, pts)
d3[torch.arange(6), torch.arange(6)] = float("inf")
""",
    "hmm": """
trans = torch.tensor([[0.9, 0.1], [0.0, 1.0]]).log()
init = torch.tensor([1.0, 0.0]).log()
emit = torch.randn(5, 2).log_softmax(-1)
alpha = init + emit[0]
for t in range(1, 5):
    alpha = torch.logsumexp(alpha[:, None] + trans, 0) + emit[t]
total = alpha.logsumexp(0)
""",
    "viterbi": """
score = torch.full((4,), -1e4); score[0] = 0
beam = torch.full((3, 5), float("-inf"))
beam[0, 0] = 0.0
best, idx = (beam + torch.randn(3, 5)).max(1)
""",
    "nanmean iou": """
inter, union = torch.tensor([3.0, 0.0]), torch.tensor([4.0, 0.0])
iou = inter / union
miou = iou.nanmean()
iou_np = (inter / union).numpy()
print(np.nanmean(iou_np))
""",
    "nan to num": """
num, den = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 0.0])
raw = num / den
clean = torch.nan_to_num(raw, posinf=0.0)
fixed = torch.where(torch.isfinite(raw), raw, torch.zeros(()))
""",
    "masked loss right": """
net = nn.Linear(3, 1)
x, y = torch.randn(6, 3), torch.randn(6, 1)
y[2] = float("nan")
ok = ~torch.isnan(y)
loss = (net(x)[ok] - y[ok]).pow(2).mean()
loss.backward()
""",
    "masked where right": """
net = nn.Linear(3, 1)
x, y = torch.randn(6, 3), torch.randn(6, 1)
y[2] = float("nan")
m = torch.isfinite(y)
y0 = torch.where(m, y, 0.0)
loss = (((net(x) - y0) ** 2) * m).sum() / m.sum()
loss.backward()
""",
    "skip bad": """
data = [torch.randn(4, 3) for _ in range(4)]
data[2][0, 0] = float("nan")
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    loss = net(x).pow(2).mean()
    if not torch.isfinite(loss):
        continue
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "skip bad last": """
data = [torch.randn(4, 3) for _ in range(3)]
data[2][0, 0] = float("nan")
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for x in data:
    loss = net(x).pow(2).mean()
    if torch.isnan(loss):
        print("skipped"); continue
    opt.zero_grad(); loss.backward(); opt.step()
""",
    "rolling": """
import pandas as pd
s = pd.Series(np.arange(10.0))
roll = s.rolling(3).mean()
frame = pd.DataFrame({"s": s, "roll": roll, "ret": s.pct_change()})
ready = frame.iloc[3:]
X = torch.tensor(ready.values)
""",
    "placeholder history": """
history = {"train": [], "val": []}
for e in range(4):
    history["train"].append(1.0 / (e + 1))
    history["val"].append(0.5 if e % 2 else float("nan"))
val = float("nan")
log = []
for e in range(3):
    if e == 1:
        val = 0.3
    log.append(val)
""",
    "per class": """
acc = torch.full((4,), float("nan"))
labels, pred = torch.tensor([0, 1, 1, 3]), torch.tensor([0, 1, 0, 3])
for k in range(4):
    m = labels == k
    if m.any():
        acc[k] = (pred[m] == k).float().mean()
""",
    "immovable": """
mass = torch.tensor([1.0, float("inf")])
inv = 1 / mass
force = torch.tensor([2.0, 5.0])
vel = force * inv
""",
    "logit roundtrip": """
p = torch.tensor([0.0, 0.5, 1.0])
t = torch.logit(p)
back = torch.sigmoid(t)
""",
    "padded rows": """
attn = nn.MultiheadAttention(4, 1, batch_first=True)
x = torch.randn(2, 3, 4)
pad = torch.tensor([[False, False, True], [True, True, True]])
with torch.no_grad():
    out, _ = attn(x, x, x, key_padding_mask=pad)
out = out.masked_fill(pad[..., None], 0.0)
""",
    "dijkstra": """
INF = float("inf")
dist = {n: INF for n in "abc"}
dist["a"] = 0.0
arr = np.full(5, np.inf)
arr[0] = 0
for i in range(1, 3):
    arr[i] = min(arr[i], arr[i-1] + 1)
table = [[INF] * 3 for _ in range(3)]
""",
    "demo nan": """
x = torch.tensor([1.0, float("nan"), 3.0])
print(torch.isnan(x))
y = x * 2
a = np.array([1.0, np.nan])
b = a + 1
""",
    "empty": """
buf = torch.empty(4)
out = torch.empty(2, 2)
out[:] = 1.0
big = torch.empty(1000).fill_(float("nan"))
big.normal_()
""",
    "scaler inf": """
net = nn.Linear(2, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0 ** 120)
opt.zero_grad()
loss = net(torch.full((4, 2), 1e4)).pow(2).mean()
scaler.scale(loss).backward()
scaler.step(opt)
scaler.update()
""",
    "rebinding": """
w = torch.tensor([1.0, 0.0])
z = w.log() * 0
z = torch.nan_to_num(z)
ratio = torch.tensor([1.0, 2.0]) / torch.tensor([0.0, 1.0])
ratio[torch.isinf(ratio)] = 0.0
""",
    "register mask": """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((3, 3), float("-inf")).triu(1))
        self.lim = float("inf")
    def forward(self, s):
        return (s + self.mask).softmax(-1)
b = Block()
p = b(torch.randn(2, 3, 3))
""",
    "observer": """
class MinMeter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("low", torch.tensor(float("inf")))
        self.register_buffer("high", torch.tensor(-float("inf")))
m = MinMeter()
""",
    "logprob sum": """
logp = torch.tensor([0.5, 0.5, 0.0]).log()
seq = logp[[0, 1, 2]].sum()
best = logp.max()
""",
    "nucleus": """
logits = torch.randn(1, 6)
s, idx = logits.sort(descending=True)
cum = s.softmax(-1).cumsum(-1)
rm = cum > 0.8
rm[..., 1:] = rm[..., :-1].clone(); rm[..., 0] = False
logits[0, idx[0][rm[0]]] = -float("Inf")
probs = F.softmax(logits, -1)
""",
    "lr finder": """
net = nn.Linear(4, 1); start = copy.deepcopy(net.state_dict())
opt = torch.optim.SGD(net.parameters(), lr=1.0)
x, y = torch.randn(16, 4), torch.randn(16, 1)
lrs, found = [], []
for i in range(200):
    loss = F.mse_loss(net(x), y)
    if not math.isfinite(loss.item()) or loss.item() > 1e6:
        break
    opt.zero_grad(); loss.backward(); opt.step()
    found.append(loss.item())
net.load_state_dict(start)
""",
    "impute": """
X = np.random.default_rng(0).random((6, 3)); X[1, 1] = np.nan
m = np.nanmean(X, axis=0)
Xf = np.where(np.isnan(X), m, X)
t = torch.tensor(Xf)
w = torch.nn.Linear(3, 1).double()
out = w(t)
""",
    "confusion": """
cm = torch.tensor([[3.0, 1.0], [0.0, 0.0]])
recall = cm.diag() / cm.sum(1)
recall = torch.where(cm.sum(1) > 0, recall, torch.zeros(2))
prec = cm.diag() / cm.sum(0).clamp(min=1)
""",
    "alibi clamp": """
lo, hi = torch.full((3,), -float("inf")), torch.full((3,), float("inf"))
x = torch.randn(3).clamp(lo, hi)
box = (torch.tensor(-math.inf), torch.tensor(math.inf))
""",
    "cv nan skip": """
table = np.full((3, 3), np.nan)
for i in range(3):
    table[i, i] = i * 0.5
best = np.nanargmax(np.diag(table))
conf = torch.tensor(table)
""",
    "pad nan collate": """
seqs = [torch.randn(3), torch.randn(5)]
padded = nn.utils.rnn.pad_sequence(seqs, batch_first=True, padding_value=float("nan"))
lengths = (~torch.isnan(padded)).sum(1)
mean = torch.nanmean(padded, 1)
""",
    "beam": """
scores = torch.full((2, 3), -float("inf")); scores[:, 0] = 0
for t in range(3):
    logp = torch.randn(2, 3, 5).log_softmax(-1)
    logp[..., 0] = float("-inf")
    total = (scores[..., None] + logp).view(2, -1)
    scores, idx = total.topk(3)
""",
    "td3 min": """
best_q = -np.inf
best_reward = float("-inf")
lows = np.array([-np.inf, -1.0]); highs = np.array([np.inf, 1.0])
space = {"low": torch.tensor(lows), "high": torch.tensor(highs)}
""",
    "mae mask": """
y = torch.tensor([1.0, float("nan"), 2.0])
pred = torch.zeros(3, requires_grad=True)
mask = y.isfinite()
loss = F.l1_loss(pred[mask], y[mask])
loss.backward()
""",
    "gradcheck": """
with torch.no_grad():
    x = torch.tensor([0.0, 1.0])
    r = 1 / x
    r[x == 0] = 0
""",
    "warmup rolling": """
p = torch.arange(6.0)
sma = torch.full_like(p, float("nan"))
sma[2:] = p.unfold(0, 3, 1).mean(-1)
valid = sma[2:]
""",
    "logsumexp cond": """
a = torch.tensor([-float("inf"), -float("inf")])
z = torch.logsumexp(a, 0)
w = torch.tensor([0.0, 1.0]).log()
mix = torch.logsumexp(w + torch.tensor([-1.0, -2.0]), 0)
""",
    "loss inf ctc": """
logp = torch.randn(3, 1, 4).log_softmax(-1)
t = torch.tensor([[1, 1, 2, 2]])
loss = F.ctc_loss(logp, t, torch.tensor([3]), torch.tensor([4]), zero_infinity=True)
""",
    "amp skip loop": """
net = nn.Linear(2, 1); opt = torch.optim.SGD(net.parameters(), lr=0.01)
x = torch.randn(4, 2); x[0] = float("nan")
loss = net(x).mean()
loss.backward()
if all(torch.isfinite(p.grad).all() for p in net.parameters()):
    opt.step()
else:
    opt.zero_grad()
""",
    "pairwise inf sim": """
emb = F.normalize(torch.randn(4, 3), dim=1)
sim = emb @ emb.T / 0.5
sim.fill_diagonal_(-float("inf"))
loss = F.cross_entropy(sim, torch.tensor([1, 0, 3, 2]))
""",
    "interp": """
import pandas as pd
s = pd.Series([1.0, np.nan, 3.0])
filled = s.interpolate()
lag = s.shift(1)
d = pd.DataFrame({"s": s, "lag": lag}).dropna()
t = torch.tensor(d.values)
""",
    "inverse var none": """
sigma = torch.tensor([1.0, float("inf")])
w = sigma ** -2
est = (w * torch.tensor([3.0, 9.0])).sum() / w.sum()
""",
    "cost matrix": """
cost = torch.rand(3, 3)
cost[0, 2] = float("inf")
row = cost.min(1).values
assign = cost.argmin(1)
soft = torch.softmax(-cost, 1)
""",
    "huber bounds": """
class Box:
    def __init__(self, low=-float("inf"), high=float("inf")):
        self.low, self.high = low, high
        self.t = torch.tensor([low, high])
b = Box()
b2 = Box(0.0)
""",
    "summary nan": """
def metric(pred, true):
    if len(true) == 0:
        return float("nan")
    return float((pred == true).float().mean())
out = {"a": metric(torch.ones(2), torch.ones(2)), "b": metric(torch.ones(0), torch.ones(0))}
results = []
for k in (2, 0):
    results.append(metric(torch.ones(k), torch.ones(k)))
""",
    "res clean": """
probs = torch.tensor([0.0, 1.0])
ent = -(torch.special.xlogy(probs, probs)).sum()
safe_log = torch.where(probs > 0, probs, torch.ones(())).log()
""",
    "sparse dropout": """
s = torch.randn(2, 4)
keep = torch.tensor([True, True, False, False])
s2 = torch.where(keep, s, torch.tensor(float("-inf")))
top = s2.max(-1)
lse = s2.logsumexp(-1)
a = s2.softmax(-1)
cat = torch.distributions.Categorical(logits=s2)
smp = cat.sample()
""",
    "extrema": """
lo = torch.tensor(float("inf")); hi = torch.tensor(-float("inf"))
for b in [torch.randn(3), torch.randn(3)]:
    lo = torch.min(lo, b.min()); hi = torch.max(hi, b.max())
seen_max = {}
for k in "ab":
    seen_max[k] = max(seen_max.get(k, float("-inf")), 1.0)
""",
    "nan safe metric": """
tp, fp = torch.tensor([3.0, 0.0]), torch.tensor([1.0, 0.0])
prec = tp / (tp + fp)
prec[torch.isnan(prec)] = 0
macro = prec.mean()
raw = tp / (tp + fp)
macro2 = raw[~raw.isnan()].mean()
""",
    "np divide where": """
a, b = np.ones(3), np.array([1.0, 0.0, 2.0])
out = np.divide(a, b, out=np.zeros_like(a), where=b != 0)
with np.errstate(divide="ignore"):
    logb = np.log(b)
mx = logb.max()
t = torch.tensor(out)
""",
    "missing row mask model": """
X = torch.randn(6, 3); X[2, 1] = float("nan")
observed = ~X.isnan()
X_in = torch.cat([torch.nan_to_num(X), observed.float()], 1)
net = nn.Linear(6, 3)
loss = ((net(X_in) - torch.nan_to_num(X)) ** 2)[observed].mean()
loss.backward()
""",
    "gradient clip inf": """
net = nn.Linear(2, 1)
net(torch.randn(3, 2)).mean().backward()
n = nn.utils.clip_grad_norm_(net.parameters(), float("inf"))
n2 = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0, norm_type=float("inf"))
""",
    "deque window": """
from collections import deque
best_hist = deque([float("inf")] * 3, maxlen=3)
best_hist.append(0.3)
""",
    "early stop class torch": """
class Best:
    def __init__(self): self.loss = torch.tensor(float("inf")); self.state = None
    def step(self, l, m):
        if l < self.loss:
            self.loss, self.state = l.detach(), copy.deepcopy(m.state_dict())
b = Best(); m = nn.Linear(1, 1)
b2 = Best()
b.step(torch.tensor(0.5), m)
""",
    "quantile loss open": """
cuts = torch.cat([torch.tensor([-float("inf")]), torch.linspace(-1, 1, 5), torch.tensor([float("inf")])])
x = torch.randn(10)
which = (x[:, None] > cuts[:-1]) & (x[:, None] <= cuts[1:])
cdf = torch.distributions.Normal(0., 1.).cdf(cuts)
p = cdf[1:] - cdf[:-1]
""",
    "temp nan check raise": """
def check(t):
    if torch.isnan(t).any():
        raise ValueError("nan")
    return t
try:
    check(torch.tensor([float("nan")]))
except ValueError:
    pass
bad = torch.tensor([float("nan"), 1.0])
assert torch.isnan(bad).any()
try:
    check(bad)
except ValueError as e:
    print(e)
""",
    "mc importance log": """
logw = torch.tensor([-1.0, -float("inf"), -2.0])
w = (logw - logw.logsumexp(0)).exp()
ess = 1 / (w ** 2).sum()
""",
    "rank loss": """
s = torch.randn(4, requires_grad=True)
m = torch.eye(4).bool()
d = (s[:, None] - s[None]).masked_fill(m, float("-inf"))
loss = torch.logsumexp(d, 1).mean()
loss.backward()
""",
    "difference to a bound": """
class Least:
    def __init__(self):
        self.value, self.old = float("inf"), []

    def offer(self, value):
        self.old.append(self.value)
        self.value = min(self.value, value)

least = Least()
least.offer(0.4)
least.offer(0.2)
drop = least.old[0] - least.value
""",
    "limits in dicts": """
def limits(top=float("inf")):
    return {"top": top, "low": -top}

bound = limits()
plan = {"sched": torch.optim.lr_scheduler.ReduceLROnPlateau(torch.optim.SGD(nn.Linear(1, 1).parameters()))}
saved = {"epoch": 1}
saved["sched"] = plan["sched"].state_dict()
row = [float(cell) for cell in "1.0,nan,3.0".split(",")]
""",
    "shortest ways in numpy": """
ways = np.array([[0.0, 1.0], [np.inf, 0.0]])
for k in range(2):
    ways = np.minimum(ways, ways[:, k : k + 1] + ways[k : k + 1])
""",
    "pandas merge": """
import pandas as pd
a = pd.DataFrame({"k": [1, 2], "u": [0.1, 0.2]}); b = pd.DataFrame({"k": [2, 3], "v": [1.0, 2.0]})
j = a.merge(b, on="k", how="outer")
j["v"] = j["v"].fillna(0.0)
both = j.dropna()
x = torch.tensor(both[["u", "v"]].to_numpy())
""",
    "ts shift train": """
series = torch.arange(8.0)
diff = torch.full((8,), float("nan")); diff[1:] = series[1:] - series[:-1]
x, y = diff[1:-1, None], diff[2:, None]
net = nn.Linear(1, 1)
loss = F.mse_loss(net(x), y); loss.backward()
""",
    "a diagonal that is no neighbour": """
cost = torch.rand(4, 4)
cost.diagonal()[:] = float("inf")
near = cost.topk(2, largest=False)
""",
    "cells that are no way": """
field = torch.rand(4, 4)
for k in (0, 5, 10):
    field.view(-1)[k] = float("inf")
least = field.min(0)
""",
    "prefixes in log space": """
NEG_INF = -float("inf")
logp = torch.randn(8, 6).log_softmax(-1)
beams = {(): (0.0, NEG_INF)}
for t in range(8):
    grown = {}
    for prefix, (blank, other) in beams.items():
        total = torch.logaddexp(torch.tensor(blank), torch.tensor(other)).item()
        b, n = grown.get(prefix, (NEG_INF, NEG_INF))
        grown[prefix] = (torch.logaddexp(torch.tensor(b), logp[t, 0] + total).item(), n)
        for c in logp[t, 1:].topk(2).indices.add(1).tolist():
            key = prefix + (c,)
            b, n = grown.get(key, (NEG_INF, NEG_INF))
            start = blank if prefix and prefix[-1] == c else total
            grown[key] = (b, torch.logaddexp(torch.tensor(n), logp[t, c] + start).item())
    beams = dict(sorted(grown.items(), key=lambda pair: -max(pair[1]))[:4])
""",
}
