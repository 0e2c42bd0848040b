"""Tensors of a model that are observed: the weights of each layer and its output."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from .activations import make_module, name_of_module
from .discover import Discovery
from .first_nonfinite import NonFinite
from .layers import CONVOLUTIONS, Layer, is_norm
from .tensors import local


@dataclass(frozen=True, eq=False)
class ObservedLayer:
    """A layer, with the tensors that its statistics are taken of.

    Attributes:
        name: Name of the layer.
        activation: Activation at its end, if known.
        parameters: Its matrices; its vectors, if it has no matrix.
        rows_are_units: True if each row of the first parameter belongs to one unit.
        output_module: Module whose output is that of the layer; None if there is none.
        functional_activation: Activation to apply to that output, if the model calls it as a function.
    """

    name: str
    activation: str | None
    parameters: list[nn.Parameter]
    rows_are_units: bool
    output_module: nn.Module | None
    functional_activation: Callable[[Tensor], Tensor] | None


def observed_layers(discovery: Discovery) -> list[ObservedLayer]:
    """Returns what to observe of the layers of ``discovery.facts()``, in the same order."""
    layers = discovery.layers
    calls = Counter(id(call.module) for call in discovery.activations)
    modules: dict[int, nn.Module] = {}
    for call in discovery.activations:
        # An activation module that several layers share does not tell whose output it returns.
        is_own = name_of_module(call.module) is not None and calls[id(call.module)] == 1
        if call.layer is not None and is_own:
            modules[id(call.layer)] = call.module
    found = []
    for index, layer in enumerate(layers):
        matrices = [parameter for _, parameter in layer.parameters if parameter.dim() > 1]
        parameters = matrices or [parameter for _, parameter in layer.parameters]
        output, function = modules.get(id(layer)), None
        follows_norm = index + 1 < len(layers) and is_norm(layers[index + 1].kind)
        if output is None and next(layer.module.children(), None) is None:
            if layer.activation in (None, "linear"):
                output = layer.module
            elif not follows_norm:
                output, function = layer.module, make_module(layer.activation or "")
        found.append(
            ObservedLayer(
                layer.name, layer.activation, parameters, _rows_are_units(layer, parameters), output, function
            )
        )
    return found


def last_nonfinite_gradient(layers: Sequence[ObservedLayer]) -> NonFinite | None:
    """The last layer whose gradient has NaN or infinities: where the backward pass met them first."""
    for layer in reversed(layers):
        for parameter in layer.parameters:
            gradient = None if parameter.grad is None else local(parameter.grad)
            if gradient is not None and not bool(torch.isfinite(gradient).all()):
                nan, inf = int(gradient.isnan().sum()), int(gradient.isinf().sum())
                return NonFinite(layer.name, "backward", nan, inf)
    return None


def name_unchanged(
    names: Sequence[str], layers: Sequence[ObservedLayer], optimizers: Sequence[torch.optim.Optimizer]
) -> str:
    """A message with the layers that do not change; only those that no optimizer has, if there are such."""
    trained = {id(it) for optimizer in optimizers for group in optimizer.param_groups for it in group["params"]}
    has_none = {it.name: not any(id(parameter) in trained for parameter in it.parameters) for it in layers}
    left_out = [it for it in names if has_none.get(it)] if optimizers else []
    listed = ", ".join(f"`{it}`" for it in left_out or names)
    cut_off = {it.name for it in layers if it.parameters and all(p.grad is None for p in it.parameters)}
    reason = ""
    if left_out:
        reason = " They are not in the optimizer."
    elif all(it in cut_off for it in names):
        reason = " No gradient reaches them: look for `detach()`, `.data` or `torch.no_grad()` in the forward pass."
    return f"The weights of {listed} do not change at all.{reason}"


def _rows_are_units(layer: Layer, parameters: list[nn.Parameter]) -> bool:
    has_rows = isinstance(layer.module, nn.Linear) or (
        layer.kind in CONVOLUTIONS and not layer.kind.startswith("conv_transpose")
    )
    return has_rows and bool(parameters) and parameters[0].shape[0] == layer.units
