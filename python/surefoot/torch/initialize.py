"""Initial weights that fit the activations, drawn from keys."""

from __future__ import annotations

import hashlib
import math
from typing import Callable

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from .layers import RECURRENT, WEIGHTED, Layer, is_norm

#: Activations that halve the variance of what they receive.
_RECTIFIERS = frozenset({"relu", "relu6", "leaky_relu", "elu", "celu", "gelu", "silu", "mish", "softplus"})


def seed_of(seed: int, name: str) -> int:
    """Returns the seed of a name, so that adding a layer leaves the draws of others unchanged.

    Example:
        >>> seed_of(0, "fc.weight") == seed_of(0, "fc.weight"), seed_of(0, "a") == seed_of(1, "a")
        (True, False)
    """
    digest = hashlib.blake2b(f"{seed}:{name}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> 1


def initializer_for(activation: str | None) -> tuple[str, str]:
    """Returns the initializer that suits an activation: its name, and its title in sentences.

    Example:
        >>> initializer_for("selu"), initializer_for("tanh")
        (('lecun_normal', 'LeCun normal'), ('glorot_uniform', 'Glorot uniform'))
    """
    if activation in _RECTIFIERS:
        return "he_normal", "He normal"
    if activation == "selu":
        return "lecun_normal", "LeCun normal"
    return "glorot_uniform", "Glorot uniform"


def _fans(layer: Layer, weight: Tensor) -> tuple[int, int]:
    """Returns the numbers of inputs and outputs of a unit."""
    field = math.prod(weight.shape[2:])
    out_first = True
    if layer.kind.startswith("conv_transpose"):
        out_first = False
    elif layer.kind == "dense" and not isinstance(layer.module, nn.Linear) and layer.output_shape:
        # `x @ w` and `linear(x, w)` differ in the order of the dimensions.
        out_first = weight.shape[0] == layer.output_shape[-1]
    units, inputs = weight.shape[:2] if out_first else (weight.shape[1], weight.shape[0])
    return int(inputs) * field, int(units) * field


def draw(layer: Layer, weight: Tensor, initializer: str, key: int) -> Tensor:
    """Draws new values of the shape of `weight`, the same on every device."""
    generator = torch.Generator().manual_seed(key)
    inputs, outputs = _fans(layer, weight)
    values = torch.empty(weight.shape, dtype=torch.float32)
    if initializer == "he_normal":
        values.normal_(0.0, math.sqrt(2.0 / max(inputs, 1)), generator=generator)
    elif initializer == "lecun_normal":
        values.normal_(0.0, math.sqrt(1.0 / max(inputs, 1)), generator=generator)
    else:
        bound = math.sqrt(6.0 / max(inputs + outputs, 1))
        values.uniform_(-bound, bound, generator=generator)
    return values


@torch.no_grad()
def initialize(layer: Layer, activation: str | None, seed: int) -> bool:
    """Draws new weights of a layer to fit its activation. Returns False if it cannot or must not.

    Biases become zero. Recurrent weights are orthogonal, normalization starts as the identity, and
    embeddings and other layers of PyTorch start as PyTorch starts them. Frozen layers keep their weights.
    """
    if not any(parameter.requires_grad for _, parameter in layer.parameters):
        return False
    module = layer.module
    key: Callable[[str], int] = lambda name: seed_of(seed, name)  # noqa: E731
    if layer.kind in RECURRENT or layer.kind == "multi_head_attention":
        for name, parameter in layer.parameters:
            _set_recurrent(layer, name, parameter, key(name))
        return True
    if layer.kind in WEIGHTED:
        initializer, _ = initializer_for(activation)
        if parametrize.is_parametrized(module, "weight"):
            name = f"{layer.name}.weight"
            weight = module.weight
            assert isinstance(weight, Tensor)
            module.weight = draw(layer, weight, initializer, key(name)).to(weight)
            return True
        for name, parameter in layer.parameters:
            if parameter.dim() > 1:
                parameter.copy_(draw(layer, parameter, initializer, key(name)))
            else:
                parameter.zero_()
        return True
    reset = getattr(module, "reset_parameters", None)
    if (is_norm(layer.kind) or layer.kind == "embedding") and callable(reset):
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(key(layer.name))
            reset()
        return True
    return False


def _set_recurrent(layer: Layer, name: str, parameter: nn.Parameter, key: int) -> None:
    if parameter.dim() < 2:
        parameter.zero_()
        last = name.rpartition(".")[2]
        if layer.kind == "lstm" and last.startswith("bias_ih"):
            # An open forget gate, as in Keras.
            size = parameter.numel() // 4
            parameter[size : 2 * size] = 1.0
    elif "weight_hh" in name:
        generator = torch.Generator().manual_seed(key)
        size = parameter.shape[1]
        for start in range(0, parameter.shape[0], size):
            block = torch.empty(min(size, parameter.shape[0] - start), size)
            parameter[start : start + size] = nn.init.orthogonal_(block, generator=generator)
    else:
        parameter.copy_(draw(layer, parameter, "glorot_uniform", key))


@torch.no_grad()
def rebuild(model: nn.Module, factory: Callable[[], nn.Module], names: set[str], seed: int) -> int:
    """Copies the named parameters from a newly made model. Returns the number of copied ones."""
    with torch.random.fork_rng():
        torch.manual_seed(seed_of(seed, "factory"))
        fresh = dict(factory().named_parameters())
    count = 0
    for name, parameter in model.named_parameters():
        new = fresh.get(name)
        if name in names and new is not None and new.shape == parameter.shape:
            parameter.copy_(new)
            count += 1
    return count
