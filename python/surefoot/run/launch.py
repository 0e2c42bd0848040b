"""Executes a script as ``surefoot run`` does."""

from __future__ import annotations

import atexit
import dataclasses
import hashlib
import importlib.metadata
import json
import os
import platform
import sys
import time
import traceback
import types
from pathlib import Path
from typing import Any

from surefoot import _core
from surefoot.run.checkpoint import Checkpoints, Stored
from surefoot.run.loops import Loops, ResumeError, Rewriting
from surefoot.run.parallel import become_only_process, processes
from surefoot.run.record import silence, tell
from surefoot.run.runtime import Program, Runtime
from surefoot.run.shards import ShardError

LIBRARIES = ("numpy", "torch", "torchvision", "lightning", "transformers", "keras", "tensorflow", "jax")
VARIABLES = ("PYTHONHASHSEED", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUBLAS_WORKSPACE_CONFIG", "CUDA_VISIBLE_DEVICES")

RELEASE_TIMEOUT = 8.0
WRONG_INPUT, BROKEN, INTERRUPTED = 2, 3, 130


class LaunchError(Exception):
    """The script cannot be started; the message says why."""


@dataclasses.dataclass
class Options:
    """Options of ``surefoot run``."""

    script: str | None
    arguments: list[str]
    runs: str
    every: int | None
    seed: int
    resume: str | None
    recover: bool
    replay: bool
    shards: int | None = None


def main(options: str) -> int:
    """Executes a script and returns its exit code."""
    try:
        launch = Launch(Options(**json.loads(options)))
    except (LaunchError, RuntimeError, OSError, SyntaxError) as error:
        tell(f"error: {error}")
        return WRONG_INPUT
    code = launch.execute()
    if launch.runtime.parallel is not None:
        # The threads of gloo can abort a process when the interpreter destroys its process group.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def libraries() -> dict[str, str]:
    """Versions of Python and of the installed frameworks."""
    versions = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


def device() -> str:
    """Device as in other records: without a GPU driver it is the CPU."""
    return "cuda" if Path("/dev/nvidia0").exists() else "cpu"


class Launch:
    """One execution of a script."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.checkpoint: Stored | None = None
        # Resolved first: a resumed script is executed in the directory of the run that was started.
        self.resumed = None if options.resume is None else Path(options.resume).resolve()
        self.interrupted: _core.InterruptedRun | None = None
        self.rank, self.world = self._processes()
        self.definition = self._define() if self.resumed is None else self._recorded(self.resumed)
        self._check_shards()
        self.script = Path(self.definition["script"])
        self.program = Program(self.script)
        self.source = self._read()
        recovers, shards = self.definition["recover"], self.definition["shards"]
        self.runtime = Runtime(self.definition["seed"], self.program, self.definition["threads"], recovers, shards)
        self._open()
        self.rewriting = Rewriting(self.program.contains)
        self.rewriting.read(str(self.script))
        loops = Loops(self.rewriting, self.runtime.keys, self.runtime.loaders)
        loops.install()
        self.runtime.follow(loops)
        recording = self.runtime.recording
        every = options.every or self.definition["every"]
        parallel = self.runtime.parallel
        self.checkpoints = Checkpoints(recording, loops, every, self.checkpoint, self.runtime.recovery, parallel)
        self.checkpoints.on_resumed = self._continue
        self.checkpoints.is_off = options.replay

    def _processes(self) -> tuple[int, int]:
        """Number of this process, and number of processes of the program."""
        is_parallel = self.options.shards is not None
        if self.resumed is not None and (self.resumed / "program.json").exists():
            is_parallel = json.loads((self.resumed / "program.json").read_text()).get("processes") is not None
        if is_parallel and processes() is None:
            become_only_process()
        rank, world = processes() or (0, 1)
        if rank > 0:
            silence()
        return rank, world

    def _check_shards(self) -> None:
        shards, started = self.definition["shards"], self.definition["processes"]
        if shards is not None and shards % self.world:
            raise LaunchError(
                f"{self.world} processes cannot share {shards} shards; start 1, 2, 4, ... up to {shards} processes"
            )
        if shards is None and started is not None and started != self.world:
            tell(
                f"warning: the run was started with {started} processes and has {self.world} now; "
                "the results differ in their last digits"
            )

    def _define(self) -> dict[str, Any]:
        assert self.options.script is not None
        script = Path(self.options.script).resolve()
        return {
            "script": str(script),
            "script_digest": _digest(script),
            "arguments": self.options.arguments,
            "directory": os.getcwd(),
            "seed": self.options.seed,
            "every": self.options.every,
            "recover": self.options.recover,
            "shards": self.options.shards,
            "processes": self.world if processes() is not None else None,
            "threads": int(os.environ.get("OMP_NUM_THREADS") or (os.cpu_count() if processes() is None else 1) or 1),
            "framework": "script",
            "libraries": libraries(),
            "environment": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        }

    def _recorded(self, run: Path) -> dict[str, Any]:
        path = run / "program.json"
        if not path.exists():
            raise LaunchError(f"{run} is not a run of a script: it has no program.json")
        definition = {"recover": False, "shards": None, "processes": None, **json.loads(path.read_text())}
        if "script_digest" not in definition:
            raise LaunchError(f"{run} was not recorded by `surefoot run` and cannot be resumed")
        script = Path(definition["script"])
        if not script.exists():
            raise LaunchError(f"the script {script} of this run no longer exists")
        now = libraries()
        for name, version in definition["libraries"].items():
            if now.get(name) != version:
                tell(f"warning: {name} was {version} and is {now.get(name, 'missing')}; the results may differ")
        if _digest(script) != definition["script_digest"]:
            tell(f"warning: {script.name} has changed since the run was started")
        if os.path.isdir(definition["directory"]):
            os.chdir(definition["directory"])
        return definition

    def _read(self) -> bytes:
        try:
            return self.script.read_bytes()
        except OSError as error:
            raise LaunchError(f"cannot read {self.script}: {error.strerror}") from None

    def _open(self) -> None:
        recording, threads = self.runtime.recording, self.definition["threads"]
        if self.resumed is not None:
            if self.rank == 0:
                self.interrupted = self._lock(self.resumed)
            self.checkpoint = _core.newest_checkpoint(self.resumed)
            recording.is_waiting = True
            if self.checkpoint is None:
                tell(f"{self.options.resume} has no checkpoint; the script starts over")
                self._continue()
        elif self.rank == 0:
            text = json.dumps(self.definition, indent=2)
            runs = Path(self.options.runs).resolve()
            recording.begin(_core.Recorder.create(runs, self.script.stem, text, libraries(), device(), threads))

    def _continue(self) -> None:
        """Continues the record. Before this call, the run is unchanged."""
        recorder = None
        if self.interrupted is not None:
            at = 0 if self.checkpoint is None else self.checkpoint[0]
            recorder, step = self.interrupted.resume(libraries(), device(), self.definition["threads"])
            if step != at:
                raise ResumeError(f"the record is damaged: it ends before the checkpoint of step {at}")
        self.runtime.recording.begin(recorder)

    def _lock(self, run: Path) -> _core.InterruptedRun:
        until = time.monotonic() + RELEASE_TIMEOUT
        while True:
            try:
                return _core.InterruptedRun(run)
            except RuntimeError as error:
                if "is finished" in str(error):
                    raise LaunchError(f"{_shown(run)} is finished; there is nothing to resume") from None
                if "in use by another process" not in str(error) or time.monotonic() > until:
                    raise
            # Loader workers of a killed run notice its end after some seconds.
            time.sleep(0.2)

    def execute(self) -> int:
        """Executes the script and returns its exit code."""
        script = str(self.script)
        sys.argv = [script, *self.definition["arguments"]]
        # As for `python SCRIPT`; `python -m` puts the working directory there.
        sys.path[0] = str(self.script.parent)
        module = types.ModuleType("__main__")
        module.__dict__.update(__file__=script, __builtins__=__builtins__, __spec__=None)
        sys.modules["__main__"] = module
        self.runtime.install()
        self.rewriting.install()
        try:
            exec(self.rewriting.compile(self.source, script), module.__dict__)
        except SystemExit as stop:
            return self._stopped(stop.code)
        except KeyboardInterrupt:
            self._unfinished("interrupted", "Ctrl-C")
            return INTERRUPTED
        except ResumeError as error:
            tell(f"error: {error}")
            return WRONG_INPUT
        except ShardError as error:
            tell(f"error: {error}")
            self._close("crashed", str(error))
            return WRONG_INPUT
        except BaseException as error:  # noqa: BLE001 - printed as Python prints it
            self._print(error)
            self._unfinished("crashed", f"{type(error).__name__}: {error}")
            return 1
        self._finished()
        return 0

    def _stopped(self, code: Any) -> int:
        if code is None or code == 0:
            self._finished()
            return 0
        if not isinstance(code, int):
            print(code, file=sys.stderr)
            code = 1
        self._unfinished("crashed", f"the script ended with exit code {code}")
        return int(code)

    def _finished(self) -> None:
        recording = self.runtime.recording
        if self.checkpoints.is_waiting:
            tell("error: the script ended before it reached the training loop of the checkpoint; the run is unchanged")
            return
        if self.runtime.clock.reads:
            recording.event("clock", reads=self.runtime.clock.reads)
        if recording.recorder is None:
            return
        self._report_nonfinite(Path(recording.recorder.directory))
        try:
            recording.recorder.finish(recording.step)
        except RuntimeError as error:
            tell(f"the record is incomplete: {error}")
            return
        if recording.step == 0:
            tell("no optimizer step was seen, so nothing is recorded of the training")

    def _unfinished(self, kind: str, reason: str) -> None:
        reason = reason.rstrip(".")
        if self.checkpoints.is_waiting:
            tell(f"{reason}. The run is unchanged.")
            return
        run = self._close(kind, reason)
        if run is None:
            return
        self._report_nonfinite(run)
        if any((run / "checkpoints").glob("*.ckpt")):
            tell(f"{reason}. Continue from the last checkpoint with: surefoot run --resume {_shown(run)}")
        else:
            tell(f"{reason}. There is no checkpoint to continue from.")

    def _close(self, kind: str, reason: str) -> Path | None:
        """Writes the end of a run that can be resumed; returns its directory, if it is recorded."""
        recording = self.runtime.recording
        recording.event(kind, reason=reason)
        if recording.recorder is None:
            return None
        try:
            recording.recorder.flush()
        except RuntimeError as error:
            tell(f"the record is incomplete: {error}")
            return None
        return Path(recording.recorder.directory)

    def _report_nonfinite(self, run: Path) -> None:
        """Advises on a loss that has been NaN or infinite up to the last step."""
        since = self.runtime.recording.nonfinite_since
        if since is None:
            return
        advice = f"see: surefoot diagnose {_shown(run)}"
        if self.runtime.recovery is None and "torch" in sys.modules:
            advice += "; or run the script with --recover, which skips such steps"
        tell(f"the loss has been NaN or infinite since step {since}; {advice}")

    def _print(self, error: BaseException) -> None:
        frames = error.__traceback__
        while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
            frames = frames.tb_next
        if isinstance(error, SyntaxError) and error.filename == str(self.script):
            frames = None  # The script was not started: the other frames are those that compile it.
        traceback.print_exception(type(error), error, frames)


def _digest(script: Path) -> str:
    try:
        return hashlib.sha256(script.read_bytes()).hexdigest()
    except OSError as error:
        raise LaunchError(f"cannot read {script}: {error.strerror}") from None


def _shown(path: str | os.PathLike[str]) -> str:
    try:
        return str(os.path.relpath(path))
    except ValueError:
        return str(path)
