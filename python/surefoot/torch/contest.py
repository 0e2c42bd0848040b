"""Trains the contestants of a repair: the training as given and the attempts."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from surefoot import contest
from surefoot.torch.advice import Advisor
from surefoot.torch.data import Batches
from surefoot.torch.surgery import Setup
from surefoot.torch.watch import Watch


class Contestant(contest.Contestant):
    """A training of a PyTorch model."""

    watch: Watch

    def __init__(self, owner: Trainings, number: int, actions: list[dict[str, Any]]) -> None:
        super().__init__(number, actions)
        self._owner = owner
        self._generators = _Generators(owner.seed)
        with self._generators:
            self.setup, self.changes = owner.build(actions)
        self.total_steps = self.setup.epochs * owner.train_data.steps(self.setup.batch_size)
        runs = owner.runs
        if runs is not None and number:
            parent = owner.contestants[0].directory
            runs = parent / "attempts" if parent is not None else None
        self.watch = Watch(
            self.setup.model,
            self.setup.optimizer,
            epochs=self.setup.epochs,
            steps_per_epoch=owner.train_data.steps(self.setup.batch_size),
            runs=runs,
            name=f"attempt-{number}" if number else owner.name,
            # A fixed interval, not one chosen by time: the same seed gives the same findings.
            every=max(self.total_steps // contest.OBSERVATIONS, 1),
            on_finding="ignore",
            facts=owner.facts(self.setup),
        )
        self.watch.start()
        self._loop = self._train()
        self._best: dict[str, Tensor] | None = None

    def step(self) -> bool:
        with self._generators:
            return next(self._loop, True)

    def free(self) -> None:
        # The current batch and the graph of its loss.
        self._loop.close()

    def _train(self) -> Generator[bool, None, None]:
        """Yields after every step: True after the last."""
        setup, owner = self.setup, self._owner
        for epoch in range(setup.epochs):
            batches = owner.train_data.batches(setup.batch_size, shuffle=True)
            count = owner.train_data.steps(setup.batch_size)
            for index, (inputs, targets) in enumerate(batches):
                setup.model.train()
                loss = setup.loss_fn(setup.model(*inputs), targets)
                setup.optimizer.zero_grad()
                loss.backward()
                setup.optimizer.step()
                self.steps += 1
                self.watch.step(loss, epoch=epoch + 1)
                if index + 1 < count:
                    yield False
            if setup.scheduler is not None:
                setup.scheduler.step()
            self._evaluate()
            yield epoch + 1 == setup.epochs

    def _evaluate(self) -> None:
        owner = self._owner
        loss, metric = owner.evaluate(self.setup)
        self.watch.evaluation(loss, metric=metric)
        if self.is_best(loss, metric):
            self._best = copy.deepcopy(self.setup.model.state_dict())

    def best_model(self) -> nn.Module:
        """Returns the model with the weights of its best epoch, in evaluation mode."""
        if self._best is not None:
            self.setup.model.load_state_dict(self._best)
        return self.setup.model.eval()


class Trainings(contest.Trainings[Contestant]):
    """Trainings of a PyTorch model."""

    def __init__(
        self,
        make_model: Callable[[], nn.Module],
        make_optimizer: Callable[[Any], torch.optim.Optimizer],
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
        super().__init__()
        self.seed = seed
        self.runs = runs
        self.name = name
        self._make_model, self._make_optimizer, self._loss_fn = make_model, make_optimizer, loss_fn
        self._epochs = epochs
        self._device = None if device is None else torch.device(device)
        self.train_data = Batches(train, self._device)
        self._validation = self.train_data if validation is None else Batches(validation, self._device)
        self._batch_size = batch_size or self.train_data.batch_size
        self._metric = metric
        self.task = self.train_data.task()
        self.metric_name = (
            getattr(metric, "__name__", "metric") if metric else "r2" if self.task == "regression" else "accuracy"
        )
        self.validation_samples = self._validation.samples if validation is not None else 0

    def contestant(self, number: int, actions: list[dict[str, Any]]) -> Contestant:
        return Contestant(self, number, actions)

    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        with _Generators(self.seed):
            setup, _ = self.build(applied)
            return setup.apply(action)

    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        with _Generators(self.seed):
            setup, _ = self.build([])
            return Advisor(setup.observe(), setup.optimizer).diff(*actions)

    def build(self, actions: list[dict[str, Any]]) -> tuple[Setup, list[str]]:
        """Creates a training with ``actions`` applied, and returns it with a description of each change."""
        model = self._make_model()
        if self._device is not None:
            model = model.to(self._device)
        inputs, targets = self.train_data.sample()
        setup = Setup(
            model,
            self._make_optimizer(model.parameters()),
            self._loss_fn,
            inputs,
            targets,
            batch_size=self._batch_size,
            epochs=self._epochs,
            factory=self._make_model,
            seed=self.seed,
        )
        return setup, [setup.apply(action) for action in actions]

    def facts(self, setup: Setup) -> dict[str, Any]:
        """Returns the facts known before the first step, such as the metric of the best constant prediction."""
        facts = self.train_data.baseline(self.task, setup.loss_fn)
        return {"task": self.task, "metric": self.metric_name, "batch_size": setup.batch_size, **facts}

    @torch.no_grad()
    def evaluate(self, setup: Setup) -> tuple[float, float | None]:
        """Loss and metric on the validation data."""
        setup.model.eval()
        outputs, targets, losses = [], [], 0.0
        for inputs, target in self._validation.batches(max(setup.batch_size, 256), shuffle=False):
            output = setup.model(*inputs)
            losses += float(setup.loss_fn(output, target)) * len(target)
            outputs.append(output)
            targets.append(target)
        setup.model.train()
        output, target = torch.cat(outputs), torch.cat(targets)
        measure = self._metric or (_r2 if self.task == "regression" else _accuracy)
        value = float(measure(output, target))
        return losses / max(len(target), 1), value if math.isfinite(value) else None


class _Generators:
    """States of PyTorch's random generators for one contestant, in use inside a ``with`` block."""

    def __init__(self, seed: int) -> None:
        outside = self._state()
        torch.manual_seed(seed)
        self._inside = self._state()
        self._restore(outside)

    def __enter__(self) -> None:
        self._outside = self._state()
        self._restore(self._inside)

    def __exit__(self, *_: object) -> None:
        self._inside = self._state()
        self._restore(self._outside)

    @staticmethod
    def _state() -> list[Tensor]:
        cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else []
        return [torch.get_rng_state(), *cuda]

    @staticmethod
    def _restore(state: list[Tensor]) -> None:
        torch.set_rng_state(state[0])
        if len(state) > 1:
            torch.cuda.set_rng_state_all(state[1:])


def _accuracy(output: Tensor, target: Tensor) -> float:
    if output.dim() > 1 and output.shape[-1] > 1 and target.shape != output.shape:
        predicted = output.argmax(-1) if output.dim() == 2 else output.argmax(1)
        return float((predicted == target).float().mean())
    if target.shape == output.shape and output.dim() > 1 and output.shape[-1] > 1:
        return float((output.argmax(-1) == target.argmax(-1)).float().mean())
    # One output for two classes: a probability, or a logit if any value is outside of [0, 1].
    flat = output.reshape(-1)
    limit = 0.0 if bool(((flat < 0) | (flat > 1)).any()) else 0.5
    return float(((flat > limit) == (target.reshape(-1) > 0.5)).float().mean())


def _r2(output: Tensor, target: Tensor) -> float:
    output, target = output.reshape(len(output), -1).double(), target.reshape(len(target), -1).double()
    residual = ((output - target) ** 2).sum()
    total = ((target - target.mean(0)) ** 2).sum()
    return float(1 - residual / total) if total > 0 else 0.0
