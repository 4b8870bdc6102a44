"""Text: embedding bags, masked language modelling, curriculum, perplexity, co-occurrence, bigrams, checkpoints."""

# %%
import math
import os
import tempfile
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Sampler

torch.manual_seed(0)
corpus = """the cat sat on the mat . the dog sat on the log . a cat and a dog ran . the mat was flat .""".split(".")
sentences = [s.split() for s in corpus if s.strip()]
counter = Counter(w for s in sentences for w in s)
itos = ["<pad>", "<unk>", "<mask>"] + [w for w, _ in counter.most_common()]
stoi = {w: i for i, w in enumerate(itos)}
encode = lambda s: torch.tensor([stoi.get(w, 1) for w in s])
ids = [encode(s) for s in sentences]
len(itos), ids[0]


# %%
def collate(batch):
    labels = torch.tensor([len(b) % 2 for b in batch])
    offsets = torch.tensor([0] + [len(b) for b in batch]).cumsum(0)[:-1]
    return torch.cat(batch), offsets, labels


class Bag(nn.Module):
    def __init__(self, V, d=8):
        super().__init__()
        self.embedding = nn.EmbeddingBag(V, d, mode="mean", sparse=True)
        self.fc = nn.Linear(d, 2)
        self.init_weights()

    def init_weights(self, r=0.5):
        self.embedding.weight.data.uniform_(-r, r)
        self.fc.weight.data.uniform_(-r, r)
        self.fc.bias.data.zero_()

    def forward(self, text, offsets):
        return self.fc(self.embedding(text, offsets))


bag = Bag(len(itos))
sgd = torch.optim.SGD(bag.parameters(), lr=1.0)
scheduler = torch.optim.lr_scheduler.StepLR(sgd, 1, gamma=0.5)
dl = DataLoader(ids, batch_size=2, shuffle=True, collate_fn=collate)
total_acc, total_count, best_acc = 0, 0, None
for epoch in range(3):
    for text, offsets, label in dl:
        sgd.zero_grad()
        out = bag(text, offsets)
        loss = F.cross_entropy(out, label)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(bag.fc.parameters(), 0.1)
        sgd.step()
        total_acc += (out.argmax(1) == label).sum().item()
        total_count += label.size(0)
    acc = total_acc / total_count
    if best_acc is not None and best_acc > acc:
        scheduler.step()
    else:
        best_acc = acc
best_acc


# %%
class ByLength(Sampler):
    def __init__(self, data, bs):
        self.order = sorted(range(len(data)), key=lambda i: len(data[i]))
        self.bs = bs

    def __iter__(self):
        batches = [self.order[i : i + self.bs] for i in range(0, len(self.order), self.bs)]
        for j in torch.randperm(len(batches)).tolist():
            yield batches[j]

    def __len__(self):
        return math.ceil(len(self.order) / self.bs)


def mask_tokens(x, p=0.3):
    x, labels = x.clone(), x.clone()
    prob = torch.full(x.shape, p)
    prob.masked_fill_(x == 0, 0.0)
    masked = torch.bernoulli(prob).bool()
    masked[:, 0] = True
    labels[~masked] = -100
    x[masked] = 2
    return x, labels


