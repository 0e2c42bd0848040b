"""``surefoot.tune``: search over a Python function."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot import Study, Trial


def quadratic(trial: Trial) -> float:
    x = trial.suggest_float("x", -5, 5)
    return (x - 2) ** 2


def resumable(trial: Trial) -> None:
    x = trial.suggest_float("x", -5, 5)
    state = trial.restore() or {"sum": 0.0}
    for epoch in trial.epochs(10):
        state["sum"] += 1.0
        assert state["sum"] == epoch, "continued where it was paused"
        trial.report((x - 1) ** 2 + 1 / epoch, epoch)
        if trial.should_stop():
            trial.checkpoint(sum=state["sum"])
            return


def pid(trial: Trial) -> float:
    time.sleep(0.05)
    (trial.dir / "pid").write_text(str(os.getpid()))
    return trial.suggest_float("x", 0, 1)


def killed(trial: Trial) -> float:
    if trial.number in (1, 4) and trial.attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return trial.suggest_float("x", 0, 1)


def states(study: Study) -> dict[str, int]:
    found = [it.state for it in study.trials]
    return {state: found.count(state) for state in set(found)}


def test_the_best_trial_is_found_and_stored(tmp_path: Path) -> None:
    study = surefoot.tune(quadratic, trials=30, runs=tmp_path)
    assert study.best_value is not None and study.best_value < 0.5
    assert abs(study.best_params["x"] - 2) < 1
    again = surefoot.load_study(tmp_path / "quadratic")
    assert again.best_trial == study.best_trial
    assert len(again.table()) == 30 and again.table()[0]["params_x"] == study.trials[0].params["x"]


def test_the_same_call_continues(tmp_path: Path) -> None:
    first = surefoot.tune(quadratic, trials=5, runs=tmp_path)
    second = surefoot.tune(quadratic, trials=8, runs=tmp_path)
    assert [it.params for it in second.trials[:5]] == [it.params for it in first.trials]
    whole = surefoot.tune(quadratic, trials=8, runs=tmp_path / "whole")
    assert [it.params for it in second.trials] == [it.params for it in whole.trials], "one worker is repeatable"


def test_a_space_can_be_declared(tmp_path: Path) -> None:
    space = {
        "kind": {"choice": ["a", "b"]},
        "units": {"log_int": [2, 64]},
        "momentum": {"uniform": [0, 0.9], "if": {"kind": "b"}},
    }

    def objective(trial: Trial) -> float:
        assert ("momentum" in trial.params) == (trial.params["kind"] == "b")
        return float(trial.params["units"])

    study = surefoot.tune(objective, space, trials=12, direction="maximize", runs=tmp_path)
    assert study.best_value is not None and study.best_value > 32
    assert states(study) == {"complete": 12}


def test_suggested_values_have_their_types(tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        assert trial.suggest_float("f", 0.0, 1.0, step=0.25) in (0.0, 0.25, 0.5, 0.75, 1.0)
        assert trial.suggest_int("i", 16, 64, step=16) in (16, 32, 48, 64)
        assert 1e-4 <= trial.suggest_float("log", 1e-4, 1.0, log=True) <= 1.0
        choice = trial.suggest_categorical("c", [None, True, 1, "x"])
        assert choice is None or choice is True or choice in (1, "x")
        assert trial.suggest_float("f", 0.0, 1.0, step=0.25) == trial.params["f"]
        return 0.0

    study = surefoot.tune(objective, trials=12, runs=tmp_path)
    assert states(study) == {"complete": 12}, study.trials[0].traceback
    assert {type(it.params["i"]) for it in study.trials} == {int}


def test_trials_pause_and_continue_from_their_checkpoints(tmp_path: Path) -> None:
    study = surefoot.tune(resumable, trials=6, runs=tmp_path, resume=True)
    assert states(study)["paused"] > 3 and len(study.trials) > 6
    assert "failed" not in states(study)
    assert study.best_value is not None and study.best_value < 2
    assert sum(it.epochs for it in study.trials) <= 61


def test_a_paused_trial_needs_a_known_length(tmp_path: Path) -> None:
    def objective(trial: Trial) -> None:
        trial.report(1.0, 1)

    with pytest.raises(RuntimeError, match=r"loop over trial.epochs\(N\), or pass epochs=N"):
        surefoot.tune(objective, trials=20, runs=tmp_path, resume=True)


def test_pruned_trials_have_a_reason(tmp_path: Path) -> None:
    def objective(trial: Trial) -> None:
        x = trial.suggest_float("x", 0, 1)
        for epoch in trial.epochs(20):
            trial.report(x + 1 / epoch, epoch)
            if trial.should_stop():
                return

    study = surefoot.tune(objective, trials=30, runs=tmp_path, sampler="random")
    pruned = [it for it in study.trials if it.state == "pruned"]
    assert len(pruned) > 5
    assert pruned[0].reason_id == "prospect" and pruned[0].reason.startswith("Pruned at epoch")
    assert pruned[0].epochs < 20


def test_an_exception_fails_the_trial_with_its_traceback(tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        if trial.number == 1:
            raise ValueError("out of\nmemory")
        return 1.0

    study = surefoot.tune(objective, trials=3, runs=tmp_path)
    assert states(study) == {"complete": 2, "failed": 1}
    failed = study.trial(1)
    assert failed.reason == "ValueError: out of"
    assert "in objective" in failed.traceback and "workers.py" not in failed.traceback


def test_a_search_whose_trials_all_fail_stops(tmp_path: Path) -> None:
    def objective(trial: Trial) -> float:
        raise KeyError("missing")

    with pytest.raises(RuntimeError, match="(?s)10 trials in a row failed; the last with:.*KeyError: 'missing'"):
        surefoot.tune(objective, trials=50, runs=tmp_path)


def test_a_trial_without_a_value_fails(tmp_path: Path) -> None:
    study = surefoot.tune(lambda trial: None, trials=1, runs=tmp_path, name="none")
    assert study.trial(0).reason == "the function returned no value and reported none"


def test_invalid_arguments_are_refused(tmp_path: Path) -> None:
    options: dict[str, Any] = {"trials": 1, "runs": tmp_path}
    with pytest.raises(ValueError, match="unknown sampler `tpo`; available: random"):
        surefoot.tune(quadratic, sampler="tpo", **options)
    with pytest.raises(ValueError, match="the direction is `minimize` or `maximize`, not `up`"):
        surefoot.tune(quadratic, direction="up", **options)
    with pytest.raises(ValueError, match="lower bound 2 is above upper bound 1"):
        surefoot.tune(quadratic, {"x": {"uniform": [2, 1]}}, **options)
    with pytest.raises(ValueError, match="pass `resume=True`"):
        surefoot.tune(quadratic, scheduler="asha", **options)
    with pytest.raises(ValueError, match="unknown key `protct`"):
        surefoot.tune(quadratic, protct=3, **options)
    with pytest.raises(TypeError, match="objective must be a function"):
        surefoot.tune(3, **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="seed: expected a string, number"):
        surefoot.tune(quadratic, seed=object(), **options)


def test_another_study_of_the_same_name_is_refused(tmp_path: Path) -> None:
    surefoot.tune(quadratic, trials=1, runs=tmp_path)
    with pytest.raises(ValueError, match="seed is 0, here 1"):
        surefoot.tune(quadratic, trials=1, runs=tmp_path, seed=1)


def test_enqueued_parameters_run_first_and_once(tmp_path: Path) -> None:
    for trials in (3, 5):
        study = surefoot.tune(quadratic, trials=trials, runs=tmp_path, enqueue=[{"x": 2.0}])
    assert study.best_trial is not None and study.best_trial.number == 0 and study.best_value == 0.0
    assert [it.params["x"] for it in study.trials].count(2.0) == 1
    study.enqueue({"x": 1})
    assert surefoot.tune(quadratic, trials=5, runs=tmp_path).trial(5).value == 1.0
    declared = surefoot.tune(quadratic, {"x": {"uniform": [-5, 5]}}, trials=1, runs=tmp_path, name="declared")
    assert declared.enqueue({"x": 3}) == 1
    with pytest.raises(ValueError, match="not a point of the space"):
        declared.enqueue({"y": 1.0})


def test_callbacks_see_each_trial_and_can_stop(tmp_path: Path) -> None:
    seen: list[int] = []

    def callback(study: Study, trial: surefoot.StudyTrial) -> None:
        seen.append(trial.number)
        if trial.number == 3:
            study.stop()

    study = surefoot.tune(quadratic, runs=tmp_path, callbacks=[callback])
    assert seen == [0, 1, 2, 3]
    assert states(study) == {"complete": 4}, "no trial is left behind"
    assert len(surefoot.tune(quadratic, runs=tmp_path, stop=lambda: True).trials) == 5


def test_the_time_is_limited(tmp_path: Path) -> None:
    begun = time.monotonic()
    study = surefoot.tune(quadratic, time=0.5, runs=tmp_path)
    assert 0.4 < time.monotonic() - begun < 10
    assert len(study.trials) > 3


def test_a_study_has_a_report_and_exports(tmp_path: Path) -> None:
    study = surefoot.tune(quadratic, trials=8, runs=tmp_path)
    assert "<html" in study.report(tmp_path / "study.html").read_text()
    assert "<iframe" in study._repr_html_()
    rows = study.export(tmp_path / "study.csv").read_text().splitlines()
    assert len(rows) == 9 and rows[0].startswith("number,state,value,x,")
    assert "8 complete, best" in repr(study)


def test_workers_are_processes_that_stay_alive(tmp_path: Path) -> None:
    study = surefoot.tune(pid, trials=12, workers=2, runs=tmp_path)
    assert states(study) == {"complete": 12}
    processes = {(it.dir / "pid").read_text() for it in study.trials if it.dir is not None}
    assert len(processes) == 2 and str(os.getpid()) not in processes


def test_workers_can_be_spawned(tmp_path: Path) -> None:
    study = surefoot.tune(quadratic, trials=4, workers=2, runs=tmp_path, start_method="spawn")
    assert states(study) == {"complete": 4}
    with pytest.raises(TypeError, match="must be a function of a module"):
        surefoot.tune(lambda trial: 1.0, name="it", workers=2, runs=tmp_path, start_method="spawn")


def test_forked_workers_compute_after_pytorch_has_used_several_threads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")

    def multiply(trial: Trial) -> float:
        matrix = torch.full((300, 300), trial.suggest_float("x", 0, 1))
        return float((matrix @ matrix).sum()) * 0 + torch.get_num_threads()

    threads = torch.get_num_threads()
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    try:
        torch.set_num_threads(4)
        torch.rand(2000, 2000) @ torch.rand(2000, 2000)
        study = surefoot.tune(multiply, trials=4, workers=2, runs=tmp_path, start_method="fork")
    finally:
        torch.set_num_threads(threads)
    assert [it.value for it in study.trials] == [1.0] * 4


def test_a_killed_worker_is_replaced_and_its_trial_continues(tmp_path: Path) -> None:
    study = surefoot.tune(killed, trials=8, workers=2, runs=tmp_path)
    assert states(study) == {"complete": 8}


def test_paused_trials_continue_in_other_processes(tmp_path: Path) -> None:
    study = surefoot.tune(resumable, trials=6, workers=2, runs=tmp_path, resume=True)
    assert "failed" not in states(study) and states(study)["paused"] > 3


def test_an_error_of_the_store_is_raised(tmp_path: Path) -> None:
    (tmp_path / "not.db").write_text("no database" * 1000)
    with pytest.raises((ValueError, RuntimeError), match=r"not\.db"):
        surefoot.tune(quadratic, trials=1, runs=tmp_path, store=tmp_path / "not.db")


SCRIPT = """
import sys, time
import surefoot

