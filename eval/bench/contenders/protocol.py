"""Protocol between `speed.py` and a contender: one request and one answer per line on stdin and stdout.

A contender stays alive between requests, so that imports, and the warm-up before its first
measurement of a case, are never part of a measurement.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from time import perf_counter

# Threads of every framework.
THREADS = 2

# Samples and batches as in `plans/*.toml`.
MLP_SAMPLES, MLP_BATCH, MLP_EPOCHS = 1000, 32, 50
BATCH = 64

# Trains for a while and returns the number of steps; the first call is the warm-up.
Train = Callable[[], int]


def serve(cases: dict[str, Callable[[], Train]]) -> None:
    """Answers requests (one case name per line) until stdin closes."""
    ready: dict[str, Train] = {}
    print(json.dumps({"ready": sorted(cases)}), flush=True)
    for line in sys.stdin:
        name = line.strip()
        if name not in ready:
            ready[name] = cases[name]()
            ready[name]()
        started = perf_counter()
        steps = ready[name]()
        seconds = perf_counter() - started
        print(json.dumps({"steps": steps, "seconds": seconds}), flush=True)
