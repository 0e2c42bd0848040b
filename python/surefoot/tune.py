"""``surefoot.tune``: hyperparameter search over a Python function."""

from __future__ import annotations

import json
import numbers
import re
import sys
import time as clock
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot import _core
from surefoot.study import Study, StudyTrial
from surefoot.trial import Trial
from surefoot.workers import Job, Pool, run_here

if TYPE_CHECKING:
    from surefoot.ray import RayPool

Objective = Callable[[Trial], Any]
Callback = Callable[[Study, StudyTrial], object]

FIRST_FAILURES = 10
"""Failed trials at the start of a search after which it stops."""
FAILURES_IN_A_ROW = 30
"""Failed trials in a row after which a search with other trials stops."""
SHOW = 0.5
"""Seconds between two updates of the progress on a terminal."""
POLL = 0.1
"""Seconds between two reads of the store while worker processes run."""


def tune(
    objective: Objective,
    space: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    direction: str = "minimize",
    trials: int | None = None,
    time: str | float | timedelta | None = None,
    workers: int = 1,
    resume: bool = False,
    scheduler: str | Mapping[str, Any] | None = None,
    sampler: str | Mapping[str, Any] | None = None,
    pruner: str | Mapping[str, Any] | Sequence[str | Mapping[str, Any]] | None = None,
    seed: int = 0,
    name: str | None = None,
    store: str | Path | None = None,
    runs: str | Path = "runs",
    enqueue: Iterable[Mapping[str, Any]] = (),
    callbacks: Iterable[Callback] = (),
    stop: Callable[[], bool] | None = None,
    start_method: str | None = None,
    on: str | None = None,
    num_cpus: float = 1,
    num_gpus: float = 0,
    **options: Any,
) -> Study:
    """Searches for the parameters with which ``objective`` returns the best value.

    The study is stored, so the same call continues an interrupted search, and ``surefoot report``, ``board``,
    ``simulate`` and ``export`` read it. A trial whose objective raises an exception has failed, with the traceback in
    the store; the search continues.

    Args:
        objective: Function of a :class:`surefoot.Trial`. Its value is what it returns, or else the best reported one.
        space: Ranges by name, as in a study file: ``{"rate": {"log_uniform": [1e-4, 1.0]}}``. The values are in
            ``trial.params``. Without it, the objective calls ``trial.suggest_float`` and others.
        direction: ``"minimize"`` or ``"maximize"``.
        trials: Number of trials of the study, those of earlier calls included. With a scheduler: as many epochs as
            this many full trainings. By default the search runs until it is stopped.
        time: Time budget of this call: seconds, ``"30m"`` or a ``timedelta``.
        workers: Number of processes that run trials. With 1, trials run in this process.
        resume: True if the objective continues from a checkpoint, see :meth:`surefoot.Trial.checkpoint`. Trials are then
            paused instead of pruned.
        scheduler: Chooses the trial to continue: ``"freeze_thaw"`` (the default with ``resume``, unless a sampler or a
            pruner is named), ``"asha"``, ``"hyperband"``, ``"none"``, or a dictionary with ``name`` and options.
        sampler: ``"tpe"`` (the default), ``"random"``, ``"sobol"``, ``"gp"``, ``"smac"``, or a dictionary.
        pruner: Pruners and indicators, or ``"none"``; by default ``["diagnosis", "prospect"]``.
        seed: Seed of the sampler.
        name: Name of the study; by default that of the function.
        store: File or ``postgres://...``; by default ``RUNS/NAME/study.db``.
        runs: Parent of the directory of the study.
        enqueue: Parameters to try first, unless the study has a trial with them.
        callbacks: Called with the study and a trial after each trial that has ended or paused, in this process.
        stop: Function without arguments; the search ends when it returns true.
        start_method: ``"fork"`` or ``"spawn"`` for worker processes. By default they are forked, unless a GPU, JAX or
            TensorFlow is in use. Spawned workers import the objective, so it must be a function of a module.
        on: ``"ray"`` or ``"ray://HOST"`` runs the workers as tasks of a Ray cluster.
        num_cpus: Cores of a Ray task.
        num_gpus: GPUs of a Ray task.
        options: Other keys of a study file: ``protect``, ``attempts``, ``patience``, ``rules``.

    Example:
        >>> import surefoot, tempfile
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", -5, 5)
        ...     return (x - 2) ** 2
        >>> study = surefoot.tune(objective, trials=30, runs=tempfile.mkdtemp())
        >>> study.best_value < 0.5
        True
    """
    if not callable(objective):
        raise TypeError(f"objective must be a function of a trial, not {type(objective).__name__}")
    if on is not None and on != "ray" and not on.startswith("ray://"):
        raise ValueError(f"on must be 'ray' or 'ray://HOST', not {on!r}")
    if workers < 1:
        raise ValueError(f"workers must be at least 1, not {workers}")
    function = getattr(objective, "__qualname__", type(objective).__qualname__)
    name = name or re.sub(r"\W", "", getattr(objective, "__name__", "")) or "study"
    if isinstance(time, timedelta):
        time = time.total_seconds()
    keys = {
        "function": f"{getattr(objective, '__module__', '') or '__main__'}.{function}",
        "name": name,
        "direction": direction,
        "trials": trials,
        "time": time,
        "resume": resume or None,
        "scheduler": scheduler,
        "sampler": sampler,
        "pruner": pruner,
        "seed": seed,
        **options,
    }
    directory = Path(runs) / (re.sub(r"[^\w.-]", "-", name).strip(".") or "study")
    directory.mkdir(parents=True, exist_ok=True)
    url = str(store) if store is not None else str(directory / "study.db")
    document = study_text(keys, space or {})
    study = Study(_core.TuneStudy.join(document, url))
    if study.core.count():
        print(f"surefoot: continuing {study!r} in {study.store}", file=sys.stderr)
    known = [it.params for it in study.trials] if enqueue else []
    for params in enqueue:
        if dict(params) not in known:
            study.enqueue(params)
    job = Job(objective, document, url, directory, resumes=resume)
    watch = _Watch(study, list(callbacks), stop)
    deadline = None if study.core.time is None else clock.monotonic() + study.core.time
    if on is None and workers == 1:
        run_here(job, watch)
    else:
        pool: Pool | RayPool
        if on is None:
            pool = Pool(job, study, workers, start_method, deadline)
        else:
            from surefoot.ray import RayPool

            resources = {"num_cpus": num_cpus, "num_gpus": num_gpus}
            pool = RayPool(job, study, workers, on, resources, deadline)
        try:
            while pool.poll():
                if watch():
                    pool.stop()
                clock.sleep(POLL)
        finally:
            pool.close()
        watch()
    study.refresh()
    watch.raise_if_failing()
    return study


