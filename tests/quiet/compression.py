"""Pruning, fake quantisation, distillation, low-rank adapters, SWA, a learning-rate finder, early stopping."""

# %%
import copy
import io
import math
import time
from collections import OrderedDict, defaultdict

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.prune as prune
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(4)
X = torch.randn(120, 10)
y = (X[:, 0] * X[:, 1] > 0).long()
train_loader = DataLoader(TensorDataset(X[:96], y[:96]), batch_size=24, shuffle=True)
val_loader = DataLoader(TensorDataset(X[96:], y[96:]), batch_size=24)
teacher = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 2))


def train_one_epoch(model, opt, loss_fn=F.cross_entropy):
    model.train()
    losses = []
    for xb, yb in train_loader:
        opt.zero_grad()
        loss = loss_fn(model(xb), yb)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@torch.no_grad()
def evaluate(model):
    model.eval()
    correct = sum((model(xb).argmax(1) == yb).sum() for xb, yb in val_loader)
    return correct.item() / 24


# %%
# Range test of the learning rate; model and optimizer go back to where they were.
opt = torch.optim.SGD(teacher.parameters(), lr=1e-5)
model_state = copy.deepcopy(teacher.state_dict())
opt_state = copy.deepcopy(opt.state_dict())
lrs, smoothed, best = [], [], float("inf")
avg, beta, lr = 0.0, 0.9, 1e-5
it = iter(train_loader)
for i in range(1, 30):
    try:
        xb, yb = next(it)
    except StopIteration:
        it = iter(train_loader)
        xb, yb = next(it)
    for g in opt.param_groups:
        g["lr"] = lr
    loss = F.cross_entropy(teacher(xb), yb)
    avg = beta * avg + (1 - beta) * loss.item()
    s = avg / (1 - beta**i)
    if i > 5 and s > 4 * best:
        break
    best = min(best, s)
    opt.zero_grad()
    loss.backward()
    opt.step()
    lrs.append(lr)
    smoothed.append(s)
    lr *= 1.5
teacher.load_state_dict(model_state)
opt.load_state_dict(opt_state)
suggestion = lrs[int(np.argmin(np.gradient(np.array(smoothed))))]
suggestion


# %%
class EarlyStopping:
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best_score, self.best_state, self.counter, self.stop = -math.inf, None, 0, False

    def __call__(self, score, model):
        if score > self.best_score + self.delta:
            self.best_score, self.counter = score, 0
            self.best_state = copy.deepcopy(model.state_dict())
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience


opt = torch.optim.Adam(teacher.parameters(), lr=5e-3)
stopper = EarlyStopping()
log = defaultdict(list)
for epoch in range(8):
    log["train"].append(train_one_epoch(teacher, opt))
    log["val"].append(evaluate(teacher))
    stopper(log["val"][-1], teacher)
    if stopper.stop:
        break
teacher.load_state_dict(stopper.best_state)
dict(log)

# %%
student = nn.Sequential(nn.Linear(10, 8), nn.ReLU(), nn.Linear(8, 2))
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
teacher.eval()
T_, alpha = 3.0, 0.7
for epoch in range(3):
    running = {"ce": 0.0, "kd": 0.0}
    for xb, yb in train_loader:
        with torch.no_grad():
            soft = F.softmax(teacher(xb) / T_, dim=1)
        logits = student(xb)
        kd = F.kl_div(F.log_softmax(logits / T_, dim=1), soft, reduction="batchmean") * T_**2
        ce = F.cross_entropy(logits, yb)
        loss = alpha * kd + (1 - alpha) * ce
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        running["ce"] += ce.item()
        running["kd"] += kd.item()
running, evaluate(student)

# %%
pruned = copy.deepcopy(teacher)
targets = [(m, "weight") for m in pruned.modules() if isinstance(m, nn.Linear)]
prune.global_unstructured(targets, pruning_method=prune.L1Unstructured, amount=0.3)
opt = torch.optim.SGD(pruned.parameters(), lr=0.05)
train_one_epoch(pruned, opt)
for m, name in targets:
    prune.remove(m, name)
sparsity = {n: (m.weight == 0).float().mean().item() for n, m in pruned.named_modules() if isinstance(m, nn.Linear)}
sparsity, evaluate(pruned)

