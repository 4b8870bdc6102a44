"""Normalising flows, PINNs on mesh grids, gradient penalties, Hessian-vector products, natural gradients."""

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import autograd

torch.manual_seed(3)
data = torch.randn(64, 2) @ torch.tensor([[1.0, 0.5], [0.0, 0.3]])


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, x):
        a, b = x.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        out = (b, a) if self.flip else (a, b)
        return torch.cat(out, 1), s.squeeze(1)

    def inverse(self, z):
        a, b = z.chunk(2, 1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, 1)
        b = (b - t) * (-torch.tanh(s)).exp()
        return torch.cat((b, a) if self.flip else (a, b), 1)


flow = nn.ModuleList(Coupling(i % 2 == 1) for i in range(4))
base = torch.distributions.MultivariateNormal(torch.zeros(2), torch.eye(2))
opt = torch.optim.Adam(flow.parameters(), lr=1e-3)
nlls = []
for epoch in range(4):
    z, log_det = data, torch.zeros(len(data))
    for layer in flow:
        z, ld = layer(z)
        log_det += ld
    loss = -(base.log_prob(z) + log_det).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    nlls.append(loss.item())
nlls

# %%
with torch.no_grad():
    x = base.sample((5,))
    for layer in reversed(flow):
        x = layer.inverse(x)
    z = data
    zs = [data]
    for layer in flow:
        z, _ = layer(z)
        zs.append(z)
    back = z
    for layer in reversed(flow):
        back = layer.inverse(back)
(back - data).abs().max().item(), len(zs)

# %%
# Masked autoregression.
order = torch.arange(4)
mask = (order[:, None] > order[None]).float()


class MaskedLinear(nn.Linear):
    def __init__(self, n):
        super().__init__(n, n)
        self.register_buffer("mask", mask.clone())

    def forward(self, x):
        return F.linear(x, self.mask * self.weight, self.bias)


made = MaskedLinear(4)
J = autograd.functional.jacobian(lambda v: made(v), torch.randn(4))
(J * (1 - mask)).abs().max()

# %%
# Physics-informed: Poisson on a mesh grid.
n = 8
gx, gy = torch.meshgrid(torch.linspace(0, 1, n), torch.linspace(0, 1, n), indexing="ij")
interior = torch.stack([gx[1:-1, 1:-1].flatten(), gy[1:-1, 1:-1].flatten()], 1)
boundary = torch.cat(
    [torch.stack([gx[0], gy[0]], 1), torch.stack([gx[-1], gy[-1]], 1), torch.stack([gx[:, 0], gy[:, 0]], 1)]
)
interior.requires_grad_(True)
u = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(u.parameters(), lr=1e-3)
loss_history = {"pde": [], "bc": []}
for it in range(4):
    out = u(interior)
    g = autograd.grad(out, interior, torch.ones_like(out), create_graph=True)[0]
    u_xx = autograd.grad(g[:, 0], interior, torch.ones_like(g[:, 0]), create_graph=True)[0][:, 0]
    u_yy = autograd.grad(g[:, 1], interior, torch.ones_like(g[:, 1]), create_graph=True)[0][:, 1]
    f = -2 * math.pi**2 * torch.sin(math.pi * interior[:, 0]) * torch.sin(math.pi * interior[:, 1])
    pde, bc = (u_xx + u_yy - f).pow(2).mean(), u(boundary).pow(2).mean()
    loss = pde + 10 * bc
    opt.zero_grad()
    loss.backward()
    opt.step()
    loss_history["pde"].append(pde.item())
    loss_history["bc"].append(bc.item())
loss_history["pde"][-1], interior.grad.shape

# %%
with torch.no_grad():
    surface = u(torch.stack([gx.flatten(), gy.flatten()], 1)).view(n, n).numpy()
lbfgs = torch.optim.LBFGS(u.parameters(), lr=0.5, max_iter=4)


