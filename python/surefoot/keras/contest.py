"""Trains the contestants of a repair with Keras: the training as given and the attempts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import keras
import numpy

from surefoot import contest
from surefoot.contest import CannotApply
from surefoot.keras.actions import Subject, again, seed_of
from surefoot.keras.advice import Advisor
from surefoot.keras.data import Data, accuracy, facts_of_data, r2, task_of
from surefoot.keras.facts import layers_of, loss_name
from surefoot.keras.rebuild import clone, seeded, set_weights
from surefoot.keras.watch import Watch

EVALUATION_BATCH = 256
"""Smallest number of samples that are evaluated at once."""

_TRAINING_CALLBACKS = (
    keras.callbacks.EarlyStopping,
    keras.callbacks.ReduceLROnPlateau,
    keras.callbacks.LearningRateScheduler,
)


class Contestant(contest.Contestant):
    """A training of a Keras model."""

    watch: Watch

    def __init__(self, owner: Trainings, number: int, actions: list[dict[str, Any]]) -> None:
        super().__init__(number, actions)
        self._owner = owner
        self.subject, self.changes = owner.build(actions, is_given=number == 0)
        steps = owner.train_data.steps(self.subject.batch_size)
        self.total_steps = self.subject.epochs * steps
        cleans_inputs = any(it["action"] in ("impute_missing", "normalize_data") for it in actions)
        runs = owner.runs
        if runs is not None and number:
            parent = owner.contestants[0].directory
            runs = parent / "attempts" if parent is not None else None
        self.watch = Watch(
            runs=runs,
            name="attempt" if number else owner.name,
            # A fixed interval, not one chosen by time: the same seed gives the same findings.
            every=max(self.total_steps // contest.OBSERVATIONS, 1),
            on_finding="ignore",
            facts=owner.facts(self.subject) | ({"missing_inputs": 0} if cleans_inputs else {}),
        )
        self.watch.logs_are_means = False
        self.watch.observes_inputs = not cleans_inputs
        self._loop = self._train(steps)
        self._best: list[Any] | None = None

    def step(self) -> bool:
        return next(self._loop, True)

    def free(self) -> None:
        self._loop.close()

    def arrays(self) -> dict[str, Any]:
        model = self.subject.model
        values = self._best if self._best is not None else model.get_weights()
        return {it.path: numpy.ascontiguousarray(value) for it, value in zip(model.weights, values, strict=True)}

    def best_model(self) -> Any:
        if self._best is not None:
            set_weights(self.subject.model, self._best)
        return self.subject.delivered()

    def _train(self, steps: int) -> Generator[bool, None, None]:
        """Yields after every step: True after the last."""
        subject, owner, model = self.subject, self._owner, self.subject.model
        callbacks = keras.callbacks.CallbackList(
            subject.callbacks,
            add_history=True,
            add_progbar=self.number == 0 and owner.verbose != 0,
            verbose=owner.verbose,
            model=model,
            epochs=subject.epochs,
            steps=steps,
        )
        self.watch.set_model(model)
        self.watch.set_params({"epochs": subject.epochs, "steps": steps})
        model.stop_training = False
        callbacks.on_train_begin()
        self.watch.on_train_begin()
        logs: dict[str, float] = {}
        for epoch in range(subject.epochs):
            callbacks.on_epoch_begin(epoch)
            self.watch.on_epoch_begin(epoch)
            means = _Means()
            # The same order in every contestant.
            generator = numpy.random.default_rng([owner.seed, epoch]) if owner.shuffle else None
            for index, (x, y, weight) in enumerate(owner.train_data.batches(subject.batch_size, generator)):
                callbacks.on_train_batch_begin(index)
                self.watch.on_train_batch_begin(index)
                try:
                    seen = model.train_on_batch(
                        x, subject.scaled(y), sample_weight=weight, class_weight=owner.class_weight, return_dict=True
                    )
                except RuntimeError:
                    # On PyTorch, the cross-entropy of NaN is an error.
                    if _is_finite(model.predict_on_batch(x)):
                        raise
                    seen = {"loss": math.nan}
                self.steps += 1
                self.watch.on_train_batch_end(index, seen)
                means.add(seen, len(keras.tree.flatten(x)[0]))
                callbacks.on_train_batch_end(index, means.values())
                if model.stop_training:
                    break
                if index + 1 < steps:
                    yield False
            logs = {**means.values(), **self._evaluate(epoch)}
            callbacks.on_epoch_end(epoch, logs)
            is_last = epoch + 1 == subject.epochs or model.stop_training
            if is_last:
                callbacks.on_train_end(logs)
            yield is_last
            if is_last:
                return

    def _evaluate(self, epoch: int) -> dict[str, float]:
        owner, subject = self._owner, self.subject
        loss, metric = owner.evaluate(subject)
        self.watch.evaluate(loss, metric, epoch + 1)
        if self.is_best(loss, metric):
            self._best = subject.model.get_weights()
        if not owner.has_validation:
            return {}
        logs = owner.user_metrics(subject) if subject.callbacks else {}
        return logs or {"val_loss": loss, **({} if metric is None else {f"val_{owner.metric_name}": metric})}


class _Means:
    """Means of logged values over the samples of an epoch."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._samples = 0

    def add(self, logs: dict[str, Any], samples: int) -> None:
        self._samples += samples
        for name, value in logs.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(value) * samples

    def values(self) -> dict[str, float]:
        return {name: value / max(self._samples, 1) for name, value in self._sums.items()}


