import keras
import numpy as np
from keras import layers, ops

LATENT = 2
EPOCHS = 4


class Sampling(layers.Layer):
    """A point near the mean, at random."""

    def __init__(self, seed=None, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(seed)

    def call(self, inputs):
        mean, log_var = inputs
        epsilon = keras.random.normal(shape=ops.shape(mean), seed=self.seed_generator)
        return mean + ops.exp(0.5 * log_var) * epsilon


class KLDivergence(layers.Layer):
    def __init__(self, weight, **kwargs):
        super().__init__(**kwargs)
        self.weight = weight

    def call(self, inputs):
        mean, log_var = inputs
        kl = -0.5 * ops.sum(1 + log_var - ops.square(mean) - ops.exp(log_var), axis=1)
        self.add_loss(self.weight * ops.mean(kl))
        return inputs


def dense(units, seed, activation=None):
    init = keras.initializers.GlorotUniform(seed=seed)
    return layers.Dense(units, activation=activation, kernel_initializer=init)


def build(seed):
    inputs = keras.Input((36,))
    h = dense(24, seed, "relu")(inputs)
    mean, log_var = dense(LATENT, seed + 1)(h), dense(LATENT, seed + 2)(h)
    mean, log_var = KLDivergence(0.01)([mean, log_var])
    z = Sampling(seed + 3)([mean, log_var])
    h = dense(24, seed + 4, "relu")(z)
    outputs = dense(36, seed + 5, "sigmoid")(h)
    return keras.Model(inputs, outputs)


def squares(count=180):
    rng = np.random.default_rng(14)
    images = np.zeros((count, 6, 6), dtype="float32")
    for image in images:
        row, column = rng.integers(0, 4, 2)
        image[row : row + 3, column : column + 3] = 1.0
    return images.reshape(count, 36)


x = squares()
model = build(seed=50)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="binary_crossentropy")
model.fit(x, x, epochs=EPOCHS, batch_size=30, shuffle=False, verbose=2)
model.save_weights("final.weights.h5")
