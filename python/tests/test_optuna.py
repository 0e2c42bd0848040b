"""``surefoot.optuna``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import surefoot

optuna = pytest.importorskip("optuna")
optuna.logging.set_verbosity(optuna.logging.WARNING)

from surefoot.optuna import DiagnosisPruner, Sampler, export_study, import_study  # noqa: E402


def curve(trial: Any) -> float:
    x = trial.suggest_float("x", 0, 1)
    for epoch in range(20):
        trial.report(x + 1 / (epoch + 1), epoch)
        if trial.should_prune():
            raise optuna.TrialPruned
    return x


def test_one_line_saves_epochs_and_gives_reasons() -> None:
    def epochs(**changes: Any) -> int:
        study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1), **changes)
        study.optimize(curve, n_trials=30)
        for trial in study.get_trials(states=(optuna.trial.TrialState.PRUNED,)):
            assert trial.user_attrs["surefoot:reason"] == "prospect"
            assert trial.user_attrs["surefoot:message"].startswith("Pruned at epoch")
        return sum(len(it.intermediate_values) for it in study.trials)

    plain = epochs(pruner=optuna.pruners.NopPruner())
    assert epochs(pruner=DiagnosisPruner()) < 0.8 * plain


def test_the_direction_is_respected() -> None:
    study = optuna.create_study(
        direction="maximize", sampler=optuna.samplers.RandomSampler(seed=1), pruner=DiagnosisPruner(epochs=20)
    )
    study.optimize(curve, n_trials=30)
    pruned = study.get_trials(states=(optuna.trial.TrialState.PRUNED,))
    assert pruned and max(it.params["x"] for it in pruned) < study.best_params["x"]


def test_an_unknown_pruner_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown pruner `prospct`"):
        DiagnosisPruner(["prospct"])
    with pytest.raises(ValueError, match="unknown sampler `tpo`"):
        Sampler("tpo")
    with pytest.raises(ValueError, match="unknown key `gama`"):
        Sampler("tpe", gama=0.1)


def test_watch_gives_the_reason() -> None:
    torch = pytest.importorskip("torch")

    def objective(trial: Any) -> float:
        torch.manual_seed(0)
        rate = trial.suggest_categorical("rate", [0.01, 1e6])
        x = torch.rand(64, 4)
        model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        with surefoot.watch(model, optimizer, epochs=4, steps_per_epoch=20, runs=None, on_finding="ignore") as run:
            for epoch in range(4):
                for _ in range(20):
                    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    run.step(loss)
                trial.report(0.5, epoch)
                if trial.should_prune():
                    raise optuna.TrialPruned
        return 0.5

    sampler = optuna.samplers.GridSampler({"rate": [0.01, 1e6]})
    study = optuna.create_study(sampler=sampler, pruner=DiagnosisPruner(epochs=4))
    study.optimize(objective, n_trials=2)
    ended = {it.params["rate"]: it for it in study.trials}
    assert ended[0.01].state == optuna.trial.TrialState.COMPLETE
    assert ended[1e6].user_attrs["surefoot:reason"] in ("exploding_gradient", "non_finite_loss")
    assert len(ended[1e6].intermediate_values) == 1


@pytest.mark.parametrize("name", ["random", "sobol", "tpe", "gp", "smac"])
def test_samplers_suggest_all_kinds_of_parameters(name: str) -> None:
    def objective(trial: Any) -> float:
        x = trial.suggest_float("x", -5, 5)
        rate = trial.suggest_float("rate", 1e-4, 1.0, log=True)
        units = trial.suggest_int("units", 16, 64, step=16)
        share = trial.suggest_float("share", 0.0, 1.0, step=0.25)
        kind = trial.suggest_categorical("kind", [None, "a"])
        assert units in (16, 32, 48, 64) and share * 4 == int(share * 4) and 1e-4 <= rate <= 1
        if kind == "a":
            trial.suggest_int("only_a", 1, 3)
        return (x - 1) ** 2 + units / 1000

    values = []
    for _ in range(2):
        study = optuna.create_study(sampler=Sampler(name, seed=3))
        study.optimize(objective, n_trials=15)
        values.append([it.value for it in study.trials])
    assert values[0] == values[1], "repeatable"
    assert len(set(values[0])) > 10


def test_parameters_of_the_first_trial_do_not_share_their_draws() -> None:
    study = optuna.create_study(sampler=Sampler("random"))
    study.optimize(lambda trial: trial.suggest_float("x", 0, 1) + trial.suggest_float("y", 0, 1), n_trials=1)
    assert study.trials[0].params["x"] != study.trials[0].params["y"]


def test_several_objectives_are_refused() -> None:
    study = optuna.create_study(directions=["minimize", "minimize"], sampler=Sampler())
    with pytest.raises(ValueError, match="one objective"):
        study.optimize(lambda trial: (trial.suggest_float("x", 0, 1), 0.0), n_trials=1)


def test_a_study_is_the_same_after_import_and_export(tmp_path: Path) -> None:
    original = optuna.create_study(pruner=DiagnosisPruner(epochs=20), sampler=Sampler("tpe"), study_name="there")
    original.optimize(curve, n_trials=20)
    copy = import_study(original, tmp_path / "study.db")
    assert len(copy.trials) == 20
    assert copy.best_value == original.best_value and copy.best_params == original.best_params
    pruned = next(it for it in copy.trials if it.state == "pruned")
    assert pruned.reason.startswith("Pruned at epoch") and pruned.values
    assert "<html" in copy.report(tmp_path / "there.html").read_text()
    with pytest.raises(ValueError, match="has trials of the study 'there' already"):
        import_study(original, tmp_path / "study.db")
    back = export_study(copy, f"sqlite:///{tmp_path}/optuna.db", "back")
    assert back.best_value == original.best_value
    assert [it.state for it in back.trials] == [it.state for it in original.trials]
    assert [it.params for it in back.trials] == [it.params for it in original.trials]


def test_a_search_of_surefoot_is_exported(tmp_path: Path) -> None:
    study = surefoot.tune(lambda trial: trial.suggest_float("x", 0, 1), trials=5, runs=tmp_path, name="mine")
    exported = export_study(study, optuna.storages.InMemoryStorage())
    assert exported.best_params == study.best_params
