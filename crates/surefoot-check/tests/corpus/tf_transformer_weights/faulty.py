import argparse
import os
import tempfile

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

LENGTH, VOCABULARY = 8, 20


def write_records(folder):
    rng = np.random.default_rng(33)
    for shard in range(4):
        with tf.io.TFRecordWriter(os.path.join(folder, f"part-{shard}.tfrecord")) as writer:
            for _ in range(24):
                tokens = rng.integers(1, VOCABULARY, LENGTH)
                feature = {
                    "tokens": tf.train.Feature(int64_list=tf.train.Int64List(value=tokens)),
                    "label": tf.train.Feature(int64_list=tf.train.Int64List(value=[int(tokens[0] < tokens[-1])])),
                }
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())


def parse(record):
    spec = {
        "tokens": tf.io.FixedLenFeature([LENGTH], tf.int64),
        "label": tf.io.FixedLenFeature([], tf.int64),
    }
    example = tf.io.parse_single_example(record, spec)
    return example["tokens"], example["label"]


def read(folder):
    files = tf.data.Dataset.list_files(os.path.join(folder, "*.tfrecord"))
    dataset = files.interleave(
        tf.data.TFRecordDataset,
        cycle_length=4,
        num_parallel_calls=tf.data.AUTOTUNE,
        deterministic=False,
    )
    return dataset.map(parse).batch(16)


class Block(layers.Layer):
    def __init__(self, width, heads, seed):
        super().__init__()
        init = tf.keras.initializers.GlorotUniform(seed=seed)
        self.attention = layers.MultiHeadAttention(heads, width // heads, kernel_initializer=init)
        self.feed = layers.Dense(width, activation="relu", kernel_initializer=init)
        self.norm1, self.norm2 = layers.LayerNormalization(), layers.LayerNormalization()

    def call(self, x):
        x = self.norm1(x + self.attention(x, x))
        return self.norm2(x + self.feed(x))


def build(seed=1):
    uniform = tf.keras.initializers.RandomUniform(seed=seed)
    inputs = tf.keras.Input((LENGTH,), dtype="int64")
    x = layers.Embedding(VOCABULARY, 16, embeddings_initializer=uniform)(inputs)
    x = Block(16, 2, seed + 1)(x)
    x = layers.Flatten()(x)
    outputs = layers.Dense(2, kernel_initializer=tf.keras.initializers.GlorotUniform(seed=seed + 2))(x)
    return tf.keras.Model(inputs, outputs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args()
    model = build()
    model.compile(
        optimizer=tf.keras.optimizers.Adam(1e-3),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    with tempfile.TemporaryDirectory() as folder:
        write_records(folder)
        best = tf.keras.callbacks.ModelCheckpoint("best.weights.h5", monitor="loss", save_best_only=True, save_weights_only=True)
        model.fit(read(folder), epochs=args.epochs, callbacks=[best], verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
