"""The callback for Keras, on each backend that is installed."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import surefoot

if importlib.util.find_spec("keras") is None:
    pytest.skip("Keras is not installed", allow_module_level=True)

BACKENDS = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(importlib.util.find_spec(name) is None, reason=f"{name} is not installed"),
    )
    for name in ("torch", "tensorflow", "jax")
]

# A process has one backend of Keras, so each backend runs all cases in a process of its own.
CASES = '''
import json, sys, warnings
import keras, numpy
import surefoot.keras
if keras.backend.backend() == "torch":
    import torch
    torch.set_num_threads(1)
layers = keras.layers

random = numpy.random.default_rng(0)
x = random.uniform(-1, 1, (512, 2)).astype("float32")
y = (numpy.linalg.norm(x, axis=1) < 0.8).astype("float32")[:, None]


def sequential(*inner, lr=0.01, loss="binary_crossentropy", optimizer=None):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([layers.Input((2,)), *inner])
    model.compile(optimizer or keras.optimizers.Adam(lr), loss, metrics=["accuracy"])
    return model


def healthy(**options):
    return sequential(
        layers.Dense(16), layers.Activation("relu"), layers.Dense(8, "tanh"), layers.Dense(1, "sigmoid"), **options
    )


def fit(model, watch, epochs=4, **options):
    model.fit(x, y, epochs=epochs, batch_size=32, verbose=0, callbacks=[watch], **options)
    return watch


def problems(watch):
    return [it.problem for it in watch.findings if it.severity == "problem"]


results = {}
watch = surefoot.keras.Watch(runs=None, on_finding="ignore", every=1)
model = healthy()
measured = []
fit(model, watch, validation_split=0.25)
facts = surefoot.keras.facts.facts_of(model, {"epochs": 4, "steps": 12})[1]
results["healthy"] = problems(watch)
results["steps"] = watch.session.steps
results["facts"] = {key: facts.get(key) for key in ("loss", "task", "optimizer", "learning_rate", "classes", "metric")}
results["layers"] = [(it["kind"], it["units"], it["activation"]) for it in facts["layers"]]
results["attached"] = [
    "apply" in model.optimizer.__dict__ or "surefoot" in getattr(model.train_function, "__module__", ""),
    sum(len(getattr(it, "_forward_hooks", ())) for it in model.layers) > 0,
]

deep = [layers.Dense(8, "sigmoid") for _ in range(9)]
broken = sequential(*deep, layers.Dense(1, "sigmoid"), optimizer=keras.optimizers.SGD(0.1))
results["vanishing"] = [it.problem for it in fit(broken, surefoot.keras.Watch(runs=None, on_finding="ignore"), 12).findings]

nan = healthy(loss="mse")
nan.layers[-1].kernel.assign(numpy.full((8, 1), numpy.nan, "float32"))
results["nan"] = problems(fit(nan, surefoot.keras.Watch(runs=None, on_finding="ignore"), 1))

class Recorder(keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        self.last = float(logs["loss"])

losses = []
probe = surefoot.keras.Watch(runs=None, on_finding="ignore", every=1)
original = surefoot.Session.step
surefoot.Session.step = lambda self, loss, **rest: (losses.append(loss), original(self, loss, **rest))[1]
model, recorder = healthy(), Recorder()
model.fit(x, y, epochs=1, batch_size=32, verbose=0, callbacks=[probe, recorder])
surefoot.Session.step = original
# Keras logs the mean over the epoch: the losses of the batches must give it.
results["mean"] = [float(numpy.mean(losses)), recorder.last, float(numpy.std(losses))]

stop = surefoot.keras.Watch(runs=None, on_finding="raise")
nan = healthy(loss="mse")
nan.layers[-1].kernel.assign(numpy.full((8, 1), numpy.nan, "float32"))
try:
    fit(nan, stop, 1)
    results["raised"] = None
except surefoot.TrainingProblem as error:
    results["raised"] = error.finding.problem
    del error
optimizer = nan.optimizer
del stop
import gc
gc.collect()
results["after_error"] = "apply" in optimizer.__dict__

class Core:
    def __getattr__(self, name):
        raise RuntimeError("injected")

class Injected(surefoot.keras.Watch):
    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        self.session.core = Core()

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    fit(healthy(), Injected(runs=None), 1)
results["warnings"] = [str(it.message) for it in caught if "surefoot" in str(it.message)]


def losses(callbacks):
    keras.utils.set_random_seed(1)
    model = sequential(
        layers.Dense(16, "relu"), layers.BatchNormalization(), layers.Dropout(0.5, seed=3), layers.Dense(1, "sigmoid")
    )
    history = model.fit(x, y, epochs=2, batch_size=32, shuffle=False, verbose=0, callbacks=callbacks, validation_data=(x, y))
    return history.history["loss"] + history.history["val_loss"]

quiet = surefoot.keras.Watch(runs=None, on_finding="ignore", every=1)
results["unchanged"] = [losses([quiet]), losses([])]

class Norms(surefoot.keras.Watch):
    def _observe_gradients(self, gradients, variables):
        super()._observe_gradients(gradients, variables)
        self.norm = [float(numpy.linalg.norm(keras.ops.convert_to_numpy(keras.ops.stop_gradient(it)))) for it in gradients]

model, norms = healthy(optimizer=keras.optimizers.SGD(1.0)), Norms(runs=None, on_finding="ignore", every=1)
before = model.get_weights()
model.fit(x, y, epochs=1, batch_size=512, verbose=0, callbacks=[norms])
results["step"] = [norms.norm, [float(numpy.linalg.norm(a - b)) for a, b in zip(before, model.get_weights())]]
seen = []
class CountingWatch(surefoot.keras.Watch):
    def on_epoch_begin(self, epoch, logs=None):
        super().on_epoch_begin(epoch, logs)
        core = self.session.core
        class Told:
            def __getattr__(self, name):
                seen.append(name)
                return getattr(core, name)
        self.session.core = Told()
fit(healthy(), CountingWatch(runs=None, on_finding="ignore", every=1), 1)
results["told"] = sorted(set(seen))
recorded = fit(healthy(), surefoot.keras.Watch(runs=sys.argv[1], on_finding="ignore"), 1)
results["directory"] = str(recorded.directory)
results["page"] = recorded._repr_html_()
print(json.dumps(results))
'''


@pytest.fixture(scope="module", params=BACKENDS)
def results(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    directory = tmp_path_factory.mktemp(request.param)
    script = directory / "cases.py"
    script.write_text(CASES)
    environment = {
        **os.environ,
        "KERAS_BACKEND": request.param,
        "PYTHONPATH": str(Path(surefoot.__file__).parent.parent),
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "CUDA_VISIBLE_DEVICES": "",
    }
    command = [sys.executable, str(script), str(directory / "runs")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return {"backend": request.param, **json.loads(done.stdout.splitlines()[-1])}


def test_a_healthy_training_has_no_problem(results: dict[str, Any]) -> None:
    assert results["healthy"] == []
    assert results["steps"] == 4 * 12


def test_facts_are_those_of_the_compiled_model(results: dict[str, Any]) -> None:
    assert results["facts"] == {
        "loss": "binary_crossentropy",
        "task": "binary",
        "optimizer": "adam",
        "learning_rate": pytest.approx(0.01),
        "classes": 2,
        "metric": "accuracy",
    }
    # The separate activation belongs to the layer before.
    assert results["layers"] == [["dense", 16, "relu"], ["dense", 8, "tanh"], ["dense", 1, "sigmoid"]]


def test_nothing_is_left_attached(results: dict[str, Any]) -> None:
    assert results["attached"] == [False, False]
    assert results["after_error"] is False


def test_a_vanishing_gradient_is_found(results: dict[str, Any]) -> None:
    assert "vanishing_gradient" in results["vanishing"]


def test_nan_is_found(results: dict[str, Any]) -> None:
    assert "non_finite_loss" in results["nan"]
    assert results["raised"] == "non_finite_loss"


def test_the_loss_is_that_of_the_batch(results: dict[str, Any]) -> None:
    mean, logged, deviation = results["mean"]
    assert mean == pytest.approx(logged, rel=1e-4)
    assert deviation > 0.005


def test_inputs_outputs_gradients_and_weights_are_observed(results: dict[str, Any]) -> None:
    assert {"input", "output", "gradients", "before_update", "weights", "step"} <= set(results["told"])


def test_watching_does_not_change_the_training(results: dict[str, Any]) -> None:
    """The probe must leave weights, moving averages and dropout as they are without it."""
    watched, alone = results["unchanged"]
    assert watched == pytest.approx(alone, rel=1e-5)


def test_gradients_are_those_of_the_update(results: dict[str, Any]) -> None:
    """A step of gradient descent with a rate of 1 changes the weights by the gradient."""
    norm, change = results["step"]
    assert norm == pytest.approx(change, rel=1e-4)


def test_a_fault_inside_warns_once_and_does_not_end_the_training(results: dict[str, Any]) -> None:
    assert len(results["warnings"]) == 1
    assert "switched itself off" in results["warnings"][0]


def test_the_run_is_recorded(results: dict[str, Any]) -> None:
    assert (Path(results["directory"]) / "summary.json").is_file()
    assert results["page"].startswith("<iframe")
