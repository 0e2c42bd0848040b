"""`surefoot run` when something is wrong: clear messages, and nothing of the run is lost."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from test_run_keys import digests, surefoot

pytest.importorskip("torch", reason="PyTorch is not installed")

SCRIPT = '''
import os, signal, time
import torch
from torch import nn

model = nn.Linear(64, 400)
optimizer = torch.optim.Adam(model.parameters())
for step in range(12):
    if step == int(os.environ.get("KILL", -1)):
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(float(os.environ.get("SLEEP", 0)))
    optimizer.zero_grad()
    model(torch.randn(8, 64)).square().mean().backward()
    optimizer.step()
print(sum(p.double().sum().item() for p in model.parameters()))
'''


def start(folder: Path, *arguments: str, limit: int | None = None, **variables: str) -> subprocess.Popen[str]:
    def restrict() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "OMP_NUM_THREADS": "1", **variables}
    command = [sys.executable, "-m", "surefoot", *arguments]
    pipe = subprocess.PIPE
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=restrict
    )


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run that was killed before step 9, and its checkpoints."""
    folder = tmp_path_factory.mktemp("killed")
    (folder / "train.py").write_text(SCRIPT)
    process = start(folder, "run", "--every", "4", "train.py", KILL="9")
    process.communicate()
    assert process.returncode == -9
    return folder


def test_two_processes_cannot_resume_one_run(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    first = start(tmp_path, "run", "--resume", "runs/train-001", SLEEP="12")
    assert first.stderr is not None
    while "resumed" not in (line := first.stderr.readline()) and line:
        pass
    second = surefoot(tmp_path, "run", "--resume", "runs/train-001")
    assert second.returncode == 2, second.stderr
    assert "is in use by another process" in second.stderr and "Traceback" not in second.stderr
    first.kill()
    first.communicate()
    done = surefoot(tmp_path, "run", "--resume", "runs/train-001")
    assert done.returncode == 0 and "resumed at step 8" in done.stderr, done.stderr


def test_other_library_versions_are_named(killed: Path, tmp_path: Path) -> None:
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    # What the installer leaves of another version, found first.
    installed = tmp_path / "other/torch-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n")
    path = os.pathsep.join([str(installed.parent), str(Path(__file__).parents[1])])
    process = start(tmp_path, "run", "--resume", "runs/train-001", PYTHONPATH=path)
    _, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "and is 1.0; the results may differ" in errors and "resumed at step 8" in errors


def test_a_full_disk_stops_the_record_and_not_the_training(killed: Path, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    # A file cannot become larger: as on a full disk, writing a checkpoint fails.
    process = start(tmp_path, "run", "--every", "4", "train.py", limit=60_000)
    output, errors = process.communicate()
    assert process.returncode == 0, errors
    assert "the checkpoint at step 4 was not written, and the training continues" in errors
    whole = surefoot(tmp_path, "run", "train.py")
    assert whole.stdout == output
    assert digests(tmp_path, 1) == digests(tmp_path, 2)


def test_a_script_without_a_loop_is_recorded_without_steps(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('nothing to train')")
    done = surefoot(tmp_path, "run", "train.py")
    assert (done.returncode, done.stdout) == (0, "nothing to train\n")
    assert "no optimizer step was seen, so nothing is recorded of the training" in done.stderr


def test_wrong_arguments_are_explained(tmp_path: Path) -> None:
    (tmp_path / "runs/other-001").mkdir(parents=True)
    for arguments, message in (
        (["missing.py"], "there is no script missing.py"),
        (["--resume", "runs/other-001"], "is not a run of a script: it has no program.json"),
    ):
        done = surefoot(tmp_path, "run", *arguments)
        assert done.returncode == 2 and message in done.stderr, done.stderr
