"""PyTorch models as subjects of diagnosis and repair."""

from __future__ import annotations

from .discover import Discovery, describe_optimizer, unwrap
from .layers import Layer, layers_of

__all__ = ["Discovery", "Layer", "describe_optimizer", "layers_of", "unwrap"]
