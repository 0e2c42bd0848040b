"""Optuna's samplers as its users get them: defaults, a seed, NaN is a failed trial."""

from __future__ import annotations

import math
import warnings
from typing import Any

import optuna
from functions import Function

optuna.logging.set_verbosity(optuna.logging.ERROR)
warnings.filterwarnings("ignore")

SAMPLERS = {
    "Optuna TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "Optuna GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
}


def suggest(trial: optuna.Trial, parameters: list[dict[str, Any]]) -> dict[str, Any]:
    """A point, parameter by parameter, as the conditions ask for them."""
    point: dict[str, Any] = {}
    for parameter in parameters:
        conditions = parameter.get("conditions", [])
        if not all(point.get(c["parameter"]) in c["values"] for c in conditions):
            continue
        name = parameter["name"]
        [(kind, given)] = parameter["domain"].items()
        if kind == "choice":
            point[name] = trial.suggest_categorical(name, given)
        elif kind in ("int", "log_int"):
            point[name] = trial.suggest_int(name, *given, log=kind == "log_int")
        else:
            point[name] = trial.suggest_float(name, *given, log=kind == "log_uniform")
    return point


def costs(sampler: str, function: Function, seed: int, trials: int) -> list[float]:
    """Values of the trials of a study, in order."""
    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    found = []
    for _ in range(trials):
        trial = study.ask()
        cost = function.value(suggest(trial, function.parameters))
        if math.isfinite(cost):
            study.tell(trial, cost)
        else:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        found.append(cost)
    return found
