"""Measures what `surefoot run` costs at its defaults, with digests of every step and automatic checkpoints.

    python eval/run/overhead.py [ROUNDS]

The same script is executed alternately with Python and with `surefoot run`. It measures the processor time of its training
loop, all threads included, after some steps to warm up. The result is the ratio of the medians.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SCRIPT = """
import sys, time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.set_num_threads(1)
kind, steps = sys.argv[1], int(sys.argv[2])
if kind == "mlp":
    x = torch.randn(4096, 64)
    model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Dropout(0.1), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
else:
    x = torch.randn(512, 3, 32, 32)
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
                          nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
y = torch.randint(0, 10, (len(x),))
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
done = 0
while done < steps:
    for inputs, labels in loader:
        if done == steps // 10:
            begun = time.process_time()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        done += 1
        if done == steps:
            break
print((time.process_time() - begun) / (steps - steps // 10) * 1e3)
"""
STEPS = {"mlp": 8000, "cnn": 1000}


def milliseconds(folder: Path, command: list[str], kind: str) -> float:
    """Executes the script; returns the processor time of a step."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    script = [*command, str(folder / "train.py"), kind, str(STEPS[kind])]
    done = subprocess.run(script, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    return float(done.stdout)


def main(rounds: int) -> None:
    """Prints the result of each model as JSON."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "train.py").write_text(SCRIPT)
        for kind in STEPS:
            plain, run = [], []
            for _ in range(rounds):
                plain.append(milliseconds(folder, [sys.executable], kind))
                run.append(milliseconds(folder, [sys.executable, "-m", "surefoot", "run"], kind))
            ratio = statistics.median(run) / statistics.median(plain) - 1
            checkpoints = [len(list(path.glob("checkpoints/*"))) for path in (folder / "runs").iterdir()]
            result = {"model": kind, "plain_ms": plain, "run_ms": run, "overhead": ratio, "checkpoints": checkpoints}
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
