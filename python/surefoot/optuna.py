"""Optuna: a pruner that gives reasons, samplers, and exchange of studies.

One changed line in an existing script::

    study = optuna.create_study(pruner=surefoot.optuna.DiagnosisPruner())
"""

from __future__ import annotations

import json
import math
import tempfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.search_space import IntersectionSearchSpace
from optuna.storages.journal import JournalFileBackend
from optuna.study import Study as OptunaStudy
from optuna.study import StudyDirection
from optuna.trial import FrozenTrial, TrialState

from surefoot import _core, session
from surefoot.study import Study
from surefoot.tune import study_text

REASON = "surefoot:reason"
"""User attribute of a pruned trial: the pruner or problem that ended it."""
MESSAGE = "surefoot:message"
"""User attribute of a pruned trial: the reason as a sentence."""


class DiagnosisPruner(optuna.pruners.BasePruner):
    """Prunes trials with a training problem, and those that are unlikely to become the best.

    The reason is in the user attributes ``surefoot:reason`` and ``surefoot:message`` of the trial. If the objective
    uses :func:`surefoot.watch` or a callback of Surefoot in the same thread, problems of layers and losses are found
    too. Every call of ``trial.report`` counts as an epoch.

    Args:
        pruners: Pruners and indicators as in a study file; by default ``["diagnosis", "prospect"]``.
        epochs: Number of reports of a full trial; by default that of the longest complete one.
        protect: Number of best trials at each epoch that are never pruned, unless their value is NaN.

    Example:
        >>> import optuna, surefoot.optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> def objective(trial):
        ...     x = trial.suggest_float("x", 0, 1)
        ...     for epoch in range(10):
        ...         trial.report(x + 1 / (epoch + 1) if x > 0.2 else float("nan"), epoch)
        ...         if trial.should_prune():
        ...             raise optuna.TrialPruned
        ...     return x
        >>> sampler = surefoot.optuna.Sampler("tpe", seed=1)
        >>> study = optuna.create_study(sampler=sampler, pruner=surefoot.optuna.DiagnosisPruner(epochs=10))
        >>> study.optimize(objective, n_trials=20)
        >>> pruned = [it for it in study.trials if it.user_attrs.get("surefoot:reason") == "non_finite"]
        >>> pruned[0].user_attrs["surefoot:message"]
        'Pruned at epoch 1 of 10: the reported value is NaN.'
    """

    def __init__(
        self,
        pruners: Sequence[str | Mapping[str, Any]] | None = None,
        *,
        epochs: int | None = None,
        protect: int = 3,
    ) -> None:
        self._pruners = None if pruners is None else json.dumps(list(pruners))
        self._epochs = epochs
        self._protect = protect
        # Raises an error now if a name is unknown, not in the first trial.
        _core.prune(self._pruners, protect, (0, [], 1, False), [], [], [])
        session.indicators = [self._pruners]

    def prune(self, study: OptunaStudy, trial: FrozenTrial) -> bool:
        """Returns true if the trial should be pruned. Optuna calls it from ``trial.should_prune``."""
        if not trial.intermediate_values:
            return False
        sign = _sign(study)
        trials = study.get_trials(deepcopy=False)
        lengths = [len(it.intermediate_values) for it in trials if it.state == TrialState.COMPLETE]
        longest = self._epochs or max(lengths, default=0)
        curve = self._curve(trial, sign, longest)
        others = [
            self._curve(it, sign, longest)
            for it in trials
            if it.number != trial.number and it.intermediate_values and it.state != TrialState.WAITING
        ]
        earlier, new, fatal = _findings(trial, curve[1][-1], len(curve[1]))
        reason = _core.prune(self._pruners, self._protect, curve, others, earlier, new)
        if fatal is not None:
            found = {"by": fatal.problem, "message": fatal.message}
        elif reason is not None:
            found = json.loads(reason)
        else:
            return False
        # The trial is a copy, and only its storage takes attributes here.
        for key, value in ((REASON, found["by"]), (MESSAGE, found["message"])):
            study._storage.set_trial_user_attr(trial._trial_id, key, value)
        return True

    def _curve(self, trial: FrozenTrial, sign: float, longest: int) -> tuple[int, list[float], int, bool]:
        costs = [sign * value for _, value in sorted(trial.intermediate_values.items())]
        # Without a known length, a running trial may end with its next report.
        planned = max(longest, len(costs)) if longest else len(costs)
        return trial.number, costs, planned, trial.state.is_finished()


