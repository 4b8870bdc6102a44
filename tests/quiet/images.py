"""Images: autoencoder, U-Net with masks, detection boxes, convolution by hand, plots prepared, cross validation."""

# %%
import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.model_selection import KFold
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(11)
np.random.seed(11)
images = torch.zeros(24, 1, 16, 16)
masks = torch.zeros(24, 1, 16, 16)
for n in range(24):
    r, c = np.random.randint(2, 9, 2)
    images[n, 0, r : r + 5, c : c + 5] = 1.0
    masks[n, 0, r : r + 5, c : c + 5] = 1.0
images += 0.1 * torch.randn_like(images)
images.mean(), masks.mean()


# %%
class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Conv2d(1, 4, 3, stride=2, padding=1), nn.ReLU(True), nn.Flatten(), nn.Linear(256, 8)
        )
        self.decoder = nn.Sequential(
            nn.Linear(8, 256), nn.Unflatten(1, (4, 8, 8)), nn.ReLU(True), nn.ConvTranspose2d(4, 1, 2, stride=2)
        )

    def forward(self, x):
        return self.decoder(self.encoder(x))


ae = Autoencoder()
optimizer = torch.optim.Adam(ae.parameters(), lr=5e-3)
outputs = []
for epoch in range(3):
    for batch in images.split(8):
        noisy = batch + 0.2 * torch.randn_like(batch)
        recon = ae(noisy)
        loss = F.mse_loss(recon, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    outputs.append((epoch, batch.numpy(), recon.detach().numpy()))
outputs[-1][2].shape

# %%
codes = ae.encoder(images).detach()
pca_u, pca_s, pca_v = torch.pca_lowrank(codes, q=2)
scatter = (codes @ pca_v).numpy()
panel = torch.cat([images[:4], ae(images[:4]).detach()], dim=3).squeeze(1).permute(1, 0, 2).reshape(16, -1).numpy()
scatter.shape, panel.shape, panel.clip(0, 1).max()


# %%
class DoubleConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(i, o, 3, padding=1, bias=False),
            nn.BatchNorm2d(o),
            nn.ReLU(inplace=True),
            nn.Conv2d(o, o, 3, padding=1),
            nn.ReLU(inplace=True),
        )

    def forward(self, x):
        return self.net(x)


class UNet(nn.Module):
    def __init__(self, features=(4, 8)):
        super().__init__()
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        channels = 1
        for f in features:
            self.downs.append(DoubleConv(channels, f))
            channels = f
        self.bottleneck = DoubleConv(features[-1], features[-1] * 2)
        for f in reversed(features):
            self.ups.append(nn.ConvTranspose2d(f * 2, f, 2, stride=2))
            self.ups.append(DoubleConv(f * 2, f))
        self.final = nn.Conv2d(features[0], 1, 1)

    def forward(self, x):
        skips = []
        for down in self.downs:
            x = down(x)
            skips.append(x)
            x = F.max_pool2d(x, 2)
        x = self.bottleneck(x)
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            x = self.ups[i + 1](torch.cat((skips.pop(), x), dim=1))
        return self.final(x)


def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits)
    return 1 - (2 * (p * target).sum() + eps) / (p.sum() + target.sum() + eps)


# %%
unet = UNet()
optimizer = torch.optim.Adam(unet.parameters(), lr=1e-2)
bce = nn.BCEWithLogitsLoss(pos_weight=torch.tensor([3.0]))
for epoch in range(2):
    epoch_dice = []
    for xb, mb in zip(images.split(8), masks.split(8)):
        pred = unet(xb)
        loss = bce(pred, mb) + dice_loss(pred, mb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            epoch_dice.append(1 - dice_loss(pred, mb).item())
np.mean(epoch_dice)

# %%
unet.eval()
ious = torch.full((24,), float("nan"))
with torch.no_grad():
    for n, (img, m) in enumerate(zip(images, masks)):
        p = unet(img[None])[0] > 0
        union = (p | m.bool()).sum()
        if union > 0:
            ious[n] = (p & m.bool()).sum() / union
ious.nanmean()

# %%
void = masks.long().squeeze(1)
void[:, 0] = 255
head = nn.Conv2d(1, 2, 3, padding=1)
loss = F.cross_entropy(head(images), void, ignore_index=255)
loss.backward()
head.weight.grad.norm()


# %%
def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[:, :2])
    rb = torch.min(a[:, None, 2:], b[:, 2:])
    inter = (rb - lt).clamp(min=0).prod(2)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(1)  # noqa: E731
    return inter / (area(a)[:, None] + area(b) - inter)


