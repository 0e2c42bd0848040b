"""Classifies small images; a run that was stopped goes on from its backup."""
import argparse

import keras
import numpy as np
from keras import layers


def load_data(count=256, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, count)
    x = rng.normal(0, 0.5, (count, 12, 12, 1)).astype("float32")
    for image, label in zip(x, y):
        image[label * 4 : label * 4 + 4] += 0.8
    return x, keras.utils.to_categorical(y, 3)


def build_model():
    inputs = keras.Input(shape=(12, 12, 1))
    x = layers.Conv2D(8, 3, activation="relu", padding="same")(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.MaxPooling2D()(x)
    x = layers.Conv2D(16, 3, activation="relu", padding="same")(x)
    x = layers.GlobalAveragePooling2D()(x)
    outputs = layers.Dense(3, activation="softmax")(x)
    return keras.Model(inputs, outputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--backup-dir", default="backup")
    args = parser.parse_args()

    keras.utils.set_random_seed(args.seed)
    x_train, y_train = load_data(256, 0)
    x_val, y_val = load_data(64, 1)
    model = build_model()
    learning_rate = 1e-2
    model.compile(
        optimizer=keras.optimizers.Adam(learning_rate),
        loss="categorical_crossentropy",
        metrics=["accuracy"],
    )
    callbacks = [
        keras.callbacks.BackupAndRestore(args.backup_dir),
        keras.callbacks.EarlyStopping(monitor="val_loss", patience=3, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=1),
        keras.callbacks.CSVLogger("log.csv", append=True),
    ]
    model.fit(
        x_train,
        y_train,
        batch_size=args.batch_size,
        epochs=args.epochs,
        validation_data=(x_val, y_val),
        callbacks=callbacks,
        verbose=2,
    )
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
