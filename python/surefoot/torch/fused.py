"""Statistics of many tensors on a GPU in two kernel launches, written in Triton.

With plain operations, the statistics of a tensor take about twenty launches. Where Triton is missing,
``surefoot.torch.device`` uses those.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except Exception:  # noqa: BLE001 - an installation without a working Triton is usual
    triton = None

_CODES = {torch.float32: 0, torch.bfloat16: 1, torch.float16: 2}
_STRETCH = 8192
"""Values that one program reads of a tensor whose rows are not told apart."""
_PARTS = 9
"""Numbers of a stretch: finite, NaN, zero, sum, squares, magnitudes, beyond the limits, smallest, largest."""
_TABLES: dict[tuple[Any, ...], _Table] = {}
_LARGEST = 256
"""Tables that are kept. Batches of changing sizes need a new one each."""


def works_on(device: torch.device) -> bool:
    """True if the kernels run on ``device``. Triton's interpreter, for tests, runs them on the CPU."""
    return triton is not None and (device.type == "cuda" or os.environ.get("TRITON_INTERPRET") == "1")


def can_measure(tensors: Sequence[Tensor]) -> bool:
    """True if the tensors are of one device and one format that the kernels read, and dense."""
    first = tensors[0]
    return first.dtype in _CODES and all(
        it.dtype == first.dtype and it.device == first.device and it.is_contiguous() and it.numel() > 0 for it in tensors
    )


def statistics(tensors: Sequence[Tensor], rows: Sequence[bool], limits: tuple[float, float] | None) -> Tensor:
    """Computes the ten numbers of ``device.statistics`` for each tensor: a row of the result each.

    Args:
        tensors: Tensors for which ``can_measure`` is true.
        rows: For each tensor, True to count its rows of zeros.
        limits: Bounds; values at or beyond them are counted in tensors whose rows are not.
    """
    first = tensors[0]
    key = (first.device, first.dtype, tuple(it.shape for it in tensors), tuple(rows))
    table = _TABLES.get(key)
    if table is None:
        if len(_TABLES) >= _LARGEST:
            _TABLES.clear()
        table = _TABLES[key] = _Table([it.shape for it in tensors], rows, first.dtype, first.device)
    return table.measure([it.data_ptr() for it in tensors], limits or (-math.inf, math.inf))


class _Table:
    """The stretches of a list of tensors, on their device. Only the addresses change from step to step."""

    def __init__(
        self, shapes: Sequence[torch.Size], rows: Sequence[bool], dtype: torch.dtype, device: torch.device
    ) -> None:
        tensor_of: list[int] = []
        offset: list[int] = []
        length: list[int] = []
        first = [0]
        for index, (shape, by_row) in enumerate(zip(shapes, rows, strict=True)):
            count = math.prod(shape)
            width = count // shape[0] if by_row else _STRETCH
            for begin in range(0, count, width):
                tensor_of.append(index)
                offset.append(begin)
                length.append(min(width, count - begin))
            first.append(len(tensor_of))
        self._tensor_of = torch.tensor(tensor_of, dtype=torch.int32, device=device)
        self._offset = torch.tensor(offset, dtype=torch.int64, device=device)
        self._length = torch.tensor(length, dtype=torch.int32, device=device)
        self._first = torch.tensor(first, dtype=torch.int32, device=device)
        self._by_row = torch.tensor([int(it) for it in rows], dtype=torch.int32, device=device)
        self._parts = torch.empty(len(tensor_of), _PARTS, device=device)
        self._addresses: list[int] = []
        self._base = torch.empty(len(shapes), dtype=torch.int64, device=device)
        self._block = 1024 if max(length) > 512 else 256
        self._code = _CODES[dtype]

    def measure(self, addresses: list[int], limits: tuple[float, float]) -> Tensor:
        if addresses != self._addresses:
            # Gradients and weights usually stay where they are.
            host = torch.tensor(addresses, dtype=torch.int64)
            if self._base.is_cuda:
                host = host.pin_memory()
            self._base.copy_(host, non_blocking=True)
            self._addresses = addresses
        result = torch.empty(len(addresses), 10, device=self._base.device)
        _measure_stretches[(len(self._length),)](
            self._base, self._tensor_of, self._offset, self._length, self._parts, limits[0], limits[1],
            BLOCK=self._block, CODE=self._code,
        )  # fmt: skip
        _merge_stretches[(len(addresses),)](
            self._parts, self._length, self._first, self._by_row, result, BLOCK=256
        )
        return result


