"""grad-history: what is kept from step to step with its graph is named; what a later backward needs is not."""

from __future__ import annotations

import re

import pytest

import torchmagic
from tests.looking import COMMON, flags, look, look_around

SETUP = (
    COMMON
    + """
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
"""
)

STEP = """
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
"""

KEPT = {
    "outputs that a hook files": (
        """
from functools import partial
outputs = {}
def keep(name, module, inputs, output):
    outputs.setdefault(name, []).append(output)
handle = model[0].register_forward_hook(partial(keep, "first"))
for x, y in data:"""
        + STEP
        + "handle.remove()\n",
        [("outputs['first']", 5)],
    ),
    "average in a closure": (
        """
def smoother(rate):
    memory = {"mean": 0.0}
    def push(value):
        memory.update(mean=memory["mean"] + (1 - rate) * (value - memory["mean"]))
    return push
push = smoother(0.9)
for x, y in data:"""
        + STEP
        + "    push(loss)\n",
        [("push.__closure__[0].cell_contents['mean']", 5)],
    ),
    "sum folded by reduce": (
        """
from functools import reduce
def train(state, batch):
    opt.zero_grad()
    loss = F.cross_entropy(model(batch[0]), batch[1])
    loss.backward()
    opt.step()
    return {"steps": state["steps"] + 1, "sum": state["sum"] + loss}
state = reduce(train, data, {"steps": 0, "sum": 0.0})
""",
        [("state['sum']", 9)],
    ),
    "first entries of a sorted list": (
        """
best = []
for x, y in data:"""
        + STEP
        + """    best.append((loss, len(y)))
    best.sort(key=lambda pair: pair[0].item())
    del best[2:]
""",
        [("best", 8)],
    ),
    "records that a generator yields": (
        """
import dataclasses
@dataclasses.dataclass
class Row:
    loss: torch.Tensor
    size: int
def train():
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        yield Row(loss, len(y))
rows = list(train())
""",
        [("rows", 14)],
    ),
    "results that a function passes to a callback": (
        """
kept = {}
def train(report):
    for step, (x, y) in enumerate(data):
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        report(step, loss)
train(lambda step, loss: kept.update({step: loss}))
""",
        [("kept", 10)],
    ),
    "embeddings by name, made in evaluation mode": (
        """
def embed(net, rows):
    net.eval()
    return {name: net(row) for name, row in rows.items()}
index = embed(model, dict(enumerate(torch.randn(4, 5))))
""",
        [("index", 5)],
    ),
    "record of the best": (
        "best = None\nfor x, y in data:"
        + STEP
        + """    if best is None or loss < best["loss"]:
        best = {"loss": loss, "rows": len(y)}
""",
        [("best['loss']", 8)],
    ),
    "mean over what steps return": (
        """
def step(x, y):
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    return loss
mean = sum(step(x, y) for x, y in data) / len(data)
""",
        [("mean", 8)],
    ),
    "list returned by a function": (
        """
def train():
    losses = []
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss)
    return losses
history = train()
""",
        [("history", 9)],
    ),
    "list handed to a function": (
        """
def train(batches, log):
    for x, y in batches:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        log.append(loss)
record = []
train(data, record)
""",
        [("record", 8)],
    ),
    "least loss, by a conditional expression": (
        "least = None\nfor x, y in data:"
        + STEP
        + "    least = loss if least is None else torch.minimum(least, loss)\n",
        [("least", 7)],
    ),
    "attribute made anew by its own method": (
        """
class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.write = nn.Linear(5, 8)
        self.slots = torch.zeros(3, 8)
    def forward(self, i, x):
        self.slots = self.slots.index_add(0, i, self.write(x))
        return self.slots.norm()
slots = Slots()
sizes = [slots(torch.tensor([0, 1, 2, 0]), x).item() for x, _ in data]
""",
        [("slots.slots", 8)],
    ),
    "entry of a dict made from itself": (
        "seen = {'n': 0}\nfor x, y in data:"
        + STEP
        + "    seen['loss'] = loss if 'loss' not in seen else 0.9 * seen['loss'] + 0.1 * loss\n",
        [("seen['loss']", 7)],
    ),
    "entry by get, in a method": (
        """
class Board:
    def __init__(self):
        self.sums = {}
    def add(self, **values):
        for key, value in values.items():
            self.sums[key] = self.sums.get(key, 0) + value
board = Board()
for x, y in data:"""
        + STEP
        + "    board.add(loss=loss, hits=(model(x).argmax(1) == y).sum())\n",
        [("board.sums", 7)],
    ),
    "averaged weights": (
        """
average = [p.detach().clone() for p in model.parameters()]
for x, y in data:"""
        + STEP
        + """
    for i, p in enumerate(model.parameters()):
        average[i] = torch.lerp(average[i], p, 0.1)
""",
        [("average", 10)],
    ),
    "rows of a tensor": (
        """
model.eval()
scores = torch.empty(4 * len(data), 3)
for i, (x, y) in enumerate(data):
    scores[4 * i : 4 * (i + 1)] = model(x).softmax(1)
""",
        [("scores", 5)],
    ),
    "buffer of a layer inside a container": (
        """
class Centre(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("centre", torch.zeros(8))
    def forward(self, h):
        self.centre = torch.lerp(self.centre, h.mean(0), 0.1)
        return h - h.mean(0)
net = nn.Sequential(nn.Linear(5, 8), Centre(), nn.Linear(8, 3))
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    sgd.zero_grad()
    F.cross_entropy(net(x), y).backward()
    sgd.step()
""",
        [("net[1].centre", 7)],
    ),
    "hook that keeps every output": (
        """
kept = {}
def keep(module, inputs, output):
    kept.setdefault("hidden", []).append(output)
handle = model[0].register_forward_hook(keep)
model.eval()
for x, _ in data:
    model(x)
handle.remove()
""",
        [("kept['hidden']", 4)],
    ),
    "lambda as a hook": (
        """
features = []
model[1].register_forward_hook(lambda module, inputs, output: features.append(output))
for x, y in data:"""
        + STEP,
        [("features", 3)],
    ),
    "number in a dict": (
        "metrics = {'loss': 0.0}\nfor x, y in data:" + STEP + "    metrics['loss'] += loss * len(x)\n",
        [("metrics['loss']", 7)],
    ),
    "dict by step": (
        "seen = {}\nfor step, (x, y) in enumerate(data):" + STEP + "    seen[step] = loss\n",
        [("seen", 7)],
    ),
    "tuples with the step": (
        "log = []\nfor step, (x, y) in enumerate(data):" + STEP + "    log.append((step, loss))\n",
        [("log", 7)],
    ),
    "list made longer by addition": (
        "losses = []\nfor x, y in data:" + STEP + "    losses = losses + [loss]\n",
        [("losses", 7)],
    ),
    "list made longer in place": (
        "losses = []\nfor x, y in data:" + STEP + "    losses += [loss]\n",
        [("losses", 7)],
    ),
    "deque": (
        "from collections import deque\nlosses = deque(maxlen=3)\n"
        "for x, y in data:" + STEP + "    losses.append(loss)\n",
        [("losses", 8)],
    ),
    "while loop": (
        "total, step = 0, 0\nwhile step < 4:\n    x, y = data[step]"
        + STEP
        + "    total = total + loss\n    step += 1\n",
        [("total", 8)],
    ),
    "running mean": (
        "mean = 0.0\nfor x, y in data:" + STEP + "    mean = 0.9 * mean + 0.1 * loss\n",
        [("mean", 7)],
    ),
    "global in a function": (
        """
total = 0.0
def step(x, y):
    global total
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    total += loss
for x, y in data:
    step(x, y)
""",
        [("total", 9)],
    ),
    "best loss": (
        "best = torch.tensor(1e9)\nfor x, y in data:" + STEP + "    if loss < best:\n        best = loss * 1\n",
        [("best", 8)],
    ),
    "best loss by minimum": (
        "best = torch.tensor(1e9)\nfor x, y in data:" + STEP + "    best = torch.minimum(best, loss)\n",
        [("best", 7)],
    ),
    "trainer with a dict of lists": (
        """
class Trainer:
    def __init__(self):
        self.history = {"train": []}
    def run(self, epochs):
        for epoch in range(epochs):
            for x, y in data:
                opt.zero_grad()
                loss = F.cross_entropy(model(x), y)
                loss.backward()
                opt.step()
            self.history["train"].append(loss)
trainer = Trainer()
trainer.run(3)
""",
        [("trainer.history['train']", 12)],
    ),
    "features kept by forward": (
        """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(5, 3)
        self.maps = []
    def forward(self, x):
        h = self.body(x)
        self.maps.append(h)
        return h
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
for x, y in data:
    sgd.zero_grad()
    F.cross_entropy(net(x), y).backward()
    sgd.step()
""",
        [("net.maps", 9)],
    ),
    "evaluation by comprehension": (
        "model.eval()\noutputs = [model(x) for x, _ in data]\n",
        [("outputs", 2)],
    ),
    "evaluation joined under the same name": (
        "model.eval()\npreds = []\nfor x, _ in data:\n    preds.append(model(x))\npreds = torch.cat(preds)\n",
        [("preds", 4)],
    ),
    "evaluation joined by its function": (
        """
def evaluate(net, batches):
    net.eval()
    outs = []
    for x, _ in batches:
        outs.append(net(x))
    return torch.cat(outs)
logits = evaluate(model, data)
""",
        [("logits", 6)],
    ),
    "evaluation joined at once": (
        "model.eval()\nfeatures = torch.cat([model(x) for x, _ in data])\n",
        [("features", 2)],
    ),
    "losses stacked under the same name": (
        "losses = []\nfor x, y in data:" + STEP + "    losses.append(loss)\nlosses = torch.stack(losses)\n",
        [("losses", 7)],
    ),
    "evaluation by concatenation": (
        "model.eval()\npreds = torch.zeros(0, 3)\nfor x, _ in data:\n    preds = torch.cat([preds, model(x)])\n",
        [("preds", 4)],
    ),
    "validation loss": (
        "model.eval()\nval = 0.0\nfor x, y in data:\n    val += F.cross_entropy(model(x), y)\nprint(val / len(data))\n",
        [("val", 4)],
    ),
    "streaming state": (
        """
cell = nn.LSTMCell(5, 4)
state = (torch.zeros(4, 4), torch.zeros(4, 4))
levels = []
for x, _ in data:
    state = cell(x, state)
    levels.append(state[0].mean().item())
""",
        [("state", 6)],
    ),
    "sum per epoch, and a list of the sums": (
        """
curve = []
for epoch in range(3):
    running = 0.0
    for x, y in data:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
        running += loss
    curve.append(running / len(data))
""",
        [("running", 10)],
    ),
}

