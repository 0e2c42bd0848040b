"""Workers of a search: in this process, or in processes that stay alive for all trials."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from surefoot import _core
from surefoot.study import Study
from surefoot.trial import Trial, TrialStopped, set_current

MAX_RESTARTS = 100
"""Restarts of killed worker processes in one search."""
SHUTDOWN = 30.0
"""Seconds for workers to release their trials before they are killed."""
FORK_HAZARDS = ("jax", "tensorflow")
"""Modules whose threads do not survive a fork."""


@dataclass(frozen=True)
class Job:
    """Objective and study of a search, as passed to each worker."""

    objective: Callable[[Trial], Any]
    document: str
    store: str
    directory: Path
    resumes: bool

    def worker(self, name: str, left: float | None = None) -> _core.TuneWorker:
        """Starts a worker. ``left`` is the remaining time budget in seconds."""
        return _core.TuneWorker(self.document, self.store, self.directory, name, left)


def run_here(job: Job, watch: Callable[[], bool]) -> None:
    """Runs trials in this process until there are no more, or ``watch`` returns true."""
    worker = job.worker(unique_name())
    core = None
    try:
        with _interrupts(worker, job.resumes) as interrupted:
            while (core := worker.next_trial()) is not None:
                run_trial(job, worker, core)
                if watch():
                    break
        worker.close()
    except BaseException:
        end_worker(worker, core)
        raise
    if interrupted:
        raise KeyboardInterrupt


def end_worker(worker: _core.TuneWorker, core: _core.TuneTrial | None) -> None:
    """Ends a worker after an exception, which may have been raised just before the trial began."""
    if core is not None:
        core.release()
    worker.close()


def run_trial(job: Job, worker: _core.TuneWorker, core: _core.TuneTrial) -> None:
    """Calls the objective and stores how the trial ended."""
    trial = Trial(core, resumes=job.resumes, diagnoses=worker.diagnoses)
    set_current(trial)
    try:
        value = job.objective(trial)
        core.complete(None if value is None else float(value))
    except TrialStopped as stopped:
        finding = stopped.finding
        core.stopped((finding.problem, finding.message, list(finding.evidence.items())) if finding else None)
    except Exception as error:  # noqa: BLE001 - an error of the objective ends its trial, not the search
        summary = f"{type(error).__name__}: {error}".splitlines()[0]
        core.failed(f"{summary}\n{_traceback(error)}")
    except BaseException:
        core.release()
        raise
    finally:
        set_current(None)


def _traceback(error: BaseException) -> str:
    """The traceback without the frames of this module."""
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))


@contextlib.contextmanager
def _interrupts(worker: _core.TuneWorker, resumes: bool) -> Iterator[list[int]]:
    """On Ctrl-C, lets a trial that can resume save a checkpoint first. The list is not empty after an interrupt."""
    interrupted: list[int] = []
    if threading.current_thread() is not threading.main_thread() or not resumes:
        yield interrupted
        return

    def request_stop(number: int, frame: Any) -> None:
        if interrupted:
            raise KeyboardInterrupt
        interrupted.append(number)
        print("\nsurefoot: stopping after this epoch; Ctrl-C again stops at once", file=sys.stderr)
        worker.stop()

    before = signal.signal(signal.SIGINT, request_stop)
    try:
        yield interrupted
    finally:
        signal.signal(signal.SIGINT, before)


class Pool:
    """Worker processes on this machine."""

    def __init__(
        self, job: Job, study: Study, count: int, start_method: str | None, deadline: float | None
    ) -> None:
        self._job = job
        self._study = study
        method = start_method or _start_method()
        self._context: Any = multiprocessing.get_context(method)
        self._deadline = deadline
        # The OpenMP threads of this process do not survive a fork, and PyTorch would wait for them forever.
        self._threads = 1 if method == "fork" else max(1, (os.cpu_count() or 1) // count)
        self._workers: dict[str, tuple[Any, Connection]] = {}
        self._restarts = 0
        self._started = 0
        self._is_stopping = False
        for _ in range(count):
            self._start()

    def _start(self) -> None:
        self._started += 1
        name = f"{unique_name()}-{self._started}"
        receiver, sender = self._context.Pipe(duplex=False)
        left = None if self._deadline is None else max(0.001, self._deadline - time.monotonic())
        process = self._context.Process(
            target=_work,
            args=(self._job, name, left, self._threads, os.getpid(), sender),
            name=f"surefoot-worker-{self._started}",
        )
        self._study.core.disconnect()
        try:
            process.start()
        except (AttributeError, TypeError, pickle.PicklingError) as error:
            raise TypeError(
                f"a spawned worker imports the objective, so it must be a function of a module ({error}); "
                "define it there, or pass start_method=\"fork\""
            ) from None
        sender.close()
        self._workers[name] = (process, receiver)

    def poll(self) -> bool:
        """Replaces killed workers. Returns false when all have ended."""
        for name, (process, receiver) in list(self._workers.items()):
            if process.is_alive():
                continue
            del self._workers[name]
            error = _received(receiver)
            if error is not None:
                raise RuntimeError(error)
            if process.exitcode != 0:
                numbers = self._study.core.mark_dead(name)
                running = "".join(f" at trial {number}" for number in numbers)
                print(f"surefoot: a worker died with exit code {process.exitcode}{running}", file=sys.stderr)
                if self._restarts == MAX_RESTARTS:
                    raise RuntimeError(f"{MAX_RESTARTS} worker processes died")
                if not self._is_stopping:
                    self._restarts += 1
                    self._start()
        return bool(self._workers)

    def stop(self) -> None:
        """Asks workers to end after their trials, or after their epochs if trials can resume."""
        if not self._is_stopping:
            self._is_stopping = True
            self._signal(signal.SIGTERM)

    def close(self) -> None:
        """Ends the remaining workers and returns their trials to the store."""
        self._is_stopping = True
        if self._job.resumes and self._workers:
            self._signal(signal.SIGTERM)
            print("\nsurefoot: stopping after this epoch; Ctrl-C stops at once", file=sys.stderr)
            with contextlib.suppress(KeyboardInterrupt):
                self._wait(None)
        self._signal(signal.SIGUSR1)
        self._wait(SHUTDOWN)
        for name, (process, _) in self._workers.items():
            if process.is_alive():
                process.kill()
            process.join()
            if process.exitcode != 0:
                self._study.core.mark_dead(name)
        self._workers.clear()

    def _wait(self, seconds: float | None) -> None:
        end = None if seconds is None else time.monotonic() + seconds
        for process, _ in self._workers.values():
            process.join(None if end is None else max(0.0, end - time.monotonic()))

    def _signal(self, number: int) -> None:
        for process, _ in self._workers.values():
            if process.is_alive() and process.pid is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process.pid, number)


def _work(job: Job, name: str, left: float | None, threads: int, parent: int, errors: Connection) -> None:
    """A worker process: runs trials until there are no more."""
    is_stopping = is_busy = False
    worker: _core.TuneWorker | None = None
    core: _core.TuneTrial | None = None

    def finish(number: int, frame: Any) -> None:
        nonlocal is_stopping
        is_stopping = True
        if worker is not None and (job.resumes or not is_busy):
            worker.stop()

    def leave(number: int, frame: Any) -> None:
        raise KeyboardInterrupt

    # The process that started the search passes interrupts on.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, finish)
    signal.signal(signal.SIGUSR1, leave)
    if (torch := sys.modules.get("torch")) is not None:
        torch.set_num_threads(threads)
    try:
        worker = job.worker(name, left)
        threading.Thread(target=_follow, args=(worker, parent), daemon=True).start()
        while not is_stopping and (core := worker.next_trial()) is not None:
            is_busy = True
            run_trial(job, worker, core)
            is_busy = False
        worker.close()
    except KeyboardInterrupt:
        if worker is not None:
            end_worker(worker, core)
    except Exception as error:  # noqa: BLE001 - sent to the process that started the search
        errors.send(str(error))


def _follow(worker: _core.TuneWorker, parent: int) -> None:
    """Stops the worker when the process that started the search has died."""
    while os.getppid() == parent:
        time.sleep(1.0)
    worker.stop()


def _received(receiver: Connection) -> str | None:
    with contextlib.suppress(EOFError, OSError):
        if receiver.poll():
            return str(receiver.recv())
    return None


def _start_method() -> str:
    torch = sys.modules.get("torch")
    has_gpu = torch is not None and torch.cuda.is_initialized()
    if has_gpu or any(it in sys.modules for it in FORK_HAZARDS) or sys.platform != "linux":
        return "spawn"
    return "fork"


def unique_name() -> str:
    """A name that no other process has: machines may share a host name and containers a process id."""
    return f"{socket.gethostname()}-{os.getpid()}-{time.time_ns():x}"
