"""Neural-network training that does not stumble.

Surefoot watches a training run, reports problems as they occur, repairs them and retrains, prunes trials of a
hyperparameter search, and makes runs repeatable. The entry points are functions of this module;
``surefoot --help`` shows the command line.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from surefoot._core import VERSION as __version__
from surefoot.board import Board, board
from surefoot.finding import Finding, TrainingProblem
from surefoot.fit import Result, fit, repair
from surefoot.load import load
from surefoot.run import deterministic
from surefoot.session import Session
from surefoot.study import Study, StudyTrial, load_study
from surefoot.trial import Trial, TrialStopped
from surefoot.tune import tune
from surefoot.watch import watch

__all__ = [
    "Board",
    "Finding",
    "Result",
    "Session",
    "Study",
    "StudyTrial",
    "TrainingProblem",
    "Trial",
    "TrialStopped",
    "__version__",
    "board",
    "deterministic",
    "fit",
    "load",
    "load_study",
    "repair",
    "tune",
    "watch",
]

_HOSTS = ("keras", "lightning", "optuna", "ray", "torch", "transformers")


def __getattr__(name: str) -> ModuleType:
    # The module of a host is imported with its first use, and the host with it.
    if name in _HOSTS:
        return importlib.import_module(f"surefoot.{name}")
    raise AttributeError(f"module 'surefoot' has no attribute {name!r}")
