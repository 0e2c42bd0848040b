"""Training Keras models with repair."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

if importlib.util.find_spec("keras") is None or importlib.util.find_spec("torch") is None:
    pytest.skip("Keras or PyTorch is not installed", allow_module_level=True)

import keras  # noqa: E402
import numpy  # noqa: E402
import torch  # noqa: E402

import surefoot.keras  # noqa: E402
from surefoot.contest import CannotApply  # noqa: E402
from surefoot.keras.actions import Subject  # noqa: E402
from surefoot.keras.advice import Advisor  # noqa: E402

torch.set_num_threads(1)
layers = keras.layers


def circles(count: int = 400) -> tuple[Any, Any]:
    x = numpy.random.default_rng(1).uniform(-1, 1, (count, 2)).astype("float32")
    return x, (numpy.linalg.norm(x, axis=1) < 0.8).astype("float32")


def mlp(depth: int, activation: str, optimizer: Any = None) -> Any:
    keras.utils.set_random_seed(1)
    hidden = [layers.Dense(16, activation) for _ in range(depth)]
    model = keras.Sequential([keras.Input((2,)), *hidden, layers.Dense(1, "sigmoid")])
    model.compile(optimizer or keras.optimizers.SGD(0.1), "binary_crossentropy", metrics=["accuracy"])
    return model


def fit(model: Any, x: Any = None, y: Any = None, **options: Any) -> surefoot.Result:
    if x is None:
        x, y = circles()
    settings = {"epochs": 12, "batch_size": 16, "validation_split": 0.25, "verbose": 0, "runs": None, **options}
    return surefoot.keras.fit(model, x, y, **settings)


def test_a_deep_sigmoid_network_is_repaired_and_can_be_saved(tmp_path: Path) -> None:
    x, y = circles()
    model = mlp(8, "sigmoid")
    result = fit(model)
    assert result.status == "repaired"
    assert result.before is not None and result.after is not None
    assert result.after > result.before + 0.2
    assert [attempt.state for attempt in result.ledger].count("repaired") == 1
    assert result.model is not model
    result.model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    accuracy = ((loaded.predict(x[300:], verbose=0)[:, 0] > 0.5) == (y[300:] > 0.5)).mean()
    assert result.after == pytest.approx(float(accuracy))


def test_a_healthy_model_is_trained_in_place() -> None:
    model = mlp(2, "relu", keras.optimizers.Adam(0.01))
    before = model.get_weights()
    result = fit(model, epochs=25)
    assert (result.status, result.remedies, result.ledger) == ("normal", [], [])
    assert result.model is model
    assert any((a != b).any() for a, b in zip(before, model.get_weights()))
    assert result.after is not None and result.after > 0.85
    assert set(model.history.history) >= {"loss", "accuracy", "val_loss", "val_accuracy"}


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_other_backends_repair_too(backend: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(backend) is None:
        pytest.skip(f"{backend} is not installed")
    script = tmp_path / "train.py"
    script.write_text(
        """
