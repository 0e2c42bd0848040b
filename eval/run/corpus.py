"""Executes the corpus of training scripts under `surefoot run`.

    python eval/run/corpus.py FRAMEWORK[,FRAMEWORK] [NAME...]

FRAMEWORK is `pytorch`, `lightning`, `keras` or `tensorflow`; the last two need TensorFlow (`pip install -r
eval/run/requirements.txt`). Each script is executed twice, then killed with SIGKILL at a random step and resumed from its
automatic checkpoint with another number of loader workers. All digests must be equal. The processes are forks of this
one, which has the framework in memory; set PYTHONHASHSEED.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import tomllib
from pathlib import Path
from typing import Any

from surefoot.run import launch

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "crates/surefoot-check/tests/corpus"
PRELOADED = {"pytorch": "torch", "lightning": "lightning", "keras": "tensorflow", "tensorflow": "tensorflow"}
TIME_LIMIT = 600


def scripts(frameworks: list[str], names: list[str]) -> list[tuple[str, Path]]:
    """Scripts to execute: a name and a path."""
    found = []
    for folder in sorted(path.parent for path in CORPUS.glob("*/expected.toml")):
        if names and folder.name not in names:
            continue
        if tomllib.loads((folder / "expected.toml").read_text())["framework"] not in frameworks:
            continue
        for form in ("faulty", "sound"):
            path = folder / form / "train.py" if (folder / form).is_dir() else folder / f"{form}.py"
            found.append((f"{folder.name}/{form}", path))
    return found


def execute(
    work: Path, options: dict[str, Any], kill_at: int = 0, workers: int | None = None
) -> tuple[int, float]:
    """Runs a script in a forked process; returns its exit code and seconds."""
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        try:
            os.chdir(work)
            output = os.open(work / "output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.dup2(output, 1)
            os.dup2(output, 2)
            signal.alarm(TIME_LIMIT)
            if workers is not None:
                change_workers(workers)
            defaults = {"script": None, "arguments": [], "runs": "records", "every": 2, "seed": 0, "resume": None}
            parsed = launch.Options(**{**defaults, "recover": False, "replay": False, **options})
            run = launch.Launch(parsed)
            if kill_at:
                recording = run.runtime.recording

                def kill(_: object) -> None:
                    if recording.step == kill_at:
                        os.kill(os.getpid(), signal.SIGKILL)

                recording.on_step.append(kill)
            code = run.execute()
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            code = 99
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), time.monotonic() - begun


def change_workers(count: int) -> None:
    """Gives every data loader another number of worker processes."""
    if "torch" not in sys.modules:
        return
    from torch.utils.data import DataLoader, IterableDataset

    create = DataLoader.__init__

    def init(self: Any, dataset: Any, *args: Any, **kwargs: Any) -> None:
        if not isinstance(dataset, IterableDataset) and len(args) < 5:
            kwargs["num_workers"] = count
        create(self, dataset, *args, **kwargs)

    DataLoader.__init__ = init


def digests(work: Path, number: int) -> bytes:
    """The digests of a run."""
    runs = sorted((work / "records").glob("*"))
    return (runs[number] / "digests.bin").read_bytes() if number < len(runs) else b""


def judge(name: str, script: Path) -> tuple[bool, str]:
    """Executes a script in all ways; returns the result and a description."""
    work = Path(tempfile.mkdtemp())
    try:
        copy = work / "code"
        if script.name == "train.py":
            shutil.copytree(script.parent, copy)
        else:
            copy.mkdir()
            shutil.copy(script, copy / "train.py")
        start = {"script": str(copy / "train.py")}

        def clean() -> None:
            for entry in work.iterdir():
                if entry.name not in ("code", "records", "output.txt"):
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()

        code, seconds = execute(work, start)
        if code:
            return False, f"exit code {code}: {tail(work)}"
        steps = len(digests(work, 0)) // 64
        clean()
        execute(work, start, workers=0)
        if digests(work, 0) != digests(work, 1):
            return False, f"two executions differ ({steps} steps): {first(work)}"
        if steps < 2:
            return False, f"{steps} steps were recorded"
        at = random.Random(name).randrange(2, steps + 1)
        clean()
        code, _ = execute(work, start, kill_at=at)
        if code != -signal.SIGKILL:
            return False, f"was not killed at step {at}: exit code {code}"
        killed = sorted((work / "records").glob("*"))[2]
        checkpoints = [path.name for path in (killed / "checkpoints").glob("*.ckpt")]
        code, _ = execute(work, {"resume": str(killed)}, workers=2)
        if code:
            return False, f"killed at {at} of {steps}, resumed: exit code {code}: {tail(work)}"
        if digests(work, 2) != digests(work, 0):
            return False, f"killed at {at} of {steps}, resumed from {checkpoints}: digests differ {first(work, 2)}"
        note = "" if checkpoints else ", no checkpoint"
        return True, f"{steps} steps, killed at {at}{note}, {seconds:.1f} s"
    finally:
        shutil.rmtree(work, ignore_errors=True)


def first(work: Path, other: int = 1) -> str:
    """The first step that differs."""
    one, two = digests(work, 0), digests(work, other)
    for step in range(0, max(len(one), len(two)), 64):
        if one[step : step + 64] != two[step : step + 64]:
            parts = ("batch", "loss", "parameters", "buffers", "optimizer")
            differ = [p for i, p in enumerate(parts) if one[step + 24 + 8 * i :][:8] != two[step + 24 + 8 * i :][:8]]
            return f"first at step {step // 64 + 1}: {', '.join(differ)} ({len(one) // 64} and {len(two) // 64} steps)"
    return ""


def tail(work: Path) -> str:
    """The last lines that the script printed."""
    return " / ".join((work / "output.txt").read_text().strip().splitlines()[-3:])


def group_of(script: Path) -> str:
    """Settings that must be made before the framework is imported, which a fork of this process cannot change."""
    source = "".join(path.read_text() for path in script.parent.rglob("*.py")) if script.name == "train.py" else script.read_text()
    # Optimizers of Keras 2 are in a package of their own.
    return "legacy" if "optimizers.legacy" in source else "backend" if "KERAS_BACKEND" in source else ""


def judge_all(frameworks: list[str], group: str, chosen: list[tuple[str, Path]]) -> int:
    """Judges scripts in a process with the framework in memory; returns the number of wrong ones."""
    import numpy  # noqa: F401

    if group == "legacy":
        os.environ["TF_USE_LEGACY_KERAS"] = "1"
    for name in {PRELOADED[framework] for framework in frameworks} if group != "backend" else ():
        module = importlib.import_module(name)
        if name == "torch":
            module.set_num_threads(1)
    wrong = 0
    for name, script in chosen:
        right, text = judge(name, script)
        wrong += not right
        print(json.dumps({"script": name, "exact": right, "result": text}), flush=True)
    return wrong


def main(frameworks: list[str], names: list[str]) -> int:
    """Judges all scripts of the frameworks, or those named; the exit code."""
    chosen = scripts(frameworks, names)
    wrong = 0
    for group in ("", "legacy", "backend"):
        members = [(name, script) for name, script in chosen if group_of(script) == group]
        child = os.fork() if members else 0
        if child:
            wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        elif members:
            os._exit(judge_all(frameworks, group, members))
    print(f"{len(chosen)} scripts, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].split(","), sys.argv[2:]))
