"""Facts of a Keras model, under the names that plans, records and findings use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import keras

_KINDS = {
    "Dense": "dense",
    "EinsumDense": "dense",
    "Conv1D": "conv1d",
    "Conv2D": "conv2d",
    "Conv3D": "conv3d",
    "Conv1DTranspose": "conv_transpose1d",
    "Conv2DTranspose": "conv_transpose2d",
    "Conv3DTranspose": "conv_transpose3d",
    "SimpleRNN": "simple_rnn",
    "GRU": "gru",
    "LSTM": "lstm",
    "Embedding": "embedding",
    "BatchNormalization": "batch_norm",
    "LayerNormalization": "layer_norm",
    "GroupNormalization": "group_norm",
    "RMSNormalization": "rms_norm",
    "MultiHeadAttention": "multi_head_attention",
    "PReLU": "activation",
}

_UNITS_LAST = ("dense", "conv1d", "conv2d", "conv3d")

_ACTIVATION_LAYERS = {
    "ReLU": "relu",
    "LeakyReLU": "leaky_relu",
    "ELU": "elu",
    "Softmax": "softmax",
}

_LOSSES = {"mean_squared_error": "mse", "mean_absolute_error": "mae"}

_TASKS = {
    "binary_crossentropy": "binary",
    "categorical_crossentropy": "multi_class",
    "sparse_categorical_crossentropy": "multi_class",
    "mse": "regression",
    "mae": "regression",
    "huber": "regression",
}


@dataclass(eq=False)
class Layer:
    """A layer with weights.

    Attributes:
        name: Name of the layer.
        kind: Kind of layer, as in plans.
        activation: Activation at its end; None if unknown.
        weight: The variable whose statistics are taken: its kernel.
        units: Number of units, if known.
        output: Layer whose output is that of this one, after its activation.
        parameters: Number of trained values.
        layer: The layer itself.
        normalized: True if a normalization lies between it and its activation.
    """

    name: str
    kind: str
    activation: str | None
    weight: Any
    units: int | None
    output: Any
    parameters: int
    layer: Any
    normalized: bool = False

    @property
    def rows(self) -> int:
        """Number of units that the last dimension of the weight has one entry each for; 0 if it has not."""
        is_plain = self.kind in _UNITS_LAST and self.weight is not None
        return self.units or 0 if is_plain and self.weight.shape[-1] == self.units else 0

    def info(self) -> dict[str, Any]:
        """Returns the layer with the keys of ``LayerInfo``."""
        return {
            "name": self.name,
            "kind": self.kind,
            "parameters": self.parameters,
            "units": self.units,
            "activation": self.activation,
            "frozen": self.parameters == 0,
        }


def facts_of(model: Any, params: Mapping[str, Any]) -> tuple[list[Layer], dict[str, Any]]:
    """Returns the layers with weights in the order of their definition, and the facts of a compiled model."""
    layers = layers_of(model)
    facts: dict[str, Any] = {"layers": [layer.info() for layer in layers]}
    facts |= {"epochs": params.get("epochs"), "steps_per_epoch": params.get("steps")}
    loss = getattr(model, "loss", None)
    if isinstance(loss, (list, tuple)) and len(loss) == 1:
        loss = loss[0]
    name = loss_name(loss)
    if name is not None:
        facts |= {"loss": name, "task": _TASKS.get(name), "from_logits": _from_logits(loss)}
        output = layers[-1] if layers else None
        if facts["task"] == "multi_class" and output is not None and output.kind == "dense":
            facts["classes"] = output.units
        elif facts["task"] == "binary":
            facts["classes"] = 2
    optimizer = getattr(model, "optimizer", None)
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)
    if optimizer is not None:
        facts["optimizer"] = type(optimizer).__name__.lower()
        facts["learning_rate"] = float(keras.ops.convert_to_numpy(optimizer.learning_rate))
        momentum = getattr(optimizer, "momentum", None)
        if facts["optimizer"] == "sgd" and isinstance(momentum, (int, float)):
            facts["momentum"] = float(momentum)
    if "acc" in str(getattr(model, "_compile_metrics", None) and model._compile_metrics._user_metrics):
        facts["metric"] = "accuracy"
    return layers, facts


def activation_name(function: Any) -> str | None:
    """Returns the name of an activation function of Keras, or None if it is not one.

    Example:
        >>> activation_name("swish"), activation_name(None), activation_name(len)
        ('silu', 'linear', None)
    """
    if function is None:
        return "linear"
    try:
        known = keras.activations.get(function)
        name = str(keras.activations.serialize(known))
    except (TypeError, ValueError):
        return None
    return name if hasattr(keras.activations, name) else None


def layers_of(model: Any) -> list[Layer]:
    """Returns the layers with weights, in the order of their definition."""
    found: list[Layer] = []
    for layer in _flat(model, set()):
        kind = _KINDS.get(type(layer).__name__)
        after = _activation_of(layer)
        if after is not None and found:
            # A separate activation belongs to the layer before, also behind a normalization.
            target = next((it for it in reversed(found) if not it.kind.endswith("_norm")), None)
            if target is not None and target.activation == "linear":
                target.activation, target.output = after, layer
                target.normalized = found[-1] is not target
        if kind is None and (after is not None or not layer.weights):
            continue
        found.append(_layer(layer, kind or "other"))
    return found


def _layer(layer: Any, kind: str) -> Layer:
    own = list(layer.trainable_variables)
    matrices = [it for it in own if len(it.shape) > 1] or own
    all_weights = [it for it in layer.weights if len(it.shape) > 1] or list(layer.weights)
    weight = next(iter(matrices or all_weights), None)
    activation = activation_name(getattr(layer, "activation", None)) if kind in (*_UNITS_LAST, "simple_rnn") else None
    units = getattr(layer, "units", getattr(layer, "filters", None))
    return Layer(
        name=layer.name,
        kind=kind,
        activation=activation,
        weight=weight,
        units=units if isinstance(units, int) else None,
        output=layer,
        parameters=int(sum(_size(it) for it in own)),
        layer=layer,
    )


def _flat(layer: Any, seen: set[int]) -> Iterator[Any]:
    """The layers inside a model, and inside the models in it."""
    for inner in getattr(layer, "layers", None) or getattr(layer, "_layers", []):
        if id(inner) in seen:
            continue
        seen.add(id(inner))
        is_known = type(inner).__name__ in _KINDS
        children = [] if is_known else getattr(inner, "_layers", [])
        if children or (not is_known and isinstance(inner, keras.Model)):
            yield from _flat(inner, seen)
        else:
            yield inner


def _activation_of(layer: Any) -> str | None:
    name = type(layer).__name__
    if name == "Activation":
        return activation_name(layer.activation)
    return _ACTIVATION_LAYERS.get(name)


def loss_name(loss: Any) -> str | None:
    """Returns the name of a loss as in plans, or None if it is not one loss."""
    if loss is None or isinstance(loss, (dict, list, tuple)):
        return None
    try:
        loss = keras.losses.get(loss)
    except (TypeError, ValueError):
        return None
    name = getattr(loss, "name", None) or getattr(loss, "__name__", None) or type(loss).__name__
    text = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
    return _LOSSES.get(text, text)


def _from_logits(loss: Any) -> bool:
    config = loss.get_config() if hasattr(loss, "get_config") else {}
    return bool(config.get("from_logits", False))


def _size(variable: Any) -> int:
    size = 1
    for length in variable.shape:
        size *= int(length)
    return size
