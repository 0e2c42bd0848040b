"""Comparison of a training with its repairs, for every framework.

A framework derives its trainings from :class:`Contestant` and :class:`Trainings`; the core decides what they train.
"""

from __future__ import annotations

import gc
import json
import math
import sys
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from surefoot import _core
from surefoot.finding import Finding
from surefoot.fit import Attempt, Result, summary
from surefoot.session import Session

OBSERVATIONS = 200
"""Number of observed steps of a training, one for each block of the diagnosis."""

Standing = tuple[_core.Run, float, bool, float | None, float | None, bool]
"""Run, share of completed steps, True if trained to its end, metric and loss of its best epoch, and True if the
fact ``chance`` is that of the metric."""


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
        self.last_metric: float | None = None
        self.has_finite_loss = True
        self.error: str | None = None
        self.is_over = False
        self.finished = False
        self._has_paused = False
        self._has_best = False
        self._has_ended = False
        self._has_failed = False

    @abstractmethod
    def step(self) -> bool:
        """Trains one step. Returns True after the last."""

    @abstractmethod
    def best_model(self) -> Any:
        """Returns the model with the weights of its best epoch."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Returns the weights of the best model by name: contiguous tensors or arrays in the memory of the host."""

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
            try:
                self.finished = self.step()
            except Exception as error:
                if self.number == 0:
                    raise
                # An attempt that cannot be trained. The others continue.
                self.error, self.finished = f"{type(error).__name__}: {error}", True
                self.metric = self.loss = None
            self.is_over = self.finished or self._problem("certain") is not None
            if not self._has_paused and self._problem("likely") is not None:
                self._has_paused = True
                break
        if self.is_over:
            self.end()

    def _problem(self, confidence: str) -> Finding | None:
        found = (it for it in self.findings if it.severity == "problem" and it.confidence == confidence)
        return next(found, None)

    def end(self) -> None:
        """Ends the training. Its record stays open until :meth:`close`."""
        session = self.watch.session
        if self._has_ended or session is None:
            return
        self._has_ended = True
        session.core.hold()
        problem = self._problem("certain") or self._problem("likely")
        if not self.finished and problem is not None:
            self.record({"event": "stopped", "problem": problem.problem})
        self.watch.finish(completed=self.finished)

    def record(self, event: dict[str, Any]) -> None:
        """Writes an event into the record, if there is one."""
        session = self.watch.session
        if session is not None:
            text = json.dumps({"step": self.steps, **event})
            self._write(lambda: session.core.event(text))

    def close(
        self, delivery: dict[str, Any], *, program: str | None = None, arrays: dict[str, Any] | None = None
    ) -> None:
        """Ends the training and closes its record.

        Args:
            delivery: Fields of the summary, with the keys of ``Delivery`` in ``crates/surefoot-python/src/run.rs``.
            program: The program as delivered, as JSON.
            arrays: Weights of the delivered model.
        """
        self.end()
        session = self.watch.session
        if session is not None:
            tensors = [it for name, array in (arrays or {}).items() if (it := stored(name, array)) is not None]
            self._write(lambda: session.core.deliver(json.dumps(delivery), program, tensors))

    def _write(self, write: Callable[[], object]) -> None:
        """Writes to the record. A full disk does not end the training."""
        try:
            write()
        except RuntimeError as error:
            if not self._has_failed:
                warnings.warn(f"the record {self.directory} is incomplete: {error}", RuntimeWarning, stacklevel=2)
            self._has_failed = True

    def is_best(self, loss: float, metric: float | None) -> bool:
        """Adds an evaluation. Returns True if it is the best so far, so that its weights have to be kept."""
        self.has_finite_loss = math.isfinite(loss)
        self.last_metric = metric
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
        # A contestant that has failed at its first step has no session.
        run = session.core if session is not None else Session({}, framework="").core
        return run, min(share, 1.0), self.finished, self.metric, self.loss, True


C = TypeVar("C", bound=Contestant)


