"""Executes the scripts of the corpus that PyTorch can run on a CPU.

    python3 run.py [NAME...]

A sound script ends with the same bits in two processes, and when it is interrupted right after a
checkpoint and resumed. Take out the line that restores one member of the checkpoint, and the bits
are others. A faulty script shows its faults: other bits when it is run again, or when it is resumed.

Two workers share the scripts. They differ in all that a sound script must not depend on: the hashes
of texts, the order of listings and of arrivals, the clock. Generators start from fresh entropy.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import fnmatch
import hashlib
import io
import json
import multiprocessing
import os
import queue
import random
import runpy
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

CORPUS = Path(__file__).resolve().parent
OUT = "final.pt"
WORKERS = (1, 2)


@dataclasses.dataclass(frozen=True)
class Job:
    """One run of a script, which may be interrupted and resumed."""

    name: str
    form: str
    checkpoint: str = ""
    resume: tuple[str, ...] = ()
    interrupt: int = 0
    without: str = ""

    @property
    def path(self) -> Path:
        """The script, or the directory of the project it is in."""
        folder = CORPUS / self.name / self.form
        return folder if folder.is_dir() else folder.with_suffix(".py")


class Outcome(NamedTuple):
    """Result of a job."""

    digest: str
    checkpoints: int
    error: str


class Interrupted(BaseException):
    """The script is to stop here. Not an `Exception`, so that no script catches it."""


# What a worker does.


class Interruption:
    """Counts the checkpoints that a script writes, and stops it after one of them."""

    def __init__(self, pattern: str, after: int) -> None:
        self.pattern, self.after, self.count = pattern, after, 0
        self.path = ""

    def written(self, file: Any) -> None:
        """A file has been written."""
        path = os.fspath(file if isinstance(file, (str, os.PathLike)) else file.name)
        if not self.pattern or not fnmatch.fnmatch(os.path.relpath(path), self.pattern):
            return
        self.count += 1
        if self.count == self.after:
            self.path = path
            raise Interrupted


@contextlib.contextmanager
def watched(interruption: Interruption) -> Iterator[None]:
    """Files that `torch.save` or a rename brings into being are told to the interruption."""
    import torch

    save, replace = torch.save, os.replace

    def save_and_tell(value: object, file: Any, *args: Any, **kwargs: Any) -> None:
        save(value, file, *args, **kwargs)
        interruption.written(file)

    def replace_and_tell(source: Any, target: Any, **kwargs: Any) -> None:
        replace(source, target, **kwargs)
        interruption.written(target)

    with (
        mock.patch.object(torch, "save", save_and_tell),
        mock.patch.object(os, "replace", replace_and_tell),
    ):
        yield


def enter_world(backwards: bool) -> None:
    """Listings and arrivals come in order, or in other orders and with a later clock."""
    listdir, scandir, clock = os.listdir, os.scandir, time.time
    as_completed = concurrent.futures.as_completed

    class Entries(list[Any]):
        def __enter__(self) -> Iterator[Any]:
            return iter(self)

        def __exit__(self, *_: object) -> None:
            pass

    def listed(path: Any = ".") -> list[Any]:
        return sorted(listdir(path), reverse=backwards)

    def scanned(path: Any = ".") -> Entries:
        return Entries(sorted(scandir(path), key=lambda entry: entry.name, reverse=backwards))

    def arrived(futures: Any, timeout: float | None = None) -> Iterator[Any]:
        done = sorted(as_completed(futures, timeout), key=list(futures).index)
        return iter(done[1::2] + done[::2] if backwards else done)

    mock.patch.object(os, "listdir", listed).start()
    mock.patch.object(os, "scandir", scanned).start()
    mock.patch.object(concurrent.futures, "as_completed", arrived).start()
    mock.patch.object(time, "time", lambda: clock() + 86_399.5 * backwards).start()


def forget() -> None:
    """Undoes what the script before may have set; generators get fresh entropy."""
    import numpy
    import torch

    torch.use_deterministic_algorithms(False)
    torch.set_grad_enabled(True)
    torch.set_default_dtype(torch.float32)
    torch.set_num_threads(1)
    torch.seed()
    numpy.random.seed()
    random.seed()


def execute(script: Path, arguments: list[str], interruption: Interruption) -> bool:
    """Runs the script; false when it was interrupted."""
    forget()
    argv, path, environment = sys.argv, sys.path[:], dict(os.environ)
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent))
    try:
        with watched(interruption), contextlib.redirect_stdout(io.StringIO()):
            runpy.run_path(str(script), run_name="__main__")
    except Interrupted:
        return False
    finally:
        sys.argv, sys.path[:] = argv, path
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", None) or "").startswith(str(script.parent)):
                del sys.modules[name]
        os.environ.clear()
        os.environ.update(environment)
    return True


def copied(job: Job, folder: Path) -> Path:
    """A copy of the script that may be changed."""
    if job.path.is_dir():
        shutil.copytree(job.path, folder)
        return folder / "train.py"
    folder.mkdir()
    shutil.copy(job.path, folder / "train.py")
    return folder / "train.py"


def take_out(text: str, folder: Path) -> None:
    """Replaces the one line of the project that has this text by one that does nothing."""
    found = 0
    for file in sorted(folder.rglob("*.py")):
        lines = file.read_text().splitlines(keepends=True)
        for number, line in enumerate(lines):
            if text in line:
                found += 1
                indent = line[: len(line) - len(line.lstrip())]
                lines[number] = f"{indent}pass\n"
        file.write_text("".join(lines))
    if found != 1:
        raise ValueError(f"{found} lines have the text `{text}`")


def digest(path: Path) -> str:
    """A hash of all tensors in a file, in the order of their names."""
    import torch

    def feed(value: Any, name: str) -> None:
        if isinstance(value, dict):
            for key in sorted(value, key=str):
                feed(value[key], f"{name}.{key}")
        elif torch.is_tensor(value):
            hasher.update(f"{name}{value.dtype}{tuple(value.shape)}".encode())
            hasher.update(value.detach().contiguous().numpy().tobytes())
        else:
            hasher.update(f"{name}{value!r}".encode())

    hasher = hashlib.sha256()
    feed(torch.load(path, weights_only=False), "")
    return hasher.hexdigest()[:32]


def perform(job: Job) -> Outcome:
    """Does the job in a directory of its own."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary).resolve()
        script = copied(job, root / "code")
        (root / "work").mkdir()
        os.chdir(root / "work")
        try:
            interruption = Interruption(job.checkpoint, job.interrupt)
            finished = execute(script, [], interruption)
            count = interruption.count
            if job.interrupt:
                if finished:
                    return Outcome("", count, f"only {count} checkpoints were written")
                if job.without:
                    take_out(job.without, script.parent)
                path = os.path.relpath(interruption.path)
                arguments = [argument.format(checkpoint=path) for argument in job.resume]
                execute(script, arguments, Interruption("", 0))
            return Outcome(digest(Path(OUT)), count, "")
        except (Exception, SystemExit):
            return Outcome("", 0, traceback.format_exc())
        finally:
            os.chdir(before)


