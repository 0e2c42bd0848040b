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
