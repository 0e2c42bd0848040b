"""Cost of watching a PyTorch loop, against the same loop unwatched and against other ways to collect statistics.

All variants of a model train in turns. A turn has as many steps as there are from one observation to the next, so each
turn of the watched loop contains one observed step. The time of a turn is divided by that of the unwatched loop's turn
in the same round; printed are the median over the rounds and the quartiles. On CPU the time is that of the processor,
which other programs hardly change. Surefoot runs at its default settings and records the run. Peak memory is that of a
process that trains only one variant. W&B runs offline, and only if it is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

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


#: Model, inputs and targets.
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], tuple[Tensor, Tensor]]]] = {
    "mlp": (mlp, lambda: (torch.randn(64, 50), torch.randint(10, (64,)))),
    "lenet": (LeNet, lambda: (torch.randn(64, 1, 28, 28), torch.randint(10, (64,)))),
    "resnet18": (ResNet18, lambda: (torch.randn(16, 3, 32, 32), torch.randint(10, (16,)))),
    "gpt": (Gpt, lambda: (torch.randint(256, (4, 128)), torch.randint(256, (4, 128)))),
}

After = Callable[[Tensor], object]
"""Called with the loss of each step."""


def plain(model: nn.Module, optimizer: torch.optim.Optimizer) -> After:
    return lambda loss: None


def items(model: nn.Module, optimizer: torch.optim.Optimizer) -> After:
    return lambda loss: [loss.item()] + [
        (p.grad.norm().item(), p.grad.mean().item(), p.norm().item()) for p in model.parameters() if p.grad is not None
    ]


def foreach(model: nn.Module, optimizer: torch.optim.Optimizer) -> After:
    return lambda loss: torch.stack(torch._foreach_norm([p.grad for p in model.parameters() if p.grad is not None]))


def wandb_watch(model: nn.Module, optimizer: torch.optim.Optimizer) -> After:
    """``wandb.watch`` with its defaults: histograms of all gradients at every 1000th step."""
    import wandb

    run = wandb.init(mode="offline", dir=tempfile.mkdtemp(prefix="surefoot-bench-"), settings={"silent": True})
    run.watch(model)
    return lambda loss: run.log({"loss": loss})


def watched(every: int | None) -> Callable[[nn.Module, torch.optim.Optimizer], After]:
    def make(model: nn.Module, optimizer: torch.optim.Optimizer) -> After:
        runs = tempfile.mkdtemp(prefix="surefoot-bench-")
        run = surefoot.watch(model, optimizer, runs=runs, every=every, on_finding="ignore")
        run.start()
        return run.step

    return make


VARIANTS: dict[str, Callable[[nn.Module, torch.optim.Optimizer], After]] = {
    "unwatched": plain,
    "surefoot": watched(None),
    "surefoot, every step": watched(1),
    "_foreach_norm": foreach,
    "wandb.watch": wandb_watch,
    "item() per tensor": items,
}

WARM_UP = 16
"""First steps, in which Surefoot also chooses its interval."""


class Loop:
    """A training loop of one variant."""

    def __init__(self, case: str, variant: str, device: torch.device) -> None:
        make_model, make_data = CASES[case]
        torch.manual_seed(0)
        self._device = device
        self._model = make_model().to(device)
        self._data = [it.to(device) for it in make_data()]
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=1e-4)
        self._after = VARIANTS[variant](self._model, self._optimizer)
        self.train(WARM_UP)

    @property
    def every(self) -> int:
        """Interval of observations, of a watched loop."""
        return self._after.__self__.every  # type: ignore[attr-defined, no-any-return]

    def train(self, steps: int) -> None:
        x, y = self._data
        for _ in range(steps):
            loss = F.cross_entropy(self._model(x), y)
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
            self._after(loss)
        if self._device.type == "cuda":
            torch.cuda.synchronize()


def peak(case: str, variant: str, device: torch.device) -> float:
    """Trains for some steps and returns the peak memory of the device or the process in MiB."""
    Loop(case, variant, device).train(WARM_UP)
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated() / 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def peaks(case: str, variants: list[str], arguments: argparse.Namespace) -> dict[str, float]:
    """Returns the peak memory of each variant, by a process of its own."""
    found = {}
    for variant in variants:
        command = [sys.executable, __file__, "--peak", "--case", case, "--variant", variant]
        command += ["--threads", str(arguments.threads), "--device", arguments.device]
        output = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout
        found[variant] = float(output.split()[-1])
    return found


def measure(case: str, variants: list[str], arguments: argparse.Namespace) -> tuple[dict[str, list[float]], int]:
    """Returns the seconds of the turns of each variant, and the steps of a turn."""
    device = torch.device(arguments.device)
    clock = time.perf_counter if arguments.clock == "wall" else time.process_time
    loops = {variant: Loop(case, variant, device) for variant in variants}
    steps = max(loops["surefoot"].every, 4) if "surefoot" in loops else WARM_UP
    # Until then, more steps are observed.
    if "surefoot" in loops:
        loops["surefoot"].train(8 * steps - WARM_UP)
    turns: dict[str, list[float]] = {variant: [] for variant in variants}
    begun = time.perf_counter()
    while time.perf_counter() - begun < arguments.seconds or len(turns["unwatched"]) < arguments.rounds:
        # Another order in every round: a loop is slower after one that uses more of the caches.
        first = len(turns["unwatched"]) % len(variants)
        for variant in variants[first:] + variants[:first]:
            started = clock()
            loops[variant].train(steps)
            turns[variant].append(clock() - started)
    return turns, steps


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=list(CASES), help="model; by default all")
    parser.add_argument("--variant", action="append", choices=list(VARIANTS), help="by default all")
    parser.add_argument("--seconds", type=float, default=60.0, help="least time of a case (default 60)")
    parser.add_argument("--rounds", type=int, default=12, help="least number of rounds of a case (default 12)")
    parser.add_argument("--clock", choices=["wall", "cpu"], help="by default the processor's, on a GPU the wall clock")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--no-memory", action="store_true", help="do not measure the peak memory")
    parser.add_argument("--peak", action="store_true", help="print the peak memory in MiB of one case and variant")
    arguments = parser.parse_args()
    arguments.clock = arguments.clock or ("cpu" if arguments.device == "cpu" else "wall")
    torch.set_num_threads(arguments.threads)
    given = arguments.variant or [it for it in VARIANTS if it != "wandb.watch" or importlib.util.find_spec("wandb")]
    if arguments.peak:
        print(peak(arguments.case[0], given[0], torch.device(arguments.device)))
        return 0
    variants = list(dict.fromkeys(["unwatched", *given]))
    for case in arguments.case or CASES:
        memory = {} if arguments.no_memory else peaks(case, variants, arguments)
        turns, steps = measure(case, variants, arguments)
        base = statistics.median(turns["unwatched"]) / steps
        for variant in variants:
            pairs = zip(turns[variant], turns["unwatched"], strict=True)
            low, middle, high = statistics.quantiles([mine / plain - 1 for mine, plain in pairs], n=4)
            more = memory[variant] / memory["unwatched"] - 1 if memory else None
            if arguments.json:
                row = {"case": case, "variant": variant, "ms": base * 1e3, "added": middle, "quartiles": [low, high]}
                row |= {"rounds": len(turns[variant]), "steps": steps, "memory": more, "device": arguments.device}
                print(json.dumps(row), flush=True)
            else:
                cost = f"{middle:+7.1%} ({low:+.1%} to {high:+.1%})"
                peak_memory = "" if more is None else f"memory {more:+.1%}"
                print(f"{case:<9} {variant:<22} {base * 1e3:8.2f} ms/step {cost:<28} {peak_memory}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
