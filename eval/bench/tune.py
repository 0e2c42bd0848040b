"""Compares searches with and without diagnosis, as BTTackler's section 4 does. Called by `eval/bench/tune`.

Every search is `surefoot tune` with one worker on one thread and a budget of multiplications, so its trials and their
order are a function of the study, the sampler, the pruners and the seed.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Task:
    """A search of the paper: study, data and budget."""

    name: str
    data: str
    # Training and validation samples, out of those that `eval/bench/data` fetches by default. With a small
    # validation split the best trial would be a matter of luck.
    train: int
    validation: int
    fetched: int
    # Multiplications of about ninety complete trials of average size.
    operations: float
    # The paper's baseline rule (section 4.1).
    rule: str
    maximize: bool


TASKS = [
    Task("cifar10-cnn", "cifar10", 500, 1000, 4000, 1.5e12, "extrapolation", True),
    Task("cifar10-lstm", "cifar10", 500, 1000, 4000, 8.75e11, "extrapolation", True),
    Task("exchange-transformer", "exchange", 500, 500, 2000, 6e11, "median", False),
]
SAMPLERS = ["random", "gp", "tpe", "smac"]
# No pruners, the paper's baseline rule, the seven indicators, the same as published, the default pruners, the default
# scheduler with the points of the sampler, and the same with its own points, which is the default of `surefoot tune`.
VARIANTS = ["plain", "rule", "diagnosis", "bttackler", "surefoot", "freeze_thaw", "default"]
# Each indicator alone, as published (Table 5).
INDICATORS = ["agv", "eag", "plc", "erg", "lar", "ulc", "nmg"]
# All samples and the paper's epochs.
FULL_EPOCHS = 50
# Fractions of the budget in Table 3: 1, 3 and 6 hours in the paper.
MOMENTS = [1 / 6, 1 / 2, 1.0]


@dataclass(frozen=True)
class Trial:
    """A trial that has ended or was paused."""

    number: int
    state: str
    # None if the trial failed, was pruned, or has no finite value.
    value: float | None
    # Budget used at its end.
    when: float
    reason: str | None


@dataclass(frozen=True)
class Search:
    """A search and its trials in the order of their ends and pauses."""

    task: Task
    sampler: str
    variant: str
    seed: int
    trials: list[Trial]

    def top(self, count: int) -> list[float]:
        # A trial that was paused is there several times.
        latest = {t.number: t.value for t in self.trials}
        values = sorted((v for v in latest.values() if v is not None), reverse=self.task.maximize)
        return values[:count]

    def best(self) -> Trial | None:
        counting = [t for t in self.trials if t.value is not None]
        sign = -1 if self.task.maximize else 1
        return min(counting, key=lambda t: (sign * (t.value or 0.0), t.number), default=None)

    def course(self) -> list[tuple[float, float]]:
        """Times and values of successive bests."""
        course: list[tuple[float, float]] = []
        for trial in self.trials:
            if trial.value is None:
                continue
            better = max if self.task.maximize else min
            if not course or better(trial.value, course[-1][1]) != course[-1][1]:
                course.append((trial.when, trial.value))
        return course

    def reaches(self, value: float) -> float | None:
        """Time at which a trial reached `value`."""
        for trial in self.trials:
            if trial.value is not None and (trial.value >= value if self.task.maximize else trial.value <= value):
                return trial.when
        return None


def variants(task: Task) -> dict[str, list[str]]:
    return {
        "plain": ["none"],
        "rule": [task.rule],
        "diagnosis": ["diagnosis"],
        "bttackler": [],
        "surefoot": ["diagnosis", "prospect"],
        "freeze_thaw": ["diagnosis"],
        "default": [],
        **{indicator: [indicator] for indicator in INDICATORS},
    }


def prepare(task: Task, data: Path, work: Path, full: bool = False) -> Path:
    """Copies the study to its data."""
    source = data / (f"{task.data}-full.npz" if full else f"{task.data}.npz")
    if not source.exists():
        option = " --full" if full else ""
        raise SystemExit(f"{source} is not there; fetch it with: eval/bench/data --dir {data} --only {task.data}{option}")
    folder = work / ("studies-full" if full else "studies")
    folder.mkdir(parents=True, exist_ok=True)
    study = folder / f"{task.name}.toml"
    shutil.copy(HERE / "studies" / f"{task.name}.toml", study)
    shutil.copy(source, folder / f"{task.data}.npz")
    return study


def sized(task: Task) -> list[str]:
    """Options that select the samples of the task."""
    validation = task.validation / task.fetched
    # The rest is a test split, which costs nothing until the end.
    left_over = 1 - (task.train + task.validation) / task.fetched
    return ["--set", f"data.split.validation={validation:.4f}", "--set", f"data.split.test={left_over:.4f}"]


def search(
    task: Task, sampler: str, variant: str, seed: int, study: Path, work: Path, budget: float, full: bool
) -> Search:
    """Runs a search, or reads the cached result for the same study, data and options."""
    name = f"{task.name}-{variant if variant == 'default' else f'{sampler}-{variant}'}-{seed}"
    result = work / f"{name}.jsonl"
    options = ["--workers", "1", "--threads", "1"]
    if variant != "default":
        options += ["--sampler", sampler]
    options += ["--seed", str(seed), "--set", f"tune.operations={budget:.0f}"]
    if variant == "rule":
        # Published rules have no protection.
        options += ["--set", "tune.protect=0"]
    if variant == "bttackler" or variant in INDICATORS:
        options += ["--set", "tune.rules=bttackler"]
    if variant == "freeze_thaw":
        options += ["--set", "tune.scheduler=freeze_thaw"]
    for pruner in variants(task)[variant]:
        options += ["--pruner", pruner]
    options += ["--set", f"training.epochs={FULL_EPOCHS}"] if full else sized(task)
    data = hashlib.sha256((study.parent / f"{task.data}.npz").read_bytes()).hexdigest()
    heading = json.dumps({"event": "search", "study": study.read_text(), "data": data, "options": options})
    if not result.exists() or result.open().readline().strip() != heading:
        runs = work / "runs" / name
        # An interrupted search starts again, because its output is incomplete.
        shutil.rmtree(runs, ignore_errors=True)
        command = [os.environ.get("SUREFOOT", "surefoot"), "tune", str(study), "--json", "--quiet"]
        done = subprocess.run([*command, "--runs", str(runs), *options], capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise SystemExit(f"{name}: {done.stderr.strip()}")
        partial = result.with_suffix(".partial")
        partial.write_text(f"{heading}\n{done.stdout}")
        partial.replace(result)
        if variant != "plain":
            shutil.rmtree(runs, ignore_errors=True)
    trials: list[Trial] = []
    spent: dict[int, float] = {}
    for line in result.read_text().splitlines():
        event: dict[str, Any] = json.loads(line)
        if event["event"] != "trial":
            continue
        spent[event["number"]] = event["operations"]
        used = sum(spent.values())
        reason = event.get("reason") or {}
        counts = event["state"] in ("complete", "paused") or reason.get("counts", False)
        value = event["value"] if counts and isinstance(event["value"], float | int) else None
        trials.append(Trial(event["number"], event["state"], value, used, reason.get("by")))
    return Search(task, sampler, variant, seed, trials)


def hit_ratio(search: Search, plain: Search) -> float:
    """Top10HR (Definition 3.3): fraction of the ten best trials of both searches found by this one."""
    pool = [(v, True) for v in search.top(10)] + [(v, False) for v in plain.top(10)]
    # Ties are shared.
    pool.sort(key=lambda entry: entry[0], reverse=search.task.maximize)
    if len(pool) <= 10:
        return mean(ours for _, ours in pool) if pool else 0.5
    edge = pool[9][0]
    inside = [ours for value, ours in pool[:10] if value != edge]
    tied = [ours for value, ours in pool if value == edge]
    return (sum(inside) + (10 - len(inside)) * mean(tied)) / 10


def reaching(search: Search, plain: Search, budget: float) -> float:
    """Budget used until the best value of the plain search was reached; all of it if never."""
    best = plain.best()
    if best is None or best.value is None:
        return budget
    reached = search.reaches(best.value)
    return budget if reached is None else reached


def reaching_on_average(searches: list[Search], value: float, budget: float) -> float:
    """Budget used until the mean best value of the searches reached `value`."""
    courses = [s.course() for s in searches]
    sign = -1 if searches[0].task.maximize else 1
    for moment in sorted({when for course in courses for when, _ in course}):
        bests = [[best for when, best in course if when <= moment] for course in courses]
        # Tolerance for the order of summation.
        if all(bests) and sign * mean(b[-1] for b in bests) <= sign * value + 1e-12 * abs(value):
            return moment
    return budget


def mean_or_none(values: Iterable[float]) -> float | None:
    """Mean, or None without values."""
    known = list(values)
    return mean(known) if known else None


def tables(searches: list[Search], budgets: dict[str, float]) -> dict[str, Any]:
    by = {(s.task.name, s.sampler, s.variant, s.seed): s for s in searches}
    seeds = sorted({s.seed for s in searches})
    tasks = [t for t in TASKS if any(s.task == t for s in searches)]
    samplers = [name for name in SAMPLERS if any(s.sampler == name for s in searches)]
    compared = [name for name in VARIANTS[1:] + INDICATORS if any(s.variant == name for s in searches)]
    rows: list[dict[str, Any]] = []
    for task in tasks:
        for sampler in samplers:
            for variant in ["plain", *compared]:
                group = [by[task.name, sampler, variant, seed] for seed in seeds]
                plain = [by[task.name, sampler, "plain", seed] for seed in seeds]
                budget = budgets[task.name]
                counts = [mean(len({t.number for t in s.trials if t.when <= budget * m}) for s in group) for m in MOMENTS]
                row = {
                    "task": task.name,
                    "sampler": sampler,
                    "variant": variant,
                    "top1": mean(s.top(1)[0] for s in group if s.top(1)),
                    "top10": mean(mean(s.top(10)) for s in group if s.top(10)),
                    "trials": counts,
                    "pruned": mean(sum(t.state == "pruned" for t in s.trials) for s in group),
                    "reached": mean(reaching(s, p, budget) for s, p in zip(group, plain)) / budget,
                }
                if variant != "plain":
                    row["top10hr"] = mean(hit_ratio(s, p) for s, p in zip(group, plain))
                    # TSBA (Definition 3.4) of averaged times, as in the paper's Table 4.
                    before = mean(reaching(p, p, budget) for p in plain) / budget
                    row["tsba"] = 1 - row["reached"] / before
                    # The same for the average over all seeds, which is less noisy.
                    bests = [p.best() for p in plain]
                    average = mean(best.value for best in bests if best is not None and best.value is not None)
                    theirs, plains = (reaching_on_average(s, average, budget) for s in (group, plain))
                    row["tsba_average"] = 1 - theirs / plains
                    base = [mean(len({t.number for t in s.trials if t.when <= budget * m}) for s in plain) for m in MOMENTS]
                    row["more"] = [c / b - 1 if b else 0.0 for c, b in zip(counts, base)]
                rows.append(row)
    overall = {}
    for variant in compared:
        group = [row for row in rows if row["variant"] == variant]
        overall[variant] = {
            "tsba": mean(row["tsba"] for row in group),
            "tsba_average": mean(row["tsba_average"] for row in group),
            "top10hr": mean(row["top10hr"] for row in group),
            "more": mean(row["more"][-1] for row in group),
            # The paper reports TSBA with SMAC only, and numbers of trials with random sampling only.
            "tsba_smac": mean_or_none(row["tsba"] for row in group if row["sampler"] == "smac"),
            "more_random": mean_or_none(row["more"][-1] for row in group if row["sampler"] == "random"),
        }
    # With random sampling, trials of the same number have the same point, so the plain search shows the full
    # curves of pruned trials. The default search has other points.
    spared = {}
    for variant in (v for v in compared if v != "default"):
        lost = total = 0
        for task in tasks:
            for seed in seeds:
                if (task.name, "random", "plain", seed) not in by:
                    continue
                best = by[task.name, "random", "plain", seed].best()
                if best is None:
                    continue
                total += 1
                twin = [t for t in by[task.name, "random", variant, seed].trials if t.number == best.number]
                lost += any(t.value is None for t in twin)
        spared[variant] = {"searches": total, "best_pruned": lost}
    return {"rows": rows, "overall": overall, "true_best": spared, "seeds": seeds}


def show(result: dict[str, Any], out: Any) -> None:
    def percent(value: float) -> str:
        return f"{100 * value:.0f}%"

    print("\nTable 2: the best trials (accuracy, or mean squared error) and Top10HR\n", file=out)
    print("| task | search | top 1 | top 10 | Top10HR |\n| --- | --- | --- | --- | --- |", file=out)
    for row in result["rows"]:
        ratio = percent(row["top10hr"]) if "top10hr" in row else ""
        name = row["sampler"] if row["variant"] == "plain" else f"{row['sampler']}, {row['variant']}"
        print(f"| {row['task']} | {name} | {row['top1']:.4f} | {row['top10']:.4f} | {ratio} |", file=out)
    print("\nTable 3: trials in a sixth, a half and all of the budget\n", file=out)
    print("| task | search | 1/6 | 1/2 | all | pruned |\n| --- | --- | --- | --- | --- | --- |", file=out)
    for row in result["rows"]:
        name = row["sampler"] if row["variant"] == "plain" else f"{row['sampler']}, {row['variant']}"
        cells = [
            f"{count:.0f}" + (f" ({more:+.0%})" if "more" in row else "")
            for count, more in zip(row["trials"], row.get("more", [0, 0, 0]))
        ]
        print(f"| {row['task']} | {name} | {' | '.join(cells)} | {row['pruned']:.0f} |", file=out)
    print("\nTable 4: the share of the budget until the best of the plain search was reached, and TSBA\n", file=out)
    compared = list(result["overall"])
    print(f"| task | sampler | plain | {' | '.join(compared)} |", file=out)
    print(f"| --- | --- | --- {'| --- ' * len(compared)}|", file=out)
    cells: dict[tuple[str, str], list[str]] = {}
    for row in result["rows"]:
        cell = percent(row["reached"]) + (f" ({row['tsba']:+.0%})" if "tsba" in row else "")
        cells.setdefault((row["task"], row["sampler"]), []).append(cell)
    for (task, sampler), line in cells.items():
        print(f"| {task} | {sampler} | {' | '.join(line)} |", file=out)
    alone = [row for row in result["rows"] if row["variant"] in INDICATORS]
    if alone:
        print("\nTable 5: trials that each indicator alone prunes\n", file=out)
        print(f"| task | sampler | {' | '.join(INDICATORS)} |", file=out)
        print(f"| --- | --- {'| --- ' * len(INDICATORS)}|", file=out)
        for task, sampler in dict.fromkeys((row["task"], row["sampler"]) for row in alone):
            counts = {r["variant"]: f"{r['pruned']:.0f}" for r in alone if (r["task"], r["sampler"]) == (task, sampler)}
            print(f"| {task} | {sampler} | {' | '.join(counts.get(name, '') for name in INDICATORS)} |", file=out)
    print("\nIn all\n", file=out)
    head = "| | TSBA | of averages | with smac | Top10HR | trials in the budget | with random | best trial pruned |"
    print(f"{head}\n{'| --- ' * 8}|", file=out)
    print("| target | 45% | | | 75% | +70% | | never |", file=out)
    print("| paper | | | 40% | 72% | | +69% | |", file=out)
    for variant, row in result["overall"].items():
        best = result["true_best"].get(variant)
        smac = "" if row["tsba_smac"] is None else percent(row["tsba_smac"])
        random = "" if row["more_random"] is None else f"{row['more_random']:+.0%}"
        cells = [variant, percent(row["tsba"]), percent(row["tsba_average"]), smac, percent(row["top10hr"])]
        cells += [f"{row['more']:+.0%}", random]
        cells.append(f"{best['best_pruned']} of {best['searches']}" if best else "")
        print(f"| {' | '.join(cells)} |", file=out)


def main() -> None:
    parser = argparse.ArgumentParser(prog="eval/bench/tune", description=__doc__)
    parser.add_argument("--data", type=Path, default=HERE / ".data", help="output of eval/bench/data")
    kept = "where searches are kept; remove those that another version has made"
    parser.add_argument("--work", type=Path, default=HERE / ".tune", help=kept)
    parser.add_argument("--task", action="append", choices=[t.name for t in TASKS])
    parser.add_argument("--sampler", action="append", choices=SAMPLERS)
    parser.add_argument("--variant", action="append", choices=VARIANTS, help="compared with `plain`, which always runs")
    parser.add_argument("--indicators", action="store_true", help="only each indicator alone, as published (Table 5)")
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds")
    parser.add_argument("--first-seed", type=int, default=3000, help="seeds below 3000 were used in development")
    parser.add_argument("--scale", type=float, default=1.0, help="fraction of the budget")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="parallel searches")
    parser.add_argument("--full", action="store_true", help="all samples and the paper's epochs")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    tasks = [t for t in TASKS if not given.task or t.name in given.task]
    samplers = [s for s in SAMPLERS if not given.sampler or s in given.sampler]
    seeds = range(given.first_seed, given.first_seed + given.seeds)
    given.work.mkdir(parents=True, exist_ok=True)
    more = 100 if given.full else 1
    budgets = {t.name: t.operations * given.scale * more for t in tasks}
    studies = {t.name: prepare(t, given.data, given.work, given.full) for t in tasks}
    chosen = ["plain"] + [v for v in VARIANTS if v != "plain" and (not given.variant or v in given.variant)]
    if given.indicators:
        chosen = ["plain", *INDICATORS]
    # The default search has no sampler: one is compared with the plain searches of all.
    jobs = [
        (t, sampler, variant, seed)
        for seed in seeds
        for t in tasks
        for sampler in samplers
        for variant in chosen
        if variant != "default" or sampler == samplers[0]
    ]
    done: list[Search] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        futures = [
            pool.submit(search, *job, studies[job[0].name], given.work, budgets[job[0].name], given.full)
            for job in jobs
        ]
        for future in futures:
            done.append(future.result())
            print(f"\r{len(done)} of {len(jobs)} searches", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    default = [s for s in done if s.variant == "default"]
    done += [replace(s, sampler=sampler) for s in default for sampler in samplers[1:]]
    result = tables(done, budgets)
    show(result, sys.stderr if given.json else sys.stdout)
    if given.json:
        print(json.dumps(result))


if __name__ == "__main__":
    main()
