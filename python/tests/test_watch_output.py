"""Options of the watch, its advice, and the loggers that receive findings."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

import surefoot  # noqa: E402


@pytest.mark.parametrize(
    ("thresholds", "message"),
    [
        ({"thetta": 0.7}, "unknown key `thetta`; expected one of beta_1, "),
        ({"theta": "much"}, "`theta` must be a number"),
        ({"off": ["dying_rely"]}, "unknown problem `dying_rely` in `off`; known problems: .*dying_relu"),
    ],
)
def test_wrong_thresholds_raise_at_once(thresholds: dict[str, object], message: str) -> None:
    model = nn.Linear(2, 1)
    with pytest.raises(ValueError, match=message):
        surefoot.watch(model, torch.optim.SGD(model.parameters()), thresholds=thresholds)


def test_thresholds_may_switch_detectors_off() -> None:
    model = nn.Linear(2, 1)
    surefoot.watch(model, runs=None, thresholds={"theta": 0.7, "off": ["loss_spike", "dying_relu"]})


SCRIPT = """import torch
from torch import nn
import surefoot

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.rand(256, 2) * 2 - 1
y = (x.norm(dim=1) < 0.8).long()
model = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = {optimizer}
with surefoot.watch(model, optimizer, epochs=1, steps_per_epoch=200, runs=None) as run:
    for _ in range(200):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.step(loss)
"""


def run_script(tmp_path: Path, optimizer: str) -> str:
    script = tmp_path / "train.py"
    script.write_text(SCRIPT.format(optimizer=optimizer))
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    command = [sys.executable, str(script)]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_a_rate_that_is_too_low_is_changed_in_the_source(tmp_path: Path) -> None:
    shown = run_script(tmp_path, "torch.optim.SGD(model.parameters(), lr=1e-5)")
    assert "-optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)" in shown
    assert "+optimizer = torch.optim.SGD(model.parameters(), lr=0.01)" in shown


def test_a_rate_of_unknown_origin_is_named_with_its_line(tmp_path: Path) -> None:
    shown = run_script(tmp_path, "torch.optim.SGD(model.parameters(), lr=float('1e-5'))")
    assert "train.py:10: torch.optim.SGD(model.parameters(), lr=float('1e-5'))" in shown


def spoiled_training(**options: Any) -> Any:
    torch.manual_seed(0)
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", **options) as run:
        for step in range(30):
            loss = model(torch.ones(4, 2)).pow(2).mean() * (float("nan") if step == 20 else 1.0)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    return run


def test_active_runs_of_wandb_and_mlflow_receive_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    alerts: list[dict[str, str]] = []
    tags: dict[str, str] = {}
    wandb, mlflow = ModuleType("wandb"), ModuleType("mlflow")
    wandb.run = SimpleNamespace(alert=lambda **given: alerts.append(given))  # type: ignore[attr-defined]
    mlflow.active_run = lambda: SimpleNamespace()  # type: ignore[attr-defined]
    mlflow.set_tag = tags.__setitem__  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    spoiled_training()
    assert "surefoot: non_finite_loss" in [it["title"] for it in alerts]
    assert "The loss is NaN" in tags["surefoot.non_finite_loss"]


def test_loggers_without_an_active_run_receive_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    wandb, mlflow = ModuleType("wandb"), ModuleType("mlflow")
    wandb.run = None  # type: ignore[attr-defined]
    mlflow.active_run = lambda: None  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    assert [it.problem for it in spoiled_training().findings]


def test_a_logger_that_fails_does_not_end_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = ModuleType("mlflow")

    def active_run() -> None:
        raise OSError("no server")

    mlflow.active_run = active_run  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    with pytest.warns(RuntimeWarning, match="no server"):
        run = spoiled_training()
    assert run.session.steps == 30
