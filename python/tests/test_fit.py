"""Training with repair."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

import surefoot  # noqa: E402
from surefoot import _core  # noqa: E402

torch.set_num_threads(1)


def circles(count: int = 400) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.rand(count, 2, generator=generator) * 2 - 1
    return x, (x.norm(dim=1) < 0.8).long()


def mlp(depth: int, activation: Callable[[], nn.Module]) -> nn.Module:
    hidden = [part for _ in range(depth) for part in (nn.Linear(16, 16), activation())]
    return nn.Sequential(nn.Linear(2, 16), activation(), *hidden, nn.Linear(16, 2))


def fit(make_model: Callable[[], nn.Module], rate: float = 0.1, **options: object) -> surefoot.Result:
    x, y = circles()
    settings: dict[str, object] = {"epochs": 15, "batch_size": 16, "runs": None, "quiet": True, **options}
    return surefoot.fit(
        make_model,
        lambda parameters: torch.optim.SGD(parameters, lr=rate),
        nn.CrossEntropyLoss(),
        (x[:300], y[:300]),
        (x[300:], y[300:]),
        **settings,  # type: ignore[arg-type]
    )


def test_a_deep_sigmoid_network_is_repaired() -> None:
    result = fit(lambda: mlp(8, nn.Sigmoid))
    assert result.status == "repaired"
    assert result.before is not None and result.after is not None
    assert result.after > result.before + 0.2
    assert result.remedies and result.changes
    assert [attempt.state for attempt in result.ledger].count("repaired") == 1


def test_a_healthy_network_is_left_alone() -> None:
    result = fit(lambda: mlp(1, nn.ReLU), epochs=30)
    assert (result.status, result.remedies, result.ledger) == ("normal", [], [])
    assert result.after is not None and result.after > 0.85


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = (fit(lambda: mlp(8, nn.Sigmoid)) for _ in range(2))
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_fit_leaves_the_generators_alone() -> None:
    torch.manual_seed(5)
    fit(lambda: mlp(1, nn.ReLU), epochs=2)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))


def test_without_repair_the_problem_is_reported() -> None:
    result = fit(lambda: mlp(8, nn.Sigmoid), repair=False)
    assert (result.status, result.ledger) == ("problem", [])
    assert any(finding.severity == "problem" for finding in result.findings)


def test_a_forbidden_remedy_is_not_tried() -> None:
    result = fit(lambda: mlp(8, nn.Sigmoid), forbid=["activation"])
    assert all("activation" not in attempt.remedies for attempt in result.ledger)


def test_the_delivered_model_scores_as_reported() -> None:
    x, y = circles()
    result = fit(lambda: mlp(8, nn.Sigmoid))
    with torch.no_grad():
        accuracy = (result.model(x[300:]).argmax(1) == y[300:]).float().mean()
    assert result.after == pytest.approx(float(accuracy), abs=1e-6)


def test_data_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(TypeError, match="train must be a pair of tensors or arrays"):
        surefoot.fit(lambda: mlp(1, nn.ReLU), torch.optim.Adam, nn.CrossEntropyLoss(), "data.csv", epochs=1)


def arrays() -> tuple[object, object]:
    x, y = circles()
    return x.double().numpy(), y.numpy()


def test_a_model_an_optimizer_and_arrays_are_taken_as_they_are() -> None:
    x, y = arrays()
    model = mlp(8, nn.Sigmoid)
    given = {name: value.clone() for name, value in model.state_dict().items()}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    options = {"epochs": 15, "batch_size": 16, "runs": None, "quiet": True}
    result = surefoot.fit(model, optimizer, nn.CrossEntropyLoss(), (x, y), **options)  # type: ignore[arg-type]
    assert result.status == "repaired" and result.model is not model
    assert all(torch.equal(given[name], value) for name, value in model.state_dict().items())


def test_too_few_outputs_are_repaired() -> None:
    x, y = circles()

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1))

    options = {"epochs": 30, "batch_size": 16, "runs": None, "quiet": True}
    result = surefoot.fit(
        make_model, lambda p: torch.optim.Adam(p, lr=0.01), nn.CrossEntropyLoss(), (x, y), **options  # type: ignore[arg-type]
    )
    assert (result.status, result.before, result.remedies[0]) == ("repaired", None, "output_units")
    assert result.findings[0].problem == "improper_output_units"
    assert result.model(x).shape == (400, 2)


def test_inputs_of_nan_are_a_problem_where_the_loss_raises_an_error() -> None:
    x, y = circles()
    x = x.clone()
    x[::50, 0] = float("nan")

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())

    options = {"epochs": 20, "batch_size": 16, "runs": None, "quiet": True}
    result = surefoot.fit(
        make_model, lambda p: torch.optim.Adam(p, lr=0.01), nn.BCELoss(), (x, y.float().unsqueeze(1)), **options  # type: ignore[arg-type]
    )
    assert result.status == "repaired" and "normalize_data" in result.remedies


def test_several_labels_are_a_task_of_their_own() -> None:
    x, _ = circles()
    labels = torch.stack([x[:, 0] > 0, x[:, 1] > 0, x.sum(1) > 0.5], 1).float()

    def make_model() -> nn.Module:
        return nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 3), nn.Softmax(-1))

    options = {"epochs": 20, "batch_size": 16, "runs": None, "quiet": True}
    result = surefoot.fit(
        make_model, lambda p: torch.optim.Adam(p, lr=0.01), nn.BCELoss(), (x, labels), **options  # type: ignore[arg-type]
    )
    assert result.status == "repaired" and result.after is not None and result.after > 0.95
    assert "improper_output_activation" in {finding.problem for finding in result.findings}


def test_a_dismissed_problem_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_core, "repair", lambda *args, **options: ("normal", None))
    result = fit(lambda: mlp(8, nn.Sigmoid))
    assert result.status == "normal" and result.findings
    assert all(finding.severity == "warning" for finding in result.findings)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"make_model": "resnet18"}, TypeError, "make_model must be a model or a function"),
        ({"make_model": lambda: "resnet18"}, TypeError, "make_model must return a torch.nn.Module"),
        ({"make_optimizer": "adam"}, TypeError, "make_optimizer must be a function"),
        ({"make_optimizer": torch.optim.SGD(mlp(1, nn.ReLU).parameters(), lr=0.1)}, TypeError, "belongs to one model"),
        ({"loss_fn": nn.CrossEntropyLoss}, TypeError, r"pass an object of it: CrossEntropyLoss\(\)"),
        ({"loss_fn": nn.MSELoss()}, ValueError, r"loss_fn cannot be called with outputs \(float32 of shape \(32, 2\)\)"),
        ({"loss_fn": lambda output, y: output.argmax(1).float().mean()}, ValueError, "does not depend on parameters"),
        ({"train": (torch.rand(8, 2).double(), torch.zeros(8).long())}, ValueError, "float64"),
        ({"train": (torch.rand(8, 3), torch.zeros(8).long())}, ValueError, "the model cannot be called"),
        ({"train": (torch.rand(8, 2), torch.zeros(7).long())}, ValueError, "same number of samples"),
        ({"validation": "test.csv"}, TypeError, "validation must be"),
        ({"epochs": 0}, ValueError, "epochs must be at least 1"),
        ({"epochs": "10"}, TypeError, "epochs must be a whole number"),
        ({"batch_size": 1.5}, TypeError, "batch_size must be a whole number"),
        ({"forbid": ["optimiser"]}, ValueError, "unknown remedy 'optimiser'; available: .*activation"),
        ({"metric": 0.9}, TypeError, "metric must be a function"),
    ],
)
def test_a_wrong_argument_is_named(changes: dict[str, object], error: type[Exception], message: str) -> None:
    x, y = circles()
    options: dict[str, object] = {
        "make_model": lambda: mlp(1, nn.ReLU), "make_optimizer": torch.optim.Adam, "loss_fn": nn.CrossEntropyLoss(),
        "train": (x, y), "epochs": 1, "runs": None, "quiet": True,
    }  # fmt: skip
    with pytest.raises(error, match=message):
        surefoot.fit(**{**options, **changes})  # type: ignore[arg-type]


def test_the_diff_names_weights_that_are_initialized_anew() -> None:
    result = surefoot.Result(
        model=None, status="repaired", findings=[], metric_name="accuracy", before=0.5, after=0.9, steps=1,
        source_diff="--- a\n+++ a\n", unwritten=["the weights of 0 are re-initialized (LeCun normal, biases 0)."],
    )  # fmt: skip
    assert result.diff().endswith("# Not in the diff: the weights of 0 are re-initialized (LeCun normal, biases 0).\n")
