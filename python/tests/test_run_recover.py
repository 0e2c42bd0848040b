"""Recovery from bad steps: skipped, then a lower learning rate, then an earlier state; replayable and resumable."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from test_run_keys import digests, summary, surefoot

pytest.importorskip("torch", reason="PyTorch is not installed")

# The loss of some batches is NaN or huge.
SCRIPT = '''
import os, signal
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(400, 4, generator=torch.Generator().manual_seed(1))
model = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
step = 0
for epoch in range(2):
    for (batch,) in DataLoader(TensorDataset(x), batch_size=10, shuffle=True):
        step += 1
        if step == int(os.environ.get("KILL", 0)):
            os.kill(os.getpid(), signal.SIGKILL)
        bad = BAD
        loss = (model(batch * bad) - batch[:, :1]).square().mean() * bad
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(all(t.isfinite().all() for t in model.state_dict().values()), optimizer.param_groups[0]["lr"])
'''


def actions(folder: Path, number: int) -> list[tuple[int, str]]:
    events: list[Any] = []
    for line in (folder / f"runs/train-{number:03}/events.jsonl").read_text().splitlines():
        events.append(json.loads(line))
    found = [event for event in events if event["event"] == "finding"]
    return [(event["step"], event["message"].partition("; ")[2]) for event in found]


def test_a_bad_step_is_skipped_and_recorded_and_a_replay_agrees(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("BAD", "float('nan') if step == 20 else 1e6 if step == 40 else 1.0"))
    done = surefoot(tmp_path, "run", "--recover", "train.py")
    assert done.stdout == "True 0.01\n", done.stderr
    assert actions(tmp_path, 1) == [(20, "the step was skipped."), (40, "the step was skipped.")]
    assert "step 20: the loss is NaN; the step was skipped" in done.stderr
    replayed = surefoot(tmp_path, "replay", "runs/train-001")
    assert replayed.returncode == 0, replayed.stdout + replayed.stderr
    page = surefoot(tmp_path, "report", "runs/train-001", "-o", "run.html")
    assert page.returncode == 0 and "The loss is NaN; the step was skipped." in (tmp_path / "run.html").read_text()


def test_a_run_that_ends_with_a_nan_loss_names_what_helps(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("BAD", "float('nan') if step == 20 else 1.0"))
    done = surefoot(tmp_path, "run", "train.py")
    hint = (
        "the loss has been NaN or infinite since step 20; see: surefoot diagnose runs/train-001; "
        "or run the script with --recover"
    )
    assert done.returncode == 0 and hint in done.stderr, done.stderr
    found = surefoot(tmp_path, "diagnose", "runs/train-001")
    assert found.returncode == 1 and "NaN" in found.stdout, found.stdout + found.stderr


def watched(bad: Any, **options: Any) -> tuple[Any, Any, Any]:
    import surefoot
    import torch

    torch.manual_seed(0)
    x = torch.randn(64, 4)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    with surefoot.watch(model, optimizer, recover=True, runs=None, **options) as run:
        for step in range(100):
            loss = (model(x * bad(step)) - x[:, :1]).square().mean() * bad(step)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    return run, model, optimizer


def test_watch_skips_bad_steps_before_anything_is_raised() -> None:
    bad = {0: float("nan"), 40: 1e9}
    run, model, optimizer = watched(lambda step: bad.get(step, 1.0), on_finding="raise")
    assert [finding.problem for finding in run.findings] == ["bad_step"] * 2
    assert [finding.severity for finding in run.findings] == ["warning"] * 2
    assert "The gradient norm is NaN; the step was skipped." in run.findings[0].message
    assert "times the largest recent one; the step was skipped." in run.findings[1].message
    assert run.session.steps == 98 and optimizer.param_groups[0]["lr"] == 1e-2
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())


def test_watch_reduces_the_rate_returns_to_a_good_state_and_ends(caplog: pytest.LogCaptureFixture) -> None:
    run, model, optimizer = watched(lambda step: float("nan") if step >= 60 else 1.0)
    actions = [finding.message.partition("; ")[2] for finding in run.findings]
    first_words = [text.partition(" ")[0] for text in actions]
    assert first_words == ["the", "the", "skipped,"] * 2 + ["the", "the", "returned"] * 2 + ["the", "the", "no"]
    assert actions[8] == "returned to the state of 10 good steps ago."
    assert optimizer.param_groups[0]["lr"] == 0.0025
    assert all(tensor.isfinite().all() for tensor in model.state_dict().values())
    assert "bad step at step 60" in caplog.text
    with pytest.raises(ValueError, match="recover=True needs the optimizer"):
        import surefoot

        surefoot.watch(model, recover=True)


def test_actions_come_in_order_are_bounded_and_survive_a_kill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.py").write_text(SCRIPT.replace("BAD", "float('nan') if 30 <= step < 60 else 1.0"))
    done = surefoot(tmp_path, "run", "--recover", "--every", "3", "train.py")
    assert done.stdout == "True 0.0025\n", done.stderr
    found = actions(tmp_path, 1)
    kinds = [text.rstrip(".") for _, text in found]
    assert kinds[2].startswith("skipped, and the learning rate was reduced to 0.005")
    assert kinds[5].startswith("skipped, and the learning rate was reduced to 0.0025")
    assert kinds[8] == kinds[11] == "returned to the state of 29 good steps ago"
    assert kinds[14].startswith("no action is left") and len(kinds) == 15
    monkeypatch.setenv("KILL", "38")
    assert surefoot(tmp_path, "run", "--recover", "--every", "3", "train.py").returncode == -9
    monkeypatch.delenv("KILL")
    resumed = surefoot(tmp_path, "run", "--resume", "runs/train-002")
    assert resumed.returncode == 0, resumed.stderr
    assert digests(tmp_path, 1) == digests(tmp_path, 2)
    assert summary(tmp_path, 1)["digest"] == summary(tmp_path, 2)["digest"]
