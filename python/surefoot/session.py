"""The adapter protocol, by which the training loop of a framework reports to Surefoot.

An adapter describes the model once and then reports every optimizer step::

    session = Session(facts, framework="pytorch")       # facts: the layers, the optimizer, the loss
    for each optimizer step:
        session.core.output(layer, address, count, format)  # optional, at any step
        session.step(loss)                                  # required
    session.finish(completed=True)

``surefoot.torch``, ``surefoot.keras``, ``surefoot.lightning`` and ``surefoot.transformers`` are such adapters.
"""

from __future__ import annotations

import contextlib
import functools
import json
import platform
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

from surefoot import _core, loggers
from surefoot.board import inline
from surefoot.finding import Finding, TrainingProblem, from_json
from surefoot.trial import TrialStopped, current

OnFinding = str | Callable[[Finding], object]
"""``"warn"`` prints findings, ``"raise"`` raises :class:`TrainingProblem`, ``"ignore"`` only collects them.

A function is called with each finding.
"""

indicators: list[str | None] = []
"""Pruners of ``surefoot.optuna.DiagnosisPruner``, if there is one: its indicators follow all sessions."""

_local = threading.local()


def latest() -> Session | None:
    """The latest session of this thread, if it is still in use."""
    found = getattr(_local, "session", None)
    return found() if found is not None else None


P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Guarded")


class Guarded:
    """Base of everything that runs inside a user's training: a fault switches it off and never ends the training."""

    _is_off = False

    def switch_off(self, error: Exception) -> None:
        """Warns once and ignores all later calls."""
        if not self._is_off:
            self._is_off = True
            warnings.warn(
                f"surefoot has switched itself off; the training continues without it: {error!r}. "
                "Please report this with the traceback at https://github.com/surefoot/surefoot/issues",
                RuntimeWarning,
                stacklevel=4,
            )


class Results:
    """Results of a watched run, the same for every framework."""

    @property
    def session(self) -> Session | None:
        """The session of the run; ``None`` before the first step."""
        raise NotImplementedError

    @property
    def findings(self) -> list[Finding]:
        """Problems and warnings so far, in the order of their discovery."""
        session = self.session
        return session.findings if session is not None else []

    @property
    def directory(self) -> Path | None:
        """The run directory; ``None`` if the run is not recorded."""
        session = self.session
        return session.directory if session is not None else None

    def advice(self) -> str:
        """Returns the findings with their advice as text; an empty string if nothing was found."""
        return "\n\n".join(f"{finding}\n{finding.advice}".rstrip() for finding in self.findings)

    def report(self, path: str | Path) -> Path:
        """Writes an HTML report of a recorded run and returns its path."""
        session = self.session
        if session is None:
            raise ValueError("the run has no steps yet")
        return session.report(path)

    def _repr_html_(self) -> str | None:
        session = self.session
        return session._repr_html_() if session is not None else None


def guarded(
    method: Callable[Concatenate[S, P], T],
) -> Callable[Concatenate[S, P], T | None]:
    """Makes a method of a :class:`Guarded` object switch it off instead of raising.

    :class:`TrainingProblem` and errors of the function ``on_finding`` are raised: the user has asked for them.
    """

    @functools.wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T | None:
        if self._is_off:
            return None
        try:
            return method(self, *args, **kwargs)
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not end the training
            if isinstance(error, TrainingProblem) or getattr(error, "_is_of_user", False):
                raise
            self.switch_off(error)
            return None

    return call


