"""Generative models: GAN, WGAN with gradient penalty, variational autoencoder, normalizing flow, diffusion."""

# %%
import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import MultivariateNormal, Normal, kl_divergence

torch.manual_seed(2)
device = "cpu"
real_data = torch.randn(128, 2) @ torch.tensor([[1.0, 0.4], [0.0, 0.6]]) + 1.0


# %%
class Generator(nn.Module):
    def __init__(self, nz=4):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(nz, 16), nn.BatchNorm1d(16), nn.ReLU(True), nn.Linear(16, 2))

    def forward(self, z):
        return self.main(z)


class Discriminator(nn.Module):
    def __init__(self):
        super().__init__()
        self.main = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2, inplace=True), nn.Linear(16, 1), nn.Sigmoid())

    def forward(self, x):
        return self.main(x)


def weights_init(m):
    if isinstance(m, nn.Linear):
        nn.init.normal_(m.weight.data, 0.0, 0.2)
        nn.init.zeros_(m.bias.data)


netG, netD = Generator().to(device), Discriminator().to(device)
netG.apply(weights_init)
netD.apply(weights_init)

# %%
criterion = nn.BCELoss()
fixed_noise = torch.randn(16, 4, device=device)
real_label, fake_label = 1.0, 0.0
optimizerD = torch.optim.Adam(netD.parameters(), lr=2e-3, betas=(0.5, 0.999))
optimizerG = torch.optim.Adam(netG.parameters(), lr=2e-3, betas=(0.5, 0.999))

# %%
samples, G_losses, D_losses = [], [], []
for epoch in range(3):
    for real in real_data.split(32):
        netD.zero_grad()
        label = torch.full((real.size(0),), real_label)
        output = netD(real).view(-1)
        errD_real = criterion(output, label)
        errD_real.backward()
        D_x = output.mean().item()

        fake = netG(torch.randn(real.size(0), 4))
        label.fill_(fake_label)
        output = netD(fake.detach()).view(-1)
        errD_fake = criterion(output, label)
        errD_fake.backward()
        D_G_z1 = output.mean().item()
        errD = errD_real + errD_fake
        optimizerD.step()

        netG.zero_grad()
        label.fill_(real_label)
        output = netD(fake).view(-1)
        errG = criterion(output, label)
        errG.backward()
        optimizerG.step()
        G_losses.append(errG.item())
        D_losses.append(errD.item())
    with torch.no_grad():
        samples.append(netG(fixed_noise).detach().cpu())
print(f"D(x) {D_x:.2f}  D(G(z)) {D_G_z1:.2f}  {len(samples)}")

# %%
critic = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))
generator = Generator()
opt_c = torch.optim.RMSprop(critic.parameters(), lr=1e-3)
opt_g = torch.optim.RMSprop(generator.parameters(), lr=1e-3)


def gradient_penalty(critic, real, fake):
    eps = torch.rand(real.size(0), 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    scores = critic(mixed)
    (gradients,) = torch.autograd.grad(
        outputs=scores, inputs=mixed, grad_outputs=torch.ones_like(scores), create_graph=True, retain_graph=True
    )
    return ((gradients.norm(2, dim=1) - 1) ** 2).mean()


# %%
one, mone = torch.tensor(1.0), torch.tensor(-1.0)
wasserstein = []
for step in range(6):
    for p in critic.parameters():
        p.requires_grad = True
    for _ in range(2):
        real = real_data[torch.randint(0, 128, (32,))]
        critic.zero_grad()
        d_real = critic(real).mean()
        d_real.backward(mone)
        fake = generator(torch.randn(32, 4)).detach()
        d_fake = critic(fake).mean()
        d_fake.backward(one)
        gp = 10.0 * gradient_penalty(critic, real, fake)
        gp.backward()
        opt_c.step()
    for p in critic.parameters():
        p.requires_grad = False
    generator.zero_grad()
    cost = critic(generator(torch.randn(32, 4))).mean()
    cost.backward(mone)
    opt_g.step()
    wasserstein.append((d_real - d_fake).item())
wasserstein[-1]


# %%
class VAE(nn.Module):
    def __init__(self, latent=2):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 16), nn.ReLU())
        self.fc_mu, self.fc_logvar = nn.Linear(16, latent), nn.Linear(16, latent)
        self.decoder = nn.Sequential(nn.Linear(latent, 16), nn.ReLU(), nn.Linear(16, 12), nn.Sigmoid())

    def encode(self, x):
        h = self.encoder(x)
        return self.fc_mu(h), self.fc_logvar(h)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        return mu + torch.randn_like(std) * std

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decoder(self.reparameterize(mu, logvar)), mu, logvar


