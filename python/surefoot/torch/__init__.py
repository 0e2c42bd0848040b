"""PyTorch models as subjects of diagnosis and repair."""

from __future__ import annotations

from .actions import CannotApply, Subject
from .advice import Advisor, actions_for
from .discover import Discovery, describe_optimizer, unwrap
from .first_nonfinite import NonFinite, first_nonfinite
from .layers import Layer, layers_of
from .sites import record_sites

__all__ = [
    "Advisor",
    "CannotApply",
    "Discovery",
    "Layer",
    "NonFinite",
    "Subject",
    "actions_for",
    "describe_optimizer",
    "first_nonfinite",
    "layers_of",
    "record_sites",
    "unwrap",
]
