"""Training data of :func:`surefoot.fit`: tensors, datasets and loaders, as batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, TensorDataset, default_collate

Batch = tuple[tuple[Any, ...], Any]
"""Inputs of a model, and targets."""

SAMPLES = 4096
"""Largest number of samples of a dataset by which data is judged and standardized."""


def as_tensor(values: Any, *, is_input: bool) -> Tensor:
    """Returns the tensor of an array, a list or a column of a table.

    Fractions become PyTorch's default type, whole numbers 64-bit integers. Inputs of bytes are images and
    become fractions.

    Example:
        >>> as_tensor([0.5, 1.5], is_input=True).dtype, as_tensor([1, 2], is_input=False).dtype
        (torch.float32, torch.int64)
    """
    if isinstance(values, Tensor):
        return values
    if hasattr(values, "to_numpy"):
        values = values.to_numpy()
    tensor = torch.as_tensor(values)
    is_byte = is_input and tensor.dtype == torch.uint8
    return tensor.to(torch.get_default_dtype() if tensor.is_floating_point() or is_byte else torch.int64)


def _is_arrays(data: Any) -> bool:
    return isinstance(data, (tuple, list)) and len(data) > 1 and all(hasattr(it, "shape") for it in data)


SAMPLE_BYTES = 64 * 1024 * 1024
"""Largest size of these samples in memory."""


class Batches:
    """Batches of a pair of tensors or arrays, a ``Dataset`` or a ``DataLoader``.

    Example:
        >>> import torch
        >>> data = Batches((torch.arange(10.0).reshape(5, 2), torch.tensor([0, 1, 0, 1, 0])))
        >>> [len(targets) for _, targets in data.batches(2)]
        [2, 2, 1]
        >>> data.task()
        'binary'
    """

    def __init__(self, data: Any, device: torch.device | None = None, *, name: str = "data") -> None:
        self._device = device
        self._loader: DataLoader[Any] | None = None
        self._collate: Callable[[list[Any]], Any] = default_collate
        if isinstance(data, DataLoader):
            self._loader = data
            self._collate = data.collate_fn or default_collate
            data = data.dataset
        if _is_arrays(data):
            tensors = [as_tensor(it, is_input=place + 1 < len(data)) for place, it in enumerate(data)]
            lengths = [len(it) for it in tensors]
            if len(set(lengths)) > 1:
                raise ValueError(f"inputs and targets must have the same number of samples, not {lengths}")
            data = TensorDataset(*tensors)
        if not isinstance(data, Dataset) or not hasattr(data, "__len__"):
            raise TypeError(
                f"{name} must be a pair of tensors or arrays (inputs, targets), a Dataset with a length, or a "
                f"DataLoader of one, not {type(data).__name__}"
            )
        self._data: Any = data
        self._sample: Batch | None = None
        self.samples = len(data)
        if self.samples == 0:
            raise ValueError(f"{name} has no samples")
        self.batch_size = int((self._loader.batch_size if self._loader else None) or 32)

    def steps(self, batch_size: int) -> int:
        """Number of batches of an epoch."""
        drops = self._loader is not None and self._loader.drop_last
        return max(self.samples // batch_size, 1) if drops else math.ceil(self.samples / batch_size)

    def batches(self, batch_size: int, key: int | None = None) -> Iterator[Batch]:
        """Yields the batches of one epoch, in the order of a key; without one, all samples as they are."""
        shuffle = key is not None
        drops = self._loader is not None and self._loader.drop_last and shuffle
        order = torch.arange(self.samples)
        if key is not None:
            order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(key))
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
        if type(self._data) is TensorDataset and self._collate is default_collate:
            inputs, targets = self._split(tuple(tensor[:SAMPLES] for tensor in self._data.tensors))
        else:
            self._sample = self._sample or self._split(self._load(self._count()))
            inputs, targets = self._sample
        return (inputs[0] if len(inputs) == 1 else inputs), targets

    def _load(self, count: int) -> Any:
        return self._collate([self._data[i] for i in range(count)])

    def _count(self) -> int:
        """Number of samples to judge the data by: less of large ones."""
        few = min(self.samples, 8)
        batch = self._load(few)
        parts = batch if isinstance(batch, (tuple, list)) else [batch]
        size = sum(it.nbytes for it in parts if isinstance(it, Tensor)) / few
        return max(few, min(self.samples, SAMPLES, int(SAMPLE_BYTES / max(size, 1.0))))

    def task(self) -> str:
        """Kind of task by its targets: ``binary``, ``multi_class``, ``multi_label`` or ``regression``."""
        targets = self._targets()
        flat = targets.reshape(len(targets), -1)
        is_one_column = flat.shape[1] == 1
        if not targets.is_floating_point() and (is_one_column or int(targets.max()) > 1):
            return "binary" if int(targets.max()) <= 1 else "multi_class"
        is_zero_or_one = bool(((flat == 0) | (flat == 1)).all())
        if is_zero_or_one and is_one_column:
            return "binary"
        if is_zero_or_one:
            return "multi_class" if bool((flat.sum(1) == 1).all()) else "multi_label"
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
        is_cross_entropy = any(it in name for it in ("cross", "bce", "nll", "class", "binary"))
        if task == "multi_label":
            shares = flat.mean(0)
            facts = {"chance": float(torch.maximum(shares, 1 - shares).mean()), "classes": flat.shape[1]}
            if is_cross_entropy:
                facts["baseline_loss"] = float(nn.functional.binary_cross_entropy(shares, shares))
            return facts
        are_shares = targets.is_floating_point() and flat.shape[1] > 1
        labels = flat.argmax(1) if are_shares else flat.reshape(-1).long()
        shares = torch.bincount(labels).double() / len(labels)
        shares = shares[shares > 0]
        facts = {"chance": float(shares.max()), "classes": int(labels.max()) + 1}
        if is_cross_entropy:
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