QUIET = {
    "attribute started anew from its own shape": """
class Slots(nn.Module):
    def __init__(self):
        super().__init__()
        self.write = nn.Linear(5, 8)
        self.slots = torch.zeros(3, 8)
    def forward(self, i, x):
        self.slots = self.slots.new_zeros(self.slots.shape)
        self.slots = self.slots.index_add(0, i, self.write(x))
        return self.slots.norm()
slots = Slots()
sizes = [slots(torch.tensor([0, 1, 2, 0]), x).item() for x, _ in data]
""",
    "hidden states of stacked cells": """
cells = nn.ModuleList(nn.GRUCell(5, 5) for _ in range(2))
sgd = torch.optim.SGD(cells.parameters(), lr=0.1)
for _ in range(3):
    hidden = [torch.zeros(4, 5) for _ in cells]
    for x, y in data:
        for i, cell in enumerate(cells):
            hidden[i] = cell(x if i == 0 else hidden[i - 1], hidden[i])
    loss = hidden[-1].pow(2).mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "outputs written into a tensor for one loss": """
for epoch in range(3):
    logits = torch.zeros(len(data), 4, 3)
    for i, (x, y) in enumerate(data):
        logits[i] = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), torch.cat([y for _, y in data]))
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "hook whose outputs are cleared in each step": """
kept = []
handle = model[0].register_forward_hook(lambda module, inputs, output: kept.append(output))
for x, y in data:
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y) + 0.1 * sum(h.abs().mean() for h in kept)
    loss.backward()
    opt.step()
    kept.clear()
""",
    "entries of a dict averaged as numbers": """
seen = {}
for x, y in data:
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    opt.step()
    seen["loss"] = 0.9 * seen.get("loss", 0.0) + 0.1 * loss.item()
""",
    "numbers": "losses = []\nfor x, y in data:" + STEP + "    losses.append(loss.item())\n",
    "detached": "kept = []\nfor x, y in data:" + STEP + "    kept.append(loss.detach())\n",
    "methods left uncalled": "losses = []\nfor x, y in data:" + STEP + "    losses.append(loss.item)\n",
    "the last loss": "for x, y in data:" + STEP + "last = loss\n",
    "gradient accumulation": """
opt.zero_grad()
total = 0.0
for i, (x, y) in enumerate(data):
    loss = F.cross_entropy(model(x), y) / 2
    loss.backward()
    total += loss.item()
    if i % 2:
        opt.step()
        opt.zero_grad()
""",
    "one backward over micro-batches": """
opt.zero_grad()
total = 0.0
for x, y in data:
    total = total + F.cross_entropy(model(x), y)
total.backward()
opt.step()
""",
    "losses of heads in each step": """
heads = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))
for x, y in data:
    parts = []
    for head in heads:
        parts.append(head(model(x)).mean())
    loss = sum(parts)
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "losses of one step by name": """
def step(real, fake):
    opt.zero_grad()
    on_real = model(real).pow(2).mean()
    on_real.backward()
    on_fake = model(fake).pow(2).mean()
    on_fake.backward()
    opt.step()
    return {"real": on_real, "fake": on_fake}
