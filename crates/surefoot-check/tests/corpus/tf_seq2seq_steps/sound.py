"""Learns to add digits; saves every few steps."""
import argparse

import numpy as np
import tensorflow as tf


def pairs(count=200, length=6):
    rng = np.random.default_rng(18)
    x = rng.integers(0, 5, (count, length))
    return x.astype("int32"), (np.cumsum(x, axis=1) % 5).astype("int32")


class Seq2Seq(tf.keras.Model):
    def __init__(self, width=16):
        super().__init__()
        self.embed = tf.keras.layers.Embedding(5, width)
        self.rnn = tf.keras.layers.GRU(width, return_sequences=True)
        self.out = tf.keras.layers.Dense(5)

    def call(self, x):
        return self.out(self.rnn(self.embed(x)))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--save-every", type=int, default=5)
    parser.add_argument("--seed", type=int, default=27)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(args.seed)
    x, y = pairs()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(200, seed=args.seed).batch(20).repeat()
    iterator = iter(dataset)

    model = Seq2Seq()
    model(x[:1])
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(1e-2, args.steps, 1e-3)
    optimizer = tf.keras.optimizers.legacy.Adam(schedule)
    loss_fn = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    step = tf.Variable(0, dtype=tf.int64)

    checkpoint = tf.train.Checkpoint(step=step, model=model, optimizer=optimizer, iterator=iterator)
    manager = tf.train.CheckpointManager(checkpoint, "seq2seq", max_to_keep=2)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)

    @tf.function
    def train_step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = loss_fn(targets, model(inputs))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        return loss

    while step < args.steps:
        inputs, targets = next(iterator)
        loss = train_step(inputs, targets)
        step.assign_add(1)
        if int(step) % args.save_every == 0:
            manager.save()
            print(f"step {int(step)}: {float(loss):.4f}")

    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
