"""Numbers: distributions, Gaussian processes, spectra, sparse and nested tensors, infinities that are meant."""

# %%
import math

import numpy as np
import torch
import torch.distributions as D
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(13)
torch.set_printoptions(precision=3, sci_mode=False)
x = torch.linspace(-2, 2, 12).unsqueeze(1)
y = torch.sin(2 * x).squeeze() + 0.1 * torch.randn(12)

# %%
log_length, log_signal, log_noise = (torch.tensor(v, requires_grad=True) for v in (0.0, 0.0, -2.0))


def rbf(a, b):
    return log_signal.exp() * torch.exp(-0.5 * torch.cdist(a, b).pow(2) / log_length.exp().pow(2))


def negative_log_marginal(x, y):
    K = rbf(x, x) + (log_noise.exp() + 1e-5) * torch.eye(len(x))
    L = torch.linalg.cholesky(K)
    alpha = torch.cholesky_solve(y.unsqueeze(1), L)
    return 0.5 * (y @ alpha.squeeze()) + L.diagonal().log().sum() + 0.5 * len(x) * math.log(2 * math.pi)


opt = torch.optim.Adam([log_length, log_signal, log_noise], lr=0.05)
trace = []
for _ in range(8):
    opt.zero_grad()
    nll = negative_log_marginal(x, y)
    nll.backward()
    opt.step()
    trace.append(nll.item())
trace[-1]

# %%
xs = torch.linspace(-3, 3, 20).unsqueeze(1)
with torch.no_grad():
    K = rbf(x, x) + log_noise.exp() * torch.eye(12)
    Ks, Kss = rbf(xs, x), rbf(xs, xs)
    mean = Ks @ torch.linalg.solve(K, y)
    cov = Kss - Ks @ torch.linalg.solve(K, Ks.T)
    std = cov.diagonal().clamp(min=0).sqrt()
upper, lower = (mean + 2 * std).numpy(), (mean - 2 * std).numpy()
upper.shape, lower.min()

# %%
mix = D.MixtureSameFamily(D.Categorical(torch.tensor([0.3, 0.7])), D.Normal(torch.tensor([-1.0, 2.0]), torch.ones(2)))
samples = mix.sample((200,))
loc, log_scale = torch.zeros(2, requires_grad=True), torch.zeros(2, requires_grad=True)
logits = torch.zeros(2, requires_grad=True)
with torch.no_grad():
    loc += torch.tensor([-0.5, 0.5])
opt = torch.optim.Adam([loc, log_scale, logits], lr=0.05)
for _ in range(5):
    model = D.MixtureSameFamily(D.Categorical(logits=logits), D.Normal(loc, log_scale.exp()))
    loss = -model.log_prob(samples).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
model.mean.item(), model.stddev.item()

# %%
# Outside the support the logarithm of a density is -inf; that is its value.
uniform = D.Uniform(0.0, 1.0, validate_args=False)
support = uniform.log_prob(torch.tensor([-0.5, 0.5, 1.5]))
poisson = D.Poisson(torch.tensor([1.0, 4.0])).log_prob(torch.tensor([0.0, 3.0]))
beta, dirichlet = D.Beta(2.0, 3.0).rsample((4,)), D.Dirichlet(torch.ones(3)).sample()
support, poisson, beta.mean(), dirichlet.sum()


# %%
# Bayes by Metropolis: proposals of probability zero are -inf.
def log_posterior(theta):
    if theta.abs() > 3:
        return torch.tensor(-float("inf"))
    return -0.5 * (samples[:20] - theta).pow(2).sum()


theta, chain, accepted = torch.tensor(0.0), [], 0
current = log_posterior(theta)
for _ in range(40):
    proposal = theta + 0.8 * torch.randn(())
    candidate = log_posterior(proposal)
    if torch.rand(()).log() < candidate - current:
        theta, current, accepted = proposal, candidate, accepted + 1
    chain.append(theta)
chain = torch.stack(chain)
accepted / 40, chain.mean()

# %%
# Viterbi and forward algorithm in log space: impossible transitions are log(0).
transition = torch.tensor([[0.7, 0.3, 0.0], [0.0, 0.6, 0.4], [0.5, 0.0, 0.5]])
start = torch.tensor([1.0, 0.0, 0.0])
emission = torch.rand(3, 6).softmax(0)
log_T = torch.log(transition)
log_alpha = start.log() + emission[:, 0].log()
for t in range(1, 6):
    log_alpha = torch.logsumexp(log_alpha.unsqueeze(1) + log_T, dim=0) + emission[:, t].log()
torch.logsumexp(log_alpha, 0)

# %%
# Shortest paths: no edge is an infinite distance.
INF = float("inf")
dist = torch.tensor([[0, 3, INF, 7], [8, 0, 2, INF], [5, INF, 0, 1], [2, INF, INF, 0]])
for k in range(4):
    dist = torch.minimum(dist, dist[:, k : k + 1] + dist[k : k + 1, :])
dist