def work(number: int) -> None:
    """Does the jobs that come in, one a line, and answers each with its outcome."""
    answers = sys.stdout
    warnings.simplefilter("ignore")
    sys.dont_write_bytecode = True
    # Data loaders' processes are copies of this one: scripts in `__main__` need not be importable.
    multiprocessing.set_start_method("fork")
    enter_world(backwards=number != WORKERS[0])
    for line in sys.stdin:
        fields = json.loads(line)
        fields["resume"] = tuple(fields["resume"])
        print(json.dumps(perform(Job(**fields))), file=answers, flush=True)


# What the driver does.


class Worker:
    """A process that does jobs."""

    def __init__(self, number: int) -> None:
        self.lock = threading.Lock()
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", __file__, "--work", str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONHASHSEED": str(number), "OMP_NUM_THREADS": "1"},
        )

    def perform(self, job: Job) -> Outcome:
        """Has the job done."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with self.lock:
            self.process.stdin.write(json.dumps(dataclasses.asdict(job)) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer:
            return Outcome("", 0, "the process of the script died")
        return Outcome(*json.loads(answer))

    def end(self) -> None:
        """There are no more jobs."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


class Expected(NamedTuple):
    """The declarations of a script that matter for executing it."""

    name: str
    checkpoint: str
    resume: tuple[str, ...]
    interrupt: int
    shows: set[str]
    members: dict[str, tuple[str, int]]

    def job(self, form: str, interrupt: int = 0, without: str = "") -> Job:
        """A run of the script."""
        return Job(self.name, form, self.checkpoint, self.resume, interrupt, without)