def _findings(trial: FrozenTrial, cost: float, epoch: int) -> tuple[list[str], list[str], Any]:
    """Earlier and new findings of the indicators, and a problem from which the training cannot recover."""
    watched = session.latest()
    if watched is None or (trial.datetime_start is not None and watched.begun < trial.datetime_start.timestamp()):
        return [], [], None
    watched.flush()
    new = watched.core.ask_indicators(cost, epoch)
    earlier = list(watched.indicator_findings)
    watched.indicator_findings += new
    certain = [it for it in watched.findings if it.severity == "problem" and it.confidence == "certain"]
    return earlier, new, certain[0] if certain else None


class Sampler(optuna.samplers.BaseSampler):
    """A sampler of Surefoot for Optuna studies with one objective.

    Parameters that all trials have are sampled together, others one by one. A pruned trial counts with its last
    reported value.

    Args:
        name: ``"tpe"``, ``"random"``, ``"sobol"``, ``"gp"`` or ``"smac"``.
        seed: Seed.
        options: Options of the sampler, as in a study file.

    Example:
        >>> import optuna, surefoot.optuna
        >>> optuna.logging.set_verbosity(optuna.logging.WARNING)
        >>> study = optuna.create_study(sampler=surefoot.optuna.Sampler("gp"))
        >>> study.optimize(lambda trial: (trial.suggest_float("x", -5, 5) - 2) ** 2, n_trials=25)
        >>> study.best_value < 0.1
        True
    """

    def __init__(self, name: str = "tpe", *, seed: int = 0, **options: Any) -> None:
        self._sampler = json.dumps({"name": name, **options})
        _core.check_sampler(self._sampler)
        self._seed = seed
        self._space = IntersectionSearchSpace(include_pruned=True)

    def reseed_rng(self) -> None:
        """Does nothing: draws depend on the seed and the number of the trial."""

    def infer_relative_search_space(self, study: OptunaStudy, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The parameters that all trials have."""
        return {key: it for key, it in self._space.calculate(study).items() if not it.single()}

    def sample_relative(
        self, study: OptunaStudy, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """Samples parameters together."""
        return self._sample(study, trial, search_space, self._seed) if search_space else {}

    def sample_independent(
        self, study: OptunaStudy, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Samples one parameter."""
        # Parameters must not share their draws.
        seed = _core.key(self._seed, zlib.crc32(param_name.encode()), 0, 0)
        return self._sample(study, trial, {param_name: param_distribution}, seed)[param_name]

    def _sample(
        self, study: OptunaStudy, trial: FrozenTrial, space: dict[str, BaseDistribution], seed: int
    ) -> dict[str, Any]:
        sign = _sign(study)
        parameters = [{"name": key, "domain": _domain(it)} for key, it in space.items()]
        history = []
        for other in study.get_trials(deepcopy=False):
            outcome = _outcome(other, sign)
            if outcome is None or other.number == trial.number:
                continue
            if all(key in other.params and _contains(it, other.params[key]) for key, it in space.items()):
                point = {key: _to_point(it, other.params[key]) for key, it in space.items()}
                history.append({"number": other.number, "point": point, "outcome": outcome})
        answer = _core.suggest(self._sampler, json.dumps(parameters), seed, trial.number, json.dumps(history))
        return {key: _from_point(space[key], value) for key, value in json.loads(answer).items()}


def import_study(study: OptunaStudy, store: str | Path, name: str | None = None) -> Study:
    """Copies the ended trials of an Optuna study to a store of Surefoot, for reports and simulations.

    Args:
        study: An Optuna study with one objective, from any storage.
        store: File or ``postgres://...``.
        name: Name of the new study; by default that of the Optuna study.
    """
    _sign(study)
    trials = [it for it in study.get_trials(deepcopy=False) if it.state.is_finished()]
    space: dict[str, Any] = {}
    for trial in trials:
        for key, distribution in trial.distributions.items():
            space.setdefault(key, _range(distribution))
    direction = "maximize" if study.direction == StudyDirection.MAXIMIZE else "minimize"
    keys = {"function": "optuna", "name": name or study.study_name, "direction": direction}
    copy = _core.TuneStudy.join(study_text(keys, space), str(store))
    if copy.count():
        raise ValueError(f"{copy.store} has trials of the study {copy.name!r} already; pass another name")
    for trial in trials:
        point = {key: _label(it) for key, it in trial.params.items()}
        reports = [(i, value) for i, (_, value) in enumerate(sorted(trial.intermediate_values.items()), 1)]
        seconds = trial.duration.total_seconds() if trial.duration else 0.0
        state = {TrialState.COMPLETE: "complete", TrialState.PRUNED: "pruned"}.get(trial.state, "failed")
        reason = trial.user_attrs.get(MESSAGE) or ("Pruned by Optuna." if state == "pruned" else "failed in Optuna")
        value = trial.value if trial.value is not None else (reports[-1][1] if reports else None)
        copy.add_ended(json.dumps(point), reports, seconds, state, value, str(reason))
    return Study(copy)


def export_study(study: Study, storage: Any, name: str | None = None) -> OptunaStudy:
    """Copies a study of Surefoot to an Optuna storage and returns the copy.

    Args:
        study: The study, from :func:`surefoot.tune` or :func:`surefoot.load_study`.
        storage: Optuna storage or its URL, such as ``"sqlite:///optuna.db"``.
        name: Name of the new study; by default the same.
    """
    with tempfile.TemporaryDirectory() as directory:
        journal = study.export(Path(directory) / "study.log")
        source = optuna.storages.JournalStorage(JournalFileBackend(str(journal)))
        target = optuna.storages.get_storage(storage)
        optuna.copy_study(
            from_study_name=study.name, from_storage=source, to_storage=target, to_study_name=name or study.name
        )
    return optuna.load_study(study_name=name or study.name, storage=target)


def _sign(study: OptunaStudy) -> float:
    if len(study.directions) > 1:
        raise ValueError("Surefoot's samplers and pruners are for Optuna studies with one objective")
    return -1.0 if study.direction == StudyDirection.MAXIMIZE else 1.0


def _outcome(trial: FrozenTrial, sign: float) -> Any:
    """Outcome of a trial as a sampler sees it; ``None`` if it has not started."""
    value = trial.value if trial.state == TrialState.COMPLETE else None
    if trial.state == TrialState.PRUNED and trial.intermediate_values:
        value = trial.intermediate_values[max(trial.intermediate_values)]
    if value is not None and math.isfinite(value):
        return {"cost" if trial.state == TrialState.COMPLETE else "imputed": sign * value}
    if trial.state.is_finished():
        return "failed"
    return "running" if trial.state == TrialState.RUNNING else None


def _domain(distribution: BaseDistribution) -> dict[str, list[Any]]:
    """The range of a sampler: choices by their index, and numbers with a step by the number of steps."""
    if isinstance(distribution, CategoricalDistribution):
        return {"choice": list(range(len(distribution.choices)))}
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    low, high = distribution.low, distribution.high
    if step := _step(distribution):
        return {"int": [0, round((high - low) / step)]}
    kind = "uniform" if isinstance(distribution, FloatDistribution) else "int"
    return {f"log_{kind}" if distribution.log else kind: [low, high]}


def _step(distribution: BaseDistribution) -> float | None:
    step = getattr(distribution, "step", None)
    return None if step is None or (isinstance(distribution, IntDistribution) and step == 1) else step


def _contains(distribution: BaseDistribution, value: Any) -> bool:
    """True if the value is in the range, which may differ from trial to trial."""
    if isinstance(distribution, CategoricalDistribution):
        return value in distribution.choices
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    return isinstance(value, (int, float)) and distribution.low <= value <= distribution.high


def _to_point(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return int(distribution.to_internal_repr(value))
    if step := _step(distribution):
        return round((value - distribution.low) / step)  # type: ignore[attr-defined]
    return value


def _from_point(distribution: BaseDistribution, value: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return distribution.choices[value]
    if step := _step(distribution):
        return distribution.low + value * step  # type: ignore[attr-defined]
    return value


def _range(distribution: BaseDistribution) -> dict[str, list[Any]]:
    """The range in a study file."""
    if isinstance(distribution, CategoricalDistribution):
        return {"choice": [_label(it) for it in distribution.choices]}
    assert isinstance(distribution, (FloatDistribution, IntDistribution))
    kind = "uniform" if isinstance(distribution, FloatDistribution) else "int"
    return {f"log_{kind}" if distribution.log else kind: [distribution.low, distribution.high]}


def _label(value: Any) -> Any:
    return value if isinstance(value, (bool, int, float, str)) else str(value)