# %%
# Lottery ticket: the first weights, masks, rewinding.
net = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
initial_state = copy.deepcopy(net.state_dict())
masks = {n: torch.ones_like(p) for n, p in net.named_parameters() if p.dim() > 1}
for round_ in range(2):
    opt = torch.optim.Adam(net.parameters(), lr=1e-2)
    for xb, yb in train_loader:
        loss = F.cross_entropy(net(xb), yb)
        opt.zero_grad()
        loss.backward()
        for n, p in net.named_parameters():
            if n in masks:
                p.grad.mul_(masks[n])
        opt.step()
    for n, p in net.named_parameters():
        if n in masks:
            alive = p[masks[n].bool()].abs()
            masks[n] = (p.abs() > alive.quantile(0.2)).float() * masks[n]
    net.load_state_dict(initial_state)
    with torch.no_grad():
        for n, p in net.named_parameters():
            if n in masks:
                p.mul_(masks[n])
{n: m.mean().item() for n, m in masks.items()}


# %%
class FakeQuant(nn.Module):
    def __init__(self, bits=8, momentum=0.1):
        super().__init__()
        self.qmax = 2 ** (bits - 1) - 1
        self.momentum = momentum
        self.register_buffer("min_val", torch.tensor(float("inf")))
        self.register_buffer("max_val", torch.tensor(float("-inf")))

    def forward(self, x):
        if self.training:
            lo, hi = torch.aminmax(x.detach())
            self.min_val.copy_(torch.minimum(self.min_val, lo))
            self.max_val.copy_(torch.maximum(self.max_val, hi))
        scale = torch.maximum(self.max_val.abs(), self.min_val.abs()) / self.qmax
        q = (x / scale).round().clamp(-self.qmax - 1, self.qmax) * scale
        return x + (q - x).detach()


class QLinear(nn.Linear):
    def __init__(self, *args):
        super().__init__(*args)
        self.wq, self.aq = FakeQuant(), FakeQuant()

    def forward(self, x):
        return F.linear(self.aq(x), self.wq(self.weight), self.bias)


qat = nn.Sequential(QLinear(10, 16), nn.ReLU(), QLinear(16, 2))
unused = FakeQuant()
opt = torch.optim.Adam(qat.parameters(), lr=1e-2)
for _ in range(2):
    train_one_epoch(qat, opt)
int_weight = (qat[0].weight / (qat[0].wq.max_val / 127)).round().clamp(-128, 127).to(torch.int8)
evaluate(qat), int_weight.dtype, unused.min_val


# %%
class LoRA(nn.Module):
    def __init__(self, base, r=2):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad_(False)
        self.A = nn.Parameter(torch.randn(r, base.in_features) * 0.01)
        self.B = nn.Parameter(torch.zeros(base.out_features, r))

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T

    @torch.no_grad()
    def merge(self):
        self.base.weight += self.B @ self.A
        return self.base


adapted = copy.deepcopy(teacher)
adapted[0], adapted[2] = LoRA(adapted[0]), LoRA(adapted[2])
opt = torch.optim.AdamW([p for p in adapted.parameters() if p.requires_grad], lr=1e-2)
train_one_epoch(adapted, opt)
lora_state = {k: v for k, v in adapted.state_dict().items() if "A" in k or "B" in k}
adapted[0], adapted[2] = adapted[0].merge(), adapted[2].merge()
adapted.requires_grad_(True)
lora_state.keys(), evaluate(adapted)

# %%
# Weights of several checkpoints averaged by hand.
checkpoints = []
opt = torch.optim.SGD(student.parameters(), lr=0.1)
for epoch in range(3):
    train_one_epoch(student, opt)
    checkpoints.append({k: v.detach().clone() for k, v in student.state_dict().items()})
averaged = OrderedDict((k, torch.stack([c[k] for c in checkpoints]).mean(0)) for k in checkpoints[0])
soup = copy.deepcopy(student)
soup.load_state_dict(averaged)
task_vector = {k: averaged[k] - checkpoints[0][k] for k in averaged}
sizes = {}
for name, m in {"teacher": teacher, "student": student, "soup": soup}.items():
    buffer = io.BytesIO()
    torch.save(m.state_dict(), buffer)
    sizes[name] = buffer.tell()
sizes, evaluate(soup)

# %%
# Time and memory, by profiler and by hand.
from torch.profiler import ProfilerActivity, profile, record_function

x_big = torch.randn(256, 10)
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as prof:
    with record_function("inference"):
        teacher(x_big)
table = prof.key_averages().table(sort_by="cpu_time_total", row_limit=3)
timings = []
for _ in range(5):
    t0 = time.perf_counter()
    with torch.inference_mode():
        out = teacher(x_big)
    timings.append(time.perf_counter() - t0)
np.median(timings) > 0, out.shape
