"""Contrastive learning with a memory bank, and a kNN monitor."""

# %%
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)
N, D, K = 60, 8, 16
images = torch.randn(N, 12)
targets = torch.arange(N) % 3
images += targets[:, None].float()

# %%
encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, D))
memory_bank = F.normalize(torch.randn(N, D), dim=1)
print(memory_bank.shape)
optimizer = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)


def augment(x):
    return x + 0.1 * torch.randn_like(x)


# %%
def nce(features, idx, bank, tau=0.2):
    logits = features @ bank.t() / tau
    return F.cross_entropy(logits, idx)


epoch_losses = []
for epoch in range(3):
    total, seen = 0.0, 0
    for idx in torch.randperm(N).split(20):
        feats = F.normalize(encoder(augment(images[idx])), dim=1)
        loss = nce(feats, idx, memory_bank)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            memory_bank[idx] = F.normalize(0.5 * memory_bank[idx] + 0.5 * feats, dim=1)
        total += loss.item() * len(idx)
        seen += len(idx)
    epoch_losses.append(total / seen)
epoch_losses


# %%
class FeatureQueue:
    def __init__(self, size, dim):
        self.store = torch.zeros(size, dim)
        self.ptr = 0
        self.full = False

    @torch.no_grad()
    def push(self, feats):
        n = len(feats)
        rows = torch.arange(self.ptr, self.ptr + n) % len(self.store)
        self.store[rows] = feats.detach()
        self.full = self.full or self.ptr + n >= len(self.store)
        self.ptr = (self.ptr + n) % len(self.store)

    def get(self):
        return self.store if self.full else self.store[: self.ptr]


queue = FeatureQueue(K, D)
for idx in torch.randperm(N).split(12):
    q = F.normalize(encoder(augment(images[idx])), dim=1)
    with torch.no_grad():
        k = F.normalize(encoder(augment(images[idx])), dim=1)
    pos = (q * k).sum(1, keepdim=True)
    neg = q @ queue.get().clone().t()
    loss = F.cross_entropy(torch.cat([pos, neg], 1) / 0.2, torch.zeros(len(q), dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    queue.push(k)
queue.get().shape

# %%
z1, z2 = (F.normalize(encoder(augment(images)), dim=1) for _ in range(2))
z = torch.cat([z1, z2])
sim = z @ z.t() / 0.5
sim.fill_diagonal_(float("-inf"))
pairs = torch.arange(2 * N).roll(N)
simclr = F.cross_entropy(sim, pairs)
optimizer.zero_grad()
simclr.backward()
optimizer.step()
simclr

# %%
# Supervised: several positives in each row.
mask = targets[:, None] == targets[None]
mask.fill_diagonal_(False)
feats = F.normalize(encoder(images), dim=1)
logits = feats @ feats.t() / 0.2
logits = logits - logits.max(1, keepdim=True).values.detach()
self_mask = torch.eye(N, dtype=torch.bool)
log_prob = logits - logits.masked_fill(self_mask, -torch.inf).logsumexp(1, keepdim=True)
supcon = -(log_prob * mask).sum(1) / mask.sum(1)
supcon.mean().backward()
supcon.shape

# %%
encoder.eval()
with torch.no_grad():
    bank = F.normalize(encoder(images), dim=1)
    dist = bank @ bank.t()
    dist.fill_diagonal_(-1)
    neighbours = dist.topk(5).indices
    votes = targets[neighbours].mode(1).values
knn_acc = (votes == targets).float().mean().item()
knn_acc

# %%
# BYOL: a target that moves slowly and a predictor.
import copy

online, predictor = encoder.train(), nn.Linear(D, D)
target = copy.deepcopy(online)
for p in target.parameters():
    p.requires_grad = False
opt = torch.optim.Adam([*online.parameters(), *predictor.parameters()], lr=1e-3)
for step in range(4):
    v1, v2 = augment(images), augment(images)
    loss = 0
    for a, b in ((v1, v2), (v2, v1)):
        p = F.normalize(predictor(online(a)), dim=1)
        with torch.no_grad():
            t = F.normalize(target(b), dim=1)
        loss = loss + (2 - 2 * (p * t).sum(1)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    tau = 1 - 0.01 * (1 - step / 4)
    for po, pt in zip(online.parameters(), target.parameters()):
        pt.data = tau * pt.data + (1 - tau) * po.data
loss.item()
# %%
# Barlow twins and VICReg: covariances.
za, zb = online(augment(images)), online(augment(images))
c = ((za - za.mean(0)) / za.std(0)).T @ ((zb - zb.mean(0)) / zb.std(0)) / N
on_diag = (torch.diagonal(c) - 1).pow(2).sum()
off_diag = c.flatten()[:-1].view(D - 1, D + 1)[:, 1:].flatten().pow(2).sum()
bt = on_diag + 5e-3 * off_diag
opt.zero_grad()
bt.backward()
opt.step()
c.detach().numpy().diagonal()