class Trainings(ABC, Generic[C]):
    """All contestants of a repair. The core calls its methods; see ``crates/surefoot-python/src/repair.rs``."""

    metric_name: str
    validation_samples: int

    def __init__(self) -> None:
        self.contestants: dict[int, C] = {}
        self.ledger: list[Attempt] = []
        self.say: Callable[[str], object] = lambda text: None
        self._proposals: dict[int, dict[str, Any]] = {}
        self._closed_steps = 0

    @abstractmethod
    def contestant(self, number: int, actions: list[dict[str, Any]]) -> C:
        """Prepares a training with ``actions`` applied, or raises :class:`CannotApply`."""

    @abstractmethod
    def change(self, applied: list[dict[str, Any]], action: dict[str, Any]) -> str:
        """Applies an action to a new training with the actions ``applied``, and returns a sentence about the change."""

    @abstractmethod
    def source_diff(self, actions: list[dict[str, Any]]) -> str | None:
        """Returns the actions as a diff of the program; ``None`` if they cannot be written as one with certainty."""

    def unwritten(self, contestant: C) -> list[str]:
        """Returns sentences about the changes that a source diff of its actions leaves out."""
        return []

    def facts_of_model(self) -> dict[str, Any]:
        """Returns what :func:`surefoot.load` needs to apply the actions again, as JSON values."""
        return {}

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
        proposal = json.loads(attempt)
        number: int = proposal["number"]
        try:
            contestant = self.contestant(number, json.loads(actions))
        except CannotApply:
            return False
        contestant.remedies = proposal["remedies"]
        self.contestants[number] = contestant
        self._proposals[number] = dict(proposal)
        proposal.pop("diff")
        self.ledger.append(Attempt(**proposal))
        return True

    def train(self, number: int, share: float) -> Standing:
        """Trains a contestant up to a share of its steps."""
        contestant = self.contestants[number]
        contestant.train(math.ceil(share * contestant.total_steps))
        proposal = self._proposals.pop(number, None)
        if proposal is not None and contestant.directory is not None:
            # The directory of an attempt exists once it has trained.
            run = f"attempts/{contestant.directory.name}"
            self.contestants[0].record({"event": "attempt", **proposal, "run": run})
        return contestant.standing()

    def close(self, number: int, ending: str, finding: str | None, is_best: bool) -> None:
        """Ends an attempt, and writes its outcome into the ledger.

        Args:
            number: Number of the attempt.
            ending: Its outcome.
            finding: The problem that it ended with, as JSON.
            is_best: True if it is the best attempt so far, so that its model may be delivered.
        """
        contestant = self.contestants[number]
        entry = next(it for it in self.ledger if it.number == number)
        entry.state, entry.metric, entry.steps = ending, contestant.metric, contestant.steps
        entry.error = contestant.error
        found = None if finding is None else json.loads(finding)
        self.contestants[0].record(
            {
                "event": "outcome",
                "number": number,
                "state": ending,
                "finding": found,
                "metric": contestant.metric,
                "steps": contestant.steps,
            }
        )
        contestant.end()
        status = "problem" if any(it.severity == "problem" for it in contestant.findings) else "normal"
        contestant.close(self._delivery(contestant, status, contestant.steps))
        sign = "✓" if ending == "repaired" else "·"
        words = "another attempt did better" if ending == "outperformed" else ending.replace("_", " ")
        self.say(f"  {number:>2} {sign} {entry.remedies[-1]:<14} {words:<26} {entry.change}")
        if entry.error is not None:
            self.say(f"       ended with {entry.error}")
        contestant.free()
        # Only the model as given and the best attempt can be delivered.
        beaten = [n for n in self.contestants if n and n != number and self._is_closed(n)] if is_best else [number]
        for it in beaten:
            self._closed_steps += self.contestants.pop(it).steps
        del contestant
        # Hooks refer to models that refer to hooks.
        gc.collect()

    def _is_closed(self, number: int) -> bool:
        return any(it.number == number and it.state != "running" for it in self.ledger)

    def other_problems(self) -> list[str]:
        """All findings of the training as given, as JSON."""
        session = self.contestants[0].watch.session
        return session.core.findings() if session else []

    # Called by `fit`

    def run(self, *, repair: bool, forbid: Iterable[str], attempts: int, quiet: bool) -> Result:
        """Trains, repairs if that is needed, and returns the result."""
        say = (lambda text: None) if quiet else (lambda text: print(text, file=sys.stderr, flush=True))
        try:
            result = self._run(say, repair=repair, forbid=list(forbid), attempts=attempts)
        finally:
            for contestant in self.contestants.values():
                contestant.free()
                contestant.watch.finish(completed=contestant.finished)
        say(summary(result))
        return result

    def _run(self, say: Callable[[str], object], *, repair: bool, forbid: list[str], attempts: int) -> Result:
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
                    forbid=forbid,
                    order=[],
                    attempts=attempts,
                )
            elif _core.has_ended_well(standing if original.is_over else self.train(0, 1.0), self.validation_samples):
                status = "normal"
        elif original.metric is None and not original.has_finite_loss:
            status = "failed"
        delivered = self.contestants[number or 0]
        steps = self._closed_steps + sum(it.steps for it in self.contestants.values())
        diff = self.source_diff(delivered.actions) if number else None
        findings = original.findings
        if status == "normal":
            # The training as given learned in spite of these problems, and no repair improved it.
            findings = [replace(it, severity="warning") for it in findings]
        result = Result(
            model=delivered.best_model(),
            status=status,
            findings=findings,
            metric_name=self.metric_name,
            before=original.metric,
            after=delivered.metric,
            steps=steps,
            remedies=delivered.remedies,
            ledger=self.ledger,
            run=original.directory,
            changes=delivered.changes,
            source_diff=diff,
            unwritten=self.unwritten(delivered),
        )
        self._write(original, delivered, status, steps)
        return result

    def _write(self, original: C, delivered: C, status: str, steps: int) -> None:
        """Writes the delivered model and the summary into the record."""
        program, arrays = None, None
        if original.directory is not None:
            given = json.loads((original.directory / "program.json").read_text(encoding="utf-8"))
            program = json.dumps({**given, "actions": delivered.actions, **self.facts_of_model()}, indent=2) + "\n"
            arrays = delivered.arrays()
        original.close(self._delivery(original, status, steps, delivered), program=program, arrays=arrays)

    def _delivery(self, contestant: C, status: str, steps: int, delivered: C | None = None) -> dict[str, Any]:
        best = delivered or contestant
        return {
            "status": status,
            "remedies": best.remedies if delivered is not None else [],
            "before": contestant.last_metric,
            "after": best.metric,
            "steps": steps,
            "attempt": None if delivered is None else delivered.number,
        }


_FORMATS = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "uint16": "U16", "uint32": "U32", "uint64": "U64",
}  # fmt: skip


def stored(name: str, array: Any) -> tuple[str, str, list[int], int, int] | None:
    """Describes a contiguous tensor or array to the core; ``None`` if model files have no such type.

    Example:
        >>> import numpy
        >>> stored("bias", numpy.zeros(3, "float32"))[:3]
        ('bias', 'F32', [3])
    """
    kind = _FORMATS.get(str(array.dtype).removeprefix("torch."))
    if kind is None:
        return None
    address = array.data_ptr() if hasattr(array, "data_ptr") else array.ctypes.data
    return name, kind, list(array.shape), address, array.nbytes
