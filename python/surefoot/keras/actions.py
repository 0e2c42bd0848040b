"""Actions of the repair, applied to a Keras training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy

from surefoot.contest import CannotApply
from surefoot.keras.data import columns_of, limits
from surefoot.keras.facts import Layer, activation_name, layers_of, loss_name
from surefoot.keras.layers import CleanInputs
from surefoot.keras.rebuild import Edit, is_graph, rebuild, seeded, with_output

LEAST_RESIDUAL = 4
"""Minimum number of hidden layers for residual connections."""

_DENSE = ("dense", "conv1d", "conv2d", "conv3d")
_RECTIFIERS = frozenset({"relu", "relu6", "leaky_relu", "elu", "celu", "gelu", "silu", "mish", "softplus"})
_OPTIMIZERS = {"adam": keras.optimizers.Adam, "nadam": keras.optimizers.Nadam}
_TITLES = {"relu": "ReLU", "leaky_relu": "leaky ReLU", "selu": "SELU", "elu": "ELU", "gelu": "GELU", "silu": "SiLU"}


@dataclass
class Subject:
    """A training that actions change: model, optimizer, loss and the numbers around them.

    Args:
        model: The model, built but not compiled by this subject.
        compiled: Arguments of ``compile``.
        inputs: Training inputs by which data is judged, as arrays.
        targets: Their targets.
        batch_size: Samples per step; None if the data comes in batches.
        epochs: Number of epochs.
        steps_per_epoch: Steps of an epoch at this batch size.
        callbacks: Callbacks of the user.
        seed: Seed of new weights.
    """

    model: Any
    compiled: dict[str, Any]
    inputs: Any
    targets: Any
    batch_size: int | None
    epochs: int
    steps_per_epoch: int
    callbacks: list[Any] = field(default_factory=list)
    seed: int = 0
    target_scale: tuple[Any, Any] | None = None
    """Mean and standard deviation of the targets, if they are standardized."""

    def apply(self, action: Mapping[str, Any]) -> str:
        """Applies an action and returns a sentence about the change.

        Raises:
            CannotApply: If the action does not fit this training. The message says why.
        """
        arguments = dict(action)
        method = _ACTIONS.get(str(arguments.pop("action", None)))
        if method is None:
            raise CannotApply(f"unknown action {action!r}")
        with seeded(seed_of(self.seed, "build")):
            return method(self, **arguments)

    def compile(self) -> None:
        """Compiles the model."""
        self.model.compile(**self.compiled)

    def delivered(self) -> Any:
        """Returns the trained model. Predictions of standardized targets are converted back."""
        if self.target_scale is None:
            return self.model
        mean, scale = self.target_scale
        layer = keras.layers.Normalization(
            axis=-1 if numpy.ndim(mean) else None, mean=mean, variance=numpy.square(scale), invert=True, name="targets"
        )
        model = with_output(self.model, layer)
        model.compile(**{**self.compiled, "optimizer": again(self.compiled["optimizer"])})
        return model

    def scaled(self, targets: Any) -> Any:
        """Returns the targets that the model is trained with."""
        if self.target_scale is None:
            return targets
        mean, scale = self.target_scale
        return ((targets - mean) / scale).astype("float32")

    def unscaled(self, output: Any) -> Any:
        """Returns the predictions of an output of the model."""
        if self.target_scale is None:
            return output
        mean, scale = self.target_scale
        return output * scale + mean

    # Layers

    def _layers(self) -> list[Layer]:
        return layers_of(self.model)

    def _hidden(self) -> list[Layer]:
        """Layers before the output that have an activation."""
        outputs = _output_names(self.model)
        known = [it for it in self._layers() if it.kind in _DENSE]
        return [
            it
            for it in known
            if it.activation not in (None, "linear") and it.output.name not in outputs and it is not known[-1]
        ]

    def _output(self) -> Layer:
        layers = [it for it in self._layers() if not it.kind.endswith("_norm")]
        if len(_output_names(self.model)) > 1:
            raise CannotApply("the model has several outputs")
        if not layers or layers[-1].kind not in _DENSE:
            raise CannotApply("the output of the model does not come from a dense layer or a convolution")
        return layers[-1]

    def _swap_activation(self, activation: str) -> str:
        layers = [it for it in self._hidden() if it.activation != activation]
        if not layers:
            raise CannotApply("the model has no other hidden activation")
        if not is_graph(self.model):
            return self._swap_in_place(layers, activation)
        edits: dict[str, Edit] = {}
        for it in layers:
            config: dict[str, Any] = self._initializer(it, activation)
            if it.output is it.layer:
                config["activation"] = activation
            edits[it.name] = Edit(config, is_fresh=True)
            if it.output is not it.layer:
                _replace_activation(it.output, activation, edits)
        self.model = rebuild(self.model, edits)
        return _replaces(len(layers), activation)

    def _swap_in_place(self, layers: list[Layer], activation: str) -> str:
        if any(it.output is not it.layer and type(it.output) is not keras.layers.Activation for it in layers):
            raise CannotApply("a layer of a subclassed model cannot be replaced by one of another class")
        for it in layers:
            it.output.activation = keras.activations.get(activation)
            self._draw(it, activation)
        return _replaces(len(layers), activation)

    def _draw(self, layer: Layer, activation: str | None) -> None:
        """Re-initializes the kernel of a built layer, and sets its bias to zero."""
        initializer = _fitting(activation)[0](seed=self._key(layer))
        for variable in layer.layer.trainable_variables:
            is_kernel = len(variable.shape) > 1
            variable.assign(initializer(variable.shape) if is_kernel else keras.ops.zeros(variable.shape))

    def _key(self, layer: Layer) -> int:
        """Seed of the weights of a layer, by its place: Keras counts the layers of a process in their names."""
        names = [it.name for it in self._layers() if not it.kind.endswith("_norm")]
        return seed_of(self.seed, f"layer {names.index(layer.name) if layer.name in names else layer.name}")

    def _initializer(self, layer: Layer, activation: str | None) -> dict[str, Any]:
        initializer = _fitting(activation)[0](seed=self._key(layer))
        return {"kernel_initializer": keras.initializers.serialize(initializer), "bias_initializer": "zeros"}

    def _set_output_activation(self, activation: str) -> str:
        self._change_output(activation)
        return f"Sets the output activation to {_title(activation)}."

    def _change_output(self, activation: str, units: int | None = None) -> None:
        output = self._output()
        if units is None and output.activation == activation:
            raise CannotApply(f"the output activation is {_title(activation)} already")
        if not is_graph(self.model):
            if units is not None or not hasattr(output.output, "activation"):
                raise CannotApply("the output layer of a subclassed model cannot be replaced")
            output.output.activation = keras.activations.get(activation)
            return
        edits = {output.name: Edit()}
        if output.output is output.layer:
            edits[output.name].config["activation"] = activation
        else:
            _replace_activation(output.output, activation, edits)
        if units is not None:
            edits[output.name].config |= {"units": units, **self._initializer(output, activation)}
            edits[output.name].is_fresh = True
        self.model = rebuild(self.model, edits)

    def _set_output_units(self, units: int) -> str:
        output = self._output()
        if output.kind != "dense":
            raise CannotApply("the output layer is not a dense layer")
        if output.units == units:
            raise CannotApply(f"the output has {units} units already")
        self._change_output(output.activation or "linear", units)
        return f"Gives the output layer {units} units instead of {output.units}."

    def _add_batch_norm(self) -> str:
        layers = [it for it in self._hidden() if not it.normalized]
        if not layers:
            raise CannotApply("no hidden layer has an activation that could be normalized")
        edits: dict[str, Edit] = {}
        for it in layers:
            norm = keras.layers.BatchNormalization(axis=_axis(it), name=f"{it.name}_norm")
            if it.output is it.layer:
                activation = keras.layers.Activation(it.layer.activation, name=f"{it.name}_activation")
                edits[it.name] = Edit({"activation": "linear"}, after=[norm, activation])
            else:
                edits[it.name] = Edit(after=[norm])
        self.model = rebuild(self.model, edits)
        return f"Adds batch normalization before {_count(len(layers), 'hidden activation')}."

    def _add_residual(self) -> str:
        if any(type(it).__name__ == "Add" for it in self.model.layers):
            raise CannotApply("the model has residual connections already")
        # The activation of a layer must be its own, because it moves to the other side of the layer.
        fitting = [it for it in self._hidden() if it.output is it.layer and _keeps_shape(it.layer)]
        if len(fitting) < LEAST_RESIDUAL:
            raise CannotApply("the model has too few layers of the same width in a row")
        edits: dict[str, Edit] = {}
        for it in fitting:
            before = [_norm(it), keras.layers.Activation(it.layer.activation, name=f"{it.name}_activation")]
            edits[it.name] = Edit({"activation": "linear"}, before=before, shortcut=True)
        output = self._output()
        if output.kind == "dense" and output.name not in edits:
            edits[output.name] = Edit(before=[_norm(output)])
        self.model = rebuild(self.model, edits)
        self._reinitialize()
        return f"Adds a residual connection around each of {len(fitting)} hidden layers."

    def _reinitialize(self) -> str:
        layers = [it for it in self._layers() if it.parameters]
        if not layers:
            raise CannotApply("the model has no trained weights")
        if not is_graph(self.model):
            for it in layers:
                if it.kind in _DENSE:
                    self._draw(it, it.activation)
            return f"Re-initializes the weights of {_count(len(layers), 'layer')} to fit their activations."
        edits: dict[str, Edit] = {}
        for index, it in enumerate(layers):
            activation = it.activation
            if activation in (None, "linear") and it is not layers[-1]:
                later = (other.activation for other in layers[index:])
                activation = next((name for name in later if name not in (None, "linear")), activation)
            config = self._initializer(it, activation) if it.kind in _DENSE else {}
            edits[it.name] = Edit(config, is_fresh=True)
        self.model = rebuild(self.model, edits)
        return f"Re-initializes the weights of {_count(len(layers), 'layer')} to fit their activations."

    # Data

    def _normalize_data(self, clip_outliers: bool) -> str:
        values = self._numbers()
        if any(isinstance(it.layer, keras.layers.Normalization) for it in self._layers()):
            raise CannotApply("the inputs are standardized already")
        missing = not numpy.isfinite(values).all()
        rows = columns_of(values)
        low, high, mean, variance = [], [], [], []
        for row in rows:
            finite = row[numpy.isfinite(row)]
            bounds = limits(finite) if clip_outliers else (-numpy.inf, numpy.inf)
            finite = numpy.clip(finite, *bounds)
            low.append(float(max(bounds[0], -1e30)))
            high.append(float(min(bounds[1], 1e30)))
            mean.append(float(finite.mean()) if finite.size else 0.0)
            variance.append(float(finite.var()) or 1.0 if finite.size else 1.0)

        def first(tensor: Any) -> list[Any]:
            layers: list[Any] = []
            if missing or clip_outliers:
                layers.append(CleanInputs(mean, low, high, name="clean_inputs"))
            layers.append(keras.layers.Normalization(axis=-1, mean=mean, variance=variance, name="normalize_inputs"))
            return layers

        self._add_first(first)
        verb = "Clips outliers and standardizes" if clip_outliers else "Standardizes"
        return f"{verb} every input feature{', and imputes missing values' if missing else ''}."

    def _impute_missing(self) -> str:
        values = self._numbers()
        if numpy.isfinite(values).all():
            raise CannotApply("no input value is missing")
        mean = []
        for row in columns_of(values):
            finite = row[numpy.isfinite(row)]
            mean.append(float(finite.mean()) if finite.size else 0.0)
        self._add_first(lambda tensor: [CleanInputs(mean, name="impute_missing")])
        return "Replaces missing values by the mean of their feature."

    def _numbers(self) -> Any:
        """Returns the inputs of a model with one input of numbers."""
        if not isinstance(self.inputs, numpy.ndarray):
            raise CannotApply("the model has several inputs")
        if any(it.kind == "embedding" for it in self._layers()) or self.inputs.dtype.kind not in "fiu":
            raise CannotApply("the inputs are symbols, which cannot be scaled")
        if self.inputs.ndim < 2:
            return self.inputs[:, None]
        return self.inputs

    def _add_first(self, first: Callable[[Any], list[Any]]) -> None:
        if is_graph(self.model):
            self.model = rebuild(self.model, {}, first=first)
            return
        inputs = keras.Input(self.inputs.shape[1:])
        x = inputs
        for layer in first(inputs):
            x = layer(x)
        self.model = keras.Model(inputs, self.model(x))

    def _scale_targets(self) -> str:
        targets = self.targets
        if not isinstance(targets, numpy.ndarray) or targets.dtype.kind not in "fiu":
            raise CannotApply("the targets are not numbers")
        if self.target_scale is not None:
            raise CannotApply("the targets are standardized already")
        if not is_graph(self.model):
            raise CannotApply("a layer cannot be added to a subclassed model")
        if len(_output_names(self.model)) > 1:
            raise CannotApply("the model has several outputs")
        if targets.ndim == 2 and targets.shape[1] > 1:
            mean, scale = targets.mean(0), targets.std(0)
            self.target_scale = mean.astype("float32"), numpy.where(scale > 0, scale, 1.0).astype("float32")
        else:
            self.target_scale = float(targets.mean()), float(targets.std()) or 1.0
        return "Standardizes the targets; predictions are converted back."

    # Loss

    def _swap_loss(self, loss: str, from_logits: bool) -> str:
        if loss == "mse":
            new, wanted, name = keras.losses.MeanSquaredError(), None, "the mean squared error"
        elif loss == "binary_crossentropy":
            new, name = keras.losses.BinaryCrossentropy(from_logits=from_logits), "binary cross-entropy"
            wanted = "linear" if from_logits else "sigmoid"
        else:
            shape = numpy.shape(self.targets)
            is_one_hot = len(shape) > 1 and shape[-1] > 1
            cls = keras.losses.CategoricalCrossentropy if is_one_hot else keras.losses.SparseCategoricalCrossentropy
            new, name = cls(from_logits=from_logits), "categorical cross-entropy"
            wanted = "linear" if from_logits else "softmax"
        given = loss_name(self.compiled["loss"])
        if given is None:
            raise CannotApply("the loss is not one of Keras")
        output = self._output()
        shape = numpy.shape(self.targets)
        labels = 1 if len(shape) < 2 else shape[-1]
        if loss == "binary_crossentropy" and (output.units or labels) != labels:
            raise CannotApply(f"the output has {output.units} units for {_count(labels, 'target')}")
        if loss.endswith("categorical_crossentropy") and (output.units or 2) < 2:
            raise CannotApply("the output has one unit")
        sentence = f"Replaces the loss with {name}"
        if wanted is not None and output.activation != wanted:
            self._change_output(wanted)
            sentence += f" and sets the output activation to {_title(wanted)}"
        self.compiled["loss"] = new
        return sentence + "."

    # Optimization

    def _change_optimizer(self, **changes: Any) -> None:
        optimizer = self.compiled["optimizer"]
        if hasattr(optimizer, "inner_optimizer"):
            inner = again(optimizer.inner_optimizer, **changes)
            self.compiled["optimizer"] = type(optimizer)(inner)
        else:
            self.compiled["optimizer"] = again(optimizer, **changes)

    def _clip_gradient(self, norm: float) -> str:
        self._change_optimizer(clipnorm=None, clipvalue=None, global_clipnorm=norm)
        return f"Clips the gradient to a norm of at most {norm:g}."

    def _clip_gradient_values(self, limit: float) -> str:
        self._change_optimizer(clipnorm=None, clipvalue=limit, global_clipnorm=None)
        return f"Clips every value of the gradient to [-{limit:g}, {limit:g}]."

    def _set_batch_size(self, size: int) -> str:
        if self.batch_size is None:
            raise CannotApply("the data comes in batches")
        given, self.batch_size = self.batch_size, size
        return f"Sets the batch size to {size} instead of {given}."

    def _extend_training(self, factor: int) -> str:
        given, self.epochs = self.epochs, self.epochs * factor
        return f"Trains for {self.epochs} epochs instead of {given}."

    def _rate(self) -> float:
        optimizer = getattr(self.compiled["optimizer"], "inner_optimizer", self.compiled["optimizer"])
        return float(keras.ops.convert_to_numpy(optimizer.learning_rate))

    def _drop_schedulers(self) -> None:
        # A callback would undo the change.
        schedulers = (keras.callbacks.LearningRateScheduler, keras.callbacks.ReduceLROnPlateau)
        self.callbacks = [it for it in self.callbacks if not isinstance(it, schedulers)]

    def _set_learning_rate(self, rate: float) -> str:
        given = self._rate()
        self._drop_schedulers()
        self._change_optimizer(learning_rate=rate)
        return f"Sets the learning rate to {rate:g} instead of {given:g}."

    def _set_decay(self, decay: str) -> str:
        rate = self._rate()
        self._drop_schedulers()
        if decay == "constant":
            self._change_optimizer(learning_rate=rate)
            return "Keeps the learning rate constant instead of letting it decay."
        if decay != "cosine":
            raise CannotApply(f"unknown decay `{decay}`")
        steps = max(self.epochs * self.steps_per_epoch, 1)
        self._change_optimizer(learning_rate=keras.optimizers.schedules.CosineDecay(rate, steps))
        return "Decays the learning rate along a cosine over the whole run."

    def _swap_optimizer(self, optimizer: str, learning_rate: float) -> str:
        old = self.compiled["optimizer"]
        inner = getattr(old, "inner_optimizer", old)
        given, name = self._rate(), type(inner).__name__
        kept = {key: getattr(inner, key, None) for key in ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm")}
        kept = {key: value for key, value in kept.items() if value is not None}
        if optimizer in ("sgd", "momentum"):
            new = keras.optimizers.SGD(learning_rate, momentum=0.9, nesterov=True, **kept)
        elif optimizer in _OPTIMIZERS:
            new = _OPTIMIZERS[optimizer](learning_rate, **kept)
        else:
            raise CannotApply(f"unknown optimizer `{optimizer}`")
        self._drop_schedulers()
        self.compiled["optimizer"] = new if inner is old else type(old)(new)
        return (
            f"Trains with {type(new).__name__} at a learning rate of {learning_rate:g} instead of {name} at {given:g}."
        )


_ACTIONS: dict[str, Callable[..., str]] = {
    "add_batch_norm": Subject._add_batch_norm,
    "add_residual": Subject._add_residual,
    "swap_activation": Subject._swap_activation,
    "set_output_units": Subject._set_output_units,
    "set_output_activation": Subject._set_output_activation,
    "reinitialize": Subject._reinitialize,
    "clip_gradient": Subject._clip_gradient,
    "clip_gradient_values": Subject._clip_gradient_values,
    "set_batch_size": Subject._set_batch_size,
    "extend_training": Subject._extend_training,
    "set_learning_rate": Subject._set_learning_rate,
    "set_decay": Subject._set_decay,
    "swap_optimizer": Subject._swap_optimizer,
    "swap_loss": Subject._swap_loss,
    "scale_targets": Subject._scale_targets,
    "impute_missing": Subject._impute_missing,
    "normalize_data": Subject._normalize_data,
}


def seed_of(seed: int, name: str) -> int:
    """Returns the seed of a name, so that adding a layer leaves the draws of others unchanged.

    Example:
        >>> seed_of(0, "dense") == seed_of(0, "dense"), seed_of(0, "a") == seed_of(1, "a")
        (True, False)
    """
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "little") >> 1


def again(optimizer: Any, **changes: Any) -> Any:
    """Returns a new optimizer with the same settings and no state."""
    config = {**optimizer.get_config(), **changes}
    rate = config.get("learning_rate")
    if "learning_rate" not in changes and isinstance(rate, dict):
        config["learning_rate"] = keras.optimizers.schedules.deserialize(rate)
    return type(optimizer).from_config(config)


def _fitting(activation: str | None) -> tuple[Any, str]:
    """The initializer that suits an activation, and its title in sentences."""
    if activation in _RECTIFIERS:
        return keras.initializers.HeNormal, "He normal"
    if activation == "selu":
        return keras.initializers.LecunNormal, "LeCun normal"
    return keras.initializers.GlorotUniform, "Glorot uniform"


def _replaces(count: int, activation: str) -> str:
    whose = "its" if count == 1 else "their"
    return (
        f"Replaces {_count(count, 'hidden activation')} with {_title(activation)} "
        f"and re-initializes {whose} weights ({_fitting(activation)[1]})."
    )


def _replace_activation(layer: Any, activation: str, edits: dict[str, Edit]) -> None:
    """Replaces a separate activation layer, such as ``ReLU``."""
    edits[layer.name] = Edit(instead=keras.layers.Activation(activation, name=layer.name))


def _output_names(model: Any) -> set[str]:
    """Names of the layers that compute the outputs of a model."""
    if not is_graph(model):
        return set()
    names: set[str] = set()
    for tensor in model.outputs:
        history = getattr(tensor, "_keras_history", None)
        operation = getattr(history, "operation", None)
        if operation is not None:
            names.add(operation.name)
    return names


def _keeps_shape(layer: Any) -> bool:
    try:
        return bool(layer.input.shape == layer.output.shape)
    except (AttributeError, ValueError):
        return False


def _axis(layer: Layer) -> int:
    return 1 if getattr(layer.layer, "data_format", None) == "channels_first" else -1


def _norm(layer: Layer) -> Any:
    name = f"{layer.name}_norm"
    if layer.kind == "dense":
        return keras.layers.LayerNormalization(name=name)
    return keras.layers.GroupNormalization(groups=1, axis=_axis(layer), name=name)


def _title(activation: str) -> str:
    return _TITLES.get(activation, activation_name(activation) or activation)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
