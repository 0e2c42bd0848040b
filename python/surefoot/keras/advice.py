"""Advice as a unified diff of the user's Keras program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Advisor:
    """Writes changes of a Keras training as a diff of the source that created it."""

    def __init__(self, model: Any, compiled: Mapping[str, Any]) -> None:
        self._model, self._compiled = model, compiled

    def diff(self, *actions: Mapping[str, Any]) -> str | None:
        """Returns the actions as a unified diff, or None if they cannot be written with certainty."""
        return None
