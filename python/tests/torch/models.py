"""Models that the tests discover, repair and advise on."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class FunctionalMLP(nn.Module):
    """Three hidden layers with functional activations, spelled in three ways."""

    def __init__(self, width: int = 8, outputs: int = 3) -> None:
        super().__init__()
        self.a = nn.Linear(4, width)
        self.b = nn.Linear(width, width)
        self.c = nn.Linear(width, width)
        self.out = nn.Linear(width, outputs)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.a(x))
        x = torch.sigmoid(self.b(x))
        x = self.c(x).relu()
        return self.out(x)


def module_mlp(hidden: int = 3, width: int = 8, outputs: int = 3) -> nn.Sequential:
    """Hidden layers with activation modules."""
    layers: list[nn.Module] = [nn.Linear(4, width), nn.Sigmoid()]
    for _ in range(hidden - 1):
        layers += [nn.Linear(width, width), nn.Sigmoid()]
    return nn.Sequential(*layers, nn.Linear(width, outputs))


class CNN(nn.Module):
    """Two convolutions with one shared ReLU, one of them normalized."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.bn = nn.BatchNorm2d(4)
        self.conv2 = nn.Conv2d(4, 6, 3, padding=1)
        self.act = nn.ReLU(inplace=True)
        self.pool = nn.MaxPool2d(2)
        self.drop = nn.Dropout(0.1)
        self.fc = nn.Linear(6 * 4, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(self.act(self.bn(self.conv1(x))))
        x = self.act(self.pool(self.conv2(x)))
        return self.fc(self.drop(x.flatten(1)))


class Recurrent(nn.Module):
    """An embedding, an LSTM and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(11, 6)
        self.lstm = nn.LSTM(6, 5, batch_first=True)
        self.hidden = nn.Linear(5, 5)
        self.head = nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        sequence, _ = self.lstm(self.embedding(x))
        return self.head(torch.tanh(self.hidden(sequence[:, -1])))


class Block(nn.Module):
    """A transformer block with functional attention."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)
        self.norm2 = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.qkv(self.norm1(x)).chunk(3, dim=-1)
        weights = (q @ k.transpose(1, 2) / 8.0).softmax(dim=-1)
        x = x + self.proj(weights @ v)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Transformer(nn.Module):
    """A small transformer with a bare parameter and a tied head."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.tokens = nn.Embedding(11, width)
        self.positions = nn.Parameter(torch.randn(1, 5, width) * 0.02)
        self.blocks = nn.Sequential(Block(width), Block(width))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 11, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.blocks(self.tokens(x) + self.positions)))


def numbers(size: int = 16) -> Tensor:
    """Inputs of an MLP."""
    return torch.randn(size, 4, generator=torch.Generator().manual_seed(1))


def images(size: int = 16) -> Tensor:
    """Inputs of a CNN."""
    return torch.randn(size, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def symbols(size: int = 16) -> Tensor:
    """Inputs of a recurrent network or a transformer."""
    return torch.randint(11, (size, 5), generator=torch.Generator().manual_seed(1))
