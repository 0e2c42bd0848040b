"""Chooses the steps at which layers are observed."""

from __future__ import annotations

import math
import statistics
import time

BUDGET = 0.015
"""Share of the training time that observations may take. Steps that are not observed take some more."""

CALIBRATION = 10
"""First steps, all observed, in which the interval is chosen. The first two are not timed: they warm up."""

LARGEST_INTERVAL = 256

SHORT_STEP = 0.005
"""Seconds below which a step is short, so that a delay of some steps is not noticed."""


class ObserveSchedule:
    """Observes every n-th step, with n chosen in the first steps so that they take about 1.5% of the time.

    Args:
        every: The interval, if it is given.
        total: Planned steps; 0 if unknown. A short training is observed about 25 times at least.

    Example:
        >>> schedule = ObserveSchedule(every=4)
        >>> [step for step in range(12) if schedule.observes(step)]
        [0, 4, 8]
    """

    def __init__(self, every: int | None = None, total: int = 0) -> None:
        if every is not None and every < 1:
            raise ValueError(f"every must be at least 1, not {every}")
        self.every = every
        self.is_short = False
        self._total = total
        self._spent = 0.0
        self._last: float | None = None
        self._timings: list[tuple[float, float]] = []

    def observes(self, done: int) -> bool:
        """Returns True if the step after ``done`` steps is observed."""
        return self.every is None or done % self.every == 0

    def spent(self, since: float) -> None:
        """Adds the time since ``since``, of ``time.perf_counter``, to the cost of the current step."""
        self._spent += time.perf_counter() - since

    def end_step(self) -> bool:
        """Ends a step and returns True if the interval has just been chosen."""
        if self.every is not None:
            return False
        now = time.perf_counter()
        cost, self._spent = self._spent, 0.0
        if self._last is not None:
            self._timings.append((now - self._last, cost))
        self._last = now
        if len(self._timings) < CALIBRATION:
            return False
        timed = self._timings[2:]
        # The quick quarter: on a busy machine, a step also waits for other processes.
        whole = statistics.quantiles([step for step, _ in timed], n=4)[0]
        cost = statistics.median(spent for _, spent in timed)
        training = max(whole - cost, 1e-9)
        self.is_short = training < SHORT_STEP
        every = min(max(math.ceil(cost / (BUDGET * training)), 1), LARGEST_INTERVAL)
        self.every = min(every, max(self._total // 25, 1)) if self._total else every
        return True