def nms(boxes, scores, threshold=0.5):
    order, keep = scores.argsort(descending=True), []
    while len(order):
        keep.append(order[0].item())
        order = order[1:][box_iou(boxes[order[:1]], boxes[order[1:]])[0] <= threshold]
    return keep


corners = torch.rand(10, 2) * 8
boxes, scores = torch.cat([corners, corners + 4], 1), torch.rand(10)
cost = -scores[:, None] + box_iou(boxes, boxes)
cost.fill_diagonal_(float("inf"))
nms(boxes, scores), cost.min(1).values.shape


# %%
def corr2d(X, K):
    h, w = K.shape
    Y = torch.zeros((X.shape[0] - h + 1, X.shape[1] - w + 1))
    for i in range(Y.shape[0]):
        for j in range(Y.shape[1]):
            Y[i, j] = (X[i : i + h, j : j + w] * K).sum()
    return Y


edge = corr2d(images[0, 0], torch.tensor([[1.0, -1.0]]))
conv = nn.Conv2d(1, 1, kernel_size=(1, 2), bias=False)
for i in range(5):
    l = (conv(images[:1]) - edge[None, None]) ** 2
    conv.zero_grad()
    l.sum().backward()
    conv.weight.data[:] -= 1e-2 * conv.weight.grad
conv.weight.data.reshape((1, 2))

# %%
dataset = TensorDataset(images, (masks.sum((1, 2, 3)) > 0).float())
fold_losses, best = [], {"loss": float("inf"), "state": None, "fold": None}
for fold, (train_ids, valid_ids) in enumerate(KFold(n_splits=3, shuffle=True, random_state=0).split(images)):
    net = nn.Sequential(nn.Flatten(), nn.Linear(256, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=1e-2)
    for xb, yb in DataLoader(Subset(dataset, train_ids), batch_size=8):
        loss = F.binary_cross_entropy_with_logits(net(xb).squeeze(1), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        valid = torch.cat([net(xb).squeeze(1) - yb for xb, yb in DataLoader(Subset(dataset, valid_ids), batch_size=8)])
    fold_losses.append(valid.pow(2).mean().item())
    if fold_losses[-1] < best["loss"]:
        best = {"loss": fold_losses[-1], "state": copy.deepcopy(net.state_dict()), "fold": fold}
np.mean(fold_losses), np.std(fold_losses), best["fold"]

# %%
# An ensemble of the folds, and test-time augmentation.
models = [nn.Sequential(nn.Flatten(), nn.Linear(256, 1)) for _ in range(3)]
for m in models:
    m.load_state_dict(best["state"])
    m.eval()
with torch.no_grad():
    logits = torch.stack([m(t) for m in models for t in (images, images.flip(3))])
probabilities = logits.sigmoid().mean(0).squeeze(1)
disagreement = logits.std(0).squeeze(1).numpy()
probabilities.shape, disagreement.max()

# %%
# Monte Carlo dropout keeps training mode on purpose.
mc = nn.Sequential(nn.Flatten(), nn.Linear(256, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 1))
mc.train()
with torch.no_grad():
    draws = torch.stack([mc(images) for _ in range(8)])
draws.mean(0)[:2], draws.std(0)[:2]

# %%
filters = unet.downs[0].net[0].weight.detach().clone()
filters -= filters.amin((1, 2, 3), keepdim=True)
filters /= filters.amax((1, 2, 3), keepdim=True)
tiles = filters.squeeze(1).numpy()
grads = [(n, p.grad.norm().item()) for n, p in unet.named_parameters() if p.grad is not None]
tiles.max(), len(grads)
