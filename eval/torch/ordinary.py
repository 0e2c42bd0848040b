"""Parts that ordinary programs share: generated data, a training loop and its usual options."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Watch = Callable[..., Any]
"""``surefoot.watch`` with the options of the evaluation."""


@dataclass(frozen=True)
class Score:
    """Result of a program, where smaller is better."""

    reached: float
    constant: float
    """Result of the best constant prediction, or of the untrained policy."""

    @property
    def has_learned(self) -> bool:
        return math.isfinite(self.reached) and self.reached < 0.9 * self.constant


@dataclass
class Options:
    """Usual choices of a training loop."""

    optimizer: str
    rate: float
    schedule: str
    batch_size: int
    epochs: int
    weight_decay: float = 0.0
    clip: float | None = None
    accumulate: int = 1
    bf16: bool = False
    is_length_known: bool = True
    reports_accuracy: bool = False
    evaluates: bool = True


def options(
    rng: random.Random,
    *,
    adam: tuple[float, ...] = (5e-4, 1e-3, 2e-3, 3e-3),
    sgd: tuple[float, ...] = (0.02, 0.05, 0.1),
    batch_sizes: tuple[int, ...] = (16, 32, 64),
    epochs: int = 12,
    bf16: bool = True,
) -> Options:
    """Draws the options of a loop. ``adam`` and ``sgd`` are the ordinary learning rates of the kind of program."""
    name = rng.choice(["Adam", "Adam", "AdamW", "AdamW", "NAdam", "RMSprop"] + (["SGD"] * 3 if sgd else []))
    rate = rng.choice(sgd if name == "SGD" else adam)
    if name == "RMSprop":
        rate = min(rate, 1e-3)
    return Options(
        optimizer=name,
        rate=rate,
        schedule=rng.choice(["none", "none", "none", "cosine", "step", "warmup", "one_cycle", "plateau"]),
        batch_size=rng.choice(batch_sizes),
        epochs=epochs,
        weight_decay=rng.choice([0.0, 0.0, 1e-4, 1e-2 if name == "AdamW" else 5e-4]),
        clip=rng.choice([None, None, None, 1.0, 5.0]),
        accumulate=rng.choice([1, 1, 1, 1, 1, 2]),
        bf16=bf16 and rng.random() < 0.15,
        is_length_known=rng.random() < 0.7,
        reports_accuracy=rng.random() < 0.4,
        evaluates=rng.random() < 0.7,
    )


def make_optimizer(chosen: Options, parameters: Any) -> torch.optim.Optimizer:
    if chosen.optimizer == "SGD":
        return torch.optim.SGD(parameters, lr=chosen.rate, momentum=0.9, weight_decay=chosen.weight_decay)
    return getattr(torch.optim, chosen.optimizer)(parameters, lr=chosen.rate, weight_decay=chosen.weight_decay)


def make_schedule(chosen: Options, optimizer: torch.optim.Optimizer, steps: int) -> Any:
    """A scheduler that is stepped once per optimizer step; ``None`` for none and for the one of plateaus."""
    schedulers = torch.optim.lr_scheduler
    if chosen.schedule == "cosine":
        return schedulers.CosineAnnealingLR(optimizer, T_max=steps)
    if chosen.schedule == "step":
        return schedulers.StepLR(optimizer, step_size=max(steps // 3, 1), gamma=0.3)
    if chosen.schedule == "warmup":
        warmup = max(steps // 10, 1)
        return schedulers.LambdaLR(optimizer, lambda step: min((step + 1) / warmup, 1.0))
    if chosen.schedule == "one_cycle":
        return schedulers.OneCycleLR(optimizer, max_lr=chosen.rate, total_steps=steps + 1)
    return None


def train(
    watch: Watch,
    chosen: Options,
    model: nn.Module,
    criterion: Callable[[Any, Tensor], Tensor],
    data: tuple[Tensor, Tensor],
    test: tuple[Tensor, Tensor],
    accuracy: Callable[[Any, Tensor], Tensor] | None = None,
) -> Any:
    """Trains in an ordinary loop and returns the watched run."""
    x, y = data
    optimizer = make_optimizer(chosen, model.parameters())
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=chosen.batch_size, shuffle=True, drop_last=True
    )
    steps_per_epoch = len(loader) // chosen.accumulate
    scheduler = make_schedule(chosen, optimizer, chosen.epochs * steps_per_epoch)
    plateau = None
    if chosen.schedule == "plateau":
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=2)
    length = {"epochs": chosen.epochs, "steps_per_epoch": steps_per_epoch} if chosen.is_length_known else {}
    with watch(model, optimizer, **length) as run:
        for _ in range(chosen.epochs):
            model.train()
            for i, (inputs, targets) in enumerate(loader):
                with torch.autocast("cpu", torch.bfloat16) if chosen.bf16 else nullcontext():
                    output = model(inputs)
                    loss = criterion(output, targets)
                (loss / chosen.accumulate).backward()
                reports = {}
                if chosen.reports_accuracy and accuracy is not None:
                    reports["accuracy"] = accuracy(output, targets)
                if (i + 1) % chosen.accumulate == 0:
                    if chosen.clip is not None:
                        nn.utils.clip_grad_norm_(model.parameters(), chosen.clip)
                    optimizer.step()
                    optimizer.zero_grad()
                    if scheduler is not None and scheduler.last_epoch < chosen.epochs * steps_per_epoch:
                        scheduler.step()
                run.step(loss, **reports)
            if chosen.evaluates or plateau is not None:
                model.eval()
                with torch.no_grad():
                    output = model(test[0])
                    loss = criterion(output, test[1])
                    reports = {"accuracy": accuracy(output, test[1])} if accuracy and chosen.reports_accuracy else {}
                if chosen.evaluates:
                    run.evaluation(loss, **reports)
                if plateau is not None:
                    plateau.step(loss)
    model.eval()
    return run


def hits(output: Tensor, y: Tensor) -> Tensor:
    """Accuracy of logits of classes, along dimension 1."""
    return (output.argmax(1) == y).float().mean()


def test_loss(model: nn.Module, criterion: Callable[[Any, Tensor], Tensor], test: tuple[Tensor, Tensor]) -> float:
    model.eval()
    with torch.no_grad():
        return float(criterion(model(test[0]), test[1]))


def entropy(y: Tensor) -> float:
    """Cross-entropy of the best constant prediction of classes."""
    shares = torch.bincount(y.flatten()).float() / y.numel()
    return float(-(shares * shares.clamp_min(1e-9).log()).sum())


def binary_entropy(y: Tensor) -> float:
    """Binary cross-entropy of the best constant prediction of each output."""
    p = y.float().mean(0).clamp(1e-6, 1 - 1e-6)
    return float(-(p * p.log() + (1 - p) * (1 - p).log()).mean())


def cut(x: Tensor, y: Tensor, share: float = 0.8) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Training and test data."""
    at = int(len(x) * share)
    return (x[:at], y[:at]), (x[at:], y[at:])


