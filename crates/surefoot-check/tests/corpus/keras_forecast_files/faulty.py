import csv
import glob
import os
import tempfile

import keras
import numpy as np
from keras import layers

WINDOW = 8


def write_stations(folder):
    """Every station has a file with its temperatures."""
    for station in range(6):
        with open(os.path.join(folder, f"station_{station}.csv"), "w", newline="") as f:
            writer = csv.writer(f)
            writer.writerow(["hour", "temperature"])
            for hour in range(60):
                writer.writerow([hour, round(10 + station + 5 * np.sin(hour / 4 + station), 3)])


def read_station(path):
    with open(path) as f:
        return np.array([float(row["temperature"]) for row in csv.DictReader(f)], dtype="float32")


def windows(series):
    x = np.stack([series[i : i + WINDOW] for i in range(len(series) - WINDOW)])
    return x[..., None], series[WINDOW:]


def load(folder):
    xs, ys = [], []
    for path in glob.glob(os.path.join(folder, "*.csv")):
        series = read_station(path)
        x, y = windows((series - series.mean()) / series.std())
        xs.append(x)
        ys.append(y)
    return np.concatenate(xs), np.concatenate(ys)


def build():
    model = keras.Sequential([keras.Input((WINDOW, 1))])
    for rate in (1, 2, 4):
        model.add(layers.Conv1D(8, 2, dilation_rate=rate, padding="causal", activation="relu"))
    model.add(layers.Flatten())
    model.add(layers.Dense(1))
    return model


def main():
    keras.utils.set_random_seed(4)
    with tempfile.TemporaryDirectory() as folder:
        write_stations(folder)
        # How many files there are does not depend on their order.
        print(len(os.listdir(folder)), "stations")
        x, y = load(folder)
    model = build()
    model.compile(optimizer="adam", loss="mse", metrics=["mae"])
    model.fit(x, y, batch_size=32, epochs=3, shuffle=False, verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
