"""Measures the overhead of observation and indicators. Called by `eval/bench/checking`.

Alone, layers are not even observed; observed, as every run is, nobody looks at it; checked, the indicators do.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from tune import HERE, TASKS, Task, prepare, sized

WAYS = {
    "alone": ["--pruner", "none", "--set", "watch.every=never"],
    "observed": ["--pruner", "none"],
    # Every trial is protected, so the indicators run but stop none.
    "checked": ["--pruner", "diagnosis", "--set", "tune.protect=1000000"],
}


def seconds(task: Task, study: Path, runs: Path, trials: int, workers: int, way: str) -> dict[int, float]:
    """Seconds of each complete trial."""
    shutil.rmtree(runs, ignore_errors=True)
    command = [os.environ.get("SUREFOOT", "surefoot"), "tune", str(study), "--json", "--quiet", "--runs", str(runs)]
    command += ["--trials", str(trials), "--sampler", "random", "--seed", "1"]
    command += ["--workers", str(workers), "--threads", "1", *sized(task), *WAYS[way]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{task.name}: {done.stderr.strip()}")
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [event for event in events if event["event"] == "trial" and event["state"] == "complete"]
    return {event["number"]: event["seconds"] for event in ended}


def together(times: dict[str, dict[int, float]]) -> dict[str, float]:
    """Seconds of the trials that completed in every variant. NaN trials are always pruned."""
    common = set.intersection(*(set(way) for way in times.values()))
    return {name: sum(way[number] for number in common) for name, way in times.items()}


def percent(ratios: list[float]) -> str:
    low, middle, high = (100 * (pick(ratios) - 1) for pick in (min, median, max))
    return f"{middle:+.1f}% ({low:+.1f} to {high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(prog="eval/bench/checking", description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE / ".data", help="output of eval/bench/data")
    parser.add_argument("--task", action="append", choices=[t.name for t in TASKS])
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="parallel trials")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            if given.task and task.name not in given.task:
                continue
            study = prepare(task, given.data, Path(folder))
            rounds: list[dict[str, float]] = []
            for _ in range(given.rounds):
                runs = Path(folder) / "runs"
                rounds.append(
                    together(
                        {way: seconds(task, study, runs, given.trials, given.workers, way) for way in WAYS}
                    )
                )
            row: dict[str, Any] = {"task": task.name, "alone": median(times["alone"] for times in rounds)}
            for way in ("observed", "checked"):
                row[way] = [times[way] / times["alone"] for times in rounds]
            rows.append(row)
    out = sys.stderr if given.json else sys.stdout
    print("| task | alone | observed | with the indicators |\n| --- | --- | --- | --- |", file=out)
    for row in rows:
        cells = [row["task"], f"{row['alone']:.1f} s", percent(row["observed"]), percent(row["checked"])]
        print(f"| {' | '.join(cells)} |", file=out)
    if given.json:
        print(json.dumps({"workers": given.workers, "trials": given.trials, "rows": rows}))


if __name__ == "__main__":
    main()