if triton is not None:

    @triton.jit  # type: ignore[untyped-decorator]
    def _measure_stretches(  # type: ignore[no-untyped-def]
        base, tensor_of, offset, length, parts, low, high, BLOCK: tl.constexpr, CODE: tl.constexpr
    ):
        """Reads one stretch and stores its nine numbers."""
        stretch = tl.program_id(0)
        address = tl.load(base + tl.load(tensor_of + stretch))
        if CODE == 0:
            values = address.to(tl.pointer_type(tl.float32))
        elif CODE == 1:
            values = address.to(tl.pointer_type(tl.bfloat16))
        else:
            values = address.to(tl.pointer_type(tl.float16))
        values += tl.load(offset + stretch)
        count = tl.load(length + stretch)
        lane = tl.arange(0, BLOCK)
        finite = tl.zeros([BLOCK], tl.float32)
        nan = tl.zeros([BLOCK], tl.float32)
        zero = tl.zeros([BLOCK], tl.float32)
        total = tl.zeros([BLOCK], tl.float32)
        squares = tl.zeros([BLOCK], tl.float32)
        magnitudes = tl.zeros([BLOCK], tl.float32)
        beyond = tl.zeros([BLOCK], tl.float32)
        smallest = tl.full([BLOCK], float("inf"), tl.float32)
        largest = tl.full([BLOCK], float("-inf"), tl.float32)
        for begin in range(0, count, BLOCK):
            inside = (begin + lane) < count
            x = tl.load(values + begin + lane, mask=inside, other=0.0).to(tl.float32)
            is_finite = inside & (tl.abs(x) < float("inf"))  # false for NaN
            kept = tl.where(is_finite, x, 0.0)
            finite += is_finite.to(tl.float32)
            nan += (inside & (x != x)).to(tl.float32)
            zero += (inside & (x == 0.0)).to(tl.float32)
            total += kept
            squares += kept * kept
            magnitudes += tl.abs(kept)
            beyond += (inside & ((x <= low) | (x >= high))).to(tl.float32)
            smallest = tl.minimum(smallest, tl.where(is_finite, x, float("inf")))
            largest = tl.maximum(largest, tl.where(is_finite, x, float("-inf")))
        part = parts + stretch * 9
        tl.store(part + 0, tl.sum(finite, 0))
        tl.store(part + 1, tl.sum(nan, 0))
        tl.store(part + 2, tl.sum(zero, 0))
        tl.store(part + 3, tl.sum(total, 0))
        tl.store(part + 4, tl.sum(squares, 0))
        tl.store(part + 5, tl.sum(magnitudes, 0))
        tl.store(part + 6, tl.sum(beyond, 0))
        tl.store(part + 7, tl.min(smallest, 0))
        tl.store(part + 8, tl.max(largest, 0))

    @triton.jit  # type: ignore[untyped-decorator]
    def _merge_stretches(  # type: ignore[no-untyped-def]
        parts, length, first, by_row, result, BLOCK: tl.constexpr
    ):
        """Adds up the stretches of one tensor in a fixed order, in double precision."""
        tensor = tl.program_id(0)
        begin = tl.load(first + tensor)
        end = tl.load(first + tensor + 1)
        lane = tl.arange(0, BLOCK)
        count = tl.zeros([BLOCK], tl.float64)
        finite = tl.zeros([BLOCK], tl.float64)
        nan = tl.zeros([BLOCK], tl.float64)
        zero = tl.zeros([BLOCK], tl.float64)
        total = tl.zeros([BLOCK], tl.float64)
        squares = tl.zeros([BLOCK], tl.float64)
        magnitudes = tl.zeros([BLOCK], tl.float64)
        beyond = tl.zeros([BLOCK], tl.float64)
        dead = tl.zeros([BLOCK], tl.float64)
        smallest = tl.full([BLOCK], float("inf"), tl.float32)
        largest = tl.full([BLOCK], float("-inf"), tl.float32)
        for at in range(begin, end, BLOCK):
            inside = (at + lane) < end
            part = parts + (at + lane) * 9
            values = tl.load(length + at + lane, mask=inside, other=0).to(tl.float32)
            zeros = tl.load(part + 2, mask=inside, other=0.0)
            count += values.to(tl.float64)
            finite += tl.load(part, mask=inside, other=0.0).to(tl.float64)
            nan += tl.load(part + 1, mask=inside, other=0.0).to(tl.float64)
            zero += zeros.to(tl.float64)
            total += tl.load(part + 3, mask=inside, other=0.0).to(tl.float64)
            squares += tl.load(part + 4, mask=inside, other=0.0).to(tl.float64)
            magnitudes += tl.load(part + 5, mask=inside, other=0.0).to(tl.float64)
            beyond += tl.load(part + 6, mask=inside, other=0.0).to(tl.float64)
            dead += (inside & (zeros == values)).to(tl.float64)
            smallest = tl.minimum(smallest, tl.load(part + 7, mask=inside, other=float("inf")))
            largest = tl.maximum(largest, tl.load(part + 8, mask=inside, other=float("-inf")))
        row = result + tensor * 10
        all_finite = tl.sum(finite, 0)
        all_nan = tl.sum(nan, 0)
        tl.store(row + 0, all_finite.to(tl.float32))
        tl.store(row + 1, all_nan.to(tl.float32))
        tl.store(row + 2, (tl.sum(count, 0) - all_finite - all_nan).to(tl.float32))
        tl.store(row + 3, tl.sum(zero, 0).to(tl.float32))
        tl.store(row + 4, tl.sum(total, 0).to(tl.float32))
        tl.store(row + 5, tl.sum(squares, 0).to(tl.float32))
        tl.store(row + 6, tl.min(smallest, 0))
        tl.store(row + 7, tl.max(largest, 0))
        tl.store(row + 8, tl.sum(magnitudes, 0).to(tl.float32))
        share = tl.where(tl.load(by_row + tensor) != 0, tl.sum(dead, 0), tl.sum(beyond, 0))
        tl.store(row + 9, share.to(tl.float32))