for x, y in data:
    losses = step(x, x + 1)
""",
    "micro-batches whose losses are summed": """
for epoch in range(2):
    parts = [F.cross_entropy(model(x), y) for x, y in data]
    opt.zero_grad()
    sum(parts).backward()
    opt.step()
""",
    "loss summed over a generator": """
loss = sum(F.cross_entropy(model(x), y) for x, y in data)
loss.backward()
""",
    "outputs of a network in training mode, by name": """
def embed(rows):
    return {name: model(row) for name, row in rows.items()}
index = embed(dict(enumerate(torch.randn(4, 5))))
""",
    "means of the losses of one step": """
for x, y in data:
    opt.zero_grad()
    on_real = model(x).pow(2).mean()
    on_real.backward()
    on_fake = model(x + 1).pow(2).mean()
    on_fake.backward()
    opt.step()
    both = (on_real + on_fake) / 2
""",
    "embeddings by role, one loss of all": """
def embed(rows):
    return {role: model(row) for role, row in rows.items()}
roles = dict(zip("abc", torch.randn(3, 4, 5)))
for step in range(3):
    z = embed(roles)
    near, far = (z["a"] - z["b"]).norm(dim=1), (z["a"] - z["c"]).norm(dim=1)
    hinge = F.relu(near - far + 0.5)
    opt.zero_grad()
    hinge.mean().backward()
    opt.step()
