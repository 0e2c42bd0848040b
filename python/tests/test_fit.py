"""Training with repair."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

import surefoot  # noqa: E402

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
