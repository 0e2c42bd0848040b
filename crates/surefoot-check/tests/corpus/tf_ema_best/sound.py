import argparse
import json
import os

import numpy as np
import tensorflow as tf


class Averaged(tf.Module):
    """A slow copy of a model's variables."""

    def __init__(self, variables, decay):
        super().__init__()
        self.decay = decay
        self.shadow = [tf.Variable(v, trainable=False) for v in variables]

    def update(self, variables):
        for slow, fast in zip(self.shadow, variables):
            slow.assign(self.decay * slow + (1 - self.decay) * fast)

    def copy_to(self, variables):
        for slow, target in zip(self.shadow, variables):
            target.assign(slow)


def data(seed, count):
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, (count, 3)).astype("float32")
    return x, np.sin(x).sum(axis=1, keepdims=True).astype("float32")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--dir", default="ema_run")
    args = parser.parse_args()
    os.makedirs(args.dir, exist_ok=True)
    notes = os.path.join(args.dir, "best.json")

    tf.keras.utils.set_random_seed(15)
    x, y = data(1, 200)
    x_val, y_val = data(2, 50)
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(24, activation="tanh", input_shape=(3,)), tf.keras.layers.Dense(1)]
    )
    optimizer = tf.keras.optimizers.legacy.SGD(0.05, momentum=0.9)
    average = Averaged(model.trainable_variables, 0.9)
    epoch = tf.Variable(0)
    best = float("inf")

    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch, average=average)
    manager = tf.train.CheckpointManager(checkpoint, args.dir, max_to_keep=1)
    if manager.latest_checkpoint:
        checkpoint.restore(manager.latest_checkpoint)
        with open(notes) as f:
            best = json.load(f)["best"]

    for number in range(int(epoch), args.epochs):
        for start in range(0, len(x), 25):
            xb, yb = x[start : start + 25], y[start : start + 25]
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(xb, training=True) - yb))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            average.update(model.trainable_variables)
        val_loss = float(tf.reduce_mean(tf.square(model(x_val) - y_val)))
        print(f"epoch {number}: {float(loss):.4f} {val_loss:.4f}")
        if val_loss < best:
            best = val_loss
            model.save_weights(os.path.join(args.dir, "best.weights.h5"))
        epoch.assign_add(1)
        with open(notes, "w") as f:
            json.dump({"best": best}, f)
        manager.save()

    average.copy_to(model.trainable_variables)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