""",
    "unrolled network in an epoch loop": """
cell, head = nn.GRUCell(5, 4), nn.Linear(4, 3)
sgd = torch.optim.SGD([*cell.parameters(), *head.parameters()], lr=0.1)
for epoch in range(2):
    h, outs = torch.zeros(4, 4), []
    for x, y in data:
        h = cell(x, h)
        outs.append(head(h))
    loss = sum(F.cross_entropy(o, y) for o, (_, y) in zip(outs, data))
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "unrolled network whose loss comes later": """
cell = nn.GRUCell(5, 4)
h = torch.zeros(4, 4)
for x, _ in data:
    h = cell(x, h)
""",
    "state cut by a function": """
def repackage(state):
    return tuple(s.detach() for s in state)
rnn, head = nn.LSTM(5, 4), nn.Linear(4, 1)
sgd = torch.optim.SGD([*rnn.parameters(), *head.parameters()], lr=0.1)
state = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, _ in data:
    state = repackage(state)
    out, state = rnn(x.unsqueeze(1), state)
    loss = head(out).pow(2).mean()
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "state cut inside the model": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(5, 3)
    def forward(self, x, h):
        h = self.cell(x, h.detach())
        return h, h
net = Net()
sgd = torch.optim.SGD(net.parameters(), lr=0.1)
h = torch.zeros(4, 3)
for x, y in data:
    out, h = net(x, h)
    loss = F.cross_entropy(out, y)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
""",
    "buffer emptied after its backward": """
chunk = []
for i, (x, y) in enumerate(data):
    chunk.append(F.cross_entropy(model(x), y))
    if len(chunk) == 2:
        opt.zero_grad()
        torch.stack(chunk).mean().backward()
        opt.step()
        chunk.clear()
""",
    "meta-learning": """
meta = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    outer = 0.0
    for x, y in data:
        fast = dict(model.named_parameters())
        inner = F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
        grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
        fast = {k: p - 0.1 * g for (k, p), g in zip(fast.items(), grads)}
        outer = outer + F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
    meta.zero_grad()
    outer.backward()
    meta.step()
""",
    "meta-learning, one meta step": """
outer, losses = 0.0, []
for x, y in data:
    fast = dict(model.named_parameters())
    inner = F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y)
    grads = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
    fast = {k: p - 0.1 * g for (k, p), g in zip(fast.items(), grads)}
    losses.append(F.cross_entropy(torch.func.functional_call(model, fast, (x,)), y))
opt.zero_grad()
torch.stack(losses).sum().backward()
opt.step()
""",
    "learned step size": """
rate = torch.zeros((), requires_grad=True)
outer = torch.optim.Adam([rate])
x, y = data[0][0], torch.randn(4, 1)
for _ in range(3):
    v = torch.zeros(5, 1, requires_grad=True)
    for _ in range(4):
        inner = F.mse_loss(x @ v, y)
        (gv,) = torch.autograd.grad(inner, v, create_graph=True)
        v = v - rate.exp() * gv
    final = F.mse_loss(x @ v, y)
    outer.zero_grad()
    final.backward()
    outer.step()
""",
    "views of a parameter that was stepped": """
weights = nn.Parameter(torch.zeros(2))
sgd = torch.optim.SGD([weights], lr=0.1)
for _ in range(2):
    total = 0.0
    for w in weights:
        total = total + w.exp()
    sgd.zero_grad()
    total.backward()
    sgd.step()
""",
    "hooks that overwrite": """
features = {}
def keep(name):
    def hook(module, inputs, output):
        features[name] = output
    return hook
for name, layer in model.named_children():
    layer.register_forward_hook(keep(name))
for x, y in data:
    opt.zero_grad()
    loss = F.cross_entropy(model(x), y) + features["0"].pow(2).mean()
    loss.backward()
    opt.step()
""",
    "activations by layer, overwritten in each step": """
acts = {}
for x, y in data:
    h = x
    for name, layer in model.named_children():
        h = layer(h)
        acts[name] = h
    opt.zero_grad()
    F.cross_entropy(h, y).backward()
    opt.step()
""",
    "outputs of each layer": """
h, maps = data[0][0], []
for layer in model:
    h = layer(h)
    maps.append(h)
""",
    "penalty over parameters": """
for x, y in data:
    penalty = 0.0
    for p in model.parameters():
        penalty = penalty + p.pow(2).sum()
    opt.zero_grad()
    (F.cross_entropy(model(x), y) + 1e-4 * penalty).backward()
    opt.step()
""",
    "gradient penalty": """
critic = nn.Linear(5, 1)
adam = torch.optim.Adam(critic.parameters())
record = []
for x, _ in data:
    x = x.clone().requires_grad_()
    g = torch.autograd.grad(critic(x).sum(), x, create_graph=True)[0]
    penalty = (g.norm(dim=1) - 1).pow(2).mean()
    adam.zero_grad()
    penalty.backward()
    adam.step()
    record.append(float(penalty.detach()))
""",
    "policy gradient": """
for episode in range(2):
    log_probs, rewards = [], []
    for x, _ in data:
        dist = torch.distributions.Categorical(logits=model(x[0]))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        rewards.append(float(action))
    loss = -(torch.stack(log_probs) * torch.tensor(rewards)).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "differential equation": """
