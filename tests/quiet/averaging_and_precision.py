"""Training aids: moving averages of weights, stochastic weight averaging, mixed precision, accumulation, clipping."""

# %%
import contextlib
import copy
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.checkpoint import checkpoint, checkpoint_sequential
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
x = torch.randn(64, 6)
y = (x[:, :1] * 2 - x[:, 1:2]).tanh()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)


def make():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 1))


# %%
class EMA:
    def __init__(self, model, decay=0.9):
        self.decay = decay
        self.shadow = {n: p.detach().clone() for n, p in model.named_parameters() if p.requires_grad}
        self.backup = {}

    @torch.no_grad()
    def update(self, model):
        for n, p in model.named_parameters():
            self.shadow[n].mul_(self.decay).add_(p, alpha=1 - self.decay)

    def apply_shadow(self, model):
        for n, p in model.named_parameters():
            self.backup[n] = p.data
            p.data = self.shadow[n]

    def restore(self, model):
        for n, p in model.named_parameters():
            p.data = self.backup[n]
        self.backup = {}


model = make()
ema = EMA(model)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True)
for xb, yb in loader:
    loss = F.mse_loss(model(xb), yb)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    ema.update(model)

# %%
ema.apply_shadow(model)
model.eval()
with torch.no_grad():
    shadow_loss = F.mse_loss(model(x), y).item()
ema.restore(model)
model.train()
shadow_loss

# %%
teacher = copy.deepcopy(model)
for p in teacher.parameters():
    p.requires_grad_(False)
for xb, yb in loader:
    student_out = model(xb + 0.1 * torch.randn_like(xb))
    with torch.no_grad():
        teacher_out = teacher(xb)
    loss = F.mse_loss(student_out, yb) + 0.1 * F.mse_loss(student_out, teacher_out)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    with torch.no_grad():
        for ps, pt in zip(model.parameters(), teacher.parameters()):
            pt.lerp_(ps, 0.1)
        for bs, bt in zip(model.buffers(), teacher.buffers()):
            bt.copy_(bs)
loss.item()

# %%
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=4)
swa_scheduler = SWALR(optimizer, swa_lr=0.01, anneal_epochs=2)
for epoch in range(4):
    for xb, yb in loader:
        optimizer.zero_grad()
        F.mse_loss(model(xb), yb).backward()
        optimizer.step()
        ema_model.update_parameters(model)
    if epoch >= 2:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
update_bn(loader, swa_model)
swa_model.n_averaged

# %%
swa_model.eval()
with torch.no_grad():
    print(F.mse_loss(swa_model(x), y))

# %%
# Mixed precision on the CPU, with the scaler switched off where there is no GPU.
device_type = "cuda" if torch.cuda.is_available() else "cpu"
scaler = torch.amp.GradScaler(device_type, enabled=device_type == "cuda")
net = make()
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)
amp_losses = []
for xb, yb in loader:
    with torch.autocast(device_type, dtype=torch.bfloat16):
        out = net(xb)
        loss = F.mse_loss(out.float(), yb)
    opt.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    grad_norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm=1.0)
    scaler.step(opt)
    scaler.update()
    amp_losses.append(loss.detach().float())
out.dtype, torch.stack(amp_losses).mean(), grad_norm

# %%
# A scaler that is on, and a context that may be none.
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**8, growth_interval=2)
ctx = torch.autocast("cpu", dtype=torch.bfloat16) if True else contextlib.nullcontext()
for xb, yb in loader:
    with ctx:
        loss = F.mse_loss(net(xb).float(), yb)
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    opt.zero_grad()
scaler.get_scale()

# %%
# Gradient accumulation.
accumulation_steps = 2
opt.zero_grad()
running = 0.0
for i, (xb, yb) in enumerate(loader):
    loss = F.mse_loss(net(xb), yb) / accumulation_steps
    loss.backward()
    running += loss.item() * accumulation_steps
    if (i + 1) % accumulation_steps == 0:
        torch.nn.utils.clip_grad_value_(net.parameters(), 0.5)
        opt.step()
        opt.zero_grad()
