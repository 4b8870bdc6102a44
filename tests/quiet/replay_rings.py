"""Replay rings, prioritised sampling, frame stacks, n-step returns, evolution, bandits, planning."""

# %%
import random
from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


class Ring:
    def __init__(self, size, obs_dim):
        self.obs = np.zeros((size, obs_dim), dtype=np.float32)
        self.next_obs = np.zeros((size, obs_dim), dtype=np.float32)
        self.act = np.zeros(size, dtype=np.int64)
        self.rew = np.zeros(size, dtype=np.float32)
        self.done = np.zeros(size, dtype=np.float32)
        self.ptr, self.size, self.max_size = 0, 0, size

    def store(self, o, a, r, o2, d):
        self.obs[self.ptr], self.act[self.ptr], self.rew[self.ptr] = o, a, r
        self.next_obs[self.ptr], self.done[self.ptr] = o2, d
        self.ptr = (self.ptr + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def sample(self, n):
        idx = np.random.randint(0, self.size, n)
        batch = dict(
            obs=self.obs[idx], act=self.act[idx], rew=self.rew[idx], next_obs=self.next_obs[idx], done=self.done[idx]
        )
        return {k: torch.as_tensor(v) for k, v in batch.items()}


class Corridor:
    """Its observation is one array that changes in place; whoever keeps one copies it."""

    def __init__(self, n=5):
        self.n, self.state = n, np.zeros(n, dtype=np.float32)

    def reset(self):
        self.state[:] = 0
        self.state[0] = 1
        self.pos = 0
        return self.state

    def step(self, a):
        self.pos = max(0, min(self.n - 1, self.pos + (1 if a else -1)))
        self.state[:] = 0
        self.state[self.pos] = 1
        return self.state, float(self.pos == self.n - 1), self.pos == self.n - 1, {}


env, ring = Corridor(), Ring(64, 5)
q_net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
target_net = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
target_net.load_state_dict(q_net.state_dict())
opt = torch.optim.Adam(q_net.parameters(), lr=1e-3)

# %%
epsilon, steps, returns = 1.0, 0, []
for episode in range(8):
    state, total, done, t = env.reset().copy(), 0.0, False, 0
    while not done and t < 15:
        if random.random() < epsilon:
            action = random.randrange(2)
        else:
            with torch.no_grad():
                action = q_net(torch.from_numpy(state)).argmax().item()
        next_state, reward, done, _ = env.step(action)
        ring.store(state, action, reward, next_state, done)
        state = next_state.copy()
        total += reward
        t += 1
        if ring.size > 16:
            b = ring.sample(16)
            with torch.no_grad():
                best = q_net(b["next_obs"]).argmax(1, keepdim=True)
                target = b["rew"] + 0.95 * (1 - b["done"]) * target_net(b["next_obs"]).gather(1, best).squeeze(1)
            q = q_net(b["obs"]).gather(1, b["act"][:, None]).squeeze(1)
            loss = F.smooth_l1_loss(q, target)
            opt.zero_grad()
            loss.backward()
            opt.step()
            steps += 1
            if steps % 10 == 0:
                target_net.load_state_dict(q_net.state_dict())
    returns.append(total)
    epsilon = max(0.1, epsilon * 0.9)
returns, loss.item()

# %%
# Priorities; a new transition gets the largest one.
priorities = np.zeros(64, dtype=np.float32)
priorities[: ring.size] = 1.0
probs = priorities**0.6 / (priorities**0.6).sum()
for _ in range(3):
    idx = np.random.choice(64, 8, p=probs)
    w = (ring.size * probs[idx]) ** -0.4
    w = torch.as_tensor(w / w.max(), dtype=torch.float32)
    obs, act = torch.from_numpy(ring.obs[idx]), torch.from_numpy(ring.act[idx])
    with torch.no_grad():
        y = torch.from_numpy(ring.rew[idx]) + 0.95 * target_net(torch.from_numpy(ring.next_obs[idx])).max(1).values
    td = q_net(obs).gather(1, act[:, None]).squeeze(1) - y
    loss = (w * td.pow(2)).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    priorities[idx] = td.detach().abs().numpy() + 1e-5
    probs = priorities**0.6 / (priorities**0.6).sum()
probs.sum()


# %%
class FrameStack:
    def __init__(self, k):
        self.frames = deque(maxlen=k)

    def reset(self, frame):
        for _ in range(self.frames.maxlen):
            self.frames.append(frame)
        return self.get()

    def push(self, frame):
        self.frames.append(frame)
        return self.get()

    def get(self):
        return np.stack(self.frames)


stack = FrameStack(3)
obs = stack.reset(env.reset().copy())
for a in (1, 1, 0):
    nxt, _, _, _ = env.step(a)
    obs = stack.push(nxt.copy())
obs

# %%
window, nstep = deque(maxlen=3), []
state = env.reset().copy()
for t in range(10):
    a = int(t % 3 > 0)
    nxt, r, d, _ = env.step(a)
    window.append((state, a, r))
    if len(window) == 3:
        R = sum(0.9**i * tr[2] for i, tr in enumerate(window))
        nstep.append((window[0][0], window[0][1], R, nxt.copy(), d))
    state = nxt.copy()
S = torch.tensor(np.array([x[0] for x in nstep]))
S.shape, nstep[-1][2]

# %%
# Evolution strategies on flat parameters.
theta = nn.utils.parameters_to_vector(q_net.parameters()).detach().clone()
es_scores = []


@torch.no_grad()
def fitness(flat):
    nn.utils.vector_to_parameters(flat, q_net.parameters())
    return -F.mse_loss(q_net(S), torch.ones(len(S), 2)).item()


for gen in range(3):
    eps = torch.randn(6, theta.numel())
    scores = torch.tensor([fitness(theta + 0.1 * e) for e in eps])
    adv = (scores - scores.mean()) / (scores.std() + 1e-8)
    theta += 0.05 / (6 * 0.1) * adv @ eps
    es_scores.append(scores.max().item())
nn.utils.vector_to_parameters(theta, q_net.parameters())
es_scores

# %%
# Upper confidence bounds: arms that were never pulled are infinite.
means, pulls, total = np.zeros(4), np.zeros(4), np.zeros(4)
true = np.array([0.1, 0.5, 0.3, 0.8])
picked = []
for t in range(1, 20):
    with np.errstate(divide="ignore", invalid="ignore"):
        ucb = np.where(pulls > 0, means + np.sqrt(2 * np.log(t) / pulls), np.inf)
    a = int(ucb.argmax())
    r = float(np.random.rand() < true[a])
    pulls[a] += 1
    total[a] += r
    means[a] = total[a] / pulls[a]
    picked.append(a)
pulls, means.round(2)

# %%
# Value iteration with walls, and planning by the cross-entropy method.
V = torch.zeros(4, 4)
reward = torch.full((4, 4), -0.1)
reward[3, 3] = 1.0
blocked = torch.zeros(4, 4, dtype=torch.bool)
blocked[1, 1] = True
for _ in range(10):
    padded = F.pad(V[None, None], (1, 1, 1, 1), value=-float("inf"))[0, 0]
    options = torch.stack([padded[:-2, 1:-1], padded[2:, 1:-1], padded[1:-1, :-2], padded[1:-1, 2:]])
    V_new = reward + 0.9 * options.max(0).values
    V_new[blocked] = -float("inf")
    delta = (V_new[~blocked] - V[~blocked]).abs().max()
    V = V_new
    if delta < 1e-3:
        break
policy = options.argmax(0)
mean, std = torch.zeros(5), torch.ones(5)
for _ in range(4):
    plans = mean + std * torch.randn(32, 5)
    cost = (plans.cumsum(1) - 1).pow(2).sum(1)
    elite = plans[cost.argsort()[:6]]
    mean, std = elite.mean(0), elite.std(0)
mean, V[0]