field = nn.Linear(5, 5)
z = data[0][0]
for _ in range(20):
    z = z + 0.1 * torch.tanh(field(z))
z.pow(2).mean().backward()
""",
    "average of weights": """
shadow = copy.deepcopy(model)
for x, y in data:
    opt.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
    with torch.no_grad():
        for s, p in zip(shadow.parameters(), model.parameters()):
            s.mul_(0.9).add_(p, alpha=0.1)
""",
    "outputs joined for one loss": """
outputs = []
for x, _ in data:
    outputs.append(model(x))
outputs = torch.cat(outputs)
opt.zero_grad()
F.cross_entropy(outputs, torch.cat([y for _, y in data])).backward()
opt.step()
""",
    "outputs joined at once for one loss": """
outputs = torch.cat([model(x) for x, _ in data])
opt.zero_grad()
F.cross_entropy(outputs, torch.cat([y for _, y in data])).backward()
opt.step()
""",
    "parts of one forward pass joined": """
model.eval()
h = torch.cat([layer(data[0][0]) for layer in (nn.Linear(5, 2), nn.Linear(5, 2))])
""",
    "losses before the step that uses them": """
losses = [F.cross_entropy(model(x), y) for x, y in data]
opt.zero_grad()
torch.stack(losses).mean().backward()
opt.step()
""",
    "outputs in training mode, loss to come": "outputs = []\nfor x, _ in data:\n    outputs.append(model(x))\n",
    "evaluation without gradients": """