class Session:
    """A watched run: takes facts and observations, and collects findings.

    Args:
        facts: Description of the model and the loop, with the keys of ``header.json`` (see ``docs/record.md``).
            All are optional.
        framework: ``"pytorch"`` or ``"keras"``; selects the advice.
        runs: Directory below which the run is recorded; ``None`` records nothing.
        name: Name of the run.
        on_finding: ``"warn"``, ``"raise"``, ``"ignore"`` or a function that is called with each finding.
        thresholds: Limits of the detectors, as for ``surefoot diagnose --set``: ``{"theta": 0.7}``.
        writer: A TensorBoard ``SummaryWriter`` that receives findings.
        libraries: Names and versions of the libraries in use, for the record.
        device: Device of the training, for the record.
        every: Interval of observations in steps, for the record.
        refine: Function that completes a finding, for example with a diff of the program as advice.

    Example:
        >>> session = Session({}, framework="pytorch", on_finding="ignore")
        >>> for _ in range(20):
        ...     session.step(float("nan"))
        >>> "non_finite_loss" in session.finish(completed=True)["problems"]
        True
    """

    def __init__(
        self,
        facts: Mapping[str, Any],
        *,
        framework: str,
        runs: str | Path | None = None,
        name: str | None = None,
        on_finding: OnFinding = "warn",
        thresholds: Mapping[str, object] | None = None,
        writer: Any = None,
        libraries: Mapping[str, str] | None = None,
        device: str = "cpu",
        every: int = 1,
        refine: Callable[[Finding], Finding] | None = None,
    ) -> None:
        check_options(on_finding, thresholds)
        trial = current()
        if trial is not None:
            # The reasons of pruned trials are in the store.
            runs = trial.dir if runs is not None else None
            on_finding = "ignore" if on_finding == "warn" else on_finding
        script = Path("notebook" if "ipykernel" in sys.modules else sys.argv[0] or "notebook")
        program = {
            "script": str(script),
            "arguments": sys.argv[1:],
            "python": platform.python_version(),
            "libraries": dict(libraries or {}),
        }
        self.core = _core.Run(
            json.dumps(facts),
            thresholds=_pairs(thresholds),
            runs=runs,
            name=name or script.stem or "run",
            program=json.dumps(program),
            libraries=dict(libraries or {}),
            device=device,
            observe_every=every,
        )
        if trial is not None:
            self.core.set_trial(trial.core)
            trial.before_report = self.flush
        elif indicators:
            self.core.start_indicators(indicators[-1])
        self.indicator_findings: list[str] = []
        """Findings of the indicators for an Optuna trial, as JSON."""
        self.begun = time.time()
        _local.session = weakref.ref(self)
        self._trial = trial
        self.findings: list[Finding] = []
        self.summary: dict[str, Any] | None = None
        self._framework = framework
        self._on_finding = on_finding
        self._writer = writer
        self._refine = refine

    @classmethod
    def open(cls, facts: Mapping[str, Any], **options: Any) -> Session:
        """Creates a session. If the run directory cannot be written, it warns and records nothing."""
        try:
            return cls(facts, **options)
        except (OSError, RuntimeError) as error:
            if options.get("runs") is None:
                raise
            warnings.warn(f"surefoot does not record this run: {error}", RuntimeWarning, stacklevel=3)
            return cls(facts, **{**options, "runs": None})

    @property
    def directory(self) -> Path | None:
        """The run directory; ``None`` if the run is not recorded."""
        directory = self.core.directory
        return Path(directory) if directory is not None else None

    @property
    def steps(self) -> int:
        """Number of steps so far."""
        return self.core.steps

    @property
    def epoch(self) -> int:
        """1-based epoch of the latest step."""
        return self.core.epoch

    def step(
        self,
        loss: float,
        *,
        epoch: int | None = None,
        metric: float | None = None,
        learning_rate: float | None = None,
        gradient_norm: float | None = None,
    ) -> None:
        """Reports an optimizer step."""
        rates = {"learning_rate": learning_rate, "gradient_norm": gradient_norm}
        if self.core.step(loss, epoch=epoch, metric=metric, **rates) > len(self.findings):
            self.report_new()

    def evaluation(
        self,
        loss: float,
        *,
        metric: float | None = None,
        split: str = "validation",
        epoch: int | None = None,
    ) -> None:
        """Reports loss and metric of a whole split of the data."""
        if self.core.evaluation(split, loss, epoch=epoch, metric=metric) > len(self.findings):
            self.report_new()

    def flush(self) -> None:
        """Passes all steps so far to the detectors and reports their findings."""
        # An error must not end the training. The watch gets it again at its next step and switches itself off.
        with contextlib.suppress(RuntimeError):
            self.core.flush()
        self.report_new()

    def finish(
        self, *, completed: bool, weights: list[tuple[str, int, int, str]] | None = None
    ) -> dict[str, Any]:
        """Ends the run and returns its summary, with the fields of ``summary.json``."""
        if self.summary is None:
            self.summary = json.loads(self.core.finish(completed, weights or []))
            # The trial can no longer be stopped.
            self._trial = None
            self.report_new()
        return self.summary

    def report(self, path: str | Path) -> Path:
        """Writes an HTML report of a recorded run and returns its path."""
        if self.directory is None:
            raise ValueError("the run is not recorded; pass runs=\"runs\" to record it")
        target = Path(path)
        target.write_text(_core.report(self.directory), encoding="utf-8")
        return target

    def _repr_html_(self) -> str | None:
        """The report, for notebooks; ``None`` if the run is not recorded."""
        if self.directory is None:
            return None
        return inline(_core.report(self.directory))

    def report_new(self) -> None:
        """Reports the findings that the core has made since the last report."""
        problem: Finding | None = None
        for text in self.core.findings(len(self.findings)):
            finding = from_json(text, self._framework)
            if self._refine is not None:
                finding = self._refine(finding)
            self.findings.append(finding)
            loggers.forward(finding, self._writer)
            if callable(self._on_finding):
                try:
                    self._on_finding(finding)
                except Exception as error:
                    error._is_of_user = True  # type: ignore[attr-defined]
                    raise
            elif self._on_finding == "warn":
                loggers.show(finding)
            is_fatal = self._on_finding == "raise"
            if self._trial is not None and self._trial.diagnoses:
                is_fatal = is_fatal or finding.confidence == "certain"
            # Of several problems at one step, NaN is the cause.
            if is_fatal and finding.severity == "problem" and (problem is None or finding.problem == "non_finite_loss"):
                problem = finding
        if problem is not None and self._trial is not None:
            raise TrialStopped(str(problem), problem)
        if problem is not None:
            raise TrainingProblem(problem)


def check_options(on_finding: OnFinding, thresholds: Mapping[str, object] | None) -> None:
    """Raises an error for an unknown value of ``on_finding`` and for wrong ``thresholds``."""
    if not callable(on_finding) and on_finding not in ("warn", "raise", "ignore"):
        raise ValueError(
            f"on_finding must be 'warn', 'raise', 'ignore' or a function, not {on_finding!r}"
        )
    if thresholds is not None and not isinstance(thresholds, Mapping):
        raise TypeError(f"thresholds must be a dictionary, not {type(thresholds).__name__}")
    _core.check_thresholds(_pairs(thresholds))


def _pairs(thresholds: Mapping[str, object] | None) -> list[tuple[str, str]]:
    return [(str(key), str(value)) for key, value in (thresholds or {}).items()]
