"""The callback for Lightning."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
lightning = pytest.importorskip("lightning", reason="Lightning is not installed")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

import surefoot.lightning  # noqa: E402

torch.set_num_threads(1)
logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


class Model(lightning.LightningModule):
    """Runs its layers in ``training_step``, without a ``forward``."""

    def __init__(self, body: nn.Module | None = None, spoil_at: int = -1) -> None:
        super().__init__()
        self.body = body or nn.Sequential(nn.Linear(2, 16), nn.ReLU())
        self.head = nn.Linear(16 if body is None else 8, 1)
        self.spoil_at = spoil_at
        self.losses: list[float] = []

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        x, y = batch
        loss = F.binary_cross_entropy_with_logits(self.head(self.body(x)), y)
        if self.global_step == self.spoil_at:
            loss = loss * float("nan")
        self.losses.append(float(loss.detach()))
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        x, y = batch
        self.log("val_loss", F.binary_cross_entropy_with_logits(self.head(self.body(x)), y))
        self.log("val_acc", 0.75)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.Adam(self.parameters(), lr=0.01)


def loader() -> DataLoader[Any]:
    torch.manual_seed(0)
    x = torch.rand(256, 2) * 2 - 1
    y = (x.norm(dim=1) < 0.8).float().unsqueeze(1)
    return DataLoader(TensorDataset(x, y), batch_size=16)


def fit(model: Any, tmp_path: Path, epochs: int = 3, watch: Any = None, validate: bool = False, **options: Any) -> Any:
    watch = watch or surefoot.lightning.Watch(runs=None, on_finding="ignore", every=1)
    options = {"logger": False, "gradient_clip_val": None, **options}
    trainer = lightning.Trainer(
        max_epochs=epochs,
        callbacks=[watch],
        default_root_dir=tmp_path,
        accelerator="cpu",
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        **options,
    )
    data = loader()
    trainer.fit(model, data, data if validate else None)
    return watch


def problems(watch: Any) -> list[str]:
    return [it.problem for it in watch.findings if it.severity == "problem"]


def collect(watch: Any, monkeypatch: pytest.MonkeyPatch, method: str) -> list[tuple[Any, ...]]:
    """Collects the arguments of calls of a method of the session."""
    calls: list[tuple[Any, ...]] = []
    original = getattr(surefoot.Session, method)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((*args, kwargs))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(surefoot.Session, method, called)
    return calls


def test_a_healthy_training_has_no_problem_and_its_facts_are_known(tmp_path: Path) -> None:
    model = Model()
    watch = fit(model, tmp_path)
    assert problems(watch) == []
    assert watch.watch.session.steps == 48
    known = watch.watch._known
    assert [(it["name"], it["activation"]) for it in known["layers"]] == [("body.0", "relu"), ("head", "linear")]
    assert (known["loss"], known["optimizer"], known["steps_per_epoch"]) == ("binary_crossentropy", "adam", 16)
    assert "training_step" not in model.__dict__
    assert not any(it._forward_hooks or it._forward_pre_hooks for it in model.modules())


def test_a_vanishing_gradient_is_found(tmp_path: Path) -> None:
    layers = [it for _ in range(9) for it in (nn.Linear(8, 8), nn.Sigmoid())]
    watch = fit(Model(nn.Sequential(nn.Linear(2, 8), nn.Sigmoid(), *layers)), tmp_path, epochs=12)
    assert "vanishing_gradient" in [it.problem for it in watch.findings]


def test_losses_are_those_before_the_division_by_the_accumulation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, watch = Model(), surefoot.lightning.Watch(runs=None, on_finding="ignore")
    calls = collect(watch, monkeypatch, "step")
    fit(model, tmp_path, epochs=1, watch=watch, accumulate_grad_batches=4)
    assert len(calls) == 4
    assert calls[0][0] == pytest.approx(sum(model.losses[:4]) / 4, rel=1e-4)


def test_validation_is_an_evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = surefoot.lightning.Watch(runs=None, on_finding="ignore")
    calls = collect(watch, monkeypatch, "evaluation")
    fit(Model(), tmp_path, epochs=2, watch=watch, validate=True)
    assert len(calls) == 2
    assert calls[0][1]["metric"] == pytest.approx(0.75)


def test_findings_go_to_the_loggers(tmp_path: Path) -> None:
    from lightning.pytorch.loggers import CSVLogger

    logger = CSVLogger(tmp_path)
    watch = fit(Model(spoil_at=5), tmp_path, epochs=1, logger=logger)
    assert "non_finite_loss" in problems(watch)
    logger.save()
    assert "surefoot/non_finite_loss" in (Path(logger.log_dir) / "metrics.csv").read_text()


def test_raise_ends_the_training_and_leaves_nothing_attached(tmp_path: Path) -> None:
    model, watch = Model(spoil_at=5), surefoot.lightning.Watch(runs=None, on_finding="raise")
    with pytest.raises(surefoot.TrainingProblem):
        fit(model, tmp_path, watch=watch)
    assert "training_step" not in model.__dict__
    assert watch.watch.is_finished


def test_the_gradient_before_clipping_is_judged(tmp_path: Path) -> None:
    scales: list[float] = []

    class CountingWatch(surefoot.lightning.Watch):
        def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
            if trainer.current_epoch == 1:
                core = self.watch.session.core

                class Core:
                    def __getattr__(self, name: str) -> Any:
                        return getattr(core, name)

                    def gradients(self, addresses: list[int], scale: float) -> None:
                        scales.append(scale)
                        core.gradients(addresses, scale)

                self.watch.session.core = Core()

    watch = CountingWatch(runs=None, on_finding="ignore", every=1)
    fit(Model(), tmp_path, epochs=2, watch=watch, gradient_clip_val=1e-3)
    assert len(scales) == 16
    assert all(it == pytest.approx(1.0, rel=1e-3) for it in scales)


def test_mixed_precision_is_watched(tmp_path: Path) -> None:
    watch = fit(Model(), tmp_path, precision="bf16-mixed")
    assert watch.watch.session.steps == 48
    assert problems(watch) == []


def test_the_callback_belongs_to_the_package_that_the_program_imports() -> None:
    pytest.importorskip("pytorch_lightning", reason="pytorch_lightning is not installed")
    program = """
