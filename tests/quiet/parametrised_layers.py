"""Layers whose weights are computed or shared: norms, parametrizations, pruning, tying, lazy and custom layers."""

# %%
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.nn.utils.parametrize as parametrize
from torch.nn.utils import parameters_to_vector, prune, vector_to_parameters

torch.manual_seed(7)
x, y = torch.randn(32, 8), torch.randint(0, 3, (32,))


def fit(model, steps=4):
    opt = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


# %%
weight_normed = nn.utils.parametrizations.weight_norm(nn.Linear(8, 3))
spectral = nn.utils.parametrizations.spectral_norm(nn.Linear(8, 3))
orthogonal = nn.utils.parametrizations.orthogonal(nn.Linear(8, 8))
fit(weight_normed), fit(spectral), fit(nn.Sequential(orthogonal, nn.Linear(8, 3)))

# %%
old_style = nn.utils.weight_norm(nn.Linear(8, 3))
old_spectral = nn.utils.spectral_norm(nn.Linear(8, 3))
fit(old_style), fit(old_spectral)
old_style(x).sum().item()


# %%
class Symmetric(nn.Module):
    def forward(self, W):
        return W.triu() + W.triu(1).transpose(-1, -2)


class Skew(nn.Module):
    def forward(self, W):
        A = W.triu(1)
        return A - A.transpose(-1, -2)


layer = nn.Linear(8, 8)
parametrize.register_parametrization(layer, "weight", Symmetric())
net = nn.Sequential(layer, nn.ReLU(), nn.Linear(8, 3))
fit(net)
with parametrize.cached():
    out = net(x)
torch.allclose(layer.weight, layer.weight.T), out.mean()


# %%
class LowRank(nn.Module):
    def __init__(self, base, rank=2):
        super().__init__()
        self.base = base
        for p in self.base.parameters():
            p.requires_grad = False
        self.A = nn.Parameter(torch.randn(rank, base.in_features) * 0.02)
        self.B = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T

    @torch.no_grad()
    def merge(self):
        merged = nn.Linear(self.base.in_features, self.base.out_features)
        merged.weight.copy_(self.base.weight + self.B @ self.A)
        merged.bias.copy_(self.base.bias)
        return merged


model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
for i, module in enumerate(model):
    if isinstance(module, nn.Linear):
        model[i] = LowRank(module)
trainable = [n for n, p in model.named_parameters() if p.requires_grad]
fit(model)
merged = model[0].merge()
trainable, torch.allclose(merged(x), model[0](x), atol=1e-5)

# %%
pruned = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
prune.random_unstructured(pruned[0], name="weight", amount=0.3)
prune.l1_unstructured(pruned[2], name="bias", amount=1)
prune.global_unstructured([(pruned[0], "weight"), (pruned[2], "weight")], prune.L1Unstructured, amount=0.2)
fit(pruned)
sparsity = 100.0 * float((pruned[0].weight == 0).sum()) / pruned[0].weight.nelement()
sparsity

# %%
for module, name in [(pruned[0], "weight"), (pruned[2], "weight"), (pruned[2], "bias")]:
    prune.remove(module, name)
[n for n, _ in pruned.named_parameters()]


# %%
class TiedAutoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)
        self.bias = nn.Parameter(torch.zeros(8))

    def forward(self, x):
        return F.linear(torch.tanh(self.encoder(x)), self.encoder.weight.t(), self.bias)


