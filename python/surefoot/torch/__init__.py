"""PyTorch models as subjects of diagnosis and repair."""

from __future__ import annotations

from .discover import Discovery, describe_optimizer, unwrap
from .first_nonfinite import NonFinite, first_nonfinite
from .layers import Layer, layers_of
from .surgery import CannotApply, Setup

__all__ = [
    "CannotApply",
    "Discovery",
    "Layer",
    "NonFinite",
    "Setup",
    "describe_optimizer",
    "first_nonfinite",
    "layers_of",
    "unwrap",
]
