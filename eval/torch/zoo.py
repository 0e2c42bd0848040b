#!/usr/bin/env python3
"""Problems found and repaired in generated PyTorch programs.

Every case is an ordinary training program (a network, data, an optimizer) with at most one injected fault. The healthy
twin of each has no fault. Development seeds are below 1000; report seeds start there.

    python eval/torch/zoo.py --seed 1                 watch all cases
    python eval/torch/zoo.py --seed 1 --fit           repair the faulty ones with surefoot.fit as well
    python eval/torch/zoo.py --seed 1 --only lenet    cases whose name contains a word
    python eval/torch/zoo.py --seed 1 --json          one JSON object a line, the summary last
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import surefoot
from tally import Tally


@dataclass(frozen=True)
class Case:
    """A training program."""

    name: str
    model: Callable[[], nn.Module]
    data: Callable[[torch.Generator], tuple[Tensor, Tensor]]
    optimizer: Callable[[Any], torch.optim.Optimizer]
    loss: Callable[[Tensor, Tensor], Tensor]
    epochs: int = 12
    batch_size: int = 32
    fault: str = ""
    """Injected fault; empty for a healthy program."""
    causes: tuple[str, ...] = ()
    """Problems that name the fault."""


# Data


def circles(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.rand(800, 2, generator=generator) * 2 - 1
    return x, (x.norm(dim=1) < 0.8).long()


def blobs(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    centres = torch.randn(5, 20, generator=generator) * 1.5
    y = torch.randint(0, 5, (800,), generator=generator)
    return centres[y] + torch.randn(800, 20, generator=generator), y


def shapes(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Images of bars: horizontal, vertical or a cross, with noise."""
    y = torch.randint(0, 3, (600,), generator=generator)
    x = torch.randn(600, 1, 16, 16, generator=generator) * 0.3
    at = torch.randint(3, 13, (600,), generator=generator)
    for i in range(600):
        if y[i] != 1:
            x[i, 0, at[i]] += 1
        if y[i] != 0:
            x[i, 0, :, at[i]] += 1
    return x, y