import pytorch_lightning, surefoot.lightning, sys
assert "lightning" not in sys.modules
assert issubclass(surefoot.lightning.Watch, pytorch_lightning.Callback)
"""
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Adversaries(lightning.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        self.automatic_optimization = False
        self.generator = nn.Linear(4, 2)
        self.critic = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))

    def training_step(self, batch: Any, index: int) -> None:
        first, second = self.optimizers()
        ones, zeros = torch.ones(16, 1), torch.zeros(16, 1)
        criterion = F.binary_cross_entropy_with_logits
        fake = self.generator(torch.randn(16, 4))
        loss = criterion(self.critic(batch[0]), ones) + criterion(self.critic(fake.detach()), zeros)
        second.zero_grad()
        self.manual_backward(loss)
        second.step()
        loss = criterion(self.critic(fake), ones)
        first.zero_grad()
        self.manual_backward(loss)
        first.step()

    def configure_optimizers(self) -> list[torch.optim.Optimizer]:
        return [torch.optim.Adam(it.parameters(), lr=1e-3) for it in (self.generator, self.critic)]


def test_manual_optimization_with_two_optimizers_is_watched(tmp_path: Path) -> None:
    watch = fit(Adversaries(), tmp_path, epochs=2)
    assert watch.watch.session.steps == 32
    assert problems(watch) == []


def test_a_fault_inside_does_not_end_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("injected")

    monkeypatch.setattr(surefoot.Session, "step", fail)
    model = Model()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fit(model, tmp_path, epochs=1)
    assert len(model.losses) == 16
    assert len([it for it in caught if "switched itself off" in str(it.message)]) == 1
