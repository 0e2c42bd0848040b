"""Scripts under `surefoot run`: the same bits in every execution, and a record of every step."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

# A script with every kind of randomness. Nothing in it is seeded.
SCRIPT = '''
import argparse, glob, os, random, time, uuid
import numpy as np, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

class Noisy(Dataset):
    def __init__(self):
        self.rng = np.random.default_rng()
    def __len__(self):
        return 40
    def __getitem__(self, i):
        x = np.random.randn(6) + random.random() + self.rng.normal()
        return torch.from_numpy(x).float() + torch.rand(6), i % 3

parser = argparse.ArgumentParser()
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--evaluate", action="store_true")
parser.add_argument("--fail", action="store_true")
args = parser.parse_args()
torch.manual_seed(int(time.time()))
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=args.workers)
held_out = DataLoader(Noisy(), batch_size=8)
for epoch in range(3):
    for x, y in loader:
        optimizer.zero_grad()
        x = x + 0.01 * random.random() + 0.01 * len({"a", "b", str(uuid.uuid4())})
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    if args.evaluate:
        for x, y in held_out:
            torch.rand(3), np.random.rand(), random.random()
            with torch.no_grad():
                model(x) if not model.eval() else None
        model.train()
print("finished")
if args.fail:
    raise ValueError("at the end")
'''


def run(folder: Path, *arguments: str, script: str = SCRIPT) -> subprocess.CompletedProcess[str]:
    path = folder / "train.py"
    path.write_text(script)
    command = [sys.executable, "-m", "surefoot", "run", "--runs", "runs", "train.py", *arguments]
    return surefoot(folder, *command[3:])


def surefoot(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "surefoot", *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)


def digests(folder: Path, number: int) -> bytes:
    return (folder / f"runs/train-{number:03}/digests.bin").read_bytes()


def summary(folder: Path, number: int) -> Any:
    return json.loads((folder / f"runs/train-{number:03}/summary.json").read_text())


def test_neither_workers_nor_evaluations_change_the_digests(tmp_path: Path) -> None:
    for arguments in ([], ["--workers", "2"], ["--evaluate"]):
        done = run(tmp_path, *arguments)
        assert (done.returncode, done.stdout) == (0, "finished\n"), done.stderr
    assert len(digests(tmp_path, 1)) == 15 * (24 + 5 * 8)
    assert digests(tmp_path, 1) == digests(tmp_path, 2) == digests(tmp_path, 3)
    assert summary(tmp_path, 1)["digest"] == summary(tmp_path, 2)["digest"]
    assert summary(tmp_path, 1)["steps"] == 15
    program = json.loads((tmp_path / "runs/train-002/program.json").read_text())
    assert program["arguments"] == ["--workers", "2"]
    assert program["script"] == str((tmp_path / "train.py").resolve())
    assert program["environment"]["PYTHONHASHSEED"] == "0"
    assert "torch" in program["libraries"]


def test_a_seed_of_the_command_or_of_the_script_changes_all_draws(tmp_path: Path) -> None:
    fixed = SCRIPT.replace("int(time.time())", "5")
    other = SCRIPT.replace("int(time.time())", "6")
    for script in (fixed, other):
        assert run(tmp_path, script=script).returncode == 0
    assert surefoot(tmp_path, "run", "--seed", "1", "train.py").returncode == 0
    assert len({digests(tmp_path, number) for number in (1, 2, 3)}) == 3


def test_compare_names_the_first_step_that_differs(tmp_path: Path) -> None:
    run(tmp_path)
    run(tmp_path, script=SCRIPT.replace("optimizer.zero_grad()", "optimizer.zero_grad(); x = x * (1 + (epoch > 0))"))
    compared = surefoot(tmp_path, "compare", "runs/train-001", "runs/train-002")
    assert compared.returncode == 1
    assert "diverge at step 6" in compared.stdout, compared.stdout


def test_replay_repeats_a_script(tmp_path: Path) -> None:
    run(tmp_path)
    replayed = surefoot(tmp_path, "replay", "runs/train-001")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    (tmp_path / "train.py").write_text(SCRIPT.replace("lr=1e-2", "lr=2e-2"))
    assert surefoot(tmp_path, "replay", "runs/train-001").returncode == 1


def test_a_crash_keeps_the_output_and_the_exit_code_of_the_script(tmp_path: Path) -> None:
    done = run(tmp_path, "--fail")
    assert done.returncode == 1
    assert done.stdout == "finished\n"
    assert "ValueError: at the end" in done.stderr
    assert "surefoot/run" not in done.stderr
    events = (tmp_path / "runs/train-001/events.jsonl").read_text().splitlines()
    assert json.loads(events[-1]) == {"event": "crashed", "step": 15, "reason": "ValueError: at the end"}
    assert surefoot(tmp_path, "report", "runs/train-001", "-o", "run.html").returncode == 0
    assert "The script crashed at step 15: ValueError: at the end." in (tmp_path / "run.html").read_text()
    exits = run(tmp_path, script="import sys\nsys.exit(7)")
    assert exits.returncode == 7


def test_a_program_can_call_deterministic_itself(tmp_path: Path) -> None:
    script = "import surefoot; surefoot.deterministic(seed=3)\n" + SCRIPT + "print(sum(p.sum() for p in model.parameters()))"
    (tmp_path / "train.py").write_text(script)
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "train.py"]
    outputs = [subprocess.check_output(command, cwd=tmp_path, env=environment) for _ in range(2)]
    assert outputs[0] == outputs[1]


def test_listings_and_arrivals_have_a_fixed_order(tmp_path: Path) -> None:
    script = '''
import glob, os, pathlib, time
from concurrent.futures import ThreadPoolExecutor, as_completed
for name in ("c", "a", "b"):
    open(name + ".txt", "w").close()
names = lambda paths: [os.path.basename(p)[0] for p in paths if str(p).endswith("txt")]
print(names(os.listdir(".")), names(glob.glob("*.txt")), names(e.name for e in os.scandir(".")))
print(names(map(str, pathlib.Path(".").iterdir())))
with ThreadPoolExecutor(3) as pool:
    futures = [pool.submit(lambda s: (time.sleep(s), s)[1], s) for s in (0.2, 0.1, 0.0)]
    print([future.result() for future in as_completed(futures)])
'''
    done = run(tmp_path, script=script)
    ordered = "['a', 'b', 'c']"
    assert done.stdout.splitlines() == [f"{ordered} {ordered} {ordered}", ordered, "[0.2, 0.1, 0.0]"], done.stderr
