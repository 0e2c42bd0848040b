import argparse
import time

import numpy as np
import torch
import torch.nn as nn
import torch.optim as optim
from torch.distributions import Categorical


class Balance:
    """A pole that falls; pushing it left or right keeps it up. A gust of wind comes every step."""

    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.angle = self.rng.uniform(-0.05, 0.05)
        self.speed = 0.0
        self.steps = 0
        return np.array([self.angle, self.speed], dtype=np.float32)

    def step(self, action):
        push = 0.08 if action == 1 else -0.08
        self.speed += 0.1 * self.angle + push + self.rng.normal(0, 0.01)
        self.angle += self.speed
        self.steps += 1
        done = abs(self.angle) > 0.5 or self.steps >= 30
        return np.array([self.angle, self.speed], dtype=np.float32), 1.0, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(2, 24)
        self.affine2 = nn.Linear(24, 2)

    def forward(self, x):
        return torch.softmax(self.affine2(torch.relu(self.affine1(x))), dim=-1)


def select_action(policy, state):
    probs = policy(torch.from_numpy(state))
    m = Categorical(probs)
    action = m.sample()
    return action.item(), m.log_prob(action)


def discounted(rewards, gamma):
    returns, value = [], 0.0
    for reward in reversed(rewards):
        value = reward + gamma * value
        returns.insert(0, value)
    return torch.tensor(returns)


def main():
    parser = argparse.ArgumentParser(description="REINFORCE")
    parser.add_argument("--gamma", type=float, default=0.99)
    parser.add_argument("--episodes", type=int, default=20)
    parser.add_argument("--seed", type=int, default=None)
    args = parser.parse_args()

    seed = args.seed if args.seed is not None else int(time.time())
    torch.manual_seed(seed)

    env = Balance(np.random.default_rng())
    policy = Policy()
    optimizer = optim.Adam(policy.parameters(), lr=1e-2)
    baseline = 0.0
    started = time.time()

    for episode in range(args.episodes):
        state, rewards, log_probs = env.reset(), [], []
        done = False
        while not done:
            action, log_prob = select_action(policy, state)
            state, reward, done = env.step(action)
            rewards.append(reward)
            log_probs.append(log_prob)

        returns = discounted(rewards, args.gamma)
        baseline = 0.9 * baseline + 0.1 * returns.mean().item()
        loss = -(torch.stack(log_probs) * (returns - baseline)).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if episode % 5 == 0:
            print(f"Episode {episode}\tlength {len(rewards)}\tbaseline {baseline:.2f}")

    print(f"took {time.time() - started:.1f} s")
    torch.save(policy.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
