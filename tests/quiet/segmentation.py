"""Small images: numpy augmentation, segmentation with an ignored class, boxes and NMS, style, plots."""

# %%
import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

np.random.seed(0)
torch.manual_seed(0)


class Flip:
    def __call__(self, img, mask):
        if np.random.rand() < 0.5:
            return img[:, ::-1].copy(), mask[:, ::-1].copy()
        return img, mask


class Crop:
    def __init__(self, size):
        self.size = size

    def __call__(self, img, mask):
        i, j = np.random.randint(0, img.shape[0] - self.size + 1, 2)
        s = self.size
        return img[i : i + s, j : j + s], mask[i : i + s, j : j + s]


class ToTensor:
    def __call__(self, img, mask):
        img = torch.from_numpy(np.ascontiguousarray(img.transpose(2, 0, 1))).float().div_(255)
        return img, torch.from_numpy(np.ascontiguousarray(mask)).long()


class Compose:
    def __init__(self, *ts):
        self.ts = ts

    def __call__(self, *args):
        for t in self.ts:
            args = t(*args)
        return args


class Shapes(Dataset):
    def __init__(self, n, transform):
        self.images = np.random.randint(0, 60, (n, 12, 12, 3), dtype=np.uint8)
        self.masks = np.zeros((n, 12, 12), dtype=np.int64)
        for i in range(n):
            a, b = np.random.randint(0, 7, 2)
            self.images[i, a : a + 5, b : b + 5] += 150
            self.masks[i, a : a + 5, b : b + 5] = 1
            self.masks[i, 0] = 255
        self.transform = transform

    def __len__(self):
        return len(self.images)

    def __getitem__(self, i):
        return self.transform(self.images[i], self.masks[i])


ds = Shapes(16, Compose(Flip(), Crop(8), ToTensor()))
loader = DataLoader(ds, batch_size=4, shuffle=True)
img, mask = ds[0]
img.shape, mask.unique()

# %%
mean, std = torch.zeros(3), torch.zeros(3)
for x, _ in loader:
    mean += x.mean((0, 2, 3)) / len(loader)
    std += x.std((0, 2, 3)) / len(loader)
mean, std


# %%
class TinyUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.d1 = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(inplace=True))
        self.d2 = nn.Sequential(nn.MaxPool2d(2), nn.Conv2d(8, 16, 3, padding=1), nn.ReLU(inplace=True))
        self.up = nn.ConvTranspose2d(16, 8, 2, stride=2)
        self.head = nn.Conv2d(16, 2, 1)

    def forward(self, x):
        a = self.d1(x)
        b = self.d2(a)
        return self.head(torch.cat([a, self.up(b)], 1))


def normalise(x):
    return (x - mean[:, None, None]) / std[:, None, None]


