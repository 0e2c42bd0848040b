import json
import os

import numpy as np
import tensorflow as tf

GLOBAL_BATCH = 32
SEED = 2


def cluster():
    """The number of this worker, and how many there are."""
    config = json.loads(os.environ.get("TF_CONFIG", "{}"))
    workers = config.get("cluster", {}).get("worker", ["localhost"])
    return config.get("task", {}).get("index", 0), len(workers)


def samples(count=256):
    rng = np.random.default_rng(7)
    x = rng.normal(size=(count, 6)).astype("float32")
    return x, (x[:, 0] > x[:, 1]).astype("float32")[:, None]


def jitter(index, x, y):
    """Noise that depends on the sample, not on who prepares it."""
    noise = tf.random.stateless_normal(tf.shape(x), seed=tf.stack([tf.constant(SEED, tf.int64), index]))
    return x + 0.05 * noise, y


def input_fn(rank, workers):
    x, y = samples()
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).enumerate()
    dataset = dataset.shard(workers, rank)
    dataset = dataset.map(lambda index, pair: jitter(index, pair[0], pair[1]))
    return dataset.batch(GLOBAL_BATCH // workers)


def build():
    return tf.keras.Sequential(
        [
            tf.keras.layers.Dense(16, activation="relu", input_shape=(6,)),
            tf.keras.layers.Dense(1),
        ]
    )


def main():
    rank, workers = cluster()
    tf.keras.utils.set_random_seed(SEED)
    if workers > 1:
        strategy = tf.distribute.MultiWorkerMirroredStrategy()
    else:
        strategy = tf.distribute.get_strategy()

    dataset = input_fn(rank, workers)
    with strategy.scope():
        model = build()
        model.compile(
            optimizer=tf.keras.optimizers.SGD(0.1),
            loss=tf.keras.losses.BinaryCrossentropy(from_logits=True),
        )
    model.fit(dataset, epochs=3, verbose=2)
    if rank == 0:
        model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
