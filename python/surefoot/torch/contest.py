"""Trains the contestants of a repair: the training as given and the attempts."""

from __future__ import annotations

import copy
import random
import sys
from abc import abstractmethod
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from surefoot import _core, contest
from surefoot.run.keys import ORDER
from surefoot.torch.actions import Subject
from surefoot.torch.advice import Advisor
from surefoot.torch.data import Batches
from surefoot.torch.metrics import measure
from surefoot.torch.unchanged import unchanged
from surefoot.torch.watch import Watch


class TorchContestant(contest.Contestant):
    """A training of a PyTorch model that can be paused.

    Args:
        owner: All trainings.
        number: Number of the attempt; 0 is the training as given.
        actions: Actions of the repair that are applied to it.
    """

    watch: Watch
    subject: Subject

    def __init__(self, owner: TorchTrainings, number: int, actions: list[dict[str, Any]]) -> None:
        super().__init__(number, actions)
        self._owner = owner
        self._generators = Generators(owner.seed)
        self._best: dict[str, Tensor] | None = None

    def observe(self, steps_per_epoch: int) -> None:
        """Creates the watch of this training and attaches its hooks."""
        runs = self._owner.runs
        if runs is not None and self.number:
            parent = self._owner.contestants[0].directory
            runs = parent / "attempts" if parent is not None else None
        self.total_steps = self.subject.epochs * steps_per_epoch
        self.watch = Watch(
            self.subject.model,
            self.subject.optimizer,
            epochs=self.subject.epochs,
            steps_per_epoch=steps_per_epoch,
            runs=runs,
            name="attempt" if self.number else self._owner.name,
            # A fixed interval, not one chosen by time: the same seed gives the same findings.
            every=max(self.total_steps // contest.OBSERVATIONS, 1),
            on_finding="ignore",
            facts=self._owner.facts(self.subject),
        )
        self.watch.start()

    def train(self, until: int) -> None:
        with self._generators:
            super().train(until)

    def evaluated(self, loss: float, metric: float | None) -> None:
        """Takes loss and metric of an epoch, and keeps the weights if they are the best so far."""
        self.watch.evaluation(loss, metric=metric)
        if self.is_best(loss, metric):
            self._best = copy.deepcopy(self.subject.model.state_dict())

    def best_model(self) -> nn.Module:
        """Returns the model with the weights of its best epoch, in evaluation mode."""
        if self._best is not None:
            self.subject.model.load_state_dict(self._best)
        return self.subject.model.eval()

    def arrays(self) -> dict[str, Any]:
        state = self._best if self._best is not None else self.subject.model.state_dict()
        return {name: it.detach().cpu().contiguous() for name, it in state.items() if isinstance(it, Tensor)}


class TorchTrainings(contest.Trainings[TorchContestant]):
    """Trainings of a PyTorch model, by :func:`surefoot.fit` or :func:`surefoot.repair`."""

    task: str | None = None

    def __init__(self, *, seed: int, runs: str | Path | None, name: str | None) -> None:
        super().__init__()
        self.seed, self.runs, self.name = seed, runs, name

    @abstractmethod
    def build(self, actions: list[dict[str, Any]]) -> tuple[Subject, list[str]]:
        """Creates a training with ``actions`` applied, and returns it with a description of each change."""

    @abstractmethod
    def facts(self, subject: Subject) -> dict[str, Any]:
        """Returns the facts known before the first step, such as the metric of the best constant prediction."""

    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        with Generators(self.seed):
            subject, _ = self.build(applied)
            return subject.apply(action)

    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        with Generators(self.seed):
            subject = self.contestants[0].subject
            return Advisor(subject.observe(), subject.optimizer).diff(*actions)

    def unwritten(self, contestant: TorchContestant) -> list[str]:
        return contestant.subject.initialized

    def facts_of_model(self) -> dict[str, Any]:
        subject = self.contestants[0].subject
        inputs = subject.inputs if isinstance(subject.inputs, (tuple, list)) else (subject.inputs,)
        return {"inputs": [_form(it) for it in inputs], "targets": _form(subject.targets)}


class Contestant(TorchContestant):
    """A training by :func:`surefoot.fit`."""

    _owner: Trainings

    def __init__(self, owner: Trainings, number: int, actions: list[dict[str, Any]]) -> None:
        super().__init__(owner, number, actions)
        with self._generators:
            self.subject, self.changes = owner.build(actions)
        self.observe(owner.train_data.steps(self.subject.batch_size))
        self._loop = self._train()

    def step(self) -> bool:
        if self.number == 0 and self._owner.missing_units:
            # The loss cannot be computed. The facts alone show the problem.
            inputs, _ = next(self._owner.train_data.batches(self.subject.batch_size))
            self.subject.model(*inputs)
            self.watch.before_update(self.subject.optimizer)
            self.end()
            return False
        return next(self._loop, True)

    def free(self) -> None:
        # The current batch and the graph of its loss.
        self._loop.close()

    def _train(self) -> Generator[bool, None, None]:
        """Yields after every step: True after the last."""
        subject, owner = self.subject, self._owner
        for epoch in range(subject.epochs):
            # The same order in every contestant.
            batches = owner.train_data.batches(subject.batch_size, _core.key(owner.seed, ORDER, epoch, 0) >> 1)
            count = owner.train_data.steps(subject.batch_size)
            for index, (inputs, targets) in enumerate(batches):
                subject.model.train()
                loss = loss_of(subject.loss_fn, subject.model(*inputs), targets)
                subject.optimizer.zero_grad()
                loss.backward()
                subject.optimizer.step()
                self.steps += 1
                self.watch.step(loss, epoch=epoch + 1)
                if index + 1 < count:
                    yield False
            if subject.scheduler is not None:
                subject.scheduler.step()
            self.evaluated(*owner.evaluate(subject))
            yield epoch + 1 == subject.epochs


class Trainings(TorchTrainings):
    """Trainings by :func:`surefoot.fit`."""

    def __init__(
        self,
        make_model: nn.Module | Callable[[], nn.Module],
        make_optimizer: torch.optim.Optimizer | Callable[[Any], torch.optim.Optimizer],
        loss_fn: Callable[[Any, Any], Tensor],
        train: Any,
        validation: Any,
        *,
        epochs: int,
        batch_size: int | None,
        metric: Callable[[Tensor, Tensor], float] | None,
        seed: int,
        device: str | torch.device | None,
        runs: str | Path | None,
        name: str | None,
    ) -> None:
        super().__init__(seed=seed, runs=runs, name=name)
        self._make_model, self._make_optimizer, self._loss_fn = make_model, make_optimizer, loss_fn
        # A model and an optimizer are copied together, so that the copy trains the copy.
        self._given = copy.deepcopy((make_model, make_optimizer)) if isinstance(make_model, nn.Module) else None
        self._epochs = epochs
        self._device = None if device is None else torch.device(device)
        self.train_data = Batches(train, self._device, name="train")
        self._validation = self.train_data
        if validation is not None:
            self._validation = Batches(validation, self._device, name="validation")
        self._batch_size = batch_size or self.train_data.batch_size
        self._metric = metric
        with Generators(seed):  # Samples may be drawn at random.
            self.task = self.train_data.task()
        self.metric_name = (
            getattr(metric, "__name__", "metric") if metric else "r2" if self.task == "regression" else "accuracy"
        )
        self.validation_samples = self._validation.samples if validation is not None else 0
        #: True if there are more classes than outputs, so that their cross-entropy cannot be computed.
        self.missing_units = False
        self._check()

    def _check(self) -> None:
        """Raises an error that names the cause if model, loss and data do not belong together."""
        with Generators(self.seed):
            subject, _ = self.build([])
            inputs, targets = next(self.train_data.batches(self._batch_size))
            given = ", ".join(map(_described, inputs))
            with unchanged(subject.model), torch.enable_grad():
                try:
                    output = subject.model(*inputs)
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    raise ValueError(f"the model cannot be called with a batch of `train` ({given}): {error}") from error
                try:
                    loss = loss_of(self._loss_fn, output, targets)
                except (RuntimeError, ValueError, TypeError, IndexError) as error:
                    if self._lacks_units(output, targets):
                        self.task, self.missing_units = "multi_class", True
                        return
                    raise ValueError(
                        f"loss_fn cannot be called with outputs ({_described(output)}) and targets "
                        f"({_described(targets)}): {error}"
                    ) from error
            if not isinstance(loss, Tensor) or loss.numel() != 1:
                raise ValueError(f"loss_fn must return a tensor with one number, not {_described(loss)}")
            if not loss.requires_grad:
                raise ValueError(
                    "the loss does not depend on parameters of the model: an operation between them, such as argmax, "
                    "detach or torch.tensor(...), has no gradient"
                )

    def _lacks_units(self, output: Any, targets: Any) -> bool:
        """True if targets are class numbers and there are too few outputs for them."""
        if not isinstance(output, Tensor) or output.dim() != 2 or not isinstance(targets, Tensor) or targets.dim() != 1:
            return False
        is_class = not targets.is_floating_point() and type(self._loss_fn).__name__ in ("CrossEntropyLoss", "function")
        return is_class and int(self.train_data.sample()[1].max()) >= output.shape[1]

    def contestant(self, number: int, actions: list[dict[str, Any]]) -> Contestant:
        return Contestant(self, number, actions)

    def build(self, actions: list[dict[str, Any]]) -> tuple[Subject, list[str]]:
        model, optimizer = self._make()
        inputs, targets = self.train_data.sample()
        subject = Subject(
            model,
            optimizer,
            self._loss_fn,
            inputs,
            targets,
            batch_size=self._batch_size,
            epochs=self._epochs,
            factory=None if isinstance(self._make_model, nn.Module) else self._make_model,
            seed=self.seed,
        )
        return subject, [subject.apply(action) for action in actions]

    def _make(self) -> tuple[nn.Module, torch.optim.Optimizer]:
        if self._given is not None:
            model, optimizer = copy.deepcopy(self._given)
        else:
            model, optimizer = self._make_model(), self._make_optimizer
        if not isinstance(model, nn.Module):
            raise TypeError(f"make_model must return a torch.nn.Module, not {type(model).__name__}")
        if self._device is not None:
            model = model.to(self._device)
        if not isinstance(optimizer, torch.optim.Optimizer):
            optimizer = optimizer(model.parameters())
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise TypeError(f"make_optimizer must return a torch.optim.Optimizer, not {type(optimizer).__name__}")
        return model, optimizer

    def facts(self, subject: Subject) -> dict[str, Any]:
        facts = self.train_data.baseline(self.task or "", subject.loss_fn)
        if self._metric is not None:
            del facts["chance"]  # That of the accuracy says nothing about another metric.
        if self.missing_units:
            facts |= {"loss": "sparse_categorical_crossentropy", "from_logits": True}
        return {"task": self.task, "metric": self.metric_name, "batch_size": subject.batch_size, **facts}

    @torch.no_grad()
    def evaluate(self, subject: Subject) -> tuple[float, float | None]:
        """Loss and metric on the validation data."""
        subject.model.eval()
        outputs, targets, losses = [], [], 0.0
        for inputs, target in self._validation.batches(max(subject.batch_size, 256)):
            output = subject.model(*inputs)
            losses += float(loss_of(subject.loss_fn, output, target)) * len(target)
            outputs.append(output)
            targets.append(target)
        subject.model.train()
        output, target = torch.cat(outputs), torch.cat(targets)
        return losses / max(len(target), 1), measure(output, target, self.task, self._metric)


def loss_of(loss_fn: Callable[..., Tensor], output: Any, target: Any, *args: Any, **kwargs: Any) -> Tensor:
    """Returns the loss. ``BCELoss`` raises an error for outputs of NaN; their loss is NaN."""
    try:
        return loss_fn(output, target, *args, **kwargs)
    except RuntimeError:
        if isinstance(output, Tensor) and not bool(torch.isfinite(output).all()):
            return output.sum() * float("nan")
        raise


class Generators:
    """States of the random generators for one contestant, in use inside a ``with`` block."""

    def __init__(self, seed: int) -> None:
        outside = self._state()
        torch.manual_seed(seed)
        random.seed(seed)
        if "numpy" in sys.modules:
            sys.modules["numpy"].random.seed(seed & 0xFFFFFFFF)
        self._inside = self._state()
        self._restore(outside)

    def __enter__(self) -> None:
        self._outside = self._state()
        self._restore(self._inside)

    def __exit__(self, *_: object) -> None:
        self._inside = self._state()
        self._restore(self._outside)

    @staticmethod
    def _state() -> tuple[list[Tensor], Any, Any]:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        numpy = sys.modules.get("numpy")
        return [torch.get_rng_state(), *cuda], random.getstate(), numpy.random.get_state() if numpy else None

    @staticmethod
    def _restore(state: tuple[list[Tensor], Any, Any]) -> None:
        tensors, python, numbers = state
        torch.set_rng_state(tensors[0])
        if len(tensors) > 1:
            torch.cuda.set_rng_state_all(tensors[1:])
        random.setstate(python)
        if numbers is not None:
            sys.modules["numpy"].random.set_state(numbers)


def _form(value: Any) -> dict[str, Any] | None:
    """Type and shape of one sample of a tensor; None for anything else."""
    if not isinstance(value, Tensor) or not value.dim():
        return None
    return {"dtype": str(value.dtype).removeprefix("torch."), "shape": list(value.shape[1:])}


def _described(value: Any) -> str:
    if isinstance(value, Tensor):
        return f"{str(value.dtype).removeprefix('torch.')} of shape {tuple(value.shape)}"
    if isinstance(value, (tuple, list)):
        return f"a {type(value).__name__} of {', '.join(map(_described, value))}"
    return type(value).__name__