model.eval()
preds = []
with torch.no_grad():
    for x, _ in data:
        preds.append(model(x))
""",
}


@pytest.mark.parametrize(("cell", "expected"), KEPT.values(), ids=KEPT)
def test_kept_history_is_flagged(cell: str, expected: list[tuple[str, int]]) -> None:
    """The holder is named, with the line that keeps it."""
    assert flags(look(SETUP, cell), "grad-history") == expected


@pytest.mark.parametrize("cell", QUIET.values(), ids=QUIET)
def test_right_code_is_quiet(cell: str) -> None:
    """Code of the same look that needs its graph, or keeps none, is not flagged."""
    assert flags(look(SETUP, cell), "grad-history") == []


@pytest.mark.parametrize(("cell", "expected"), KEPT.values(), ids=KEPT)
def test_fixed_cell_is_quiet(cell: str, expected: list[tuple[str, int]]) -> None:
    """A fix makes the cell quiet."""
    for finding in look(SETUP, cell).findings:
        if finding.fix is not None and finding.line is not None:
            lines = cell.split("\n")
            indent = re.match(r"\s*", lines[finding.line - 1])
            lines[finding.line - 1] = (indent.group() if indent else "") + finding.fix.replacement
            cell = "\n".join(lines)
            report, _, error = look_around(SETUP, cell)
            assert (flags(report, "grad-history"), error) == ([], None)


def test_meter_of_an_earlier_cell_is_read_where_it_was_defined() -> None:
    """The class stands in an earlier cell; the line is the call in this one."""
    meter = """
class Meter:
    def __init__(self):
        self.total, self.count = 0, 0
    def update(self, value):
        self.total += value
        self.count += 1
"""
    cell = "meter = Meter()\nfor x, y in data:" + STEP + "    meter.update(loss)\n"

    assert flags(look(SETUP, meter, cell), "grad-history") == [("meter.total", 7)]


def test_the_two_leaks_are_told_apart() -> None:
    """After backward only nodes are left; without it the activations are there too."""
    after = look(SETUP, KEPT["deque"][0]).findings[0]
    without = look(SETUP, KEPT["validation loss"][0]).findings[0]

    assert after.message == (
        "`losses`: 3 tensors keep the autograd history of their steps (25 graph nodes that `backward()` left); "
        "keep the number: `.item()`"
    )
    assert without.message == (
        "`val` keeps the autograd history of 4 steps (36 graph nodes hold 1.2 kB of activations that no `backward()` "
        "freed, 292 bytes more each step); put the loop under `torch.no_grad()`"
    )
    assert (without.evidence["steps"], without.evidence["backward"]) == (4, False)
    assert without.evidence["saved_bytes"] == 1168


def test_no_hook_of_the_user_runs() -> None:
    """A graph packed by the user's hooks is counted, not opened."""
    cell = """
opened = []
model.eval()
with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: opened.append(1) or t):
    preds = []
    for x, _ in data:
        preds.append(model(x))
"""
    report = look(SETUP, cell + "model.opened = opened\n")

    assert flags(report, "grad-history") == [("preds", 7)]
    assert "opened" not in str(report.skipped)


