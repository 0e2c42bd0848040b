"""The parts that accompany a script: keys, loaders, the record, checkpoints."""

from __future__ import annotations

import functools
import os
import sys
from pathlib import Path
from typing import Any

from surefoot.run import environment
from surefoot.run.imports import when_imported
from surefoot.run.keras import Fit, Steps
from surefoot.run.keys import START, Keys
from surefoot.run.lightning import PACKAGES, TrainerFit
from surefoot.run.loaders import Loaders
from surefoot.run.loops import Loops
from surefoot.run.parallel import Parallel, processes
from surefoot.run.record import Recording, tell
from surefoot.run.recover import Recovery
from surefoot.run.tensorflow import TensorFlow


class Program:
    """The files that belong to a script: those below its directory that are not installed packages."""

    def __init__(self, script: Path) -> None:
        self.script = script
        self.directory = str(script.parent) + os.sep
        self._known: dict[str, bool] = {str(script): True}

    def contains(self, filename: str) -> bool:
        """Returns true if the file is a part of the program."""
        known = self._known.get(filename)
        if known is None:
            path = os.path.abspath(filename)
            package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
            known = (
                not filename.startswith("<")
                and path.startswith(self.directory)
                and os.sep + "site-packages" + os.sep not in path
                and os.sep + "dist-packages" + os.sep not in path
                and not path.startswith(package)
                and not path.startswith(os.path.dirname(os.__file__))
            )
            self._known[filename] = known
        return known


class Runtime:
    """The parts that make a program deterministic and follow its steps."""

    def __init__(
        self,
        seed: int,
        program: Program,
        threads: int | None = None,
        recovers: bool = False,
        shards: int | None = None,
    ) -> None:
        self.program, self.threads = program, threads
        self.keys = Keys(seed)
        self.loaders = Loaders(self.keys, program.contains)
        self.recording = Recording(None, self.keys, self.loaders)
        self.recovery = Recovery(self.recording) if recovers else None
        place = processes()
        self.parallel = None if place is None else Parallel(*place, shards, self.keys, self.loaders)
        if self.parallel is not None:
            self.recording.parallel = self.parallel
            self.parallel.on_difference = self._report_difference
        self.tensorflow = TensorFlow(self.keys, threads)
        self.steps = Steps(self.recording)
        self.fit = Fit(self.recording)
        self.trainer_fit = TrainerFit(self.recording)
        self.clock = environment.Clock(program.contains, self.keys.clock_reads)

    def install(self) -> None:
        """Changes the standard library now, and each framework when it has been imported."""
        self.keys.install_python()
        self.keys.apply(START)
        environment.sort_listings()
        environment.order_arrivals()
        self.clock.install()
        when_imported("numpy", self.keys.install_numpy)
        when_imported("torch", self._install_torch)
        when_imported("tensorflow", self._install_tensorflow)
        when_imported("keras", self._install_keras)
        when_imported("tf_keras", self._install_legacy_keras)
        for package in PACKAGES:
            when_imported(package, functools.partial(self.trainer_fit.install, package))

    def _install_torch(self) -> None:
        torch = sys.modules["torch"]
        if self.threads is not None:
            torch.set_num_threads(self.threads)
        self.keys.install_torch()
        self.loaders.install()
        self.recording.install()
        if self.recovery is not None:
            self.recovery.install()
        if self.parallel is not None:
            self.parallel.install()
        else:
            environment.warn_of_spawn(tell)
        environment.use_deterministic_algorithms(self._report_operation)

    def _install_tensorflow(self) -> None:
        self.keys.confine_threads()
        self.tensorflow.install()
        self.steps.install_functions()

    def _install_keras(self) -> None:
        keras = sys.modules["keras"]
        if self.recovery is not None:
            tell("--recover has an effect on optimizers of PyTorch only, not on those of Keras")
        self.keys.confine_threads()
        base: Any = sys.modules["keras.src.optimizers.base_optimizer"].BaseOptimizer
        self.steps.install_optimizer(base, "apply")
        self.steps.install_model(keras.Model)
        self.fit.install()

    def _install_legacy_keras(self) -> None:
        optimizers = sys.modules["tf_keras"].optimizers
        self.steps.install_optimizer(optimizers.Optimizer, "apply_gradients")
        self.steps.install_optimizer(optimizers.legacy.Optimizer, "apply_gradients")

    def _report_operation(self, operation: str, where: str) -> None:
        tell(f"{operation} has no deterministic implementation ({where}); the results may differ between runs")
        self.recording.event("nondeterministic_operation", operation=operation, at=where)

    def _report_difference(self, ranks: list[int]) -> None:
        step, names = self.recording.step, ", ".join(str(rank) for rank in ranks)
        tell(f"step {step}: the parameters of process {names} differ from those of process 0, which is recorded")
        self.recording.event("processes_differ", processes=ranks)

    def follow(self, loops: Loops) -> None:
        """Counts the training loops of libraries too."""
        self.fit.loops = self.trainer_fit.loops = loops
        self.tensorflow.is_resuming = lambda: loops.resume is not None
        self.tensorflow.is_trial = lambda: self.recording.is_muted


_current: Runtime | None = None


def deterministic(seed: int = 0) -> None:
    """Makes the program deterministic from here on: two executions with the same seed compute the same bits.

    Call it first, before other imports. It replaces the seeds of all generators, the order of data loaders and of
    directory listings, and selects deterministic algorithms, as ``surefoot run`` does. It records nothing; the hash
    order of strings stays random unless ``PYTHONHASHSEED`` is set.

    Args:
        seed: Seed of every random draw.

    Example:
        >>> import surefoot
        >>> surefoot.deterministic(seed=0)
        >>> import random
        >>> first = random.random()
        >>> surefoot.deterministic(seed=0)
        >>> random.random() == first
        True
    """
    global _current
    if _current is not None:
        _current.keys.restore({"seed": seed, "counters": {}})
        _current.keys.apply(START)
        return
    script = Path(getattr(sys.modules["__main__"], "__file__", None) or "script.py").resolve()
    _current = Runtime(seed, Program(script))
    _current.install()
