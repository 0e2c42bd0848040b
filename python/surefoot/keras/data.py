"""Training data of :func:`surefoot.keras.fit`: arrays, or data that comes in batches."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import keras
import numpy

SAMPLES = 4096
"""Largest number of samples by which data is judged and standardized."""

FAR = 3.0
"""Values farther from the quartiles than this many interquartile ranges are outliers."""

Batch = tuple[Any, Any, Any]
"""Inputs, targets and sample weights."""


class Data:
    """Samples with targets: arrays in the structures that Keras accepts, or an object that yields batches.

    Args:
        x: Inputs, or a ``tf.data.Dataset``, a ``PyDataset`` or a ``DataLoader`` of batches.
        y: Targets of arrays.
        sample_weight: Sample weights of arrays.
        steps: Largest number of batches of an epoch.

    Example:
        >>> import numpy
        >>> data = Data(numpy.arange(10.0).reshape(5, 2), numpy.array([0, 1, 0, 1, 0]))
        >>> [len(y) for _, y, _ in data.batches(2)]
        [2, 2, 1]
    """

    def __init__(self, x: Any, y: Any = None, sample_weight: Any = None, *, steps: int | None = None) -> None:
        self._source: Any = None
        self._limit = steps
        if y is None and not _is_array(x) and hasattr(x, "__iter__") and not isinstance(x, (list, tuple, dict)):
            if hasattr(x, "__next__"):
                raise TypeError(
                    "a generator can be read only once, and repairs train several times; pass arrays, "
                    "a keras.utils.PyDataset, a tf.data.Dataset or a DataLoader"
                )
            self._source = x
            self._counted: int | None = None
            return
        self._arrays: Batch = tuple(_numpy(it) for it in (x, y, sample_weight))
        lengths = {len(it) for it in keras.tree.flatten(self._arrays) if it is not None}
        if len(lengths) != 1:
            raise ValueError(f"all arrays must have the same number of samples, not {sorted(lengths)}")
        self.samples = lengths.pop()
        if self.samples == 0:
            raise ValueError("the data is empty")

    @property
    def is_batched(self) -> bool:
        """True if the data comes in batches, so that their size cannot be changed."""
        return self._source is not None

    def split(self, share: float) -> tuple[Data, Data]:
        """Returns the first samples and the last ``share`` of them, as ``validation_split`` does."""
        if self.is_batched:
            raise ValueError("validation_split needs arrays; pass validation_data")
        cut = int(math.floor(self.samples * (1.0 - share)))
        if not 0 < cut < self.samples:
            raise ValueError(f"validation_split={share} leaves no samples for training or validation")
        parts = (keras.tree.map_structure(lambda it, s=s: None if it is None else it[s], self._arrays)
                 for s in (slice(0, cut), slice(cut, None)))
        first, last = (Data(*part) for part in parts)
        return first, last

    def steps(self, batch_size: int | None) -> int:
        """Number of batches of an epoch."""
        if not self.is_batched:
            count = math.ceil(self.samples / (batch_size or 32))
        else:
            if self._counted is None:
                self._counted = _length(self._source) or sum(1 for _ in self._each())
            count = self._counted
        return min(count, self._limit) if self._limit else count

    def batches(self, batch_size: int | None, generator: numpy.random.Generator | None = None) -> Iterator[Batch]:
        """Yields the batches of one epoch, in an order drawn from ``generator`` or as given."""
        count = self.steps(batch_size)
        if self.is_batched:
            for index, batch in enumerate(self._each()):
                if index >= count:
                    return
                yield batch
            return
        size = batch_size or 32
        order = numpy.arange(self.samples) if generator is None else generator.permutation(self.samples)
        for index in range(count):
            chosen = order[index * size : (index + 1) * size]
            yield keras.tree.map_structure(lambda it: None if it is None else it[chosen], self._arrays)

    def _each(self) -> Iterator[Batch]:
        if isinstance(self._source, keras.utils.PyDataset):
            for index in range(len(self._source)):
                yield _unpack(self._source[index])
            self._source.on_epoch_end()
            return
        for batch in self._source:
            yield _unpack(batch)

    def count(self) -> int:
        """Number of samples."""
        return self.samples if not self.is_batched else sum(_count(it) for it in self._each())

    def missing(self) -> int:
        """Number of input values that are NaN."""
        x = self.sample()[0] if self.is_batched else self._arrays[0]
        arrays = [it for it in keras.tree.flatten(x) if it.dtype.kind == "f"]
        return sum(int(numpy.isnan(it).sum()) for it in arrays)

    def sample(self) -> tuple[Any, Any]:
        """Inputs and targets of the first samples, to judge the data by."""
        if not self.is_batched:
            x, y, _ = keras.tree.map_structure(lambda it: None if it is None else it[:SAMPLES], self._arrays)
            return x, y
        found: list[Batch] = []
        for batch in self._each():
            found.append(batch)
            if sum(_count(it) for it in found) >= SAMPLES:
                break
        if not found:
            raise ValueError("the data is empty")
        x, y = (keras.tree.map_structure(lambda *parts: numpy.concatenate(parts), *(it[i] for it in found)) for i in (0, 1))
        return x, y


def columns_of(values: Any) -> Any:
    """Returns the values of every feature, the last axis, as rows.

    Example:
        >>> import numpy
        >>> columns_of(numpy.array([[1, 10], [2, 20]])).tolist()
        [[1.0, 2.0], [10.0, 20.0]]
    """
    array = numpy.asarray(values, "float64")
    return array.reshape(-1, array.shape[-1]).T


def limits(values: Any) -> tuple[float, float]:
    """Returns the smallest and largest value of a feature that are not outliers."""
    everything = (-numpy.inf, numpy.inf)
    if not values.size:
        return everything
    first, ground, third = numpy.quantile(values, [0.25, 0.5, 0.75])
    low = high = ground
    if first >= third:
        # Half of the values are the same, as in images on a plain ground: the others decide.
        others = values[values != ground]
        if not others.size:
            return everything
        first, third = numpy.quantile(others, [0.25, 0.75])
        if first >= third:
            return everything
    reach = FAR * (third - first)
    return float(min(first - reach, low)), float(max(third + reach, high))


def task_of(y: Any, loss: str | None, units: int | None) -> str | None:
    """Kind of task by targets, loss and output units: ``binary``, ``multi_class``, ``multi_label`` or ``regression``.

    Example:
        >>> import numpy
        >>> task_of(numpy.array([0.0, 2.0, 1.0]), "sparse_categorical_crossentropy", 3), task_of(numpy.eye(3), "mse", 3)
        ('multi_class', 'multi_class')
        >>> task_of(numpy.array([0, 1]), "binary_crossentropy", 1), task_of(numpy.array([0, 1]), "mse", 2)
        ('binary', 'multi_class')
        >>> task_of(numpy.array([3, 1, 2]), "mse", 1), task_of(numpy.array([[1, 1], [0, 1]]), "binary_crossentropy", 2)
        ('regression', 'multi_label')
    """
    if not isinstance(y, numpy.ndarray) or y.dtype.kind not in "fiub":
        return None
    is_sparse = loss == "sparse_categorical_crossentropy"
    columns = 1 if y.ndim < 2 or is_sparse else y.shape[-1]
    flat = numpy.asarray(y, "float64").reshape(-1, columns)
    are_flags = bool(numpy.isin(flat, (0.0, 1.0)).all())
    if columns > 1:
        if not are_flags:
            return "regression"
        return "multi_class" if bool((flat.sum(1) == 1).all()) else "multi_label"
    if are_flags and (units or 1) == 1:
        return "binary"
    is_whole = bool((flat == numpy.floor(flat)).all()) and float(flat.min()) >= 0
    names_classes = is_sparse or loss in ("categorical_crossentropy", "binary_crossentropy")
    if is_whole and (names_classes or ((units or 1) > 1 and flat.max() < (units or 1))):
        return "multi_class"
    return "regression"


def facts_of_data(x: Any, y: Any, task: str | None, loss: str | None, missing: int = 0) -> dict[str, Any]:
    """Facts about the data and the best constant prediction."""
    facts: dict[str, Any] = {"task": task}
    if isinstance(x, numpy.ndarray) and x.dtype.kind in "fiu" and x.ndim > 1:
        rows = columns_of(x)
        with numpy.errstate(all="ignore"):
            spread = [float(row[numpy.isfinite(row)].std()) if numpy.isfinite(row).any() else 0.0 for row in rows]
        facts["constant_inputs"] = sum(it == 0 for it in spread) / max(len(spread), 1)
        facts["input_spread"] = max(spread, default=0.0)
        facts["missing_inputs"] = missing
    if task is None:
        return facts
    columns = 1 if y.ndim < 2 or loss == "sparse_categorical_crossentropy" else y.shape[-1]
    flat = numpy.asarray(y, "float64").reshape(-1, columns)
    if task == "regression":
        facts |= {"chance": 0.0, "target_range": [float(flat.min()), float(flat.max())]}
        if loss == "mse":
            facts["baseline_loss"] = float(flat.var(0).mean())
        elif loss == "mae":
            facts["baseline_loss"] = float(numpy.abs(flat - numpy.median(flat, 0)).mean())
        return facts
    if task == "multi_label":
        shares = flat.mean(0)
        facts |= {"chance": float(numpy.maximum(shares, 1 - shares).mean()), "classes": columns}
        inner = shares[(shares > 0) & (shares < 1)]
        if loss == "binary_crossentropy":
            entropy = -(inner * numpy.log(inner) + (1 - inner) * numpy.log(1 - inner))
            facts["baseline_loss"] = float(entropy.sum() / columns)
        return facts
    labels = flat.argmax(1) if columns > 1 else flat[:, 0].astype("int64")
    counts = numpy.bincount(labels)
    shares = counts[counts > 0] / len(labels)
    facts |= {"chance": float(shares.max()), "classes": max(int(labels.max()) + 1, 2, columns)}
    if loss is not None and loss.endswith("crossentropy") and (loss != "binary_crossentropy" or columns == 1):
        facts["baseline_loss"] = float(-(shares * numpy.log(shares)).sum())
    elif loss in ("mse", "mae") and task == "binary" and columns == 1:
        share = float(flat.mean())
        facts["baseline_loss"] = share * (1 - share) if loss == "mse" else min(share, 1 - share)
    return facts


def accuracy(output: Any, target: Any, task: str | None) -> float:
    """Share of right predictions."""
    output, target = numpy.asarray(output, "float64"), numpy.asarray(target)
    # Probabilities, or logits if any value is outside of [0, 1].
    limit = 0.0 if bool(((output < 0) | (output > 1)).any()) else 0.5
    if task == "multi_label":
        return float(((output > limit) == (target.reshape(output.shape) > 0.5)).mean())
    if output.ndim > 1 and output.shape[-1] > 1:
        labels = target.argmax(-1) if target.shape == output.shape else target.reshape(output.shape[:-1])
        return float((output.argmax(-1) == labels).mean())
    if task == "multi_class":
        # One unit for several classes: its value is the class.
        labels = target.argmax(-1) if target.ndim > 1 and target.shape[-1] > 1 else target.reshape(-1)
        return float((numpy.round(output.reshape(-1)) == labels).mean())
    return float(((output.reshape(-1) > limit) == (target.reshape(-1) > 0.5)).mean())


def r2(output: Any, target: Any) -> float:
    """Coefficient of determination."""
    output, target = (numpy.asarray(it, "float64").reshape(len(it), -1) for it in (output, target))
    if output.shape[1] != target.shape[1]:
        target = numpy.broadcast_to(target, output.shape)
    total = float(((target - target.mean(0)) ** 2).sum())
    return 1.0 - float(((output - target) ** 2).sum()) / total if total > 0 else 0.0


def _is_array(value: Any) -> bool:
    return hasattr(value, "shape") or hasattr(value, "to_numpy")


def _numpy(value: Any) -> Any:
    """Returns a structure of arrays."""
    if value is None or isinstance(value, numpy.ndarray):
        return value
    if isinstance(value, dict):
        return {key: _numpy(it) for key, it in value.items()}
    if isinstance(value, (list, tuple)):
        if value and all(_is_array(it) for it in value):
            return [_numpy(it) for it in value]
        return numpy.asarray(value)
    if hasattr(value, "to_numpy"):
        return value.to_numpy()
    if hasattr(value, "detach"):
        value = value.detach().cpu()
    return numpy.asarray(value)


def _unpack(batch: Any) -> Batch:
    if not isinstance(batch, (list, tuple)) or len(batch) not in (2, 3):
        raise TypeError("a batch must be inputs, targets and perhaps sample weights")
    x, y, *rest = (_numpy(it) for it in batch)
    return x, y, rest[0] if rest else None


def _count(batch: Batch) -> int:
    return len(keras.tree.flatten(batch[0])[0])


def _length(source: Any) -> int | None:
    try:
        length = len(source)
    except TypeError:
        return None
    return length if length >= 0 else None
