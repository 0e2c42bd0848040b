"""Statistics of tensors on a GPU, copied to the host without waiting for the device."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from surefoot.session import Session

COPY_EVERY = 8
"""Steps whose results are copied together, so that a step that is not observed launches nothing."""

SAMPLE = 4096
"""Values of a tensor by which the size of an update is measured."""

_BOUNDS = {"sigmoid": (0.01, 0.99), "hard_sigmoid": (0.01, 0.99), "tanh": (-0.98, 0.98)}


def number(value: Tensor | float) -> Tensor | float:
    """The value as a number, unless it is a tensor on a GPU: reading that would wait for the device."""
    if isinstance(value, Tensor):
        return float(value.item()) if value.is_cpu else value.detach()
    return float(value)


def bounds(activation: str | None) -> tuple[float, float] | None:
    """Outputs at or beyond these are saturated; ``None`` for an activation without bounds."""
    return _BOUNDS.get(activation or "")


def statistics(tensor: Tensor, rows: bool, limits: tuple[float, float] | None) -> Tensor:
    """Computes ten numbers on the device of ``tensor``.

    They are the number of finite, NaN, infinite and zero values, the sum, the sum of squares, the smallest, the
    largest, the sum of magnitudes, and the number of zero rows (or of values beyond the limits).
    """
    x = tensor.detach()
    finite = torch.isfinite(x)
    v = torch.where(finite, x, 0).float()
    inf = torch.full((), float("inf"), device=x.device)
    if limits is not None:
        share = ((x <= limits[0]) | (x >= limits[1])).sum()
    elif rows:
        share = (x.flatten(1) == 0).all(1).sum()
    else:
        share = torch.zeros((), device=x.device)
    numbers = [
        finite.sum(),
        torch.isnan(x).sum(),
        torch.isinf(x).sum(),
        (x == 0).sum(),
        v.sum(),
        (v * v).sum(),
        torch.where(finite, x.float(), inf).min(),
        torch.where(finite, x.float(), -inf).max(),
        v.abs().sum(),
        share,
    ]
    return torch.stack([it.float() for it in numbers])


def _statistics(tensors: list[Tensor], rows: list[bool], limits: tuple[float, float] | None) -> Tensor:
    """Rows of ten numbers, by fused kernels where they work."""
    if tensors[0].device.type != "cpu" or "TRITON_INTERPRET" in os.environ:
        from surefoot.torch import fused

        if fused.works_on(tensors[0].device) and fused.can_measure(tensors):
            return fused.statistics(tensors, rows, limits)
    return torch.stack([statistics(it, by_row, limits) for it, by_row in zip(tensors, rows, strict=True)])


@dataclass
class _Measurement:
    """Statistics of one layer, still on the device: a row of ten numbers per tensor."""

    quantity: str
    layer: int
    rows: Tensor
    count: int
    """Rows or values that the last number counts; 0 if it has no meaning."""
    scale: float
    moved: Tensor | None = None
    """Sums of squares of the change and of the weights, in a sample."""


class _Step(NamedTuple):
    """A step whose loss may still be on the device."""

    losses: list[Tensor | float]
    metric: Tensor | float | None
    epoch: int | None
    rate: float | None
    measurements: list[_Measurement]

    def tensors(self) -> list[Tensor]:
        """Numbers that are still on a device."""
        found = [it for it in [*self.losses, self.metric] if isinstance(it, Tensor)]
        for measurement in self.measurements:
            found.append(measurement.rows)
            if measurement.moved is not None:
                found.append(measurement.moved)
        return found


class Queue:
    """Steps in order, on their way from the device to the session."""

    def __init__(self) -> None:
        self._waiting: list[_Step] = []
        self._copied: deque[tuple[list[_Step], Tensor, Any]] = deque()
        self._measurements: list[_Measurement] = []
        self._samples: dict[int, list[Tensor]] = {}

    def __len__(self) -> int:
        under_way = sum(len(steps) for steps, _, _ in self._copied) if self._copied else 0
        return len(self._waiting) + under_way

    def put(
        self, losses: list[Tensor | float], metric: Tensor | float | None, epoch: int | None, rate: float | None
    ) -> None:
        """Adds a step with the measurements since the previous one."""
        self._waiting.append(_Step(losses, metric, epoch, rate, self._measurements))
        self._measurements = []

    def measure(
        self,
        quantity: str,
        layers: Mapping[int, Sequence[Tensor]],
        rows: Mapping[int, bool],
        scale: float,
        limits: tuple[float, float] | None = None,
    ) -> None:
        """Starts the statistics of the tensors of some layers."""
        units = {layer: rows.get(layer, False) for layer in layers}
        flat = [(it, units[layer] and at == 0) for layer, them in layers.items() for at, it in enumerate(them)]
        numbers = _statistics([it for it, _ in flat], [by_row for _, by_row in flat], limits) if flat else None
        begin = 0
        for layer, tensors in layers.items():
            assert numbers is not None
            count = tensors[0].shape[0] if units[layer] else tensors[0].numel() if limits else 0
            end = begin + len(tensors)
            measurement = _Measurement(quantity, layer, numbers[begin:end], count, scale)
            begin = end
            before = self._samples.pop(layer, None) if quantity == "weight" else None
            if before is not None and len(before) == len(tensors):
                sums = [torch.zeros(2, device=numbers.device)]
                for old, tensor in zip(before, tensors, strict=True):
                    new = _sampled(tensor)
                    weight = tensor.numel() / max(new.numel(), 1)
                    sums.append(weight * torch.stack([((new - old) ** 2).sum(), (new**2).sum()]))
                measurement.moved = torch.stack(sums).sum(0)
            self._measurements.append(measurement)

    def sample(self, layers: Mapping[int, Sequence[Tensor]]) -> None:
        """Remembers some values of the weights of each layer before an update."""
        self._samples = {layer: [_sampled(it) for it in tensors] for layer, tensors in layers.items()}

    def deliver(self, session: Session, *, wait: bool) -> None:
        """Passes the steps whose numbers have arrived to ``session``; all of them with ``wait``."""
        if not self._copied:
            while self._waiting and not self._waiting[0].tensors():
                _deliver(session, self._waiting.pop(0), [])
        on_host = all(it.device.type == "cpu" for step in self._waiting for it in step.tensors())
        if self._waiting and (on_host or wait or len(self._waiting) >= COPY_EVERY):
            steps, self._waiting = self._waiting, []
            tensors = [it.reshape(-1).float() for step in steps for it in step.tensors()]
            if on_host:
                flat = torch.cat(tensors) if tensors else torch.empty(0)
                self._copied.append((steps, flat, None))
            else:
                self._copied.append((steps, *_copy([it.to(tensors[-1].device) for it in tensors])))
        while self._copied:
            steps, numbers, event = self._copied[0]
            if event is not None and not event.query():
                # Two copies under way are enough: a problem must not be reported much too late.
                if not wait and len(self._copied) < 3:
                    return
                event.synchronize()
            self._copied.popleft()
            values = numbers.tolist()
            for step in steps:
                values = _deliver(session, step, values)


def _copy(tensors: list[Tensor]) -> tuple[Tensor, Any]:
    flat = torch.cat(tensors)
    if flat.device.type != "cuda":
        return flat.cpu(), None
    host = torch.empty(flat.shape, dtype=flat.dtype, pin_memory=True)
    host.copy_(flat, non_blocking=True)
    event = torch.cuda.Event()
    event.record()
    return host, event


def _sampled(tensor: Tensor) -> Tensor:
    flat = tensor.detach().reshape(-1)
    # An odd stride meets every column of the usual, even-sized matrices.
    return flat[:: max(-(-flat.numel() // SAMPLE), 1) | 1].float().clone()


def _deliver(session: Session, step: _Step, values: list[float]) -> list[float]:
    """Reports a step and returns the values of the later ones."""

    def take(given: Tensor | float | None) -> float | None:
        return values.pop(0) if isinstance(given, Tensor) else given

    losses = [take(it) for it in step.losses]
    metric = take(step.metric)
    for measurement in step.measurements:
        count = measurement.rows.numel()
        rows, values = values[:count], values[count:]
        moved = None
        if measurement.moved is not None:
            (change, weights), values = values[:2], values[2:]
            moved = (change / weights) ** 0.5 if weights > 0 else None
        _report(session, measurement, rows, moved)
    known = [it for it in losses if it is not None]
    session.step(sum(known) / max(len(known), 1), epoch=step.epoch, metric=metric, learning_rate=step.rate)
    return values


def _report(session: Session, measurement: _Measurement, numbers: list[float], moved: float | None) -> None:
    rows = [numbers[at : at + 10] for at in range(0, len(numbers), 10)]
    finite, nan, inf, zeros, total, squares = (sum(row[i] for row in rows) for i in range(6))
    factor = 1.0 / measurement.scale
    mean = total / finite * factor if finite else 0.0
    variance = max(squares / finite * factor**2 - mean**2, 0.0) if finite else 0.0
    low, high = (min(row[6] for row in rows) * factor, max(row[7] for row in rows) * factor)
    l1 = sum(row[8] for row in rows) * factor
    share = rows[0][9] / measurement.count if measurement.count else None
    session.core.measured(
        measurement.quantity,
        measurement.layer,
        [finite, nan, inf, zeros, mean, variance, low, high, l1],
        moved if measurement.quantity == "weight" else share,
    )