def closure():
    lbfgs.zero_grad()
    out = u(interior)
    (g,) = autograd.grad(out.sum(), interior, create_graph=True)
    lap = 0
    for i in range(2):
        lap = lap + autograd.grad(g[:, i].sum(), interior, create_graph=True)[0][:, i]
    loss = lap.pow(2).mean() + u(boundary).pow(2).mean()
    loss.backward()
    return loss


lbfgs.step(closure)
surface.shape

# %%
# WGAN-GP.
G = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
D = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
opt_g = torch.optim.Adam(G.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_d = torch.optim.Adam(D.parameters(), lr=1e-4, betas=(0.0, 0.9))


def gradient_penalty(critic, real, fake):
    eps = torch.rand(len(real), 1)
    inter = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(inter)
    grad = autograd.grad(score, inter, torch.ones_like(score), create_graph=True, retain_graph=True)[0]
    return ((grad.norm(2, dim=1) - 1) ** 2).mean()


d_losses, g_losses, w_dist = [], [], 0.0
for i in range(6):
    real = data[torch.randint(0, 64, (16,))]
    fake = G(torch.randn(16, 4)).detach()
    gp = gradient_penalty(D, real, fake)
    d_loss = D(fake).mean() - D(real).mean() + 10 * gp
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    w_dist += (D(real).mean() - D(fake).mean()).item()
    d_losses.append(d_loss.item())
    if i % 3 == 0:
        g_loss = -D(G(torch.randn(16, 4))).mean()
        opt_g.zero_grad()
        g_loss.backward()
        opt_g.step()
        g_losses.append(g_loss.item())
d_losses, g_losses, w_dist / 6

# %%
# Hessian-vector products and conjugate gradients.
model = nn.Linear(2, 1)
target = data.sum(1, keepdim=True)
params = list(model.parameters())


def flat(tensors):
    return torch.cat([t.reshape(-1) for t in tensors])


loss = F.mse_loss(model(data), target)
grads = flat(autograd.grad(loss, params, create_graph=True))


def hvp(v):
    return flat(autograd.grad(grads @ v, params, retain_graph=True)) + 1e-3 * v


g = grads.detach()
x, r = torch.zeros_like(g), g.clone()
p = r.clone()
rs = r @ r
for _ in range(5):
    Ap = hvp(p)
    a = rs / (p @ Ap)
    x += a * p
    r -= a * Ap
    new_rs = r @ r
    if new_rs < 1e-12:
        break
    p = r + new_rs / rs * p
    rs = new_rs
with torch.no_grad():
    offset = 0
    for q in params:
        q -= x[offset : offset + q.numel()].view_as(q)
        offset += q.numel()
F.mse_loss(model(data), target).item()

# %%
# Power iteration on the Hessian, Hutchinson's trace, natural gradient.
v = torch.randn_like(g)
v /= v.norm()
eigs = []
for _ in range(4):
    Hv = hvp(v)
    eigs.append((v @ Hv).item())
    v = Hv / Hv.norm()
trace = sum((z @ hvp(z)).item() for z in (torch.randint(0, 2, g.shape).float() * 2 - 1 for _ in range(3))) / 3
logits_model = nn.Linear(2, 3)
for _ in range(2):
    logp = logits_model(data).log_softmax(1)
    y = torch.distributions.Categorical(logits=logp).sample()
    fisher = torch.zeros(9, 9)
    for i in range(8):
        s = flat(autograd.grad(logp[i, y[i]], logits_model.parameters(), retain_graph=True))
        fisher += torch.outer(s, s) / 8
    step = torch.linalg.solve(
        fisher + 0.1 * torch.eye(9), flat(autograd.grad(-logp[:, 0].mean(), logits_model.parameters()))
    )
    nn.utils.vector_to_parameters(
        nn.utils.parameters_to_vector(logits_model.parameters()) - 0.1 * step, logits_model.parameters()
    )
eigs[-1], trace, step.norm()
