"""Watches a PyTorch training loop.

A step that is not observed calls no operation of PyTorch: on CPU, the Rust core reads the loss and looks for NaN in one
small gradient, through their addresses. Gradients, weights and outputs are read in place by the core at every n-th step,
where n is chosen in the first steps so that observing takes about 1% of the time. On a GPU, statistics are computed
there and copied asynchronously for several steps at once. The host waits for them only at an evaluation, at the end, and
when it is at least 16 steps ahead of the device.
"""

from __future__ import annotations

import atexit
import json
import math
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from surefoot.finding import Finding, TrainingProblem
from surefoot.run.recover import OptimizerRecovery
from surefoot.schedule import ObserveSchedule
from surefoot.session import Guarded, OnFinding, Results, Session, check_options, guarded
from surefoot.torch import attention
from surefoot.torch import device as on_device
from surefoot.torch.advice import Advisor
from surefoot.torch.attention import AttentionObserver
from surefoot.torch.batch import save_batch
from surefoot.torch.discover import Discovery
from surefoot.torch.first_nonfinite import NonFinite, first_nonfinite
from surefoot.torch.hooks import Hook
from surefoot.torch.observed import ObservedLayer, last_nonfinite_gradient, name_unchanged, observed_layers
from surefoot.torch.scaler import ScalerHook
from surefoot.torch.tensors import address, dense, first_tensor, format_of, is_measurable, local

_CURVE_PROBLEMS = ("oscillating_loss", "slow_convergence", "diverging_loss", "collapse", "loss_spike")
"""Problems that are found by comparing losses of different steps."""

_EPISODE_COUNTS = 4
"""Different numbers of forward passes per update that show a loop over episodes or sequences of any length."""

UNCLEARED = 5
"""Observed steps in a row with gradients of the step before that show a loop without ``zero_grad``."""

LARGEST_SPARSE = 2**22
"""Values of the largest sparse gradient that is observed, as a dense one."""


