"""Gradients with respect to inputs: adversarial examples, style transfer, inversion, implicit networks, MAML."""

# %%
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call

torch.manual_seed(8)
images = torch.rand(16, 1, 8, 8)
labels = (images.mean((1, 2, 3)) > 0.5).long()
model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(256, 2))
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for _ in range(5):
    loss = F.cross_entropy(model(images), labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
model.eval()


# %%
def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def test(model, epsilon):
    correct, adv_examples = 0, []
    for data, target in zip(images.split(1), labels.split(1)):
        data.requires_grad = True
        output = model(data)
        init_pred = output.max(1, keepdim=True)[1]
        if init_pred.item() != target.item():
            continue
        loss = F.nll_loss(F.log_softmax(output, 1), target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        final_pred = model(perturbed).max(1, keepdim=True)[1]
        if final_pred.item() == target.item():
            correct += 1
        elif len(adv_examples) < 5:
            adv_examples.append((init_pred.item(), final_pred.item(), perturbed.squeeze().detach().cpu().numpy()))
    return correct / len(labels), adv_examples


# %%
accuracies, examples = [], []
for eps in [0, 0.1, 0.3]:
    acc, ex = test(model, eps)
    accuracies.append(acc)
    examples.append(ex)
accuracies

# %%
# PGD: delta is optimised, clamped in place, and its gradient dropped.
delta = torch.zeros_like(images, requires_grad=True)
for _ in range(5):
    loss = F.cross_entropy(model(images + delta), labels)
    loss.backward()
    delta.data = (delta + 0.02 * delta.grad.detach().sign()).clamp(-0.1, 0.1)
    delta.grad.zero_()
adversarial = (images + delta).detach().clamp(0, 1)
(model(adversarial).argmax(1) == labels).float().mean()


# %%
class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, x):
        self.loss = F.mse_loss(x, self.target)
        return x


def gram_matrix(x):
    a, b, c, d = x.size()
    features = x.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target_feature):
        super().__init__()
        self.target = gram_matrix(target_feature).detach()

    def forward(self, x):
        self.loss = F.mse_loss(gram_matrix(x), self.target)
        return x


cnn = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(inplace=False), nn.Conv2d(4, 4, 3), nn.ReLU(inplace=False)).eval()
content_img, style_img = images[:1], images[1:2]


def build(cnn, style_img, content_img):
    content_losses, style_losses, net = [], [], nn.Sequential()
    for i, layer in enumerate(cnn):
        net.add_module(f"layer_{i}", layer)
        if i == 2:
            content_losses.append(ContentLoss(net(content_img).detach()))
            net.add_module("content", content_losses[-1])
        if i in (0, 2):
            style_losses.append(StyleLoss(net(style_img).detach()))
            net.add_module(f"style_{i}", style_losses[-1])
    return net, style_losses, content_losses


# %%
net, style_losses, content_losses = build(cnn, style_img, content_img)
input_img = content_img.clone()
input_img.requires_grad_(True)
net.eval()
net.requires_grad_(False)
optimizer = torch.optim.LBFGS([input_img])
run = [0]
while run[0] <= 20:

    def closure():
        with torch.no_grad():
            input_img.clamp_(0, 1)
        optimizer.zero_grad()
        net(input_img)
        style_score = 0
        content_score = 0
        for sl in style_losses:
            style_score += sl.loss
        for cl in content_losses:
            content_score += cl.loss
        loss = 1e4 * style_score + content_score
        loss.backward()
        run[0] += 1
        return loss

    optimizer.step(closure)
with torch.no_grad():
    input_img.clamp_(0, 1)
input_img.detach().squeeze().numpy().shape

# %%
# Activation maximisation, and double backward for a Hessian-vector product.
img = torch.rand(1, 1, 8, 8, requires_grad=True)
opt_img = torch.optim.Adam([img], lr=0.1)
scores = []
for _ in range(5):
    score = -model(img)[0, 1] + 1e-2 * img.norm()
    opt_img.zero_grad()
    score.backward()
    opt_img.step()
    scores.append(-score.item())
w = [p for p in model.parameters()]
loss = F.cross_entropy(model(images), labels)
grads = torch.autograd.grad(loss, w, create_graph=True)
v = [torch.ones_like(p) for p in w]
hvp = torch.autograd.grad(sum((g * u).sum() for g, u in zip(grads, v)), w)
[h.norm().item() for h in hvp]

