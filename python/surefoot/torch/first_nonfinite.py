"""The first layer whose output or gradient is not finite."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Callable, Mapping

import torch
from torch import Tensor, nn

from .discover import unwrap
from .trace import tensors_in
from .unchanged import unchanged


@dataclass(frozen=True)
class NonFinite:
    """A place where a value that is not finite appeared first.

    Attributes:
        layer: Name of the module; ``"input"``, ``"loss"`` or the name of a parameter otherwise.
        phase: ``"input"``, ``"weight"``, ``"forward"``, ``"loss"`` or ``"backward"``.
        nan: Number of values that are NaN.
        inf: Number of infinite values.
    """

    layer: str
    phase: str
    nan: int
    inf: int

    def __str__(self) -> str:
        parts = [f"{count} {name}" for count, name in ((self.nan, "NaN"), (self.inf, "infinite")) if count]
        places = {
            "input": "The input batch has",
            "weight": f"The weight `{self.layer}` has",
            "forward": f"The output of layer `{self.layer}` has",
            "loss": "All outputs are finite, but the loss has",
            "backward": f"In the backward pass, the gradient at layer `{self.layer}` has",
        }
        count = self.nan + self.inf
        return f"{places[self.phase]} {' and '.join(parts)} value{'s' if count != 1 else ''}."


def _check(layer: str, phase: str, value: Any) -> NonFinite | None:
    for tensor in tensors_in(value):
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            return NonFinite(layer, phase, int(tensor.isnan().sum()), int(tensor.isinf().sum()))
    return None


def first_nonfinite(
    model: nn.Module,
    inputs: Any,
    loss: Callable[[Any], Tensor] | None = None,
    keywords: Mapping[str, Any] | None = None,
) -> NonFinite | None:
    """Returns the first layer, forward or backward, whose values are not finite for a batch.

    It runs the model once more, without its compiled code, and changes neither the model nor the
    random generators. A parent module is named only if no module inside it is at fault.

    Args:
        model: The model, also compiled or wrapped for several devices.
        inputs: The batch: a tensor, a tuple of arguments or a dictionary of named arguments.
        loss: Computes the loss of the model's output. Without it, only the forward pass runs.
        keywords: Named arguments besides ``inputs``.

    Returns:
        The place, or None if every value is finite.

    Example:
        >>> import torch
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Softplus(), torch.nn.Linear(2, 1))
        >>> with torch.no_grad():
        ...     _ = model[2].weight.fill_(float("inf"))
        >>> print(first_nonfinite(model, torch.ones(4, 2)))
        The weight `2.weight` has 2 infinite values.
    """
    model = unwrap(model)
    found = _check("input", "input", (inputs, dict(keywords or {})))
    if found is not None:
        return found
    for name, parameter in model.named_parameters():
        found = _check(name, "weight", parameter.detach())
        if found is not None:
            return found
    with unchanged(model), torch.enable_grad():
        return _run(model, inputs, loss, dict(keywords or {}))


def _run(
    model: nn.Module,
    inputs: Any,
    loss: Callable[[Any], Tensor] | None,
    keywords: dict[str, Any],
) -> NonFinite | None:
    found: list[NonFinite] = []
    handles: list[Any] = []

    def forward_hook(name: str) -> Callable[..., None]:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            if found:
                return
            place = _check(name, "forward", output)
            if place is not None:
                found.append(place)
                return
            tensor: Any
            for tensor in tensors_in(output):
                if tensor.requires_grad:
                    tensor.register_hook(gradient_hook(name))

        return hook

    def gradient_hook(name: str) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            place = None if found else _check(name, "backward", gradient)
            if place is not None:
                found.append(place)

        return hook

    def parameter_hook(name: str) -> Callable[[Tensor], None]:
        return gradient_hook(name.rpartition(".")[0] or name)

    try:
        for name, module in model.named_modules():
            handles.append(module.register_forward_hook(forward_hook(name or "model")))
        parameter: Any
        for name, parameter in model.named_parameters():
            if parameter.requires_grad:
                handles.append(parameter.register_hook(parameter_hook(name)))
        if isinstance(inputs, dict):
            output = model(**inputs, **keywords)
        else:
            arguments = inputs if isinstance(inputs, (tuple, list)) else (inputs,)
            output = model(*arguments, **keywords)
        if found or loss is None:
            return found[0] if found else None
        value: Any = loss(output)
        place = _check("loss", "loss", value.detach())
        if place is not None:
            return place
        if value.requires_grad:
            value.backward()
        return found[0] if found else None
    finally:
        for handle in handles:
            handle.remove()
