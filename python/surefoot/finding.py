"""Findings: problems and warnings with their evidence."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from surefoot import _core


@dataclass(frozen=True)
class Finding:
    """A problem or warning of a training run.

    Example:
        >>> finding = Finding(problem="non_finite_loss", severity="problem", step=7, message="The loss is NaN.")
        >>> print(finding)
        non-finite loss at step 7: The loss is NaN.
    """

    problem: str
    """Id of the problem, such as ``vanishing_gradient``."""
    severity: str
    """``"problem"`` if the training will not succeed without a change, else ``"warning"``."""
    step: int
    """Optimizer step of the finding; 0 is before the first."""
    message: str
    """One or two sentences for people."""
    confidence: str = "likely"
    """``"certain"`` if the run cannot succeed without a change, else ``"likely"``."""
    layers: list[str] = field(default_factory=list)
    """Names of the affected layers; empty if it concerns the run as a whole."""
    evidence: dict[str, float] = field(default_factory=dict)
    """Measurements that show it."""
    advice: str = ""
    """A change that usually solves the problem: code, or a unified diff of the program."""

    def __str__(self) -> str:
        return f"{_core.title(self.problem)} at step {self.step}: {self.message}"

    def __post_init__(self) -> None:
        if self.severity not in ("problem", "warning"):
            raise ValueError(f"severity must be 'problem' or 'warning', not {self.severity!r}")


class TrainingProblem(RuntimeError):
    """Raised at a problem by ``watch(..., on_finding="raise")``.

    Attributes:
        finding: The problem.
    """

    def __init__(self, finding: Finding) -> None:
        super().__init__(str(finding))
        self.finding = finding


def from_json(text: str, framework: str) -> Finding:
    """Reads a finding of the core, with its advice for ``framework``: ``"pytorch"`` or ``"keras"``."""
    value: dict[str, Any] = json.loads(text)
    return Finding(
        problem=value["problem"],
        severity=value["severity"],
        confidence=value["confidence"],
        step=value["step"],
        layers=value["layers"],
        message=value["message"],
        # NaN and infinities are strings in JSON.
        evidence={entry["measure"]: float(entry["value"]) for entry in value["evidence"]},
        advice=(value.get("advice") or {}).get(framework, ""),
    )
