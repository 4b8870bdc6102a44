"""A diffusion model on points: schedule, training with EMA, sampling, DDIM, classifier-free guidance."""

# %%
import copy
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
T = 20
betas = torch.linspace(1e-4, 0.2, T, device=device)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
sqrt_recip_alphas = torch.sqrt(1.0 / alphas)
sqrt_ac = alphas_cumprod.sqrt()
sqrt_1mac = (1 - alphas_cumprod).sqrt()
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
posterior_log_variance = torch.log(posterior_variance.clamp(min=1e-20))
snr = alphas_cumprod / (1 - alphas_cumprod)
posterior_variance[:3], snr[-1]


# %%
def extract(a, t, shape):
    return a.gather(0, t).reshape(-1, *((1,) * (len(shape) - 1)))


def q_sample(x0, t, noise=None):
    if noise is None:
        noise = torch.randn_like(x0)
    return extract(sqrt_ac, t, x0.shape) * x0 + extract(sqrt_1mac, t, x0.shape) * noise


angles = torch.rand(128) * 2 * math.pi
data = torch.stack([angles.cos(), angles.sin()], 1) + 0.05 * torch.randn(128, 2)
labels = (angles > math.pi).long()
steps = [q_sample(data[:8].to(device), torch.full((8,), t, device=device)) for t in (0, 5, T - 1)]
[s.std().item() for s in steps]


# %%
class SinusoidalEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / (half - 1))
        args = t[:, None].float() * freqs[None]
        return torch.cat([args.sin(), args.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, hidden=32, classes=2):
        super().__init__()
        self.time = nn.Sequential(SinusoidalEmbedding(16), nn.Linear(16, hidden), nn.SiLU())
        self.label = nn.Embedding(classes + 1, hidden)
        self.inp = nn.Linear(2, hidden)
        self.mid = nn.Linear(hidden, hidden)
        self.out = nn.Linear(hidden, 2)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)
        self.null_class = classes

    def forward(self, x, t, y=None):
        if y is None:
            y = torch.full_like(t, self.null_class)
        h = F.silu(self.inp(x) + self.time(t) + self.label(y))
        return self.out(F.silu(self.mid(h)) + h)


model = Denoiser().to(device)
ema = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)

# %%
history = []
for epoch in range(3):
    perm = torch.randperm(len(data))
    for idx in perm.split(32):
        x0, y = data[idx].to(device), labels[idx].to(device)
        t = torch.randint(0, T, (len(x0),), device=device)
        noise = torch.randn_like(x0)
        drop = torch.rand(len(y), device=device) < 0.1
        y = torch.where(drop, torch.full_like(y, 2), y)
        pred = model(q_sample(x0, t, noise), t, y)
        weight = torch.minimum(snr[t], torch.tensor(5.0, device=device)) / snr[t]
        loss = (weight * F.mse_loss(pred, noise, reduction="none").mean(1)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        with torch.no_grad():
            for e, p in zip(ema.parameters(), model.parameters()):
                e.mul_(0.99).add_(p, alpha=0.01)
        history.append(loss.item())
np.mean(history[-4:])


# %%
@torch.no_grad()
def p_sample(model, x, t_index):
    t = torch.full((len(x),), t_index, device=device)
    eps = model(x, t)
    mean = sqrt_recip_alphas[t_index] * (x - betas[t_index] * eps / sqrt_1mac[t_index])
    if t_index == 0:
        return mean
    return mean + posterior_variance[t_index].sqrt() * torch.randn_like(x)


x = torch.randn(64, 2, device=device)
frames = []
for i in reversed(range(T)):
    x = p_sample(ema, x, i)
    frames.append(x.cpu().numpy())
len(frames), frames[-1].std()


# %%
@torch.no_grad()
def ddim(model, n, y, scale=2.0, steps=5, eta=0.0):
    x = torch.randn(n, 2, device=device)
    ts = list(range(0, T, T // steps))[::-1]
    trajectory = [x]
    for i, t in enumerate(ts):
        tt = torch.full((n,), t, device=device)
        cond, uncond = model(x, tt, y), model(x, tt)
        eps = uncond + scale * (cond - uncond)
        x0 = (x - sqrt_1mac[t] * eps) / sqrt_ac[t]
        x0.clamp_(-2, 2)
        a_prev = alphas_cumprod[ts[i + 1]] if i + 1 < len(ts) else torch.tensor(1.0)
        x = a_prev.sqrt() * x0 + (1 - a_prev).sqrt() * eps
        trajectory.append(x)
    return x, torch.stack(trajectory)


samples, trajectory = ddim(ema, 16, torch.ones(16, dtype=torch.long, device=device))
trajectory.shape

# %%
# Inpainting: the known coordinate is put back at every step.
known = data[:16, 0]
x = torch.randn(16, 2)
for i in reversed(range(T)):
    x = p_sample(ema, x, i)
    noised = q_sample(data[:16], torch.full((16,), max(i - 1, 0)))
    x[:, 0] = noised[:, 0] if i > 0 else known
(x[:, 0] - known).abs().max()

# %%
losses_by_t = torch.zeros(T)
counts = torch.zeros(T)
with torch.no_grad():
    for _ in range(4):
        t = torch.randint(0, T, (len(data),))
        noise = torch.randn_like(data)
        err = (ema(q_sample(data, t, noise), t, labels) - noise).pow(2).mean(1)
        losses_by_t.scatter_add_(0, t, err)
        counts.scatter_add_(0, t, torch.ones_like(err))
mean_by_t = losses_by_t / counts.clamp(min=1)
mean_by_t
