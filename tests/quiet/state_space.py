"""Neural ODE by hand, Gaussian process by hand, hidden Markov models, particle filters, leapfrog."""

# %%
import math

import numpy as np
import torch
import torch.nn as nn

torch.manual_seed(0)
t = torch.linspace(0, 2, 12)
true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])


def rk4(f, y0, ts):
    ys = [y0]
    y = y0
    for t0, t1 in zip(ts[:-1], ts[1:]):
        h = t1 - t0
        k1 = f(t0, y)
        k2 = f(t0 + h / 2, y + h * k1 / 2)
        k3 = f(t0 + h / 2, y + h * k2 / 2)
        k4 = f(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        ys.append(y)
    return torch.stack(ys)


with torch.no_grad():
    truth = rk4(lambda t, y: y**3 @ true_A, torch.tensor([[1.0, 0.0]]), t)
truth.shape


# %%
class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))
        self.nfe = 0

    def forward(self, t, y):
        self.nfe += 1
        return self.net(y**3)


func = ODEFunc()
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-3)
losses, evaluations = [], []
for it in range(4):
    s = torch.randint(0, 6, (1,)).item()
    optimizer.zero_grad()
    pred_y = rk4(func, truth[s], t[s : s + 5])
    loss = (pred_y - truth[s : s + 5]).abs().mean()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
    evaluations.append(func.nfe)
    func.nfe = 0
losses

# %%
# Gaussian process: marginal likelihood by gradient.
X = torch.linspace(0, 1, 15)[:, None]
y = torch.sin(6 * X).squeeze() + 0.1 * torch.randn(15)
log_ls, log_var, log_noise = (torch.tensor(v, requires_grad=True) for v in (-1.0, 0.0, -2.0))
opt = torch.optim.Adam([log_ls, log_var, log_noise], lr=0.1)


def rbf(a, b):
    d2 = (a[:, None] - b[None]).pow(2).sum(-1)
    return log_var.exp() * torch.exp(-0.5 * d2 / log_ls.exp() ** 2)


for i in range(5):
    K = rbf(X, X) + (log_noise.exp() + 1e-6) * torch.eye(15)
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y[:, None], L)
    nll = 0.5 * y @ alpha.squeeze() + L.diagonal().log().sum() + 7.5 * math.log(2 * math.pi)
    opt.zero_grad()
    nll.backward()
    opt.step()
Xs = torch.linspace(0, 1, 5)[:, None]
with torch.no_grad():
    Ks = rbf(X, Xs)
    v = torch.linalg.solve_triangular(L, Ks, upper=False)
    mu, cov = Ks.T @ alpha, rbf(Xs, Xs) - v.T @ v
    std = cov.diagonal().clamp(min=0).sqrt()
mu.squeeze(), std, nll

# %%
# HMM: forward in log space, with transitions that cannot happen.
pi = torch.tensor([1.0, 0.0, 0.0])
A = torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.6, 0.4], [0.0, 0.0, 1.0]])
B = torch.tensor([[0.9, 0.1], [0.2, 0.8], [0.5, 0.5]])
obs = torch.tensor([0, 0, 1, 1, 0, 1])
log_pi, log_A, log_B = pi.log(), A.log(), B.log()
log_alpha = log_pi + log_B[:, obs[0]]
alphas = [log_alpha]
for o in obs[1:]:
    log_alpha = torch.logsumexp(log_alpha[:, None] + log_A, 0) + log_B[:, o]
    alphas.append(log_alpha)
loglik = torch.logsumexp(log_alpha, 0)
log_beta = torch.zeros(3)
betas = [log_beta]
for o in reversed(obs[1:].tolist()):
    log_beta = torch.logsumexp(log_A + log_B[:, o] + log_beta, 1)
    betas.insert(0, log_beta)
gamma = (torch.stack(alphas) + torch.stack(betas) - loglik).exp()
gamma.sum(1), loglik


# %%
def viterbi(log_pi, log_A, log_B, obs):
    T, S = len(obs), len(log_pi)
    delta = torch.full((T, S), -float("inf"))
    psi = torch.zeros((T, S), dtype=torch.long)
    delta[0] = log_pi + log_B[:, obs[0]]
    for t in range(1, T):
        best, arg = (delta[t - 1][:, None] + log_A).max(0)
        delta[t] = best + log_B[:, obs[t]]
        psi[t] = arg
    path = [delta[-1].argmax().item()]
    for t in range(T - 1, 0, -1):
        path.append(psi[t, path[-1]].item())
    return path[::-1], delta


