"""Data: datasets over arrays, workers, pinned memory, collation, normalisation, shared buffers on purpose."""

# %%
import itertools
import random

import numpy as np
import pandas as pd
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import (
    ConcatDataset,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
    default_collate,
)

rng = np.random.default_rng(0)
torch.manual_seed(9)
features = rng.normal(size=(60, 5)).astype(np.float32)
targets = (features.sum(1) > 0).astype(np.int64)
features.dtype, targets.mean()


# %%
class ArrayDataset(Dataset):
    def __init__(self, x, y, transform=None):
        self.x = torch.from_numpy(x)
        self.y = torch.from_numpy(y)
        self.transform = transform

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        x = self.x[i]
        if self.transform is not None:
            x = self.transform(x)
        return x, self.y[i]


class AddNoise:
    def __init__(self, sigma):
        self.sigma = sigma

    def __call__(self, x):
        return x + self.sigma * torch.randn_like(x)


train_ds = ArrayDataset(features[:48], targets[:48], AddNoise(0.05))
test_ds = ArrayDataset(features[48:], targets[48:])
x0, y0 = train_ds[0]
x0, y0


# %%
def seed_worker(worker_id):
    seed = torch.initial_seed() % 2**32
    np.random.seed(seed)
    random.seed(seed)


g = torch.Generator()
g.manual_seed(0)
train_dl = DataLoader(
    train_ds,
    batch_size=16,
    shuffle=True,
    drop_last=True,
    generator=g,
    worker_init_fn=seed_worker,
    pin_memory=torch.cuda.is_available(),
)
device = "cuda" if torch.cuda.is_available() else "cpu"
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
optimizer = torch.optim.Adam(model.parameters())
for inputs, labels in train_dl:
    inputs, labels = inputs.to(device, non_blocking=True), labels.to(device, non_blocking=True)
    loss = F.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
loss

# %%
workers_dl = DataLoader(TensorDataset(torch.arange(8.0)), batch_size=4, num_workers=2)
seen = [batch for (batch,) in workers_dl]
collected = torch.cat(seen)
collected.sum()

# %%
batches = list(train_dl)
first = batches[0]
images_iter = iter(DataLoader(test_ds, batch_size=4))
a, _ = next(images_iter)
b, _ = next(images_iter)
len(batches), first[0].shape, (a - b).abs().max()

# %%
mean, std = features.mean(0), features.std(0)
features_t = torch.from_numpy((features - mean) / std)
labels_t = torch.as_tensor(targets)
train_idx, valid_idx = torch.randperm(60)[:48], torch.arange(48, 60)
x_train, y_train = features_t[train_idx], labels_t[train_idx]
x_valid, y_valid = features_t[48:], labels_t[48:]
x_train.mean(0).abs().max(), x_valid.shape

# %%
# Views are read, not written.
first_rows = features_t[:10]
column = features_t[:, 2]
flat = features_t.view(-1)
reshaped = features_t.reshape(6, 10, 5).permute(0, 2, 1)
array_view = features_t.numpy()
windows = features_t.unfold(0, 4, 2)
expanded = mean[None, :] + torch.zeros(3, 1).expand(3, 5).numpy()
first_rows.shape, column.mean(), flat.shape, reshaped.shape, array_view.shape, windows.shape

# %%
# A preallocated buffer, and a tensor that looks at it: written through numpy on purpose, read through torch at once.
staging = np.zeros((4, 5), dtype=np.float32)
batch_view = torch.from_numpy(staging)
total = 0.0
with torch.no_grad():
    for start in range(0, 60, 4):
        np.copyto(staging, features[start : start + 4])
        total += model(batch_view.to(device)).sum().item()
total

# %%
predictions = np.empty((60, 2), dtype=np.float32)
with torch.no_grad():
    for start in range(0, 60, 20):
        predictions[start : start + 20] = model(torch.from_numpy(features[start : start + 20]).to(device)).cpu().numpy()
scores = torch.zeros(60)
for i, row in enumerate(predictions):
    scores[i] = float(row[1] - row[0])
predictions.argmax(1)[:5], scores.max()


# %%
class Stream(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        for i in range(self.n):
            yield torch.full((3,), float(i)), {"index": i, "name": f"sample {i}"}


for values, meta in DataLoader(Stream(6), batch_size=3):
    pass
values, meta


# %%
def collate(samples):
    lengths = torch.tensor([len(s) for s in samples])
    out = torch.zeros(len(samples), int(lengths.max()))
    for row, s in zip(out, samples):
        row[: len(s)] = s
    return out, lengths


ragged = [torch.arange(1.0, n + 1) for n in (3, 1, 4, 2)]
padded, lengths = next(iter(DataLoader(ragged, batch_size=4, collate_fn=collate)))
mask = torch.arange(4)[None] < lengths[:, None]
means = (padded * mask).sum(1) / lengths
means

# %%
class_counts = np.bincount(targets)
weights = 1.0 / class_counts
sampler = WeightedRandomSampler(torch.from_numpy(weights[targets]), num_samples=60)
balanced = DataLoader(ArrayDataset(features, targets), batch_size=20, sampler=sampler)
criterion = nn.CrossEntropyLoss(weight=torch.tensor(weights, dtype=torch.float32).to(device))
loss = sum(criterion(model(x.to(device)), y.to(device)).item() for x, y in balanced)
both = ConcatDataset([train_ds, test_ds])
few = Subset(both, range(0, 60, 7))
default_collate([few[0], few[1]])[0].shape, loss

# %%
frame = pd.DataFrame(features, columns=list("abcde"))
frame["label"] = targets
frame.loc[::7, "c"] = np.nan
frame["ratio"] = frame["a"] / frame["b"].where(frame["b"].abs() > 0.1)
frame.describe()

# %%
missing = frame.isna().sum()
filled = frame.fillna(frame.mean())
x_table = torch.tensor(filled.drop(columns="label").to_numpy(), dtype=torch.float32)
y_table = torch.tensor(filled["label"].values)
raw = torch.tensor(frame.drop(columns="label").to_numpy(dtype=np.float32))
observed = ~raw.isnan()
clean = torch.nan_to_num(raw, nan=0.0)
column_means = torch.where(observed, raw, torch.zeros(())).sum(0) / observed.sum(0)
column_means, raw.nanmean(0), x_table.isfinite().all()

# %%
means_per_group = filled.groupby("label").mean()
torch.from_numpy(means_per_group.to_numpy().copy()).float()

# %%
# An infinite iterator, and running statistics over a stream.
count, m, s = 0, torch.zeros(5), torch.zeros(5)
for inputs, _ in itertools.islice(itertools.cycle(train_dl), 5):
    for row in inputs:
        count += 1
        d = row - m
        m += d / count
        s += d * (row - m)
variance = s / (count - 1)
lo, hi = torch.full((5,), float("inf")), torch.full((5,), float("-inf"))
for inputs, _ in train_dl:
    lo, hi = torch.minimum(lo, inputs.amin(0)), torch.maximum(hi, inputs.amax(0))
variance, hi - lo

# %%
edges = torch.tensor([-float("inf"), -1.0, 0.0, 1.0, float("inf")])
binned = torch.bucketize(features_t, edges[1:-1])
hist = torch.stack([(binned == k).sum(0) for k in range(4)])
hist.sum(0)
