"""``surefoot.load``: the delivered model of a run as a PyTorch module."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot import _core

if TYPE_CHECKING:
    import torch


def load(run: str | Path, make_model: Callable[[], torch.nn.Module] | None = None) -> torch.nn.Module:
    """Returns the delivered model of a run as a PyTorch module in evaluation mode.

    Args:
        run: Run directory of ``surefoot train``, :func:`surefoot.fit` or :func:`surefoot.repair`.
        make_model: Function that creates the model as given, for runs of the last two. The recorded changes are
            applied to it, and the recorded weights are loaded.

    Raises:
        ValueError: If the run has no model that can be loaded. The message says why.

    Example:
        >>> import tempfile, torch, surefoot
        >>> from torch import nn
        >>> x = torch.rand(64, 2)
        >>> with tempfile.TemporaryDirectory() as runs:
        ...     result = surefoot.fit(
        ...         lambda: nn.Linear(2, 1), torch.optim.Adam, nn.MSELoss(), (x, x.sum(1, keepdim=True)),
        ...         epochs=2, runs=runs, quiet=True,
        ...     )
        ...     model = surefoot.load(result.run, lambda: nn.Linear(2, 1))
        >>> bool((model(x) == result.model(x)).all())
        True
    """
    directory = Path(run)
    if not (directory / "header.json").is_file():
        raise ValueError(f"{directory} is not a run: it has no header.json")
    if (directory / "plan.toml").is_file():
        if make_model is not None:
            raise ValueError(f"{directory} is a run of `surefoot train`; make_model is only for runs of Python programs")
        return _native(directory)
    program = directory / "program.final.json"
    if not program.is_file() or not (directory / "model.safetensors").is_file():
        raise ValueError(
            f"{directory} has no delivered model; only finished runs of surefoot.fit, surefoot.repair and "
            "`surefoot train` have one"
        )
    facts = json.loads(program.read_text(encoding="utf-8"))
    if "inputs" not in facts:
        raise ValueError(f"{directory} is a run of surefoot.keras.fit; load the model that you saved with model.save")
    if make_model is None:
        raise ValueError(
            f"{directory} is a run of a Python program; pass the function that creates its model: "
            "surefoot.load(run, make_model)"
        )
    from surefoot.torch.restore import restore

    return restore(directory, make_model, facts)


def _native(directory: Path) -> torch.nn.Module:
    if not (directory / "model.safetensors").is_file():
        raise ValueError(f"{directory} has no delivered model: the run is not finished")
    try:
        source = _core.pytorch_source(directory)
    except RuntimeError as error:
        raise ValueError(f"{directory} cannot be loaded: {error}") from None
    module: dict[str, Any] = {"__name__": "surefoot_model"}
    exec(compile(source, str(directory / "model.py"), "exec"), module)
    model: torch.nn.Module = module["Model"]()
    return model.eval()
