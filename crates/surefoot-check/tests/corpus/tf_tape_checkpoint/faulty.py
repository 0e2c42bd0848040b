import argparse

import numpy as np
import tensorflow as tf


class Net(tf.keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = tf.keras.layers.Dense(32, activation="relu")
        self.norm = tf.keras.layers.BatchNormalization()
        self.out = tf.keras.layers.Dense(1)

    def call(self, x, training=False):
        return self.out(self.norm(self.hidden(x), training=training))


def load_data(count=240):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(count, 5)).astype("float32")
    y = (x[:, :1] ** 2 - x[:, 1:2]).astype("float32")
    return x, y


@tf.function
def train_step(net, x, y, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(net(x, training=True) - y))
    gradients = tape.gradient(loss, net.trainable_variables)
    optimizer.apply_gradients(zip(gradients, net.trainable_variables))
    return loss


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--dir", default="tf_ckpts")
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(3)
    x, y = load_data()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(30)

    net = Net()
    net(x[:1])
    optimizer = tf.keras.optimizers.legacy.Adam(1e-2)
    epoch = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(epoch=epoch, net=net)
    manager = tf.train.CheckpointManager(checkpoint, args.dir, max_to_keep=3)

    checkpoint.restore(manager.latest_checkpoint)
    if manager.latest_checkpoint:
        print(f"Restored from {manager.latest_checkpoint}")

    while int(epoch) < args.epochs:
        for xb, yb in dataset:
            loss = train_step(net, xb, yb, optimizer)
        epoch.assign_add(1)
        print(f"epoch {int(epoch)}: loss {float(loss):.4f}")
        manager.save()

    net.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
