"""Losses that repairs train with. They accept the targets that other losses need."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

#: Smallest probability whose logarithm is taken.
_EPSILON = 1e-7


class NumberLoss(nn.Module):
    """Mean squared error. Targets take the shape of the output."""

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        return F.mse_loss(output, target.to(output.dtype).reshape(output.shape))


class BinaryLoss(nn.Module):
    """Cross-entropy of one output for two classes.

    Args:
        from_logits: True if the output is not yet a probability.
    """

    def __init__(self, from_logits: bool) -> None:
        super().__init__()
        self.from_logits = from_logits

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        target = target.to(output.dtype).reshape(output.shape)
        if self.from_logits:
            return F.binary_cross_entropy_with_logits(output, target)
        return F.binary_cross_entropy(output, target)


class ClassLoss(nn.Module):
    """Cross-entropy of one output per class. Targets are class numbers or one share per class.

    Args:
        from_logits: True if the outputs are not yet probabilities.

    Example:
        >>> import torch
        >>> loss = ClassLoss(from_logits=True)
        >>> output = torch.tensor([[2.0, 0.0], [0.0, 1.0]])
        >>> numbers, shares = torch.tensor([[0.0], [1.0]]), torch.eye(2)
        >>> bool(loss(output, numbers) == loss(output, shares))
        True
    """

    def __init__(self, from_logits: bool) -> None:
        super().__init__()
        self.from_logits = from_logits

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        if target.shape == output.shape:
            target = target.to(output.dtype)
        else:
            if target.dim() == output.dim() and target.shape[1] == 1:
                target = target.squeeze(1)
            target = target.long()
        logits = output if self.from_logits else torch.log(output.clamp_min(_EPSILON))
        return F.cross_entropy(logits, target)


class ScaledLoss(nn.Module):
    """Loss of standardized outputs and targets.

    Args:
        loss: The loss.
        mean: Mean of the targets.
        scale: Standard deviation of the targets.
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, loss: Callable[[Any, Any], Tensor], mean: Tensor, scale: Tensor) -> None:
        super().__init__()
        self.loss = loss
        self.register_buffer("mean", mean)
        self.register_buffer("scale", scale)

    def forward(self, output: Tensor, target: Tensor) -> Tensor:
        mean, scale = self.mean.to(output.device), self.scale.to(output.device)
        return self.loss((output - mean) / scale, (target - mean) / scale)
