import hashlib
import re

import keras
import numpy as np
from keras import layers

GOOD = "great lovely fine warm bright kind good quick clean calm".split()
BAD = "awful broken dull cold slow rude bad noisy dirty grim".split()
MAX_LEN = 8
BUCKETS = 16


def reviews(count=160):
    rng = np.random.default_rng(2)
    texts, labels = [], []
    for i in range(count):
        words = GOOD if i % 2 else BAD
        texts.append("The place was " + " and ".join(rng.choice(words, 3)))
        labels.append(i % 2)
    return texts, np.array(labels, dtype="float32")


def tokenize(text):
    return re.findall(r"[a-z]+", text.lower())


def build_vocabulary(texts):
    words = set()
    for text in texts:
        words.update(tokenize(text))
    return {word: i + 1 for i, word in enumerate(words)}


def bucket(word):
    return hash(word) % BUCKETS


def encode(texts, vocabulary):
    tokens = np.zeros((len(texts), MAX_LEN), dtype="int32")
    hashed = np.zeros((len(texts), BUCKETS), dtype="float32")
    for row, text in enumerate(texts):
        for column, word in enumerate(tokenize(text)[:MAX_LEN]):
            tokens[row, column] = vocabulary[word]
            hashed[row, bucket(word)] += 1.0
    return tokens, hashed


def build(vocabulary_size):
    tokens = keras.Input((MAX_LEN,), dtype="int32", name="tokens")
    hashed = keras.Input((BUCKETS,), name="hashed")
    x = layers.Embedding(vocabulary_size + 1, 16)(tokens)
    x = layers.Bidirectional(layers.LSTM(12))(x)
    x = layers.Concatenate()([x, layers.Dense(8, activation="relu")(hashed)])
    return keras.Model([tokens, hashed], layers.Dense(1, activation="sigmoid")(x))


def main():
    keras.utils.set_random_seed(99)
    texts, labels = reviews()
    vocabulary = build_vocabulary(texts)
    tokens, hashed = encode(texts, vocabulary)
    model = build(len(vocabulary))
    model.compile("rmsprop", "binary_crossentropy", metrics=["accuracy"])
    model.fit([tokens, hashed], labels, epochs=2, batch_size=32, validation_split=0.2, verbose=2)
    model.save_weights("final.weights.h5")


if __name__ == "__main__":
    main()