path, delta = viterbi(log_pi, log_A, log_B, obs)
path

# %%
# Baum-Welch, a few rounds, scaled.
trans, emit, start = torch.full((2, 2), 0.5), torch.tensor([[0.6, 0.4], [0.3, 0.7]]), torch.tensor([0.5, 0.5])
ll = []
for _ in range(3):
    a = torch.zeros(len(obs), 2)
    c = torch.zeros(len(obs))
    a[0] = start * emit[:, obs[0]]
    c[0] = a[0].sum()
    a[0] /= c[0]
    for k in range(1, len(obs)):
        a[k] = (a[k - 1] @ trans) * emit[:, obs[k]]
        c[k] = a[k].sum()
        a[k] /= c[k]
    b = torch.ones(len(obs), 2)
    for k in range(len(obs) - 2, -1, -1):
        b[k] = trans @ (emit[:, obs[k + 1]] * b[k + 1]) / c[k + 1]
    g = a * b
    xi = a[:-1, :, None] * trans * (emit[:, obs[1:]].T * b[1:])[:, None] / c[1:, None, None]
    start = g[0] / g[0].sum()
    trans = xi.sum(0) / xi.sum((0, 2))[:, None]
    emit = torch.stack([g[obs == o].sum(0) for o in range(2)], 1) / g.sum(0)[:, None]
    ll.append(c.log().sum().item())
ll, trans

# %%
# Particle filter in numpy: weights may underflow to zero, so logs may be -inf.
rng = np.random.default_rng(0)
particles = rng.normal(0, 1, 200)
weights = np.full(200, 1 / 200)
estimates, ess_log = [], []
x = 0.0
for step in range(6):
    x = 0.9 * x + rng.normal(0, 0.3)
    z = x + rng.normal(0, 0.2)
    particles = 0.9 * particles + rng.normal(0, 0.3, 200)
    logw = np.where(np.abs(particles - z) < 2, -0.5 * ((particles - z) / 0.2) ** 2, -np.inf)
    logw -= logw.max()
    weights = np.exp(logw)
    weights /= weights.sum()
    estimates.append((weights * particles).sum())
    ess = 1 / (weights**2).sum()
    ess_log.append(ess)
    if ess < 100:
        idx = rng.choice(200, 200, p=weights)
        particles = particles[idx]
        weights.fill(1 / 200)
np.round(estimates, 2), ess_log[-1]

# %%
# Kalman filter in torch.
F_, H, Q, R = (
    torch.tensor([[1.0, 1.0], [0.0, 1.0]]),
    torch.tensor([[1.0, 0.0]]),
    0.01 * torch.eye(2),
    torch.tensor([[0.1]]),
)
m, P = torch.zeros(2), torch.eye(2)
means, covs = [], []
for z in torch.arange(5.0) + 0.1 * torch.randn(5):
    m, P = F_ @ m, F_ @ P @ F_.T + Q
    S = H @ P @ H.T + R
    gain = P @ H.T @ S.inverse()
    m = m + gain @ (z - H @ m)
    P = (torch.eye(2) - gain @ H) @ P
    means.append(m)
    covs.append(P)
torch.stack(means).shape, covs[-1]

# %%
# Planets by leapfrog, positions in place, snapshots copied.
pos = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
vel = torch.tensor([[0.0, 0.0], [0.0, 1.0], [-0.7, 0.0]])
mass = torch.tensor([1.0, 1e-3, 1e-3])


def acceleration(pos):
    d = pos[None] - pos[:, None]
    r3 = (d.pow(2).sum(-1) + 1e-3).pow(1.5)
    return (mass[None, :, None] * d / r3[..., None]).sum(1)


dt = 0.05
acc = acceleration(pos)
trajectory, energy = torch.empty(20, 3, 2), []
for k in range(20):
    vel += 0.5 * dt * acc
    pos += dt * vel
    acc = acceleration(pos)
    vel += 0.5 * dt * acc
    trajectory[k] = pos
    energy.append(0.5 * (mass[:, None] * vel**2).sum().item())
trajectory[-1], energy[-1]

# %%
# Waves: three arrays take turns.
u_prev, u, u_next = np.zeros(30), np.zeros(30), np.zeros(30)
u[14:16] = u_prev[14:16] = 1.0
frames = []
for _ in range(12):
    u_next[1:-1] = 2 * u[1:-1] - u_prev[1:-1] + 0.25 * (u[2:] - 2 * u[1:-1] + u[:-2])
    u_prev, u, u_next = u, u_next, u_prev
    frames.append(u.copy())
np.array(frames).shape
