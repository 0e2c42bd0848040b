"""A trial of a hyperparameter search: its parameters, reports and checkpoints."""

from __future__ import annotations

import json
import math
import os
import pickle
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, SupportsFloat, TypeVar

from surefoot import _core
from surefoot.finding import Finding
from surefoot.run.keys import generator_states, set_generator_states

T = TypeVar("T")

CHECKPOINT = "checkpoint"
"""File in the directory of a trial."""


class TrialStopped(Exception):
    """Ends a trial early. Raise it after :meth:`Trial.should_stop` has returned true, instead of returning.

    :func:`surefoot.watch` raises it inside a trial at a problem from which the training cannot recover.

    Attributes:
        finding: The problem, if there is one.
    """

    # The guard around Surefoot's own code must not swallow it.
    _is_of_user = True

    def __init__(self, message: str = "the trial was stopped", finding: Finding | None = None) -> None:
        super().__init__(message)
        self.finding = finding


class Trial:
    """A running trial. :func:`surefoot.tune` passes it to the objective.

    Attributes:
        number: 0-based number in the study.
        attempt: 1 for the first attempt, more after a pause or the death of a worker.
        dir: Directory of this trial only, the same for every attempt.
        params: Parameter values so far.
    """

    def __init__(self, core: _core.TuneTrial, *, resumes: bool, diagnoses: bool) -> None:
        self.core = core
        self.number = core.number
        self.attempt = core.attempt
        self.dir = Path(core.directory)
        self.params: dict[str, Any] = json.loads(core.point)
        self.diagnoses = diagnoses
        self.before_report: Callable[[], None] = lambda: None
        """Called before each report, so that a watched training passes all its steps to the indicators first."""
        self._resumes = resumes
        self._epoch = 0
        self._planned: int | None = None

    def suggest_float(
        self, name: str, low: float, high: float, *, step: float | None = None, log: bool = False
    ) -> float:
        """Returns a number from ``low`` to ``high``, both included.

        Args:
            name: Name of the parameter.
            low: Lower bound.
            high: Upper bound.
            step: Distance between two values; not with ``log``.
            log: Samples on a logarithmic scale.
        """
        if step is not None and (log or not step > 0):
            raise ValueError(f"{name}: step must be above 0 and cannot be combined with log")
        for bound in (low, high):
            if not math.isfinite(bound):
                raise ValueError(f"{name}: bounds must be finite, not {bound}")
        kind = "log_uniform" if log else "uniform"
        return float(self._suggest(name, {kind: [float(low), float(high)]}, step))

    def suggest_int(self, name: str, low: int, high: int, *, step: int = 1, log: bool = False) -> int:
        """Returns an integer from ``low`` to ``high``, both included. Same arguments as :meth:`suggest_float`."""
        if step < 1 or (log and step != 1):
            raise ValueError(f"{name}: step must be at least 1, and 1 with log")
        kind = "log_int" if log else "int"
        return int(self._suggest(name, {kind: [int(low), int(high)]}, None if step == 1 else float(step)))

    def suggest_categorical(self, name: str, choices: Sequence[T]) -> T:
        """Returns one of ``choices``. Those that are not strings, numbers or booleans are stored as text."""
        labels = [it if isinstance(it, (bool, int, float, str)) else str(it) for it in choices]
        value = self._suggest(name, {"choice": labels}, None)
        # 1, 1.0 and True are equal in Python, but different choices.
        return choices[[json.dumps(it) for it in labels].index(json.dumps(value))]

    def _suggest(self, name: str, domain: dict[str, Any], step: float | None) -> Any:
        text = self._alive(self.core.suggest(name, json.dumps(domain), step))
        self.params[name] = json.loads(text)
        return self.params[name]

    def epochs(self, total: int) -> Iterator[int]:
        """Iterates over the epochs 1, 2, ..., ``total``, after those of the restored checkpoint."""
        self._planned = total
        for epoch in range(self._epoch + 1, total + 1):
            self._epoch = epoch
            yield epoch

    def report(
        self,
        value: SupportsFloat,
        epoch: int | None = None,
        *,
        epochs: int | None = None,
        loss: SupportsFloat | None = None,
    ) -> None:
        """Reports the value to optimize after an epoch.

        Args:
            value: The value.
            epoch: Epoch, counted from 1 or from 0; by default the next one.
            epochs: Total number of epochs. Not needed with :meth:`epochs`.
            loss: Training loss, for indicators that need it. Not needed with :func:`surefoot.watch`.
        """
        self.before_report()
        self._planned = epochs if epochs is not None else self._planned
        if self._resumes and self._planned is None:
            raise ValueError(
                "a trial that can be paused needs a known length: loop over trial.epochs(N), or pass epochs=N to report"
            )
        if epoch is not None:
            self._epoch = epoch
        line: dict[str, Any] = {"value": float(value), "epoch": epoch, "epochs": self._planned}
        if loss is not None:
            line["loss"] = float(loss)
        self._alive(self.core.report(json.dumps({key: it for key, it in line.items() if it is not None})))

    def should_stop(self) -> bool:
        """True if the objective should save a checkpoint and return: the trial is pruned, paused or interrupted."""
        return self._alive(self.core.should_stop())

    def checkpoint(self, **state: Any) -> None:
        """Saves the state to continue from after this epoch: models, optimizers, or any values that can be pickled.

        Objects with a ``state_dict`` are saved by it. The random generators of Python, NumPy and PyTorch are saved too.
        Pass the same objects to :meth:`restore`.
        """
        saved = {key: it.state_dict() if hasattr(it, "state_dict") else it for key, it in state.items()}
        content = {"epoch": self._epoch, "state": saved, "random": generator_states()}
        partial = self.dir / f"{CHECKPOINT}.partial"
        torch = sys.modules.get("torch")
        with partial.open("wb") as file:
            torch.save(content, file) if torch is not None else pickle.dump(content, file)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(self.dir / CHECKPOINT)

    def restore(self, **objects: Any) -> dict[str, Any] | None:
        """Loads the checkpoint of an earlier attempt, and returns what was saved; ``None`` if there is none.

        Args:
            objects: Objects with ``load_state_dict`` that were saved under these names. Other names are ignored.
        """
        path = self.dir / CHECKPOINT
        if self.attempt == 1 or not path.exists():
            return None
        torch = sys.modules.get("torch")
        with path.open("rb") as file:
            content = torch.load(file, weights_only=False) if torch is not None else pickle.load(file)
        state: dict[str, Any] = content["state"]
        missing = [key for key in objects if key not in state]
        if missing:
            known = ", ".join(state)
            raise ValueError(f"the checkpoint of trial {self.number} has no {', '.join(missing)}; it has: {known}")
        for key, it in objects.items():
            if hasattr(it, "load_state_dict"):
                it.load_state_dict(state[key])
        set_generator_states(content["random"])
        self._epoch = content["epoch"]
        return state

    def _alive(self, answer: T | None) -> T:
        if answer is None:
            raise TrialStopped("the worker no longer runs this trial")
        return answer

    def __repr__(self) -> str:
        return f"Trial(number={self.number}, params={self.params})"


_current: Trial | None = None


def current() -> Trial | None:
    """The trial that this process runs."""
    return _current


def set_current(trial: Trial | None) -> None:
    """Sets the trial that this process runs."""
    global _current
    _current = trial
