"""Repair of users' own training loops: :func:`surefoot.repair`."""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from surefoot import contest
from surefoot.contest import CannotApply
from surefoot.torch.actions import Subject
from surefoot.torch.contest import Generators, TorchContestant, TorchTrainings, loss_of
from surefoot.torch.data import SAMPLES, Batches
from surefoot.turns import Turns

_NEEDS_METRIC = ("swap_loss", "scale_targets")
"""Actions after which losses cannot be compared with those before."""


class Setup:
    """The parts of a training loop, with the changes of an attempt. :func:`surefoot.repair` passes it to the loop.

    A loop passes its model, optimizer, loss function and training data through it, and uses what it gets back.
    """

    def __init__(self, owner: Trainings, contestant: Contestant) -> None:
        self._owner, self._contestant = owner, contestant
        self._model: nn.Module | None = None
        self._loader: DataLoader[Any] | None = None
        self._losses: list[Tensor | float] = []
        self._has_evaluated = False
        self._is_training = False

    def model(self, make_model: nn.Module | Callable[[], nn.Module]) -> nn.Module:
        """Takes the model, or a function that creates it, and returns the model to train."""
        is_module = isinstance(make_model, nn.Module)
        model = make_model if is_module else make_model() if callable(make_model) else None
        if not isinstance(model, nn.Module):
            raise TypeError(f"setup.model needs a torch.nn.Module or a function that creates one, not {make_model!r}")
        if self._model is not None:
            raise RuntimeError("setup.model was called twice; put models that train together into one module")
        self._model = model
        self._owner.factory = None if is_module else make_model
        return model

    def optimizer(self, make_optimizer: torch.optim.Optimizer | Callable[[Any], torch.optim.Optimizer]) -> Any:
        """Takes the optimizer, or a function that creates it from the parameters, and returns the one to use."""
        if self._model is None:
            raise RuntimeError("call setup.model(...) before setup.optimizer(...)")
        optimizer = make_optimizer
        if not isinstance(optimizer, torch.optim.Optimizer) and callable(make_optimizer):
            optimizer = make_optimizer(self._model.parameters())
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(
                f"setup.optimizer needs a torch.optim.Optimizer or a function that creates one, not {make_optimizer!r}"
            )
        return self._contestant.prepare(self._model, optimizer)

    def loss(self, loss_fn: Callable[..., Tensor]) -> Callable[..., Tensor]:
        """Takes the loss function of outputs and targets, and returns the one to use."""
        if not callable(loss_fn):
            raise TypeError(f"setup.loss needs a function of outputs and targets, not {type(loss_fn).__name__}")
        self._owner.loss_fn = self._owner.loss_fn or loss_fn
        return _Loss(loss_fn, self._contestant, self._owner.examples)

    def loader(self, dataset: Any, batch_size: int = 1, shuffle: bool = False, **options: Any) -> DataLoader[Any]:
        """Returns a ``DataLoader`` of the training data, with the arguments of ``DataLoader``.

        The first call is for the training data; later calls return unchanged loaders of other data.

        Args:
            dataset: A ``Dataset``, or a tuple of tensors.
            batch_size: Samples per batch. A repair may increase it.
            shuffle: True shuffles in each epoch, in the same order in every attempt.
            options: Other arguments of ``DataLoader``.
        """
        if isinstance(dataset, (tuple, list)) and all(isinstance(it, Tensor) for it in dataset):
            dataset = TensorDataset(*dataset)
        if self._loader is not None:
            return DataLoader(dataset, batch_size, shuffle, **options)
        if self._contestant.number == 0:
            self._owner.batch_size = batch_size
            self._owner.dataset = dataset
        if shuffle and "generator" not in options:
            options["generator"] = torch.Generator().manual_seed(self._owner.seed)
        size = next((it["size"] for it in reversed(self._contestant.actions) if "size" in it), batch_size)
        self._loader = DataLoader(dataset, size, shuffle, **options)
        return self._loader

    def epochs(self, count: int, steps: int | None = None) -> Iterator[int]:
        """Yields the numbers of the epochs, from 0.

        Args:
            count: Number of epochs. A repair may increase it.
            steps: Calls of :meth:`step` in an epoch; by default the length of the loader.
        """
        if steps is None and self._loader is None:
            raise RuntimeError("create the training data with setup.loader(...), or pass setup.epochs(count, steps=...)")
        if not self._contestant.has_subject:
            raise RuntimeError("call setup.model(...) and setup.optimizer(...) before setup.epochs(...)")
        for action in self._contestant.actions:
            count *= action.get("factor", 1)
        contestant = self._contestant
        contestant.subject.epochs = count
        contestant.observe(steps or len(self._loader or ()))
        self._is_training = True
        contestant.turns.pause()
        for epoch in range(count):
            self._losses, self._has_evaluated = [], False
            yield epoch
            if contestant.subject.scheduler is not None:
                contestant.subject.scheduler.step()
            if not self._has_evaluated and self._losses:
                contestant.trained(float(sum(self._losses)) / len(self._losses))

    def step(self, loss: Tensor | float, *, accuracy: Tensor | float | None = None) -> None:
        """Reports a training step, after ``optimizer.step()``.

        Args:
            loss: Loss of the batch.
            accuracy: Accuracy of the batch, if known.
        """
        if not self._is_training:
            raise RuntimeError("call setup.step(...) inside a loop over setup.epochs(...)")
        contestant = self._contestant
        self._losses.append(loss.detach() if isinstance(loss, Tensor) else loss)
        contestant.steps += 1
        contestant.watch.step(loss, accuracy=accuracy)
        contestant.turns.pause()

    def evaluation(
        self,
        loss: Tensor | float,
        *,
        accuracy: Tensor | float | None = None,
        metric: Tensor | float | None = None,
        samples: int = 0,
    ) -> None:
        """Reports an evaluation on the validation data. The weights of the best one are delivered.

        Args:
            loss: Loss of the validation data.
            accuracy: Accuracy, from 0 to 1.
            metric: Another metric that is better when larger.
            samples: Number of validation samples, from which the noise of the metric follows.
        """
        if not self._is_training:
            raise RuntimeError("call setup.evaluation(...) inside a loop over setup.epochs(...)")
        self._has_evaluated = True
        owner = self._owner
        value = accuracy if accuracy is not None else metric
        if value is not None:
            owner.metric_name = "accuracy" if accuracy is not None else "metric"
            owner.has_metric = True
            owner.validation_samples = samples
        number = None if value is None else float(value)
        self._contestant.evaluated(float(loss), number if number is not None and math.isfinite(number) else None)