def objective(trial):
    trial.suggest_float("x", 0, 1)
    trial.restore()
    for epoch in trial.epochs(50):
        time.sleep(0.1)
        trial.report(1 / epoch, epoch)
        if trial.should_stop():
            trial.checkpoint()
            return

print("started", flush=True)
surefoot.tune(objective, runs=sys.argv[1], resume=sys.argv[2] == "resume", workers=int(sys.argv[3]))
"""


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("mode", ["resume", "restart"])
def test_an_interrupt_loses_nothing(tmp_path: Path, workers: int, mode: str) -> None:
    script = tmp_path / "search.py"
    script.write_text(textwrap.dedent(SCRIPT))
    command = [sys.executable, str(script), str(tmp_path), mode, str(workers)]
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parents[1])}

    def listen() -> None:
        # A background job of a shell ignores interrupts.
        signal.signal(signal.SIGINT, signal.default_int_handler)

    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment, preexec_fn=listen)
    store = tmp_path / "objective" / "study.db"
    try:
        end = time.monotonic() + 30
        while time.monotonic() < end:
            time.sleep(0.2)
            with contextlib.suppress(ValueError, RuntimeError):  # It is being created.
                if any(it.epochs > 2 for it in surefoot.load_study(store).trials):
                    break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode != 0
    assert "KeyboardInterrupt" in errors
    study = surefoot.load_study(store)
    assert set(states(study)) <= {"waiting", "paused", "complete"}, states(study)
    if mode == "resume":
        assert "stopping after this epoch" in errors
        stopped = [it for it in study.trials if it.state == "waiting"]
        assert stopped and all(it.dir is not None and (it.dir / "checkpoint").exists() for it in stopped)


def test_watch_in_a_trial_ends_it_at_a_certain_problem(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")

    def objective(trial: Trial) -> None:
        torch.manual_seed(0)
        rate = trial.suggest_categorical("rate", [0.01, 1e6])
        x = torch.rand(64, 4)
        model = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Linear(16, 1))
        optimizer = torch.optim.SGD(model.parameters(), lr=rate)
        with surefoot.watch(model, optimizer, epochs=4, steps_per_epoch=50) as run:
            for epoch in trial.epochs(4):
                for _ in range(50):
                    loss = (model(x) - x.sum(1, keepdim=True)).square().mean()
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    run.step(loss)
                trial.report(0.5, epoch)
                if trial.should_stop():
                    return

    study = surefoot.tune(objective, trials=8, runs=tmp_path, sampler="random")
    ended = {it.params["rate"]: it for it in study.trials}
    assert ended[0.01].state == "complete"
    assert ended[1e6].state == "pruned" and ended[1e6].reason_id in ("exploding_gradient", "non_finite_loss")
    assert ended[1e6].epochs == 0, "before the end of the epoch"
    healthy = ended[0.01].dir
    assert healthy is not None
    lines = (healthy / "reports.jsonl").read_text().splitlines()
    assert any('"layers"' in it and '"gradient"' in it for it in lines), "the indicators see the layers"
    assert any((it / "summary.json").exists() for it in healthy.iterdir() if it.is_dir()), "recorded with the trial"


def test_the_commands_read_a_study_of_a_function(tmp_path: Path) -> None:
    surefoot.tune(resumable, trials=6, runs=tmp_path, name="it", pruner="none", scheduler="none", resume=True)
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parents[1])}

    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "surefoot", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout + done.stderr

    run("report", "it", "-o", "it.html")
    run("export", "it", "-o", "it.csv")
    assert "prospect" in run("simulate", "it")
    assert "unknown sampler" not in run("simulate", "it")


def test_a_study_of_a_function_is_not_run_by_the_command_line(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text('[tune]\nfunction = "f"\ndirection = "minimize"\n')
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parents[1])}
    command = [sys.executable, "-m", "surefoot", "tune", "study.toml"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path)
    assert done.returncode == 2
    assert "the study calls the Python function `f`" in done.stderr
