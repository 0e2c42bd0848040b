"""Neural-network training that does not stumble.

Surefoot watches a training run, says what is going wrong while it is going wrong, repairs it and retrains, prunes hopeless
trials of a hyperparameter search, and makes runs repeatable. The entry points are functions of this module;
``surefoot --help`` shows the command line.
"""

from __future__ import annotations

from surefoot._core import VERSION as __version__
from surefoot.finding import Finding, TrainingProblem
from surefoot.fit import Result, fit
from surefoot.session import Session
from surefoot.watch import watch

__all__ = ["Finding", "Result", "Session", "TrainingProblem", "__version__", "fit", "watch"]