running / len(loader)

# %%
# Gradients of several losses: summed and back-propagated at once, or retained.
head_a, head_b = nn.Linear(16, 1), nn.Linear(16, 1)
trunk = nn.Sequential(nn.Linear(6, 16), nn.Tanh())
opt = torch.optim.Adam([*trunk.parameters(), *head_a.parameters(), *head_b.parameters()], lr=1e-2)
for xb, yb in loader:
    h = trunk(xb)
    losses = {"a": F.mse_loss(head_a(h), yb), "b": F.l1_loss(head_b(h), -yb)}
    total = sum(losses.values())
    opt.zero_grad()
    total.backward()
    opt.step()
{k: round(v.item(), 3) for k, v in losses.items()}

# %%
log_vars = nn.Parameter(torch.zeros(2))
opt.add_param_group({"params": [log_vars], "lr": 1e-3})
for xb, yb in loader:
    h = trunk(xb)
    task_losses = [F.mse_loss(head_a(h), yb), F.mse_loss(head_b(h), -yb)]
    total_loss = 0
    for task_loss, log_var in zip(task_losses, log_vars):
        total_loss += torch.exp(-log_var) * task_loss + log_var
    opt.zero_grad()
    total_loss.backward()
    opt.step()
log_vars.data

# %%
h = trunk(x)
la, lb = head_a(h).pow(2).mean(), head_b(h).pow(2).mean()
ga = torch.autograd.grad(la, trunk.parameters(), retain_graph=True)
gb = torch.autograd.grad(lb, trunk.parameters())
cosine = F.cosine_similarity(torch.cat([g.flatten() for g in ga]), torch.cat([g.flatten() for g in gb]), dim=0)
cosine


# %%
# Checkpointing trades time for memory.
class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(4)])
        self.out = nn.Linear(6, 1)

    def forward(self, x):
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False)
        return self.out(x)


deep = Deep()
opt = torch.optim.SGD(deep.parameters(), lr=0.1)
for xb, yb in loader:
    loss = F.mse_loss(deep(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
staged = checkpoint_sequential(nn.Sequential(*deep.layers), 2, x[:4].requires_grad_(), use_reentrant=False)
staged.sum().backward()
loss

# %%
# Sharpness-aware minimisation keeps the old weights for one step.
net = make()
base = torch.optim.SGD(net.parameters(), lr=0.05)
for xb, yb in loader:
    F.mse_loss(net(xb), yb).backward()
    with torch.no_grad():
        norm = torch.norm(torch.stack([p.grad.norm(2) for p in net.parameters()]), 2)
        old = [p.clone() for p in net.parameters()]
        for p in net.parameters():
            p.add_(p.grad, alpha=(0.05 / (norm + 1e-12)).item())
    net.zero_grad()
    F.mse_loss(net(xb), yb).backward()
    with torch.no_grad():
        for p, o in zip(net.parameters(), old):
            p.copy_(o)
    base.step()
    base.zero_grad()
norm

# %%
# LBFGS wants a closure.
w = torch.zeros(6, 1, requires_grad=True)
lbfgs = torch.optim.LBFGS([w], max_iter=8, line_search_fn="strong_wolfe")
trace = []


def closure():
    lbfgs.zero_grad()
    loss = F.mse_loss(torch.tanh(x @ w), y)
    loss.backward()
    trace.append(loss.item())
    return loss


for _ in range(2):
    final = lbfgs.step(closure)
final, math.isfinite(trace[-1])

# %%
# Optimisers fused with the backward.
net = make()
optimizer_dict = {p: torch.optim.SGD([p], lr=0.01) for p in net.parameters()}


def optimizer_hook(parameter):
    optimizer_dict[parameter].step()
    optimizer_dict[parameter].zero_grad()


for p in net.parameters():
    p.register_post_accumulate_grad_hook(optimizer_hook)
for xb, yb in loader:
    F.mse_loss(net(xb), yb).backward()
