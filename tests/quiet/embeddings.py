"""Embeddings: matrix factorisation, word2vec, siamese and contrastive losses, distillation, prototypes."""

# %%
from collections import Counter

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(10)
rng = np.random.default_rng(10)
ratings = pd.DataFrame(
    {"user": rng.integers(0, 8, 60), "item": rng.integers(0, 6, 60), "rating": rng.integers(1, 6, 60)}
)
ratings.head()

# %%
users = torch.tensor(ratings["user"].to_numpy())
items = torch.tensor(ratings["item"].to_numpy())
stars = torch.tensor(ratings["rating"].to_numpy(), dtype=torch.float32)
loader = DataLoader(TensorDataset(users, items, stars), batch_size=16, shuffle=True)


class MatrixFactorization(nn.Module):
    def __init__(self, n_users, n_items, k=4):
        super().__init__()
        self.user, self.item = nn.Embedding(n_users, k), nn.Embedding(n_items, k)
        self.user_bias, self.item_bias = nn.Embedding(n_users, 1), nn.Embedding(n_items, 1)
        self.global_bias = nn.Parameter(torch.tensor(3.0))

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(1)
        return dot + self.user_bias(u).squeeze() + self.item_bias(i).squeeze() + self.global_bias


mf = MatrixFactorization(8, 6)
opt = torch.optim.Adam(mf.parameters(), lr=0.02, weight_decay=1e-5)
rmse = []
for epoch in range(4):
    squared = 0.0
    for u, i, r in loader:
        loss = F.mse_loss(mf(u, i), r)
        opt.zero_grad()
        loss.backward()
        opt.step()
        squared += loss.item() * len(r)
    rmse.append(np.sqrt(squared / len(ratings)))
rmse

# %%
with torch.no_grad():
    full = mf.user.weight @ mf.item.weight.T + mf.user_bias.weight + mf.item_bias.weight.T + mf.global_bias
seen = torch.zeros(8, 6, dtype=torch.bool)
seen[users, items] = True
recommended = full.masked_fill(seen, -float("inf")).topk(2, dim=1)
recommended.indices

# %%
# Ratings as a matrix with holes: NaN says "not rated".
matrix = torch.full((8, 6), float("nan"))
matrix[users, items] = stars
user_mean = matrix.nanmean(1, keepdim=True)
centred = torch.where(matrix.isnan(), torch.zeros(()), matrix - user_mean.nan_to_num(3.0))
U, S, Vh = torch.linalg.svd(centred, full_matrices=False)
approximation = (U[:, :2] * S[:2]) @ Vh[:2]
approximation.shape

# %%
corpus = "a dog and a cat sat on the mat while the dog and the bird sang to the cat".split()
counts = Counter(corpus)
vocab = [w for w, _ in counts.most_common()]
ids = {w: n for n, w in enumerate(vocab)}
pairs = [(ids[w], ids[c]) for n, w in enumerate(corpus) for c in corpus[max(0, n - 2) : n] + corpus[n + 1 : n + 3]]
centers, contexts = torch.tensor(pairs).T
noise = torch.tensor([counts[w] for w in vocab], dtype=torch.float).pow(0.75)
noise /= noise.sum()


class SkipGram(nn.Module):
    def __init__(self, n, dim=8):
        super().__init__()
        self.center = nn.Embedding(n, dim, sparse=True)
        self.context = nn.Embedding(n, dim, sparse=True)

    def forward(self, c, o, neg):
        v = self.center(c)
        pos = F.logsigmoid((v * self.context(o)).sum(1))
        bad = F.logsigmoid(-torch.bmm(self.context(neg), v.unsqueeze(2)).squeeze(2)).sum(1)
        return -(pos + bad).mean()


sg = SkipGram(len(vocab))
opt = torch.optim.SparseAdam(sg.parameters(), lr=0.02)
for _ in range(3):
    neg = torch.multinomial(noise, len(centers) * 3, replacement=True).view(-1, 3)
    loss = sg(centers, contexts, neg)
    opt.zero_grad()
    loss.backward()
    opt.step()
vectors = F.normalize(sg.center.weight.detach(), dim=1)
similarity = vectors @ vectors.T
similarity.fill_diagonal_(-float("inf"))
{w: vocab[similarity[ids[w]].argmax()] for w in ("dog", "cat")}


# %%
class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 4))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


def contrastive_loss(a, b, same, margin=1.0):
    d = F.pairwise_distance(a, b)
    return (same * d.pow(2) + (1 - same) * F.relu(margin - d).pow(2)).mean()


