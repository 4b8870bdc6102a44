"""Learning written out: regression, k-means, decision by logits, optimisers, attention, energy models, simulation."""

# %%
import math

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(19)
true_w, true_b = torch.tensor([2.0, -3.4]), 4.2
X = torch.normal(0, 1, (200, 2))
y = X @ true_w + true_b + torch.normal(0, 0.01, (200,))

# %%
w = torch.normal(0, 0.01, size=(2,), requires_grad=True)
b = torch.zeros(1, requires_grad=True)
losses = []
for epoch in range(10):
    y_hat = X @ w + b
    loss = ((y_hat - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= 0.1 * w.grad
        b -= 0.1 * b.grad
        w.grad.zero_()
        b.grad.zero_()
    losses.append(float(loss.detach()))
losses[-1], w, b

# %%
theta = torch.linalg.lstsq(torch.cat([X, torch.ones(200, 1)], 1), y.unsqueeze(1)).solution
ridge = torch.linalg.solve(X.T @ X + 0.1 * torch.eye(2), X.T @ y)
eigenvalues, eigenvectors = torch.linalg.eigh(X.T @ X / len(X))
theta.squeeze(), ridge, eigenvalues

# %%
# New leaves at each step, instead of in-place updates.
params = [torch.zeros(2, requires_grad=True), torch.zeros(1, requires_grad=True)]
trace = []
for step in range(8):
    loss = (X @ params[0] + params[1] - y).pow(2).mean()
    grads = torch.autograd.grad(loss, params)
    params = [(p - 0.1 * g).detach().requires_grad_() for p, g in zip(params, grads)]
    trace.append(loss.item())
trace[-1]


# %%
class Momentum(torch.optim.Optimizer):
    def __init__(self, params, lr=0.1, beta=0.9):
        super().__init__(params, {"lr": lr, "beta": beta})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = self.state[p].setdefault("buf", torch.zeros_like(p))
                buf.mul_(group["beta"]).add_(p.grad)
                p.add_(buf, alpha=-group["lr"])


def adam(params, states, hyper):
    for p, (v, s) in zip(params, states):
        with torch.no_grad():
            v[:] = 0.9 * v + 0.1 * p.grad
            s[:] = 0.999 * s + 0.001 * torch.square(p.grad)
            p[:] -= hyper["lr"] * (v / (1 - 0.9 ** hyper["t"])) / (torch.sqrt(s / (1 - 0.999 ** hyper["t"])) + 1e-6)
        p.grad.data.zero_()
    hyper["t"] += 1


lin = nn.Linear(2, 1)
optimizer = Momentum(lin.parameters(), lr=0.02)
states, hyper = [(torch.zeros_like(p), torch.zeros_like(p)) for p in (w, b)], {"lr": 0.05, "t": 1}
for xb, yb in zip(X.split(40), y.split(40)):
    optimizer.zero_grad()
    F.mse_loss(lin(xb).squeeze(1), yb).backward()
    optimizer.step()
    ((xb @ w + b - yb) ** 2).mean().backward()
    adam([w, b], states, hyper)
lin.weight, w

# %%
# K-means; a cluster without points keeps its centre.
centres = X[torch.randperm(200)[:4]].clone()
for _ in range(5):
    assignment = torch.cdist(X, centres).argmin(1)
    old_centres = centres.clone()
    for k in range(4):
        members = X[assignment == k]
        if len(members):
            centres[k] = members.mean(0)
    if (centres - old_centres).norm() < 1e-4:
        break
inertia = torch.cdist(X, centres).amin(1).pow(2).sum()
inertia

# %%
# Softmax, cross entropy and their gradients by hand.
logits = torch.randn(6, 3, requires_grad=True)
target = torch.tensor([0, 1, 2, 0, 1, 2])
shifted = logits - logits.max(1, keepdim=True).values
log_probs = shifted - shifted.exp().sum(1, keepdim=True).log()
nll = -log_probs[torch.arange(6), target].mean()
logits.retain_grad()
nll.backward()
by_hand = (log_probs.exp() - F.one_hot(target, 3)) / 6
torch.allclose(logits.grad, by_hand)

# %%
# A multilayer perceptron whose backward is written out.
W1, W2 = torch.randn(2, 8) * 0.5, torch.randn(8, 1) * 0.5
for _ in range(5):
    h_pre = X @ W1
    h = h_pre.clamp(min=0)
    out = h @ W2
    d_out = 2 * (out - y.unsqueeze(1)) / len(X)
    d_W2 = h.t() @ d_out
    d_h = d_out @ W2.t()
    d_h[h_pre < 0] = 0
    W1 -= 1e-2 * X.t() @ d_h
    W2 -= 1e-2 * d_W2
((out.squeeze() - y) ** 2).mean()

# %%
# Value iteration: impossible actions are worth -inf.
values = torch.zeros(5)
rewards = torch.full((5, 2), -1.0)
rewards[0, 0] = rewards[4, 1] = -math.inf
rewards[3, 1] = 10.0
nxt = torch.stack([torch.arange(5).sub(1).clamp(min=0), torch.arange(5).add(1).clamp(max=4)], 1)
while True:
    q = rewards + 0.9 * values[nxt]
    new = q.max(1).values
    delta = (new - values).abs().max()
    values = new
    if delta < 1e-3:
        break
policy = q.argmax(1)
values, policy

# %%
# Gridworld table in numpy, with an undefined entry where nothing was visited.
visits, returns = np.zeros(5), np.zeros(5)
rng = np.random.default_rng(0)
for state in rng.integers(0, 4, 30):
    visits[state] += 1
    returns[state] += rng.normal()
with np.errstate(invalid="ignore"):
    average = returns / visits
known = ~np.isnan(average)
average[known].mean()

# %%
# The game of life, each generation kept.
board = (torch.rand(8, 8) > 0.6).float()
kernel = torch.ones(1, 1, 3, 3)
kernel[0, 0, 1, 1] = 0
generations = [board.clone()]
for _ in range(5):
    n = F.conv2d(F.pad(board[None, None], (1, 1, 1, 1), mode="circular"), kernel)[0, 0]
    board = ((n == 3) | ((n == 2) & (board == 1))).float()
    generations.append(board)
movie = torch.stack(generations)
movie.mean((1, 2))

# %%
# Heat flow in place; snapshots are copies.
u = np.zeros((10, 10))
u[0] = 1.0
snapshots = []
for step in range(20):
    u[1:-1, 1:-1] += 0.2 * (u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2] - 4 * u[1:-1, 1:-1])
    if step % 5 == 0:
        snapshots.append(u.copy())
position, velocity = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0])
orbit = torch.empty(50, 2)
for i in range(50):
    velocity = velocity - 0.05 * position / position.norm() ** 3
    position = position + 0.05 * velocity
    orbit[i] = position