class _Watch:
    """Follows a search: calls the callbacks and decides when to stop."""

    def __init__(self, study: Study, callbacks: list[Callback], stop: Callable[[], bool] | None) -> None:
        self._study = study
        self._callbacks = callbacks
        self._stop = stop
        self._failures = 0
        self._others = 0
        self._shown = ""
        self._next_show = 0.0
        # Trials of earlier calls are not passed to callbacks.
        study.core.changed()

    def __call__(self) -> bool:
        """Handles trials that have ended or paused since the last call. Returns true if the search should stop."""
        study = self._study
        for number in study.core.changed():
            trial = study.trial(number)
            self._failures = self._failures + 1 if trial.state == "failed" else 0
            self._others += trial.state != "failed"
            for callback in self._callbacks:
                callback(study, trial)
        self._show()
        return study.is_stopping or self._keeps_failing() or (self._stop is not None and self._stop())

    def _keeps_failing(self) -> bool:
        return self._failures >= (FAILURES_IN_A_ROW if self._others else FIRST_FAILURES)

    def raise_if_failing(self) -> None:
        if self._shown:
            print(file=sys.stderr)
        if self._keeps_failing():
            last = next(it for it in reversed(self._study.trials) if it.state == "failed")
            raise RuntimeError(
                f"the search stopped because {self._failures} trials in a row failed; the last with:\n"
                f"{last.traceback or last.reason}"
            )

    def _show(self) -> None:
        if not sys.stderr.isatty() or clock.monotonic() < self._next_show:
            return
        self._next_show = clock.monotonic() + SHOW
        text = repr(self._study).strip("<>")
        if text != self._shown:
            print(f"\r\x1b[2K{text}", end="", file=sys.stderr, flush=True)
            self._shown = text


def study_text(keys: Mapping[str, Any], space: Mapping[str, Mapping[str, Any]]) -> str:
    """The text of the study, as in a study file."""
    if not isinstance(space, Mapping):
        raise TypeError(f"space must be a dictionary of ranges, not {type(space).__name__}")
    lines = ["[tune]", *(f"{key} = {_toml(it, key)}" for key, it in keys.items() if it is not None)]
    if space:
        lines += ["", "[parameters]", *(f"{_toml(key, key)} = {_toml(it, key)}" for key, it in space.items())]
    return "\n".join(lines) + "\n"


def _toml(value: Any, key: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return repr(float(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml(k, key)} = {_toml(it, key)}" for k, it in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(it, key) for it in value) + "]"
    raise TypeError(f"{key}: expected a string, number, boolean, list or dictionary, not {type(value).__name__}")
