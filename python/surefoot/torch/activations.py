"""Activation functions of PyTorch under the names that plans, records and findings use."""

from __future__ import annotations

from typing import Any, Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

_MODULES: Mapping[str, type[nn.Module]] = {
    "linear": nn.Identity,
    "relu": nn.ReLU,
    "relu6": nn.ReLU6,
    "leaky_relu": nn.LeakyReLU,
    "prelu": nn.PReLU,
    "rrelu": nn.RReLU,
    "elu": nn.ELU,
    "celu": nn.CELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "mish": nn.Mish,
    "tanh": nn.Tanh,
    "hard_tanh": nn.Hardtanh,
    "softsign": nn.Softsign,
    "sigmoid": nn.Sigmoid,
    "hard_sigmoid": nn.Hardsigmoid,
    "hard_silu": nn.Hardswish,
    "log_sigmoid": nn.LogSigmoid,
    "softplus": nn.Softplus,
    "softmax": nn.Softmax,
    "log_softmax": nn.LogSoftmax,
}

# PyTorch spells an activation as a function, an in-place function, a tensor method or both.
_SPELLINGS: Mapping[str, tuple[str, ...]] = {
    "leaky_relu": ("leaky_relu", "leaky_relu_"),
    "hard_tanh": ("hardtanh", "hardtanh_"),
    "hard_sigmoid": ("hardsigmoid",),
    "hard_silu": ("hardswish",),
    "log_sigmoid": ("logsigmoid",),
}


def _functions() -> dict[Callable[..., Any], str]:
    found: dict[Callable[..., Any], str] = {}
    for name in _MODULES:
        for spelling in _SPELLINGS.get(name, (name, name + "_")):
            if name == "linear":  # `F.linear` is a layer.
                continue
            for place in (F, torch, Tensor):
                function = getattr(place, spelling, None)
                if callable(function):
                    found[function] = name
    return found


#: Functions and tensor methods that compute an activation, with its name.
FUNCTIONS: Mapping[Callable[..., Any], str] = _functions()

#: Activations that normalize over classes instead of acting on each value.
OVER_CLASSES = frozenset({"softmax", "log_softmax"})

#: Activations that are part of a gate when their output is multiplied.
GATES = frozenset({"sigmoid", "hard_sigmoid", "tanh", "softmax"})

#: Names in sentences. Others are written as they are.
_TITLES: Mapping[str, str] = {
    "relu": "ReLU",
    "leaky_relu": "leaky ReLU",
    "elu": "ELU",
    "selu": "SELU",
    "gelu": "GELU",
    "silu": "SiLU",
}


def name_of_module(module: nn.Module) -> str | None:
    """Returns the name of the activation that a module computes, or None if it is no activation.

    Example:
        >>> from torch import nn
        >>> name_of_module(nn.LeakyReLU(0.1)), name_of_module(nn.Linear(2, 2))
        ('leaky_relu', None)
    """
    for name, cls in _MODULES.items():
        if type(module) is cls:
            return name
    return None


def class_name(name: str) -> str | None:
    """Returns the name of the class in ``torch.nn``, such as ``"SELU"``, or None if there is none.

    Example:
        >>> class_name("selu"), class_name("unknown")
        ('SELU', None)
    """
    cls = _MODULES.get(name)
    return cls.__name__ if cls is not None else None


def function_name(name: str) -> str | None:
    """Returns the name of the function in ``torch.nn.functional``, or None if there is none."""
    spelling = _SPELLINGS.get(name, (name,))[0]
    return spelling if name in _MODULES and name != "linear" and hasattr(F, spelling) else None


def make_module(name: str) -> nn.Module | None:
    """Creates the module of an activation, or returns None if PyTorch has none of that name.

    Softmax is taken over the last dimension.

    Example:
        >>> make_module("selu")
        SELU()
    """
    if name in OVER_CLASSES:
        return _MODULES[name](dim=-1)
    cls = _MODULES.get(name)
    return cls() if cls is not None else None


def title(name: str) -> str:
    """Returns the name as it is written in a sentence: ``"leaky ReLU"``."""
    return _TITLES.get(name, name)