class Contestant(TorchContestant):
    """A training loop in a thread that takes turns with the other contestants."""

    _owner: Trainings

    def __init__(self, owner: Trainings, number: int, actions: list[dict[str, Any]]) -> None:
        super().__init__(owner, number, actions)
        self.changes = []
        self.has_subject = False
        device = torch.get_default_device()

        def loop(turns: Turns) -> None:
            if device.type != "cpu":
                torch.set_default_device(device)  # Each thread has its own.
            owner.loop(Setup(owner, self))

        self.turns = Turns(loop)
        try:
            with self._generators:
                if not self.turns.advance():
                    raise RuntimeError("train has returned without a loop over setup.epochs(...)")
        except Exception as error:
            if number == 0:
                raise
            raise CannotApply(str(error)) from error

    def prepare(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> torch.optim.Optimizer:
        """Applies the actions to a new model and its optimizer, and returns the optimizer to use."""
        if self.number == 0:
            self._owner.given = copy.deepcopy((model, optimizer))
            self._owner.examples.attach(model)
        self.subject = self._owner.subject_of(model, optimizer)
        self.changes = [self.subject.apply(action) for action in self.actions]
        self.has_subject = True
        return self.subject.optimizer

    def train(self, until: int) -> None:
        # The last call trains to the end of the loop, however many steps it has.
        super().train(until if until < self.total_steps else 2**62)

    def step(self) -> bool:
        return not self.turns.advance()

    def trained(self, loss: float) -> None:
        """Takes the mean loss of an epoch that was not evaluated."""
        if self.is_best(loss, None):
            self._best = copy.deepcopy(self.subject.model.state_dict())

    def free(self) -> None:
        self.turns.close()

    def standing(self) -> contest.Standing:
        run, share, finished, metric, loss, _ = super().standing()
        return run, share, finished, metric, loss, self._owner.metric_name == "accuracy"


class _Loss:
    """The loss function of a loop, or the one that replaces it."""

    def __init__(self, given: Callable[..., Tensor], contestant: Contestant, examples: Examples) -> None:
        self._given, self._contestant, self._examples = given, contestant, examples

    def __call__(self, output: Any, target: Any, *args: Any, **kwargs: Any) -> Tensor:
        contestant = self._contestant
        if contestant.number == 0:
            self._examples.add_targets(target)
        replaced = contestant.subject.loss_fn if contestant.has_subject else None
        if replaced is None or replaced is contestant._owner.loss_fn:
            return loss_of(self._given, output, target, *args, **kwargs)
        return loss_of(replaced, output, target)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._given, name)


