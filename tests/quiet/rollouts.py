"""Proximal policy optimisation with preallocated rollout storage and generalised advantages."""

# %%
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical, Normal


class PoleEnv:
    def __init__(self, seed=0):
        self.rng = np.random.default_rng(seed)
        self.state = np.zeros(4, dtype=np.float32)
        self.t = 0

    def reset(self):
        self.state = self.rng.uniform(-0.05, 0.05, 4).astype(np.float32)
        self.t = 0
        return self.state.copy(), {}

    def step(self, action):
        force = 1.0 if action == 1 else -1.0
        x, v, th, w = self.state
        v, w = v + 0.1 * force, w - 0.15 * force + 0.05 * th
        self.state = np.array([x + 0.1 * v, v, th + 0.1 * w, w], dtype=np.float32)
        self.t += 1
        done = bool(abs(self.state[2]) > 0.3 or abs(self.state[0]) > 2)
        return self.state.copy(), 1.0, done, self.t >= 40, {}


class VectorEnv:
    def __init__(self, n):
        self.envs = [PoleEnv(i) for i in range(n)]
        self.obs = np.zeros((n, 4), dtype=np.float32)

    def reset(self):
        for i, env in enumerate(self.envs):
            self.obs[i], _ = env.reset()
        return self.obs.copy()

    def step(self, actions):
        rewards, dones = np.zeros(len(self.envs), np.float32), np.zeros(len(self.envs), np.float32)
        for i, (env, a) in enumerate(zip(self.envs, actions)):
            ob, rewards[i], terminated, truncated, _ = env.step(a)
            dones[i] = terminated or truncated
            if dones[i]:
                ob, _ = env.reset()
            self.obs[i] = ob
        return self.obs.copy(), rewards, dones, {}


envs = VectorEnv(3)
obs = envs.reset()
obs.shape


# %%
def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(4, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0))
        self.actor = nn.Sequential(layer_init(nn.Linear(4, 16)), nn.Tanh(), layer_init(nn.Linear(16, 2), std=0.01))

    def get_value(self, x):
        return self.critic(x)

    def get_action_and_value(self, x, action=None):
        probs = Categorical(logits=self.actor(x))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action), probs.entropy(), self.critic(x)


device = torch.device("cpu")
agent = Agent().to(device)
optimizer = optim.Adam(agent.parameters(), lr=2.5e-3, eps=1e-5)
num_steps, num_envs, gamma, gae_lambda, clip = 16, 3, 0.99, 0.95, 0.2

# %%
obs = torch.zeros((num_steps, num_envs, 4)).to(device)
actions = torch.zeros((num_steps, num_envs)).to(device)
logprobs = torch.zeros((num_steps, num_envs)).to(device)
rewards = torch.zeros((num_steps, num_envs)).to(device)
dones = torch.zeros((num_steps, num_envs)).to(device)
values = torch.zeros((num_steps, num_envs)).to(device)

