"""The watch of PyTorch loops."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any, Callable

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import surefoot  # noqa: E402

torch.set_num_threads(1)

STEPS = 120


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def data() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.rand(64, 2) * 2 - 1
    return x, (x.norm(dim=1) < 0.8).float().unsqueeze(1)


def mlp(activation: type[nn.Module] = nn.ReLU, depth: int = 1, width: int = 16) -> nn.Sequential:
    layers: list[nn.Module] = [nn.Linear(2, width), activation()]
    for _ in range(depth):
        layers += [nn.Linear(width, width), activation()]
    return nn.Sequential(*layers, nn.Linear(width, 1))


def adam(model: nn.Module, lr: float = 0.01) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters(), lr=lr)


def train(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    steps: int = STEPS,
    before: Callable[[int], None] = lambda _: None,
    clip: float | None = None,
    **options: Any,
) -> Any:
    x, y = data()
    options = {"runs": None, "on_finding": "ignore", "epochs": 1, "steps_per_epoch": steps, **options}
    with surefoot.watch(model, optimizer, **options) as run:
        for step in range(1, steps + 1):
            before(step)
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if clip is not None:
                nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            run.step(loss)
    return run


def problems(run: Any) -> list[str]:
    return [it.problem for it in run.findings if it.severity == "problem"]


def hooks(model: nn.Module, optimizer: torch.optim.Optimizer | None = None) -> int:
    """Number of hooks on a model, its parameters and its optimizer."""
    count = 0
    for module in model.modules():
        count += len(module._forward_hooks) + len(module._forward_pre_hooks)
    for parameter in model.parameters():
        count += len(parameter._post_accumulate_grad_hooks or {}) + len(parameter._backward_hooks or {})
    if optimizer is not None:
        count += len(optimizer._optimizer_step_pre_hooks) + len(optimizer._optimizer_step_post_hooks)
    return count


def sigmoids() -> nn.Sequential:
    return mlp(nn.Sigmoid, depth=8, width=8)


def test_a_healthy_loop_has_no_problem() -> None:
    model = mlp()
    run = train(model, adam(model))
    assert problems(run) == []
    assert run.session.steps == STEPS


@pytest.mark.parametrize("length", [{}, {"epochs": None, "steps_per_epoch": None}])
def test_a_learning_rate_that_is_far_too_high_is_named(length: dict[str, Any]) -> None:
    torch.manual_seed(0)
    model = mlp(depth=1, width=64)
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0, momentum=0.9)
    run = train(model, optimizer, 300, every=1, **length)
    named = [it for it in run.findings if "learning rate" in it.message and "too high" in it.message]
    assert named and problems(run), run.findings
    assert "lr=" in named[0].advice and "instead of 50" in named[0].advice or "+" in named[0].advice, named[0].advice
    consequences = {"unchanged_weights", "output_drift"}
    assert not consequences & {it.problem for it in run.findings}


@pytest.mark.parametrize("length", [{}, {"epochs": None, "steps_per_epoch": None}])
def test_a_learning_rate_that_is_too_high_is_found_although_the_loss_recovers(length: dict[str, Any]) -> None:
    torch.manual_seed(0)
    x = torch.randn(1000, 20)
    y = (x @ torch.randn(20, 3)).argmax(1)
    model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 3))
    optimizer = adam(model, lr=0.5)
    options = {"epochs": 15, "steps_per_epoch": 32, **length}
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", every=1, **options) as run:
        for step in range(480):
            part = slice(step % 31 * 32, step % 31 * 32 + 32)
            loss = F.cross_entropy(model(x[part]), y[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    assert problems(run), run.findings


def test_outputs_and_targets_of_different_shapes_are_a_problem() -> None:
    model = mlp()
    x, y = data()
    optimizer = adam(model)
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore") as run:
        with pytest.warns(UserWarning, match="broadcasting"):
            loss = F.mse_loss(model(x), y.squeeze(1))
        loss.backward()
        optimizer.step()
        run.step(loss)
    (finding,) = run.findings
    assert (finding.problem, finding.severity, finding.confidence) == ("mismatched_shapes", "problem", "certain")
    assert "[64, 1]" in finding.message and "[64]" in finding.message and "unsqueeze" in finding.advice


def test_weights_that_another_model_trains_are_a_problem_and_no_uncleared_gradients() -> None:
    run = train(mlp(), adam(mlp()), every=1)
    assert problems(run) == ["unchanged_weights"], run.findings
    (finding,) = [it for it in run.findings if it.problem == "unchanged_weights"]
    assert "not in the optimizer" in finding.message
    assert "uncleared_gradients" not in [it.problem for it in run.findings]


def test_layers_before_a_detached_output_are_named_with_the_cause() -> None:
    class Detached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.body, self.head = nn.Linear(2, 16), nn.Linear(16, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.head(F.relu(self.body(x)).detach())

    model = Detached()
    run = train(model, adam(model), every=1)
    (finding,) = [it for it in run.findings if it.problem == "unchanged_weights"]
    assert finding.severity == "warning"
    assert "`body`" in finding.message and "detach()" in finding.message


@pytest.mark.parametrize("lengths, is_found", [([12, 17, 9, 23, 31], False), ([12], True)])
def test_losses_over_episodes_of_different_lengths_are_not_compared(lengths: list[int], is_found: bool) -> None:
    """The loss grows a hundredfold, as the return of a policy does, or diverges in a loop of equal steps."""
    torch.manual_seed(0)
    model = mlp()
    optimizer = adam(model, lr=1e-4)
    x, y = data()
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", every=1) as run:
        for step in range(200):
            losses = [F.mse_loss(model(x[i % 64]), y[i % 64]) for i in range(lengths[step % len(lengths)])]
            loss = (1 + step) * torch.stack(losses).sum()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    assert ("diverging_loss" in problems(run)) == is_found, run.findings


def test_a_loop_without_a_with_block_is_watched_from_its_second_step() -> None:
    torch.manual_seed(0)
    model = mlp(nn.Sigmoid, depth=8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()
    run = surefoot.watch(model, optimizer, epochs=1, steps_per_epoch=STEPS, runs=None, on_finding="ignore")
    for _ in range(STEPS):
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.step(loss)
    run.finish()
    assert "vanishing_gradient" in problems(run)
    assert hooks(model, optimizer) == 0


def test_a_vanishing_gradient_is_found_with_its_layers() -> None:
    model = sigmoids()
    run = train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=300)
    finding = next(it for it in run.findings if it.problem == "vanishing_gradient")
    assert "0" in finding.layers
    assert finding.advice


class Root(nn.Module):
    """Has NaN in its output when an input is negative."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sqrt()


