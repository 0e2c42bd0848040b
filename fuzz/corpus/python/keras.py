import keras
import numpy as np


def build(units: int = 4, *layers, **options):
    return keras.Sequential([keras.layers.Dense(units), *layers, keras.layers.Dense(1)])


class Trainer:
    def __init__(self, model=None):
        self.model = model or build(8)

    def fit(self):
        x, y = np.random.rand(32, 3), np.random.rand(32)
        with open("log.txt", "w") as log:
            self.model.compile(optimizer="adam", loss="mse")
            self.model.fit(x, y, epochs=[n for n in range(3)][-1], callbacks=[lambda e: print(e, file=log)])


if __name__ == "__main__":
    Trainer().fit()
