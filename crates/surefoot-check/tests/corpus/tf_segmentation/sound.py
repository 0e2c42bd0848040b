import argparse

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers


def blobs(count=48, size=16):
    rng = np.random.default_rng(12)
    yy, xx = np.mgrid[:size, :size]
    images, masks = [], []
    for _ in range(count):
        cy, cx, r = rng.uniform(4, 12), rng.uniform(4, 12), rng.uniform(2, 5)
        mask = ((yy - cy) ** 2 + (xx - cx) ** 2 < r**2).astype("float32")
        images.append(mask + rng.normal(0, 0.4, mask.shape))
        masks.append(mask)
    return np.stack(images).astype("float32")[..., None], np.stack(masks)[..., None]


class Upsample(layers.Layer):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def call(self, x):
        shape = tf.shape(x)
        return tf.image.resize(x, (shape[1] * self.factor, shape[2] * self.factor), method="bilinear")


def block(x, filters):
    x = layers.Conv2D(filters, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    return layers.ReLU()(x)


def unet(size=16):
    inputs = tf.keras.Input((size, size, 1))
    skip = block(inputs, 8)
    x = layers.MaxPooling2D()(skip)
    x = block(x, 16)
    x = Upsample(2)(x)
    x = layers.Concatenate()([x, skip])
    x = block(x, 8)
    return tf.keras.Model(inputs, layers.Conv2D(1, 1)(x))


def dice(y_true, logits):
    p = tf.sigmoid(logits)
    overlap = tf.reduce_sum(p * y_true, axis=(1, 2, 3))
    total = tf.reduce_sum(p + y_true, axis=(1, 2, 3))
    return 1 - tf.reduce_mean((2 * overlap + 1) / (total + 1))


def main(args):
    tf.keras.utils.set_random_seed(args.seed)
    tf.config.experimental.enable_op_determinism()
    tf.config.experimental.enable_tensor_float_32_execution(False)
    for gpu in tf.config.list_physical_devices("GPU"):
        tf.config.experimental.set_memory_growth(gpu, True)

    images, masks = blobs()
    model = unet()
    model.compile(optimizer=tf.keras.optimizers.Adam(args.lr), loss=dice)
    model.fit(images, masks, batch_size=8, epochs=args.epochs, verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=0)
    main(parser.parse_args())