import keras, numpy, surefoot.keras
keras.utils.set_random_seed(1)
x = numpy.random.default_rng(1).normal(size=(300, 4)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("int32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(2, "softmax")])
model.compile(keras.optimizers.SGD(1e-7), "sparse_categorical_crossentropy", metrics=["accuracy"])
result = surefoot.keras.fit(model, x, y, epochs=12, validation_split=0.25, verbose=0, runs=None, attempts=6)
assert result.status == "repaired", result
assert result.after > result.before + 0.1, result
"""
    )
    environment = {
        **os.environ,
        "KERAS_BACKEND": backend,
        "PYTHONPATH": str(Path(surefoot.__file__).parent.parent),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
    }
    done = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


# Actions


def subject_of(model: Any, x: Any, y: Any, **options: Any) -> Subject:
    compiled = dict(model._compile_config.config)
    settings = {"batch_size": 16, "epochs": 3, "steps_per_epoch": 4, **options}
    return Subject(model, compiled, x, y, **settings)


def numbers(count: int = 64, columns: int = 8) -> Any:
    return numpy.random.default_rng(0).normal(size=(count, columns)).astype("float32")


def sequential(*inner: Any, loss: str = "binary_crossentropy", optimizer: Any = None) -> Any:
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.Input((8,)), *inner])
    model.compile(optimizer or keras.optimizers.SGD(0.1), loss)
    return model


def functional() -> Any:
    inputs = keras.Input((6, 6, 1))
    x = layers.ReLU()(layers.Conv2D(4, 3, padding="same", name="conv")(inputs))
    x = layers.Dense(5, "tanh", name="fc")(layers.Flatten()(x))
    model = keras.Model(inputs, layers.Dense(3, "softmax", name="out")(x))
    model.compile("adam", "sparse_categorical_crossentropy")
    return model


class Subclassed(keras.Model):  # type: ignore[misc]
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = layers.Dense(4, "sigmoid"), layers.Dense(1, "sigmoid")

    def call(self, x: Any) -> Any:
        return self.out(self.hidden(x))


ACTIONS: list[dict[str, Any]] = [
    {"action": "add_batch_norm"},
    {"action": "swap_activation", "activation": "selu"},
    {"action": "set_output_activation", "activation": "linear"},
    {"action": "reinitialize"},
    {"action": "clip_gradient", "norm": 1.0},
    {"action": "clip_gradient_values", "limit": 0.5},
    {"action": "set_batch_size", "size": 8},
    {"action": "extend_training", "factor": 2},
    {"action": "set_learning_rate", "rate": 0.25},
    {"action": "set_decay", "decay": "cosine"},
    {"action": "swap_optimizer", "optimizer": "nadam", "learning_rate": 0.5},
    {"action": "normalize_data", "clip_outliers": True},
    {"action": "normalize_data", "clip_outliers": False},
]


@pytest.mark.parametrize("action", ACTIONS, ids=lambda it: "-".join(str(value) for value in it.values()))
def test_an_action_gives_a_model_that_trains_and_can_be_saved(action: dict[str, Any], tmp_path: Path) -> None:
    images, labels = numpy.random.default_rng(0).normal(size=(32, 6, 6, 1)).astype("float32"), numpy.arange(32) % 3
    flat, flags = numbers(), (numbers()[:, 0] > 0).astype("float32")
    parts = (layers.Dense(8), layers.Activation("sigmoid"), layers.Dense(4, "tanh"), layers.Dense(1, "sigmoid"))
    for model, x, y in ((functional(), images, labels), (sequential(*parts), flat, flags)):
        subject = subject_of(model, x, y)
        sentence = subject.apply(action)
        assert sentence.endswith(".")
        subject.compile()
        subject.model.train_on_batch(x[:16], y[:16])
        delivered = subject.delivered()
        delivered.save(tmp_path / "model.keras")
        loaded = keras.models.load_model(tmp_path / "model.keras")
        assert numpy.allclose(loaded.predict(x, verbose=0), delivered.predict(x, verbose=0), atol=1e-6)
        with pytest.raises(CannotApply):
            subject.apply({"action": "unknown"})


def test_other_layers_keep_their_weights() -> None:
    model = functional()
    subject = subject_of(model, numpy.zeros((8, 6, 6, 1), "float32"), numpy.zeros(8))
    subject.apply({"action": "add_batch_norm"})
    kinds = [type(it).__name__ for it in subject.model.layers]
    assert kinds.count("BatchNormalization") == 2
    assert kinds.index("BatchNormalization") < kinds.index("ReLU")
    for name in ("conv", "fc", "out"):
        assert (subject.model.get_layer(name).get_weights()[0] == model.get_layer(name).get_weights()[0]).all()
    subject.apply({"action": "swap_activation", "activation": "elu"})
    assert (subject.model.get_layer("out").get_weights()[0] == model.get_layer("out").get_weights()[0]).all()
    assert (subject.model.get_layer("fc").get_weights()[0] != model.get_layer("fc").get_weights()[0]).any()


def test_residual_connections_lead_around_layers_of_the_same_width() -> None:
    model = sequential(*(layers.Dense(8, "sigmoid") for _ in range(5)), layers.Dense(1, "sigmoid"))
    subject = subject_of(model, numbers(), numpy.zeros(64))
    assert "5 hidden layers" in subject.apply({"action": "add_residual"})
    assert sum(type(it).__name__ == "Add" for it in subject.model.layers) == 5
    with pytest.raises(CannotApply, match="already"):
        subject.apply({"action": "add_residual"})
    small = subject_of(sequential(layers.Dense(4, "relu"), layers.Dense(1, "sigmoid")), numbers(), numpy.zeros(64))
    with pytest.raises(CannotApply, match="too few layers"):
        small.apply({"action": "add_residual"})


def test_several_classes_get_a_unit_each() -> None:
    model = sequential(layers.Dense(4, "relu"), layers.Dense(1, "sigmoid"), loss="mse")
    subject = subject_of(model, numbers(), numpy.arange(64) % 3)
    subject.apply({"action": "set_output_units", "units": 3})
    subject.apply({"action": "set_output_activation", "activation": "softmax"})
    subject.apply({"action": "swap_loss", "loss": "sparse_categorical_crossentropy", "from_logits": False})
    subject.compile()
    assert subject.model.output_shape == (None, 3)
    assert numpy.allclose(subject.model.predict(numbers(), verbose=0).sum(1), 1, atol=1e-5)
    subject.model.train_on_batch(numbers(), numpy.arange(64) % 3)


def test_scaled_targets_are_converted_back() -> None:
    x, y = numbers(), numbers()[:, 0] * 100 + 5000
    subject = subject_of(sequential(layers.Dense(4, "relu"), layers.Dense(1), loss="mse"), x, y)
    subject.apply({"action": "scale_targets"})
    assert abs(float(subject.scaled(y).mean())) < 1e-3
    subject.compile()
    raw = subject.model.predict(x, verbose=0)
    delivered = subject.delivered().predict(x, verbose=0)
    assert numpy.allclose(delivered, raw * y.std() + y.mean(), rtol=1e-4)
    assert numpy.allclose(delivered, subject.unscaled(raw), rtol=1e-4)


def test_missing_values_become_the_mean_of_their_feature() -> None:
    x = numbers()
    x[3, 2] = numpy.nan
    subject = subject_of(sequential(layers.Dense(1, "sigmoid")), x, numpy.zeros(64))
    subject.apply({"action": "impute_missing"})
    filled = x.copy()
    filled[3, 2] = numpy.nanmean(x[:, 2])
    assert numpy.isfinite(subject.model.predict(x, verbose=0)).all()
    assert numpy.allclose(subject.model.predict(x, verbose=0), subject.model.predict(filled, verbose=0), atol=1e-5)


def test_a_subclassed_model_keeps_its_layers() -> None:
    model = Subclassed()
    model(numbers())
    model.compile("sgd", "binary_crossentropy")
    subject = subject_of(model, numbers(), numpy.zeros(64))
    with pytest.raises(CannotApply, match="subclassed"):
        subject.apply({"action": "add_batch_norm"})
    subject.apply({"action": "swap_activation", "activation": "relu"})
    assert model.hidden.activation is keras.activations.relu
    subject.apply({"action": "normalize_data", "clip_outliers": False})
    assert subject.model.predict(numbers(), verbose=0).shape == (64, 1)


# Behaviour of `fit`


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = (fit(mlp(5, "sigmoid"), epochs=6, attempts=2) for _ in range(2))
    assert first.status == second.status
    assert all((a == b).all() for a, b in zip(first.model.get_weights(), second.model.get_weights(), strict=True))


def test_without_repair_the_problem_is_reported() -> None:
    result = fit(mlp(8, "sigmoid"), repair=False, epochs=6)
    assert (result.status, result.ledger) == ("problem", [])
    assert any(finding.severity == "problem" for finding in result.findings)


def test_advice_is_written_for_keras() -> None:
    result = fit(mlp(8, "sigmoid"), repair=False, epochs=6)
    assert all("torch" not in f"{it.message} {it.advice}" and "nn." not in it.advice for it in result.findings)


def test_batches_of_a_dataset_are_read_again_in_each_epoch() -> None:
    class Batches(keras.utils.PyDataset):  # type: ignore[misc]
        def __len__(self) -> int:
            return 10

        def __getitem__(self, index: int) -> Any:
            x, y = circles()
            return x[index * 32 : index * 32 + 32], y[index * 32 : index * 32 + 32]

    result = fit(mlp(2, "relu", keras.optimizers.Adam(0.01)), Batches(), epochs=3, batch_size=None, validation_split=0.0)
    assert result.steps == 30


def test_a_generator_is_refused() -> None:
    with pytest.raises(TypeError, match="only once"):
        fit(mlp(1, "relu"), (it for it in [circles()]), validation_split=0.0)


def test_callbacks_see_the_training_as_given_and_can_stop_it() -> None:
    stop = keras.callbacks.EarlyStopping(monitor="val_loss", patience=1, min_delta=10.0)
    result = fit(mlp(2, "relu", keras.optimizers.Adam(0.01)), callbacks=[stop], epochs=20)
    assert result.steps == 2 * 19
    assert stop.stopped_epoch == 1


def test_a_model_that_is_not_compiled_is_an_error() -> None:
    with pytest.raises(ValueError, match="compile"):
        fit(keras.Sequential([layers.Dense(1)]))


def test_the_result_has_a_diff_of_the_program(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text(
        """import keras
model = keras.Sequential([
    keras.Input((2,)),
    keras.layers.Dense(16, activation="sigmoid"),
    keras.layers.Dense(16, activation="sigmoid"),
    keras.layers.Dense(1, activation="sigmoid"),
])
model.compile(keras.optimizers.SGD(1e-7), loss="mse")
"""
    )
    space: dict[str, Any] = {}
    exec(compile(script.read_text(), script, "exec"), space)
    model = space["model"]
    advisor = Advisor(model, model._compile_config.config, str(script))
    diff = advisor.diff(
        {"action": "swap_activation", "activation": "relu"},
        {"action": "swap_optimizer", "optimizer": "adam", "learning_rate": 0.001},
        {"action": "swap_loss", "loss": "binary_crossentropy", "from_logits": False},
    )
    assert diff is not None
    added = [line[1:].strip() for line in diff.splitlines() if line.startswith("+") and not line.startswith("+++")]
    assert added == [
        'keras.layers.Dense(16, activation="relu", kernel_initializer="he_normal"),',
        'keras.layers.Dense(16, activation="relu", kernel_initializer="he_normal"),',
        'model.compile(keras.optimizers.Adam(learning_rate=0.001), loss="binary_crossentropy")',
    ]
    assert advisor.diff({"action": "scale_targets"}) is None


def test_missing_inputs_are_repaired() -> None:
    random = numpy.random.default_rng(1)
    y = random.integers(0, 2, 400)
    x = (random.normal(size=(400, 4)) + 2 * y[:, None]).astype("float32")
    x[::40, 0] = numpy.nan
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
    model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
    result = surefoot.keras.fit(model, x, y, epochs=8, validation_split=0.25, verbose=0, runs=None)
    assert result.status == "repaired" and result.remedies == ["normalize_data"]
    assert result.after is not None and result.after > 0.9
    assert numpy.isfinite(result.model.predict(x, verbose=0)).all()


def test_class_numbers_with_a_loss_of_columns_are_an_error() -> None:
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(3, "softmax")])
    model.compile("adam", "categorical_crossentropy")
    with pytest.raises(ValueError, match="sparse_categorical_crossentropy"):
        surefoot.keras.fit(model, numpy.zeros((8, 2)), numpy.arange(8) % 3, runs=None, verbose=0)
