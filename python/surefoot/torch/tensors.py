"""Tensors as the core reads them: local, contiguous, of a known format."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FORMATS = frozenset({torch.float16, torch.bfloat16, torch.float32, torch.float64})
"""Number formats whose statistics are taken."""

_PLAIN = (Tensor, nn.Parameter)
_FORMAT_NAMES: dict[torch.dtype, str] = {}


def local(tensor: Tensor) -> Tensor:
    """The shard of this process, of a distributed tensor."""
    # A missing attribute of a tensor takes a microsecond to find out.
    return tensor if type(tensor) in _PLAIN or not hasattr(tensor, "to_local") else tensor.to_local()


def dense(tensor: Tensor) -> Tensor:
    """The tensor itself if its values are contiguous in any order, else a contiguous copy."""
    if tensor.is_contiguous() or (
        tensor.dim() == 4 and tensor.is_contiguous(memory_format=torch.channels_last)
    ):
        return tensor
    return tensor.contiguous()


def is_measurable(tensor: Tensor) -> bool:
    """True for a dense tensor of a number format whose statistics are taken."""
    return tensor.dtype in FORMATS and tensor.layout is torch.strided


def address(parameter: Tensor) -> int:
    """The address of its values, or 0 if they are not contiguous, so that the core does not read them."""
    tensor = local(parameter)
    return tensor.data_ptr() if dense(tensor) is tensor else 0


def format_of(tensor: Tensor) -> str:
    """The name of its number format, such as ``"float32"``."""
    name = _FORMAT_NAMES.get(tensor.dtype)
    if name is None:
        name = _FORMAT_NAMES[tensor.dtype] = str(tensor.dtype).removeprefix("torch.")
    return name


def first_tensor(output: Any) -> Tensor | None:
    """The first tensor in an output of tuples, lists and dictionaries; None if there is none."""
    if isinstance(output, Tensor):
        return output
    if isinstance(output, dict):
        output = list(output.values())
    if isinstance(output, (tuple, list)):
        return next((found for it in output if (found := first_tensor(it)) is not None), None)
    return None