class Trainings(contest.Trainings[Contestant]):
    """Trainings of a Keras model."""

    def __init__(
        self,
        model: Any,
        train: Data,
        validation: Data | None,
        *,
        batch_size: int | None,
        epochs: int,
        verbose: Any,
        callbacks: list[Any],
        shuffle: bool,
        class_weight: Any,
        validation_batch_size: int | None,
        metric: Callable[[Any, Any], float] | None,
        seed: int,
        runs: str | Path | None,
        name: str | None,
        script: str | None,
    ) -> None:
        super().__init__()
        self._script = script
        self.seed, self.runs, self.name = seed, runs, name
        self.verbose, self.shuffle, self.class_weight = verbose, shuffle, class_weight
        self.train_data, self._validation = train, validation if validation is not None else train
        self.has_validation = validation is not None
        self._callbacks = callbacks
        self._model = model
        self._epochs = epochs
        self._batch_size = None if train.is_batched else batch_size or 32
        self._validation_batch_size = validation_batch_size
        self._inputs, self._targets = train.sample()
        self._initial = model.get_weights()
        self._compiled = dict(model._compile_config.config)
        self._metric = metric
        loss = loss_name(self._compiled["loss"])
        layers = layers_of(model)
        units = next((it.units for it in reversed(layers) if it.kind == "dense"), None)
        self.task = task_of(self._targets, loss, units)
        if loss == "categorical_crossentropy" and (units or 1) > 1 and _columns(self._targets) == 1:
            raise ValueError(
                "the targets are class numbers, but the loss `categorical_crossentropy` takes one column per class; "
                'use loss="sparse_categorical_crossentropy", or convert them with keras.utils.to_categorical'
            )
        self.metric_name = (
            getattr(metric, "__name__", "metric") if metric else "r2" if self.task == "regression" else "accuracy"
        )
        self.validation_samples = self._validation.count() if validation is not None else 0
        self._missing = train.missing() + (validation.missing() if validation is not None else 0)

    def contestant(self, number: int, actions: list[dict[str, Any]]) -> Contestant:
        return Contestant(self, number, actions)

    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        subject, _ = self._subject(applied)
        return subject.apply(action)

    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        targets = self._targets
        are_shares = isinstance(targets, numpy.ndarray) and targets.ndim > 1 and targets.shape[-1] > 1
        return Advisor(self._model, self._compiled, self._script, are_shares).diff(*actions)

    def build(self, actions: list[dict[str, Any]], *, is_given: bool) -> tuple[Subject, list[str]]:
        """Creates a compiled training with ``actions`` applied, and returns it with a description of each change.

        Args:
            actions: The actions.
            is_given: True for the training as given, which trains the user's model and calls all callbacks.
        """
        subject, changes = self._subject(actions, is_given=is_given)
        if not is_given:
            subject.compile()
        return subject, changes

    def _subject(self, actions: list[dict[str, Any]], *, is_given: bool = False) -> tuple[Subject, list[str]]:
        model, compiled = self._model, dict(self._compiled)
        if not is_given:
            with seeded(seed_of(self.seed, "build")):
                model = clone(model)
            set_weights(model, self._initial)
            optimizer = self._model.optimizer
            compiled["optimizer"] = again(optimizer)
            compiled["metrics"] = _fresh(compiled["metrics"])
            compiled["weighted_metrics"] = _fresh(compiled["weighted_metrics"])
        subject = Subject(
            model,
            compiled,
            self._inputs,
            self._targets,
            batch_size=self._batch_size,
            epochs=self._epochs,
            steps_per_epoch=self.train_data.steps(self._batch_size),
            callbacks=self._callbacks if is_given else self._copies(),
            seed=self.seed,
        )
        return subject, [subject.apply(action) for action in actions]

    def _copies(self) -> list[Any]:
        """Copies of the callbacks that change a training. The others would write the same files again."""
        copies = []
        for callback in self._callbacks:
            if isinstance(callback, _TRAINING_CALLBACKS):
                inner, callback._model = callback._model, None
                try:
                    copies.append(copy.deepcopy(callback))
                finally:
                    callback._model = inner
        return copies

    def facts(self, subject: Subject) -> dict[str, Any]:
        """Returns the facts known before the first step, such as the metric of the best constant prediction."""
        loss = loss_name(subject.compiled["loss"])
        facts = facts_of_data(self._inputs, subject.scaled(self._targets), self.task, loss, self._missing)
        if subject.target_scale is not None:
            facts["chance"] = 0.0
        return {"metric": self.metric_name, "batch_size": subject.batch_size, **facts}

    def evaluate(self, subject: Subject) -> tuple[float, float | None]:
        """Loss and metric on the validation data."""
        size = self._validation_batch_size or max(subject.batch_size or 0, EVALUATION_BATCH)
        outputs, targets, total, samples = [], [], 0.0, 0
        for x, y, weight in self._validation.batches(size):
            output = subject.model.predict_on_batch(x)
            count = len(keras.tree.flatten(x)[0])
            loss = _loss(subject.model, x, subject.scaled(y), output, weight) if _is_finite(output) else math.nan
            total += loss * count
            samples += count
            outputs.append(subject.unscaled(output))
            targets.append(y)
        loss = total / max(samples, 1)
        if self._metric is None and (self.task is None or not isinstance(outputs[0], numpy.ndarray)):
            return loss, None
        output, target = (
            keras.tree.map_structure(lambda *parts: numpy.concatenate(parts), *all_parts) for all_parts in (outputs, targets)
        )
        try:
            value = float(self._measure(output, target))
        except (ValueError, IndexError):  # Shapes that do not belong together.
            if self._metric is not None:
                raise
            return loss, None
        return loss, value if math.isfinite(value) else None

    def _measure(self, output: Any, target: Any) -> float:
        if self._metric is not None:
            return self._metric(output, target)
        return r2(output, target) if self.task == "regression" else accuracy(output, target, self.task)

    def user_metrics(self, subject: Subject) -> dict[str, float]:
        """Returns loss and compiled metrics on the validation data, under the names that callbacks expect."""
        values: dict[str, list[tuple[float, int]]] = {}
        size = self._validation_batch_size or subject.batch_size or 32
        for x, y, weight in self._validation.batches(size):
            logs = subject.model.test_on_batch(x, subject.scaled(y), sample_weight=weight, return_dict=True)
            for name, value in logs.items():
                values.setdefault(f"val_{name}", []).append((float(value), len(keras.tree.flatten(x)[0])))
        return {name: sum(v * n for v, n in all) / sum(n for _, n in all) for name, all in values.items()}