# %%
# Dynamic time warping and edit distances start from infinity.
s, t = torch.randn(5), torch.randn(6)
dtw = torch.full((6, 7), torch.inf)
dtw[0, 0] = 0.0
for i in range(1, 6):
    for j in range(1, 7):
        dtw[i, j] = (s[i - 1] - t[j - 1]).abs() + torch.min(
            torch.stack([dtw[i - 1, j], dtw[i, j - 1], dtw[i - 1, j - 1]])
        )
dtw[5, 6].item()

# %%
best, best_params, worst = np.inf, None, -np.inf
for lr in (1e-3, 1e-2, 1e-1):
    score = float((lr - 0.02) ** 2)
    worst = max(worst, score)
    if score < best:
        best, best_params = score, {"lr": lr}
best_params, worst

# %%
signal = torch.sin(2 * torch.pi * 5 * torch.linspace(0, 1, 64)) + 0.2 * torch.randn(64)
spectrum = torch.fft.rfft(signal)
power = spectrum.abs().pow(2)
low_passed = torch.fft.irfft(spectrum * (torch.arange(33) < 10), n=64)
stft = torch.stft(signal, n_fft=16, window=torch.hann_window(16), return_complex=True)
decibels = 10 * torch.log10(stft.abs().pow(2).clamp(min=1e-10))
z = torch.randn(3, 3, dtype=torch.cfloat, requires_grad=True)
(z @ z.conj().T - torch.eye(3)).abs().pow(2).sum().backward()
power.argmax(), low_passed.std(), decibels.max(), z.grad.dtype


# %%
class SpectralConv(nn.Module):
    def __init__(self, width=4, modes=5):
        super().__init__()
        self.modes = modes
        self.weight = nn.Parameter(torch.randn(width, width, modes, dtype=torch.cfloat) / width)

    def forward(self, x):
        ft = torch.fft.rfft(x)
        out = torch.zeros_like(ft)
        out[..., : self.modes] = torch.einsum("bix,iox->box", ft[..., : self.modes], self.weight)
        return torch.fft.irfft(out, n=x.size(-1))


fno = nn.Sequential(nn.Conv1d(1, 4, 1), SpectralConv(), nn.GELU(), nn.Conv1d(4, 1, 1))
opt = torch.optim.Adam(fno.parameters(), lr=1e-2)
waves = torch.stack([signal, low_passed]).unsqueeze(1)
for _ in range(3):
    loss = F.mse_loss(fno(waves), waves.cumsum(-1) / 64)
    opt.zero_grad()
    loss.backward()
    opt.step()
loss

# %%
edges = torch.tensor([[0, 1, 1, 2, 3], [1, 0, 2, 3, 0]])
adjacency = torch.sparse_coo_tensor(edges, torch.ones(5), (4, 4)).coalesce()
degree = torch.sparse.sum(adjacency, dim=1).to_dense()
inv_sqrt = degree.pow(-0.5)
inv_sqrt[inv_sqrt == float("inf")] = 0.0
features, gcn = torch.randn(4, 5), nn.Linear(5, 2)
opt = torch.optim.SGD(gcn.parameters(), lr=0.1)
for _ in range(3):
    hidden = torch.sparse.mm(adjacency, inv_sqrt[:, None] * gcn(features))
    loss = F.cross_entropy(hidden, torch.tensor([0, 1, 0, 1]))
    opt.zero_grad()
    loss.backward()
    opt.step()
csr = adjacency.to_sparse_csr()
(csr @ features).shape

# %%
nested = torch.nested.nested_tensor([torch.randn(3, 4), torch.randn(5, 4)], layout=torch.jagged)
padded = torch.nested.to_padded_tensor(nested, padding=float("-inf"))
lengths = torch.tensor([3, 5])
pooled = padded.max(dim=1).values
nested.is_nested, pooled.shape

# %%
pred = torch.tensor([0.1, 0.5, 0.9])
counts = torch.tensor([0.0, 2.0, 3.0])
entropy = -torch.special.xlogy(pred, pred).sum()
ratio = torch.where(counts > 0, pred / counts.clamp(min=1), torch.zeros(()))
safe_log = torch.log(pred + 1e-8)
log_counts = torch.log1p(counts)
with np.errstate(divide="ignore", invalid="ignore"):
    raw = counts.numpy() / np.array([0.0, 1.0, 2.0], dtype=np.float32)
cleaned = np.nan_to_num(raw, nan=0.0, posinf=0.0)
entropy, ratio, safe_log, log_counts, cleaned

# %%
r = D.Normal(0.0, 1.0).sample((1000,))
quantiles = torch.quantile(r, torch.tensor([0.05, 0.5, 0.95]))
bins = np.concatenate(([-np.inf], quantiles.numpy(), [np.inf]))
histogram = np.histogram(r.numpy(), bins=bins)[0]
histogram

# %%
# A rolling mean keeps NaN where the window is not full, as pandas does.
window = 4
rolling = torch.cat([torch.full((window - 1,), torch.nan), signal.unfold(0, window, 1).mean(-1)])
crossing = rolling[window - 1 :].sign().diff().ne(0).sum()
crossing
