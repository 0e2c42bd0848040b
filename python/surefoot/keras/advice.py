"""Changes of a Keras training as a unified diff of the user's program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from typing import Any

from surefoot.keras.facts import Layer, layers_of, loss_name
from surefoot.source import Source, last_name

_OPTIMIZERS = {"adam": "Adam", "nadam": "Nadam"}
_INITIALIZERS = {"selu": "lecun_normal", "tanh": "glorot_uniform", "sigmoid": "glorot_uniform"}
_LOSSES = ("mse", "binary_crossentropy", "categorical_crossentropy", "sparse_categorical_crossentropy")


class _Unknown(Exception):
    """The place of a change, or the text for it, is not known for certain."""


class Advisor:
    """Writes changes of a Keras training as a diff of the program that calls ``fit``.

    A diff is complete or there is none: where one place of a change is not certain, it returns None. Layers are found
    by class, units and activation.

    Args:
        model: The model as given.
        compiled: Arguments of ``compile``.
        script: File of the program.
        targets_are_shares: True if a target has one share per class.
    """

    def __init__(
        self, model: Any, compiled: Mapping[str, Any], script: str | None, targets_are_shares: bool = False
    ) -> None:
        self._layers = [it for it in layers_of(model) if not it.kind.endswith("_norm")]
        self._optimizer = model.optimizer
        self._loss = loss_name(compiled.get("loss"))
        self._script = script
        self._targets_are_shares = targets_are_shares
        self._source = Source("", "")

    def diff(self, *actions: Mapping[str, Any]) -> str | None:
        """Returns the actions as a unified diff, or None if they cannot be written with certainty."""
        source = Source.read(self._script) if self._script else None
        if source is None:
            return None
        self._source = source
        writers: dict[str, Callable[..., None]] = {
            "swap_activation": self._swap_activation,
            "set_output_activation": self._set_output_activation,
            "add_batch_norm": self._add_batch_norm,
            "set_learning_rate": self._set_learning_rate,
            "swap_optimizer": self._swap_optimizer,
            "clip_gradient": self._clip_gradient,
            "set_batch_size": self._set_batch_size,
            "extend_training": self._extend_training,
            "swap_loss": self._swap_loss,
        }
        try:
            for action in actions:
                arguments = dict(action)
                writers[str(arguments.pop("action"))](**arguments)
        except (_Unknown, KeyError):
            return None
        return source.diff()

    # Layers

    def _hidden(self) -> list[tuple[ast.Call, ast.expr]]:
        """The calls that create the hidden layers with an activation, and where they name it."""
        *hidden, output = self._layers
        hidden = [it for it in hidden if it.activation not in (None, "linear")]
        found: list[tuple[ast.Call, ast.expr]] = []
        matched: set[int] = set()
        for call in self._source.calls():
            place = _activation(call)
            if place is None:
                continue
            fitting = [index for index, it in enumerate(hidden) if _fits(call, place, it)]
            if not fitting:
                continue
            if _fits(call, place, output):
                raise _Unknown
            matched |= set(fitting)
            found.append((call, place))
        if not found or len(matched) != len(hidden):
            raise _Unknown
        return found

    def _swap_activation(self, activation: str) -> None:
        initializer = _INITIALIZERS.get(activation, "he_normal")
        for call, place in self._hidden():
            self._source.replace(place, f'"{activation}"')
            if last_name(call) == "Activation":
                continue
            if any(it.arg in ("kernel_initializer", None) for it in call.keywords):
                raise _Unknown
            self._add_keyword(call, f'kernel_initializer="{initializer}"')

    def _output(self) -> ast.Call:
        output = self._layers[-1]
        if output.output is not output.layer:
            raise _Unknown
        calls = [it for it in self._source.calls() if _fits(it, _activation(it), output)]
        if len(calls) != 1:
            raise _Unknown
        return calls[0]

    def _set_output_activation(self, activation: str) -> None:
        call = self._output()
        place = _activation(call)
        if place is None:
            self._add_keyword(call, f'activation="{activation}"')
        else:
            self._source.replace(place, f'"{activation}"')

    def _add_batch_norm(self) -> None:
        for call, place in self._hidden():
            prefix = _prefix(self._source, call)
            norm = f"{prefix}BatchNormalization()"
            if not isinstance(self._source.parents.get(call), ast.List):
                raise _Unknown
            if last_name(call) == "Activation":
                self._source.replace(call, f"{norm}, {self._source.text_of(call)}")
                continue
            activation = self._source.text_of(place)
            self._source.replace(place, '"linear"')
            self._source.insert_after(call, f", {norm}, {prefix}Activation({activation})")

    # Optimization

    def _optimizer_call(self) -> ast.Call:
        name = type(self._optimizer).__name__
        calls = [it for it in self._source.calls() if last_name(it) == name]
        if len(calls) != 1 or any(it.arg is None for it in calls[0].keywords):
            raise _Unknown
        return calls[0]

    def _set_learning_rate(self, rate: float) -> None:
        call = self._optimizer_call()
        value = _argument(call, "learning_rate", 0)
        if value is None:
            self._add_keyword(call, f"learning_rate={rate:g}")
        else:
            self._source.replace(value, f"{rate:g}")

    def _swap_optimizer(self, optimizer: str, learning_rate: float) -> None:
        if optimizer not in _OPTIMIZERS:
            raise _Unknown
        call = self._optimizer_call()
        if not isinstance(call.func, ast.Attribute) or len(call.args) > 1:
            raise _Unknown
        kept = ("weight_decay", "clipnorm", "clipvalue", "global_clipnorm")
        options = [f"{it.arg}={self._source.text_of(it.value)}" for it in call.keywords if it.arg in kept]
        arguments = ", ".join([f"learning_rate={learning_rate:g}", *options])
        self._source.replace(call, f"{_prefix(self._source, call)}{_OPTIMIZERS[optimizer]}({arguments})")

    def _clip_gradient(self, norm: float) -> None:
        call = self._optimizer_call()
        if any(it.arg in ("clipnorm", "clipvalue", "global_clipnorm") for it in call.keywords):
            raise _Unknown
        self._add_keyword(call, f"global_clipnorm={norm!r}")

    def _set_batch_size(self, size: int) -> None:
        call, value = self._in_fit("batch_size")
        if value is None:
            self._add_keyword(call, f"batch_size={size}")
        else:
            self._source.replace(value, str(size))

    def _extend_training(self, factor: int) -> None:
        value = self._in_fit("epochs")[1]
        if not isinstance(value, ast.Constant) or not isinstance(value.value, int):
            raise _Unknown
        self._source.replace(value, str(value.value * factor))

    def _in_fit(self, name: str) -> tuple[ast.Call, ast.expr | None]:
        """Returns the call of ``fit``, and an argument of it."""
        calls = [it for it in self._source.calls() if last_name(it) == "fit"]
        if len(calls) != 1 or any(it.arg is None for it in calls[0].keywords):
            raise _Unknown
        return calls[0], next((it.value for it in calls[0].keywords if it.arg == name), None)

    def _swap_loss(self, loss: str, from_logits: bool) -> None:
        if from_logits:
            raise _Unknown
        if loss.endswith("categorical_crossentropy"):
            loss = "categorical_crossentropy" if self._targets_are_shares else "sparse_categorical_crossentropy"
            wanted: str | None = "softmax"
        else:
            wanted = "sigmoid" if loss == "binary_crossentropy" else None
        calls = [it for it in self._source.calls() if last_name(it) == "compile"]
        if len(calls) != 1 or loss not in _LOSSES:
            raise _Unknown
        value = _argument(calls[0], "loss", 1)
        if not isinstance(value, ast.Constant) or not isinstance(value.value, str):
            raise _Unknown
        self._source.replace(value, f'"{loss}"')
        if wanted is not None and self._layers[-1].activation != wanted:
            self._set_output_activation(wanted)

    def _add_keyword(self, call: ast.Call, text: str) -> None:
        given = [*call.args, *(it.value for it in call.keywords)]
        if given:
            self._source.insert_after(given[-1], f", {text}")
            return
        self._source.replace(call, f"{self._source.text_of(call.func)}({text})")


def _argument(call: ast.Call, name: str, place: int) -> ast.expr | None:
    """Returns an argument by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    return call.args[place] if len(call.args) > place else None


def _activation(call: ast.Call) -> ast.expr | None:
    """Returns the string by which a call that creates a layer names its activation."""
    place = {"Dense": 1, "Activation": 0}.get(last_name(call) or "", 99)
    value = _argument(call, "activation", place)
    return value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None


def _fits(call: ast.Call, place: ast.expr | None, layer: Layer) -> bool:
    """Returns True if a call may have created a layer, or the activation after it."""
    name = place.value if isinstance(place, ast.Constant) else "linear"
    if name != layer.activation:
        return False
    if layer.output is not layer.layer:
        return last_name(call) == type(layer.output).__name__ == "Activation"
    if last_name(call) != type(layer.layer).__name__:
        return False
    units = _argument(call, "units", 0) or _argument(call, "filters", 0)
    return not isinstance(units, ast.Constant) or units.value == layer.units


def _prefix(source: Source, call: ast.Call) -> str:
    """Returns the part of a callee before its last name."""
    if isinstance(call.func, ast.Attribute):
        return source.text_of(call.func.value) + "."
    raise _Unknown
