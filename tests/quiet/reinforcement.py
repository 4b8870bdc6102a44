"""Reinforcement learning on a small corridor: REINFORCE, actor-critic, DQN with replay and target network, PPO."""

# %%
import copy
import random
from collections import deque, namedtuple
from itertools import count

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Categorical

random.seed(0)
np.random.seed(0)
torch.manual_seed(0)


# %%
class Corridor:
    """Walk to the right end of a corridor; the observation is the position and the time left."""

    n_actions = 2

    def __init__(self, length=5, limit=12):
        self.length, self.limit = length, limit

    def reset(self):
        self.pos, self.t = 0, 0
        return self._obs()

    def _obs(self):
        return np.array([self.pos / self.length, self.t / self.limit], dtype=np.float32)

    def step(self, action):
        self.pos = max(0, self.pos + (1 if action == 1 else -1))
        self.t += 1
        done = self.pos >= self.length or self.t >= self.limit
        reward = 1.0 if self.pos >= self.length else -0.05
        return self._obs(), reward, done


env = Corridor()
env.reset()


# %%
class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 32)
        self.affine2 = nn.Linear(32, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


policy = Policy()
optimizer = torch.optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()


def select_action(state):
    probs = policy(torch.from_numpy(state).float().unsqueeze(0))
    m = Categorical(probs)
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(gamma=0.99):
    R = 0
    policy_loss = []
    returns = deque()
    for r in policy.rewards[::-1]:
        R = r + gamma * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    del policy.rewards[:]
    del policy.saved_log_probs[:]


# %%
running_reward = 10
for i_episode in range(6):
    state, ep_reward = env.reset(), 0
    for t in range(1, 100):
        action = select_action(state)
        state, reward, done = env.step(action)
        policy.rewards.append(reward)
        ep_reward += reward
        if done:
            break
    running_reward = 0.05 * ep_reward + (1 - 0.05) * running_reward
    finish_episode()
running_reward

# %%
# The same at top level: the log-probabilities of one episode are kept until its backward.
episode_returns = []
for episode in range(4):
    state, done = env.reset(), False
    log_probs, rewards = [], []
    while not done:
        dist = Categorical(policy(torch.as_tensor(state).unsqueeze(0)))
        action = dist.sample()
        log_probs.append(dist.log_prob(action))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
    G, returns = 0.0, []
    for r in reversed(rewards):
        G = r + 0.99 * G
        returns.insert(0, G)
    loss = -(torch.cat(log_probs) * torch.tensor(returns)).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    episode_returns.append(sum(rewards))
episode_returns

# %%
SavedAction = namedtuple("SavedAction", ["log_prob", "value"])


class ActorCritic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(2, 32), nn.Tanh())
        self.actor, self.critic = nn.Linear(32, 2), nn.Linear(32, 1)

    def forward(self, x):
        h = self.body(x)
        return F.softmax(self.actor(h), dim=-1), self.critic(h)


ac = ActorCritic()
ac_optimizer = torch.optim.Adam(ac.parameters(), lr=5e-3)

# %%
for episode in range(4):
    state, saved, rewards = env.reset(), [], []
    for t in count():
        probs, value = ac(torch.from_numpy(state))
        m = Categorical(probs)
        action = m.sample()
        saved.append(SavedAction(m.log_prob(action), value))
        state, reward, done = env.step(action.item())
        rewards.append(reward)
        if done:
            break
    R, returns = 0, []
    for r in rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    policy_losses, value_losses = [], []
    for (log_prob, value), R in zip(saved, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, torch.tensor([R])))
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    ac_optimizer.zero_grad()
    loss.backward()
    ac_optimizer.step()

# %%
Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, batch_size):
        return random.sample(self.memory, batch_size)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 2))

    def forward(self, x):
        return self.net(x)


policy_net, target_net = DQN(), DQN()
target_net.load_state_dict(policy_net.state_dict())
target_net.eval()
optimizer = torch.optim.AdamW(policy_net.parameters(), lr=1e-3, amsgrad=True)
memory = ReplayMemory(200)
steps_done = 0


def act(state):
    global steps_done
    eps_threshold = 0.1 + 0.8 * np.exp(-steps_done / 50)
    steps_done += 1
    if random.random() > eps_threshold:
        with torch.no_grad():
            return policy_net(state).max(1).indices.view(1, 1)
    return torch.tensor([[random.randrange(2)]], dtype=torch.long)


