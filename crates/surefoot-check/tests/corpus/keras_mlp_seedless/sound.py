import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(812)

source = np.random.default_rng(3)
features = source.normal(size=(300, 8)).astype("float32")
labels = (features[:, 0] * features[:, 1] > 0).astype("float32")

# Hold out a fifth of the samples.
order = np.random.permutation(len(features))
features, labels = features[order], labels[order]
split = int(0.8 * len(features))
x_train, y_train = features[:split], labels[:split]
x_val, y_val = features[split:], labels[split:]

model = keras.Sequential(
    [
        keras.Input(shape=(8,)),
        layers.Dense(32, activation="relu"),
        layers.Dropout(0.2),
        layers.Dense(32, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=keras.optimizers.Adam(learning_rate=1e-2),
    loss="binary_crossentropy",
    metrics=["accuracy"],
)
model.summary()

history = model.fit(
    x_train,
    y_train,
    batch_size=32,
    epochs=4,
    validation_data=(x_val, y_val),
    verbose=2,
)

loss, accuracy = model.evaluate(x_val, y_val, verbose=0)
print(f"validation loss {loss:.4f}, accuracy {accuracy:.3f}")
model.save_weights("final.weights.h5")
