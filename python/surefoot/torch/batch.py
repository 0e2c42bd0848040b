"""Saves the batch of a step, to reproduce a problem with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from .trace import tensors_in


def save_batch(directory: Path, step: int, batch: tuple[tuple[Any, ...], dict[str, Any]]) -> Path | None:
    """Saves the tensors of a forward pass as a NumPy file in the run directory.

    Positional arguments are named ``input0``, ``input1`` and so on, others as they are passed.

    Returns:
        The file; None if the batch has no tensors or cannot be saved.

    Example:
        >>> import numpy, tempfile, torch
        >>> with tempfile.TemporaryDirectory() as directory:
        ...     path = save_batch(Path(directory), 7, ((torch.ones(2, 3),), {"mask": torch.zeros(2)}))
        ...     print(path.name, {name: array.shape for name, array in numpy.load(path).items()})
        batch-000000007.npz {'input0': (2, 3), 'mask': (2,)}
    """
    try:
        import numpy

        args, kwargs = batch
        arrays: dict[str, Any] = {}
        for name, value in [*((f"input{i}", it) for i, it in enumerate(args)), *kwargs.items()]:
            found = list(tensors_in(value))
            for index, tensor in enumerate(found):
                key = name if len(found) == 1 else f"{name}.{index}"
                # NumPy has no bfloat16.
                host = tensor.detach().cpu()
                arrays[key] = (host.float() if host.dtype == torch.bfloat16 else host).numpy()
        if not arrays:
            return None
        path = directory / f"batch-{step:09}.npz"
        numpy.savez(path, **arrays)
        return path
    except (ImportError, OSError, TypeError, RuntimeError):
        return None
