"""Watches ``model.fit`` of Keras 3, on PyTorch, TensorFlow and JAX.

On PyTorch, gradients and outputs of layers are observed as they appear. A compiled step of TensorFlow or JAX keeps them
inside, so they are computed a second time at observed steps; see :mod:`surefoot.keras.probe`.
"""

from __future__ import annotations

import itertools
import json
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import keras
import numpy

from surefoot.keras.facts import Layer, facts_of
from surefoot.keras.probe import Probe
from surefoot.schedule import ObserveSchedule
from surefoot.session import Guarded, OnFinding, Results, Session, check_options, guarded

_FORMATS = ("float16", "float32", "float64")


class Watch(keras.callbacks.Callback, Guarded, Results):
    """A Keras callback that watches a training and reports problems as they occur.

    Args:
        runs: Directory below which the run is recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.
        every: Interval of observations in steps; by default chosen so that watching takes about 2% of the time.
        on_finding: ``"warn"``, ``"raise"``, ``"ignore"`` or a function that is called with each finding.
        thresholds: Limits of the detectors, as for ``surefoot diagnose --set``.
        writer: A TensorBoard ``SummaryWriter`` that receives findings. Active W&B and MLflow runs receive them too.
        facts: Facts about the data and the task that the model does not tell; see ``docs/record.md``.

    Example::

        model.fit(x, y, epochs=10, callbacks=[surefoot.keras.Watch()])
    """

    def __init__(
        self,
        *,
        runs: str | Path | None = "runs",
        name: str | None = None,
        every: int | None = None,
        on_finding: OnFinding = "warn",
        thresholds: dict[str, object] | None = None,
        writer: Any = None,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        check_options(on_finding, thresholds)
        self._every = every
        self._options: dict[str, Any] = {
            "runs": runs,
            "name": name,
            "on_finding": on_finding,
            "thresholds": thresholds,
            "writer": writer,
        }
        self._facts = dict(facts or {})
        self._session: Session | None = None
        self._schedule = ObserveSchedule(every)
        self._layers: list[Layer] = []
        self._handles: list[Any] = []
        self._optimizer: Any = None
        self._train_function: Any = None
        self._probe: Probe | None = None
        self._observing = False
        self._is_training = False
        self._epoch = 1
        self._means: dict[str, tuple[float, int]] = {}
        self._rate: float | None = None
        self.logs_are_means = True
        """True if the logs of a batch are means since the start of the epoch, as in ``model.fit``."""
        self.observes_inputs = True
        """False if the model cleans its inputs, so that those of a batch say nothing about what it learns from."""

    @property
    def session(self) -> Session | None:
        """The session with the core; ``None`` before the training starts."""
        return self._session

    @guarded
    def finish(self, *, completed: bool = True) -> None:
        """Ends the run; ``model.fit`` does it at its end."""
        self._finish(completed=completed)

    # Methods of a Keras callback

    @guarded
    def on_train_begin(self, logs: Any = None) -> None:
        self._finish(completed=False)
        self._layers, facts = facts_of(self.model, self.params or {})
        facts |= self._facts
        total = (facts.get("epochs") or 0) * (facts.get("steps_per_epoch") or 0)
        self._schedule = ObserveSchedule(self._every, total)
        options: dict[str, Any] = {
            "framework": "keras",
            "libraries": {"keras": keras.__version__},
            "device": keras.backend.backend(),
            "every": self._every or 1,
        }
        self._session = Session.open(facts, **options, **self._options)
        self._session.core.set_parameters(
            [
                (index, int(numpy.prod(it.weight.shape)), _format(it.weight), it.rows)
                for index, it in enumerate(self._layers)
                if it.weight is not None
            ]
        )
        self._attach()

    @guarded
    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._epoch = epoch + 1
        self._means.clear()

    @guarded
    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        if self._session is None:
            return
        self._is_training = True
        self._observing = self._schedule.observes(self._session.steps)
        if self._observing:
            begun = time.perf_counter()
            arrays = self._weights()
            self._session.core.before_update([it.ctypes.data for it in arrays])
            self._schedule.spent(begun)

    @guarded
    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        if self._session is None:
            return
        begun = time.perf_counter()
        self._is_training = False
        if self._observing:
            arrays = self._weights()
            self._session.core.weights([it.ctypes.data for it in arrays])
        logs = dict(logs or {})
        loss = self._of_batch("loss", logs.get("loss"), batch)
        metric = next((name for name in logs if "acc" in name and not name.startswith("val")), None)
        value = self._of_batch(metric, logs.get(metric), batch) if metric else None
        if self._observing or keras.backend.backend() != "jax":
            self._rate = _learning_rate(self.model)
        if loss is not None:
            self._session.step(
                loss,
                epoch=self._epoch,
                metric=None if value is None else min(max(value, 0.0), 1.0),
                learning_rate=self._rate,
            )
        self._schedule.spent(begun)
        if self._schedule.end_step():
            event = {"event": "observe_every", "step": self._session.steps, "every": self._schedule.every}
            self._session.core.event(json.dumps(event))

    @guarded
    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        logs = logs or {}
        if self._session is not None and "val_loss" in logs:
            metric = next((logs[name] for name in logs if name.startswith("val_") and "acc" in name), None)
            number = None if metric is None else float(metric)
            self._session.evaluation(float(logs["val_loss"]), metric=number, epoch=epoch + 1)

    @guarded
    def evaluate(self, loss: float, metric: float | None, epoch: int) -> None:
        """Reports an evaluation that ``model.fit`` did not make."""
        if self._session is not None:
            self._session.evaluation(loss, metric=metric, epoch=epoch)

    @guarded
    def on_train_end(self, logs: Any = None) -> None:
        self._finish(completed=True)

    def switch_off(self, error: Exception) -> None:
        super().switch_off(error)
        self._detach()

    def __del__(self) -> None:
        # After an error, Keras does not call `on_train_end`.
        try:
            self._finish(completed=False)
        except Exception:  # noqa: BLE001 - the interpreter may be shutting down
            pass

    # Observing

    def _of_batch(self, name: str, mean: Any, batch: int) -> float | None:
        """Returns the value of one batch; Keras logs the mean since the start of the epoch."""
        if mean is None:
            return None
        current = float(mean)
        if not self.logs_are_means:
            return current
        before, count = self._means.get(name, (0.0, 0))
        steps = batch + 1
        self._means[name] = (current, steps)
        if steps <= count or not numpy.isfinite(before):
            return current
        return (current * steps - before * count) / (steps - count)

    def _weights(self) -> list[Any]:
        # JAX keeps the state of a training outside the model; access to `model` writes it back.
        self.model  # noqa: B018
        return [_array(it.weight) for it in self._layers if it.weight is not None]

    def _attach(self) -> None:
        optimizer = self.model.optimizer
        if optimizer is None:
            return
        me = weakref.ref(self)
        self._attach_step(me)
        if keras.backend.backend() != "torch":
            if not _has_replicas(self.model):
                self._probe = Probe(self.model, list(dict.fromkeys(it.output for it in self._layers)))
            return
        # The optimizer inside one that scales the loss receives the unscaled gradients.
        self._optimizer = getattr(optimizer, "inner_optimizer", optimizer)
        original = self._optimizer.apply

        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            watch = me()
            if watch is not None:
                begun = time.perf_counter()
                watch._observe_gradients(grads, trainable_variables)
                watch._schedule.spent(begun)
            return original(grads, trainable_variables)

        self._optimizer.__dict__["apply"] = apply
        for index, layer in enumerate(self._layers):
            if layer.output is not None:
                self._handles.append(layer.output.register_forward_hook(_output_hook(me, index)))

    def _attach_step(self, me: weakref.ref[Watch]) -> None:
        """Reads the batch of every observed step."""
        self.model.make_train_function()
        original = self._train_function = self.model.train_function

        def train(*arguments: Any) -> Any:
            watch = me()
            if watch is None or not watch._observing or watch._is_off:
                return original(*arguments)
            *state, batches = arguments
            if isinstance(batches, (list, tuple)):
                watch._observe_batch(batches[0], ())
                return original(*arguments)
            batch = next(batches)
            watch._observe_batch(batch, state[0] if state else ())
            return original(*state, itertools.chain([batch], batches))

        self.model.train_function = train

    def _detach(self) -> None:
        if self._train_function is not None:
            self.model.train_function = self._train_function
            self._train_function = None
        self._probe = None
        if self._optimizer is not None:
            self._optimizer.__dict__.pop("apply", None)
            self._optimizer = None
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    @guarded
    def _observe_batch(self, batch: Any, state: Sequence[Any]) -> None:
        """Observes the inputs of a batch and, with a probe, its gradients and the outputs of layers.

        Inside a step of JAX, ``self.model`` must not be accessed: it would write back the state of the step before.
        """
        if self._session is None:
            return
        begun = time.perf_counter()
        inputs = keras.tree.flatten(keras.utils.unpack_x_y_sample_weight(batch)[0])
        has_symbols = any(it.kind == "embedding" for it in self._layers)
        are_numbers = not has_symbols or "float" in str(inputs[0].dtype)
        if self.observes_inputs and len(inputs) == 1 and are_numbers:
            array = _array(inputs[0])
            self._session.core.input(array.ctypes.data, array.size, str(array.dtype))
        if self._probe is not None:
            gradients, outputs = self._probe.measure(batch, state)
            self._observe_gradients(gradients, self._probe.model.trainable_variables)
            by_layer = dict(zip(self._probe.layers, outputs))
            for index, layer in enumerate(self._layers):
                if by_layer.get(layer.output) is not None:
                    self._observe_output(index, by_layer[layer.output])
        self._schedule.spent(begun)

    @guarded
    def _observe_gradients(self, gradients: Sequence[Any], variables: Sequence[Any] | None) -> None:
        if not self._observing or self._session is None or not all(map(_is_value, gradients)):
            return
        known = variables if variables is not None else self.model.trainable_variables
        by_variable = {id(variable): it for variable, it in zip(known, gradients)}
        arrays: list[Any] = []
        for layer in self._layers:
            if layer.weight is None:
                continue
            gradient = by_variable.get(id(layer.weight))
            array = None if gradient is None else _array(gradient, _format(layer.weight))
            if array is not None and layer.rows:
                # Keras stores a unit as a column, the core expects a row.
                array = numpy.ascontiguousarray(array.reshape(-1, layer.rows).T)
            arrays.append(array)
        self._session.core.gradients([0 if it is None else it.ctypes.data for it in arrays], 1.0)

    @guarded
    def _observe_output(self, index: int, output: Any) -> None:
        if not self._observing or not self._is_training or self._session is None:
            return
        if isinstance(output, (list, tuple)):
            output = output[0]
        # Keras infers shapes with tensors that have no values.
        if str(getattr(output, "device", "")) == "meta":
            return
        array = _array(output)
        self._session.core.output(index, array.ctypes.data, array.size, str(array.dtype))

    def _finish(self, *, completed: bool) -> None:
        self._detach()
        session = self._session
        if session is None or session.summary is not None:
            return
        arrays = [(it.path, _array(it)) for it in self.model.weights if "float" in str(it.dtype)]
        session.finish(
            completed=completed,
            weights=[(name, it.ctypes.data, it.size, str(it.dtype)) for name, it in arrays],
        )


def _output_hook(me: weakref.ref[Watch], index: int) -> Any:
    def observe(module: Any, args: Any, output: Any) -> None:
        watch = me()
        if watch is not None and watch._observing:
            begun = time.perf_counter()
            watch._observe_output(index, output)
            watch._schedule.spent(begun)

    return observe


def _is_value(tensor: Any) -> bool:
    """True for a tensor with values, False inside a graph that is being compiled."""
    if tensor is None or keras.backend.backend() != "torch":
        return True
    import torch

    return not torch.compiler.is_compiling()


def _learning_rate(model: Any) -> float | None:
    rate = getattr(model.optimizer, "learning_rate", None)
    return None if rate is None else float(keras.ops.convert_to_numpy(rate))


def _has_replicas(model: Any) -> bool:
    strategy = getattr(model, "distribute_strategy", None)
    return strategy is not None and int(strategy.num_replicas_in_sync) > 1


def _format(variable: Any) -> str:
    name = str(getattr(variable, "dtype", "float32")).removeprefix("torch.")
    return name if name in _FORMATS else "float32"


def _array(tensor: Any, format: str | None = None) -> Any:
    """Returns the values as a contiguous array, without a copy where possible."""
    if hasattr(tensor, "detach"):
        tensor = tensor.detach()
    name = str(getattr(tensor, "dtype", "")).removeprefix("torch.")
    if name not in _FORMATS:
        tensor = keras.ops.cast(tensor, "float32")
    array = numpy.ascontiguousarray(keras.ops.convert_to_numpy(tensor))
    return array if format is None or str(array.dtype) == format else array.astype(format)
