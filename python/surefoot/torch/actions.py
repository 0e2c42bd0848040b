"""Actions of the repair, applied to a PyTorch training."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Callable, Mapping

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize
from torch.optim import Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler

from surefoot.contest import CannotApply

from .activations import make_module, title
from .discover import Discovery, describe_optimizer, unwrap
from .initialize import initialize, initializer_for, rebuild
from .layers import CONVOLUTIONS, WEIGHTED, Layer, is_norm, kind_of
from .losses import BinaryLoss, ClassLoss, NumberLoss, ScaledLoss
from .parts import (
    INPUTS,
    PREFIX,
    TARGETS,
    FeatureNorm,
    add_after,
    add_before,
    add_shortcut,
    can_have_shortcut,
    standardize_inputs,
    unscale_output,
)
from .replace import replace_calls
from .trace import ActivationCall
from .unchanged import unchanged

__all__ = ["CannotApply", "ClipGradient", "Subject"]

#: Hidden layers that residual connections need at least.
_LEAST_RESIDUAL = 4
#: Largest number of samples that a model is observed with.
_MOST_SAMPLES = 32

_NORM = PREFIX + "norm"
_ACTIVATION = PREFIX + "activation"


class ClipGradient:
    """Step pre-hook of an optimizer that scales the gradient of all parameters down to a norm."""

    def __init__(self, norm: float) -> None:
        self.norm = norm

    def __call__(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        # A fused optimizer receives gradients that GradScaler has not unscaled yet.
        scale = getattr(optimizer, "grad_scale", None)
        norm = self.norm if scale is None else self.norm * float(scale)
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        nn.utils.clip_grad_norm_(parameters, norm)


@dataclass
class Subject:
    """A training that actions change: model, optimizer, loss and the numbers around them.

    Args:
        model: The model, neither compiled nor wrapped.
        optimizer: The optimizer of its parameters.
        loss_fn: Computes the loss of an output and a target.
        inputs: Training inputs: a tensor, or a tuple of arguments. The model is observed with the first
            of them, and inputs are standardized by all of them.
        targets: The targets of these inputs.
        batch_size: Samples per step.
        epochs: Number of epochs.
        scheduler: Learning-rate scheduler, stepped once per epoch.
        factory: Creates the model anew. Parameters outside of PyTorch's layers are re-initialized by it.
        seed: Seed of new weights.
        clip_norm: Largest norm of the gradient, if it is clipped.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 3))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=10.0)
        >>> inputs, targets = torch.randn(64, 4), torch.arange(64) % 3
        >>> subject = Subject(model, optimizer, nn.CrossEntropyLoss(), inputs, targets)
        >>> subject.apply({"action": "swap_activation", "activation": "selu"})
        'Replaces 1 hidden activation with SELU and re-initializes its weights (LeCun normal).'
        >>> subject.apply({"action": "set_learning_rate", "rate": 0.01})
        'Sets the learning rate to 0.01 instead of 10.'
    """

    model: nn.Module
    optimizer: Optimizer
    loss_fn: Callable[[Any, Any], Tensor]
    inputs: Any
    targets: Any
    batch_size: int = 32
    epochs: int = 1
    scheduler: LRScheduler | None = None
    factory: Callable[[], nn.Module] | None = None
    seed: int = 0
    clip_norm: float | None = None
    initialized: list[str] = field(default_factory=list)
    """Sentences about the weights that actions have re-initialized."""
    _clip: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.model = unwrap(self.model)
        if self.clip_norm is not None:
            self._set_clip(self.clip_norm)

    def apply(self, action: Mapping[str, Any]) -> str:
        """Applies an action and returns a sentence about the change.

        Args:
            action: Name and arguments, such as ``{"action": "set_batch_size", "size": 64}``.

        Raises:
            CannotApply: If the action does not fit this training. The message says why.
            ValueError: If the action is unknown or has other arguments.
        """
        arguments = dict(action)
        name = arguments.pop("action", None)
        method = _ACTIONS.get(str(name))
        if method is None:
            raise ValueError(f"unknown action `{name}`; available: {', '.join(_ACTIONS)}")
        try:
            return method(self, **arguments)
        except TypeError as error:
            if "argument" in str(error) and method.__name__ in str(error):
                raise ValueError(f"action `{name}`: {error}") from None
            raise

    # Changes of the model.

    def observe(self) -> Discovery:
        """Observes the model with a few samples and leaves no trace."""
        samples = self._samples()
        discovery = Discovery(self.model)
        try:
            with unchanged(self.model), torch.enable_grad():
                self.model(*samples)
        finally:
            discovery.close()
        if not discovery.observed:
            raise CannotApply(f"the model could not be observed: {discovery.error}")
        return discovery

    def _samples(self) -> tuple[Any, ...]:
        if self.inputs is None:
            raise CannotApply("the model is not called with tensors alone")
        inputs = self.inputs if isinstance(self.inputs, (tuple, list)) else (self.inputs,)
        count = min(_MOST_SAMPLES, max(self.batch_size, 2))
        return tuple(x[:count] if isinstance(x, Tensor) and x.dim() else x for x in inputs)

    def _swap_activation(self, activation: str) -> str:
        found = self.observe()
        calls = [c for c in found.activations if c.is_hidden and c.activation != activation]
        if not calls:
            raise CannotApply("the model has no other hidden activation")
        replace_calls(self.model, calls, found.activations, activation)
        layers = list(dict.fromkeys(call.layer for call in calls if call.layer is not None))
        drawn = [layer for layer in layers if self._draw(layer, activation)]
        sentence = f"Replaces {_count(len(calls), 'hidden activation')} with {title(activation)}"
        if drawn:
            _, initializer = initializer_for(activation)
            whose = "its" if len(calls) == 1 else "their"
            sentence += f" and re-initializes {whose} weights ({initializer})"
            names = ", ".join(layer.name for layer in drawn)
            self.initialized.append(f"the weights of {names} are re-initialized ({initializer}, biases 0).")
        return sentence + "."

    def _draw(self, layer: Layer, activation: str | None) -> bool:
        if not initialize(layer, activation, self.seed):
            return False
        for _, parameter in layer.parameters:
            self.optimizer.state.pop(parameter, None)
        return True

    def _set_output_units(self, units: int) -> str:
        found = self.observe()
        layer = found.output_layers[0] if len(found.output_layers) == 1 else None
        module = None if layer is None else layer.module
        if layer is None or not isinstance(module, nn.Linear) or parametrize.is_parametrized(module):
            raise CannotApply("the output of the model does not come from a single linear layer")
        given, module.out_features = module.out_features, units
        for name, old in list(module.named_parameters(recurse=False)):
            new = nn.Parameter(old.detach().new_empty(units, *old.shape[1:]))
            setattr(module, name, new)
            for group in self.optimizer.param_groups:
                group["params"] = [new if it is old else it for it in group["params"]]
            self.optimizer.state.pop(old, None)
        layer.parameters = [(name, getattr(module, name.rpartition(".")[2])) for name, _ in layer.parameters]
        self._draw(layer, None)
        if self._output().shape[-1] != units:
            raise CannotApply("the output of the model does not have the units of its last layer")
        return f"Gives the output layer {units} units instead of {given}."

    def _set_output_activation(self, activation: str) -> str:
        found = self.observe()
        self._change_output(found, activation)
        return f"Sets the output activation to {title(activation)}."

    def _change_output(self, found: Discovery, activation: str) -> None:
        sources = found.output_layers
        calls = [call for call in found.activations if call.is_output]
        if len(sources) != 1 or len(calls) > 1:
            raise CannotApply("the output of the model does not come from a single layer")
        layer = sources[0]
        if calls:
            if calls[0].activation == activation:
                raise CannotApply(f"the output activation is {title(activation)} already")
            replace_calls(self.model, calls, found.activations, activation)
            return
        if activation == "linear":
            raise CannotApply("the output has no activation")
        if layer.uses != {"linear"} or kind_of(layer.module) is None:
            raise CannotApply("the output of the model is not that of a layer")
        part = make_module(activation)
        if part is None:
            raise CannotApply(f"PyTorch has no activation `{activation}`")
        add_after(layer.module, _ACTIVATION, part)

    def _add_batch_norm(self) -> str:
        found = self.observe()
        layers = [call.layer for call in found.activations if call.is_hidden]
        count = 0
        for layer in dict.fromkeys(layers):
            if layer is None or layer.normalized or kind_of(layer.module) not in WEIGHTED:
                continue
            if layer.units is None or hasattr(layer.module, _NORM):
                continue
            norm = _batch_norm(layer, layer.units)
            add_after(layer.module, _NORM, norm)
            self._train_too(list(norm.parameters()))
            count += 1
        if not count:
            raise CannotApply("no hidden layer has an activation that could be normalized")
        return f"Adds batch normalization before {_count(count, 'hidden activation')}."

    def _train_too(self, parameters: list[nn.Parameter]) -> None:
        """Gives new parameters to the optimizer, in its largest group."""
        groups = self.optimizer.param_groups
        main = max(groups, key=lambda group: sum(p.numel() for p in group["params"]))
        main["params"].extend(parameters)

    def _add_residual(self) -> str:
        found = self.observe()
        if found.has_residual:
            raise CannotApply("the model has residual connections already")
        calls = {}
        for call in found.activations:
            if call.is_hidden and call.layer is not None and _fits_shortcut(call, call.layer):
                calls[call.layer] = call
        if len(calls) < _LEAST_RESIDUAL:
            raise CannotApply("the model has too few layers of the same width in a row")
        replace_calls(self.model, list(calls.values()), found.activations, "linear")
        added: list[nn.Parameter] = []
        for layer, call in calls.items():
            activation = make_module(call.activation)
            assert activation is not None  # Modules of these calls exist.
            add_shortcut(layer.module, activation)
            added += [p for n, p in layer.module.named_parameters() if n.startswith(PREFIX)]
        output = found.layers[-1]
        if isinstance(output.module, nn.Linear) and not hasattr(output.module, _NORM):
            add_before(output.module, _NORM, nn.LayerNorm(output.module.in_features))
            added += [p for n, p in output.module.named_parameters() if n.startswith(PREFIX)]
        self._train_too(added)
        self._reinitialize()
        self.initialized.append("the weights of all layers are re-initialized to fit their activations.")
        return f"Adds a residual connection around each of {len(calls)} hidden layers."

    def _reinitialize(self) -> str:
        layers = self.observe().layers
        left: list[Layer] = []
        count = 0
        for i, layer in enumerate(layers):
            own = layer.activation
            if own in (None, "linear") and i + 1 < len(layers):
                rest = (later.activation for later in layers[i:])
                own = next((a for a in rest if a not in (None, "linear")), own)
            if self._draw(layer, own):
                count += 1
            elif any(parameter.requires_grad for _, parameter in layer.parameters):
                left.append(layer)
        names = {name for layer in left for name, _ in layer.parameters}
        rebuilt = 0
        if names and self.factory is not None:
            rebuilt = rebuild(self.model, self.factory, names, self.seed)
        if not count + rebuilt:
            raise CannotApply("the model has no layer that could be re-initialized")
        sentence = "Re-initializes the weights of every layer to fit its activation"
        if rebuilt < len(names):
            verb = "keeps its value" if len(names) == 1 else "keep their values"
            sentence += f"; {_count(len(names) - rebuilt, 'parameter')} outside of layers {verb}"
        return sentence + "."

    def _normalize_data(self, clip_outliers: bool) -> str:
        inputs = self.inputs[0] if isinstance(self.inputs, (tuple, list)) else self.inputs
        if not isinstance(inputs, Tensor) or not inputs.is_floating_point():
            raise CannotApply("the inputs are not numbers")
        if hasattr(self.model, INPUTS + "_mean"):
            raise CannotApply("the inputs are standardized already")
        standardize_inputs(self.model, inputs, clip_outliers)
        verb = "Clips outliers and standardizes" if clip_outliers else "Standardizes"
        missing = "" if bool(torch.isfinite(inputs).all()) else ", and imputes missing values"
        return f"{verb} every input feature{missing}."

    def _scale_targets(self) -> str:
        targets = self.targets
        if not isinstance(targets, Tensor) or not targets.is_floating_point():
            raise CannotApply("the targets are not numbers")
        if hasattr(self.model, TARGETS + "_mean"):
            raise CannotApply("the targets are standardized already")
        self._output()
        columns = targets.detach().double().reshape(targets.shape[0], -1)
        if targets.dim() > 2:  # One scale for all positions.
            columns = columns.reshape(-1, 1)
        scale = columns.std(0, correction=0)
        mean = columns.mean(0).float()
        scale = torch.where(scale > 0, scale, torch.ones_like(scale)).float()
        if targets.dim() != 2:
            mean, scale = mean.reshape(()), scale.reshape(())
        unscale_output(self.model, mean, scale)
        self.loss_fn = ScaledLoss(self.loss_fn, mean, scale)
        return "Standardizes the targets; predictions are converted back."

    # Changes of the loss.

    def _swap_loss(self, loss: str, from_logits: bool) -> str:
        new: nn.Module
        if loss in ("mse", "mean_squared_error"):
            new, wanted, name = NumberLoss(), None, "the mean squared error"
        elif loss == "binary_crossentropy":
            new, name = BinaryLoss(from_logits), "binary cross-entropy"
            wanted = "linear" if from_logits else "sigmoid"
        elif loss in ("categorical_crossentropy", "sparse_categorical_crossentropy"):
            new, name = ClassLoss(from_logits), "categorical cross-entropy"
            wanted = "linear" if from_logits else "softmax"
        else:
            raise CannotApply(f"PyTorch has no loss `{loss}`")
        found = self.observe()
        output = next((x for x in reversed(found.layers) if not is_norm(x.kind)), None)
        given = output.activation if output is not None else None
        change = wanted is not None and given is not None and given != wanted
        self._check_loss(new)
        sentence = f"Replaces the loss with {name}"
        if change and wanted is not None:
            self._change_output(found, wanted)
            sentence += f" and sets the output activation to {title(wanted)}"
        self.loss_fn = new
        return sentence + "."

    def _check_loss(self, loss: nn.Module) -> None:
        """Raises if the loss cannot be computed from the outputs and targets."""
        if self.targets is None:
            raise CannotApply("the targets are unknown")
        # Probabilities and logits have the same shape.
        shares = torch.full_like(self._output(), 0.5)
        try:
            loss(shares, self.targets[: shares.shape[0]])
        except (RuntimeError, IndexError, ValueError) as error:
            reason = str(error).splitlines()[0]
            raise CannotApply(f"the loss does not fit the targets: {reason}") from None

    def _output(self) -> Tensor:
        """Returns the output of the model for a few samples."""
        with unchanged(self.model), torch.no_grad():
            output = self.model(*self._samples())
        if not isinstance(output, Tensor):
            raise CannotApply("the model returns more than one tensor")
        return output

    # Changes of the optimization.

    def _clip_gradient(self, norm: float) -> str:
        self._set_clip(norm)
        return f"Clips the gradient to a norm of at most {norm:g}."

    def _set_clip(self, norm: float) -> None:
        if self._clip is not None:
            self._clip.remove()
        self.clip_norm = norm
        self._clip = self.optimizer.register_step_pre_hook(ClipGradient(norm))

    def _set_batch_size(self, size: int) -> str:
        given, self.batch_size = self.batch_size, size
        return f"Sets the batch size to {size} instead of {given}."

    def _extend_training(self, factor: int) -> str:
        given, self.epochs = self.epochs, self.epochs * factor
        if isinstance(self.scheduler, CosineAnnealingLR):
            self.scheduler.T_max = self.epochs
        return f"Trains for {self.epochs} epochs instead of {given}."

    def _set_learning_rate(self, rate: float) -> str:
        given = describe_optimizer(self.optimizer)["learning_rate"]
        if not given:
            raise CannotApply("the optimizer has no learning rate")
        factor = rate / given
        for group in self.optimizer.param_groups:
            for key in ("lr", "initial_lr"):
                if key in group:
                    group[key] = _times(group[key], factor)
        if self.scheduler is not None and hasattr(self.scheduler, "base_lrs"):
            self.scheduler.base_lrs = [_times(base, factor) for base in self.scheduler.base_lrs]
        return f"Sets the learning rate to {rate:g} instead of {given:g}."

    def _set_decay(self, decay: str) -> str:
        if decay not in ("constant", "cosine"):
            raise CannotApply(f"unknown decay `{decay}`")
        self._drop_scheduler()
        if decay == "constant":
            return "Keeps the learning rate constant instead of letting it decay."
        self.scheduler = CosineAnnealingLR(self.optimizer, T_max=self.epochs)
        return "Decays the learning rate along a cosine over the whole run."

    def _drop_scheduler(self) -> None:
        for group in self.optimizer.param_groups:
            if "initial_lr" in group:
                group["lr"] = group.pop("initial_lr")
        self.scheduler = None

    def _swap_optimizer(self, optimizer: str, learning_rate: float) -> str:
        before = describe_optimizer(self.optimizer)
        main = before["learning_rate"] or learning_rate
        groups = [
            {
                "params": group["params"],
                "lr": learning_rate * described["learning_rate"] / main
                if described["learning_rate"]
                else learning_rate,
                "weight_decay": described["weight_decay"] or 0.0,
            }
            for group, described in zip(self.optimizer.param_groups, before["groups"])
        ]
        if optimizer == "adam":
            self.optimizer = torch.optim.Adam(groups)
        elif optimizer == "nadam":
            self.optimizer = torch.optim.NAdam(groups)
        elif optimizer in ("momentum", "sgd"):
            self.optimizer = torch.optim.SGD(groups, lr=learning_rate, momentum=0.9, nesterov=True)
        else:
            raise CannotApply(f"unknown optimizer `{optimizer}`")
        self.scheduler = None
        if self.clip_norm is not None:
            self._clip = None
            self._set_clip(self.clip_norm)
        name = describe_optimizer(self.optimizer)["optimizer"]
        given = before["learning_rate"]
        instead = f"{before['optimizer']} at {given:g}" if given else before["optimizer"]
        return f"Trains with {name} at a learning rate of {learning_rate:g} instead of {instead}."


_ACTIONS: dict[str, Callable[..., str]] = {
    "add_batch_norm": Subject._add_batch_norm,
    "add_residual": Subject._add_residual,
    "swap_activation": Subject._swap_activation,
    "set_output_units": Subject._set_output_units,
    "set_output_activation": Subject._set_output_activation,
    "reinitialize": Subject._reinitialize,
    "clip_gradient": Subject._clip_gradient,
    "set_batch_size": Subject._set_batch_size,
    "extend_training": Subject._extend_training,
    "set_learning_rate": Subject._set_learning_rate,
    "set_decay": Subject._set_decay,
    "swap_optimizer": Subject._swap_optimizer,
    "swap_loss": Subject._swap_loss,
    "scale_targets": Subject._scale_targets,
    "normalize_data": Subject._normalize_data,
}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _times(value: Any, factor: float) -> Any:
    # A product of rounded numbers is off by one digit in the last place.
    return value * factor if isinstance(value, Tensor) else float(f"{value * factor:.12g}")


def _batch_norm(layer: Layer, units: int) -> nn.Module:
    if layer.kind not in CONVOLUTIONS:
        return FeatureNorm(units)
    dimensions = layer.kind[-2:]
    norms = {"1d": nn.BatchNorm1d, "2d": nn.BatchNorm2d, "3d": nn.BatchNorm3d}
    return norms[dimensions](units)


def _fits_shortcut(call: ActivationCall, layer: Layer) -> bool:
    return (
        can_have_shortcut(layer.module)
        and layer.activation == call.activation
        and layer.input_shape == layer.output_shape
        and make_module(call.activation) is not None
    )
