#!/usr/bin/env python3
"""Problems found and repaired by ``surefoot.keras.fit`` in generated Keras programs.

Every case is an ordinary training program (a network, data, an optimizer) with at most one injected fault. The healthy
twin of each has no fault. Development seeds are below 1000; report seeds start there. The backend is that of
``KERAS_BACKEND``.

    python eval/torch/keras_zoo.py --seed 1                 all cases
    python eval/torch/keras_zoo.py --seed 1 --only cnn      cases whose name contains a word
    python eval/torch/keras_zoo.py --seed 1 --json          one JSON object a line, the summary last
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

os.environ.setdefault("KERAS_BACKEND", "torch")

import keras  # noqa: E402
import numpy  # noqa: E402
from keras import layers  # noqa: E402

import surefoot.keras  # noqa: E402
from tally import Tally  # noqa: E402

Arrays = tuple[Any, Any]
Generator = numpy.random.Generator


@dataclass(frozen=True)
class Case:
    """A training program."""

    name: str
    model: Callable[[], Any]
    data: Callable[[Generator], Arrays]
    optimizer: Callable[[], Any]
    loss: str
    epochs: int = 12
    batch_size: int = 32
    fault: str = ""
    """Injected fault; empty for a healthy program."""
    causes: tuple[str, ...] = ()
    """Problems that name the fault."""


# Data


def circles(random: Generator) -> Arrays:
    x = random.uniform(-1, 1, (600, 2)).astype("float32")
    return x, (numpy.linalg.norm(x, axis=1) < 0.8).astype("float32")


def blobs(random: Generator) -> Arrays:
    centres = random.normal(0, 1.5, (5, 20))
    y = random.integers(0, 5, 600)
    return (centres[y] + random.normal(size=(600, 20))).astype("float32"), y


def bars(random: Generator) -> Arrays:
    """Images of bars: horizontal, vertical or a cross, with noise."""
    y = random.integers(0, 3, 480)
    x = random.normal(0, 0.3, (480, 12, 12, 1)).astype("float32")
    for image, kind, place in zip(x, y, random.integers(2, 10, 480)):
        if kind != 1:
            image[place] += 1
        if kind != 0:
            image[:, place] += 1
    return x, keras.utils.to_categorical(y, 3)


def sequences(random: Generator) -> Arrays:
    """Noisy sequences whose class is the sign of their mean."""
    y = random.integers(0, 2, 480)
    x = random.normal(size=(480, 12, 4)) + (y * 2 - 1)[:, None, None] * 0.4
    return x.astype("float32"), y.astype("float32")


def tokens(random: Generator) -> Arrays:
    """Token sequences whose class is the most frequent of the first three tokens."""
    x = random.integers(0, 12, (480, 16))
    counts = numpy.stack([(x == token).sum(1) for token in range(3)], 1)
    return x.astype("float32"), counts.argmax(1)


def tags(random: Generator) -> Arrays:
    """Three labels, each of which depends on two features."""
    x = random.normal(size=(600, 6)).astype("float32")
    return x, numpy.stack([x[:, 2 * i] + x[:, 2 * i + 1] > 0 for i in range(3)], 1).astype("float32")


def friedman(random: Generator) -> Arrays:
    x = random.uniform(size=(600, 8))
    y = numpy.sin(3 * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3]
    return ((x - 0.5) / 0.29).astype("float32"), ((y - y.mean()) / y.std()).astype("float32")


def scaled(data: Callable[[Generator], Arrays], factor: float, offset: float) -> Callable[[Generator], Arrays]:
    def make(random: Generator) -> Arrays:
        x, y = data(random)
        return x * numpy.float32(factor) + numpy.float32(offset), y

    return make


def large_targets(random: Generator) -> Arrays:
    x, y = friedman(random)
    return x, y * 400 + 3000


def with_nan(data: Callable[[Generator], Arrays]) -> Callable[[Generator], Arrays]:
    def make(random: Generator) -> Arrays:
        x, y = data(random)
        x[random.uniform(size=len(x)) < 0.02, 0] = numpy.nan
        return x, y

    return make


# Networks


def mlp(
    inputs: int, outputs: int, last: str, depth: int = 2, width: int = 32, activation: str = "relu"
) -> Callable[[], Any]:
    def make() -> Any:
        hidden = [layers.Dense(width, activation) for _ in range(depth)]
        return keras.Sequential([keras.Input((inputs,)), *hidden, layers.Dense(outputs, last)])

    return make


def cnn(activation: str = "relu") -> Callable[[], Any]:
    def make() -> Any:
        inputs = keras.Input((12, 12, 1))
        x = layers.MaxPooling2D()(layers.Conv2D(8, 3, padding="same", activation=activation)(inputs))
        x = layers.MaxPooling2D()(layers.Conv2D(16, 3, padding="same", activation=activation)(x))
        x = layers.Dense(32, activation)(layers.Flatten()(x))
        return keras.Model(inputs, layers.Dense(3, "softmax")(x))

    return make


def lstm() -> Any:
    return keras.Sequential([keras.Input((12, 4)), layers.LSTM(16), layers.Dense(1, "sigmoid")])


def gru() -> Any:
    return keras.Sequential([keras.Input((12, 4)), layers.GRU(16), layers.Dense(1, "sigmoid")])


def conv1d() -> Any:
    hidden = [layers.Conv1D(8, 3, padding="same", activation="relu"), layers.GlobalAveragePooling1D()]
    return keras.Sequential([keras.Input((12, 4)), *hidden, layers.Dense(16, "relu"), layers.Dense(1, "sigmoid")])


def transformer() -> Any:
    inputs = keras.Input((16,))
    x = layers.Embedding(12, 16)(inputs)
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 8)(x, x))
    x = layers.LayerNormalization()(x + layers.Dense(16)(layers.Dense(32, "relu")(x)))
    return keras.Model(inputs, layers.Dense(3, "softmax")(layers.GlobalAveragePooling1D()(x)))


def normalized() -> Any:
    hidden = [it for _ in range(2) for it in (layers.Dense(32), layers.BatchNormalization(), layers.ReLU())]
    return keras.Sequential([keras.Input((20,)), *hidden, layers.Dropout(0.1), layers.Dense(5, "softmax")])


def adam(rate: float = 1e-3) -> Callable[[], Any]:
    return lambda: keras.optimizers.Adam(rate)


def sgd(rate: float) -> Callable[[], Any]:
    return lambda: keras.optimizers.SGD(rate, momentum=0.9)


SPARSE, BINARY, ONE_HOT = "sparse_categorical_crossentropy", "binary_crossentropy", "categorical_crossentropy"

HEALTHY = [
    Case("mlp-circles", mlp(2, 1, "sigmoid"), circles, adam(5e-3), BINARY, epochs=20),
    Case("mlp-circles-tanh", mlp(2, 1, "sigmoid", activation="tanh"), circles, adam(1e-2), BINARY, epochs=20),
    Case("mlp-blobs", mlp(20, 5, "softmax"), blobs, sgd(0.05), SPARSE),
    Case("mlp-blobs-deep", mlp(20, 5, "softmax", depth=5), blobs, adam(2e-3), SPARSE),
    Case("mlp-friedman", mlp(8, 1, "linear"), friedman, adam(5e-3), "mse", epochs=20),
    Case("cnn-bars", cnn(), bars, adam(3e-3), ONE_HOT),
    Case("lstm-sequences", lstm, sequences, adam(1e-2), BINARY, epochs=8),
    Case("gru-sequences", gru, sequences, adam(1e-2), BINARY, epochs=8),
    Case("conv1d-sequences", conv1d, sequences, adam(1e-2), BINARY),
    Case("transformer-tokens", transformer, tokens, adam(3e-3), SPARSE, epochs=20),
    Case("mlp-blobs-norm", normalized, blobs, adam(5e-3), SPARSE),
    Case("mlp-tags", mlp(6, 3, "sigmoid"), tags, adam(5e-3), BINARY),
]


def faulty() -> list[Case]:
    """Healthy programs with a fault each."""
    by_name = {case.name: case for case in HEALTHY}

    def broken(name: str, fault: str, causes: str, **changes: Any) -> Case:
        return replace(by_name[name], name=f"{name}:{fault}", fault=fault, causes=tuple(causes.split()), **changes)

    large = "exploding_gradient non_finite_loss diverging_loss oscillating_loss loss_spike update_ratio collapse dying_relu"
    small = "slow_convergence update_ratio"
    deep = "vanishing_gradient saturated_activation slow_convergence"
    data = "abnormal_data input_scale non_finite_loss exploding_gradient"
    output = "improper_output_activation improper_loss improper_output_units slow_convergence"
    return [
        broken("mlp-circles", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("mlp-blobs", "rate-too-high", large, optimizer=sgd(30.0)),
        broken("cnn-bars", "rate-too-high", large, optimizer=adam(1.0)),
        broken("mlp-blobs", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("cnn-bars", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("lstm-sequences", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-circles", "deep-sigmoid", deep, model=mlp(2, 1, "sigmoid", depth=10, activation="sigmoid")),
        broken("mlp-blobs-deep", "deep-sigmoid", deep, model=mlp(20, 5, "softmax", depth=10, activation="sigmoid")),
        broken("cnn-bars", "sigmoid", deep, model=cnn("sigmoid"), optimizer=sgd(0.01)),
        broken("mlp-blobs", "unscaled", data, data=scaled(blobs, 1000.0, 5000.0)),
        broken("cnn-bars", "unscaled", data, data=scaled(bars, 255.0, 2000.0), optimizer=sgd(0.05)),
        broken("mlp-blobs-deep", "nan-inputs", data, data=with_nan(blobs)),
        broken("mlp-blobs", "one-unit", output, model=mlp(20, 1, "sigmoid"), loss="mse"),
        broken("mlp-circles", "relu-output", output, model=mlp(2, 1, "relu"), loss="mse", optimizer=sgd(0.05)),
        broken("mlp-friedman", "sigmoid-output", output, model=mlp(8, 1, "sigmoid")),
        broken("mlp-friedman", "large-targets", "unscaled_targets slow_convergence " + large, data=large_targets),
        broken("mlp-circles-tanh", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-circles", "softmax-one-unit", output, model=mlp(2, 1, "softmax")),
        broken("gru-sequences", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("gru-sequences", "nan-inputs", data, data=with_nan(sequences)),
        broken("conv1d-sequences", "unscaled", data, data=scaled(sequences, 1000.0, 5000.0), optimizer=sgd(0.05)),
        broken("conv1d-sequences", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("transformer-tokens", "rate-too-high", large, optimizer=adam(1.0)),
        broken("transformer-tokens", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-blobs-norm", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-tags", "softmax", output, model=mlp(6, 3, "softmax")),
        broken("mlp-tags", "unscaled", data, data=scaled(tags, 1000.0, 5000.0), optimizer=sgd(0.05)),
        broken("mlp-tags", "deep-sigmoid", deep, model=mlp(6, 3, "sigmoid", depth=10, activation="sigmoid")),
    ]


def fit(case: Case, seed: int) -> surefoot.Result:
    """Trains and repairs a case."""
    x, y = case.data(numpy.random.default_rng(seed))
    keras.utils.set_random_seed(seed)
    model = case.model()
    model.compile(case.optimizer(), case.loss)
    options = {"epochs": case.epochs, "batch_size": case.batch_size, "validation_split": 0.25, "verbose": 0}
    return surefoot.keras.fit(model, x, y, **options, seed=seed, runs=None)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    tally = Tally(arguments.seed, arguments.json)
    for case in HEALTHY + faulty():
        if arguments.only not in case.name:
            continue
        result = fit(case, arguments.seed)
        problems = [it.problem for it in result.findings if it.severity == "problem"]
        planned = case.epochs * -(-int(0.75 * len(case.data(numpy.random.default_rng(0))[0])) // case.batch_size)
        tally.add(case.name, case.fault, case.causes, problems, result, result.steps / planned)
    tally.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
