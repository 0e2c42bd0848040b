"""Follows the loss scale of mixed-precision training."""

from __future__ import annotations

from typing import Any, ClassVar

import torch


class ScalerHook:
    """Follows the loss scale of ``torch.amp.GradScaler``, of whichever instance the loop uses."""

    _attached: ClassVar[list[ScalerHook]] = []
    _original: ClassVar[Any] = None

    def __init__(self) -> None:
        self._scaler: Any = None

    def attach(self) -> None:
        """Replaces the method ``scale`` of the class, once for all hooks."""
        if not ScalerHook._attached:
            ScalerHook._original = original = torch.amp.GradScaler.scale

            def scale(scaler: Any, outputs: Any) -> Any:
                for hook in ScalerHook._attached:
                    hook._scaler = scaler
                return original(scaler, outputs)

            torch.amp.GradScaler.scale = scale  # type: ignore[assignment, method-assign]
        if self not in ScalerHook._attached:
            ScalerHook._attached.append(self)

    def detach(self) -> None:
        """Restores the method with the last hook."""
        if self in ScalerHook._attached:
            ScalerHook._attached.remove(self)
            if not ScalerHook._attached:
                torch.amp.GradScaler.scale = ScalerHook._original  # type: ignore[method-assign]

    @property
    def scale(self) -> float:
        """The current scale; 1 without a scaler."""
        scaler = self._scaler
        return float(scaler.get_scale()) if scaler is not None and scaler.is_enabled() else 1.0
