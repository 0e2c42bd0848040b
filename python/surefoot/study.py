"""Studies: the trials of a hyperparameter search and its best one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from surefoot import _core
from surefoot.board import inline


@dataclass(frozen=True)
class StudyTrial:
    """A trial of a study as stored."""

    number: int
    """0-based number."""
    state: str
    """``"waiting"``, ``"running"``, ``"paused"``, ``"lost"``, ``"complete"``, ``"pruned"`` or ``"failed"``."""
    value: float | None
    """Result of a complete trial, last report of a pruned one, or best report of a paused one."""
    params: dict[str, Any]
    """Parameter values."""
    reason: str = ""
    """Reason why it was pruned or failed. For an exception, the last line of the traceback."""
    reason_id: str = ""
    """Pruner or problem that ended it, such as ``prospect`` or ``non_finite_loss``."""
    traceback: str = ""
    """Traceback of the exception that made it fail."""
    values: dict[int, float] = field(default_factory=dict)
    """Reported values by epoch."""
    seconds: float | None = None
    """Duration, once it has ended."""
    dir: Path | None = None
    """Directory of the trial."""

    @property
    def epochs(self) -> int:
        """Number of the last reported epoch."""
        return max(self.values, default=0)


class Study:
    """The trials of a search in their store. Returned by :func:`surefoot.tune` and :func:`surefoot.load_study`.

    In a notebook it is shown as its report.

    Attributes:
        name: Name of the study.
        store: The store, without a password.
        direction: ``"minimize"`` or ``"maximize"``.
    """

    def __init__(self, core: _core.TuneStudy) -> None:
        self.core = core
        self.name = core.name
        self.store = core.store
        self.direction = core.direction
        self.is_stopping = False

    @property
    def trials(self) -> list[StudyTrial]:
        """All trials by number."""
        return [self.trial(number) for number in range(self.core.count())]

    def trial(self, number: int) -> StudyTrial:
        """Returns a trial by its number."""
        text, value = self.core.trial(number)
        line: dict[str, Any] = json.loads(text)
        message, _, traceback = (line.get("message") or "").partition("\n")
        reason = line.get("reason") or {}
        return StudyTrial(
            number=line["number"],
            state=line["state"],
            value=value,
            params=line["parameters"] or {},
            reason=reason.get("message", message),
            reason_id=reason.get("by", ""),
            traceback=traceback.strip("\n"),
            values={it["step"]: float(it["value"]) for it in line["reports"]},
            seconds=line["seconds"],
            dir=Path(line["run"]) if line["run"] else None,
        )

    @property
    def best_trial(self) -> StudyTrial | None:
        """The trial with the best value; ``None`` if no trial has produced one."""
        number = self.core.best()
        return None if number is None else self.trial(number)

    @property
    def best_value(self) -> float | None:
        """Value of the best trial."""
        best = self.best_trial
        return best.value if best else None

    @property
    def best_params(self) -> dict[str, Any]:
        """Parameters of the best trial; empty if there is none."""
        best = self.best_trial
        return best.params if best else {}

    def table(self) -> list[dict[str, Any]]:
        """One flat dictionary for each trial, for ``pandas.DataFrame(study.table())``."""
        return [
            {
                "number": it.number,
                "state": it.state,
                "value": it.value,
                **{f"params_{key}": value for key, value in it.params.items()},
                "epochs": it.epochs,
                "seconds": it.seconds,
                "reason": it.reason,
            }
            for it in self.trials
        ]

    def refresh(self) -> None:
        """Reads changes that other processes have made."""
        self.core.changed()

    def enqueue(self, params: Mapping[str, Any]) -> int:
        """Adds a trial with these parameters, which runs before others, and returns its number."""
        return self.core.enqueue(json.dumps(dict(params)))

    def stop(self) -> None:
        """Ends the search after the running epochs. For callbacks of :func:`surefoot.tune`."""
        self.is_stopping = True

    def report(self, path: str | Path) -> Path:
        """Writes the report as an HTML page and returns its path."""
        target = Path(path)
        target.write_text(self.core.report(), encoding="utf-8")
        return target

    def export(self, path: str | Path, format: str | None = None) -> Path:
        """Writes the trials to a file and returns its path.

        Args:
            path: The file. Its extension selects the format: ``.csv``, ``.parquet``, ``.jsonl``, or ``.log`` (Optuna).
            format: ``"csv"``, ``"parquet"``, ``"jsonl"`` or ``"optuna-journal"``.
        """
        target = Path(path)
        ending = target.suffix.lstrip(".").lower()
        target.write_bytes(self.core.export(format or {"log": "optuna-journal"}.get(ending, ending)))
        return target

    def _repr_html_(self) -> str:
        return inline(self.core.report())

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state}" for state, count in self.core.states().items())
        best = self.best_trial
        found = f", best {best.value:.6g} (trial {best.number})" if best and best.value is not None else ""
        return f"<Study {self.name!r}: {counts or 'no trials'}{found}>"


def load_study(store: str | Path, name: str | None = None) -> Study:
    """Opens a study of :func:`surefoot.tune` or ``surefoot tune``.

    Args:
        store: File, directory of the study (``runs/NAME``) or ``postgres://...``.
        name: Name of the study; not needed if the store has only one.
    """
    path = Path(store)
    inside = path / "study.db"
    return Study(_core.TuneStudy.open(str(inside if inside.is_file() else store), name))
