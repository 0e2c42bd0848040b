"""Parts that repairs add to a model. They are saved with it and keep the names of its parameters.

A part is a submodule or buffers whose names start with ``surefoot_``, and a hook that applies them. The hooks are
instances of classes at the top of this module, so that models with them can be copied and pickled.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

#: Start of the names of submodules that repairs add.
PREFIX = "surefoot_"
#: Starts of the names of buffers that hold the scale of inputs and targets.
INPUTS, TARGETS = PREFIX + "inputs", PREFIX + "targets"

#: Values farther from the quartiles than this many interquartile ranges are outliers.
_FAR = 3.0
#: Largest number of values per feature that quartiles are computed from.
_MOST_VALUES = 100_000


class FeatureNorm(nn.BatchNorm1d):
    """Batch normalization over the last dimension, whatever the number of dimensions before."""

    def forward(self, input: Tensor) -> Tensor:
        return super().forward(input.reshape(-1, input.shape[-1])).reshape(input.shape)


class StandardizeInputs:
    """Forward pre-hook that imputes missing values, clips outliers and standardizes every feature.

    Its numbers are buffers of the module itself: `nn.Sequential` would run a submodule as a layer.
    """

    def __call__(self, module: Any, args: Any) -> Any:
        if not args or not isinstance(args[0], Tensor) or not args[0].is_floating_point():
            return None
        x, mean = args[0], module.surefoot_inputs_mean
        clipped = torch.clamp(x, module.surefoot_inputs_low, module.surefoot_inputs_high)
        x = torch.where(torch.isfinite(x), clipped, mean)
        return ((x - mean) / module.surefoot_inputs_scale, *args[1:])


def standardize_inputs(model: nn.Module, inputs: Tensor, clip_outliers: bool) -> None:
    """Standardizes the first argument of a model from now on.

    The last dimension holds the features, or the first one after the batch if there are three of
    them and more, as in images.

    Args:
        model: The model.
        inputs: Training inputs.
        clip_outliers: Clips values that are far from the quartiles.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Identity())
        >>> x = torch.tensor([[0.0, 100.0], [2.0, float("nan")], [4.0, 300.0]])
        >>> standardize_inputs(model, x, clip_outliers=False)
        >>> model(x)
        tensor([[-1.2247, -1.0000],
                [ 0.0000,  0.0000],
                [ 1.2247,  1.0000]])
    """
    axis = 1 if inputs.dim() > 3 else inputs.dim() - 1
    features = inputs.shape[axis] if inputs.dim() > 1 else 1
    columns = inputs.detach().double().movedim(axis, 0).reshape(features, -1).cpu()
    rows = [_statistics(column, clip_outliers) for column in columns]
    shape = [features] + [1] * (inputs.dim() - axis - 1)
    for name, values in zip(("mean", "scale", "low", "high"), zip(*rows)):
        buffer = torch.tensor(values, dtype=torch.float32, device=inputs.device).reshape(shape)
        model.register_buffer(f"{INPUTS}_{name}", buffer)
    model.register_forward_pre_hook(StandardizeInputs())


def _statistics(column: Tensor, clip_outliers: bool) -> tuple[float, float, float, float]:
    values = column[torch.isfinite(column)]
    low, high = float("-inf"), float("inf")
    if values.numel() == 0:
        return 0.0, 1.0, low, high
    if clip_outliers:
        low, high = _limits(values)
        values = values.clamp(low, high)
    scale = float(values.std(correction=0))
    return float(values.mean()), scale if scale > 0 else 1.0, low, high


def _limits(values: Tensor) -> tuple[float, float]:
    values = values[:: max(1, values.numel() // _MOST_VALUES)][:_MOST_VALUES]
    first, ground, third = torch.quantile(values, torch.tensor([0.25, 0.5, 0.75], dtype=values.dtype)).tolist()
    if first < third:
        reach = _FAR * (third - first)
        return first - reach, third + reach
    # Half of the values are the same, as in images on a plain ground: the others decide.
    others = values[values != ground]
    if others.numel() == 0:
        return float("-inf"), float("inf")
    first, third = torch.quantile(others, torch.tensor([0.25, 0.75], dtype=values.dtype)).tolist()
    if first >= third:
        return float("-inf"), float("inf")
    reach = _FAR * (third - first)
    return min(first - reach, ground), max(third + reach, ground)


class UnscaleOutput:
    """Forward hook that converts standardized predictions back to the scale of the targets."""

    def __call__(self, module: Any, args: Any, output: Tensor) -> Tensor:
        result: Tensor = output * module.surefoot_targets_scale + module.surefoot_targets_mean
        return result


def unscale_output(model: nn.Module, mean: Tensor, scale: Tensor) -> None:
    """Multiplies the output of a model by `scale` and adds `mean` from now on."""
    model.register_buffer(f"{TARGETS}_mean", mean)
    model.register_buffer(f"{TARGETS}_scale", scale)
    model.register_forward_hook(UnscaleOutput())


class AfterForward:
    """Hook that applies a submodule to the output of a module.

    Args:
        name: Name of the submodule.
    """

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: nn.Module, args: Any, output: Any) -> Any:
        return getattr(module, self.name)(output)


class BeforeForward:
    """Hook that applies a submodule to the first argument of a module."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, module: nn.Module, args: Any) -> Any:
        return (getattr(module, self.name)(args[0]), *args[1:])


def add_after(module: nn.Module, name: str, part: nn.Module) -> None:
    """Applies `part` to the output of `module` from now on."""
    _add(module, name, part)
    module.register_forward_hook(AfterForward(name))


def add_before(module: nn.Module, name: str, part: nn.Module) -> None:
    """Applies `part` to the first argument of `module` from now on."""
    _add(module, name, part)
    module.register_forward_pre_hook(BeforeForward(name))


def _add(module: nn.Module, name: str, part: nn.Module) -> None:
    parameter = next(module.parameters(), None)
    module.add_module(name, part if parameter is None else part.to(parameter.device))
    part.train(module.training)


class _Residual(nn.Module):
    """A layer with a shortcut: ``x + layer(activation(norm(x)))``."""

    surefoot_norm: nn.Module
    surefoot_activation: nn.Module

    def forward(self, input: Tensor) -> Tensor:
        inner: Tensor = super().forward(self.surefoot_activation(self.surefoot_norm(input)))
        return input + inner


class ResidualLinear(_Residual, nn.Linear):
    """A linear layer with a shortcut."""


class ResidualConv1d(_Residual, nn.Conv1d):
    """A convolution over one dimension with a shortcut."""


class ResidualConv2d(_Residual, nn.Conv2d):
    """A convolution over two dimensions with a shortcut."""


_SHORTCUTS: dict[type[nn.Module], type[nn.Module]] = {
    nn.Linear: ResidualLinear,
    nn.Conv1d: ResidualConv1d,
    nn.Conv2d: ResidualConv2d,
}


def can_have_shortcut(module: nn.Module) -> bool:
    """Returns True for the layers that :func:`add_shortcut` knows."""
    return type(module) in _SHORTCUTS


def add_shortcut(module: nn.Module, activation: nn.Module) -> None:
    """Leads a shortcut around a layer and moves its activation before it.

    The activation comes first, so that the sum can have either sign and does not grow with every layer.
    """
    norm: nn.Module
    if isinstance(module, nn.Linear):
        norm = nn.LayerNorm(module.in_features)
    else:
        norm = nn.GroupNorm(1, int(module.in_channels))  # type: ignore[arg-type]
    _add(module, PREFIX + "norm", norm)
    _add(module, PREFIX + "activation", activation)
    module.__class__ = _SHORTCUTS[type(module)]