def _loss(model: Any, x: Any, y: Any, output: Any, weight: Any) -> float:
    def compute() -> float:
        tensors = keras.tree.map_structure(
            lambda it: None if it is None else keras.ops.convert_to_tensor(it), (y, output, weight)
        )
        return float(keras.ops.convert_to_numpy(model.compute_loss(x, *tensors[:2], sample_weight=tensors[2], training=False)))

    if keras.backend.backend() != "torch":
        return compute()
    import torch

    with torch.no_grad():
        return compute()


def _is_finite(output: Any) -> bool:
    return all(bool(numpy.isfinite(it).all()) for it in keras.tree.flatten(output))


def _columns(targets: Any) -> int:
    """Number of targets of a sample; 0 if unknown."""
    return 0 if not isinstance(targets, numpy.ndarray) else 1 if targets.ndim < 2 else targets.shape[-1]


def _fresh(metrics: Any) -> Any:
    """Returns metrics without their state."""
    if isinstance(metrics, keras.metrics.Metric):
        return type(metrics).from_config(metrics.get_config())
    if isinstance(metrics, dict):
        return {name: _fresh(it) for name, it in metrics.items()}
    if isinstance(metrics, (list, tuple)):
        return [_fresh(it) for it in metrics]
    return metrics


__all__ = ["CannotApply", "Contestant", "Trainings"]
