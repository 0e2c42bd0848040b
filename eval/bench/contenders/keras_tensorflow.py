"""Keras on TensorFlow: `model.fit`, as its guides write it."""

from __future__ import annotations

import os

os.environ["KERAS_BACKEND"] = "tensorflow"
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf
from protocol import MLP_BATCH, MLP_EPOCHS, MLP_SAMPLES, THREADS, Train, serve


def circles(samples: int) -> tuple[np.ndarray, np.ndarray]:
    """Two noisy circles, one half the size of the other."""
    random = np.random.default_rng(1)
    angle = random.uniform(0, 2 * np.pi, samples)
    inner = np.arange(samples) % 2
    radius = 1 - 0.5 * inner
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    points += random.normal(0, 0.1, points.shape)
    return points.astype(np.float32), inner.astype(np.float32)


def mlp() -> Train:
    hidden = [keras.layers.Dense(8, activation="relu") for _ in range(10)]
    model = keras.Sequential([keras.Input((2,)), *hidden, keras.layers.Dense(1, activation="sigmoid")])
    model.compile(optimizer=keras.optimizers.Adam(), loss="binary_crossentropy")
    x, y = circles(MLP_SAMPLES)

    def train() -> int:
        model.fit(x, y, batch_size=MLP_BATCH, epochs=MLP_EPOCHS, verbose=0)
        return MLP_EPOCHS * -(-MLP_SAMPLES // MLP_BATCH)

    return train


if __name__ == "__main__":
    tf.config.threading.set_intra_op_parallelism_threads(THREADS)
    tf.config.threading.set_inter_op_parallelism_threads(THREADS)
    keras.utils.set_random_seed(1)
    serve({"mlp": mlp})
