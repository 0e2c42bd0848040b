"""Forward and backward passes that leave no trace in the model or the random generators."""

from __future__ import annotations

import random
from contextlib import contextmanager
from typing import Iterator

import torch
from torch import nn


@contextmanager
def unchanged(model: nn.Module) -> Iterator[None]:
    """Restores buffers, gradients, training modes and random generators at the end.

    Example:
        >>> import torch
        >>> model = torch.nn.BatchNorm1d(2)
        >>> with unchanged(model):
        ...     _ = model(torch.ones(4, 2))
        >>> model.num_batches_tracked.item()
        0
    """
    buffers = [(buffer, buffer.detach().clone()) for buffer in model.buffers()]
    gradients = [(parameter, parameter.grad) for parameter in model.parameters()]
    modes = [(module, module.training) for module in model.modules()]
    python = random.getstate()
    devices = {p.device.index for p in model.parameters() if p.device.type == "cuda"}
    try:
        import numpy

        numbers = numpy.random.get_state()
    except ImportError:
        numpy = None  # type: ignore[assignment]
    try:
        for parameter, _ in gradients:
            parameter.grad = None
        with torch.random.fork_rng(devices=sorted(d for d in devices if d is not None)):
            yield
    finally:
        random.setstate(python)
        if numpy is not None:
            numpy.random.set_state(numbers)
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
        for parameter, gradient in gradients:
            parameter.grad = gradient
        for module, mode in modes:
            module.training = mode