# Data


def blobs(samples: int, features: int, classes: int) -> tuple[Tensor, Tensor]:
    centres = torch.randn(classes, features) * (4 / math.sqrt(features))
    y = torch.randint(classes, (samples,))
    return centres[y] + torch.randn(samples, features), y


def moons(samples: int) -> tuple[Tensor, Tensor]:
    y = torch.randint(2, (samples,))
    angle = torch.rand(samples) * math.pi
    upper = torch.stack([angle.cos(), angle.sin()], 1)
    lower = torch.stack([1 - angle.cos(), 0.5 - angle.sin()], 1)
    x = torch.where(y[:, None] == 0, upper, lower) + 0.15 * torch.randn(samples, 2)
    return (x - x.mean(0)) / x.std(0), y


def friedman(samples: int, noise: float) -> tuple[Tensor, Tensor]:
    x = torch.rand(samples, 10)
    y = 10 * (math.pi * x[:, 0] * x[:, 1]).sin() + 20 * (x[:, 2] - 0.5) ** 2 + 10 * x[:, 3] + 5 * x[:, 4]
    y = y + noise * torch.randn(samples)
    return (x - 0.5) / 0.29, ((y - y.mean()) / y.std()).unsqueeze(1)


def pictures(samples: int, size: int, channels: int, classes: int) -> tuple[Tensor, Tensor]:
    """Noisy images of a frame, a disc, bars or a cross at random places, with values of mean 0 and deviation 1."""
    y = torch.randint(classes, (samples,))
    row, column = torch.meshgrid(torch.arange(size), torch.arange(size), indexing="ij")
    x = torch.randn(samples, channels, size, size) * 0.25
    for i in range(samples):
        r, c = random_place(size), random_place(size)
        down, right = (row - r).abs(), (column - c).abs()
        kind = int(y[i])
        mask = [
            (torch.maximum(down, right) == 3),
            (down**2 + right**2 <= 9),
            (down <= 1),
            (right <= 1),
            (down <= 1) | (right <= 1),
        ][kind]
        x[i] += mask * (0.7 + 0.6 * torch.rand(channels, 1, 1))
    return (x - x.mean()) / x.std(), y


def random_place(size: int) -> int:
    return int(torch.randint(3, size - 3, ()))


def waves(samples: int, length: int, classes: int) -> tuple[Tensor, Tensor]:
    """Noisy sine waves of a frequency by class, of three channels."""
    y = torch.randint(classes, (samples,))
    t = torch.linspace(0, 2 * math.pi, length)
    phase = torch.rand(samples, 3) * 2 * math.pi
    x = torch.sin((y[:, None, None] + 1) * t[None, :, None] + phase[:, None, :])
    return x + 0.3 * torch.randn_like(x), y


def text(samples: int, length: int, vocabulary: int) -> Tensor:
    """Token sequences of a Markov chain with about four likely successors of each token."""
    chain = F.softmax(torch.randn(vocabulary, vocabulary) * 2.5, -1)
    tokens = torch.empty(samples, length, dtype=torch.long)
    tokens[:, 0] = torch.randint(vocabulary, (samples,))
    for at in range(1, length):
        tokens[:, at] = torch.multinomial(chain[tokens[:, at - 1]], 1)[:, 0]
    return tokens


def topics(samples: int, length: int, vocabulary: int, classes: int) -> tuple[Tensor, Tensor]:
    """Token sequences whose words depend on a class."""
    words = F.softmax(torch.randn(classes, vocabulary) * 1.2, -1)
    y = torch.randint(classes, (samples,))
    return torch.multinomial(words[y], length, replacement=True), y