class MLM(nn.Module):
    def __init__(self, V, d=16):
        super().__init__()
        self.emb = nn.Embedding(V, d, padding_idx=0)
        self.pos = nn.Parameter(torch.zeros(1, 16, d))
        layer = nn.TransformerEncoderLayer(d, 2, 32, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
        self.decoder = nn.Linear(d, V)
        self.decoder.weight = self.emb.weight

    def forward(self, x):
        h = self.enc(self.emb(x) + self.pos[:, : x.size(1)], src_key_padding_mask=x == 0)
        return self.decoder(h)


pad_collate = lambda b: nn.utils.rnn.pad_sequence(b, batch_first=True)
mlm = MLM(len(itos))
adam = torch.optim.AdamW(mlm.parameters(), lr=5e-3)
warm = torch.optim.lr_scheduler.LambdaLR(adam, lambda s: min(1.0, (s + 1) / 3))
loader = DataLoader(ids, batch_sampler=ByLength(ids, 2), collate_fn=pad_collate)
curve = []
for epoch in range(3):
    for x in loader:
        inp, labels = mask_tokens(x)
        loss = F.cross_entropy(mlm(inp).view(-1, len(itos)), labels.view(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        warm.step()
        curve.append(loss.item())
math.exp(sum(curve[-2:]) / 2)

# %%
# Pseudo-perplexity of each sentence by masking one word at a time.
mlm.eval()
scores = {}
with torch.no_grad():
    for s, x in zip(sentences, ids):
        nll = 0.0
        for i in range(len(x)):
            m = x.clone()
            m[i] = 2
            nll -= F.log_softmax(mlm(m[None])[0, i], -1)[x[i]]
        scores[" ".join(s)] = (nll / len(x)).exp().item()
min(scores, key=scores.get)

# %%
# Curriculum: the share of the data grows; hard sentences are left out for a while.
difficulty = torch.tensor([float(len(x)) for x in ids])
order = difficulty.argsort()
weights = torch.ones(len(ids))
mlm.train()
for share in [0.5, 0.75, 1.0]:
    chosen = order[: max(1, int(share * len(ids)))]
    inp, labels = mask_tokens(pad_collate([ids[i] for i in chosen]))
    per_token = F.cross_entropy(mlm(inp).transpose(1, 2), labels, reduction="none")
    per_sentence = per_token.sum(1) / (labels != -100).sum(1).clamp(min=1)
    loss = (weights[chosen] * per_sentence).mean()
    adam.zero_grad()
    loss.backward()
    adam.step()
    weights[chosen] = (per_sentence.detach() < per_sentence.detach().median() * 2).float()
weights

# %%
# Pairs that were never seen have a PMI of -inf, which is cut off.
V = len(itos)
C = np.zeros((V, V))
for x in ids:
    x = x.tolist()
    for i, a in enumerate(x):
        for b in x[max(0, i - 2) : i]:
            C[a, b] += 1
            C[b, a] += 1
with np.errstate(divide="ignore", invalid="ignore"):
    pmi = np.log(C * C.sum() / (C.sum(0) * C.sum(1)[:, None]))
ppmi = np.maximum(np.nan_to_num(pmi, nan=0.0, neginf=0.0), 0)
U, s, _ = np.linalg.svd(ppmi)
vectors = torch.tensor(U[:, :4] * s[:4], dtype=torch.float32)
cos = F.normalize(vectors, dim=1) @ F.normalize(vectors, dim=1).T
cos.shape, cos.isnan().any()

# %%
embedding = nn.Embedding.from_pretrained(vectors.clone(), freeze=True)
frozen_before = embedding.weight.clone()
with tempfile.TemporaryDirectory() as d:
    path = os.path.join(d, "ckpt.pt")
    torch.save({"model": mlm.state_dict(), "opt": adam.state_dict(), "stoi": stoi, "rng": torch.get_rng_state()}, path)
    state = torch.load(path, weights_only=True)
fresh = MLM(len(itos))
fresh.load_state_dict(state["model"])
fresh_opt = torch.optim.AdamW(fresh.parameters(), lr=5e-3)
fresh_opt.load_state_dict(state["opt"])
torch.set_rng_state(state["rng"])
fresh.eval(), mlm.eval()
torch.allclose(fresh(ids[0][None]), mlm(ids[0][None])), torch.equal(frozen_before, embedding.weight)

# %%
# Bigrams with smoothing, and without: unseen pairs are impossible.
N = torch.zeros(V, V)
for x in ids:
    for a, b in zip(x[:-1], x[1:]):
        N[a, b] += 1
P = (N + 1) / (N + 1).sum(1, keepdim=True)
logP = (N / N.sum(1, keepdim=True).clamp(min=1)).log()
ll = {i: sum(logP[a, b].item() for a, b in zip(x[:-1], x[1:])) for i, x in enumerate(ids)}
out, ix = [], int(ids[0][0])
for _ in range(5):
    ix = torch.multinomial(P[ix], 1).item()
    out.append(itos[ix])
out, ll[0]
