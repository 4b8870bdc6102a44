"""torch.func and autograd from below: custom functions, per-sample gradients, ensembles, Jacobians, hooks."""

# %%
import copy
from functools import partial

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call, grad, grad_and_value, hessian, jacrev, jvp, stack_module_state, vjp, vmap

torch.manual_seed(12)
x, y = torch.randn(20, 3), torch.randn(20, 1)


# %%
class LegendrePolynomial3(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class RoundSTE(torch.autograd.Function):
    @staticmethod
    def forward(ctx, input):
        return input.round()

    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
P3 = LegendrePolynomial3.apply
t = torch.linspace(-3, 3, 40)
for step in range(6):
    y_pred = a + b * P3(c + d * t)
    loss = (y_pred - t.sin()).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
f"y = {a.item()} + {b.item()} * P3({c.item()} + {d.item()} x)"

# %%
w = torch.randn(3, 1, requires_grad=True)
bias = torch.zeros(1, requires_grad=True)
lr = 0.03


def linreg(X, w, b):
    return torch.matmul(X, w) + b


def sgd(params, lr, batch_size):
    with torch.no_grad():
        for param in params:
            param -= lr * param.grad / batch_size
            param.grad.zero_()


for epoch in range(3):
    for xb, yb in zip(x.split(5), y.split(5)):
        l = (linreg(xb, w, bias) - yb) ** 2 / 2
        l.sum().backward()
        sgd([w, bias], lr, 5)
    with torch.no_grad():
        train_l = (linreg(x, w, bias) - y) ** 2 / 2
        print(f"epoch {epoch + 1}, loss {float(train_l.mean()):f}")

# %%
ste = RoundSTE.apply
scale = torch.tensor(0.1, requires_grad=True)
quantised = ste(x / scale) * scale
(quantised - x).pow(2).mean().backward()
torch.autograd.gradcheck(P3, (torch.randn(4, dtype=torch.double, requires_grad=True),)), scale.grad

# %%
model = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))
params = {k: v.detach() for k, v in model.named_parameters()}
buffers = {k: v.detach() for k, v in model.named_buffers()}


def compute_loss(params, buffers, sample, target):
    prediction = functional_call(model, (params, buffers), (sample.unsqueeze(0),))
    return F.mse_loss(prediction, target.unsqueeze(0))


per_sample = vmap(grad(compute_loss), in_dims=(None, None, 0, 0))(params, buffers, x, y)
norms = torch.stack([g.flatten(1).norm(dim=1) for g in per_sample.values()]).norm(dim=0)
{k: v.shape for k, v in per_sample.items()}, norms.max()

# %%
# Training with plain functions.
theta = {k: v.clone() for k, v in params.items()}


def loss_fn(theta):
    return F.mse_loss(functional_call(model, theta, (x,)), y)


curve = []
for _ in range(5):
    g, value = grad_and_value(loss_fn)(theta)
    theta = {k: theta[k] - 0.1 * g[k] for k in theta}
    curve.append(value.item())
curve

# %%
members = [nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1)) for _ in range(4)]
stacked_params, stacked_buffers = stack_module_state(members)
base = copy.deepcopy(members[0]).to("meta")


def fmodel(params, buffers, x):
    return functional_call(base, (params, buffers), (x,))


predictions = vmap(fmodel, in_dims=(0, 0, None))(stacked_params, stacked_buffers, x)
predictions.mean(0).shape, predictions.std(0).mean()

# %%
J = jacrev(lambda z: model(z))(x[0])
H = hessian(lambda z: model(z).squeeze())(x[0])
_, tangent = jvp(model, (x,), (torch.ones_like(x),))
_, pullback = vjp(model, x)
(cotangent,) = pullback(torch.ones(20, 1))
full = torch.autograd.functional.jacobian(lambda z: model(z).sum(0), x)
J.shape, H.shape, tangent.shape, cotangent.shape, full.shape

# %%
kernel = vmap(vmap(lambda p, q: torch.exp(-(p - q).pow(2).sum()), (None, 0)), (0, None))(x, x)
torch.linalg.cholesky(kernel + 1e-4 * torch.eye(20)).diagonal().min()

# %%
# Hooks: gradients printed, clipped, recorded, on tensors and on modules.
h = x.clone().requires_grad_()
z = (h**2).sum(1)
z.retain_grad()
seen = []
z.register_hook(lambda g: seen.append(g.norm().item()))
z.register_hook(lambda g: g.clamp(-0.5, 0.5))
z.mean().backward()
h.grad.shape, z.grad.shape, seen


# %%
class Recorder:
    def __init__(self, model):
        self.means = {}
        self.handles = [m.register_forward_hook(partial(self.record, n)) for n, m in model.named_children()]

    def record(self, name, module, inputs, output):
        self.means.setdefault(name, []).append(output.detach().mean().item())

    def close(self):
        for handle in self.handles:
            handle.remove()


recorder = Recorder(model)
on_batch = recorder.close
for xb in x.split(5):
    model(xb).mean().backward()
on_batch()
recorder.means

# %%
saved = []


def pack(tensor):
    saved.append(tensor.numel())
    return tensor.cpu()


with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
    out = model(x).pow(2).mean()
out.backward()
sum(saved)

# %%
# Anomaly detection around one step, and gradients kept by create_graph for a penalty.
with torch.autograd.set_detect_anomaly(True):
    inputs = x.clone().requires_grad_(True)
    out = model(inputs)
    (g,) = torch.autograd.grad(out.sum(), inputs, create_graph=True)
    penalty = (g.norm(dim=1) - 1).pow(2).mean()
    penalty.backward()
penalty

# %%
# Implicit differentiation of a fixed point: iterate without a graph, then one step with it.
W = (0.3 * torch.randn(3, 3)).requires_grad_()
state = torch.zeros(20, 3)
with torch.no_grad():
    for _ in range(30):
        state = torch.tanh(state @ W + x)
state = torch.tanh(state @ W + x)
(state.mean() - 0.1).pow(2).backward()
W.grad.norm()

# %%
# Unrolled optimisation of a step size.
log_lr = torch.tensor(-3.0, requires_grad=True)
outer = torch.optim.Adam([log_lr], lr=0.1)
for _ in range(3):
    v = torch.zeros(3, 1, requires_grad=True)
    for _ in range(4):
        inner = F.mse_loss(x @ v, y)
        (gv,) = torch.autograd.grad(inner, v, create_graph=True)
        v = v - log_lr.exp() * gv
    final = F.mse_loss(x @ v, y)
    outer.zero_grad()
    final.backward()
    outer.step()
log_lr.exp().item()

# %%
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
step, zero_grad = optimizer.step, optimizer.zero_grad
callbacks = {"before": [zero_grad], "after": [step, recorder.close]}
for xb, yb in zip(x.split(5), y.split(5)):
    for callback in callbacks["before"]:
        callback()
    F.mse_loss(model(xb), yb).backward()
    for callback in callbacks["after"]:
        callback()
activation = torch.relu
act_names = {"relu": torch.relu, "tanh": torch.tanh, "gelu": F.gelu}
act_names["gelu"](x).mean()
