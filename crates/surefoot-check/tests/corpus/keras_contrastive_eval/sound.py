import keras
import numpy as np
from keras import layers

EPOCHS, STEPS, BATCH = 3, 10, 24


def signals(count=120, length=20):
    time = np.linspace(0, 6.28, length)
    return np.stack([np.sin(time * (1 + i % 4) + i) for i in range(count)]).astype("float32")


def views(batch):
    noise = np.random.normal(0, 0.1, (2,) + batch.shape).astype("float32")
    scale = np.random.uniform(0.7, 1.3, (2, len(batch), 1)).astype("float32")
    return batch * scale[0] + noise[0], batch * scale[1] + noise[1]


def build_encoder(length=20, width=16):
    inputs = keras.Input((length,))
    x = layers.Dense(32, activation="relu")(inputs)
    x = layers.Dense(width)(x)
    return keras.Model(inputs, layers.UnitNormalization()(x))


def build_siamese(encoder, length=20):
    left, right = keras.Input((length,)), keras.Input((length,))
    similarity = layers.Dot(axes=1)([encoder(left), encoder(right)])
    return keras.Model([left, right], similarity)


def probe(encoder, data, rng):
    """How much nearer neighbours of the same kind are than those of others."""
    chosen = rng.choice(len(data), 32, replace=False)
    z = encoder.predict(data[chosen], verbose=0)
    same = (chosen[:, None] % 4) == (chosen[None, :] % 4)
    similarity = z @ z.T
    return similarity[same].mean() - similarity[~same].mean()


def main():
    keras.utils.set_random_seed(55)
    rng = np.random.default_rng(55)
    data = signals()
    encoder = build_encoder()
    siamese = build_siamese(encoder)
    siamese.compile(optimizer=keras.optimizers.SGD(0.1, momentum=0.9), loss="mse")
    for epoch in range(EPOCHS):
        losses = []
        for step in range(STEPS):
            anchor = data[np.random.randint(0, len(data), BATCH)]
            a, b = views(anchor)
            negatives = np.roll(b, 1, axis=0)
            left, right = np.concatenate([a, a]), np.concatenate([b, negatives])
            target = np.concatenate([np.ones(BATCH), np.zeros(BATCH)])
            losses.append(float(siamese.train_on_batch([left, right], target)))
        print(f"epoch {epoch}: loss {np.mean(losses):.4f}, margin {probe(encoder, data, rng):.4f}")
    encoder.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
