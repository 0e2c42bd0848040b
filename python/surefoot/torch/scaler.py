"""Follows the loss scale of mixed-precision training."""

from __future__ import annotations

from typing import Any

import torch


class ScalerHook:
    """Follows the loss scale of ``torch.amp.GradScaler``, of whichever instance the loop uses."""

    def __init__(self) -> None:
        self._scaler: Any = None
        self._original: Any = None

    def attach(self) -> None:
        self._original = original = torch.amp.GradScaler.scale
        hook = self

        def scale(scaler: Any, outputs: Any) -> Any:
            hook._scaler = scaler
            return original(scaler, outputs)

        torch.amp.GradScaler.scale = scale  # type: ignore[assignment, method-assign]

    def detach(self) -> None:
        if self._original is not None:
            torch.amp.GradScaler.scale = self._original  # type: ignore[method-assign]
            self._original = None

    @property
    def scale(self) -> float:
        scaler = self._scaler
        return float(scaler.get_scale()) if scaler is not None and scaler.is_enabled() else 1.0
