"""Chooses the steps at which layers are observed."""

from __future__ import annotations

import math
import statistics
import time

BUDGET = 0.01
"""Share of the training time that observations may take. Steps that are not observed take some more."""

COLD = 2.0
"""Time of an observation between steps that are not observed, relative to one of several in a row. The code and the
tables that it needs are no longer in the caches; measured with small models."""

CALIBRATION = 10
"""First steps, all observed, in which the interval is chosen. The first two are not timed: they warm up."""

LARGEST_INTERVAL = 256

SHORT_STEP = 0.005
"""Seconds below which a step is short, so that a delay of some steps is not noticed."""

TOGETHER = 16
"""Short steps that are delivered to the detectors together."""


class ObserveSchedule:
    """Observes every n-th step, with n chosen in the first steps so that they take at most about 1% of the time.

    The chosen n is a power of two, so that it rarely differs between two runs of a program on the same machine. Until
    8 n steps are done, every (t / 8)-th step t is observed, rounded to a power of two: the first steps show most
    problems, and there the schedule does not depend on the clock.

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
        self.together = 1
        self._is_given = every is not None
        self._total = total
        self._spent = 0.0
        self._last: float | None = None
        self._timings: list[tuple[float, float]] = []

    def interval(self, done: int) -> int:
        """Interval of observations after ``done`` steps."""
        if self.every is None:
            return 1
        return self.every if self._is_given else min(self.every, _power_of_two(done / 8))

    def observes(self, done: int) -> bool:
        """Returns True if the step after ``done`` steps is observed."""
        return done % self.interval(done) == 0

    def next_observed(self, done: int) -> int:
        """Number of steps after which the next step is observed, after ``done`` steps."""
        interval = self.interval(done)
        return (done // interval + 1) * interval

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
        cost *= COLD
        self.together = TOGETHER if training < SHORT_STEP else 1
        self.every = min(_power_of_two(2 * cost / (BUDGET * training)), LARGEST_INTERVAL)
        if self._total:
            self.every = min(self.every, _power_of_two(self._total / 25))
        return True


def _power_of_two(number: float) -> int:
    """The largest power of two up to ``number``, and at least 1."""
    return 1 << int(math.log2(max(number, 1.0)))