def loss_function(recon, x, mu, logvar):
    bce = F.binary_cross_entropy(recon, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return bce + kld, bce, kld


# %%
images = (torch.rand(64, 12) > 0.5).float()
vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=1e-2)
logs = []
for epoch in range(4):
    vae.train()
    train_loss = 0
    for batch in images.split(16):
        recon, mu, logvar = vae(batch)
        loss, bce, kld = loss_function(recon, batch, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
    logs.append({"loss": train_loss / len(images), "bce": bce.item(), "kld": kld.detach()})
logs[-1]

# %%
vae.eval()
with torch.no_grad():
    generated = vae.decoder(torch.randn(5, 2))
    z, _ = vae.encode(images)
interpolation = [vae.decoder(torch.lerp(z[0], z[1], w)).detach() for w in torch.linspace(0, 1, 4)]
latents = z.numpy()
torch.stack(interpolation).shape, latents.mean(0)

# %%
mu, logvar = vae.encode(images)
posterior = Normal(mu, (0.5 * logvar).exp())
kl = kl_divergence(posterior, Normal(0.0, 1.0)).sum(1).mean()
kl.backward()
kl.item()


# %%
class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).chunk(2, dim=1)
        s = torch.tanh(s)
        b = b * s.exp() + t
        return torch.cat([b, a] if self.flip else [a, b], dim=1), s.squeeze(1)


class Flow(nn.Module):
    def __init__(self, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(i % 2 == 1) for i in range(depth))
        self.register_buffer("loc", torch.zeros(2))
        self.register_buffer("cov", torch.eye(2))

    def log_prob(self, x):
        log_det = torch.zeros(x.size(0))
        for layer in self.layers:
            x, ld = layer(x)
            log_det = log_det + ld
        return MultivariateNormal(self.loc, self.cov).log_prob(x) + log_det


# %%
flow = Flow()
opt = torch.optim.Adam(flow.parameters(), lr=5e-3)
nll = []
for _ in range(10):
    opt.zero_grad()
    loss = -flow.log_prob(real_data).mean()
    loss.backward()
    opt.step()
    nll.append(loss.detach())
nll = torch.stack(nll)
nll[0] > nll[-1]

# %%
T = 20
betas = torch.linspace(1e-4, 0.2, T)
alphas = 1.0 - betas
alphas_cumprod = torch.cumprod(alphas, dim=0)
alphas_cumprod_prev = F.pad(alphas_cumprod[:-1], (1, 0), value=1.0)
posterior_variance = betas * (1.0 - alphas_cumprod_prev) / (1.0 - alphas_cumprod)
posterior_log_variance = torch.log(posterior_variance.clamp(min=1e-20))


def time_embedding(t, dim=8):
    freqs = torch.exp(-math.log(1000) * torch.arange(dim // 2) / (dim // 2))
    args = t[:, None].float() * freqs
    return torch.cat([args.sin(), args.cos()], dim=-1)


denoiser = nn.Sequential(nn.Linear(2 + 8, 32), nn.SiLU(), nn.Linear(32, 2))
opt = torch.optim.AdamW(denoiser.parameters(), lr=1e-2)

# %%
for x0 in real_data.split(32):
    t = torch.randint(0, T, (len(x0),))
    noise = torch.randn_like(x0)
    a = alphas_cumprod[t][:, None]
    noisy = a.sqrt() * x0 + (1 - a).sqrt() * noise
    loss = F.mse_loss(denoiser(torch.cat([noisy, time_embedding(t)], 1)), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
loss.item()


# %%
@torch.no_grad()
def sample(n):
    x = torch.randn(n, 2)
    trajectory = [x]
    for step in reversed(range(T)):
        t = torch.full((n,), step)
        eps = denoiser(torch.cat([x, time_embedding(t)], 1))
        x = (x - betas[step] / (1 - alphas_cumprod[step]).sqrt() * eps) / alphas[step].sqrt()
        if step > 0:
            x = x + posterior_variance[step].sqrt() * torch.randn_like(x)
        trajectory.append(x)
    return trajectory


frames = sample(8)
len(frames), frames[-1].mean(0)