class Examples:
    """Inputs of the model and targets of the loss as the loop passes them, from the first batches."""

    def __init__(self) -> None:
        self._inputs: list[tuple[Any, ...]] = []
        self._targets: list[Tensor] = []
        self._handle: Any = None

    def attach(self, model: nn.Module) -> None:
        """Keeps the inputs of the next forward passes with gradients."""

        def keep(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
            if not torch.is_grad_enabled() or kwargs or not args or not all(isinstance(it, Tensor) for it in args):
                return
            self._inputs.append(tuple(it.detach() for it in args))
            if sum(len(it[0]) for it in self._inputs) >= SAMPLES:
                self.detach()

        self._handle = model.register_forward_pre_hook(keep, with_kwargs=True)

    def detach(self) -> None:
        """Removes the hook."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None

    def add_targets(self, target: Any) -> None:
        """Keeps targets of the loss."""
        if isinstance(target, Tensor) and sum(map(len, self._targets)) < SAMPLES and torch.is_grad_enabled():
            self._targets.append(target.detach())

    def known(self, dataset: Batches | None) -> tuple[Any, Any]:
        """Returns inputs and targets: those of the data set if the loop passes them on as they are, else what it passed."""
        inputs = _joined(self._inputs)
        targets = _joined([(it,) for it in self._targets])
        target = targets[0] if targets else None
        if dataset is None or inputs is None or target is None:
            return inputs, target
        samples, labels = dataset.sample()
        rows = samples if isinstance(samples, (tuple, list)) else (samples,)
        if all(map(_is_like, (*rows, labels), (*inputs, target))) and len(rows) == len(inputs):
            return tuple(it.to(like.device) for it, like in zip(rows, inputs)), labels.to(target.device)
        return inputs, target


class Trainings(TorchTrainings):
    """Calls of a user's training loop."""

    def __init__(
        self, loop: Callable[[Setup], object], *, seed: int, runs: str | Path | None, name: str | None
    ) -> None:
        super().__init__(seed=seed, runs=runs, name=name)
        self.loop = loop
        self.metric_name = "metric"
        self.has_metric = False
        self.validation_samples = 0
        self.examples = Examples()
        self.given: tuple[nn.Module, torch.optim.Optimizer] | None = None
        self.factory: Callable[[], nn.Module] | None = None
        self.loss_fn: Callable[..., Tensor] | None = None
        self.dataset: Any = None
        self.batch_size = 0
        self._known: tuple[Any, Any] | None = None

    def contestant(self, number: int, actions: list[dict[str, Any]]) -> Contestant:
        return Contestant(self, number, actions)

    def build(self, actions: list[dict[str, Any]]) -> tuple[Subject, list[str]]:
        assert self.given is not None  # Every loop over setup.epochs has a model and an optimizer.
        subject = self.subject_of(*copy.deepcopy(self.given))
        return subject, [subject.apply(action) for action in actions]

    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        name = action["action"]
        if name in _NEEDS_METRIC and not self.has_metric:
            raise CannotApply("losses cannot be compared after this change; report a metric with setup.evaluation")
        if name in _NEEDS_METRIC and self.loss_fn is None:
            raise CannotApply("the loop does not pass its loss function through setup.loss")
        if name == "set_batch_size" and not self.batch_size:
            raise CannotApply("the loop does not create its data with setup.loader")
        if name == "set_decay" and any("initial_lr" in it for it in self.contestants[0].subject.optimizer.param_groups):
            raise CannotApply("the loop has a learning-rate scheduler of its own")
        return super().change(applied, action)

    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        self._learn()
        return super().source_diff(actions)

    def facts_of_model(self) -> dict[str, Any]:
        self._learn()
        return super().facts_of_model()

    def subject_of(self, model: nn.Module, optimizer: torch.optim.Optimizer) -> Subject:
        """Returns a training that actions can change."""
        inputs, targets = (None, None)
        epochs = 1
        if 0 in self.contestants:
            inputs, targets = self._learn()
            epochs = self.contestants[0].subject.epochs
        return Subject(
            model,
            optimizer,
            self.loss_fn,  # type: ignore[arg-type]
            inputs,
            targets,
            batch_size=self.batch_size,
            epochs=epochs,
            factory=self.factory,
            seed=self.seed,
        )

    def _learn(self) -> tuple[Any, Any]:
        """Inputs and targets to judge the data by, from the training as given."""
        if self._known is None:
            self.examples.detach()
            given = self.contestants[0].subject
            given.inputs, given.targets = self._known = self.examples.known(self._batches())
        return self._known

    def _batches(self) -> Batches | None:
        try:
            return None if self.dataset is None else Batches(self.dataset)
        except (TypeError, ValueError):
            return None

    def facts(self, subject: Subject) -> dict[str, Any]:
        with Generators(self.seed):
            data = self._batches()
            try:
                task = None if data is None else data.task()
                facts = {} if data is None or task is None else data.baseline(task, subject.loss_fn)
            except Exception:  # Batches of another form than inputs and targets.
                return {"batch_size": self.batch_size or None}
        if task == "regression":
            facts.pop("chance", None)  # Known for R², but the loop may report another metric.
        return {"task": task, "batch_size": self.batch_size or None, **facts}


def _joined(batches: list[tuple[Any, ...]]) -> tuple[Tensor, ...] | None:
    """Joins batches of tensors; the first one alone if their shapes differ."""
    if not batches:
        return None
    first = batches[0]
    same = [it for it in batches if len(it) == len(first) and all(map(_is_like, it, first))]
    return tuple(torch.cat(parts) for parts in zip(*same))


def _is_like(a: Any, b: Any) -> bool:
    """True for tensors whose samples have the same shape and type."""
    are_tensors = isinstance(a, Tensor) and isinstance(b, Tensor) and a.dim() > 0
    return are_tensors and a.shape[1:] == b.shape[1:] and a.dtype == b.dtype


def check_loop(loop: Any) -> None:
    """Raises an error unless ``loop`` is a function of one argument."""
    if not callable(loop):
        raise TypeError(f"train must be a function of a setup, not {type(loop).__name__}")
    try:
        inspect.signature(loop).bind(None)
    except TypeError:
        raise TypeError("train must take one argument, the setup: def train(setup): ...") from None
