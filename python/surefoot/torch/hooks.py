"""Hooks that a model can be copied and saved with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


class Hook:
    """A hook that stays with the model that it was made for.

    A copy of the model has the same hook, which is called with the copy; a saved model has one that does nothing.
    """

    def __init__(self, function: Callable[..., None]) -> None:
        self._function = function

    def __call__(self, *args: Any) -> None:
        self._function(*args)

    def __deepcopy__(self, memo: Any) -> Hook:
        return self

    def __reduce__(self) -> Any:
        return Hook, (_ignore,)


def _ignore(*args: Any) -> None:
    """Does nothing: the hook of a loaded model."""