def sequences(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noisy sequences whose class is the sign of their mean."""
    x = torch.randn(600, 20, 4, generator=generator)
    y = torch.randint(0, 2, (600,), generator=generator)
    return x + (y * 2 - 1).float()[:, None, None] * 0.35, y


def tokens(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Token sequences whose class is the most frequent of the first four tokens."""
    x = torch.randint(0, 16, (800, 24), generator=generator)
    counts = F.one_hot(x.clamp(max=3), 4).sum(1).float()
    return x, counts[:, :3].argmax(1)


def signals(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Noisy waves of three frequencies, one channel."""
    y = torch.randint(0, 3, (600,), generator=generator)
    phase = torch.rand(600, 1, generator=generator) * 6.3
    wave = torch.sin(torch.arange(32) * (0.3 + 0.35 * y[:, None]) + phase)
    return (wave + torch.randn(600, 32, generator=generator) * 0.3).unsqueeze(1), y


def two_classes(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.randn(800, 6, generator=generator)
    return x, (x[:, 0] * x[:, 1] + x[:, 2] > 0).float().unsqueeze(1)


def labels(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Four labels, each of which depends on two features."""
    x = torch.randn(800, 8, generator=generator)
    return x, torch.stack([x[:, 2 * i] + x[:, 2 * i + 1] > 0 for i in range(4)], 1).float()


def text(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Sequences in which each token follows from the two before it; targets are the next tokens."""
    x = torch.randint(0, 8, (500, 17), generator=generator)
    for place in range(2, 17):
        x[:, place] = (x[:, place - 1] + 3 * x[:, place - 2]) % 8
    return x[:, :-1], x[:, 1:]


def friedman(generator: torch.Generator) -> tuple[Tensor, Tensor]:
    x = torch.rand(800, 8, generator=generator)
    y = torch.sin(3 * x[:, 0] * x[:, 1]) + 2 * (x[:, 2] - 0.5) ** 2 + x[:, 3]
    return (x - 0.5) / 0.29, ((y - y.mean()) / y.std()).unsqueeze(1)


# Networks


def mlp(inputs: int, outputs: int, depth: int = 2, width: int = 32, act: Callable[[], nn.Module] = nn.ReLU) -> nn.Module:
    hidden = [part for _ in range(depth - 1) for part in (nn.Linear(width, width), act())]
    return nn.Sequential(nn.Linear(inputs, width), act(), *hidden, nn.Linear(width, outputs))


class LeNet(nn.Module):
    def __init__(self, act: Callable[[Tensor], Tensor] = F.relu) -> None:
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 8, 3, padding=1), nn.Conv2d(8, 16, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(16 * 16, 32), nn.Linear(32, 3)
        self.act = act

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(self.act(self.conv1(x)), 2)
        x = F.max_pool2d(self.act(self.conv2(x)), 2)
        return self.fc2(self.act(self.fc1(x.flatten(1))))


class Residual(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU())
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(),
                nn.Conv2d(8, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8),
            )
            for _ in range(3)
        )
        self.head = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.stem(x)
        for block in self.blocks:
            x = F.relu(x + block(x))
        return self.head(x.mean((2, 3)))


class Recurrent(nn.Module):
    def __init__(self, cell: type[nn.Module] = nn.LSTM) -> None:
        super().__init__()
        self.rnn = cell(4, 16, batch_first=True)
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.rnn(x)[0][:, -1])


class Attention(nn.Module):
    def __init__(self, frozen_embedding: bool = False) -> None:
        super().__init__()
        self.embedding = nn.Embedding(16, 32)
        self.position = nn.Parameter(torch.randn(24, 32) * 0.02)
        layer = nn.TransformerEncoderLayer(32, 4, 64, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(32, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.encoder(self.embedding(x) + self.position).mean(1))


class Conv1d(nn.Module):
    def __init__(self, act: Callable[[], nn.Module] = nn.ReLU) -> None:
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv1d(1, 8, 5, padding=2), act(), nn.MaxPool1d(2), nn.Conv1d(8, 16, 5, padding=2), act(),
        )
        self.head = nn.Linear(16 * 16, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x).flatten(1))


class Block(nn.Module):
    """A block of a decoder: causal attention and an MLP, each with a shortcut."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        mask = torch.triu(torch.ones(x.shape[1], x.shape[1], dtype=torch.bool), 1)
        y = self.norm1(x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(8, 32), nn.Embedding(16, 32)
        self.blocks = nn.Sequential(Block(32), Block(32))
        self.norm, self.head = nn.LayerNorm(32), nn.Linear(32, 8)

    def forward(self, x: Tensor) -> Tensor:
        x = self.tokens(x) + self.places(torch.arange(x.shape[1]))
        return self.head(self.norm(self.blocks(x))).transpose(1, 2)


class WithSoftmax(nn.Module):
    """A network that ends in a softmax although its loss expects logits."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x).softmax(-1)


def initialized(model: nn.Module, std: float, bias: float = 0.0) -> nn.Module:
    """The model with normal weights of deviation ``std`` and biases of one value, except in its last layer."""
    layers = [it for it in model.modules() if isinstance(it, (nn.Linear, nn.Conv2d))]
    for layer in layers[:-1]:
        nn.init.normal_(layer.weight, std=std)
        if layer.bias is not None:
            nn.init.constant_(layer.bias, bias)
    return model


def last_only(optimizer: Callable[[Any], torch.optim.Optimizer]) -> Callable[[Any], torch.optim.Optimizer]:
    """An optimizer that was given only the last parameter of the model."""
    return lambda parameters: optimizer(list(parameters)[-1:])


def squared(output: Tensor, y: Tensor) -> Tensor:
    """The squared error of the class number, as if it were a quantity."""
    return F.mse_loss(output.argmax(1).float() + 0 * output.sum(1), y.float())


def adam(rate: float = 1e-3) -> Callable[[Any], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.Adam(parameters, lr=rate)


def sgd(rate: float, momentum: float = 0.9) -> Callable[[Any], torch.optim.Optimizer]:
    return lambda parameters: torch.optim.SGD(parameters, lr=rate, momentum=momentum)


def scaled(data: Callable[[torch.Generator], tuple[Tensor, Tensor]], factor: float, offset: float) -> Any:
    return lambda generator: (lambda x, y: (x * factor + offset, y))(*data(generator))


def with_nan(data: Callable[[torch.Generator], tuple[Tensor, Tensor]]) -> Any:
    def make(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        x, y = data(generator)
        x[torch.rand(len(x), generator=generator) < 0.02, 0] = float("nan")
        return x, y

    return make


def scaled_targets(data: Callable[[torch.Generator], tuple[Tensor, Tensor]], factor: float, offset: float) -> Any:
    return lambda generator: (lambda x, y: (x, y * factor + offset))(*data(generator))


def class_numbers(data: Callable[[torch.Generator], tuple[Tensor, Tensor]]) -> Any:
    return lambda generator: (lambda x, y: (x, y.reshape(-1).long()))(*data(generator))


def constant(data: Callable[[torch.Generator], tuple[Tensor, Tensor]]) -> Any:
    return lambda generator: (lambda x, y: (torch.full_like(x, 0.5), y))(*data(generator))


CROSS_ENTROPY = nn.CrossEntropyLoss()
LOGITS = nn.BCEWithLogitsLoss()


def normalized(inputs: int, outputs: int) -> nn.Module:
    """An MLP with batch normalization and dropout."""
    hidden = [it for _ in range(2) for it in (nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.1))]
    return nn.Sequential(nn.Linear(inputs, 32), nn.ReLU(), *hidden, nn.Linear(32, outputs))


HEALTHY = [
    Case("mlp-circles", lambda: mlp(2, 2), circles, adam(3e-3), CROSS_ENTROPY, epochs=20),
    Case("mlp-circles-tanh", lambda: mlp(2, 2, act=nn.Tanh), circles, adam(3e-3), CROSS_ENTROPY, epochs=20),
    Case("mlp-blobs-sgd", lambda: mlp(20, 5), blobs, sgd(0.05), CROSS_ENTROPY),
    Case("mlp-blobs-deep", lambda: mlp(20, 5, depth=5), blobs, adam(), CROSS_ENTROPY),
    Case("mlp-blobs-gelu", lambda: mlp(20, 5, act=nn.GELU), blobs, adam(), CROSS_ENTROPY),
    Case("mlp-friedman", lambda: mlp(8, 1), friedman, adam(3e-3), nn.MSELoss(), epochs=20),
    Case("lenet-shapes", LeNet, shapes, adam(2e-3), CROSS_ENTROPY),
    Case("lenet-shapes-sgd", LeNet, shapes, sgd(0.05), CROSS_ENTROPY),
    Case("residual-shapes", Residual, shapes, adam(3e-3), CROSS_ENTROPY, epochs=8),
    Case("lstm-sequences", Recurrent, sequences, adam(5e-3), CROSS_ENTROPY),
    Case("gru-sequences", lambda: Recurrent(nn.GRU), sequences, adam(5e-3), CROSS_ENTROPY),
    Case("transformer-tokens", Attention, tokens, adam(), CROSS_ENTROPY, epochs=10),
    Case("mlp-binary", lambda: mlp(6, 1), two_classes, adam(3e-3), LOGITS, epochs=20),
    Case("mlp-binary-bce", lambda: nn.Sequential(mlp(6, 1), nn.Sigmoid()), two_classes, adam(3e-3), nn.BCELoss(), epochs=20),
    Case("mlp-labels", lambda: mlp(8, 4), labels, adam(3e-3), LOGITS),
    Case("mlp-blobs-norm", lambda: normalized(20, 5), blobs, adam(3e-3), CROSS_ENTROPY),
    Case("mlp-friedman-huber", lambda: mlp(8, 1, act=nn.SiLU), friedman, adam(3e-3), nn.SmoothL1Loss(), epochs=20),
    Case("conv1d-signals", Conv1d, signals, adam(2e-3), CROSS_ENTROPY),
    Case("rnn-sequences", lambda: Recurrent(nn.RNN), sequences, adam(5e-3), CROSS_ENTROPY),
    Case("gpt-text", GPT, text, adam(3e-3), CROSS_ENTROPY, epochs=10),
]


def faulty() -> list[Case]:
    """Healthy programs with a fault each."""
    by_name = {case.name: case for case in HEALTHY}

    def broken(name: str, fault: str, causes: str, **changes: Any) -> Case:
        return replace(by_name[name], name=f"{name}:{fault}", fault=fault, causes=tuple(causes.split()), **changes)

    large = "exploding_gradient non_finite_loss diverging_loss oscillating_loss loss_spike update_ratio collapse dying_relu"
    small = "slow_convergence update_ratio"
    deep = "vanishing_gradient saturated_activation slow_convergence"
    data = "abnormal_data input_scale non_finite_loss exploding_gradient"
    output = "improper_output_activation improper_loss slow_convergence"
    start = "exploding_gradient saturated_activation non_finite_loss diverging_loss oscillating_loss"
    dead = "dying_relu vanishing_gradient slow_convergence"
    frozen = "unchanged_weights slow_convergence"
    sigmoid, tanh = nn.Sigmoid, nn.Tanh
    return [
        broken("mlp-circles", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("mlp-circles-tanh", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("mlp-blobs-sgd", "rate-too-high", large, optimizer=sgd(30.0)),
        broken("mlp-blobs-deep", "rate-too-high", large, optimizer=adam(1.0)),
        broken("mlp-blobs-gelu", "rate-too-high", large, optimizer=sgd(30.0)),
        broken("mlp-friedman", "rate-too-high", large, optimizer=sgd(3.0)),
        broken("lenet-shapes", "rate-too-high", large, optimizer=adam(1.0)),
        broken("lenet-shapes-sgd", "rate-too-high", large, optimizer=sgd(10.0)),
        broken("residual-shapes", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("gru-sequences", "rate-too-high", large, optimizer=sgd(300.0)),
        broken("transformer-tokens", "rate-too-high", large, optimizer=adam(1.0)),
        broken("residual-shapes", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("mlp-blobs-sgd", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("mlp-circles", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-friedman", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("lenet-shapes", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("lstm-sequences", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("gru-sequences", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("transformer-tokens", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-circles", "deep-sigmoid", deep, model=lambda: mlp(2, 2, depth=10, act=sigmoid)),
        broken("mlp-blobs-deep", "deep-sigmoid", deep, model=lambda: mlp(20, 5, depth=10, act=sigmoid)),
        broken("mlp-friedman", "deep-sigmoid", deep, model=lambda: mlp(8, 1, depth=10, act=sigmoid)),
        broken("lenet-shapes", "sigmoid", deep, model=lambda: LeNet(torch.sigmoid), optimizer=sgd(0.01)),
        broken("mlp-blobs-deep", "small-weights", deep, model=lambda: initialized(mlp(20, 5, depth=6), 1e-3)),
        broken("mlp-blobs-sgd", "small-weights", deep, model=lambda: initialized(mlp(20, 5, depth=6), 1e-3)),
        broken("mlp-circles-tanh", "large-weights", start, model=lambda: initialized(mlp(2, 2, 4, act=tanh), 8.0)),
        broken("mlp-blobs-sgd", "large-weights", start, model=lambda: initialized(mlp(20, 5, depth=5), 5.0)),
        broken("mlp-blobs-sgd", "dead-units", dead, model=lambda: initialized(mlp(20, 5), 0.1, -20.0)),
        broken("mlp-circles", "dead-units", dead, model=lambda: initialized(mlp(2, 2), 0.3, -10.0)),
        broken("lenet-shapes", "dead-units", dead, model=lambda: initialized(LeNet(), 0.05, -10.0)),
        broken("mlp-blobs-sgd", "unscaled", data, data=scaled(blobs, 1000.0, 5000.0)),
        broken("mlp-blobs-deep", "unscaled", data, data=scaled(blobs, 1000.0, 5000.0)),
        broken("lenet-shapes-sgd", "unscaled", data, data=scaled(shapes, 255.0, 2000.0)),
        broken("lstm-sequences", "unscaled", data, data=scaled(sequences, 1000.0, 5000.0)),
        broken("mlp-friedman", "unscaled-targets", "unscaled_targets", data=scaled_targets(friedman, 1e4, 1e5)),
        broken("mlp-blobs-gelu", "nan-inputs", data, data=with_nan(blobs)),
        broken("mlp-friedman", "nan-inputs", data, data=with_nan(friedman)),
        broken("lenet-shapes", "nan-inputs", data, data=with_nan(shapes)),
        broken("gru-sequences", "nan-inputs", data, data=with_nan(sequences)),
        broken("mlp-blobs-gelu", "constant-inputs", "constant_data slow_convergence", data=constant(blobs)),
        broken("mlp-blobs-deep", "softmax", output, model=lambda: WithSoftmax(mlp(20, 5, depth=3)), optimizer=sgd(1e-3)),
        broken("lenet-shapes-sgd", "softmax", output, model=lambda: WithSoftmax(LeNet()), optimizer=sgd(1e-3)),
        broken("mlp-friedman", "relu-output", output, model=lambda: nn.Sequential(mlp(8, 1), nn.ReLU())),
        broken("mlp-blobs-gelu", "wrong-loss", "improper_loss slow_convergence vanishing_gradient", loss=squared),
        broken("mlp-blobs-deep", "wrong-parameters", frozen, optimizer=last_only(adam())),
        broken("lenet-shapes", "wrong-parameters", frozen, optimizer=last_only(adam(2e-3))),
        broken("mlp-binary", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("mlp-binary", "sigmoid-twice", output, model=lambda: nn.Sequential(mlp(6, 1), nn.Sigmoid()), optimizer=sgd(0.01)),
        broken("mlp-binary", "one-unit", "improper_output_units", data=class_numbers(two_classes), loss=CROSS_ENTROPY),
        broken("mlp-binary-bce", "softmax-one-unit", output, model=lambda: nn.Sequential(mlp(6, 1), nn.Softmax(-1))),
        broken("mlp-binary-bce", "rate-too-low", small, optimizer=sgd(1e-7)),
        broken("mlp-labels", "softmax", output, model=lambda: WithSoftmax(mlp(8, 4)), loss=nn.BCELoss()),
        broken("mlp-labels", "unscaled", data, data=scaled(labels, 1000.0, 5000.0), optimizer=sgd(0.05)),
        broken("mlp-labels", "rate-too-high", large, optimizer=adam(10.0)),
        broken("mlp-blobs-norm", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("mlp-blobs-norm", "two-units", "improper_output_units", model=lambda: normalized(20, 2)),
        broken("mlp-friedman-huber", "unscaled-targets", "unscaled_targets " + small, data=scaled_targets(friedman, 1e4, 1e5)),
        broken("mlp-friedman-huber", "sigmoid-output", output, model=lambda: nn.Sequential(mlp(8, 1), nn.Sigmoid())),
        broken("conv1d-signals", "rate-too-high", large, optimizer=adam(1.0)),
        broken("conv1d-signals", "nan-inputs", data, data=with_nan(signals)),
        broken("conv1d-signals", "sigmoid", deep, model=lambda: Conv1d(sigmoid), optimizer=sgd(0.001)),
        broken("rnn-sequences", "rate-too-high", large, optimizer=sgd(100.0)),
        broken("rnn-sequences", "rate-too-low", small, optimizer=adam(1e-8)),
        broken("gpt-text", "rate-too-high", large, optimizer=adam(1.0)),
        broken("gpt-text", "rate-too-low", small, optimizer=adam(1e-8)),
    ]


def split(case: Case, seed: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    x, y = case.data(torch.Generator().manual_seed(seed))
    cut = len(x) * 3 // 4
    return (x[:cut], y[:cut]), (x[cut:], y[cut:])


def watch(case: Case, seed: int) -> list[str]:
    """Trains a case in an ordinary loop with ``surefoot.watch`` and returns its problems."""
    (x, y), (x_test, y_test) = split(case, seed)
    torch.manual_seed(seed)
    model = case.model()
    optimizer = case.optimizer(model.parameters())
    steps = -(-len(x) // case.batch_size)
    with surefoot.watch(model, optimizer, epochs=case.epochs, steps_per_epoch=steps, runs=None, on_finding="ignore") as run:
        for _ in range(case.epochs):
            for chosen in torch.randperm(len(x)).split(case.batch_size):
                loss = case.loss(model(x[chosen]), y[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run.step(loss)
            model.eval()
            with torch.no_grad():
                run.evaluation(case.loss(model(x_test), y_test))
            model.train()
    return [finding.problem for finding in run.findings if finding.severity == "problem"]


def fit(case: Case, seed: int) -> tuple[surefoot.Result, float]:
    """Trains and repairs a case. Returns the result and the trained samples as a multiple of those of the case alone."""
    train, validation = split(case, seed)
    samples = 0

    def make_model() -> nn.Module:
        def count(module: nn.Module, args: tuple[Any, ...]) -> None:
            nonlocal samples
            samples += len(args[0]) if torch.is_grad_enabled() else 0

        model = case.model()
        model.register_forward_pre_hook(count)
        return model

    result = surefoot.fit(
        make_model, case.optimizer, case.loss, train, validation,
        epochs=case.epochs, batch_size=case.batch_size, seed=seed, runs=None, quiet=True,
    )
    return result, samples / (case.epochs * len(train[0]))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--fit", action="store_true", help="repair the faulty cases too")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tally = Tally(arguments.seed, arguments.json)
    for case in HEALTHY + faulty():
        if arguments.only not in case.name:
            continue
        result, work = fit(case, arguments.seed) if arguments.fit else (None, None)
        if case.causes == ("improper_output_units",):
            # The loss cannot be computed, so there is no loop to watch.
            if result is None:
                continue
            problems = [finding.problem for finding in result.findings]
        else:
            problems = watch(case, arguments.seed)
        tally.add(case.name, case.fault, case.causes, problems, result, work)
    tally.finish()
    return 0


if __name__ == "__main__":
    sys.exit(main())
