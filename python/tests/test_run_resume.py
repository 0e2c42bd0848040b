"""Automatic checkpoints: a killed script continues to the same bits, without checkpoint code of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from test_run_keys import digests, surefoot

pytest.importorskip("torch", reason="PyTorch is not installed")

# A class, functions, a `while` loop, accumulation, an average of the weights, a buffer of samples, a best value.
SCRIPT = '''
import collections, copy, os, random, signal
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __len__(self):
        return 24
    def __getitem__(self, i):
        return torch.randn(6) + float(np.random.rand()) + random.random(), i % 3

class Trainer:
    def __init__(self):
        self.model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
        self.average = copy.deepcopy(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-2)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 6)
        self.seen = collections.deque(maxlen=9)
        self.best, self.steps = float("inf"), 0
        self.rng = np.random.default_rng(4)

    def epoch(self, loader):
        total = 0.0
        for number, (x, y) in enumerate(loader):
            x = x + float(self.rng.normal())
            loss = nn.functional.cross_entropy(self.model(x), y) / 2
            loss.backward()
            if number % 2:
                self.optimizer.step()
                self.optimizer.zero_grad()
                self.steps += 1
                if self.steps == int(os.environ.get("KILL", 0)):
                    os.kill(os.getpid(), signal.SIGKILL)
            self.seen.append((number, float(loss)))
            for old, new in zip(self.average.parameters(), self.model.parameters()):
                old.data.mul_(0.9).add_(new.data, alpha=0.1)
            total += loss.item()
        return total

def main():
    table = torch.arange(4000.0)
    trainer = Trainer()
    loader = DataLoader(Noisy(), batch_size=4, shuffle=True, num_workers=int(os.environ.get("WORKERS", 0)))
    done = 0
    while done < 6:
        total = trainer.epoch(loader)
        trainer.scheduler.step()
        trainer.best = min(trainer.best, total + 0 * table.sum().item())
        done += 1
    average = sum(p.double().sum().item() for p in trainer.average.parameters())
    print(repr((average, trainer.best, list(trainer.seen), done)))

main()
'''


def resumed(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "surefoot", "run", "--resume", "runs/train-002"]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=120)


def kill(folder: Path, monkeypatch: pytest.MonkeyPatch, at: int, every: int = 2) -> None:
    monkeypatch.setenv("KILL", str(at))
    killed = surefoot(folder, "run", "--every", str(every), "train.py")
    assert killed.returncode == -9, killed.stderr
    monkeypatch.delenv("KILL")


def test_a_killed_run_resumes_to_the_same_bits_with_other_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    whole = surefoot(tmp_path, "run", "train.py")
    assert whole.returncode == 0, whole.stderr
    kill(tmp_path, monkeypatch, at=11)
    done = resumed(tmp_path, WORKERS="2")
    assert done.returncode == 0, done.stderr
    assert "resumed at step 10" in done.stderr
    assert done.stdout == whole.stdout
    assert digests(tmp_path, 1) == digests(tmp_path, 2)
    checkpoint = sorted((tmp_path / "runs/train-002/checkpoints").iterdir())[-1].read_bytes()
    assert b"trainer.model" in checkpoint and len(checkpoint) < 100_000
    events = [json.loads(line) for line in (tmp_path / "runs/train-002/events.jsonl").read_text().splitlines()]
    done_epochs = [(event["step"], event["epoch"]) for event in events if event["event"] == "checkpoint"]
    assert done_epochs == [(step, (step - 1) // 3) for step in range(2, 19, 2)]
    finished = resumed(tmp_path)
    assert finished.returncode == 2 and "finished" in finished.stderr


def test_a_run_that_cannot_be_resumed_is_left_unchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    (tmp_path / "runs/train-001").mkdir(parents=True)
    kill(tmp_path, monkeypatch, at=7)
    events = tmp_path / "runs/train-002/events.jsonl"
    before = digests(tmp_path, 2), events.read_text()
    # Another loop.
    script.write_text(SCRIPT.replace("if number % 2:", "if number % 3:"))
    edited = resumed(tmp_path)
    assert edited.returncode == 2
    assert "was changed since the run was started" in edited.stderr, edited.stderr
    assert "Traceback" not in edited.stderr
    # No loop.
    script.write_text("print('nothing')")
    nothing = resumed(tmp_path)
    assert "before it reached the training loop" in nothing.stderr
    # An error before the loop.
    script.write_text(SCRIPT.replace("def main():\n", "def main():\n    raise ValueError('too early')\n"))
    early = resumed(tmp_path)
    assert early.returncode == 1 and "too early. The run is unchanged." in early.stderr, early.stderr
    assert digests(tmp_path, 2) == before[0] and events.read_text() == before[1]
    script.write_text(SCRIPT)
    done = resumed(tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_cannot_be_saved_is_named_at_the_start(tmp_path: Path) -> None:
    script = SCRIPT.replace("    done = 0\n", "    done = 0\n    log = open('log.txt', 'w')\n    items = (i for i in range(3))\n")
    (tmp_path / "train.py").write_text(script)
    done = surefoot(tmp_path, "run", "train.py")
    assert "`main.log` (open file) cannot be saved" in done.stderr
    assert "`main.items` (generator) cannot be saved" in done.stderr
