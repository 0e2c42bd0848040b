"""SMAC3 as its facade for hyperparameter search sets it up; NaN is a crashed trial."""

from __future__ import annotations

import logging
import math
import tempfile
import warnings
from typing import Any

import ConfigSpace as cs
from functions import Function
from smac import HyperparameterOptimizationFacade as Facade
from smac import Scenario

warnings.filterwarnings("ignore")
SAMPLERS = ("SMAC3",)

# Its default is infinity, which its own model then stops at with an error. More than any function
# here costs beside its NaN.
CRASH_COST = 10.0


def space(parameters: list[dict[str, Any]], seed: int) -> cs.ConfigurationSpace:
    made = cs.ConfigurationSpace(seed=seed)
    for parameter in parameters:
        name = parameter["name"]
        [(kind, given)] = parameter["domain"].items()
        if kind == "choice":
            made.add(cs.CategoricalHyperparameter(name, given))
        elif kind in ("int", "log_int"):
            made.add(cs.UniformIntegerHyperparameter(name, *given, log=kind == "log_int"))
        else:
            made.add(cs.UniformFloatHyperparameter(name, *given, log=kind == "log_uniform"))
    for parameter in parameters:
        conditions = [
            cs.InCondition(made[parameter["name"]], made[c["parameter"]], c["values"])
            for c in parameter.get("conditions", [])
        ]
        if conditions:
            made.add(conditions[0] if len(conditions) == 1 else cs.AndConjunction(*conditions))
    return made


def costs(sampler: str, function: Function, seed: int, trials: int) -> list[float]:
    """Values of the trials of a study, in order."""
    found = []

    def target(config: cs.Configuration, seed: int = 0) -> float:
        cost = function.value({name: plain(value) for name, value in dict(config).items()})
        found.append(cost)
        if not math.isfinite(cost):
            raise ValueError("no finite number")
        return cost

    with tempfile.TemporaryDirectory() as folder:
        scenario = Scenario(
            space(function.parameters, seed),
            n_trials=trials,
            deterministic=True,
            seed=seed,
            crash_cost=CRASH_COST,
            output_directory=folder,
        )
        Facade(scenario, target, overwrite=True, logging_level=logging.CRITICAL).optimize()
    return found


def plain(value: Any) -> Any:
    """Numbers of numpy as Python's own."""
    return value.item() if hasattr(value, "item") else value