unet = TinyUNet()
criterion = nn.CrossEntropyLoss(ignore_index=255, weight=torch.tensor([1.0, 2.0]))
opt = torch.optim.SGD(unet.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.OneCycleLR(opt, 0.2, total_steps=12)


def dice_loss(logits, target, eps=1.0):
    valid = target != 255
    p = logits.softmax(1)[:, 1][valid]
    t = (target[valid] == 1).float()
    return 1 - (2 * (p * t).sum() + eps) / (p.sum() + t.sum() + eps)


for epoch in range(3):
    tot = 0.0
    for x, m in loader:
        logits = unet(normalise(x))
        loss = criterion(logits, m) + dice_loss(logits, m)
        opt.zero_grad()
        loss.backward()
        opt.step()
        scheduler.step()
        tot += loss.item()
tot / len(loader), scheduler.get_last_lr()

# %%
hist = torch.zeros(2, 2)
unet.eval()
with torch.no_grad():
    for x, m in loader:
        pred = unet(normalise(x)).argmax(1)
        keep = m != 255
        hist += torch.bincount(2 * m[keep] + pred[keep], minlength=4).view(2, 2)
iou = hist.diag() / (hist.sum(0) + hist.sum(1) - hist.diag())
iou_missing = iou.clone()
miou = torch.nanmean(iou)
iou, miou


# %%
def box_iou(a, b):
    lt = torch.max(a[:, None, :2], b[None, :, :2])
    rb = torch.min(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh.prod(2)
    area = lambda z: (z[:, 2:] - z[:, :2]).prod(1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


def nms(boxes, scores, thr=0.5):
    order = scores.argsort(descending=True)
    keep = []
    while order.numel():
        i = order[0]
        keep.append(i.item())
        if order.numel() == 1:
            break
        order = order[1:][box_iou(boxes[i][None], boxes[order[1:]])[0] <= thr]
    return keep


xy = torch.rand(12, 2) * 8
boxes = torch.cat([xy, xy + 2 + torch.rand(12, 2) * 3], 1)
scores = torch.rand(12)
kept = nms(boxes, scores)
soft = scores.clone()
for i in scores.argsort(descending=True).tolist():
    overlap = box_iou(boxes[i][None], boxes)[0]
    overlap[i] = 0
    soft *= torch.exp(-(overlap**2) / 0.5)
kept, soft

# %%
# Anchors matched to boxes, a focal loss and a smooth L1 on the matched ones.
anchors = torch.stack(torch.meshgrid(torch.arange(0, 8, 2.0), torch.arange(0, 8, 2.0), indexing="xy"), -1).view(-1, 2)
anchors = torch.cat([anchors, anchors + 4], 1)
gt = boxes[:2]
iou_m = box_iou(anchors, gt)
best, which = iou_m.max(1)
labels = (best > 0.3).float()
labels[(best > 0.2) & (best <= 0.3)] = -1
valid = labels >= 0
det = nn.Linear(4, 5)
opt = torch.optim.Adam(det.parameters(), lr=1e-2)
for _ in range(3):
    out = det(anchors / 8)
    logit, delta = out[:, 0], out[:, 1:]
    p = logit[valid].sigmoid()
    t = labels[valid]
    ce = F.binary_cross_entropy_with_logits(logit[valid], t, reduction="none")
    pt = p * t + (1 - p) * (1 - t)
    focal = ((1 - pt) ** 2 * ce).mean()
    pos = labels == 1
    reg = F.smooth_l1_loss(delta[pos], (gt[which] - anchors)[pos]) if pos.any() else out.sum() * 0
    loss = focal + reg
    opt.zero_grad()
    loss.backward()
    opt.step()
loss.item(), pos.sum()

# %%
# An image optimised: content, style, total variation.
features = (
    nn.Sequential(nn.Conv2d(3, 6, 3, padding=1), nn.ReLU(), nn.Conv2d(6, 6, 3, padding=1)).eval().requires_grad_(False)
)
content, style = torch.rand(1, 3, 8, 8), torch.rand(1, 3, 8, 8)


def gram(f):
    b, c, h, w = f.shape
    f = f.view(b * c, h * w)
    return f @ f.t() / (b * c * h * w)


content_target, style_target = features(content).detach(), gram(features(style)).detach()
image = content.clone().requires_grad_(True)
opt = torch.optim.LBFGS([image])
run = [0]
while run[0] <= 8:

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        opt.zero_grad()
        f = features(image)
        tv = (image[..., 1:] - image[..., :-1]).abs().mean() + (image[..., 1:, :] - image[..., :-1, :]).abs().mean()
        loss = F.mse_loss(f, content_target) + 1e3 * F.mse_loss(gram(f), style_target) + 0.1 * tv
        loss.backward()
        run[0] += 1
        return loss

    opt.step(closure)
with torch.no_grad():
    image.clamp_(0, 1)
image.detach().squeeze(0).permute(1, 2, 0).numpy().shape

# %%
# Mixup, cutmix, cutout, in copies.
x, m = next(iter(loader))
lam, perm = np.random.beta(0.4, 0.4), torch.randperm(len(x))
mixed = lam * x + (1 - lam) * x[perm]
cut = x.clone()
cut[:, :, 2:5, 2:5] = x[perm, :, 2:5, 2:5]
holes = x.clone()
for im in holes:
    i, j = random.randrange(5), random.randrange(5)
    im[:, i : i + 3, j : j + 3] = 0.0
flipped = x.flip(-1)
theta = torch.tensor([[[0.9, 0.1, 0.0], [-0.1, 0.9, 0.0]]]).repeat(len(x), 1, 1)
warped = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
canvas = np.zeros((2 * 8, 2 * 8, 3), dtype=np.float32)
for k, im in enumerate(x):
    r, c = divmod(k, 2)
    canvas[r * 8 : (r + 1) * 8, c * 8 : (c + 1) * 8] = im.permute(1, 2, 0).numpy()
canvas.shape, warped.shape, mixed.mean()