global_step = 0
next_obs = torch.Tensor(envs.reset()).to(device)
next_done = torch.zeros(num_envs).to(device)
returns_log, clipfracs = [], []
for update in range(3):
    frac = 1.0 - update / 3
    optimizer.param_groups[0]["lr"] = frac * 2.5e-3
    for step in range(num_steps):
        global_step += num_envs
        obs[step] = next_obs
        dones[step] = next_done
        with torch.no_grad():
            action, logprob, _, value = agent.get_action_and_value(next_obs)
            values[step] = value.flatten()
        actions[step] = action
        logprobs[step] = logprob
        next_obs, reward, done, info = envs.step(action.cpu().numpy())
        rewards[step] = torch.tensor(reward).to(device).view(-1)
        next_obs, next_done = torch.Tensor(next_obs).to(device), torch.Tensor(done).to(device)

    with torch.no_grad():
        next_value = agent.get_value(next_obs).reshape(1, -1)
        advantages = torch.zeros_like(rewards).to(device)
        lastgaelam = 0
        for t in reversed(range(num_steps)):
            if t == num_steps - 1:
                nextnonterminal = 1.0 - next_done
                nextvalues = next_value
            else:
                nextnonterminal = 1.0 - dones[t + 1]
                nextvalues = values[t + 1]
            delta = rewards[t] + gamma * nextvalues * nextnonterminal - values[t]
            advantages[t] = lastgaelam = delta + gamma * gae_lambda * nextnonterminal * lastgaelam
        returns = advantages + values

    b_obs = obs.reshape((-1, 4))
    b_logprobs = logprobs.reshape(-1)
    b_actions = actions.reshape(-1)
    b_advantages = advantages.reshape(-1)
    b_returns = returns.reshape(-1)
    b_values = values.reshape(-1)

    b_inds = np.arange(num_steps * num_envs)
    for epoch in range(2):
        np.random.shuffle(b_inds)
        for start in range(0, len(b_inds), 16):
            mb = b_inds[start : start + 16]
            _, newlogprob, entropy, newvalue = agent.get_action_and_value(b_obs[mb], b_actions.long()[mb])
            logratio = newlogprob - b_logprobs[mb]
            ratio = logratio.exp()
            with torch.no_grad():
                old_approx_kl = (-logratio).mean()
                approx_kl = ((ratio - 1) - logratio).mean()
                clipfracs += [((ratio - 1.0).abs() > clip).float().mean().item()]
            mb_adv = b_advantages[mb]
            mb_adv = (mb_adv - mb_adv.mean()) / (mb_adv.std() + 1e-8)
            pg_loss = torch.max(-mb_adv * ratio, -mb_adv * torch.clamp(ratio, 1 - clip, 1 + clip)).mean()
            newvalue = newvalue.view(-1)
            v_clipped = b_values[mb] + torch.clamp(newvalue - b_values[mb], -clip, clip)
            v_loss = 0.5 * torch.max((newvalue - b_returns[mb]) ** 2, (v_clipped - b_returns[mb]) ** 2).mean()
            loss = pg_loss - 0.01 * entropy.mean() + v_loss * 0.5
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
            optimizer.step()
        if approx_kl > 0.5:
            break
    y_pred, y_true = b_values.cpu().numpy(), b_returns.cpu().numpy()
    var_y = np.var(y_true)
    explained_var = np.nan if var_y == 0 else 1 - np.var(y_true - y_pred) / var_y
    returns_log.append(rewards.sum().item())
explained_var, returns_log

# %%
# Policy gradient with a numpy environment.
env = PoleEnv(7)
policy = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
opt = optim.Adam(policy.parameters(), lr=1e-2)
running_reward = 10
SavedAction = namedtuple("SavedAction", ["log_prob", "reward"])
for episode in range(4):
    state, _ = env.reset()
    saved = []
    for t in range(40):
        dist = Categorical(logits=policy(torch.from_numpy(state).unsqueeze(0)))
        action = dist.sample()
        state, reward, done, truncated, _ = env.step(action.item())
        saved.append(SavedAction(dist.log_prob(action), reward))
        if done or truncated:
            break
    R, policy_loss, discounted = 0, [], deque()
    for s in saved[::-1]:
        R = s.reward + 0.99 * R
        discounted.appendleft(R)
    discounted = torch.tensor(discounted)
    discounted = (discounted - discounted.mean()) / (discounted.std() + np.finfo(np.float32).eps.item())
    for s, R in zip(saved, discounted):
        policy_loss.append(-s.log_prob * R)
    opt.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    opt.step()
    running_reward = 0.05 * len(saved) + 0.95 * running_reward
running_reward


# %%
class RolloutBuffer:
    def __init__(self):
        self.states, self.actions, self.logprobs, self.rewards, self.is_terminals = [], [], [], [], []

    def clear(self):
        del self.states[:]
        del self.actions[:]
        del self.logprobs[:]
        del self.rewards[:]
        del self.is_terminals[:]


