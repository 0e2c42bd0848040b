"""PyTorch: plain loops over tensors that are already in memory, and one with a DataLoader."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from protocol import BATCH, MLP_BATCH, MLP_EPOCHS, MLP_SAMPLES, THREADS, Train, serve
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

LSTM_DATA = Path(__file__).parents[1] / ".data"

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
    x = torch.from_numpy(np.load(LSTM_DATA / "lstm_features.npy"))
    y = torch.from_numpy(np.load(LSTM_DATA / "lstm_labels.npy"))
    return training(LastOfLstm(), nn.CrossEntropyLoss(), shuffled(x, y, BATCH, 2))


if __name__ == "__main__":
    torch.manual_seed(1)
    cases = [mlp, mlp_fused, mlp_loader, lenet, cnn, lstm]
    serve({case.__name__: case for case in cases})
