"""Attention logits: the products of queries and keys, before the softmax."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Largest number of queries whose logits are computed.
_QUERIES = 64


class AttentionObserver:
    """Computes logits of ``scaled_dot_product_attention`` while it is attached, for the first sample of each batch.

    Compiled code checks that the function is the one that it was compiled for, so nothing is attached after
    ``torch.compile`` was used.

    Args:
        modules: Index of each module that calls the function.
        observe: Called with the index, the queries, the keys and their scale. It must not raise an error.
    """

    def __init__(self, modules: dict[nn.Module, int], observe: Callable[[int, Any, Any, Any], object]) -> None:
        self._modules = modules
        self._observe = observe
        self._original: Any = None

    def attach(self) -> None:
        """Replaces the function."""
        if not self._modules or self._original is not None or _has_compiled():
            return
        self._original = original = F.scaled_dot_product_attention

        def scaled_dot_product_attention(query: Any, key: Any, *args: Any, **kwargs: Any) -> Any:
            index = self._caller()
            if index is not None and torch.is_grad_enabled():
                self._observe(index, query, key, kwargs.get("scale"))
            return original(query, key, *args, **kwargs)

        F.scaled_dot_product_attention = scaled_dot_product_attention

    def detach(self) -> None:
        """Restores the function."""
        if self._original is not None:
            F.scaled_dot_product_attention = self._original
            self._original = None

    def _caller(self) -> int | None:
        """Index of the innermost known module whose method is running."""
        frame: FrameType | None = sys._getframe(2)
        while frame is not None:
            module = frame.f_locals.get("self")
            if isinstance(module, nn.Module) and module in self._modules:
                return self._modules[module]
            frame = frame.f_back
        return None


@torch.no_grad()
def logits(query: Tensor, key: Tensor, scale: float | None = None) -> Tensor:
    """Logits of some queries of the first sample, without a mask.

    Example:
        >>> import torch
        >>> logits(torch.ones(2, 4, 100, 16), torch.ones(2, 2, 50, 16)).shape
        torch.Size([4, 50, 50])
    """
    while query.dim() > 3:
        query, key = query[0], key[0]
    if query.dim() == 3 and key.shape[0] != query.shape[0]:  # Several heads share their keys.
        key = key.repeat_interleave(query.shape[0] // key.shape[0], 0)
    query = query[..., :: -(-query.shape[-2] // _QUERIES), :]
    return (query @ key.transpose(-2, -1)) * (query.shape[-1] ** -0.5 if scale is None else scale)


def _has_compiled() -> bool:
    """True if ``torch.compile`` has compiled anything."""
    utils = sys.modules.get("torch._dynamo.utils")
    return utils is not None and bool(utils.counters["frames"])
