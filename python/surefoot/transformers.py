"""Watches the training of a Hugging Face ``Trainer``."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback

from surefoot.session import OnFinding, Results, Session, check_options
from surefoot.torch.watch import Watch as TorchWatch


class Watch(TrainerCallback, Results):
    """A callback of Transformers that watches a training and reports problems as they occur.

    A ``Trainer`` does not tell its callbacks the loss, so it is taken from the output of the model. If that has none
    (because ``compute_loss`` is overridden), the logged loss is used, once in ``logging_steps``.

    Args:
        runs: Directory below which the run is recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.
        every: Interval of observations in steps; by default chosen so that observing takes about 1% of the time.
        on_finding: ``"warn"``, ``"raise"``, ``"ignore"`` or a function that is called with each finding.
        thresholds: Limits of the detectors, as for ``surefoot diagnose --set``.
        writer: A TensorBoard ``SummaryWriter`` that receives findings. Active W&B and MLflow runs receive them too.

    Example::

        trainer = transformers.Trainer(model, arguments, callbacks=[surefoot.transformers.Watch()], ...)
    """

    def __init__(
        self,
        *,
        runs: str | Path | None = "runs",
        name: str | None = None,
        every: int | None = None,
        on_finding: OnFinding = "warn",
        thresholds: dict[str, object] | None = None,
        writer: Any = None,
    ) -> None:
        check_options(on_finding, thresholds)
        self._options: dict[str, Any] = {
            "runs": runs,
            "name": name,
            "every": every,
            "on_finding": on_finding,
            "thresholds": thresholds,
            "writer": writer,
        }
        self._watch: TorchWatch | None = None
        self._handle: Any = None
        self._losses: list[torch.Tensor] = []
        self._is_sum = False
        self._returns_loss = False

    @property
    def watch(self) -> TorchWatch | None:
        """The watch of the latest ``trainer.train``; ``None`` before."""
        return self._watch

    @property
    def session(self) -> Session | None:
        return self._watch.session if self._watch is not None else None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        # A training that failed has not called `on_train_end`.
        self._finish(completed=False)
        model, loader = kwargs["model"], kwargs.get("train_dataloader")
        try:
            batches = len(loader)  # type: ignore[arg-type]
        except TypeError:
            batches = state.max_steps * args.gradient_accumulation_steps
        steps = max(-(-batches // args.gradient_accumulation_steps), 1)
        self._watch = TorchWatch(
            model,
            kwargs.get("optimizer"),
            epochs=-(-state.max_steps // steps) if state.max_steps > 0 else None,
            steps_per_epoch=steps,
            **self._options,
        )
        self._watch.start()
        note = weakref.WeakMethod(self._note_loss)

        def note_loss(*given: Any) -> None:
            method = note()
            if method is not None:
                method(*given)

        self._handle = model.register_forward_hook(note_loss, with_kwargs=True)

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        losses, self._losses = self._losses, []
        if self._watch is None or not losses:
            return
        stacked = torch.stack(losses)
        # With `num_items_in_batch`, each loss is its part of the loss of the step.
        loss = stacked.sum() if self._is_sum else stacked.mean()
        self._watch.step(loss, epoch=int(state.epoch or 0) + 1)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        loss = (logs or {}).get("loss")
        if self._watch is not None and loss is not None and not self._returns_loss:
            self._watch.step(float(loss))

    def on_evaluate(
        self, args: Any, state: Any, control: Any, metrics: Mapping[str, Any] | None = None, **kwargs: Any
    ) -> None:
        loss = (metrics or {}).get("eval_loss")
        if self._watch is not None and loss is not None:
            self._watch.evaluation(loss, accuracy=(metrics or {}).get("eval_accuracy"))

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._finish(completed=True)

    def _note_loss(self, model: nn.Module, args: Any, kwargs: Any, output: Any) -> None:
        if not torch.is_grad_enabled() or not model.training:
            return
        loss = output.get("loss") if isinstance(output, Mapping) else None
        if isinstance(loss, torch.Tensor):
            self._returns_loss = True
            self._is_sum = kwargs.get("num_items_in_batch") is not None
            self._losses.append(loss.detach().float().mean())

    def _finish(self, *, completed: bool) -> None:
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
            self._losses.clear()
            if self._watch is not None:
                self._watch.finish(completed=completed)

    def __del__(self) -> None:
        # After an error, a `Trainer` does not call `on_train_end`.
        try:
            self._finish(completed=False)
        except Exception:  # noqa: BLE001 - the interpreter may be shutting down
            pass