class Watch(Guarded, Results):
    """Watches a PyTorch training loop and reports problems. Created by :func:`surefoot.watch`."""

    def __init__(
        self,
        model: nn.Module | Sequence[nn.Module],
        optimizer: torch.optim.Optimizer | Sequence[torch.optim.Optimizer] | None = None,
        *,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        runs: str | Path | None = "runs",
        name: str | None = None,
        every: int | None = None,
        on_finding: OnFinding = "warn",
        thresholds: dict[str, object] | None = None,
        recover: bool = False,
        writer: Any = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        check_options(on_finding, thresholds)
        self._models = [model] if isinstance(model, nn.Module) else list(model)
        self._optimizers = _as_list(optimizer)
        if recover and not self._optimizers:
            raise ValueError("recover=True needs the optimizer: surefoot.watch(model, optimizer, recover=True)")
        self._recovers = recover
        self._is_skipped = False
        """True if the latest update was skipped to recover; until the loop reports its loss."""
        self._actions: list[str] = []
        """Actions to recover that are not reported yet."""
        self._options: dict[str, Any] = {
            "runs": runs,
            "name": name,
            "on_finding": on_finding,
            "thresholds": thresholds,
            "writer": writer,
        }
        self._facts = facts or {}
        self._lengths = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
        self._session: Session | None = None
        self._discoveries: list[Discovery] = []
        self._layers: list[ObservedLayer] = []
        self._parameters: list[nn.Parameter] = []
        self._handles: list[Any] = []
        self._observing_handles: list[Any] = []
        self._seen_outputs: set[int] = set()
        self._losses: list[Tensor | float] = []
        self._has_stepped = False
        self._schedule = ObserveSchedule(every, (epochs or 0) * (steps_per_epoch or 0))
        self._observing = True
        self._has_gradients = False
        self._has_sample = False
        self._has_incoming = False
        self._uncleared = 0
        """Observed steps in a row whose gradients were added to those of the step before."""
        self._probe: nn.Parameter | None = None
        self._quick: Any = None
        """Method of the core that takes steps while none is observed."""
        self._steps = 0
        self._probe_norm: float | None = None
        self._place: NonFinite | None = None
        self._attention: AttentionObserver | None = None
        self._advisor: Advisor | None = None
        self._known: dict[str, Any] = {}
        self._scaler = ScalerHook()
        self._device = torch.device("cpu")
        self._queue = on_device.Queue()
        self._is_urgent = callable(on_finding) or on_finding == "raise"
        self._metric_name: str | None = None
        self._batch: tuple[tuple[Any, ...], dict[str, Any]] | None = None
        #: Forward passes since the last update, and the different numbers of them per update.
        self._passes = 0
        self._pass_counts: set[int] = set()

    # Start and end of a run

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        is_exit = isinstance(error, SystemExit) and not error.code
        try:
            self.finish(completed=kind is None or is_exit)
        except TrainingProblem:
            # The loop has already raised an error; do not hide it.
            if kind is None:
                raise

    @guarded
    def start(self) -> None:
        """Attaches the hooks. Entering the ``with`` block does the same."""
        self._scaler.attach()
        several = len(self._optimizers) > 1
        for model in self._models:
            optimizer = None if several or not self._optimizers else self._optimizers[0]
            self._discoveries.append(Discovery(model, optimizer))
            self._handles.append(model.register_forward_pre_hook(Hook(self._remember_batch), with_kwargs=True))
        for optimizer in self._optimizers:
            if self._recovers:
                recovery = OptimizerRecovery(optimizer, lambda step, action, text: self._actions.append(text))
                self._handles.append(optimizer.register_step_pre_hook(self._judging(recovery)))
            self._handles.append(optimizer.register_step_pre_hook(self._enter_update))

    def _start_late(self) -> None:
        """Starts at the first step of a loop without a ``with`` block; the run then ends with the program."""
        self.start()
        atexit.register(lambda: self.finish(completed=not hasattr(sys, "last_value")))

    def finish(self, *, completed: bool = True) -> None:
        """Detaches the hooks and ends the run. Leaving the ``with`` block does the same.

        Args:
            completed: False if the loop was interrupted before its last step.
        """
        self._detach()
        self._end(completed)
        self._batch = None

    def switch_off(self, error: Exception) -> None:
        super().switch_off(error)
        self._detach()

    def _detach(self) -> None:
        self._quick = None
        for handle in self._handles + self._observing_handles:
            handle.remove()
        self._handles.clear()
        self._observing_handles.clear()
        for discovery in self._discoveries:
            discovery.close()
        if self._attention is not None:
            self._attention.detach()
        self._scaler.detach()

    @guarded
    def _end(self, completed: bool) -> None:
        if self._session is None:
            return
        self._drain(wait=True)
        weights = []
        tensors = []
        for index, model in enumerate(self._models):
            prefix = f"{index}." if len(self._models) > 1 else ""
            for name, parameter in model.state_dict().items():
                if not isinstance(parameter, Tensor):
                    continue
                tensor = local(parameter).detach().cpu().contiguous()
                if is_measurable(tensor):
                    tensors.append(tensor)  # keeps the memory alive
                    weights.append((prefix + name, tensor.data_ptr(), tensor.numel(), format_of(tensor)))
        self._session.finish(completed=completed, weights=weights)

    # Results

    @property
    def session(self) -> Session | None:
        """The session with the core; ``None`` before the first step."""
        self._drain(wait=False)
        return self._session

    @property
    def every(self) -> int | None:
        """Interval of observations in steps; ``None`` while it is being chosen."""
        return self._schedule.every

    # Reports of the loop

    def step(
        self,
        loss: Tensor | float,
        *,
        accuracy: Tensor | float | None = None,
        metric: Tensor | float | None = None,
        epoch: int | None = None,
    ) -> None:
        """Reports a step, after ``optimizer.step()``.

        With gradient accumulation, call it for every batch or once per optimizer step; the losses between two
        optimizer steps are averaged. A step that a ``GradScaler`` or ``recover`` skips is not counted.

        Args:
            loss: Loss of the batch. A tensor stays on its device.
            accuracy: Accuracy of the batch, if known.
            metric: Another metric of the batch that is better when larger, such as R².
            epoch: 1-based epoch; by default derived from ``steps_per_epoch``.
        """
        if self._is_skipped:
            return self._report_skipped()
        quick = self._quick
        if quick is not None:
            try:
                is_over = quick(loss, metric if accuracy is None else accuracy, epoch)
            except Exception as error:  # noqa: BLE001 - must not end the training
                return self.switch_off(error)
            if is_over is False:
                return
            if is_over:
                return self._end_quick_steps()
        self._step(loss, accuracy, metric, epoch)

    def _judging(self, recovery: OptimizerRecovery) -> Any:
        def judge(optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
            # With a closure, the gradients are computed later.
            if self._is_off or _closure(args, kwargs):
                return
            try:
                self._is_skipped = recovery.judge([], self._steps + 1) or self._is_skipped
            except Exception as error:  # noqa: BLE001 - must not end the training
                self.switch_off(error)

        return judge

    @guarded
    def _report_skipped(self) -> None:
        self._is_skipped = False
        self._losses.clear()
        session = self._session or self._begin()
        actions, self._actions = self._actions, []
        for text in actions:
            session.core.report("bad_step", f"{text[0].upper()}{text[1:]}.", False)
        session.report_new()

    @guarded
    def _step(
        self,
        loss: Tensor | float,
        accuracy: Tensor | float | None,
        metric: Tensor | float | None,
        epoch: int | None,
    ) -> None:
        begun = time.perf_counter()
        if not self._discoveries:
            return self._start_late()
        if self._quick is not None:
            self._stop_quick_steps()
        self._losses.append(on_device.number(loss))
        if self._optimizers and not self._has_stepped:
            return
        self._has_stepped = False
        value = None
        if accuracy is not None or metric is not None:
            value = on_device.number(accuracy if accuracy is not None else metric)  # type: ignore[arg-type]
            self._metric_name = self._metric_name or ("accuracy" if accuracy is not None else "metric")
        session = self._session or self._begin()
        losses, self._losses = self._losses, []
        if self._observing:
            if not self._optimizers:
                self._observe_gradients(range(len(self._parameters)))
            self._observe_weights()
        rate = float(self._optimizers[0].param_groups[0]["lr"]) if self._optimizers else None
        self._queue.put(losses, value, epoch, rate)
        self._steps += 1
        self._queue.deliver(session, wait=False)
        if self._observing and self._uncleared == UNCLEARED:
            self._uncleared += 1  # It is reported once.
            session.core.report(
                "uncleared_gradients",
                "Each step adds its gradient to those of all steps before: the loop does not call `zero_grad()`.",
                False,
            )
            session.report_new()
        self._plan_next(session, begun)

    @guarded
    def evaluation(
        self,
        loss: Tensor | float,
        *,
        accuracy: Tensor | float | None = None,
        metric: Tensor | float | None = None,
        split: str = "validation",
    ) -> None:
        """Reports loss and metric of a whole split, for example after an epoch. Ignored before the first step."""
        if self._session is None:
            return
        self._drain(wait=True)
        value = accuracy if accuracy is not None else metric
        number = None if value is None else float(value)
        self._session.evaluation(float(loss), metric=number, split=split)

    # Starting

    def _begin(self) -> Session:
        """Creates the session, once the first forward pass has shown the layers and the loss."""
        several = len(self._models) > 1
        facts: dict[str, Any] = {}
        layers: list[dict[str, Any]] = []
        attentions: dict[nn.Module, int] = {}
        for index, discovery in enumerate(self._discoveries):
            discovery.close()
            known = discovery.facts()
            observed = observed_layers(discovery)
            self._layers += observed
            for layer, info in zip(observed, known["layers"], strict=True):
                layers.append(dict(info, name=f"{index}.{layer.name}" if several else layer.name))
            facts = {} if several else known
            for module, path in discovery.attentions.items() if layers else ():
                # Their logits are observed like the output of a layer; the last layer is the output layer.
                name = f"{index}.{path} (attention)" if several else f"{path} (attention)"
                attentions[module] = len(layers) - 1
                self._layers.insert(-1, ObservedLayer(name, None, [], False, None, None))
                layers.insert(-1, {"name": name, "kind": "attention_logits", "activation": None})
        self._attention = AttentionObserver(attentions, self._observe_attention)
        facts["layers"] = layers
        facts |= {key: value for key, value in self._lengths.items() if value}
        facts |= self._facts
        if self._metric_name:
            facts["metric"] = self._metric_name
        if several or len(self._optimizers) > 1:
            # The losses of adversaries rise and fall by design.
            self._options["thresholds"] = {"off": ",".join(_CURVE_PROBLEMS), **(self._options["thresholds"] or {})}
        parameters = []
        for index, layer in enumerate(self._layers):
            for parameter in layer.parameters:
                self._parameters.append(parameter)
                rows = local(parameter).shape[0] if layer.rows_are_units else 0
                parameters.append((index, local(parameter).numel(), format_of(parameter), rows))
        if self._parameters:
            self._device = self._parameters[0].device
        if not several:
            self._advisor = Advisor(self._discoveries[0], next(iter(self._optimizers), None))
        self._known = facts
        self._session = self._open(facts)
        self._session.core.set_parameters(parameters)
        self._choose_probe()
        if self._device.type == "cpu":
            self._session.core.prepare_quick_steps(next(iter(self._optimizers), None), self._probe)
        self._observe_input()
        for discovery in self._discoveries:
            self._report_mismatch(self._session, discovery)
        return self._session

    def _report_mismatch(self, session: Session, discovery: Discovery) -> None:
        call = discovery.loss_call
        if call is not None and call.mismatch is not None:
            output, target = call.mismatch
            message = (
                f"The loss compares outputs of shape {output} with targets of shape {target}: "
                "broadcasting pairs each output with the targets of all samples."
            )
            session.core.report("mismatched_shapes", message, True)
            session.report_new()

    def _open(self, facts: dict[str, Any]) -> Session:
        options = {
            "framework": "pytorch",
            "libraries": {"torch": torch.__version__},
            "device": str(self._device),
            "every": self._schedule.every or 1,
            "refine": self._refine,
        }
        if _rank() > 0:
            # Every process observes; the first one reports and records.
            self._options |= {"runs": None, "on_finding": "ignore", "writer": None}
        return Session.open(facts, **options, **self._options)

    def _remember_batch(self, model: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if torch.is_grad_enabled():
            self._batch = (args, kwargs)
            self._passes += 1
            if self._observing and self._session is not None:
                self._observe_batch()

    # Observing

    @guarded
    def _observe_batch(self) -> None:
        begun = time.perf_counter()
        self._observe_input()
        self._schedule.spent(begun)

    def _observe_input(self) -> None:
        args = self._batch[0] if self._batch is not None else ()
        tensor = next((it for it in args if isinstance(it, Tensor)), None)
        if tensor is not None and is_measurable(tensor):
            self._observe("input", 0, tensor, None)

    def _choose_probe(self) -> None:
        """Selects one small parameter on CPU. Its gradient shows NaN, and the factor of clipping and unscaling."""
        trainable = [i for i, it in enumerate(self._parameters) if it.requires_grad and it.is_leaf]
        if trainable and self._device.type == "cpu":
            probe = self._parameters[min(reversed(trainable), key=lambda i: self._parameters[i].numel())]
            self._probe = probe
            groups = [group for optimizer in self._optimizers for group in optimizer.param_groups]
            if groups and not any(probe is it for group in groups for it in group["params"]):
                # `zero_grad` of this loop does not clear its gradient.
                self._uncleared = UNCLEARED + 1

    @guarded
    def _note_incoming(self, gradient: Tensor) -> None:
        """Compares the gradient of the first batch after an update with what it is added to."""
        probe = self._probe
        if probe is None or self._has_incoming:
            return
        self._has_incoming = True
        before = probe.grad
        is_left = before is not None and not before.is_sparse and bool(before.any())
        self._uncleared = self._uncleared + 1 if is_left else 0

    @guarded
    def _note_probe(self, parameter: Tensor) -> None:
        if self._session is not None:
            self._probe_norm = self._session.core.probe_norm()

    @guarded
    def before_update(self, optimizer: torch.optim.Optimizer) -> None:
        """Observes the gradients, before the optimizer changes the weights.

        The watch calls it itself, except where the loop passes a closure to ``optimizer.step``.
        """
        if self._session is None and all(it.observed for it in self._discoveries):
            self._begin()
        if self._session is not None and not self._session.core.quick_update():
            self._look_for_nan()
        if not self._observing or self._session is None:
            return
        begun = time.perf_counter()
        mine = {id(it) for group in optimizer.param_groups for it in group["params"]}
        self._observe_gradients(i for i, it in enumerate(self._parameters) if id(it) in mine)
        self._has_gradients = True
        self._sample_weights()
        self._schedule.spent(begun)

    def _enter_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        if self._is_skipped:
            return
        try:
            if self._quick is not None and self._session is not None and self._session.core.quick_update():
                self._passes = 0
                return
        except Exception as error:  # noqa: BLE001 - must not end the training
            return self.switch_off(error)
        self._begin_update(optimizer, args, kwargs)

    @guarded
    def _begin_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        self._has_stepped = self._quick is None
        self._count_passes()
        if not _closure(args, kwargs):
            if self._observing:
                self.before_update(optimizer)
            else:
                self._look_for_nan()
        elif self._observing and self._session is not None:
            self._sample_weights()

    def _count_passes(self) -> None:
        """Switches off detectors of the loss curve if updates use different numbers of forward passes."""
        passes, self._passes = self._passes, 0
        if self._session is not None and len(self._pass_counts) < _EPISODE_COUNTS:
            self._pass_counts.add(passes)
            if len(self._pass_counts) == _EPISODE_COUNTS:
                self._session.core.switch_off(list(_CURVE_PROBLEMS))

    @guarded
    def _leave_update(self, optimizer: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        """Observes the gradients of an update with a closure."""
        if not self._has_gradients and self._session and _closure(args, kwargs):
            mine = {id(it) for group in optimizer.param_groups for it in group["params"]}
            self._observe_gradients(i for i, it in enumerate(self._parameters) if id(it) in mine)

    def _sample_weights(self) -> None:
        """Samples the weights before the first update of a step: with several optimizers, each makes one."""
        assert self._session is not None
        if self._has_sample:
            return
        self._has_sample = True
        if self._device.type == "cpu":
            self._session.core.before_update([address(it) for it in self._parameters])
        else:
            self._queue.sample(self._weights())

    def _look_for_nan(self) -> None:
        """Finds the first layer with NaN before the update spreads it to all weights. On CPU only: it reads values."""
        probe = self._probe
        if probe is None or self._place is not None or self._session is None or probe.grad is None:
            return
        is_finite = bool(torch.isfinite(local(probe.grad)).all())
        # With a loss scale, an overflow is expected: the scaler skips the step.
        if not is_finite and self._scaler.scale == 1.0:
            self._place = self._first_nonfinite()
            if self._place is not None and self._place.phase == "input":
                self._observe_input()

    def _first_nonfinite(self) -> NonFinite | None:
        is_sharded = any(hasattr(it, "to_local") for it in self._parameters)
        # The forward pass of a sharded model needs all processes.
        if len(self._models) == 1 and self._batch is not None and not is_sharded:
            args, kwargs = self._batch
            found = first_nonfinite(self._models[0], args, keywords=kwargs)
            if found is not None:
                return found
        return last_nonfinite_gradient(self._layers)

    def _refine(self, finding: Finding) -> Finding:
        """Adds the first layer with NaN and the saved batch to the message, or a diff of the program as advice."""
        if finding.problem == "non_finite_loss":
            place = self._place or self._first_nonfinite()
            message = finding.message if place is None else f"{finding.message} {place}"
            directory = self.directory
            if directory is not None and self._batch is not None:
                path = save_batch(directory, finding.step, self._batch)
                message += f" The batch is saved as {path.name} in the run directory." if path else ""
            layers = [place.layer] if place and place.phase in ("forward", "backward") else finding.layers
            return replace(finding, message=message, layers=layers)
        if finding.problem == "unchanged_weights":
            finding = replace(finding, message=name_unchanged(finding.layers, self._layers, self._optimizers))
        if self._advisor is not None:
            return replace(finding, advice=self._advisor.advice(finding, self._known))
        return finding

    def _observe_gradients(self, indices: Iterable[int]) -> None:
        assert self._session is not None
        gradients: list[Tensor | None] = [None] * len(self._parameters)
        for index in indices:
            gradient = self._parameters[index].grad
            if gradient is not None and gradient.is_sparse:
                gradient = gradient.to_dense() if gradient.numel() <= LARGEST_SPARSE else None
            if gradient is not None:
                gradients[index] = dense(local(gradient))
        scale = self._scaler.scale
        before, self._probe_norm = self._probe_norm, None
        if self._device.type == "cpu":
            after = self._session.core.probe_norm()
            if before and after:
                # Gradients divided by this are those before clipping, without the loss scale.
                scale *= after / before
            addresses = [0 if it is None else it.data_ptr() for it in gradients]
            self._session.core.gradients(addresses, scale if math.isfinite(scale) and scale > 0 else 1.0)
        else:
            groups: dict[int, list[Tensor]] = {}
            at = 0
            for index, layer in enumerate(self._layers):
                count = len(layer.parameters)
                present = [it for it in gradients[at : at + count] if it is not None]
                if present:
                    groups[index] = present
                at += count
            # `GradScaler.step` has unscaled the gradients, except for a fused optimizer.
            self._queue.measure("gradient", groups, {i: self._layers[i].rows_are_units for i in groups}, 1.0)

    def _observe_weights(self) -> None:
        assert self._session is not None
        if self._device.type == "cpu":
            self._session.core.weights([address(it) for it in self._parameters])
            return
        self._queue.measure("weight", self._weights(), {}, 1.0)

    def _weights(self) -> dict[int, list[Tensor]]:
        """The weights of each layer that has some."""
        layers = enumerate(self._layers)
        return {i: [local(it).detach() for it in layer.parameters] for i, layer in layers if layer.parameters}

    def _observe(self, quantity: str, layer: int, tensor: Tensor, activation: Any) -> None:
        assert self._session is not None
        tensor = local(tensor).detach()
        if activation is not None:
            with torch.no_grad():
                tensor = activation(tensor)
        if tensor.device.type != "cpu":
            bounds = on_device.bounds(self._layers[layer].activation) if quantity == "output" else None
            self._queue.measure(quantity, {layer: [tensor]}, {}, 1.0, bounds)
            return
        tensor = dense(tensor)
        if quantity == "input":
            self._session.core.input(tensor.data_ptr(), tensor.numel(), format_of(tensor))
        else:
            self._session.core.output(layer, tensor.data_ptr(), tensor.numel(), format_of(tensor))

    @guarded
    def _observe_attention(self, index: int, query: Tensor, key: Tensor, scale: float | None) -> None:
        if index not in self._seen_outputs and is_measurable(query):
            begun = time.perf_counter()
            self._seen_outputs.add(index)
            self._observe("output", index, attention.logits(query, key, scale), None)
            self._schedule.spent(begun)

    def _arm(self) -> None:
        """Attaches the hooks that only an observed step needs."""
        if self._attention is not None:
            self._attention.attach()
        if self._probe is not None:
            self._observing_handles.append(self._probe.register_post_accumulate_grad_hook(self._note_probe))
            # The gradients of one of several optimizers may wait for its turn.
            if self._uncleared < UNCLEARED and len(self._optimizers) == 1:
                self._observing_handles.append(self._probe.register_hook(self._note_incoming))
        for optimizer in self._optimizers:
            self._observing_handles.append(optimizer.register_step_post_hook(self._leave_update))
        for index, layer in enumerate(self._layers):
            if layer.output_module is not None:
                hook = Hook(self._output_hook(index, layer))
                self._observing_handles.append(layer.output_module.register_forward_hook(hook))

    def _disarm(self) -> None:
        for handle in self._observing_handles:
            handle.remove()
        self._observing_handles.clear()
        self._seen_outputs.clear()
        if self._attention is not None:
            self._attention.detach()

    def _output_hook(self, index: int, layer: ObservedLayer) -> Any:
        def observe(module: nn.Module, args: Any, output: Any) -> None:
            # Evaluation, recomputed activations and copies of the model are not observed.
            if module is not layer.output_module or index in self._seen_outputs or not torch.is_grad_enabled() or self._is_off:
                return
            tensor = output if isinstance(output, Tensor) else first_tensor(output)
            if tensor is None or not is_measurable(tensor) or tensor.numel() == 0:
                return
            begun = time.perf_counter()
            self._seen_outputs.add(index)
            try:
                self._observe("output", index, tensor, layer.functional_activation)
            except Exception as error:  # noqa: BLE001 - must not end the training
                self.switch_off(error)
            self._schedule.spent(begun)

        return observe

    # The schedule

    def _plan_next(self, session: Session, begun: float) -> None:
        """Attaches or detaches the hooks that only an observed step needs."""
        schedule = self._schedule
        will_observe = schedule.observes(self._steps)
        if schedule.every is None or (self._observing and not will_observe):
            self._disarm()
        self._observing = will_observe
        self._quick = None
        if will_observe:
            self._has_gradients = self._has_sample = self._has_incoming = False
            self._seen_outputs.clear()
            if not self._observing_handles:
                self._arm()
        elif self._device.type == "cpu" and not self._queue:
            together = 1 if self._is_urgent else schedule.together
            session.core.start_quick_steps(schedule.next_observed(self._steps), together)
            self._quick = session.core.quick_step
        if schedule.every is None:
            schedule.spent(begun)
            if schedule.end_step():
                event = {"event": "observe_every", "step": session.steps, "every": schedule.every}
                session.core.event(json.dumps(event))

    @guarded
    def _end_quick_steps(self) -> None:
        """Reports what quick steps have found, and prepares the next step if that is observed."""
        session = self._session
        assert session is not None
        self._steps = session.steps
        if self._schedule.observes(self._steps):
            self._plan_next(session, 0.0)
        session.report_new()

    def _stop_quick_steps(self) -> None:
        """Continues with steps that the core cannot take alone."""
        session = self._session
        assert session is not None
        self._quick = None
        losses, self._has_stepped = session.core.stop_quick_steps()
        self._losses = [*losses, *self._losses]
        self._steps = session.steps
        session.report_new()

    def _drain(self, *, wait: bool) -> None:
        session = self._session
        if session is not None:
            self._queue.deliver(session, wait=wait)
            if self._quick is not None:
                session.core.flush()
                session.report_new()


def _as_list(optimizer: Any) -> list[torch.optim.Optimizer]:
    if optimizer is None:
        return []
    given = list(optimizer) if isinstance(optimizer, (list, tuple)) else [optimizer]
    # Wrappers such as Accelerate's hold the real optimizer. With any other wrapper, only `run.step` counts.
    found = [getattr(it, "optimizer", it) for it in given]
    return [it for it in found if isinstance(it, torch.optim.Optimizer)]


def _closure(args: Any, kwargs: Any) -> bool:
    """True if ``optimizer.step`` was called with a closure, which computes the gradients only then."""
    return (len(args) > 1 and args[1] is not None) or (bool(kwargs) and kwargs.get("closure") is not None)


def _rank() -> int:
    distributed = torch.distributed
    return distributed.get_rank() if distributed.is_available() and distributed.is_initialized() else 0