len(snapshots), snapshots[-1].sum(), orbit[-1]

# %%
# An energy model: Langevin steps with fresh leaves, a replay buffer of detached samples.
energy = nn.Sequential(nn.Linear(2, 16), nn.SiLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(energy.parameters(), lr=1e-3)
buffer = torch.randn(64, 2)
for real in X.split(50):
    index = torch.randint(0, 64, (50,))
    fake = buffer[index].clone().requires_grad_(True)
    for _ in range(4):
        (g,) = torch.autograd.grad(energy(fake).sum(), fake)
        fake.data.add_(-0.05 * g + 0.02 * torch.randn_like(fake))
    fake = fake.detach()
    buffer[index] = fake
    e_real, e_fake = energy(real), energy(fake)
    loss = e_real.mean() - e_fake.mean() + 0.1 * (e_real**2 + e_fake**2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
loss.item()

# %%
# Score matching, and sampling by fresh leaves.
sigmas = torch.logspace(0, -2, 4)
score = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
opt = torch.optim.Adam(score.parameters(), lr=1e-2)
for xb in X.split(50):
    sigma = sigmas[torch.randint(0, 4, (len(xb), 1))]
    noise = torch.randn_like(xb)
    loss = (score(xb + sigma * noise) * sigma + noise).pow(2).sum(1).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
sample = torch.randn(10, 2)
for sigma in sigmas:
    sample = (sample + 0.5 * sigma**2 * score(sample) + sigma * torch.randn_like(sample) * 0.1).detach()
sample.mean(0)


# %%
# Hamiltonian Monte Carlo.
def log_density(q):
    return -0.5 * (q**2).sum()


def gradient(q):
    q = q.detach().requires_grad_()
    log_density(q).backward()
    return q.grad


q, draws = torch.zeros(2), []
for _ in range(10):
    p = torch.randn(2)
    q_new, p_new = q, p + 0.05 * gradient(q)
    for _ in range(5):
        q_new = q_new + 0.1 * p_new
        p_new = p_new + 0.1 * gradient(q_new)
    log_ratio = log_density(q_new) - log_density(q) - 0.5 * (p_new @ p_new - p @ p)
    if torch.log(torch.rand(())) < log_ratio:
        q = q_new
    draws.append(q)
torch.stack(draws).std(0)

# %%
# Stochastic variational inference of a Bayesian regression.
q_mu, q_rho = torch.zeros(2, requires_grad=True), torch.full((2,), -3.0, requires_grad=True)
opt = torch.optim.Adam([q_mu, q_rho], lr=0.05)
elbos = np.full(10, np.nan)
for i in range(10):
    sigma = F.softplus(q_rho)
    weights = q_mu + sigma * torch.randn(2)
    likelihood = -0.5 * (X @ weights + 4.2 - y).pow(2).sum()
    kl = (-sigma.log() + 0.5 * (sigma**2 + q_mu**2) - 0.5).sum()
    loss = kl - likelihood
    opt.zero_grad()
    loss.backward()
    opt.step()
    elbos[i] = -loss.item()
elbos[-1] > elbos[0]
