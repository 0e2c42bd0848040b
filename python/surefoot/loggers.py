"""Forwards findings to the experiment loggers that the program uses."""

from __future__ import annotations

import logging
import sys
import warnings
from typing import Any

from surefoot.finding import Finding

_log = logging.getLogger("surefoot")


def forward(finding: Finding, writer: Any = None) -> None:
    """Sends ``finding`` to the TensorBoard ``writer``, to an active W&B run and to an active MLflow run.

    Libraries that the program has not imported are not imported here either. A logger that fails gives a warning.
    """
    tag, text = f"surefoot/{finding.problem}", _text(finding)
    wandb, mlflow = sys.modules.get("wandb"), sys.modules.get("mlflow")
    try:
        if writer is not None:
            writer.add_text(tag, text, finding.step)
        if (active := getattr(wandb, "run", None)) is not None:
            active.alert(title=f"surefoot: {finding.problem}", text=text)
        if mlflow is not None and mlflow.active_run() is not None:
            mlflow.set_tag(tag.replace("/", "."), text[:5000])
    except Exception as error:  # noqa: BLE001 - the logger is not ours
        warnings.warn(f"surefoot cannot log a finding: {error!r}", RuntimeWarning, stacklevel=2)


def show(finding: Finding) -> None:
    """Prints ``finding`` to stderr, or logs it if the program has configured ``logging``."""
    if _log.hasHandlers():
        level = logging.WARNING if finding.severity == "warning" else logging.ERROR
        _log.log(level, "%s", _text(finding))
        return
    sign = "!" if finding.severity == "warning" else "✗"
    text = _text(finding).replace("\n", "\n    ")
    print(f"{sign} surefoot: {text}", file=sys.stderr, flush=True)


def _text(finding: Finding) -> str:
    return f"{finding}\n{finding.advice}" if finding.advice else str(finding)
