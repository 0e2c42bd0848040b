"""Recovery from bad optimizer steps without a restart: ``surefoot run --recover`` and ``surefoot.watch(recover=True)``.

A step is bad if its loss or gradient is not finite, or if its gradient is much larger than those before. It is skipped:
the gradients are dropped, and statistics that the batch has changed are put back. If skipping does not help, the learning
rate is reduced; if that does not help, the model and the optimizer return to the state of an earlier good step, and the
training continues with the batches that follow. All decisions follow from values of the training, so a replay makes the
same ones.
"""

from __future__ import annotations

import collections
import math
import sys
from collections.abc import Callable
from typing import Any

from surefoot.run.record import Recording, models_of, tell

SKIPS = 3
"""Steps that are skipped in a row before the next action."""
REDUCTIONS = 2
"""Reductions of the learning rate before the next action."""
ROLLBACKS = 2
FACTOR = 0.5
"""Factor of the learning rate."""
EXTREME = 10.0
"""Multiple of the largest gradient norm of the recent good steps above which a norm is extreme."""
WINDOW, WARM_UP = 64, 16
EVERY = 50
"""Interval of the states to return to, in good steps."""


class Recovery:
    """Skips bad steps of PyTorch optimizers, reduces the learning rate, and returns to good states, in this order."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._recoveries: dict[int, OptimizerRecovery] = {}

    def install(self) -> None:
        """Adds the hooks to PyTorch; before those of the record, which see the result."""
        module: Any = sys.modules["torch.optim.optimizer"]
        module.register_optimizer_step_pre_hook(self._before_step)
        create = module.Optimizer.__init__

        def created(optimizer: Any, *args: Any, **kwargs: Any) -> None:
            create(optimizer, *args, **kwargs)
            self._recovery_of(optimizer)

        module.Optimizer.__init__ = created

    def _recovery_of(self, optimizer: Any) -> OptimizerRecovery:
        recovery = self._recoveries.get(id(optimizer))
        if recovery is None or recovery.optimizer is not optimizer:
            recovery = self._recoveries[id(optimizer)] = OptimizerRecovery(optimizer, self._report)
        return recovery

    def _before_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        # Losses differ between processes, which must decide alike; gradients do not.
        losses = [] if self.recording.parallel is not None else self.recording.losses
        self._recovery_of(optimizer).judge(losses, self.recording.step + 1)

    def _report(self, step: int, action: str, message: str) -> None:
        tell(f"step {step}: {message}")
        text = f"{message[0].upper()}{message[1:]}."
        fields = {"step": step, "severity": "warning", "since": step, "layers": [], "evidence": [], "message": text}
        self.recording.event("finding", problem="bad_step", action=action, **fields)

    def state(self) -> list[dict[str, Any]]:
        """Returns the counters for a checkpoint, by optimizer in the order of their creation."""
        return [recovery.state() for recovery in self._recoveries.values()]

    def restore(self, state: list[dict[str, Any]], optimizers: list[Any]) -> None:
        """Sets the counters of a checkpoint."""
        self._recoveries.clear()
        for saved, optimizer in zip(state, optimizers):
            self._recovery_of(optimizer).restore(saved)

    @property
    def optimizers(self) -> list[Any]:
        """Optimizers in the order of their creation."""
        return [recovery.optimizer for recovery in self._recoveries.values()]


class OptimizerRecovery:
    """Recovery of one optimizer: its actions so far, and the state to return to."""

    def __init__(self, optimizer: Any, report: Callable[[int, str, str], None]) -> None:
        self.optimizer, self._report = optimizer, report
        self.norms: collections.deque[float] = collections.deque(maxlen=WINDOW)
        self.skips = self.reductions = self.rollbacks = self.good_steps = 0
        self.is_exhausted = False
        self._good: list[Any] = []
        self._good_state: dict[str, Any] = {}
        # Kept from the start: the first batch may be bad.
        self._buffers = self._statistics()
        self._kept = [buffer.clone() for buffer in self._buffers]

    def _parameters(self) -> list[Any]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def _statistics(self) -> list[Any]:
        return [b for model in models_of(self._parameters()) for b in model.buffers()]

    def judge(self, losses: list[Any], step: int) -> bool:
        """Returns true after dropping the gradients of a bad step."""
        torch = sys.modules["torch"]
        gradients = [p.grad for p in self._parameters() if p.grad is not None]
        dense = [g.coalesce().values() if g.is_sparse else g for g in gradients]
        norm = float(torch.linalg.vector_norm(torch.stack(torch._foreach_norm(dense)))) if dense else 0.0
        loss = float(losses[-1]) if losses and losses[-1].numel() == 1 else 0.0
        reason = self._reason(loss, norm)
        if reason is None:
            self._accept(norm)
            return False
        if self.is_exhausted and math.isfinite(loss) and math.isfinite(norm):
            return False
        self._drop()
        if not self.is_exhausted:
            self._act(step, reason)
        return True

    def _reason(self, loss: float, norm: float) -> str | None:
        if not math.isfinite(loss):
            return f"the loss is {'NaN' if math.isnan(loss) else 'infinite'}"
        if not math.isfinite(norm):
            return f"the gradient norm is {'NaN' if math.isnan(norm) else 'infinite'}"
        if len(self.norms) >= WARM_UP and norm > EXTREME * max(self.norms) > 0:
            return f"the gradient norm {norm:.3g} is {norm / max(self.norms):.0f} times the largest recent one"
        return None

    def _accept(self, norm: float) -> None:
        torch = sys.modules["torch"]
        self.norms.append(norm)
        self.skips = 0
        if self._buffers:
            torch._foreach_copy_(self._kept, self._buffers)
        if self.good_steps % EVERY == 0:
            self.keep()
        self.good_steps += 1

    def keep(self) -> None:
        """Makes the state before this step the one to return to."""
        self._good = [p.detach().clone() for p in self._parameters()]
        self._good_state = _copied(self.optimizer.state_dict()["state"])

    def _drop(self) -> None:
        """Skips the step: without gradients, an optimizer changes nothing."""
        for parameter in self._parameters():
            parameter.grad = None
        if self._buffers:
            sys.modules["torch"]._foreach_copy_(self._buffers, self._kept)

    def _act(self, step: int, reason: str) -> None:
        self.skips += 1
        if self.skips < SKIPS:
            self._report(step, "skip", f"{reason}; the step was skipped")
        elif self.reductions < REDUCTIONS:
            self.skips, self.reductions = 0, self.reductions + 1
            for group in self.optimizer.param_groups:
                group["lr"] = group["lr"] * FACTOR
            rate = float(self.optimizer.param_groups[0]["lr"])
            self._report(step, "learning_rate", f"{reason}; skipped, and the learning rate was reduced to {rate:.3g}")
        elif self.rollbacks < ROLLBACKS and self._good:
            self.skips, self.rollbacks = 0, self.rollbacks + 1
            self._roll_back()
            back = self.good_steps - ((self.good_steps - 1) // EVERY) * EVERY
            self._report(step, "roll_back", f"{reason}; returned to the state of {back} good steps ago")
        else:
            self.is_exhausted = True
            self._report(step, "give_up", f"{reason}; no action is left, and from now on only steps that are not finite are skipped")

    def _roll_back(self) -> None:
        torch = sys.modules["torch"]
        with torch.no_grad():
            for parameter, good in zip(self._parameters(), self._good):
                parameter.copy_(good)
        state = self.optimizer.state_dict()
        state["state"] = _copied(self._good_state)
        self.optimizer.load_state_dict(state)

    def state(self) -> dict[str, Any]:
        """Returns what later decisions depend on."""
        counts = {n: getattr(self, n) for n in ("skips", "reductions", "rollbacks", "good_steps", "is_exhausted")}
        good = {"parameters": self._good, "state": self._good_state}
        return {**counts, "norms": list(self.norms), "good": good, "kept": self._kept}

    def restore(self, saved: dict[str, Any]) -> None:
        """Sets what ``state`` has returned."""
        for name in ("skips", "reductions", "rollbacks", "good_steps", "is_exhausted"):
            setattr(self, name, saved[name])
        self.norms.extend(saved["norms"])
        self._good, self._good_state = saved["good"]["parameters"], saved["good"]["state"]
        self._buffers, self._kept = self._statistics(), saved["kept"]


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value.clone() if isinstance(value, sys.modules["torch"].Tensor) else value
