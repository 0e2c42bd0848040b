"""Rebuilds Keras models with changed layers and further ones around them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import keras
import numpy

from surefoot.contest import CannotApply


@dataclass
class Edit:
    """Change of one layer.

    Attributes:
        config: Entries of its configuration that change.
        before: Layers that its input passes through first.
        after: Layers that its output passes through.
        shortcut: True if its input is added to the result.
        is_fresh: True if it does not keep its weights.
        instead: A layer of the same name that takes its place.
    """

    config: dict[str, Any] = field(default_factory=dict)
    before: list[Any] = field(default_factory=list)
    after: list[Any] = field(default_factory=list)
    shortcut: bool = False
    is_fresh: bool = False
    instead: Any = None


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Draws from a seed inside, and leaves the generators of Python, NumPy and PyTorch as they were."""
    states = random.getstate(), numpy.random.get_state()
    torch_state = None
    if keras.backend.backend() == "torch":
        import torch

        torch_state = torch.get_rng_state()
    random.seed(seed)
    numpy.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(states[0])
        numpy.random.set_state(states[1])
        if torch_state is not None:
            torch.set_rng_state(torch_state)


def is_graph(model: Any) -> bool:
    """Returns True for a model whose layers are known and can be rearranged: ``Sequential`` or functional."""
    return type(model) is keras.Sequential or _is_functional(model)


def _is_functional(model: Any) -> bool:
    # A class of the user whose constructor takes inputs and outputs is functional too.
    return isinstance(model, keras.Model) and type(model).__name__ in ("Functional", "Model") and hasattr(model, "inputs")


def clone(model: Any) -> Any:
    """Returns a new model with the same layers and new weights, not compiled."""
    if is_graph(model):
        return rebuild(model, {})
    try:
        new = type(model).from_config(model.get_config())
        config = model.get_build_config()
        if config and not new.built:
            new.build_from_config(config)
    except Exception as error:
        reason = str(error).strip().splitlines()
        raise CannotApply(
            f"the class {type(model).__name__} cannot be created anew; give it get_config and from_config "
            f"({reason[0] if reason else type(error).__name__})"
        ) from None
    return new


def rebuild(model: Any, edits: Mapping[str, Edit], *, first: Callable[[Any], list[Any]] | None = None) -> Any:
    """Returns a new model with the edits applied to the layers of these names. Other layers keep their weights.

    Args:
        model: A ``Sequential`` or functional model.
        edits: Changes by name of layer, also of layers in models inside.
        first: Returns the layers that an input passes through first, from its symbolic tensor.
    """
    if not is_graph(model):
        raise CannotApply("the layers of a subclassed model cannot be rearranged")
    new = _sequential(model, edits, first) if type(model) is keras.Sequential else _functional(model, edits, first)
    copy_weights(model, new, {name for name, edit in edits.items() if edit.is_fresh})
    return new


def _sequential(model: Any, edits: Mapping[str, Edit], first: Callable[[Any], list[Any]] | None) -> Any:
    inputs = _input_like(model.inputs[0])
    parts: list[tuple[Any, Edit]] = [(it, Edit()) for it in (first(inputs) if first else [])]
    parts += [(_copy(it, edits), edits.get(it.name, Edit())) for it in model.layers]
    if not any(edit.shortcut for _, edit in parts):
        layers = [layer for part, edit in parts for layer in (*edit.before, part, *edit.after)]
        return keras.Sequential([inputs, *layers], name=model.name)
    x = inputs
    for part, edit in parts:
        x = _apply(part, edit, x)
    return keras.Model(inputs, x, name=model.name)


def _functional(model: Any, edits: Mapping[str, Edit], first: Callable[[Any], list[Any]] | None) -> Any:
    inputs = keras.tree.map_structure(_input_like, model.input)
    cleaned: dict[int, Any] = {}
    for tensor in keras.tree.flatten(inputs):
        x = tensor
        for layer in first(tensor) if first else []:
            x = layer(x)
        cleaned[id(tensor)] = x
    copies: dict[int, Any] = {}

    def copy(layer: Any) -> Any:
        if id(layer) not in copies:
            copies[id(layer)] = _copy(layer, edits)
        return copies[id(layer)]

    def call(layer: Any, *args: Any, **kwargs: Any) -> Any:
        args, kwargs = keras.tree.map_structure(lambda it: cleaned.get(id(it), it), (args, kwargs))
        return _apply(layer, edits.get(layer.name, Edit()), *args, **kwargs)

    compiled, model.compiled = model.compiled, False  # The clone must not be compiled from a configuration.
    try:
        return keras.models.clone_model(model, input_tensors=inputs, clone_function=copy, call_function=call)
    finally:
        model.compiled = compiled


def _input_like(tensor: Any) -> Any:
    return keras.Input(batch_shape=tensor.shape, dtype=tensor.dtype, name=tensor.name)


def _copy(layer: Any, edits: Mapping[str, Edit]) -> Any:
    if is_graph(layer):
        return rebuild(layer, edits)
    if isinstance(layer, keras.Model):
        return clone(layer)
    edit = edits.get(layer.name)
    if edit is not None and edit.instead is not None:
        return edit.instead
    return type(layer).from_config({**layer.get_config(), **(edit.config if edit else {})})


def _apply(layer: Any, edit: Edit, *args: Any, **kwargs: Any) -> Any:
    if not (edit.before or edit.after or edit.shortcut):
        return layer(*args, **kwargs)
    x, *rest = args
    given = x
    for part in edit.before:
        x = part(x)
    x = layer(x, *rest, **kwargs)
    for part in edit.after:
        x = part(x)
    return keras.layers.Add(name=f"{layer.name}_residual")([given, x]) if edit.shortcut else x


def with_output(model: Any, layer: Any) -> Any:
    """Returns a model that passes the output of ``model`` through ``layer``. They share their weights."""
    if type(model) is keras.Sequential:
        return keras.Sequential([_input_like(model.inputs[0]), *model.layers, layer], name=model.name)
    if is_graph(model):
        return keras.Model(model.inputs, layer(model.output), name=model.name)
    raise CannotApply("a layer cannot be added to a subclassed model")


def copy_weights(source: Any, target: Any, fresh: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    """Copies the weights of layers with the same name and shapes, except those of ``fresh``."""
    by_name = {layer.name: layer for layer in leaves(source)}
    for layer in leaves(target):
        old = by_name.get(layer.name)
        if old is None or layer.name in fresh:
            continue
        values = old.get_weights()
        if [it.shape for it in values] == [tuple(it.shape) for it in layer.weights] and values:
            set_weights(layer, values)


def set_weights(layer: Any, values: list[Any]) -> None:
    """Sets the weights of a layer or model, and what its layers derive from them."""
    layer.set_weights(values)
    for inner in leaves(layer):
        # The mean of a `Normalization` layer is computed from its weights.
        if isinstance(inner, keras.layers.Normalization) and inner.input_mean is None and inner.built:
            inner.finalize_state()


def leaves(model: Any) -> Iterator[Any]:
    """The layers inside a model and inside the models in it; a layer alone gives itself."""
    if not isinstance(model, keras.Model):
        yield model
        return
    for layer in model.layers:
        yield from leaves(layer)
