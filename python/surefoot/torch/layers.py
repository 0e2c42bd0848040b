"""Kinds, names and shapes of the layers of a model."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Iterator

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase
from torch.nn.modules.conv import _ConvNd
from torch.nn.modules.instancenorm import _InstanceNorm
from torch.nn.parameter import UninitializedParameter

from .parts import PREFIX

#: Kind of a layer that is not known.
OTHER = "other"

# Subclasses come before their bases.
_KINDS: tuple[tuple[type[nn.Module], str], ...] = (
    (nn.Linear, "dense"),
    (nn.Bilinear, "bilinear"),
    (nn.Conv1d, "conv1d"),
    (nn.Conv2d, "conv2d"),
    (nn.Conv3d, "conv3d"),
    (nn.ConvTranspose1d, "conv_transpose1d"),
    (nn.ConvTranspose2d, "conv_transpose2d"),
    (nn.ConvTranspose3d, "conv_transpose3d"),
    (nn.RNN, "simple_rnn"),
    (nn.RNNCell, "simple_rnn"),
    (nn.GRU, "gru"),
    (nn.GRUCell, "gru"),
    (nn.LSTM, "lstm"),
    (nn.LSTMCell, "lstm"),
    (nn.Embedding, "embedding"),
    (nn.EmbeddingBag, "embedding"),
    (_InstanceNorm, "instance_norm"),
    (_NormBase, "batch_norm"),
    (nn.LayerNorm, "layer_norm"),
    (nn.GroupNorm, "group_norm"),
    (getattr(nn, "RMSNorm", nn.GroupNorm), "rms_norm"),  # PyTorch 2.4
    (nn.MultiheadAttention, "multi_head_attention"),
    (nn.PReLU, "activation"),
)

RECURRENT = frozenset({"simple_rnn", "gru", "lstm"})
CONVOLUTIONS = frozenset(kind for cls, kind in _KINDS if issubclass(cls, _ConvNd))
#: Kinds whose output is a linear function of their input, so that an activation may follow.
WEIGHTED = CONVOLUTIONS | {"dense", "bilinear"}


def kind_of(module: nn.Module) -> str | None:
    """Returns the kind of a module that is a layer of PyTorch, or None.

    Example:
        >>> from torch import nn
        >>> kind_of(nn.Conv2d(1, 6, 5)), kind_of(nn.SyncBatchNorm(6)), kind_of(nn.Sequential())
        ('conv2d', 'batch_norm', None)
    """
    for cls, kind in _KINDS:
        if isinstance(module, cls):
            return kind
    return None


def is_norm(kind: str) -> bool:
    """Returns True for normalization layers."""
    return kind.endswith("_norm")


@dataclass(eq=False)
class Layer:
    """A layer with parameters: a module of PyTorch, or parameters of a module of the user.

    Attributes:
        name: Name of the module, or of the parameter if its module has several layers.
        kind: Kind of layer, as in plans. ``"other"`` if unknown.
        module: The module that owns the parameters.
        parameters: Names and parameters. A shared parameter belongs to each layer that uses it.
        output_shape: Shape of the first output for one sample, channels last.
        input_shape: Shape of the first input for one sample, channels last.
        normalized: True if a normalization follows before any activation.
    """

    name: str
    kind: str
    module: nn.Module
    parameters: list[tuple[str, nn.Parameter]]
    output_shape: list[int] = field(default_factory=list)
    input_shape: list[int] = field(default_factory=list)
    normalized: bool = False
    #: What happened to the outputs: names of activations, "linear", or None for anything else.
    uses: set[str | None] = field(default_factory=set)

    @property
    def activation(self) -> str | None:
        """Activation function at the end of the layer; None if unknown or if its kind has none."""
        if self.kind == "simple_rnn":
            return str(getattr(self.module, "nonlinearity", "")) or None
        if self.kind not in WEIGHTED and self.kind != OTHER:
            return None
        if len(self.uses) != 1:
            return None
        (use,) = self.uses
        # The code of an unknown layer may end in an activation of its own.
        return None if self.kind == OTHER and use == "linear" else use

    @property
    def units(self) -> int | None:
        """Number of units (neurons, channels), if the layer has any."""
        for name in ("out_features", "out_channels"):
            size = getattr(self.module, name, None)
            if isinstance(size, int) and self.kind in WEIGHTED:
                return size
        if self.kind in RECURRENT:
            return next((p.shape[0] for _, p in self.parameters if p.dim() == 2), None)
        if self.kind == "dense" and self.output_shape:
            return self.output_shape[-1]
        return None

    def info(self) -> dict[str, Any]:
        """Returns the layer with the keys of ``LayerInfo``."""
        trained = [p for _, p in self.parameters if p.requires_grad]
        return {
            "name": self.name,
            "kind": self.kind,
            "parameters": sum(p.numel() for p in trained if not is_lazy(p)),
            "units": self.units,
            "activation": self.activation,
            "output_shape": list(self.output_shape),
            "frozen": not trained,
        }


def is_lazy(parameter: Tensor) -> bool:
    """Returns True if the first forward pass gives the parameter its shape."""
    return isinstance(parameter, UninitializedParameter)


def layers_of(model: nn.Module) -> list[Layer]:
    """Returns the layers with parameters in the order of their definition.

    A module of PyTorch with all its parameters is one layer. Among the parameters that a module of the
    user holds itself, each matrix is one layer, together with the vectors defined after it.

    Example:
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> [(layer.name, layer.kind, layer.units) for layer in layers_of(model)]
        [('0', 'dense', 3), ('2', 'dense', 1)]
    """
    return list(_walk(model, "", set()))


def _walk(module: nn.Module, name: str, seen: set[int]) -> Iterator[Layer]:
    if id(module) in seen:
        return
    seen.add(id(module))
    kind = kind_of(module)
    prefix = name + "." if name else ""
    if kind is not None:
        parameters = [
            (prefix + key, p) for key, p in module.named_parameters() if not key.startswith(PREFIX)
        ]
        if parameters:
            yield Layer(name or type(module).__name__.lower(), kind, module, parameters)
        for key, child in module.named_children():
            if key.startswith(PREFIX):
                yield from _walk(child, prefix + key, seen)
        return
    groups = _groups([(prefix + key, p) for key, p in module.named_parameters(recurse=False)])
    if len(groups) == 1 and next(module.children(), None) is None:
        yield Layer(name or type(module).__name__.lower(), OTHER, module, groups[0])
        return
    for group in groups:
        yield Layer(group[0][0], OTHER, module, group)
    for key, child in module.named_children():
        yield from _walk(child, prefix + key, seen)


def _groups(bare: list[tuple[str, nn.Parameter]]) -> list[list[tuple[str, nn.Parameter]]]:
    """Groups parameters of a module: a matrix with the vectors that are defined after it."""
    groups: list[list[tuple[str, nn.Parameter]]] = []
    for name, parameter in bare:
        starts = is_lazy(parameter) or parameter.dim() > 1
        if groups and (not starts or all(p.dim() < 2 for _, p in groups[-1])):
            groups[-1].append((name, parameter))
        else:
            groups.append([(name, parameter)])
    return groups


def sample_shape(layer: Layer, output: Tensor) -> list[int]:
    """Returns the shape of one sample of a layer's output, channels last as in plans."""
    shape = [int(size) for size in output.shape]
    if layer.kind in RECURRENT and len(shape) == 3:
        batch = 0 if getattr(layer.module, "batch_first", False) else 1
        return shape[:batch] + shape[batch + 1 :]
    if layer.kind == "multi_head_attention" and not getattr(layer.module, "batch_first", True):
        return shape[:1] + shape[2:]
    shape = shape[1:]
    channels_first = layer.kind in CONVOLUTIONS | {"batch_norm", "group_norm", "instance_norm"}
    return shape[1:] + shape[:1] if channels_first and len(shape) > 1 else shape