# %%
# A physics-informed network: derivatives of the output by the input, kept in the graph of the loss.
pinn = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
opt = torch.optim.Adam(pinn.parameters(), lr=1e-2)
t = torch.linspace(0, 1, 16).view(-1, 1).requires_grad_(True)
history = []
for _ in range(5):
    u = pinn(t)
    (dudt,) = torch.autograd.grad(u, t, torch.ones_like(u), create_graph=True)
    (d2udt2,) = torch.autograd.grad(dudt, t, torch.ones_like(dudt), create_graph=True)
    residual = d2udt2 + 9.0 * u
    loss = residual.pow(2).mean() + (u[0] - 1).pow(2).squeeze() + dudt[0].pow(2).squeeze()
    opt.zero_grad()
    loss.backward()
    opt.step()
    history.append(loss.item())
history[-1]


# %%
# An ordinary differential equation solved step by step, back-propagated through all steps.
class ODEFunc(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 2))

    def forward(self, t, y):
        return self.net(y**3)


def odeint(func, y0, t):
    ys, y = [y0], y0
    for t0, t1 in zip(t[:-1], t[1:]):
        h = t1 - t0
        k1 = func(t0, y)
        k2 = func(t0 + h / 2, y + h * k1 / 2)
        k3 = func(t0 + h / 2, y + h * k2 / 2)
        k4 = func(t1, y + h * k3)
        y = y + h * (k1 + 2 * k2 + 2 * k3 + k4) / 6
        ys.append(y)
    return torch.stack(ys)


ts = torch.linspace(0.0, 1.0, 6)
y0 = torch.tensor([[2.0, 0.0]])
with torch.no_grad():
    true_y = odeint(lambda t, y: torch.mm(y**3, torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])), y0, ts)
func = ODEFunc()
opt = torch.optim.RMSprop(func.parameters(), lr=1e-3)
for itr in range(4):
    opt.zero_grad()
    pred_y = odeint(func, y0, ts)
    loss = (pred_y - true_y).abs().mean()
    loss.backward()
    opt.step()
pred_y.detach().numpy().shape

# %%
# The trajectory in a list at top level, one backward for all of it.
position, trajectory = torch.zeros(2), []
thrust = nn.Linear(2, 2)
sgd = torch.optim.SGD(thrust.parameters(), lr=0.1)
for _ in range(8):
    position = position + 0.1 * thrust(position)
    trajectory.append(position)
cost = torch.stack(trajectory).sub(1.0).pow(2).mean()
sgd.zero_grad()
cost.backward()
sgd.step()
path = torch.stack(trajectory).detach()
path[-1]


# %%
# MAML with functional_call: fast weights carry the graph of the inner steps.
def task():
    amplitude, phase = torch.rand(1) * 4 + 0.1, torch.rand(1) * 3
    x = torch.rand(16, 1) * 10 - 5
    return (x[:8], amplitude * torch.sin(x[:8] + phase)), (x[8:], amplitude * torch.sin(x[8:] + phase))


learner = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
meta_opt = torch.optim.Adam(learner.parameters(), lr=1e-3)
for iteration in range(4):
    meta_loss = 0.0
    for _ in range(3):
        (xs, ys), (xq, yq) = task()
        fast = dict(learner.named_parameters())
        for _ in range(2):
            inner = F.mse_loss(functional_call(learner, fast, (xs,)), ys)
            grads = torch.autograd.grad(inner, fast.values(), create_graph=True)
            fast = {n: p - 0.01 * g for (n, p), g in zip(fast.items(), grads)}
        meta_loss = meta_loss + F.mse_loss(functional_call(learner, fast, (xq,)), yq)
    meta_opt.zero_grad()
    meta_loss.backward()
    meta_opt.step()
meta_loss.item() / 3

# %%
# Reptile: a copy learns, the original follows.
for _ in range(3):
    (xs, ys), _ = task()
    worker = copy.deepcopy(learner)
    inner_opt = torch.optim.SGD(worker.parameters(), lr=0.02)
    for _ in range(3):
        inner_opt.zero_grad()
        F.mse_loss(worker(xs), ys).backward()
        inner_opt.step()
    with torch.no_grad():
        for p, q in zip(learner.parameters(), worker.parameters()):
            p.add_(q - p, alpha=0.1)

# %%
# Elastic weight consolidation: squared gradients of the old task, and the old weights.
fisher = {n: torch.zeros_like(p) for n, p in learner.named_parameters()}
anchor = {n: p.detach().clone() for n, p in learner.named_parameters()}
(xs, ys), (xq, yq) = task()
for a, b in zip(xs, ys):
    learner.zero_grad()
    F.mse_loss(learner(a), b).backward()
    for n, p in learner.named_parameters():
        fisher[n] += p.grad.data.pow(2) / len(xs)
for _ in range(3):
    penalty = sum((fisher[n] * (p - anchor[n]).pow(2)).sum() for n, p in learner.named_parameters())
    loss = F.mse_loss(learner(xq), yq) + 100 * penalty
    meta_opt.zero_grad()
    loss.backward()
    meta_opt.step()
penalty