def expected(name: str) -> Expected | None:
    """Reads `expected.toml`; nothing if the script is not to be executed."""
    with open(CORPUS / name / "expected.toml", "rb") as file:
        table = tomllib.load(file)
    if "run" not in table:
        return None
    run = table["run"]
    interrupt = run.get("interrupt", 2)
    return Expected(
        name,
        run.get("checkpoint", ""),
        tuple(run.get("resume", ())),
        interrupt,
        {finding["shows"] for finding in table["finding"]},
        {
            member["name"]: (member["restored"], member.get("interrupt", interrupt))
            for member in table.get("member", ())
            if member.get("shows") != "none"
        },
    )


class Verdict(NamedTuple):
    """Result of executing a script."""

    name: str
    runs: int
    seconds: float
    done: list[str]
    wrong: list[str]


def judge(script: Expected, here: Worker, there: Worker) -> Verdict:
    """Executes a script in all the ways that say something about it."""
    start = time.monotonic()
    done: list[str] = []
    wrong: list[str] = []
    runs = 0

    def bits(worker: Worker, job: Job) -> str:
        nonlocal runs
        runs += 1
        outcome = worker.perform(job)
        if outcome.error:
            wrong.append(f"{job.form}: {outcome.error}")
        return outcome.digest

    def expect(same: bool, left: str, right: str, what: str) -> None:
        if left and right:
            (done if (left == right) == same else wrong).append(
                what + (": same bits" if left == right else ": other bits")
            )

    sound = bits(here, script.job("sound"))
    expect(True, sound, bits(there, script.job("sound")), "sound, run again")
    faulty = bits(here, script.job("faulty"))
    again = bits(there, script.job("faulty"))
    expect("rerun" not in script.shows, faulty, again, "faulty, run again")
    if script.checkpoint:
        for interrupt in sorted({1, script.interrupt}):
            resumed = bits(here, script.job("sound", interrupt))
            expect(True, sound, resumed, f"sound, resumed from checkpoint {interrupt}")
        for member, (restored, interrupt) in script.members.items():
            less = bits(here, script.job("sound", interrupt, restored))
            expect(False, sound, less, f"sound, resumed without {member}")
        if "rerun" not in script.shows:
            resumed = bits(here, script.job("faulty", script.interrupt))
            expect("resume" not in script.shows, faulty, resumed, "faulty, resumed")
    if {"rerun", "resume"} <= script.shows:
        wrong.append("faults that show in different ways cannot be told apart")
    return Verdict(script.name, runs, time.monotonic() - start, done, wrong)


def main(names: list[str]) -> int:
    """Judges all scripts, or those named; the exit code."""
    start = time.monotonic()
    everything = sorted(path.parent.name for path in CORPUS.glob("*/expected.toml"))
    scripts = [script for name in names or everything if (script := expected(name))]
    workers = [Worker(number) for number in WORKERS]
    verdicts = []
    pairs = [(workers[i], workers[1 - i]) for i in (0, 1)]
    free = queue.SimpleQueue[tuple[Worker, Worker]]()
    for pair in pairs:
        free.put(pair)

    def judged(script: Expected) -> Verdict:
        pair = free.get()
        try:
            return judge(script, *pair)
        finally:
            free.put(pair)

    with concurrent.futures.ThreadPoolExecutor(len(workers)) as pool:
        for verdict in pool.map(judged, scripts):
            verdicts.append(verdict)
            state = "WRONG" if verdict.wrong else "ok"
            print(f"{state:5} {verdict.name:32} {verdict.runs:3} runs {verdict.seconds:5.1f} s", flush=True)
            for line in verdict.wrong + (verdict.done if names else []):
                print(f"      {line}")
    for worker in workers:
        worker.end()
    wrong = sum(bool(verdict.wrong) for verdict in verdicts)
    runs = sum(verdict.runs for verdict in verdicts)
    print(f"{len(verdicts)} scripts, {runs} runs, {wrong} wrong, {time.monotonic() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--work"]:
        work(int(sys.argv[2]))
    else:
        sys.exit(main(sys.argv[1:]))
