import argparse

import numpy as np
import tensorflow as tf


def curves(count=160, length=16):
    rng = np.random.default_rng(41)
    t = np.linspace(0, 1, length)
    phase = rng.uniform(0, 6.28, (count, 1))
    return np.sin(6.28 * t + phase).astype("float32")


def autoencoder(length=16):
    encoder = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(2)])
    decoder = tf.keras.Sequential([tf.keras.layers.Dense(8, activation="relu"), tf.keras.layers.Dense(length)])
    model = tf.keras.Sequential([encoder, decoder])
    model.build((None, length))
    return model


def make_optimizer(lr):
    return tf.keras.optimizers.legacy.Adam(lr)


def noisy(rng, batch):
    return batch + rng.normal(tf.shape(batch), stddev=0.1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=5e-3)
    args = parser.parse_args()

    tf.keras.utils.set_random_seed(8)
    rng = tf.random.Generator.from_seed(8)
    x = curves()
    model = autoencoder()
    optimizer = make_optimizer(args.lr)
    epoch = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, epoch=epoch, rng=rng)
    manager = tf.train.CheckpointManager(checkpoint, "ae", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    rng.reset_from_seed(8)

    for number in range(int(epoch), args.epochs):
        total = 0.0
        for start in range(0, len(x), 32):
            batch = tf.constant(x[start : start + 32])
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(noisy(rng, batch), training=True) - batch))
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables))
            total += float(loss)
        epoch.assign(number + 1)
        manager.save()
        print(f"epoch {number}: {total:.4f}")

    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
