"""Looking at a model: weights before and after, live views, gradients, slices written on purpose, broadcasting."""

# %%
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(18)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
x, y = torch.randn(30, 4), torch.randint(0, 3, (30,))
before = model[0].weight.clone()
before_np = model[0].weight.detach().numpy().copy()
start = [p.detach().clone() for p in model.parameters()]
live = model[0].weight
before[0], live.shape

# %%
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(5):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
change = (model[0].weight - before).abs().max().item()
moved = [(p - q).norm().item() for p, q in zip(model.parameters(), start)]
change, moved, np.abs(live.detach().numpy() - before_np).max()

# %%
weight_grad = model[0].weight.grad
first_layer = model[0]
w, b = first_layer.weight, first_layer.bias
w.shape, b[:2], weight_grad.abs().mean(), w.grad is weight_grad

# %%
out = model(x)
probs = F.softmax(out, dim=1)
conf, pred = probs.max(dim=1)
wrong = pred != y
worst = conf[wrong].argsort(descending=True)[:3]
probs[:2], worst

# %%
loss = F.cross_entropy(model(x), y)
print(loss)
print(loss.grad_fn, loss.grad_fn.next_functions[0][0])
grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
loss.backward()
[g.norm().item() for g in grads]

# %%
grid = torch.zeros(4, 4)
row, corner = grid[0], grid[:2, :2]
row += 1
corner.fill_(5)
grid[:, 3] = torch.arange(4.0)
grid.diagonal().add_(10)
grid

# %%
a = np.arange(6, dtype=np.float32).reshape(2, 3)
t = torch.from_numpy(a)
print("a tensor and its array share memory on purpose here:", t.data_ptr() == a.ctypes.data)
independent = torch.tensor(a)
copied = torch.from_numpy(a.copy())
independent += 1
copied *= 2
a, independent, copied

# %%
v = torch.arange(3.0)
outer = v[:, None] * v[None, :]
tiled = v.expand(4, 3)
added = tiled + torch.randn(4, 3)
repeated = v.repeat(4, 1)
repeated[0] = 0
stacked = torch.stack([v] * 3)
stacked[1] = 7
rows = [v.clone() for _ in range(3)]
rows[0][0] = 9
template = [0.0] * 3
template[1] = 1.0
outer, added.shape, stacked, v

# %%
b1, b2 = torch.zeros(5), torch.zeros(5)
b1[0] = 1.0
for _ in range(6):
    b2.copy_(0.5 * (b1.roll(1) + b1.roll(-1)))
    b1, b2 = b2, b1
b1

# %%
ranges = torch.arange(12).view(3, 4)
flat = ranges.flatten()
swapped = ranges.t()
parts = ranges.chunk(2, dim=1)
splits = torch.split(ranges, [1, 2])
unbound = ranges.unbind(0)
copied = ranges[[0, 2]]
copied[0] = -1
swapped.shape, parts[0], unbound[0], copied, flat.is_contiguous()

# %%
masked = torch.randn(5, 5)
upper = masked.triu()
masked[masked < 0] = 0
masked.clamp_(max=1).fill_diagonal_(1)
normalised = masked / masked.amax(1, keepdim=True)
top = normalised.masked_fill(normalised < 0.2, float("-inf")).softmax(1)
allowed = torch.eye(5, dtype=torch.bool)
bias = torch.where(allowed, 0.0, -torch.inf)
upper.sum(), top.isnan().any(), bias[0]

# %%
named = dict(model.named_parameters())
by_size = sorted(named.items(), key=lambda item: item[1].numel(), reverse=True)
summary = {n: (tuple(p.shape), p.requires_grad, p.dtype) for n, p in named.items()}
modules = {n: m for n, m in model.named_modules()}
total = sum(p.numel() for p in model.parameters())
by_size[0][0], total, list(modules)

# %%
with torch.no_grad():
    for p in model.parameters():
        p.mul_(0.5)
    model[2].bias.zero_()
    model[0].weight[:, 0] = 0.0
    model[2].weight.data.normal_(0, 0.1)
pruned_rows = (model[0].weight == 0).sum(1)
pruned_rows

# %%
# Zeroing one unit at a time, and putting it back.
base_loss = F.cross_entropy(model(x), y).item()
importance = torch.zeros(8)
with torch.no_grad():
    for unit in range(8):
        kept = model[0].weight[unit].clone()
        model[0].weight[unit] = 0
        importance[unit] = F.cross_entropy(model(x), y) - base_loss
        model[0].weight[unit] = kept
importance

# %%
# The loss along a line between two points in weight space.
end = [p.detach().clone() for p in model.parameters()]
along = []
for t in torch.linspace(0, 1, 5):
    with torch.no_grad():
        for p, p0, p1 in zip(model.parameters(), start, end):
            p.copy_(torch.lerp(p0, p1, t))
        along.append(F.cross_entropy(model(x), y).item())
along

# %%
# A number put into a list of a tensor's values, and a table that pandas or a plot would take.
table = np.zeros((3, 3), dtype=np.int64)
for t, p in zip(y.tolist(), model(x).argmax(1).tolist()):
    table[t, p] += 1
recall = np.divide(table.diagonal(), table.sum(1), out=np.full(3, np.nan), where=table.sum(1) > 0)
features = model[:2](x).detach().numpy()
centres = {int(c): features[y.numpy() == c].mean(0) for c in y.unique()}
table, np.nanmean(recall), centres[0].shape
