"""Watches the training of a Lightning ``Trainer``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from surefoot.session import OnFinding, Results, Session, check_options, guarded
from surefoot.torch.watch import Watch as TorchWatch

# Lightning has two packages whose classes differ; the program uses the one that it has imported.
if TYPE_CHECKING or ("pytorch_lightning" in sys.modules and "lightning" not in sys.modules):
    from pytorch_lightning import Callback
else:
    try:
        from lightning.pytorch import Callback
    except ImportError:
        from pytorch_lightning import Callback


class Watch(Callback, Results):
    """A Lightning callback that watches a training and reports problems as they occur.

    The loss is that of ``training_step`` before Lightning divides it by ``accumulate_grad_batches``. The gradient is
    that before clipping. Metrics that are logged in ``validation_step`` under names with ``val`` and ``loss`` or
    ``acc`` are the results of the validation. Findings go to ``trainer.loggers`` too.

    Args:
        runs: Directory below which the run is recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.
        every: Interval of observations in steps; by default chosen so that observing takes about 1% of the time.
        on_finding: ``"warn"``, ``"raise"``, ``"ignore"`` or a function that is called with each finding.
        thresholds: Limits of the detectors, as for ``surefoot diagnose --set``.

    Example::

        trainer = lightning.Trainer(callbacks=[surefoot.lightning.Watch()])
    """

    def __init__(
        self,
        *,
        runs: str | Path | None = "runs",
        name: str | None = None,
        every: int | None = None,
        on_finding: OnFinding = "warn",
        thresholds: dict[str, object] | None = None,
    ) -> None:
        super().__init__()
        check_options(on_finding, thresholds)
        self._options: dict[str, Any] = {
            "runs": runs,
            "name": name,
            "every": every,
            "on_finding": on_finding,
            "thresholds": thresholds,
        }
        self._watch: _StepWatch | None = None
        self._losses: list[torch.Tensor] = []

    @property
    def watch(self) -> TorchWatch | None:
        """The watch of the latest ``trainer.fit``; ``None`` before."""
        return self._watch

    @property
    def session(self) -> Session | None:
        return self._watch.session if self._watch is not None else None

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        accumulation = max(int(trainer.accumulate_grad_batches or 1), 1)
        batches = trainer.num_training_batches
        known = isinstance(batches, int) or batches != float("inf")
        self._watch = _StepWatch(
            pl_module,
            [getattr(it, "_optimizer", it) for it in trainer.optimizers],
            epochs=trainer.max_epochs if (trainer.max_epochs or -1) > 0 else None,
            steps_per_epoch=-(-int(batches) // accumulation) if known else None,
            writer=_Loggers(trainer),
            **self._options,
        )
        self._watch.start()

    def on_before_backward(self, trainer: Any, pl_module: Any, loss: torch.Tensor) -> None:
        if not pl_module.automatic_optimization:
            self._losses.append(loss.detach())

    def on_before_optimizer_step(self, trainer: Any, pl_module: Any, optimizer: Any) -> None:
        # The loop of Lightning passes a closure to `optimizer.step`; this is after it, and before clipping.
        if self._watch is not None:
            self._watch.before_update(getattr(optimizer, "_optimizer", optimizer))

    def on_train_batch_end(
        self, trainer: Any, pl_module: Any, outputs: Any, batch: Any, batch_idx: int
    ) -> None:
        losses, self._losses = self._losses, []
        if self._watch is None:
            return
        loss = outputs.get("loss") if isinstance(outputs, Mapping) else outputs
        if pl_module.automatic_optimization and loss is not None:
            loss = loss * max(int(trainer.accumulate_grad_batches or 1), 1)
        elif losses:
            loss = torch.stack([it.float().mean() for it in losses]).sum()
        if loss is not None:
            self._watch.step(loss, epoch=trainer.current_epoch + 1)

    def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
        if self._watch is None or trainer.sanity_checking:
            return
        loss = _logged(trainer.callback_metrics, "loss")
        if loss is not None:
            self._watch.evaluation(loss, accuracy=_logged(trainer.callback_metrics, "acc"))

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self._finish(completed=True)

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self._finish(completed=False)

    def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
        self._finish(completed=False)

    def _finish(self, *, completed: bool) -> None:
        if self._watch is not None and not self._watch.is_finished:
            self._watch.finish(completed=completed)


class _StepWatch(TorchWatch):
    """Watches a module whose ``training_step`` runs the layers, instead of its ``forward``."""

    is_finished = False

    @guarded
    def start(self) -> None:
        super().start()
        module: Any = self._models[0]
        discovery = self._discoveries[0]
        original = module.training_step
        discovery.trace_by_hand()

        def training_step(*args: Any, **kwargs: Any) -> Any:
            if discovery.observed:
                return original(*args, **kwargs)
            discovery.enter(args, kwargs)
            output = None
            try:
                output = original(*args, **kwargs)
                return output
            finally:
                discovery.leave(output)

        module.__dict__["training_step"] = training_step

    def _detach(self) -> None:
        self._models[0].__dict__.pop("training_step", None)
        super()._detach()

    def finish(self, *, completed: bool = True) -> None:
        self.is_finished = True
        super().finish(completed=completed)


class _Loggers:
    """The loggers of a trainer, as one TensorBoard writer."""

    def __init__(self, trainer: Any) -> None:
        self._trainer = trainer

    def add_text(self, tag: str, text: str, step: int) -> None:
        for logger in self._trainer.loggers:
            experiment = logger.experiment
            if hasattr(experiment, "add_text"):
                experiment.add_text(tag, text, step)
            elif hasattr(experiment, "set_tag"):
                experiment.set_tag(logger.run_id, tag.replace("/", "."), text[:5000])
            else:
                # The metric marks the step in loggers of numbers.
                logger.log_metrics({tag: 1.0}, step)


def _logged(metrics: Mapping[str, Any], part: str) -> Any:
    """The first metric of the validation whose name contains ``part``."""
    for name, value in metrics.items():
        lower = name.lower()
        if lower.startswith("val") and part in lower:
            return value
    return None
