"""grad-history: results that training passes by, models of folds that a vector keeps, records of the best step."""

from __future__ import annotations

import pytest

from tests.looking import COMMON, flags, look

SETUP = """
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 3))
opt = torch.optim.SGD(model.parameters(), lr=0.05)
data = [(torch.randn(4, 5), torch.randint(0, 3, (4,))) for _ in range(4)]
def val():
    model.eval()
    out = torch.stack([F.cross_entropy(model(x), y) for x, y in data[2:]]).mean()
    model.train()
    return out
def fit():
    for x, y in data[:2]:
        opt.zero_grad()
        F.cross_entropy(model(x), y).backward()
        opt.step()
"""

AGENT = """
class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.pi, self.v = nn.Linear(4, 8), nn.Linear(8, 2), nn.Linear(8, 1)
    def forward(self, obs):
        h = torch.tanh(self.body(obs))
        return torch.distributions.Categorical(logits=self.pi(h)), self.v(h).squeeze(-1)
agent = ActorCritic()
opt = torch.optim.Adam(agent.parameters(), lr=1e-3)
"""

MISTAKES = {
    "best store": (
        (
            SETUP,
            """
best = {"loss": float("inf"), "epoch": -1}
for epoch in range(3):
    fit()
    v = val()
    if v < best["loss"]:
        best["loss"] = v
        best["epoch"] = epoch
""",
        ),
        [("best['loss']", 6)],
    ),
    "best update dict": (
        (
            SETUP,
            """
best = {"loss": float("inf"), "epoch": -1}
for epoch in range(3):
    fit()
    v = val()
    if v < best["loss"]:
        best.update({"loss": v, "epoch": epoch})
""",
        ),
        [("best['loss']", 6)],
    ),
    "best class": (
        (
            SETUP,
            """
class Tracker:
    def __init__(self):
        self.best = {"loss": None, "epoch": -1}
    def see(self, loss, epoch):
        if self.best["loss"] is None or loss < self.best["loss"]:
            self.best.update(loss=loss, epoch=epoch)
t = Tracker()
for epoch in range(3):
    fit()
    t.see(val(), epoch)
""",
        ),
        [("t.best['loss']", 6)],
    ),
    "oof": (
        (
            """
X, y = torch.randn(12, 5), torch.randn(12)
folds = torch.arange(12).chunk(3)
oof = torch.zeros(12)
for k, val_idx in enumerate(folds):
    train_idx = torch.cat([f for j, f in enumerate(folds) if j != k])
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        opt.zero_grad()
        F.mse_loss(net(X[train_idx]).squeeze(1), y[train_idx]).backward()
        opt.step()
    net.eval()
    oof[val_idx] = net(X[val_idx]).squeeze(1)
cv_rmse = F.mse_loss(oof, y).sqrt().item()
""",
        ),
        [("oof", 13)],
    ),
    "oof function": (
        (
            """
X, y = torch.randn(12, 5), torch.randn(12)
def fit(train):
    net = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        opt.zero_grad()
        F.mse_loss(net(X[train]).squeeze(1), y[train]).backward()
        opt.step()
    return net
folds = torch.arange(12).chunk(3)
oof = torch.zeros(12)
for val_idx in folds:
    mask = torch.ones(12, dtype=torch.bool)
    mask[val_idx] = False
    oof[val_idx] = fit(mask)(X[val_idx]).squeeze(1)
rmse = F.mse_loss(oof, y).sqrt().item()
""",
        ),
        [("oof", 15)],
    ),
    "cv sum": (
        (
            """
X, y = torch.randn(12, 5), torch.randn(12)
cv = 0.0
for val_idx in torch.arange(12).chunk(3):
    net = nn.Linear(5, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        opt.zero_grad()
        F.mse_loss(net(X).squeeze(1), y).backward()
        opt.step()
    cv += F.mse_loss(net(X[val_idx]).squeeze(1), y[val_idx])
print(cv / 3)
""",
        ),
        [("cv", 10)],
    ),
    "seeds mean of predictions": (
        (
            """
X, y = torch.randn(12, 5), torch.randn(12)
mean = torch.zeros(12)
for seed in range(4):
    torch.manual_seed(seed)
    net = nn.Linear(5, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        opt.zero_grad()
        F.mse_loss(net(X).squeeze(1), y).backward()
        opt.step()
    mean = mean + net(X).squeeze(1) / 4
""",
        ),
        [("mean", 11)],
    ),
    "ppo rollout class": (
        (
            AGENT,
            """
class Rollout:
    def __init__(self):
        self.data = {"obs": [], "action": [], "logp": [], "value": []}

    def add(self, **step):
        for key, item in step.items():
            self.data[key].append(item)

rollout = Rollout()
for t in range(6):
    obs = torch.randn(4)
    dist, value = agent(obs)
    action = dist.sample()
    rollout.add(obs=obs, action=action, logp=dist.log_prob(action), value=value)

batch = {k: torch.stack(v).detach() for k, v in rollout.data.items()}
new_dist, new_value = agent(batch["obs"])
ratio = (new_dist.log_prob(batch["action"]) - batch["logp"]).exp()
loss = -(ratio * (1.0 - batch["value"])).mean() + F.mse_loss(new_value, torch.ones(6))
opt.zero_grad()
loss.backward()
opt.step()
""",
        ),
        [("rollout.data['logp']", 7)],
    ),
    "ppo lists": (
        (
            AGENT,
            """
obs_l, act_l, logp_l = [], [], []
for t in range(6):
    obs = torch.randn(4)
    dist, value = agent(obs)
    action = dist.sample()
    obs_l.append(obs); act_l.append(action); logp_l.append(dist.log_prob(action))
O, A = torch.stack(obs_l), torch.stack(act_l)
old = torch.stack(logp_l)
for epoch in range(2):
    d, v = agent(O)
    loss = -(d.log_prob(A) - old.detach()).exp().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
        ),
        [("logp_l", 6)],
    ),
    "ppo update function": (
        (
            AGENT,
            """
def update(batch):
    with torch.no_grad():
        old = torch.stack(batch["logp"])
    for epoch in range(2):
        d, v = agent(torch.stack(batch["obs"]))
        loss = -(d.log_prob(torch.stack(batch["act"])) - old).exp().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
batch = {"obs": [], "act": [], "logp": []}
for t in range(6):
    obs = torch.randn(4)
    dist, value = agent(obs)
    action = dist.sample()
    batch["obs"].append(obs)
    batch["act"].append(action)
    batch["logp"].append(dist.log_prob(action))
update(batch)
""",
        ),
        [("batch['logp']", 17)],
    ),
    "teacher buffer numpy": (
        (
            AGENT,
            """
class Memory:
    def __init__(self):
        self.values = []
    def push(self, v):
        self.values.append(v)
    def tensor(self):
        return torch.stack(self.values).detach()
memory = Memory()
obs = torch.randn(6, 4)
for o in obs:
    memory.push(agent(o)[1])
target = memory.tensor()
loss = F.mse_loss(agent(obs)[1], target + 1)
opt.zero_grad()
loss.backward()
opt.step()
""",
        ),
        [("memory.values", 5)],
    ),
}

CORRECT = {
    "best dict item": (
        SETUP,
        """
best = {"loss": float("inf"), "epoch": -1}
for epoch in range(3):
    fit()
    v = val()
    if v < best["loss"]:
        best.update(loss=v.item(), epoch=epoch)
""",
    ),
    "best store detach": (
        SETUP,
        """
best = {"loss": float("inf"), "epoch": -1}
for epoch in range(3):
    fit()
    v = val()
    if v.item() < best["loss"]:
        best["loss"] = v.detach()
        best["epoch"] = epoch
""",
    ),
    "rows in no_grad": (
        """
X, y = torch.randn(12, 5), torch.randn(12)
oof = torch.zeros(12)
for val_idx in torch.arange(12).chunk(3):
    net = nn.Linear(5, 1)
    opt = torch.optim.Adam(net.parameters(), lr=0.01)
    for epoch in range(3):
        opt.zero_grad()
        F.mse_loss(net(X).squeeze(1), y).backward()
        opt.step()
    oof[val_idx] = net(X[val_idx]).squeeze(1).detach()
""",
    ),
    "rows of one loss": (
        """
heads = nn.ModuleList(nn.Linear(5, 1) for _ in range(3))
opt = torch.optim.Adam(heads.parameters(), lr=0.01)
X, y = torch.randn(12, 5), torch.randn(12, 3)
for epoch in range(3):
    out = torch.zeros(12, 3)
    for i, head in enumerate(heads):
        out[:, i] = head(X).squeeze(1)
    loss = F.mse_loss(out, y)
    opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    "tasks summed, one backward after": (
        """
meta = nn.Linear(5, 1)
opt = torch.optim.Adam(meta.parameters(), lr=0.01)
for epoch in range(2):
    outer = 0.0
    for task in range(3):
        x, y = torch.randn(4, 5), torch.randn(4, 1)
        w = meta.weight.clone().detach().requires_grad_()
        F.mse_loss(x @ w.T, y).backward()
        fast = meta.weight - 0.1 * w.grad
        outer = outer + F.mse_loss(x @ fast.T, y)
    opt.zero_grad(); outer.backward(); opt.step()
""",
    ),
    "reinforce with baseline": (
        AGENT,
        """
logps, values, rewards = [], [], []
for t in range(6):
    dist, value = agent(torch.randn(4))
    action = dist.sample()
    logps.append(dist.log_prob(action)); values.append(value); rewards.append(1.0)
R = torch.tensor(rewards)
adv = R - torch.stack(values).detach()
loss = -(torch.stack(logps) * adv).mean() + F.mse_loss(torch.stack(values), R)
opt.zero_grad()
loss.backward()
opt.step()
""",
    ),
    "policy first, values for the next cell": (
        AGENT,
        """
logps, values = [], []
for t in range(6):
    dist, value = agent(torch.randn(4))
    logps.append(dist.log_prob(dist.sample())); values.append(value)
loss = -torch.stack(logps).mean()
opt.zero_grad()
loss.backward(retain_graph=True)
""",
    ),
    "outputs kept, a critic trained first": (
        AGENT,
        """
critic = nn.Linear(4, 1)
copt = torch.optim.SGD(critic.parameters(), lr=0.1)
outs = []
for t in range(6):
    outs.append(agent(torch.randn(4))[1])
goal = torch.stack(outs).detach().mean()
loss = (critic(torch.randn(3, 4)) - goal).pow(2).mean()
copt.zero_grad(); loss.backward(); copt.step()
""",
    ),
    "under no_grad": (
        AGENT,
        """
values = []
with torch.no_grad():
    for t in range(6):
        values.append(agent(torch.randn(4))[1])
old = torch.stack(values).detach()
loss = (agent(torch.randn(6, 4))[1] - old).pow(2).mean()
opt.zero_grad(); loss.backward(); opt.step()
""",
    ),
    "losses printed, backward in a function": (
        AGENT,
        """
def step(loss):
    opt.zero_grad(); loss.backward(); opt.step()
losses = []
for t in range(4):
    losses.append(agent(torch.randn(4))[1].pow(2))
print([l.item() for l in losses])
step(torch.stack(losses).mean())
""",
    ),
}


@pytest.mark.parametrize(("cells", "found"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_found(cells, found):
    """The rule names what is held, and the line that puts it there."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "grad-history") == found


@pytest.mark.parametrize("cells", CORRECT.values(), ids=CORRECT)
def test_correct_code_is_left_alone(cells):
    """What training goes through, or goes on to, is no finding; nor are numbers."""
    assert flags(look(COMMON, *(cell.removeprefix("\n") for cell in cells)), "grad-history") == []
