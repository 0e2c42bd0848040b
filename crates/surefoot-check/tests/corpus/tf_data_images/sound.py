import numpy as np
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
BATCH = 16
SEED = 77


def synthetic(count=128):
    rng = np.random.default_rng(9)
    images = rng.integers(0, 255, (count, 10, 10, 3)).astype("uint8")
    labels = (images.mean(axis=(1, 2, 3)) > 127).astype("int32")
    return images, labels


def preprocess(image, label):
    image = tf.image.convert_image_dtype(image, tf.float32)
    image = tf.image.per_image_standardization(image)
    return image, label


def pipeline(images, labels, training):
    dataset = tf.data.Dataset.from_tensor_slices((images, labels))
    if training:
        dataset = dataset.shuffle(1000, seed=SEED)
        dataset = dataset.map(preprocess, num_parallel_calls=AUTOTUNE)
    else:
        dataset = dataset.map(preprocess, num_parallel_calls=AUTOTUNE)
    return dataset.batch(BATCH).prefetch(AUTOTUNE)


def conv(filters, seed):
    init = tf.keras.initializers.HeNormal(seed=seed)
    return tf.keras.layers.Conv2D(filters, 3, activation="relu", kernel_initializer=init)


def build():
    init = tf.keras.initializers.GlorotUniform(seed=SEED)
    return tf.keras.Sequential(
        [
            tf.keras.layers.InputLayer((10, 10, 3)),
            conv(8, SEED + 1),
            tf.keras.layers.MaxPooling2D(),
            conv(8, SEED + 2),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(2, kernel_initializer=init),
        ]
    )


def main():
    images, labels = synthetic()
    train = pipeline(images[:96], labels[:96], training=True)
    test = pipeline(images[96:], labels[96:], training=False)
    model = build()
    model.compile(
        optimizer="adam",
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    model.fit(train, validation_data=test, epochs=3, verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
