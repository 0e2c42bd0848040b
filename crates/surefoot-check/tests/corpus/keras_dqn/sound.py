import argparse
import collections
import pickle
import random

import keras
import numpy as np
from keras import layers


class Corridor:
    """Ten cells; the treasure is at the right end, a penny at the left one."""

    def __init__(self, cells=10):
        self.cells = cells

    def reset(self):
        self.position = self.cells // 2
        self.time = 0
        return self.state()

    def state(self):
        state = np.zeros(self.cells, dtype="float32")
        state[self.position] = 1.0
        return state

    def step(self, action):
        self.position += 1 if action == 1 else -1
        self.time += 1
        if self.position == self.cells - 1:
            return self.state(), 1.0, True
        if self.position == 0:
            return self.state(), 0.1, True
        return self.state(), 0.0, self.time >= 30


def q_network(cells):
    model = keras.Sequential(
        [keras.Input((cells,)), layers.Dense(24, activation="relu"), layers.Dense(2)]
    )
    model.compile(optimizer=keras.optimizers.SGD(0.1), loss="mse")
    return model


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--resume")
    args = parser.parse_args()

    keras.utils.set_random_seed(5)
    env = Corridor()
    online = q_network(env.cells)
    target = q_network(env.cells)
    target.set_weights(online.get_weights())
    memory = collections.deque(maxlen=400)
    epsilon = 1.0
    start = 0

    if args.resume:
        with open(args.resume, "rb") as f:
            saved = pickle.load(f)
        online.set_weights(saved["online"])
        target.set_weights(saved["target"])
        epsilon = saved["epsilon"]
        memory.extend(saved["memory"])
        random.setstate(saved["random"])
        start = saved["episode"] + 1

    for episode in range(start, args.episodes):
        state, done = env.reset(), False
        while not done:
            if random.random() < epsilon:
                action = random.randint(0, 1)
            else:
                action = int(np.argmax(online.predict(state[None], verbose=0)[0]))
            following, reward, done = env.step(action)
            memory.append((state, action, reward, following, done))
            state = following
        if len(memory) >= args.batch:
            batch = random.sample(list(memory), args.batch)
            states, actions, rewards, nexts, dones = map(np.array, zip(*batch))
            goals = online.predict(states, verbose=0)
            future = target.predict(nexts, verbose=0).max(axis=1)
            goals[np.arange(args.batch), actions] = rewards + 0.95 * future * (1 - dones)
            online.train_on_batch(states, goals)
        epsilon = max(0.1, epsilon * 0.8)
        if episode % 3 == 2:
            target.set_weights(online.get_weights())
        with open("dqn.pkl", "wb") as f:
            state_of_run = {"episode": episode, "online": online.get_weights()}
            state_of_run["target"] = target.get_weights()
            state_of_run["epsilon"] = epsilon
            state_of_run["memory"] = list(memory)
            state_of_run["random"] = random.getstate()
            pickle.dump(state_of_run, f)
        print(f"episode {episode}: epsilon {epsilon:.2f}, {len(memory)} transitions")

    np.savez("final.npz", *online.get_weights())


if __name__ == "__main__":
    main()