class PPO:
    def __init__(self):
        self.buffer = RolloutBuffer()
        self.policy = Agent()
        self.policy_old = Agent()
        self.policy_old.load_state_dict(self.policy.state_dict())
        self.optimizer = optim.Adam(self.policy.parameters(), lr=1e-3)
        self.mse = nn.MSELoss()

    def select_action(self, state):
        with torch.no_grad():
            state = torch.FloatTensor(state)
            action, logprob, _, _ = self.policy_old.get_action_and_value(state)
        self.buffer.states.append(state)
        self.buffer.actions.append(action)
        self.buffer.logprobs.append(logprob)
        return action.item()

    def update(self):
        rewards, discounted = [], 0
        for reward, terminal in zip(reversed(self.buffer.rewards), reversed(self.buffer.is_terminals)):
            if terminal:
                discounted = 0
            discounted = reward + 0.99 * discounted
            rewards.insert(0, discounted)
        rewards = torch.tensor(rewards, dtype=torch.float32)
        rewards = (rewards - rewards.mean()) / (rewards.std() + 1e-7)
        old_states = torch.squeeze(torch.stack(self.buffer.states, dim=0)).detach()
        old_actions = torch.squeeze(torch.stack(self.buffer.actions, dim=0)).detach()
        old_logprobs = torch.squeeze(torch.stack(self.buffer.logprobs, dim=0)).detach()
        for _ in range(2):
            _, logprobs, entropy, values = self.policy.get_action_and_value(old_states, old_actions)
            values = torch.squeeze(values)
            ratios = torch.exp(logprobs - old_logprobs.detach())
            advantages = rewards - values.detach()
            surr = torch.min(ratios * advantages, torch.clamp(ratios, 0.8, 1.2) * advantages)
            loss = -surr + 0.5 * self.mse(values, rewards) - 0.01 * entropy
            self.optimizer.zero_grad()
            loss.mean().backward()
            self.optimizer.step()
        self.policy_old.load_state_dict(self.policy.state_dict())
        self.buffer.clear()


ppo = PPO()
for episode in range(3):
    state, _ = env.reset()
    for _ in range(20):
        action = ppo.select_action(state)
        state, reward, done, truncated, _ = env.step(action)
        ppo.buffer.rewards.append(reward)
        ppo.buffer.is_terminals.append(done)
        if done or truncated:
            break
    ppo.update()
len(ppo.buffer.states)

# %%
# Advantage actor-critic at top level, values kept until the episode ends.
actor_critic = Agent()
opt = optim.RMSprop(actor_critic.parameters(), lr=1e-3)
for episode in range(3):
    log_probs, values, rewards, masks = [], [], [], []
    entropy = 0
    state, _ = env.reset()
    for _ in range(12):
        state = torch.as_tensor(state)
        action, log_prob, ent, value = actor_critic.get_action_and_value(state)
        next_state, reward, done, _, _ = env.step(action.item())
        entropy += ent.mean()
        log_probs.append(log_prob)
        values.append(value)
        rewards.append(torch.tensor([reward]))
        masks.append(torch.tensor([1.0 - done]))
        state = next_state
        if done:
            break
    with torch.no_grad():
        R = actor_critic.get_value(torch.as_tensor(next_state))
    returns = []
    for r, m in zip(reversed(rewards), reversed(masks)):
        R = r + 0.99 * R * m
        returns.insert(0, R)
    log_probs = torch.stack(log_probs)
    returns = torch.cat(returns).detach()
    values = torch.cat(values)
    advantage = returns - values
    actor_loss = -(log_probs * advantage.detach()).mean()
    critic_loss = advantage.pow(2).mean()
    loss = actor_loss + 0.5 * critic_loss - 0.001 * entropy
    opt.zero_grad()
    loss.backward()
    opt.step()
loss.item(), entropy.item()