def test_nan_names_the_first_layer_and_saves_the_batch(tmp_path: Path) -> None:
    numpy = pytest.importorskip("numpy")
    model = nn.Sequential(nn.Linear(2, 8), Root(), nn.Linear(8, 8), nn.Linear(8, 1))
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)

    def spoil(step: int) -> None:
        if step == 30:
            with torch.no_grad():
                model[0].bias.fill_(-5.0)

    run = train(model, adam(model, 1e-4), steps=40, before=spoil, runs=tmp_path)
    finding = next(it for it in run.findings if it.problem == "non_finite_loss")
    assert finding.layers == ["1"]
    assert "layer `1`" in finding.message
    (file,) = run.directory.glob("batch-*.npz")
    assert file.name in finding.message
    assert numpy.load(file)["input0"].shape == (64, 2)


def test_nan_at_a_step_that_is_not_observed_names_the_first_layer() -> None:
    model = nn.Sequential(nn.Linear(2, 8), Root(), nn.Linear(8, 1))
    with torch.no_grad():
        model[0].weight.zero_()
        model[0].bias.fill_(1.0)

    def spoil(step: int) -> None:
        if step == 30:
            with torch.no_grad():
                model[0].bias.fill_(-5.0)

    run = train(model, adam(model, 1e-4), steps=40, before=spoil, every=1000)
    finding = next(it for it in run.findings if it.problem == "non_finite_loss")
    assert (finding.step, finding.layers) == (30, ["1"])


def test_nan_in_the_inputs_of_a_step_that_is_not_observed_is_blamed_on_the_data() -> None:
    x, y = data()
    model = mlp()
    optimizer = adam(model)
    with surefoot.watch(model, optimizer, runs=None, every=16, on_finding="ignore") as run:
        for step in range(60):
            x[0, 0] = float("nan") if step == 37 else 0.0
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
    assert [(it.problem, it.step) for it in run.findings if it.severity == "problem"] == [("abnormal_data", 38)]


