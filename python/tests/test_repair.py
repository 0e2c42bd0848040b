"""``surefoot.repair``: training loops of users."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
from torch import nn  # noqa: E402

import surefoot  # noqa: E402

torch.set_num_threads(1)


def circles() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(400, 2, generator=torch.Generator().manual_seed(1)) * 2 - 1
    return x, (x.norm(dim=1) < 0.8).long()


def deep(activation: Callable[[], nn.Module] = nn.Sigmoid, depth: int = 8) -> nn.Module:
    hidden = [part for _ in range(depth) for part in (nn.Linear(16, 16), activation())]
    return nn.Sequential(nn.Linear(2, 16), activation(), *hidden, nn.Linear(16, 2))


def loop(
    make_model: Callable[[], nn.Module] = deep,
    rate: float = 0.1,
    epochs: int = 15,
    inside: Callable[[surefoot.torch.loop.Setup, int], None] | None = None,
) -> Callable[[Any], None]:
    x, y = circles()

    def train(setup: Any) -> None:
        model = setup.model(make_model)
        optimizer = setup.optimizer(lambda parameters: torch.optim.SGD(parameters, lr=rate))
        loss_fn = setup.loss(nn.CrossEntropyLoss())
        loader = setup.loader((x[:300], y[:300]), batch_size=16, shuffle=True)
        for epoch in setup.epochs(epochs):
            for inputs, targets in loader:
                loss = loss_fn(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                setup.step(loss)
            with torch.no_grad():
                output = model(x[300:])
                accuracy = (output.argmax(1) == y[300:]).float().mean()
                setup.evaluation(loss_fn(output, y[300:]), accuracy=accuracy, samples=100)
            if inside is not None:
                inside(setup, epoch)

    return train


def test_a_loop_is_repaired() -> None:
    x, y = circles()
    result = surefoot.repair(loop(), runs=None, quiet=True)
    assert result.status == "repaired"
    assert result.before is not None and result.after is not None
    assert result.after > result.before + 0.2
    assert [attempt.state for attempt in result.ledger].count("repaired") == 1
    with torch.no_grad():
        accuracy = (result.model(x[300:]).argmax(1) == y[300:]).float().mean()
    assert result.after == pytest.approx(float(accuracy), abs=1e-6)
    assert threading.active_count() == 1


def test_a_healthy_loop_is_left_alone() -> None:
    calls = []
    train = loop(lambda: deep(nn.ReLU, 1), epochs=30)
    result = surefoot.repair(lambda setup: calls.append(train(setup)), runs=None, quiet=True)
    assert (result.status, result.ledger, len(calls)) == ("normal", [], 1)


def test_the_same_seed_gives_the_same_model() -> None:
    first, second = (surefoot.repair(loop(), runs=None, quiet=True) for _ in range(2))
    pairs = zip(first.model.state_dict().values(), second.model.state_dict().values(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_generators_outside_are_left_alone() -> None:
    torch.manual_seed(5)
    surefoot.repair(loop(epochs=2), runs=None, quiet=True)
    drawn = torch.rand(1)
    torch.manual_seed(5)
    assert torch.equal(drawn, torch.rand(1))


def test_an_error_of_the_loop_is_raised() -> None:
    def fail(setup: Any, epoch: int) -> None:
        raise ZeroDivisionError("of the user")

    with pytest.raises(ZeroDivisionError, match="of the user"):
        surefoot.repair(loop(inside=fail), runs=None, quiet=True)
    assert threading.active_count() == 1


def test_an_attempt_that_fails_does_not_end_the_repair() -> None:
    def fail(setup: Any, epoch: int) -> None:
        if setup._contestant.number == 1:
            raise ZeroDivisionError

    result = surefoot.repair(loop(inside=fail), runs=None, quiet=True)
    assert result.ledger[0].metric is None and result.ledger[0].state != "repaired"
    assert result.ledger[0].error == "ZeroDivisionError: "
    assert result.after is not None and result.before is not None and result.after >= result.before


def test_an_attempt_that_fails_at_its_first_step_does_not_end_the_repair() -> None:
    class Picky(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = deep()

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            if self.training and any(isinstance(it, nn.SELU) for it in self.modules()):
                raise RuntimeError("no SELU")
            return self.inner(x)

    result = surefoot.repair(loop(Picky), runs=None, quiet=True)
    assert result.status == "repaired"
    assert all(attempt.state != "repaired" for attempt in result.ledger if attempt.error)


def test_ctrl_c_ends_the_loop_and_its_thread() -> None:
    def interrupt(setup: Any, epoch: int) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        surefoot.repair(loop(inside=interrupt), runs=None, quiet=True)
    assert threading.active_count() == 1


def test_a_loop_without_a_metric_is_repaired_by_its_loss() -> None:
    x, y = circles()

    def train(setup: Any) -> None:
        model = setup.model(deep())
        optimizer = setup.optimizer(torch.optim.SGD(model.parameters(), lr=0.1))
        for _ in setup.epochs(20, steps=19):
            for chosen in torch.randperm(300).split(16):
                loss = nn.functional.cross_entropy(model(x[chosen]), y[chosen])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                setup.step(loss)

    result = surefoot.repair(train, runs=None, quiet=True)
    assert result.status == "repaired" and result.after is None
    assert "batch_size" not in {remedy for attempt in result.ledger for remedy in attempt.remedies}


def test_inputs_that_the_loop_reshapes_are_known() -> None:
    x = torch.randn(400, 1, 4, 4, generator=torch.Generator().manual_seed(2)) * 1000 + 5000
    y = (x.mean((1, 2, 3)) > 5000).long()

    def train(setup: Any) -> None:
        model = setup.model(nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 2)))
        optimizer = setup.optimizer(torch.optim.SGD(model.parameters(), lr=0.05))
        loss_fn = setup.loss(nn.CrossEntropyLoss())
        loader = setup.loader(torch.utils.data.TensorDataset(x[:300], y[:300]), batch_size=16, shuffle=True)
        for _ in setup.epochs(10):
            for inputs, targets in loader:
                loss = loss_fn(model(inputs.view(len(inputs), -1)), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                setup.step(loss)
            with torch.no_grad():
                output = model(x[300:].flatten(1))
                accuracy = (output.argmax(1) == y[300:]).float().mean()
                setup.evaluation(loss_fn(output, y[300:]), accuracy=accuracy, samples=100)

    result = surefoot.repair(train, runs=None, quiet=True)
    assert result.status == "repaired" and "normalize_data" in result.remedies
    assert result.after is not None and result.after > 0.9


@pytest.mark.parametrize(
    ("train", "message"),
    [
        (lambda setup: None, "without a loop over setup.epochs"),
        (lambda setup: setup.optimizer(torch.optim.Adam), "setup.model"),
        (lambda setup: setup.model("resnet"), "torch.nn.Module"),
        (lambda setup: next(setup.epochs(3)), "setup.loader"),
        (lambda setup: setup.step(1.0), "setup.epochs"),
    ],
)
def test_a_part_that_is_missing_is_named(train: Callable[[Any], None], message: str) -> None:
    with pytest.raises((RuntimeError, TypeError), match=message):
        surefoot.repair(train, runs=None, quiet=True)


def test_train_must_take_the_setup() -> None:
    with pytest.raises(TypeError, match="one argument"):
        surefoot.repair(lambda: None)  # type: ignore[arg-type, misc]