def test_a_script_is_its_own_source(tmp_path) -> None:
    """Functions of the text that is checked belong to it, whatever name it was compiled under."""
    script = COMMON + SETUP.removeprefix(COMMON) + KEPT["list returned by a function"][0]
    path = tmp_path / "train.py"
    path.write_text(script)
    names = {"__name__": "__main__", "__file__": str(path)}
    exec(compile(script, str(path), "exec"), names)

    report = torchmagic.check(names, source=path.read_text())

    assert flags(report, "grad-history") == [("history", 20)]


SECOND_BACKWARD = {
    "state handed to the model": (
        """
rnn, head = nn.LSTM(5, 4), nn.Linear(4, 1)
state = (torch.zeros(1, 1, 4), torch.zeros(1, 1, 4))
for x, _ in data:
    out, state = rnn(x.unsqueeze(1), state)
    head(out).pow(2).mean().backward()
""",
        [("state", 5)],
    ),
    "sum that is differentiated in each step": (
        """
total = 0.0
for x, y in data:
    total = total + F.cross_entropy(model(x), y)
    total.backward()
""",
        [("total", 4)],
    ),
}


@pytest.mark.parametrize(("cell", "expected"), SECOND_BACKWARD.values(), ids=SECOND_BACKWARD)
def test_a_second_backward_is_explained(cell: str, expected: list[tuple[str, int]]) -> None:
    """When torch refuses to go through a graph again, what carries it from step to step is named, as an error."""
    report, _, error = look_around(SETUP, cell)

    assert type(error) is RuntimeError
    assert flags(report, "grad-history") == expected
    assert [finding.level for finding in report.findings] == ["error"]


def test_another_error_in_a_loop_is_not_taken_for_it() -> None:
    """A state that is right stays unmentioned when the cell ends for another reason."""
    cell = SECOND_BACKWARD["state handed to the model"][0].replace("head(out)", "head(out[..., :2])")

    assert flags(look(SETUP, cell), "grad-history") == []


@pytest.mark.parametrize(
    ("line", "replacement"),
    [
        ("    loss.backward(); opt.step(); total += loss", "loss.backward(); opt.step(); total += loss.item()"),
        ("    if step < 9: total += loss  # the sum", "if step < 9: total += loss.item()  # the sum"),
    ],
)
def test_a_fix_keeps_what_else_is_on_the_line(line: str, replacement: str) -> None:
    """Only the value that is kept is rewritten."""
    cell = (
        "total = 0.0\nfor step, (x, y) in enumerate(data):\n    loss = F.cross_entropy(model(x), y)\n"
        "    opt.zero_grad()\n"
    )
    (finding,) = look(SETUP, cell + ("" if "backward" in line else "    loss.backward()\n") + line + "\n").findings

    assert finding.fix is not None
    assert finding.fix.replacement == replacement


def test_a_loss_of_another_model_says_nothing_about_this_one() -> None:
    """What one step of this network uses is read from its own loss."""
    unrolled = """
h, cell = torch.zeros(1, 4), nn.RNNCell(5, 4)
for t in range(5):
    h = cell(data[0][0][:1], h)
    l = h.pow(2).mean()
    l.backward(retain_graph=True)
"""
    other = "for x, y in data:" + STEP

    assert flags(look(SETUP, other, unrolled), "grad-history") == []


def test_a_printed_state_is_not_a_stream() -> None:
    """Looking at a state while it is unrolled does not mean that nothing will be trained on it."""
    cell = "h, cell = torch.zeros(4, 4), nn.RNNCell(5, 4)\nfor x, _ in data:\n    h = cell(x, h)\n    print(h.norm())\n"

    assert flags(look(SETUP, cell), "grad-history") == []
