"""Metrics of a model on a whole data set."""

from __future__ import annotations

import math
from collections.abc import Callable

from torch import Tensor


def measure(
    output: Tensor, target: Tensor, task: str | None, metric: Callable[[Tensor, Tensor], float] | None = None
) -> float | None:
    """Returns ``metric``, by default the accuracy for classes and R² for numbers; None if it is not finite."""
    if metric is not None:
        value = float(metric(output, target))
    else:
        value = r2(output, target) if task == "regression" else accuracy(output, target, task)
    return value if math.isfinite(value) else None


def accuracy(output: Tensor, target: Tensor, task: str | None = None) -> float:
    """Share of right predictions.

    Example:
        >>> import torch
        >>> accuracy(torch.tensor([[2.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 0]))
        0.5
        >>> accuracy(torch.tensor([[0.9, 0.8], [0.1, 0.8]]), torch.tensor([[1.0, 1.0], [1.0, 1.0]]), "multi_label")
        0.75
    """
    # Probabilities, or logits if any value is outside of [0, 1].
    limit = 0.0 if bool(((output < 0) | (output > 1)).any()) else 0.5
    if task == "multi_label":
        return _share((output > limit) == (target.reshape(output.shape) > 0.5))
    if output.dim() > 1 and max(output.shape[1], output.shape[-1]) > 1:
        if target.shape == output.shape:
            return _share(output.argmax(-1) == target.argmax(-1))
        # Classes are the second dimension for `CrossEntropyLoss`, and the last one for others.
        is_second = target.numel() == output.numel() // output.shape[1] and output.shape[1] > 1
        predicted = output.argmax(1 if is_second else -1)
        return _share(predicted.reshape(-1) == target.reshape(-1)) if predicted.numel() == target.numel() else 0.0
    flat = output.reshape(-1)
    if task == "multi_class":
        # One unit for several classes: its value is the class.
        labels = target.argmax(-1) if target.dim() > 1 and target.shape[-1] > 1 else target.reshape(-1)
        return _share(flat.round() == labels)
    return _share((flat > limit) == (target.reshape(-1) > 0.5))


def _share(right: Tensor) -> float:
    return int(right.sum()) / max(right.numel(), 1)


def r2(output: Tensor, target: Tensor) -> float:
    """Coefficient of determination."""
    output, target = output.reshape(len(output), -1).double(), target.reshape(len(target), -1).double()
    residual = ((output - target) ** 2).sum()
    total = ((target - target.mean(0)) ** 2).sum()
    return float(1 - residual / total) if total > 0 else 0.0