def test_a_step_that_is_not_observed_calls_no_operation() -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Counter(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            calls.append(str(func))
            return func(*args, **(kwargs or {}))

    def step(run: Any = None) -> None:
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if run is not None:
            run.step(loss)

    x, y = data()
    model = mlp()
    optimizer = adam(model)
    calls: list[str] = []
    step()
    with Counter():
        step()
    alone, calls = calls, []
    with surefoot.watch(model, optimizer, runs=None, every=8) as run:
        for _ in range(10):
            step(run)
        with Counter():
            step(run)
    assert calls == alone


def test_a_busy_machine_does_not_shorten_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    from surefoot.schedule import ObserveSchedule

    def interval(waits: list[float]) -> int | None:
        now = 0.0
        monkeypatch.setattr("surefoot.schedule.time.perf_counter", lambda: now)
        schedule = ObserveSchedule()
        for wait in [0.0, 0.0, 0.0, *waits]:
            begun, now = now, now + 0.0001  # the cost of observing
            schedule.spent(begun)
            now += 0.001 + wait
            schedule.end_step()
        return schedule.every

    assert interval([0.0] * 8) == interval([0.02, 0.0, 0.03, 0.02, 0.0, 0.02, 0.02, 0.0]) == 32


def test_short_steps_are_delivered_together_and_when_asked_for() -> None:
    model = mlp()
    optimizer = adam(model)
    x, y = data()
    behind = set()
    with surefoot.watch(model, optimizer, runs=None, every=50, on_finding="ignore") as run:
        run._schedule.together = 16
        for step in range(1, 101):
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            run.step(loss)
            behind.add(step - run._session.steps)
            if step % 20 == 0:
                assert run.session.steps == step
    assert max(behind) == 15
    assert run.session.steps == 100


def test_losses_of_accumulated_batches_are_one_step() -> None:
    model = mlp()
    optimizer = adam(model)
    x, y = data()
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore") as run:
        for batch in range(40):
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            (loss / 4).backward()
            if batch % 4 == 3:
                optimizer.step()
                optimizer.zero_grad()
            run.step(loss)
    assert run.session.steps == 10
    assert problems(run) == []


class Gradients:
    """Collects the norms that the core receives."""

    def __init__(self, run: Any) -> None:
        self.scales: list[float] = []
        session = run.session
        original = session.core
        collected = self.scales

        class Core:
            def __getattr__(self, name: str) -> Any:
                return getattr(original, name)

            def gradients(self, addresses: list[int], scale: float) -> None:
                collected.append(scale)
                original.gradients(addresses, scale)

        session.core = Core()


def test_a_grad_scaler_scales_no_statistics_and_skips_no_count() -> None:
    model = mlp()
    optimizer = adam(model)
    scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    x, y = data()
    taken = 0
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", every=1) as run:
        for step in range(30):
            loss = F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            if step == 12:
                model[0].weight.grad.fill_(float("inf"))
            before = model[0].bias.detach().clone()
            scaler.step(optimizer)
            scaler.update()
            taken += int(not torch.equal(before, model[0].bias))
            if step == 4:
                seen = Gradients(run)
            run.step(loss)
    assert taken == 29
    assert run.session.steps == 29
    # Unscaled gradients are given with the scale 1.
    assert seen.scales and all(abs(it - 1.0) < 1e-3 for it in seen.scales)
    assert problems(run) == []


def test_the_gradient_before_clipping_is_judged() -> None:
    model = mlp()
    optimizer = adam(model)
    x, y = data()
    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", every=1) as run:
        for step in range(6):
            loss = 100 * F.binary_cross_entropy_with_logits(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            whole = float(nn.utils.clip_grad_norm_(model.parameters(), 0.1))
            if step == 3:
                seen = Gradients(run)
            optimizer.step()
            if step == 3:
                factor = 0.1 / whole
                # Dividing the clipped gradient by the factor gives the one before.
                assert seen.scales[-1] == pytest.approx(factor, rel=1e-3)
            run.step(loss)


def test_a_compiled_model_is_observed() -> None:
    model = mlp()
    compiled = torch.compile(model, backend="eager")
    run = train(compiled, adam(model), steps=40)
    assert problems(run) == []
    assert [it["name"] for it in run._known["layers"]] == ["0", "2", "4"]


class Checkpointed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())
        self.head = nn.Linear(16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        from torch.utils.checkpoint import checkpoint

        return self.head(checkpoint(self.inner, x, use_reentrant=False))


def test_checkpointed_activations_are_observed_once() -> None:
    model = Checkpointed()
    run = train(model, adam(model), steps=40)
    assert problems(run) == []
    assert len(run._known["layers"]) == 3


def test_a_watched_model_can_be_copied_and_saved(tmp_path: Path) -> None:
    import copy

    model = mlp()
    copies: list[nn.Module] = []

    def copy_model(step: int) -> None:
        if step in (10, 11):  # an observed step and another
            copies.append(copy.deepcopy(model))
            torch.save(model, tmp_path / "model.pt")

    run = train(model, adam(model), before=copy_model, every=9)
    assert run.session.steps == STEPS
    loaded = torch.load(tmp_path / "model.pt", weights_only=False)
    for other in (*copies, loaded):
        other(data()[0])


class Sparse(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(2, 1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.mm(x, self.weight)


def test_sparse_inputs_are_not_observed() -> None:
    model, (x, y) = Sparse(), data()
    optimizer = adam(model)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with surefoot.watch(model, optimizer, runs=None, on_finding="ignore") as run:
            for _ in range(20):
                loss = F.binary_cross_entropy_with_logits(model(x.to_sparse()), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                run.step(loss)
    assert run.session.steps == 20


def test_two_optimizers_of_adversaries_give_no_problem() -> None:
    generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    critic = mlp()
    optimizers = [adam(generator, 1e-3), adam(critic, 1e-3)]
    real, _ = data()
    ones, zeros = torch.ones(64, 1), torch.zeros(64, 1)
    criterion = F.binary_cross_entropy_with_logits
    with surefoot.watch([generator, critic], optimizers, runs=None, on_finding="ignore") as run:
        for _ in range(60):
            fake = generator(torch.randn(64, 4))
            loss = criterion(critic(real), ones) + criterion(critic(fake.detach()), zeros)
            optimizers[1].zero_grad()
            loss.backward()
            optimizers[1].step()
            deceived = criterion(critic(fake), ones)
            optimizers[0].zero_grad()
            deceived.backward()
            optimizers[0].step()
            run.step(loss + deceived)
    assert run.session.steps == 60
    assert run.findings == []
    assert [it["name"] for it in run._known["layers"]] == ["0.0", "0.2", "1.0", "1.2", "1.4"]


def test_frozen_layers_are_not_said_to_be_unchanged() -> None:
    model = mlp()
    model[0].requires_grad_(False)
    optimizer = torch.optim.Adam((it for it in model.parameters() if it.requires_grad), lr=0.01)
    run = train(model, optimizer)
    assert problems(run) == []
    assert [it["frozen"] for it in run._known["layers"]] == [True, False, False]


def test_shared_parameters_are_observed() -> None:
    model = mlp(depth=2)
    model[4].weight = model[2].weight
    assert problems(train(model, adam(model))) == []


def test_an_optimizer_with_a_closure_is_observed() -> None:
    model = mlp()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    x, y = data()

    def closure() -> torch.Tensor:
        optimizer.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        loss.backward()
        return loss

    with surefoot.watch(model, optimizer, runs=None, on_finding="ignore", every=1) as run:
        for step in range(8):
            if step == 4:
                seen = Gradients(run)
            run.step(optimizer.step(closure))
    assert run.session.steps == 8
    assert len(seen.scales) == 4


def test_a_loop_of_unknown_length_is_watched() -> None:
    model = mlp()
    run = train(model, adam(model), epochs=None, steps_per_epoch=None)
    assert problems(run) == []
    assert run.session.summary is not None


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_of_the_loop_is_passed_on_and_ends_the_run(error: type[BaseException], tmp_path: Path) -> None:
    model = mlp()
    optimizer = adam(model)

    def stop(step: int) -> None:
        if step == 15:
            raise error("stop")

    with pytest.raises(error, match="stop"):
        train(model, optimizer, before=stop, runs=tmp_path)
    (summary,) = tmp_path.glob("*/summary.json")
    written = json.loads(summary.read_text())
    assert (written["steps"], written["status"]) == (14, "failed")
    assert hooks(model, optimizer) == 0


def diverge(step: int, model: nn.Sequential) -> None:
    if step == 20:
        with torch.no_grad():
            model[0].weight.fill_(float("nan"))


def test_warn_prints_each_finding_once(capsys: pytest.CaptureFixture[str]) -> None:
    model = mlp()
    logging.getLogger("surefoot").propagate = False
    try:
        train(model, adam(model), steps=40, before=lambda it: diverge(it, model), on_finding="warn")
    finally:
        logging.getLogger("surefoot").propagate = True
    assert capsys.readouterr().err.count("surefoot: non-finite loss") == 1


def test_raise_stops_the_training_at_the_first_problem() -> None:
    model = mlp()
    optimizer = adam(model)
    with pytest.raises(surefoot.TrainingProblem) as raised:
        train(model, optimizer, steps=40, before=lambda it: diverge(it, model), on_finding="raise")
    assert raised.value.finding.problem == "non_finite_loss"
    assert raised.value.finding.step == 20
    assert hooks(model, optimizer) == 0


def test_a_function_is_called_with_each_finding_and_may_raise() -> None:
    model = mlp()
    found: list[str] = []
    options = {"steps": 40, "before": lambda it: diverge(it, model)}
    train(model, adam(model), on_finding=lambda it: found.append(it.problem), **options)
    assert "non_finite_loss" in found

    def give_up(finding: surefoot.Finding) -> None:
        raise LookupError(finding.problem)

    model = mlp()
    with pytest.raises(LookupError):
        train(model, adam(model), on_finding=give_up, **options)


def test_a_directory_that_cannot_be_made_gives_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    model = mlp()
    with pytest.warns(RuntimeWarning, match="does not record this run"):
        run = train(model, adam(model), steps=20, runs=tmp_path / "file" / "runs")
    assert run.session.steps == 20
    assert run.directory is None


def test_a_full_disk_does_not_end_the_training(tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("only root can mount a small file system")
    try:
        (disk / "filler").write_bytes(bytes(40_000))
        model = mlp(depth=6)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            train(model, adam(model), steps=300, runs=disk, every=1)
        messages = [str(it.message) for it in caught if "surefoot" in str(it.message)]
        assert len(messages) == 1
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_an_error_of_the_core_warns_once_and_switches_off() -> None:
    model = mlp()
    optimizer = adam(model)
    x, y = data()

    class Broken:
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError("internal error: injected")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with surefoot.watch(model, optimizer, runs=None) as run:
            for step in range(30):
                loss = F.binary_cross_entropy_with_logits(model(x), y)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                if step == 10:
                    run.session.core = Broken()
                run.step(loss)
                if step > 10:
                    assert hooks(model, optimizer) == 0
    messages = [str(it.message) for it in caught if "surefoot" in str(it.message)]
    assert len(messages) == 1 and "switched itself off" in messages[0]


class Writer:
    def __init__(self) -> None:
        self.texts: list[tuple[str, str, int]] = []

    def add_text(self, tag: str, text: str, step: int) -> None:
        self.texts.append((tag, text, step))


def test_writer_and_logging_receive_findings(caplog: pytest.LogCaptureFixture) -> None:
    model = mlp()
    writer = Writer()
    with caplog.at_level(logging.WARNING, logger="surefoot"):
        options: dict[str, Any] = {"on_finding": "warn", "writer": writer}
        train(model, adam(model), steps=40, before=lambda it: diverge(it, model), **options)
    assert ("surefoot/non_finite_loss", 20) in [(tag, step) for tag, _, step in writer.texts]
    assert any("non-finite loss" in it.getMessage() for it in caplog.records)


def test_a_writer_that_fails_gives_a_warning_only() -> None:
    model = mlp()
    with pytest.warns(RuntimeWarning, match="cannot log a finding"):
        run = train(model, adam(model), steps=40, before=lambda it: diverge(it, model), writer=object())
    assert "non_finite_loss" in problems(run)


def test_nothing_is_left_attached() -> None:
    model = mlp()
    optimizer = adam(model)
    scale = torch.amp.GradScaler.scale
    train(model, optimizer, steps=20)
    assert hooks(model, optimizer) == 0
    assert torch.amp.GradScaler.scale is scale


def test_overlapping_watches_leave_nothing_attached() -> None:
    scale = torch.amp.GradScaler.scale
    first, second = (surefoot.watch(mlp(), runs=None) for _ in range(2))
    first.start()
    second.start()
    first.finish()
    second.finish()
    assert torch.amp.GradScaler.scale is scale


def test_a_notebook_names_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", logging)
    monkeypatch.setattr(sys, "argv", ["/usr/lib/ipykernel_launcher.py", "-f", "kernel.json"])
    model = mlp()
    run = surefoot.watch(model, adam(model), runs=tmp_path)
    # A notebook starts and finishes the watch in different cells.
    run.start()
    x, y = data()
    F.binary_cross_entropy_with_logits(model(x), y).backward()
    run._optimizers[0].step()
    run.step(1.0)
    run.finish()
    assert run.directory is not None and run.directory.name == "notebook-001"


PROCESS = '''
import json, os, sys
from pathlib import Path
import torch, torch.distributed as dist
import torch.nn.functional as F
from torch import nn
import surefoot
mode, folder = sys.argv[1], Path(sys.argv[2])
torch.set_num_threads(1)
if "RANK" in os.environ:
    dist.init_process_group("gloo")
else:
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=int(sys.argv[3]), world_size=2)
rank = dist.get_rank()
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
if mode == "ddp":
    model = nn.parallel.DistributedDataParallel(model)
else:
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard
    mesh = init_device_mesh("cpu", (2,))
    for layer in (model[0], model[2]):
        fully_shard(layer, mesh=mesh)
    fully_shard(model, mesh=mesh)
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
torch.manual_seed(rank)
x = torch.rand(64, 2) * 2 - 1
y = (x.norm(dim=1) < 0.8).float().unsqueeze(1)
with surefoot.watch(model, optimizer, runs=folder / "runs", every=2) as run:
    for step in range(30):
        if mode == "ddp" and step == 20:
            with torch.no_grad():
                model.module[0].weight.fill_(float("nan"))
        loss = F.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        run.step(loss)
found = [it.problem for it in run.findings if it.severity == "problem"]
result = {"steps": run.session.steps, "directory": str(run.directory or ""), "problems": found}
(folder / f"result-{rank}.json").write_text(json.dumps(result))
dist.barrier()
dist.destroy_process_group()
sys.stderr.flush()
# The threads of gloo may abort the interpreter while it shuts down.
os._exit(0)
'''


def processes(mode: str, tmp_path: Path, torchrun: bool = False) -> tuple[list[dict[str, Any]], list[str]]:
    """Trains in two processes and returns the result of each, and what each printed."""
    script = tmp_path / "loop.py"
    script.write_text(PROCESS)
    package = str(Path(surefoot.__file__).parent.parent)
    environment = {**os.environ, "PYTHONPATH": package, "PYTHONWARNINGS": "ignore::UserWarning"}
    command = [str(script), mode, str(tmp_path)]
    if torchrun:
        launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        commands = [[sys.executable, *launcher, *command]]
    else:
        commands = [[sys.executable, *command, str(rank)] for rank in range(2)]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    started = [subprocess.Popen(it, env=environment, **pipes) for it in commands]
    errors = [process.communicate(timeout=300)[1] for process in started]
    for process, text in zip(started, errors, strict=True):
        assert process.returncode == 0, text
    return [json.loads((tmp_path / f"result-{rank}.json").read_text()) for rank in range(2)], errors


def test_of_several_processes_the_first_reports_and_records(tmp_path: Path) -> None:
    (first, second), (shown, silent) = processes("ddp", tmp_path)
    assert first["steps"] == second["steps"] == 30
    assert first["directory"] and not second["directory"]
    assert "non_finite_loss" in first["problems"] and "non_finite_loss" in second["problems"]
    assert "surefoot:" in shown and "surefoot:" not in silent


def test_processes_of_torchrun_report_once(tmp_path: Path) -> None:
    (first, second), (shown,) = processes("ddp", tmp_path, torchrun=True)
    assert first["directory"] and not second["directory"]
    assert shown.count("surefoot: non-finite loss") == 1


def test_a_sharded_model_is_observed_by_its_local_shards(tmp_path: Path) -> None:
    (first, second), (shown, _) = processes("fsdp", tmp_path)
    assert first["steps"] == second["steps"] == 30
    assert "switched itself off" not in shown
    assert first["problems"] == []


SCRIPT = """import torch
from torch import nn
import surefoot

torch.set_num_threads(1)
torch.manual_seed(0)
x = torch.rand(64, 2)
y = (x.sum(1) > 1).float().unsqueeze(1)
layers = [nn.Linear(2, 8), nn.Sigmoid()]
for _ in range(8):
    layers += [nn.Linear(8, 8), nn.Sigmoid()]
model = nn.Sequential(*layers, nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
with surefoot.watch(model, optimizer, runs=None) as run:
    for _ in range(200):
        loss = nn.functional.binary_cross_entropy_with_logits(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        run.step(loss)
"""


def test_advice_is_a_diff_of_the_program(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text(SCRIPT)
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    done = subprocess.run([sys.executable, str(script)], env=environment, capture_output=True, text=True, timeout=300)
    assert "vanishing gradient" in done.stderr
    assert "+    layers += [nn.Linear(8, 8), nn.SELU()]" in done.stderr
