"""Cost of watching a PyTorch loop, against the same loop unwatched and against other ways to collect statistics.

All variants of a model train in turns of a few steps, so that each meets the same state of the machine. The figures are
medians over the turns of the ratio to the unwatched loop in the same turn.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

import surefoot


class LeNet(nn.Sequential):
    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
            nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip


class Block(nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + self.shortcut(x))


class ResNet18(nn.Sequential):
    def __init__(self) -> None:
        blocks: list[nn.Module] = []
        width = 64
        for outputs in (64, 128, 256, 512):
            blocks += [Block(width, outputs, 1 if outputs == 64 else 2), Block(outputs, outputs, 1)]
            width = outputs
        super().__init__(
            nn.Conv2d(3, 64, 3, 1, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(), *blocks,
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 10),
        )  # fmt: skip


class Gpt(nn.Module):
    def __init__(self, layers: int = 6, width: int = 384) -> None:
        super().__init__()
        self.embedding = nn.Embedding(256, width)
        self.position = nn.Parameter(torch.randn(128, width) * 0.02)
        block = nn.TransformerEncoderLayer(width, 6, 4 * width, 0.0, "gelu", batch_first=True, norm_first=True)
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, 256)

    def forward(self, x: Tensor) -> Tensor:
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        hidden = self.blocks(self.embedding(x) + self.position[: x.shape[1]], mask=mask, is_causal=True)
        return self.head(hidden).transpose(1, 2)


def mlp() -> nn.Module:
    hidden = [part for _ in range(5) for part in (nn.Linear(50, 50), nn.ReLU())]
    return nn.Sequential(nn.Linear(50, 50), nn.ReLU(), *hidden, nn.Linear(50, 10))


#: Model, inputs and targets, steps of a turn.
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, Tensor]], int]] = {
    "mlp": (mlp, lambda: (torch.randn(64, 50), torch.randint(10, (64,))), 200),
    "lenet": (LeNet, lambda: (torch.randn(64, 1, 28, 28), torch.randint(10, (64,))), 40),
    "resnet18": (ResNet18, lambda: (torch.randn(16, 3, 32, 32), torch.randint(10, (16,))), 4),
    "gpt": (Gpt, lambda: (torch.randint(256, (4, 128)), torch.randint(256, (4, 128))), 4),
}


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: None


def items(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: [loss.item()] + [
        (p.grad.norm().item(), p.grad.mean().item(), p.norm().item()) for p in model.parameters() if p.grad is not None
    ]


def foreach(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: torch.stack(torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None]))


def watched(every: int | None) -> Callable[[nn.Module, torch.optim.Optimizer], Callable[[Tensor], object]]:
    def make(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
        run = surefoot.watch(model, optimizer, runs=None, every=every, on_finding="ignore")
        run.start()
        return run.step

    return make


VARIANTS: dict[str, Any] = {
    "unwatched": plain,
    "surefoot": watched(None),
    "surefoot, every step": watched(1),
    "_foreach_norm": foreach,
    "item() per tensor": items,
}


def steps(case: str, variant: str, device: torch.device) -> Iterator[float]:
    """Yields the seconds of each turn."""
    make_model, make_data, count = CASES[case]
    torch.manual_seed(0)
    model = make_model().to(device)
    x, y = (it.to(device) for it in make_data())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    after = VARIANTS[variant](model, optimizer)
    while True:
        begun = time.perf_counter()
        for _ in range(count):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(loss)
        if device.type == "cuda":
            torch.cuda.synchronize()
        yield time.perf_counter() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="model; by default all")
    parser.add_argument("--turns", type=int, default=15, help="turns of each variant (default 15)")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    for case in arguments.case or CASES:
        loops = {variant: steps(case, variant, device) for variant in VARIANTS}
        for loop in loops.values():
            for _ in range(3):  # Warms up, and lets Surefoot choose its interval.
                next(loop)
        turns = [{variant: next(loop) for variant, loop in loops.items()} for _ in range(arguments.turns)]
        base = statistics.median(turn["unwatched"] for turn in turns) / CASES[case][2]
        for variant in VARIANTS:
            added = statistics.median(turn[variant] / turn["unwatched"] - 1 for turn in turns)
            if arguments.json:
                row = {"case": case, "variant": variant, "ms": base * 1e3, "added": added, "device": str(device)}
                print(json.dumps(row), flush=True)
            else:
                print(f"{case:<9} {variant:<22} {base * 1e3:8.2f} ms/step {added:+8.1%}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
