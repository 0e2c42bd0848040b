"""Compares the time of trials that are looked into with that of the same trials alone. Called by `bench/checking`.

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
    "alone": ["--stopper", "none", "--set", "watch.every=never"],
    "observed": ["--stopper", "none"],
    # The indicators find what they find, but every trial is among so many best and goes on.
    "checked": ["--stopper", "diagnosis", "--set", "tune.protect=1000000"],
}


def seconds(task: Task, study: Path, runs: Path, trials: int, workers: int, stopper: list[str]) -> float:
    """How long the trials took, without what comes before and after them."""
    shutil.rmtree(runs, ignore_errors=True)
    command = [os.environ.get("SUREFOOT", "surefoot"), "tune", str(study), "--json", "--quiet", "--runs", str(runs)]
    command += ["--trials", str(trials), "--sampler", "random", "--seed", "1"]
    command += ["--workers", str(workers), "--threads", "1", *sized(task), *stopper]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{task.name}: {done.stderr.strip()}")
    events: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]
    ended = [event for event in events if event["event"] == "trial"]
    if len(ended) != trials or any(event["state"] != "complete" for event in ended):
        raise SystemExit(f"{task.name}: a trial was ended, so that the times cannot be compared")
    return sum(event["seconds"] for event in ended)


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench/checking", description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE / ".data", help="where bench/data has written")
    parser.add_argument("--task", action="append", choices=[t.name for t in TASKS])
    parser.add_argument("--trials", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=1, help="trials side by side")
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
                    {way: seconds(task, study, runs, given.trials, given.workers, WAYS[way]) for way in WAYS}
                )
            row: dict[str, Any] = {"task": task.name, "alone": median(times["alone"] for times in rounds)}
            for way in ("observed", "checked"):
                row[way] = median(times[way] / times["alone"] for times in rounds)
            rows.append(row)
    out = sys.stderr if given.json else sys.stdout
    print("| task | alone | observed | checked |\n| --- | --- | --- | --- |", file=out)
    for row in rows:
        print(f"| {row['task']} | {row['alone']:.2f} s | {row['observed']:.3f} | {row['checked']:.3f} |", file=out)
    if given.json:
        print(json.dumps({"workers": given.workers, "trials": given.trials, "rows": rows}))


if __name__ == "__main__":
    main()
