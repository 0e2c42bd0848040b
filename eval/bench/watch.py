"""Cost of watching a PyTorch loop, against the same loop unwatched and against other ways to collect statistics.

All variants of a model train in turns of a few steps, so that each meets the same state of the machine. A round has as
many turns as it takes to meet several observed steps. The time of a variant is its sum over a round, divided by that of
the unwatched loop; printed are the median, the lowest and the highest round. Surefoot runs at its default settings and
records the run. Peak memory is that of a process that trains only one variant.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
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


#: Model, inputs and targets, steps of a turn, turns of a round.
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, Tensor]], int, int]] = {
    "mlp": (mlp, lambda: (torch.randn(64, 50), torch.randint(10, (64,))), 16, 32),
    "lenet": (LeNet, lambda: (torch.randn(64, 1, 28, 28), torch.randint(10, (64,))), 4, 32),
    "resnet18": (ResNet18, lambda: (torch.randn(16, 3, 32, 32), torch.randint(10, (16,))), 1, 32),
    "gpt": (Gpt, lambda: (torch.randint(256, (4, 128)), torch.randint(256, (4, 128))), 1, 32),
}


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: None


def items(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: [loss.item()] + [
        (p.grad.norm().item(), p.grad.mean().item(), p.norm().item()) for p in model.parameters() if p.grad is not None
    ]


def foreach(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    return lambda loss: torch.stack(torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None]))


def histograms(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
    """Hooks on all gradients that make a histogram at every 1000th step, which is what ``wandb.watch`` does."""
    seen: list[list[float]] = []
    calls = dict.fromkeys((name for name, _ in model.named_parameters()), 0)

    def hook_of(name: str) -> Callable[[Tensor], None]:
        def hook(gradient: Tensor) -> None:
            calls[name] += 1
            if calls[name] % 1000 == 0:
                flat = gradient.detach().reshape(-1)
                seen.append(flat.histc(64, min=flat.min().item(), max=flat.max().item()).tolist())

        return hook

    for name, parameter in model.named_parameters():
        parameter.register_hook(hook_of(name))
    return lambda loss: None


def watched(every: int | None) -> Callable[[nn.Module, torch.optim.Optimizer], Callable[[Tensor], object]]:
    def make(model: nn.Module, optimizer: torch.optim.Optimizer) -> Callable[[Tensor], object]:
        runs = tempfile.mkdtemp(prefix="surefoot-bench-")
        run = surefoot.watch(model, optimizer, runs=runs, every=every, on_finding="ignore")
        run.start()
        return run.step

    return make


VARIANTS: dict[str, Any] = {
    "unwatched": plain,
    "surefoot": watched(None),
    "surefoot, every step": watched(1),
    "_foreach_norm": foreach,
    "histograms like W&B": histograms,
    "item() per tensor": items,
}


def turns(case: str, variant: str, device: torch.device, clock: Callable[[], float]) -> Iterator[float]:
    """Yields the seconds of each turn."""
    make_model, make_data, count, _ = CASES[case]
    torch.manual_seed(0)
    model = make_model().to(device)
    x, y = (it.to(device) for it in make_data())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    after = VARIANTS[variant](model, optimizer)
    while True:
        begun = clock()
        for _ in range(count):
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            after(loss)
        if device.type == "cuda":
            torch.cuda.synchronize()
        yield clock() - begun


def peak(case: str, variant: str, device: torch.device) -> float:
    """Trains for some steps and returns the peak memory of the device or the process in MiB."""
    loop = turns(case, variant, device, time.perf_counter)
    for _ in range(-(-16 // CASES[case][2])):
        next(loop)
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peaks(case: str, variants: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """Returns the peak memory of each variant, by a process of its own."""
    found = {}
    for variant in variants:
        command = [sys.executable, __file__, "--peak", "--case", case, "--variant", variant]
        command += ["--threads", str(arguments.threads), "--device", arguments.device]
        found[variant] = float(subprocess.run(command, check=True, capture_output=True).stdout)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", action="append", choices=list(CASES), help="model; by default all")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="by default all")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each variant (default 5)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu leaves other processes out")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--no-memory", action="store_true", help="do not measure the peak memory")
    parser.add_argument("--peak", action="store_true", help="print the peak memory in MiB of one case and variant")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    device = torch.device(arguments.device)
    variants = list(dict.fromkeys(["unwatched", *(arguments.variant or VARIANTS)]))
    if arguments.peak:
        print(peak(arguments.case[0], variants[-1], device))
        return 0
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    for case in arguments.case or CASES:
        count, length = CASES[case][2:]
        memory = {} if arguments.no_memory else peaks(case, variants, arguments)
        loops = {variant: turns(case, variant, device, clock) for variant in variants}
        for loop in loops.values():
            for _ in range(-(-16 // count)):  # Warms up, and lets Surefoot choose its interval.
                next(loop)
        rounds = []
        for _ in range(arguments.rounds):
            sums = dict.fromkeys(variants, 0.0)
            for turn in range(length):
                # Another order in every turn: a loop is slower after one that uses more of the caches.
                for at in range(len(variants)):
                    variant = variants[(at + turn) % len(variants)]
                    sums[variant] += next(loops[variant])
            rounds.append(sums)
        base = statistics.median(sums["unwatched"] for sums in rounds) / (count * length)
        for variant in variants:
            added = sorted(sums[variant] / sums["unwatched"] - 1 for sums in rounds)
            more = memory[variant] / memory["unwatched"] - 1 if memory else None
            if arguments.json:
                row = {"case": case, "variant": variant, "ms": base * 1e3, "added": statistics.median(added)}
                row |= {"lowest": added[0], "highest": added[-1], "memory": more, "device": str(device)}
                print(json.dumps(row), flush=True)
            else:
                cost = f"{statistics.median(added):+7.1%} ({added[0]:+.1%} to {added[-1]:+.1%})"
                peak_memory = "" if more is None else f"memory {more:+.1%}"
                print(f"{case:<9} {variant:<22} {base * 1e3:8.2f} ms/step {cost:<28} {peak_memory}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
