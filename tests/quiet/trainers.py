"""Training wrapped in classes: a trainer with callbacks, loggers, early stopping, batches that move themselves."""

# %%
import copy
import time
from collections import defaultdict
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(17)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
x = torch.randn(96, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
train_dl = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
valid_dl = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=32)


# %%
class Callback:
    def on_epoch_start(self, trainer): ...

    def on_batch_end(self, trainer): ...

    def on_epoch_end(self, trainer): ...


class History(Callback):
    def __init__(self):
        self.values = defaultdict(list)

    def on_batch_end(self, trainer):
        self.values["loss"].append(trainer.loss.detach())

    def on_epoch_end(self, trainer):
        self.values["valid"].append(trainer.valid_loss)
        self.values["lr"].append(trainer.optimizer.param_groups[0]["lr"])


class EarlyStopping(Callback):
    def __init__(self, patience=2, delta=0.0):
        self.patience, self.delta = patience, delta
        self.best_score, self.best_weights, self.counter, self.stop = None, None, 0, False
        self.val_loss_min = np.inf

    def on_epoch_end(self, trainer):
        score = -trainer.valid_loss
        if self.best_score is None or score > self.best_score + self.delta:
            self.best_score, self.val_loss_min, self.counter = score, trainer.valid_loss, 0
            self.best_weights = {k: v.cpu().clone() for k, v in trainer.model.state_dict().items()}
        else:
            self.counter += 1
            self.stop = self.counter >= self.patience
        trainer.should_stop = self.stop


class Timer(Callback):
    def on_epoch_start(self, trainer):
        self.start = time.perf_counter()

    def on_epoch_end(self, trainer):
        self.seconds = time.perf_counter() - self.start


# %%
class Trainer:
    def __init__(self, model, optimizer, loss_fn, callbacks=(), log=print):
        self.model, self.optimizer, self.loss_fn = model.to(device), optimizer, loss_fn
        self.callbacks = list(callbacks)
        self.log = log
        self.should_stop = False
        self.best = float("inf")
        self.hooks = {name: [getattr(c, name) for c in self.callbacks] for name in vars(Callback) if name[:3] == "on_"}

    def call(self, event):
        for hook in self.hooks[event]:
            hook(self)

    def fit(self, epochs, train_dl, valid_dl):
        for self.epoch in range(epochs):
            self.call("on_epoch_start")
            self.model.train()
            for self.batch in train_dl:
                xb, yb = (t.to(device) for t in self.batch)
                self.pred = self.model(xb)
                self.loss = self.loss_fn(self.pred, yb)
                self.loss.backward()
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.call("on_batch_end")
            self.valid_loss = self.validate(valid_dl)
            self.best = min(self.best, self.valid_loss)
            self.call("on_epoch_end")
            if self.should_stop:
                break

    @torch.no_grad()
    def validate(self, dl):
        self.model.eval()
        losses, nums = zip(*[(self.loss_fn(self.model(a.to(device)), b.to(device)).item(), len(a)) for a, b in dl])
        return float(np.average(losses, weights=nums))


model = nn.Sequential(nn.Linear(6, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 2))
history, stopper = History(), EarlyStopping()
trainer = Trainer(model, torch.optim.Adam(model.parameters(), 1e-2), F.cross_entropy, [history, stopper, Timer()])

# %%
trainer.fit(4, train_dl, valid_dl)
curve = torch.stack(history.values["loss"]).cpu().numpy()
model.load_state_dict(stopper.best_weights)
len(curve), stopper.val_loss_min

# %%
trainer.fit(2, train_dl, valid_dl)
trainer.loss, trainer.best


# %%
@dataclass
class State:
    epoch: int = 0
    best_loss: float = float("inf")
    best_state: dict = field(default_factory=dict)
    train_losses: list = field(default_factory=list)
    valid_losses: list = field(default_factory=lambda: [float("nan")])


def fit(model, opt, state, epochs):
    for state.epoch in range(state.epoch + 1, state.epoch + 1 + epochs):
        model.train()
        total = torch.tensor(0.0, device=device)
        for xb, yb in train_dl:
            loss = F.cross_entropy(model(xb.to(device)), yb.to(device))
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.detach() * len(xb)
        state.train_losses.append((total / len(train_dl.dataset)).item())
        model.eval()
        with torch.no_grad():
            valid = sum(F.cross_entropy(model(a.to(device)), b.to(device), reduction="sum") for a, b in valid_dl)
        state.valid_losses.append(valid.item() / len(valid_dl.dataset))
        if state.valid_losses[-1] < state.best_loss:
            state.best_loss = state.valid_losses[-1]
            state.best_state = copy.deepcopy(model.state_dict())
    return state


state = State()
net = nn.Sequential(nn.Linear(6, 32), nn.GELU(), nn.Linear(32, 2)).to(device)
opt = torch.optim.AdamW(net.parameters(), lr=1e-2)

# %%
state = fit(net, opt, state, 2)
state = fit(net, opt, state, 2)
net.load_state_dict(state.best_state)
state.best_loss, state.valid_losses


# %%
@dataclass
class Batch:
    inputs: torch.Tensor
    targets: torch.Tensor

    def to(self, device):
        self.inputs, self.targets = self.inputs.to(device), self.targets.to(device)
        return self

    def half(self):
        self.inputs = self.inputs.half()


batch = Batch(x[:8], y[:8])
batch.to(device)
loss = F.cross_entropy(net(batch.inputs), batch.targets)
batch.half()
print(loss.item(), batch.inputs.dtype)

# %%
net.to(device)
net.float()
x0 = x[:4].clone()
x0.requires_grad_()
out = net(x0.to(device)).sum()
out.backward()
x0.detach_()
print("a synchronising copy:", x0.to(device).sum().item())
x0.cpu()

# %%
# Loss terms by name, the sum of an iteration, and what was logged.
logs = []
for xb, yb in train_dl:
    logits = net(xb.to(device))
    terms = {"ce": F.cross_entropy(logits, yb.to(device)), "l2": 1e-3 * sum(p.pow(2).sum() for p in net.parameters())}
    terms["margin"] = 0.1 * F.multi_margin_loss(logits, yb.to(device))
    loss = torch.zeros((), device=device)
    for value in terms.values():
        loss = loss + value
    opt.zero_grad()
    loss.backward()
    opt.step()
    logs.append({name: value.item() for name, value in terms.items()})
terms, logs[-1]

# %%
# Losses of several batches in one backward, the list kept.
losses = []
for xb, yb in train_dl:
    losses.append(F.cross_entropy(net(xb.to(device)), yb.to(device)))
objective = torch.stack(losses).logsumexp(0)
opt.zero_grad()
objective.backward()
opt.step()
objective.item()

# %%
# Convergence by the change of the loss.
previous, tolerance = None, 1e-3
for step in range(6):
    loss = F.cross_entropy(net(x.to(device)), y.to(device))
    opt.zero_grad()
    loss.backward()
    opt.step()
    if previous is not None and abs(previous - loss.item()) < tolerance:
        break
    previous = loss.item()
previous

# %%
# A try that is expected to fail, and goes on.
try:
    net(torch.randn(2, 7, device=device))
except RuntimeError as problem:
    print("as expected:", str(problem)[:40])
get_lr, step_fn, loss_fn = opt.param_groups[0].get, opt.step, nn.CrossEntropyLoss()
registry = {"train": net.train, "eval": net.eval, "loss": loss_fn.forward, "log": logs.append}
registry["eval"]()
net.training, get_lr("lr")
