import argparse
import json
import os

import keras
import numpy as np
from keras import layers

WEIGHTS = "train.weights.h5"
PROGRESS = "progress.json"


class Progress(keras.callbacks.Callback):
    """Writes down how many epochs are done."""

    def on_epoch_end(self, epoch, logs=None):
        with open(PROGRESS, "w") as f:
            json.dump({"epochs_done": epoch + 1}, f)


def spirals(count=200):
    rng = np.random.default_rng(8)
    t = rng.uniform(0, 3, count)
    label = np.arange(count) % 2
    angle = 2 * t + np.pi * label
    points = np.stack([t * np.cos(angle), t * np.sin(angle)], axis=1)
    return points.astype("float32"), label.astype("float32")


def build():
    return keras.Sequential(
        [keras.Input((2,)), layers.Dense(32, activation="tanh"), layers.Dense(32, activation="tanh"), layers.Dense(1)]
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--resume", action="store_true")
    args = parser.parse_args()

    keras.utils.set_random_seed(21)
    x, y = spirals()
    model = build()

    first = 0
    model.compile(
        optimizer=keras.optimizers.Adam(args.lr),
        loss=keras.losses.BinaryCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    if args.resume and os.path.exists(WEIGHTS):
        model.optimizer.build(model.trainable_variables)
        model.load_weights(WEIGHTS)
        with open(PROGRESS) as f:
            first = json.load(f)["epochs_done"]
    model.fit(
        x,
        y,
        batch_size=25,
        epochs=args.epochs,
        initial_epoch=first,
        shuffle=False,
        callbacks=[keras.callbacks.ModelCheckpoint(WEIGHTS, save_weights_only=True), Progress()],
        verbose=2,
    )
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
