"""``surefoot.fit``: training with repair for PyTorch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.finding import Finding

if TYPE_CHECKING:
    import torch


@dataclass
class Attempt:
    """An entry of the ledger: a remedy, the problem that it answers, and its outcome."""

    number: int
    """Attempt number, from 1."""
    parent: int
    """Number of the attempt that it changes; 0 is the training as given."""
    problem: str
    """Id of the problem that it answers."""
    remedies: list[str]
    """Ids of all remedies in it, in the order of their application."""
    change: str
    """Description of the change."""
    state: str = "running"
    """``running``, then ``repaired``, ``persists``, ``new_problem``, ``no_better`` or ``outperformed``."""
    metric: float | None = None
    """Best metric on the validation data."""
    steps: int = 0
    """Optimizer steps spent."""


@dataclass
class Result:
    """Result of :func:`surefoot.fit` and :func:`surefoot.keras.fit`."""

    model: Any
    """The delivered model, with the weights of its best epoch; a PyTorch module is in evaluation mode."""
    status: str
    """``normal``, ``problem``, ``repaired`` or ``failed``."""
    findings: list[Finding]
    """Problems and warnings of the training as given."""
    metric_name: str
    """``accuracy`` or ``r2``, or the name of the given metric."""
    before: float | None
    """Best metric of the training as given on the validation data."""
    after: float | None
    """Metric of the delivered model on the validation data."""
    steps: int
    """Optimizer steps of the training as given and all attempts."""
    remedies: list[str] = field(default_factory=list)
    """Ids of the remedies in the delivered model."""
    ledger: list[Attempt] = field(default_factory=list)
    """All attempts, in order."""
    run: Path | None = None
    """Run directory of the training as given."""
    changes: list[str] = field(default_factory=list)
    """Descriptions of the changes in the delivered model, one sentence each."""
    source_diff: str | None = None
    """The changes as a unified diff of the program; ``None`` if they cannot be written as one with certainty."""

    def diff(self) -> str:
        """Returns the changes as a diff of the program if possible, else as sentences; empty if there are none."""
        return self.source_diff or "\n".join(f"+ {change}" for change in self.changes)


def fit(
    make_model: Callable[[], torch.nn.Module],
    make_optimizer: Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer],
    loss_fn: Callable[[Any, Any], torch.Tensor],
    train: Any,
    validation: Any = None,
    *,
    epochs: int,
    batch_size: int | None = None,
    metric: Callable[[torch.Tensor, torch.Tensor], float] | None = None,
    seed: int = 0,
    device: str | torch.device | None = None,
    repair: bool = True,
    forbid: Iterable[str] = (),
    attempts: int = 16,
    runs: str | Path | None = "runs",
    name: str | None = None,
    quiet: bool = False,
) -> Result:
    """Trains a PyTorch model, and repairs and retrains it if something goes wrong.

    The training as given is watched. At a problem, each of several remedies is tried for 6% to 15% of the steps, and
    the best attempt continues. Unless the problem is certain, the training as given continues in turn with the
    attempts, until it ends or clearly cannot catch up. A repair has to beat its best metric by more than the noise of
    the validation data. The same seed gives the same result.

    Args:
        make_model: Creates the model. It is called again for every attempt, with the same random seed.
        make_optimizer: Creates the optimizer from the parameters, such as ``torch.optim.Adam``.
        loss_fn: Computes the loss of an output and a target.
        train: Training data: a pair of tensors (inputs, targets), a ``Dataset`` or a ``DataLoader``. Samples are
            shuffled in each epoch; the sampler of a ``DataLoader`` is not used.
        validation: Validation data of the same kinds; without it, the training data is evaluated.
        epochs: Number of epochs.
        batch_size: Samples per step; by default that of the ``DataLoader``, else 32.
        metric: Metric of all outputs and targets, better when larger; by default the accuracy for classes and R² for
            numbers.
        seed: Seed of weights, sample order and everything else that is drawn from PyTorch's generators.
        device: Device to which model and data are moved; by default they stay where they are.
        repair: False only reports problems.
        forbid: Ids of remedies that must not be tried, such as ``["optimizer"]``.
        attempts: Maximum number of attempts.
        runs: Directory below which the runs are recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.
        quiet: True prints nothing.

    Example:
        >>> import torch, surefoot
        >>> from torch import nn
        >>> generator = torch.Generator().manual_seed(1)
        >>> x = torch.rand(600, 2, generator=generator) * 2 - 1
        >>> y = (x.norm(dim=1) < 0.8).long()
        >>> def make_model():
        ...     hidden = [part for _ in range(8) for part in (nn.Linear(16, 16), nn.Sigmoid())]
        ...     return nn.Sequential(nn.Linear(2, 16), nn.Sigmoid(), *hidden, nn.Linear(16, 2))
        >>> def make_optimizer(parameters):
        ...     return torch.optim.SGD(parameters, lr=0.1)
        >>> result = surefoot.fit(
        ...     make_model, make_optimizer, nn.CrossEntropyLoss(), (x[:400], y[:400]), (x[400:], y[400:]),
        ...     epochs=20, batch_size=16, runs=None, quiet=True,
        ... )
        >>> result.status, result.after > result.before + 0.2
        ('repaired', True)
    """
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, not {epochs}")
    from surefoot.torch.contest import Trainings

    trainings = Trainings(
        make_model,
        make_optimizer,
        loss_fn,
        train,
        validation,
        epochs=epochs,
        batch_size=batch_size,
        metric=metric,
        seed=seed,
        device=device,
        runs=runs,
        name=name,
    )
    return trainings.run(repair=repair, forbid=forbid, attempts=attempts, quiet=quiet)


def summary(result: Result) -> str:
    """Returns the result as a few lines of text."""

    def number(value: float | None) -> str:
        return "unknown" if value is None else f"{value:.1%}" if result.metric_name == "accuracy" else f"{value:.3f}"

    change = number(result.after)
    if result.status == "repaired":
        change = f"{number(result.before)} → {change}"
    lines = [f"  status     {result.status}"]
    if result.remedies:
        lines.append(f"  remedies   {', '.join(result.remedies)}")
    lines += [f"  {result.metric_name:<10} {change}", f"  trained    {result.steps:,} steps"]
    if result.run is not None:
        lines.append(f"  run        {result.run}")
    return "\n".join(lines)


def read_attempt(text: str) -> Attempt:
    """Reads an attempt that the core proposes."""
    return Attempt(**json.loads(text))
