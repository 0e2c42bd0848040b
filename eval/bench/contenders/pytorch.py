"""PyTorch: plain loops over tensors that are already in memory, and one with a DataLoader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from protocol import BATCH, MLP_BATCH, MLP_EPOCHS, MLP_SAMPLES, THREADS, Train, serve
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

DATA = Path(__file__).parents[1] / ".data"

Batches = Callable[[], Iterator[tuple[Tensor, Tensor]]]


def circles(samples: int) -> tuple[Tensor, Tensor]:
    """Two noisy circles, one half the size of the other."""
    angle = 2 * math.pi * torch.rand(samples)
    inner = (torch.arange(samples) % 2).float()
    radius = 1 - 0.5 * inner
    points = torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1)
    return points + 0.1 * torch.randn_like(points), inner.unsqueeze(1)


def images(samples: int, size: int, channels: int) -> tuple[Tensor, Tensor]:
    return torch.randn(samples, channels, size, size), torch.randint(10, (samples,))


def shuffled(x: Tensor, y: Tensor, batch: int, epochs: int) -> Batches:
    """Batches by index: the fastest way PyTorch has while the data fit in memory."""

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(epochs):
            for indices in torch.randperm(len(x)).split(batch):
                yield x[indices], y[indices]

    return batches


def loaded(x: Tensor, y: Tensor, batch: int, epochs: int) -> Batches:
    loader = DataLoader(TensorDataset(x, y), batch_size=batch, shuffle=True)

    def batches() -> Iterator[tuple[Tensor, Tensor]]:
        for _ in range(epochs):
            yield from loader

    return batches


def training(model: nn.Module, loss: nn.Module, batches: Batches, fused: bool = False, threads: int = THREADS) -> Train:
    optimizer = torch.optim.Adam(model.parameters(), fused=fused)

    def train() -> int:
        torch.set_num_threads(threads)
        model.train()
        steps = 0
        for x, y in batches():
            optimizer.zero_grad()
            loss(model(x), y).backward()
            optimizer.step()
            steps += 1
        return steps

    return train


def mlp_model() -> nn.Module:
    sizes = [2] + [8] * 10
    hidden = [part for i, o in pairwise(sizes) for part in (nn.Linear(i, o), nn.ReLU())]
    return nn.Sequential(*hidden, nn.Linear(8, 1), nn.Sigmoid())


def mlp(batches: Callable[..., Batches] = shuffled, fused: bool = False) -> Train:
    """One thread: on layers this small a second one only waits, and for long where cores are shared."""
    x, y = circles(MLP_SAMPLES)
    return training(mlp_model(), nn.BCELoss(), batches(x, y, MLP_BATCH, MLP_EPOCHS), fused, threads=1)


def mlp_fused() -> Train:
    return mlp(fused=True)


def mlp_loader() -> Train:
    return mlp(loaded)


def lenet() -> Train:
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.Tanh(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.Tanh(),
        nn.Linear(120, 84),
        nn.Tanh(),
        nn.Linear(84, 10),
    )
    x, y = images(40 * BATCH, 28, 1)
    return training(model, nn.CrossEntropyLoss(), shuffled(x, y, BATCH, 2))


def cnn() -> Train:
    widths = [3, 32, 32, 64, 64]
    convolutions: list[nn.Module] = []
    for n, (i, o) in enumerate(pairwise(widths), start=1):
        convolutions += [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        if n % 2 == 0:
            convolutions.append(nn.MaxPool2d(2))
    model = nn.Sequential(*convolutions, nn.Flatten(), nn.Linear(4096, 128), nn.ReLU(), nn.Linear(128, 10))
    x, y = images(10 * BATCH, 32, 3)
    return training(model, nn.CrossEntropyLoss(), shuffled(x, y, BATCH, 1))


class LastOfLstm(nn.Module):
    """LSTM(64), then a dense layer on the output of the last step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(16, 64, batch_first=True)
        self.dense = nn.Linear(64, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.dense(self.lstm(x)[0][:, -1])


def lstm() -> Train:
    x = torch.from_numpy(np.load(DATA / "lstm_features.npy"))
    y = torch.from_numpy(np.load(DATA / "lstm_labels.npy"))
    return training(LastOfLstm(), nn.CrossEntropyLoss(), shuffled(x, y, BATCH, 2))


def medium(model: nn.Module, x: Tensor, y: Tensor, batch: int, epochs: int, compiled: bool) -> Train:
    """Trains, then evaluates the training split once, as Surefoot does without a validation split."""
    if compiled:
        model = torch.compile(model)
    loss = nn.CrossEntropyLoss()
    steps = training(model, loss, shuffled(x, y, batch, epochs))

    def train() -> int:
        taken = steps()
        model.eval()
        with torch.no_grad():
            loss(model(x), y)
        return taken

    return train


def wide_mlp(compiled: bool = False) -> Train:
    model = nn.Sequential(nn.Linear(784, 2048), nn.ReLU(), nn.Linear(2048, 2048), nn.ReLU(), nn.Linear(2048, 10))
    return medium(model, torch.randn(256, 784), torch.randint(10, (256,)), 128, 10, compiled)


class Blocks(nn.Module):
    """Transformer blocks on tokens, then an output for the sequence or for each position."""

    def __init__(
        self, symbols: int, steps: int, width: int, heads: int, blocks: int, activation: nn.Module, outputs: int, pooled: bool
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(symbols, width)
        self.positions = nn.Parameter(torch.zeros(steps, width))
        block = nn.TransformerEncoderLayer(width, heads, 4 * width, 0.0, activation, batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, blocks, nn.LayerNorm(width), enable_nested_tensor=False)
        self.output = nn.Linear(width, outputs)
        self.pooled = pooled

    def forward(self, x: Tensor) -> Tensor:
        y = self.blocks(self.embedding(x) + self.positions)
        # Cross entropy takes the classes of `[batch, steps]` in the second dimension.
        return self.output(y.mean(1)) if self.pooled else self.output(y).transpose(1, 2)


def transformer(compiled: bool = False) -> Train:
    model = Blocks(8, 64, 256, 4, 3, nn.ReLU(), 8, pooled=True)
    x = torch.randint(8, (32, 64))
    return medium(model, x, x[:, 0], 32, 8, compiled)


def gpt(compiled: bool = False) -> Train:
    model = Blocks(64, 128, 384, 6, 6, nn.GELU("tanh"), 64, pooled=False)
    tokens, following = (torch.from_numpy(np.load(DATA / f"gpt_{name}.npy")) for name in ("tokens", "next"))
    return medium(model, tokens, following.squeeze(-1), 8, 6, compiled)


class Residual(nn.Module):
    """`relu(layers(x) + shortcut(x))`"""

    def __init__(self, layers: nn.Module, shortcut: nn.Module | None = None) -> None:
        super().__init__()
        self.layers = layers
        self.shortcut = shortcut or nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.layers(x) + self.shortcut(x))


def residual(compiled: bool = False) -> Train:
    parts: list[nn.Module] = []
    for i, o in pairwise([3, 64, 128, 256]):
        parts += [nn.Conv2d(i, o, 3, padding=1), nn.ReLU()]
        parts += [Residual(nn.Sequential(nn.Conv2d(o, o, 3, padding=1), nn.ReLU(), nn.Conv2d(o, o, 3, padding=1)))]
        parts += [nn.MaxPool2d(2)]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
    return medium(model, *images(32, 32, 3), 32, 6, compiled)


def resnet18(compiled: bool = False) -> Train:
    def convolution(i: int, o: int, stride: int = 1, size: int = 3) -> list[nn.Module]:
        return [nn.Conv2d(i, o, size, stride, padding=size // 2, bias=False), nn.BatchNorm2d(o)]

    parts = [*convolution(3, 64), nn.ReLU()]
    for i, o in pairwise([64, 64, 128, 256, 512]):
        stride = 1 if i == o else 2
        shortcut = None if i == o else nn.Sequential(*convolution(i, o, 2, size=1))
        parts += [Residual(nn.Sequential(*convolution(i, o, stride), nn.ReLU(), *convolution(o, o)), shortcut)]
        parts += [Residual(nn.Sequential(*convolution(o, o), nn.ReLU(), *convolution(o, o)))]
    model = nn.Sequential(*parts, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10))
    return medium(model, *images(64, 32, 3), 64, 3, compiled)


if __name__ == "__main__":
    torch.manual_seed(1)
    cases = [mlp, mlp_fused, mlp_loader, lenet, cnn, lstm]
    medium_cases = [wide_mlp, transformer, gpt, residual, resnet18]
    served = {case.__name__: case for case in [*cases, *medium_cases]}
    serve(served | {f"{case.__name__}_compiled": partial(case, compiled=True) for case in medium_cases})
