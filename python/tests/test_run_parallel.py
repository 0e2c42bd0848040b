"""Scripts with several processes: the same numbers, and with shards the same bits, for any number of them."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from test_run_keys import digests, surefoot

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
if not (torch.distributed.is_available() and hasattr(torch.library, "get_kernel")):
    pytest.skip("needs PyTorch 2.9 with torch.distributed", allow_module_level=True)

# Samples with random noise, noise in the loop, dropout, attention, batch statistics, and a padded last batch.
SCRIPT = '''
import os, random, signal
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset
from torch.utils.data.distributed import DistributedSampler

class Noisy(Dataset):
    def __len__(self):
        return 90
    def __getitem__(self, i):
        return torch.randn(4, 6) + i % 5, i % 3

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.TransformerEncoderLayer(6, 2, 12, dropout=0.2, batch_first=True)
        self.norm = NORM(6)
        self.head = nn.Linear(6, 3)
    def forward(self, x):
        keep = random.random() < 0.9
        return self.head(self.norm(self.attention(x)[:, 0] * keep))

def main():
    dist.init_process_group("gloo")
    rank, world = dist.get_rank(), dist.get_world_size()
    model = DistributedDataParallel(Model())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    dataset = Noisy()
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=16 // world, sampler=sampler)
    done = 0
    for epoch in range(2):
        sampler.set_epoch(epoch)
        for x, y in loader:
            if done == int(os.environ.get("KILL", -1)):
                os.kill(os.getpid(), signal.SIGKILL)
            x = x + 0.1 * torch.randn_like(x) * torch.rand(1)
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
    if rank == 0:
        print(sum(p.double().abs().sum().item() for p in model.parameters()))

main()
'''
BATCH_NORM = SCRIPT.replace("NORM", "nn.BatchNorm1d")
LAYER_NORM = SCRIPT.replace("NORM", "nn.LayerNorm")


def run(folder: Path, processes: int, *arguments: str, **variables: str) -> tuple[list[int], str, str]:
    """Executes `surefoot run` as `torchrun` does; returns the exit codes, the output and the messages."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    started = []
    for rank in range(processes):
        place = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1"}
        path = {"PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1", "MASTER_PORT": str(port)}
        command = [sys.executable, "-m", "surefoot", "run", *arguments]
        environment = {**os.environ, **place, **path, **variables}
        pipe = subprocess.PIPE
        started.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True))
    printed = [process.communicate(timeout=300) for process in started]
    output, errors = ("".join(texts) for texts in zip(*printed))
    return [process.returncode for process in started], output, errors


def test_with_shards_the_number_of_processes_has_no_effect_and_may_change(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BATCH_NORM)
    whole = surefoot(tmp_path, "run", "--shards", "4", "train.py")
    assert whole.returncode == 0, whole.stderr
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    command += ["surefoot", "run", "--shards", "4", "train.py"]
    two = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=300)
    assert two.stdout == whole.stdout, two.stderr
    # Four processes are killed and continued by two.
    codes, _, errors = run(tmp_path, 4, "--shards", "4", "--every", "2", "train.py", KILL="9")
    assert codes == [-9] * 4, errors
    codes, output, errors = run(tmp_path, 2, "--resume", "runs/train-003")
    assert codes == [0, 0] and output == whole.stdout, errors
    assert errors.count("surefoot: resumed at step 8") == 1
    assert len(digests(tmp_path, 1)) == 12 * (24 + 5 * 8)
    assert digests(tmp_path, 1) == digests(tmp_path, 2) == digests(tmp_path, 3)
    assert len(list((tmp_path / "runs").iterdir())) == 3
    replayed = surefoot(tmp_path, "replay", "runs/train-003")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr


def test_without_shards_the_numbers_are_the_same_and_sums_are_rounded(tmp_path: Path) -> None:
    # Adam would turn the rounding of gradients that should be zero into steps of full size.
    script = LAYER_NORM.replace("return 90", "return 96")
    script = script.replace("AdamW(model.parameters(), lr=1e-2", "SGD(model.parameters(), lr=0.1")
    (tmp_path / "train.py").write_text(script)
    results = []
    for processes in (1, 4):
        codes, output, errors = run(tmp_path, processes, "train.py")
        assert set(codes) == {0} and "surefoot" not in errors, errors
        results.append(float(output))
    assert results[0] == pytest.approx(results[1], rel=1e-5)
    codes, output, errors = run(tmp_path, 2, "--seed", "1", "train.py")
    assert codes == [0, 0] and float(output) != pytest.approx(results[0], rel=1e-3), errors


def test_what_depends_on_the_number_of_processes_is_named(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BATCH_NORM)
    _, _, errors = run(tmp_path, 1, "train.py")
    assert "`norm` (BatchNorm1d) uses statistics of the local batch" in errors
    own = LAYER_NORM.replace("sampler=sampler", "shuffle=True").replace("sampler.set_epoch(epoch)", "")
    (tmp_path / "train.py").write_text(own.replace("sampler = DistributedSampler(dataset, shuffle=True)", ""))
    codes, _, errors = run(tmp_path, 2, "train.py")
    assert codes == [0, 0] and "each process draws its own numbers" in errors
    (tmp_path / "train.py").write_text(LAYER_NORM.replace("16 // world", "6 // world"))
    codes, _, errors = run(tmp_path, 1, "--shards", "4", "train.py")
    assert codes == [2] and "a batch of 6 samples (6 per process) cannot be divided into 4 shards" in errors
    codes, _, errors = run(tmp_path, 3, "--shards", "4", "train.py")
    assert codes == [2, 2, 2] and "3 processes cannot share 4 shards" in errors
    done = surefoot(tmp_path, "run", "--shards", "3", "train.py")
    assert done.returncode == 2 and "must be a power of two" in done.stderr
