"""``surefoot.watch``: the entry point for training loops."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.session import OnFinding

if TYPE_CHECKING:
    import torch

    from surefoot.torch.watch import Watch


def watch(
    model: torch.nn.Module | Sequence[torch.nn.Module],
    optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
    *,
    epochs: int | None = None,
    steps_per_epoch: int | None = None,
    runs: str | Path | None = "runs",
    name: str | None = None,
    every: int | None = None,
    on_finding: OnFinding = "warn",
    thresholds: dict[str, object] | None = None,
    recover: bool = False,
    writer: Any = None,
) -> Watch:
    """Watches a PyTorch training loop and reports problems as they occur.

    Use it as a context manager around the loop, and call ``run.step(loss)`` after ``optimizer.step()``. Without a
    ``with`` block it starts at the first ``run.step`` and ends with the program, or at ``run.finish()``. An error inside
    Surefoot never ends the training: it warns once and switches itself off.

    Args:
        model: The model, or several (a generator and a discriminator).
        optimizer: Its optimizer, or several. Without it, every ``run.step`` counts as an optimizer step.
        epochs: Number of planned epochs. With ``steps_per_epoch``, problems of convergence are recognized earlier.
        steps_per_epoch: Optimizer steps per epoch, usually ``len(loader)``.
        runs: Directory below which the run is recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.
        every: Interval of observations in steps; by default chosen so that observing takes about 1% of the time.
        on_finding: ``"warn"`` prints each finding once, ``"raise"`` raises :class:`surefoot.TrainingProblem` at the
            first problem, ``"ignore"`` only collects findings, and a function is called with each.
        thresholds: Limits of the detectors, as for ``surefoot diagnose --set``: ``{"theta": 0.7}``.
        recover: Skip updates whose gradient is NaN, infinite or much larger than before; if that does not help, reduce
            the learning rate, then return to an earlier state; each a limited number of times, and each reported as a
            ``bad_step``. On a GPU, every step then waits for the device.
        writer: A TensorBoard ``SummaryWriter`` that receives findings. Active W&B and MLflow runs receive them too.

    Example:
        >>> import torch, surefoot
        >>> _ = torch.manual_seed(0)
        >>> x = torch.rand(256, 2) * 2 - 1
        >>> y = (x.norm(dim=1) < 0.8).float().unsqueeze(1)
        >>> layers = [layer for _ in range(8) for layer in (torch.nn.Linear(8, 8), torch.nn.Sigmoid())]
        >>> model = torch.nn.Sequential(torch.nn.Linear(2, 8), *layers, torch.nn.Linear(8, 1))
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> with surefoot.watch(model, optimizer, epochs=1, steps_per_epoch=300, runs=None, on_finding="ignore") as run:
        ...     for _ in range(300):
        ...         loss = torch.nn.functional.binary_cross_entropy_with_logits(model(x), y)
        ...         optimizer.zero_grad()
        ...         loss.backward()
        ...         optimizer.step()
        ...         run.step(loss)
        >>> "vanishing_gradient" in [finding.problem for finding in run.findings]
        True
    """
    for option, value in (("epochs", epochs), ("steps_per_epoch", steps_per_epoch)):
        if value is not None and value < 1:
            raise ValueError(f"{option} must be at least 1, not {value}")
    torch = sys.modules.get("torch")
    models = model if isinstance(model, Sequence) else [model]
    if torch is None or not models or not all(isinstance(it, torch.nn.Module) for it in models):
        raise TypeError(
            f"model must be a torch.nn.Module or a sequence of them, not {type(model).__name__}; "
            "for Keras, pass surefoot.keras.Watch() to model.fit(callbacks=[...])"
        )
    from surefoot.torch.watch import Watch

    return Watch(
        model,
        optimizer,
        epochs=epochs,
        steps_per_epoch=steps_per_epoch,
        runs=runs,
        name=name,
        every=every,
        on_finding=on_finding,
        thresholds=thresholds,
        recover=recover,
        writer=writer,
    )
