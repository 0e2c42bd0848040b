"""``surefoot.fit`` and ``surefoot.repair``: training with repair for PyTorch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot import _core
from surefoot.board import inline
from surefoot.finding import Finding

if TYPE_CHECKING:
    import torch

    from surefoot.torch.loop import Setup


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
    error: str | None = None
    """Error that ended it, if one did."""


@dataclass
class Result:
    """Result of :func:`surefoot.fit`, :func:`surefoot.repair` and :func:`surefoot.keras.fit`."""

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
    unwritten: list[str] = field(default_factory=list)
    """Changes that ``source_diff`` leaves out, such as new initial weights, one sentence each."""

    def diff(self) -> str:
        """Returns the changes as a diff of the program if possible, else as sentences; empty if there are none.

        Comments after the diff name what it leaves out.
        """
        if self.source_diff is None:
            return "\n".join(f"+ {change}" for change in self.changes)
        return self.source_diff + "".join(f"# Not in the diff: {change}\n" for change in self.unwritten)

    def _repr_html_(self) -> str | None:
        return inline(_core.report(self.run)) if self.run is not None else None


def fit(
    make_model: torch.nn.Module | Callable[[], torch.nn.Module],
    make_optimizer: torch.optim.Optimizer | Callable[[Iterable[torch.nn.Parameter]], torch.optim.Optimizer],
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
        make_model: Function that creates the model; it is called again for every attempt, with the same random seed.
            A model itself is copied for every attempt and stays as it is.
        make_optimizer: Function that creates the optimizer from the parameters, such as ``torch.optim.Adam``; or,
            with a model, its optimizer.
        loss_fn: Computes the loss of an output and a target.
        train: Training data: a pair of tensors or arrays (inputs, targets), a ``Dataset`` or a ``DataLoader``. Samples
            are shuffled in each epoch; the sampler of a ``DataLoader`` is not used.
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
    check_options(epochs=epochs, batch_size=batch_size, seed=seed, attempts=attempts)
    allowed = check_forbid(forbid)
    _check_training(make_model, make_optimizer, loss_fn, metric)
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
    return trainings.run(repair=repair, forbid=allowed, attempts=attempts, quiet=quiet)


def repair(
    train: Callable[[Setup], object],
    *,
    seed: int = 0,
    repair: bool = True,
    forbid: Iterable[str] = (),
    attempts: int = 16,
    runs: str | Path | None = "runs",
    name: str | None = None,
    quiet: bool = False,
) -> Result:
    """Runs your own PyTorch training loop, and repairs and runs it again if something goes wrong.

    ``train`` is called once for the training as given and once for every attempt, with the same random seed. It passes
    its model, optimizer, loss function and training data through ``setup``, which returns them changed by the attempt,
    and reports steps and evaluations. The rest is as in :func:`surefoot.fit`: each call runs in a thread of its own
    that pauses in ``setup.step``, so that attempts take turns and only one of them runs at a time. Code of ``train``
    outside the loop over ``setup.epochs`` runs once per attempt, too.

    Args:
        train: Training loop: a function of a ``Setup``.
        seed: Seed of the generators of PyTorch, NumPy and Python in each call.
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
        >>> def train(setup):
        ...     hidden = [part for _ in range(8) for part in (nn.Linear(16, 16), nn.Sigmoid())]
        ...     model = setup.model(nn.Sequential(nn.Linear(2, 16), nn.Sigmoid(), *hidden, nn.Linear(16, 2)))
        ...     optimizer = setup.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        ...     loss_fn = setup.loss(nn.CrossEntropyLoss())
        ...     loader = setup.loader((x[:400], y[:400]), batch_size=16, shuffle=True)
        ...     for epoch in setup.epochs(20):
        ...         for inputs, targets in loader:
        ...             loss = loss_fn(model(inputs), targets)
        ...             optimizer.zero_grad()
        ...             loss.backward()
        ...             optimizer.step()
        ...             setup.step(loss)
        ...         with torch.no_grad():
        ...             output = model(x[400:])
        ...             accuracy = (output.argmax(1) == y[400:]).float().mean()
        ...             setup.evaluation(loss_fn(output, y[400:]), accuracy=accuracy, samples=200)
        >>> result = surefoot.repair(train, runs=None, quiet=True)
        >>> result.status, result.after > result.before + 0.2
        ('repaired', True)
    """
    check_options(seed=seed, attempts=attempts)
    allowed = check_forbid(forbid)
    from surefoot.torch.loop import Trainings, check_loop

    check_loop(train)
    trainings = Trainings(train, seed=seed, runs=runs, name=name)
    return trainings.run(repair=repair, forbid=allowed, attempts=attempts, quiet=quiet)


def check_options(**numbers: int | None) -> None:
    """Raises an error for an option that is not a whole number, or too small."""
    for option, value in numbers.items():
        least = 0 if option in ("seed", "attempts") else 1
        if value is None and option == "batch_size":
            continue
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{option} must be a whole number, not {value!r}")
        if value < least:
            raise ValueError(f"{option} must be at least {least}, not {value}")


def check_forbid(forbid: Iterable[str]) -> list[str]:
    """Returns the ids of forbidden remedies, or raises an error if there is no such remedy."""
    ids = [forbid] if isinstance(forbid, str) else list(forbid)
    known = _core.remedies()
    for it in ids:
        if it not in known:
            raise ValueError(f"forbid: unknown remedy {it!r}; available: {', '.join(known)}")
    return ids


def _check_training(make_model: Any, make_optimizer: Any, loss_fn: Any, metric: Any) -> None:
    import torch

    is_model = isinstance(make_model, torch.nn.Module)
    if not is_model and not callable(make_model):
        raise TypeError(f"make_model must be a model or a function that creates one, not {type(make_model).__name__}")
    if isinstance(make_optimizer, torch.optim.Optimizer):
        if not is_model:
            raise TypeError(
                "an optimizer belongs to one model; with a function that creates models, pass a function that creates "
                "optimizers, such as lambda parameters: torch.optim.SGD(parameters, lr=0.1)"
            )
        own = {id(it) for it in make_model.parameters()}
        given = [it for group in make_optimizer.param_groups for it in group["params"]]
        if not any(id(it) in own for it in given):
            raise ValueError("the optimizer has no parameters of this model")
    elif not callable(make_optimizer):
        raise TypeError(
            "make_optimizer must be a function that creates an optimizer from parameters, such as torch.optim.Adam, "
            f"not {type(make_optimizer).__name__}"
        )
    if isinstance(loss_fn, type):
        raise TypeError(f"loss_fn is the class {loss_fn.__name__}; pass an object of it: {loss_fn.__name__}()")
    if not callable(loss_fn):
        raise TypeError(f"loss_fn must be a function of outputs and targets, not {type(loss_fn).__name__}")
    if metric is not None and not callable(metric):
        raise TypeError(f"metric must be a function of outputs and targets, not {type(metric).__name__}")


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
