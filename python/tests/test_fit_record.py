"""Records of training with repair, and models loaded from them."""

from __future__ import annotations

import gc
import json
import weakref
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from test_fit import circles, fit, mlp  # noqa: E402
from torch import nn  # noqa: E402

import surefoot  # noqa: E402
from surefoot import _core  # noqa: E402


def events(run: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (run / "events.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> surefoot.Result:
    return fit(lambda: mlp(8, nn.Sigmoid), runs=tmp_path_factory.mktemp("runs"))


def test_the_run_of_a_repair_has_the_layout_of_a_native_one(repaired: surefoot.Result) -> None:
    assert repaired.run is not None
    names = {path.name for path in repaired.run.iterdir()}
    assert {"program.json", "program.final.json", "model.safetensors", "summary.json", "attempts"} <= names
    summary = json.loads((repaired.run / "summary.json").read_text())
    assert summary["status"] == "repaired" and summary["remedies"] == repaired.remedies
    assert (summary["steps"], summary["metric"]["after"]) == (repaired.steps, repaired.after)
    assert "vanishing_gradient" in summary["problems"] and int(summary["digest"], 16)
    attempts = sorted(path.name for path in (repaired.run / "attempts").iterdir())
    assert attempts == [f"attempt-{it.number:03}" for it in repaired.ledger]


def test_the_ledger_is_in_the_events_and_the_report(repaired: surefoot.Result) -> None:
    assert repaired.run is not None
    recorded = events(repaired.run)
    tried = [it for it in recorded if it["event"] == "attempt"]
    assert [it["number"] for it in tried] == [it.number for it in repaired.ledger]
    ended = {it["number"]: it["state"] for it in recorded if it["event"] == "outcome"}
    assert ended == {it.number: it.state for it in repaired.ledger}
    delivered = next(it for it in recorded if it["event"] == "delivered")
    assert delivered["metric"] == repaired.after and recorded[-1]["event"] == "finished"
    page = _core.report(repaired.run)
    assert all(it.change.split(" and ")[0] in page for it in repaired.ledger)


def test_a_normal_run_names_its_last_and_its_best_metric(tmp_path: Path) -> None:
    result = fit(lambda: mlp(1, nn.ReLU), epochs=12, runs=tmp_path)
    assert result.run is not None
    summary = json.loads((result.run / "summary.json").read_text())
    metrics = [it["metric"] for it in events(result.run) if it["event"] == "evaluation"]
    assert summary["metric"] == {"name": "accuracy", "before": metrics[-1], "after": max(metrics)}
    assert summary["status"] == "normal"


def test_a_repaired_model_is_loaded(repaired: surefoot.Result) -> None:
    x, _ = circles()
    assert repaired.run is not None
    model = surefoot.load(repaired.run, lambda: mlp(8, nn.Sigmoid))
    with torch.no_grad():
        assert torch.allclose(model(x), repaired.model(x), atol=1e-5, rtol=0)


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_a_model_with_standardized_inputs_is_loaded(tmp_path: Path, scale: float) -> None:
    x, y = circles()
    x = x * scale + 5 * scale

    def make_model() -> nn.Module:
        return mlp(1, nn.ReLU)

    def make_optimizer(parameters: object) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.1)  # type: ignore[arg-type]

    result = surefoot.fit(
        make_model, make_optimizer, nn.CrossEntropyLoss(), (x[:300], y[:300]), (x[300:], y[300:]),
        epochs=15, batch_size=16, runs=tmp_path, quiet=True,
    )  # fmt: skip
    assert result.run is not None
    assert scale == 1.0 or "normalize_data" in result.remedies
    model = surefoot.load(result.run, make_model)
    with torch.no_grad():
        assert torch.allclose(model(x), result.model(x), atol=1e-5, rtol=0)


def test_a_native_run_is_loaded(tmp_path: Path) -> None:
    plan = Path(__file__).parents[2] / "examples" / "circles.toml"
    arguments = ["train", str(plan), "--runs", str(tmp_path), "--set", "training.epochs=2", "--quiet"]
    assert _core.command(arguments, []) in (0, 1)
    (run,) = tmp_path.iterdir()
    model = surefoot.load(run)
    samples = torch.rand(20, 2) * 2 - 1
    rows = tmp_path / "samples.csv"
    names = [name for name, _ in model.forward.__globals__["COLUMNS"]]
    lines = [",".join(names)] + [",".join(f"{value:.9g}" for value in row.tolist()) for row in samples]
    rows.write_text("\n".join(lines) + "\n")
    predictions = tmp_path / "predictions.csv"
    assert _core.command(["predict", str(run), str(rows), "-o", str(predictions)], []) == 0
    shares = [float(line.split(",")[-1]) for line in predictions.read_text().splitlines()[1:]]
    with torch.no_grad():
        output = model(samples).reshape(-1)
    assert torch.allclose(output, torch.tensor(shares), atol=1e-5, rtol=0)


@pytest.mark.parametrize(
    ("arrange", "message"),
    [
        (lambda run: run / "none", "no header.json"),
        (lambda run: run, "surefoot.load\\(run, make_model\\)"),
        (lambda run: (run / "model.safetensors").rename(run / "other") and run, "no delivered model"),
    ],
)
def test_a_run_that_cannot_be_loaded_is_an_error(tmp_path: Path, arrange: object, message: str) -> None:
    result = fit(lambda: mlp(1, nn.ReLU), epochs=1, runs=tmp_path)
    with pytest.raises(ValueError, match=message):
        surefoot.load(arrange(result.run))  # type: ignore[operator]


def test_another_model_is_an_error(tmp_path: Path) -> None:
    result = fit(lambda: mlp(1, nn.ReLU), epochs=1, runs=tmp_path)
    assert result.run is not None
    with pytest.raises(ValueError, match="another model"):
        surefoot.load(result.run, lambda: mlp(2, nn.ReLU))


def test_models_of_closed_attempts_are_freed() -> None:
    made: list[weakref.ref[nn.Module]] = []

    def make_model() -> nn.Module:
        model = mlp(8, nn.Sigmoid)
        made.append(weakref.ref(model))
        return model

    result = fit(make_model, forbid=["activation"])
    gc.collect()
    alive = [it for it in made if it() is not None]
    assert len(result.ledger) > 2
    assert [it() for it in alive] == [result.model]


def test_ctrl_c_while_a_change_is_applied_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.torch.actions import Subject

    def interrupt(self: Subject, action: object) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr(Subject, "apply", interrupt)
    with pytest.raises(KeyboardInterrupt):
        fit(lambda: mlp(8, nn.Sigmoid))


def test_a_record_that_cannot_be_written_does_not_end_the_training(tmp_path: Path) -> None:
    def make_model() -> nn.Module:
        # The record is complete up to the model, whose file is a directory.
        for run in tmp_path.iterdir():
            (run / "model.safetensors").mkdir(exist_ok=True)
        return mlp(8, nn.Sigmoid)

    with pytest.warns(RuntimeWarning, match="is incomplete"):
        result = fit(make_model, runs=tmp_path)
    assert result.status == "repaired"
