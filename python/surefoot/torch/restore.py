"""Delivered models of recorded runs."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.torch.actions import CannotApply, Subject
from surefoot.torch.contest import Generators

_SAMPLES = 4
"""Samples of the made-up batch with which a model is observed."""

_OF_MODEL = frozenset(
    ("add_batch_norm", "add_residual", "swap_activation", "set_output_units", "set_output_activation",
     "normalize_data", "scale_targets", "swap_loss")
)  # fmt: skip
"""Actions that change a model; the others change its training."""

_TYPES = {
    "BOOL": torch.bool, "U8": torch.uint8, "I8": torch.int8, "I16": torch.int16, "I32": torch.int32,
    "I64": torch.int64, "F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32, "F64": torch.float64,
}  # fmt: skip


def restore(directory: Path, make_model: Callable[[], nn.Module], facts: dict[str, Any]) -> nn.Module:
    """Creates the model, applies the recorded actions and loads the recorded weights."""
    weights = read_arrays(directory / "model.safetensors")
    with Generators(0):
        model = make_model()
        if not isinstance(model, nn.Module):
            raise TypeError(f"make_model must return a torch.nn.Module, not {type(model).__name__}")
        actions = [it for it in facts["actions"] if it["action"] in _OF_MODEL]
        if actions:
            _apply(model, actions, facts, directory)
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = "; ".join(line.strip() for line in str(error).splitlines()[1:4])
        raise ValueError(f"make_model creates another model than the one of {directory}: {reason}") from None
    return model.eval()


def _apply(model: nn.Module, actions: list[dict[str, Any]], facts: dict[str, Any], directory: Path) -> None:
    if any(it is None for it in facts["inputs"]):
        raise ValueError(f"{directory} cannot be loaded: its model takes other inputs than tensors")
    inputs = tuple(_made_up(it) for it in facts["inputs"])
    targets = None if facts["targets"] is None else _made_up(facts["targets"])
    parameters = [it for it in model.parameters() if it.requires_grad]
    subject = Subject(model, torch.optim.SGD(parameters, lr=0.1), nn.Identity(), inputs, targets, batch_size=_SAMPLES)
    for action in actions:
        try:
            subject.apply(action)
        except CannotApply as reason:
            raise ValueError(f"make_model creates another model than the one of {directory}: {reason}") from None


def _made_up(form: dict[str, Any]) -> Tensor:
    return torch.zeros(_SAMPLES, *form["shape"], dtype=getattr(torch, form["dtype"]))


def read_arrays(path: Path) -> dict[str, Tensor]:
    """Reads the tensors of a safetensors file."""
    content = bytearray(path.read_bytes())
    size = int.from_bytes(content[:8], "little")
    arrays = {}
    for name, entry in json.loads(content[8 : 8 + size].decode()).items():
        if name == "__metadata__":
            continue
        start, end = (8 + size + offset for offset in entry["data_offsets"])
        empty = torch.empty(0, dtype=_TYPES[entry["dtype"]])
        values = torch.frombuffer(content[start:end], dtype=_TYPES[entry["dtype"]]) if end > start else empty
        arrays[name] = values.reshape(entry["shape"]).clone()
    return arrays
