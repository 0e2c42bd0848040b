"""The contest of a training with its repairs, for every framework.

A framework derives its trainings from :class:`Contestant` and :class:`Trainings`; the core decides what they train.
"""

from __future__ import annotations

import json
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from surefoot import _core
from surefoot.finding import Finding
from surefoot.fit import Attempt, Result, read_attempt, summary
from surefoot.session import Session

OBSERVATIONS = 200
"""Number of observed steps of a training, one for each block of the diagnosis."""

Standing = tuple[_core.Run, float, bool, float | None, float | None]
"""(Run, share of completed steps, True if trained to its end, metric and loss of its best epoch)."""


class CannotApply(Exception):
    """Raised if an action does not fit a training. The message says why."""


class Watching(Protocol):
    """The part of a watch that a contestant needs."""

    @property
    def findings(self) -> list[Finding]: ...

    @property
    def session(self) -> Session | None: ...

    @property
    def directory(self) -> Path | None: ...

    def finish(self, *, completed: bool = True) -> None: ...


class Contestant(ABC):
    """One training that can be paused: the one as given, or an attempt.

    Args:
        number: Number of the attempt; 0 is the training as given.
        actions: Actions of the repair that are applied to it.
    """

    watch: Watching
    total_steps: int
    changes: list[str]

    def __init__(self, number: int, actions: list[dict[str, Any]]) -> None:
        self.number = number
        self.actions = actions
        self.remedies: list[str] = []
        self.steps = 0
        self.metric: float | None = None
        self.loss: float | None = None
        self.has_finite_loss = True
        self.is_over = False
        self.finished = False
        self._has_paused = False
        self._has_best = False

    @abstractmethod
    def step(self) -> bool:
        """Trains one step. Returns True after the last."""

    @abstractmethod
    def best_model(self) -> Any:
        """Returns the model with the weights of its best epoch."""

    @abstractmethod
    def free(self) -> None:
        """Frees the memory that only further training needs."""

    @property
    def findings(self) -> list[Finding]:
        """Findings so far."""
        return self.watch.findings

    @property
    def directory(self) -> Path | None:
        """The run directory, if the training is recorded."""
        return self.watch.directory

    def train(self, until: int) -> None:
        """Trains to step ``until``. Stops earlier at a certain problem, at the first likely one and at the end."""
        while self.steps < until and not self.is_over:
            self.finished = self.step()
            self.is_over = self.finished or self._has("certain")
            if not self._has_paused and self._has("likely"):
                self._has_paused = True
                break
        if self.is_over:
            self.watch.finish(completed=self.finished)

    def _has(self, confidence: str) -> bool:
        return any(it.severity == "problem" and it.confidence == confidence for it in self.findings)

    def is_best(self, loss: float, metric: float | None) -> bool:
        """Takes an evaluation. Returns True if it is the best so far, so that its weights have to be kept."""
        self.has_finite_loss = math.isfinite(loss)
        is_better = (
            metric > self.metric
            if metric is not None and self.metric is not None
            else self.loss is None or loss < self.loss
        )
        if not math.isfinite(loss) or (self._has_best and not is_better):
            return False
        self.metric, self.loss, self._has_best = metric, loss, True
        return True

    def standing(self) -> Standing:
        """Returns progress and quality in the form that the core expects."""
        share = self.steps / max(self.total_steps, 1)
        session = self.watch.session
        assert session is not None  # A contestant that has trained a step has a session.
        return session.core, min(share, 1.0), self.finished, self.metric, self.loss


C = TypeVar("C", bound=Contestant)


class Trainings(ABC, Generic[C]):
    """All contestants of a repair. The core calls its methods; see ``crates/surefoot-python/src/repair.rs``."""

    metric_name: str
    validation_samples: int

    def __init__(self) -> None:
        self.contestants: dict[int, C] = {}
        self.ledger: list[Attempt] = []
        self.say: Callable[[str], object] = lambda text: None

    @abstractmethod
    def contestant(self, number: int, actions: list[dict[str, Any]]) -> C:
        """Prepares a training with ``actions`` applied, or raises :class:`CannotApply`."""

    @abstractmethod
    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        """Applies an action to a new training with the actions ``applied``, and returns a sentence of what changed."""

    @abstractmethod
    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        """Returns the actions as a diff of the program; ``None`` if they cannot be written as one with certainty."""

    # Called by the core

    def apply(self, applied: str, action: str) -> tuple[bool, str]:
        """Applies ``action`` to a new training with the actions ``applied``.

        Returns True and a description of the change, or False and the reason why it is impossible.
        """
        try:
            return True, self.change(json.loads(applied), json.loads(action))
        except CannotApply as reason:
            return False, str(reason)

    def start(self, actions: str, attempt: str) -> bool:
        """Prepares an attempt. Returns False if its actions cannot be applied."""
        entry = read_attempt(attempt)
        try:
            contestant = self.contestant(entry.number, json.loads(actions))
        except CannotApply:
            return False
        contestant.remedies = entry.remedies
        self.contestants[entry.number] = contestant
        self.ledger.append(entry)
        return True

    def train(self, number: int, share: float) -> Standing:
        """Trains a contestant up to a share of its steps."""
        contestant = self.contestants[number]
        contestant.train(math.ceil(share * contestant.total_steps))
        return contestant.standing()

    def close(self, number: int, ending: str) -> None:
        """Ends an attempt, and writes its outcome into the ledger."""
        contestant = self.contestants[number]
        entry = next(it for it in self.ledger if it.number == number)
        entry.state, entry.metric, entry.steps = ending, contestant.metric, contestant.steps
        contestant.watch.finish(completed=contestant.finished)
        sign = "✓" if ending == "repaired" else "·"
        self.say(f"  {number:>2} {sign} {entry.remedies[-1]:<14} {ending.replace('_', ' '):<13} {entry.change}")
        if ending != "repaired":
            contestant.free()

    def other_problems(self) -> list[str]:
        """All findings of the training as given, as JSON."""
        session = self.contestants[0].watch.session
        return session.core.findings() if session else []

    # Called by `fit`

    def run(self, *, repair: bool, forbid: Iterable[str], attempts: int, quiet: bool) -> Result:
        """Trains, repairs if that is needed, and returns the result."""
        say = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))
        original = self.contestants[0] = self.contestant(0, [])
        standing = self.train(0, 1.0)
        problem = next((it for it in original.findings if it.severity == "problem"), None)
        status, number = "normal", None
        if problem is not None:
            say(f"✗ {problem}")
            status = "problem"
            if repair:
                self.say = say
                status, number = _core.repair(
                    self,
                    standing,
                    samples=self.validation_samples,
                    forbid=list(forbid),
                    order=[],
                    attempts=attempts,
                )
            elif not original.is_over:
                self.train(0, 1.0)
        elif original.metric is None and not original.has_finite_loss:
            status = "failed"
        delivered = self.contestants[number or 0]
        result = Result(
            model=delivered.best_model(),
            status=status,
            findings=original.findings,
            metric_name=self.metric_name,
            before=original.metric,
            after=delivered.metric,
            steps=sum(it.steps for it in self.contestants.values()),
            remedies=delivered.remedies,
            ledger=self.ledger,
            run=original.directory,
            changes=delivered.changes,
            source_diff=self.source_diff(delivered.actions) if number else None,
        )
        for contestant in self.contestants.values():
            contestant.watch.finish(completed=contestant.finished)
        say(summary(result))
        return result