class TiedLM(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.out = nn.Linear(8, 12, bias=False)
        self.out.weight = self.embed.weight

    def forward(self, tokens):
        return self.out(self.embed(tokens))


ae, lm = TiedAutoencoder(), TiedLM()
opt = torch.optim.Adam([*ae.parameters(), *lm.parameters()], lr=1e-2)
tokens = torch.randint(0, 12, (32,))
for _ in range(4):
    loss = F.mse_loss(ae(x), x) + F.cross_entropy(lm(tokens), tokens)
    opt.zero_grad()
    loss.backward()
    opt.step()
clone = copy.deepcopy(lm)
clone.out.weight is clone.embed.weight, loss.item()


# %%
# The same block used several times, and activations repeated in a list, on purpose.
class Universal(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        shared = nn.Linear(8, 8)
        self.layers = nn.ModuleList([shared] * depth)
        self.acts = nn.ModuleList([nn.ReLU()] * depth)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        for layer, act in zip(self.layers, self.acts):
            x = act(layer(x))
        return self.head(x)


fit(Universal())


# %%
def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


stack = nn.Sequential(*clones(nn.Linear(8, 8), 3), nn.Linear(8, 3))
fit(stack)

# %%
vector = parameters_to_vector(stack.parameters())
start = vector.detach().clone()
vector_to_parameters(start + 0.01 * torch.randn_like(start), stack.parameters())
fit(stack, 2)
(parameters_to_vector(stack.parameters()) - start).norm().item()

# %%
lazy = nn.Sequential(nn.LazyLinear(16), nn.ReLU(), nn.LazyLinear(3))
lazy

# %%
lazy(x)
fit(lazy)

# %%
with torch.device("meta"):
    skeleton = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
skeleton[0].weight

# %%
built = skeleton.to_empty(device="cpu")
for m in built:
    if isinstance(m, nn.Linear):
        m.reset_parameters()
fit(built)


# %%
class NoisyLinear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.mu = nn.Parameter(torch.empty(outputs, inputs).uniform_(-0.3, 0.3))
        self.sigma = nn.Parameter(torch.full((outputs, inputs), 0.02))
        self.register_buffer("noise", torch.zeros(outputs, inputs))
        self.register_buffer("cached", None, persistent=False)

    def resample(self):
        self.noise.normal_()

    def forward(self, x):
        return F.linear(x, self.mu + self.sigma * self.noise if self.training else self.mu)


noisy = NoisyLinear(8, 3)
noisy.resample()
fit(noisy)
noisy.eval()
noisy(x).argmax(1).bincount(minlength=3)


# %%
class VectorQuantizer(nn.Module):
    def __init__(self, codes=6, dim=8):
        super().__init__()
        self.codebook = nn.Embedding(codes, dim)
        self.register_buffer("usage", torch.zeros(codes))

    def forward(self, z):
        index = torch.cdist(z, self.codebook.weight).argmin(1)
        q = self.codebook(index)
        self.usage.mul_(0.9).add_(F.one_hot(index, 6).float().mean(0), alpha=0.1)
        loss = F.mse_loss(q, z.detach()) + 0.25 * F.mse_loss(q.detach(), z)
        return z + (q - z).detach(), loss, index


vq, enc, dec = VectorQuantizer(), nn.Linear(8, 8), nn.Linear(8, 8)
opt = torch.optim.Adam([*vq.parameters(), *enc.parameters(), *dec.parameters()], lr=1e-2)
for _ in range(4):
    q, vq_loss, index = vq(enc(x))
    loss = F.mse_loss(dec(q), x) + vq_loss
    opt.zero_grad()
    loss.backward()
    opt.step()
perplexity = torch.exp(-(vq.usage * (vq.usage + 1e-10).log()).sum())
perplexity


# %%
# Batch norm by hand, with running statistics.
class BatchNorm(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.gamma, self.beta = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.moving_mean, self.moving_var = torch.zeros(features), torch.ones(features)

    def forward(self, X):
        if not torch.is_grad_enabled():
            return self.gamma * (X - self.moving_mean) / torch.sqrt(self.moving_var + 1e-5) + self.beta
        mean, var = X.mean(0), X.var(0, unbiased=False)
        self.moving_mean = 0.9 * self.moving_mean + 0.1 * mean.data
        self.moving_var = 0.9 * self.moving_var + 0.1 * var.data
        return self.gamma * (X - mean) / torch.sqrt(var + 1e-5) + self.beta


bn_net = nn.Sequential(nn.Linear(8, 8), BatchNorm(8), nn.ReLU(), nn.Linear(8, 3))
fit(bn_net, 6)
with torch.no_grad():
    print(bn_net(x)[0], bn_net[1].moving_mean[:3])
