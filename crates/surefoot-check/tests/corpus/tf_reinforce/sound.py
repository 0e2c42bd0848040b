import argparse
import random
import time

import numpy as np
import tensorflow as tf


class Bandit:
    """Four arms; which one pays depends on the context."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.payoff = self.rng.uniform(0, 1, (4, 4))

    def context(self):
        self.current = self.rng.integers(0, 4)
        return np.eye(4, dtype="float32")[self.current]

    def pull(self, arm):
        return float(self.rng.uniform() < self.payoff[self.current, arm])


def build_policy():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(16, activation="tanh", input_shape=(4,)),
            tf.keras.layers.Dense(4, activation="softmax"),
        ]
    )


def choose(policy, context):
    probabilities = policy(context[None]).numpy()[0].astype("float64")
    return np.random.choice(4, p=probabilities / probabilities.sum())


def update(policy, optimizer, contexts, arms, rewards, baseline):
    with tf.GradientTape() as tape:
        probabilities = tf.gather(policy(np.stack(contexts)), arms, batch_dims=1)
        advantage = tf.constant(rewards, tf.float32) - baseline
        loss = -tf.reduce_mean(tf.math.log(probabilities) * advantage)
    gradients = tape.gradient(loss, policy.trainable_variables)
    optimizer.apply_gradients(zip(gradients, policy.trainable_variables))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--updates", type=int, default=5)
    parser.add_argument("--pulls", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    random.seed(args.seed)
    tf.random.set_seed(args.seed)
    np.random.seed(args.seed)
    bandit = Bandit(seed=10)
    policy = build_policy()
    optimizer = tf.keras.optimizers.RMSprop(1e-2)
    baseline = 0.0
    began = time.perf_counter()
    for number in range(args.updates):
        contexts, arms, rewards = [], [], []
        for _ in range(args.pulls):
            context = bandit.context()
            arm = choose(policy, context)
            contexts.append(context)
            arms.append(arm)
            rewards.append(bandit.pull(arm))
        baseline = 0.9 * baseline + 0.1 * float(np.mean(rewards))
        update(policy, optimizer, contexts, arms, rewards, baseline)
        print(f"update {number}: reward {np.mean(rewards):.3f}")
    print(f"{time.perf_counter() - began:.2f} s")
    policy.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
