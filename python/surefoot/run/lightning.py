"""Training loops of Lightning: ``Trainer.fit``.

A checkpoint holds the trainer with all that it refers to. A resumed run calls ``fit`` again, executes one iteration, which
creates what the trainer keeps about its metrics, and restores the trainer; its loops continue from restored counters.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from surefoot.run.loops import Entry, Loops
from surefoot.run.record import Recording

PACKAGES = ("lightning.pytorch", "pytorch_lightning")


class TrainerFit:
    """Makes ``Trainer.fit`` a training loop of the program."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.loops: Loops | None = None
        self._entries: list[Entry] = []

    def install(self, package: str) -> None:
        """Changes the Lightning package of this name; called once it has been imported."""
        trainer: Any = sys.modules[package].Trainer
        epoch_loop: Any = sys.modules[f"{package}.loops.training_epoch_loop"]._TrainingEpochLoop
        fit, advance = trainer.fit, epoch_loop.advance

        @functools.wraps(fit)
        def counted(trainer: Any, *args: Any, **kwargs: Any) -> Any:
            return self._fit(trainer, functools.partial(fit, trainer, *args, **kwargs))

        @functools.wraps(advance)
        def advanced(loop: Any, *args: Any, **kwargs: Any) -> Any:
            if self.loops is not None and self._entries:
                entry = self._entries[-1]
                if entry.saved is not None and entry.is_first:
                    entry.is_first, self.recording.is_muted = False, True
                else:
                    self.loops.iterate(entry)
            return advance(loop, *args, **kwargs)

        trainer.fit = counted
        epoch_loop.advance = advanced

    def _fit(self, trainer: Any, fit: Callable[[], Any]) -> Any:
        if self.loops is None:
            return fit()
        entry = self.loops.begin_call("fit", f"{trainer.max_epochs} {trainer.max_steps}")
        entry.roots = {"trainer": trainer}
        self._entries.append(entry)
        try:
            return None if entry.is_skipped else fit()
        finally:
            self._entries.pop()
            self.loops.leave(entry.info.name)
