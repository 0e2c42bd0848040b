import argparse
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F


class GridWorld:
    """Walk from a corner of a 4x4 grid to the other one; every step costs a little."""

    size = 4
    moves = ((0, 1), (0, -1), (1, 0), (-1, 0))

    def reset(self):
        self.at = (0, 0)
        self.steps = 0
        return self.observe()

    def observe(self):
        row, column = self.at
        return [row / self.size, column / self.size]

    def step(self, action):
        dr, dc = self.moves[action]
        row = min(max(self.at[0] + dr, 0), self.size - 1)
        column = min(max(self.at[1] + dc, 0), self.size - 1)
        self.at = (row, column)
        self.steps += 1
        goal = self.at == (self.size - 1, self.size - 1)
        return self.observe(), (1.0 if goal else -0.05), goal or self.steps >= 20


def q_network():
    return nn.Sequential(nn.Linear(2, 32), nn.ReLU(), nn.Linear(32, 4))


class Agent:
    def __init__(self, lr, gamma=0.95):
        self.policy = q_network()
        self.target = q_network()
        self.target.load_state_dict(self.policy.state_dict())
        self.optimizer = torch.optim.Adam(self.policy.parameters(), lr=lr)
        self.memory = deque(maxlen=500)
        self.gamma = gamma
        self.epsilon = 1.0

    def act(self, state):
        if random.random() < self.epsilon:
            return random.randrange(4)
        with torch.no_grad():
            return self.policy(torch.tensor(state)).argmax().item()

    def learn(self, batch_size):
        if len(self.memory) < batch_size:
            return
        batch = random.sample(list(self.memory), batch_size)
        states, actions, rewards, nexts, dones = zip(*batch)
        q = self.policy(torch.tensor(states)).gather(1, torch.tensor(actions).unsqueeze(1)).squeeze(1)
        with torch.no_grad():
            best = self.target(torch.tensor(nexts)).max(1).values
            goal = torch.tensor(rewards) + self.gamma * best * (1 - torch.tensor(dones).float())
        loss = F.smooth_l1_loss(q, goal)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=16)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=5e-3)
    parser.add_argument("--sync", type=int, default=5)
    parser.add_argument("--save-every", type=int, default=4)
    parser.add_argument("--seed", type=int, default=9)
    parser.add_argument("--resume")
    args = parser.parse_args()

    random.seed(args.seed)
    torch.manual_seed(args.seed)
    env = GridWorld()
    agent = Agent(args.lr)

    first = 1
    if args.resume is not None:
        ckpt = torch.load(args.resume)
        agent.policy.load_state_dict(ckpt["policy"])
        agent.optimizer.load_state_dict(ckpt["optimizer"])
        agent.target.load_state_dict(ckpt["target"])
        agent.epsilon = ckpt["epsilon"]
        agent.memory.extend(ckpt["memory"])
        random.setstate(ckpt["random"])
        first = ckpt["episode"] + 1

    for episode in range(first, args.episodes + 1):
        state, done, total = env.reset(), False, 0.0
        while not done:
            action = agent.act(state)
            following, reward, done = env.step(action)
            agent.memory.append((state, action, reward, following, done))
            agent.learn(args.batch_size)
            state = following
            total += reward
        agent.epsilon = max(0.05, agent.epsilon * 0.9)
        if episode % args.sync == 0:
            agent.target.load_state_dict(agent.policy.state_dict())
        if episode % args.save_every == 0:
            print(f"episode {episode}: return {total:.2f}, epsilon {agent.epsilon:.3f}")
            torch.save(
                {
                    "episode": episode,
                    "policy": agent.policy.state_dict(),
                    "optimizer": agent.optimizer.state_dict(),
                    "target": agent.target.state_dict(),
                    "epsilon": agent.epsilon,
                    "memory": list(agent.memory),
                    "random": random.getstate(),
                },
                "dqn.pt",
            )

    torch.save(agent.policy.state_dict(), "final.pt")


if __name__ == "__main__":
    main()