def optimize_model(batch_size=16, gamma=0.95):
    if len(memory) < batch_size:
        return None
    batch = Transition(*zip(*memory.sample(batch_size)))
    non_final_mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
    non_final_next_states = torch.cat([s for s in batch.next_state if s is not None])
    state_batch, action_batch, reward_batch = torch.cat(batch.state), torch.cat(batch.action), torch.cat(batch.reward)
    q = policy_net(state_batch).gather(1, action_batch)
    next_values = torch.zeros(batch_size)
    with torch.no_grad():
        next_values[non_final_mask] = target_net(non_final_next_states).max(1).values
    expected = next_values * gamma + reward_batch
    loss = F.smooth_l1_loss(q, expected.unsqueeze(1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_value_(policy_net.parameters(), 100)
    optimizer.step()
    return loss.item()


# %%
durations = []
for i_episode in range(6):
    state = torch.tensor(env.reset()).unsqueeze(0)
    for t in count():
        action = act(state)
        observation, reward, done = env.step(action.item())
        reward = torch.tensor([reward])
        next_state = None if done else torch.tensor(observation).unsqueeze(0)
        memory.push(state, action, next_state, reward)
        state = next_state
        optimize_model()
        if done:
            durations.append(t + 1)
            break
    if i_episode % 2 == 0:
        target_net.load_state_dict(policy_net.state_dict())
len(memory), np.mean(durations)

# %%
# Soft updates of the target, written on the state dictionaries, and then on the parameters.
TAU = 0.05
target_state, policy_state = target_net.state_dict(), policy_net.state_dict()
for key in policy_state:
    target_state[key] = policy_state[key] * TAU + target_state[key] * (1 - TAU)
target_net.load_state_dict(target_state)

target = copy.deepcopy(policy_net).requires_grad_(False)
with torch.no_grad():
    for p, p_target in zip(policy_net.parameters(), target.parameters()):
        p_target.data.mul_(1 - TAU).add_(TAU * p.data)


# %%
# A ring buffer of arrays, as simulators like it.
class Buffer:
    def __init__(self, size, obs_dim=2):
        self.obs = np.zeros((size, obs_dim), dtype=np.float32)
        self.actions = np.zeros(size, dtype=np.int64)
        self.rewards = np.zeros(size, dtype=np.float32)
        self.ptr, self.size, self.full = 0, size, False

    def add(self, obs, action, reward):
        self.obs[self.ptr], self.actions[self.ptr], self.rewards[self.ptr] = obs, action, reward
        self.ptr = (self.ptr + 1) % self.size
        self.full = self.full or self.ptr == 0

    def sample(self, n):
        index = np.random.randint(0, self.size if self.full else self.ptr, n)
        return torch.from_numpy(self.obs[index]), torch.from_numpy(self.actions[index])


buffer = Buffer(32)
obs, done = env.reset(), False
for _ in range(40):
    if done:
        obs, done = env.reset(), False
    action = np.random.randint(2)
    nxt, reward, done = env.step(action)
    buffer.add(obs, action, reward)
    obs = nxt
o, a = buffer.sample(8)
policy_net(o).gather(1, a[:, None]).mean().item()


# %%
def layer_init(layer, std=np.sqrt(2), bias=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(2, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(2, 16)), nn.Tanh(), layer_init(nn.Linear(16, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


num_steps, gamma, lam, clip_coef = 24, 0.99, 0.95, 0.2
agent = Agent()
optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)

# %%
obs = torch.zeros((num_steps, 2))
actions, logprobs = torch.zeros(num_steps), torch.zeros(num_steps)
rewards, dones, values = torch.zeros(num_steps), torch.zeros(num_steps), torch.zeros(num_steps)
next_obs, next_done = torch.Tensor(env.reset()), torch.zeros(())
clipfracs = []
for iteration in range(3):
    for step in range(num_steps):
        obs[step], dones[step] = next_obs, next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step], logprobs[step] = action, logprob
        raw, rewards[step], done = env.step(action.item())
        next_obs, next_done = torch.Tensor(env.reset() if done else raw), torch.tensor(float(done))
    with torch.no_grad():
        advantages, lastgaelam = torch.zeros_like(rewards), 0
        for t in reversed(range(num_steps)):
            last = t == num_steps - 1
            nextnonterminal = 1.0 - (next_done if last else dones[t + 1])
            nextvalues = agent.get_value(next_obs).squeeze() if last else values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * lam * nextnonterminal * lastgaelam
        returns = advantages + values
    for epoch in range(2):
        for mb in torch.randperm(num_steps).split(8):
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(obs[mb], actions.long()[mb])
            logratio = newlogprob - logprobs[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                clipfracs += [((ratio - 1.0).abs() > clip_coef).float().mean().item()]
            adv = (advantages[mb] - advantages[mb].mean()) / (advantages[mb].std() + 1e-8)
            pg_loss = torch.max(-adv * ratio, -adv * torch.clamp(ratio, 1 - clip_coef, 1 + clip_coef)).mean()
            v_loss = 0.5 * ((newvalue.view(-1) - returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
y_pred, y_true = values.numpy(), returns.numpy()
var_y = np.var(y_true)
explained_var = np.nan if var_y == 0 else 1 - np.var(y_true - y_pred) / var_y
round(float(explained_var), 2), np.mean(clipfracs)

# %%
# Soft actor-critic's learned temperature.
log_alpha = torch.zeros(1, requires_grad=True)
alpha_opt = torch.optim.Adam([log_alpha], lr=1e-2)
target_entropy = -0.5
for _ in range(3):
    with torch.no_grad():
        _, logp, _, _ = agent.get_action_and_value(obs)
    alpha_loss = (-log_alpha.exp() * (logp + target_entropy)).mean()
    alpha_opt.zero_grad()
    alpha_loss.backward()
    alpha_opt.step()
alpha = log_alpha.exp().item()
alpha
