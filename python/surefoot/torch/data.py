"""Training data of :func:`surefoot.fit`: tensors, datasets and loaders, as batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

Batch = tuple[tuple[Any, ...], Any]
"""Inputs of a model, and targets."""

SAMPLES = 4096
"""Largest number of samples of a dataset by which data is judged and standardized."""


class Batches:
    """Batches of a pair of tensors, a ``Dataset`` or a ``DataLoader``.

    Example:
        >>> import torch
        >>> data = Batches((torch.arange(10.0).reshape(5, 2), torch.tensor([0, 1, 0, 1, 0])))
        >>> [len(targets) for _, targets in data.batches(2, shuffle=False)]
        [2, 2, 1]
        >>> data.task()
        'binary'
    """

    def __init__(self, data: Any, device: torch.device | None = None) -> None:
        self._device = device
        self._loader: DataLoader[Any] | None = None
        self._collate: Callable[[list[Any]], Any] = default_collate
        if isinstance(data, DataLoader):
            self._loader = data
            self._collate = data.collate_fn or default_collate
            data = data.dataset
        if isinstance(data, (tuple, list)) and data and all(isinstance(it, Tensor) for it in data):
            data = TensorDataset(*data)
        if not isinstance(data, Dataset) or not hasattr(data, "__len__"):
            raise TypeError(
                "data must be a pair of tensors, a Dataset with a length, or a DataLoader of one, "
                f"not {type(data).__name__}"
            )
        self._data: Any = data
        self.samples = len(data)
        if self.samples == 0:
            raise ValueError("the data is empty")
        self.batch_size = int((self._loader.batch_size if self._loader else None) or 32)

    def steps(self, batch_size: int) -> int:
        """Number of batches of an epoch."""
        drops = self._loader is not None and self._loader.drop_last
        return max(self.samples // batch_size, 1) if drops else math.ceil(self.samples / batch_size)

    def batches(self, batch_size: int, *, shuffle: bool) -> Iterator[Batch]:
        """Yields the batches of one epoch. The order is drawn from PyTorch's generator."""
        drops = self._loader is not None and self._loader.drop_last and shuffle
        order = torch.randperm(self.samples) if shuffle else torch.arange(self.samples)
        count = self.steps(batch_size) if shuffle else math.ceil(self.samples / batch_size)
        if type(self._data) is TensorDataset and self._collate is default_collate:
            for index in range(count):
                chosen = order[index * batch_size : (index + 1) * batch_size]
                yield self._split(tuple(tensor[chosen] for tensor in self._data.tensors))
            return
        loader: DataLoader[Any] = DataLoader(
            self._data,
            batch_size=batch_size,
            sampler=order.tolist(),
            collate_fn=self._collate,
            num_workers=self._loader.num_workers if self._loader else 0,
            drop_last=drops,
        )
        for batch in loader:
            yield self._split(batch)

    def sample(self) -> tuple[Any, Any]:
        """Inputs and targets of the first samples, to judge the data by."""
        count = min(self.samples, SAMPLES)
        if type(self._data) is TensorDataset and self._collate is default_collate:
            inputs, targets = self._split(tuple(tensor[:SAMPLES] for tensor in self._data.tensors))
        else:
            inputs, targets = self._split(self._collate([self._data[i] for i in range(count)]))
        return (inputs[0] if len(inputs) == 1 else inputs), targets

    def task(self) -> str:
        """Kind of task by its targets: ``binary``, ``multi_class`` or ``regression``."""
        targets = self._targets()
        if not targets.is_floating_point():
            return "binary" if int(targets.max()) <= 1 else "multi_class"
        flat = targets.reshape(len(targets), -1)
        is_zero_or_one = bool(((flat == 0) | (flat == 1)).all())
        if is_zero_or_one and flat.shape[1] == 1:
            return "binary"
        if is_zero_or_one and bool((flat.sum(1) == 1).all()):
            return "multi_class"
        return "regression"

    def baseline(self, task: str, loss_fn: Any) -> dict[str, Any]:
        """Facts about the best constant prediction: its metric, and its loss where that is known."""
        targets = self._targets()
        flat = targets.reshape(len(targets), -1).double()
        name = type(loss_fn).__name__.lower()
        if task == "regression":
            variance = float(flat.var(0, correction=0).mean())
            facts: dict[str, Any] = {"chance": 0.0, "target_range": [float(flat.min()), float(flat.max())]}
            if "mse" in name or "number" in name:
                facts["baseline_loss"] = variance
            return facts
        labels = flat.argmax(1) if flat.shape[1] > 1 else flat[:, 0].long()
        shares = torch.bincount(labels).double() / len(labels)
        shares = shares[shares > 0]
        facts = {"chance": float(shares.max()), "classes": int(labels.max()) + 1}
        if "cross" in name or "bce" in name or "nll" in name or "class" in name or "binary" in name:
            facts["baseline_loss"] = float(-(shares * shares.log()).sum())
        return facts

    def _targets(self) -> Tensor:
        targets = self.sample()[1]
        if not isinstance(targets, Tensor):
            raise TypeError(f"targets must be a tensor, not {type(targets).__name__}")
        return targets.detach().cpu()

    def _split(self, batch: Any) -> Batch:
        if not isinstance(batch, (tuple, list)) or len(batch) < 2:
            raise TypeError("a batch must be inputs and targets")
        if self._device is not None:
            batch = [it.to(self._device) if isinstance(it, Tensor) else it for it in batch]
        return tuple(batch[:-1]), batch[-1]