x = torch.randn(40, 6)
kind = (x[:, 0] > 0).long()
encoder = Encoder()
opt = torch.optim.Adam(encoder.parameters(), lr=1e-2)
for _ in range(4):
    i, j = torch.randint(0, 40, (2, 16))
    a, b = encoder(x[i]), encoder(x[j])
    loss = contrastive_loss(a, b, (kind[i] == kind[j]).float())
    opt.zero_grad()
    loss.backward()
    opt.step()
loss.item()

# %%
triplet = nn.TripletMarginLoss(margin=0.3)
total, batches = 0.0, 0
for _ in range(4):
    anchor = torch.randint(0, 40, (12,))
    positive = torch.stack([torch.nonzero(kind == kind[n])[0, 0] for n in anchor])
    negative = torch.stack([torch.nonzero(kind != kind[n])[-1, 0] for n in anchor])
    loss = triplet(encoder(x[anchor]), encoder(x[positive]), encoder(x[negative]))
    opt.zero_grad()
    loss.backward()
    opt.step()
    total, batches = total + loss.item(), batches + 1
total / batches


# %%
def nt_xent(z1, z2, temperature=0.5):
    z = torch.cat([z1, z2])
    sim = z @ z.T / temperature
    sim.fill_diagonal_(float("-inf"))
    n = len(z1)
    return F.cross_entropy(sim, torch.cat([torch.arange(n, 2 * n), torch.arange(n)]))


for xb in x.split(20):
    z1, z2 = (encoder(xb + 0.1 * torch.randn_like(xb)) for _ in range(2))
    loss = nt_xent(z1, z2)
    opt.zero_grad()
    loss.backward()
    opt.step()

# %%
# MoCo: a slow key encoder and a queue of old keys, in place.
key_encoder = Encoder()
key_encoder.load_state_dict(encoder.state_dict())
key_encoder.requires_grad_(False)
queue = F.normalize(torch.randn(32, 4), dim=1)
pointer = 0
for xb in x.split(8):
    q = encoder(xb)
    with torch.no_grad():
        for pq, pk in zip(encoder.parameters(), key_encoder.parameters()):
            pk.mul_(0.99).add_(pq, alpha=0.01)
        k = key_encoder(xb + 0.1 * torch.randn_like(xb))
    logits = torch.cat([(q * k).sum(1, keepdim=True), q @ queue.T.clone()], dim=1) / 0.1
    loss = F.cross_entropy(logits, torch.zeros(len(xb), dtype=torch.long))
    opt.zero_grad()
    loss.backward()
    opt.step()
    queue[pointer : pointer + len(xb)] = k
    pointer = (pointer + len(xb)) % len(queue)
pointer

# %%
# CLIP: a learned temperature.
text_encoder = Encoder()
logit_scale = nn.Parameter(torch.ones([]) * np.log(1 / 0.07))
opt = torch.optim.AdamW([*encoder.parameters(), *text_encoder.parameters(), logit_scale], lr=1e-3)
for xb in x.split(8):
    logits = logit_scale.exp() * encoder(xb) @ text_encoder(xb.flip(1)).t()
    target = torch.arange(len(xb))
    loss = (F.cross_entropy(logits, target) + F.cross_entropy(logits.t(), target)) / 2
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        logit_scale.clamp_(0, np.log(100))
logit_scale.exp().item()

# %%
# Distillation.
teacher, student = nn.Linear(6, 2), nn.Sequential(nn.Linear(6, 3), nn.ReLU(), nn.Linear(3, 2))
teacher.eval()
opt = torch.optim.SGD(student.parameters(), lr=0.1)
T = 2.0
for xb, kb in zip(x.split(10), kind.split(10)):
    with torch.no_grad():
        teacher_logits = teacher(xb)
    student_logits = student(xb)
    soft = F.kl_div(F.log_softmax(student_logits / T, -1), F.softmax(teacher_logits / T, -1), reduction="batchmean")
    loss = 0.5 * T * T * soft + 0.5 * F.cross_entropy(student_logits, kb)
    opt.zero_grad()
    loss.backward()
    opt.step()

# %%
# Prototypes of classes, and nearest neighbours.
encoder.eval()
with torch.inference_mode():
    bank = torch.cat([encoder(xb) for xb in x.split(10)])
prototypes = torch.stack([bank[kind == c].mean(0) for c in range(2)])
distances = torch.cdist(bank, bank)
distances.fill_diagonal_(torch.inf)
neighbours = distances.topk(3, largest=False).indices
votes = kind[neighbours].float().mean(1).round().long()
(votes == kind).float().mean(), torch.cdist(bank, prototypes).argmin(1)[:5]
