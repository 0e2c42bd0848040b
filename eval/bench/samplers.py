"""Compares samplers by regret: the distance of the best trial from the minimum.

Called by `eval/bench/samplers`, which makes the Python environment. Every sampler runs a study of each
function for each seed, and the table has the medians over the seeds. Before that, the functions of both
languages are held to the same values.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

BENCH = Path(__file__).parent
REPOSITORY = BENCH.parent.parent
KEPT = BENCH / ".samplers"

sys.path.insert(0, str(BENCH / "contenders"))
from functions import Function, functions

OURS = ("random", "sobol", "tpe", "gp", "smac")
OTHERS = {
    "Optuna TPE": "optuna_samplers",
    "Optuna GP": "optuna_samplers",
    "SMAC3": "smac_sampler",
}

# Seeds below this are for development; reported results use others.
FIRST_SEED = 1000

# Relative difference below which medians tie.
TIE = 0.05

Regrets = dict[str, list[float]]


def main() -> None:
    arguments = parsed()
    known = functions()
    regret = built()
    check_values(regret, known)
    chosen = [known[name] for name in arguments.function or known]
    seeds = range(arguments.first_seed, arguments.first_seed + arguments.seeds)
    results: dict[str, Regrets] = {}
    for sampler in arguments.sampler or [*OURS, *OTHERS]:
        results[sampler] = {}
        for name, seed, costs in studies(sampler, regret, chosen, seeds, arguments):
            best = min((c for c in costs if c is not None and math.isfinite(c)), default=math.inf)
            value = best - known[name].minimum
            results[sampler].setdefault(name, []).append(value)
            if arguments.json:
                line = {"sampler": sampler, "function": name, "seed": seed, "regret": value}
                print(json.dumps(line), flush=True)
    out = sys.stderr if arguments.json else sys.stdout
    print(table(results, [f.name for f in chosen]), file=out)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="eval/bench/samplers", description=__doc__)
    parser.add_argument("--trials", type=int, default=60)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED)
    parser.add_argument("--sampler", action="append", choices=[*OURS, *OTHERS])
    parser.add_argument("--function", action="append", choices=list(functions()))
    parser.add_argument(
        "--impute",
        type=float,
        metavar="ERROR",
        help="impute the costs of all but the best fifth, with this error (our samplers only)",
    )
    parser.add_argument("--kept-only", action="store_true", help="only cached studies of other samplers")
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def built() -> Path:
    """Builds the example that runs Surefoot's samplers."""
    build = ["cargo", "build", "--release", "--quiet", "-p", "surefoot-tune", "--example", "regret"]
    subprocess.run(build, cwd=REPOSITORY, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", REPOSITORY / "target"))
    return target / "release" / "examples" / "regret"


def check_values(regret: Path, known: dict[str, Function]) -> None:
    """Fails if a function differs between Rust and Python."""
    lines = subprocess.run([regret, "values"], check=True, capture_output=True, text=True).stdout
    compared = set()
    for line in lines.splitlines():
        entry = json.loads(line)
        here = known[entry["function"]].value(entry["point"])
        there = math.nan if entry["value"] is None else entry["value"]
        same = math.isclose(here, there, rel_tol=1e-9, abs_tol=1e-9)
        if not same and not (math.isnan(here) and math.isnan(there)):
            sys.exit(f"{entry['function']} at {entry['point']} is {here} here and {there} in Rust")
        compared.add(entry["function"])
    if compared != set(known):
        sys.exit(f"not in both languages: {compared ^ set(known)}")


def studies(
    sampler: str,
    regret: Path,
    chosen: list[Function],
    seeds: range,
    arguments: argparse.Namespace,
) -> Iterable[tuple[str, int, list[float | None]]]:
    """Costs of every study of a sampler, by function and seed."""
    if sampler in OURS:
        how = ["run"] if arguments.impute is None else ["impute", str(arguments.impute)]
        command = [regret, *how, sampler, str(seeds.start), str(seeds.stop), str(arguments.trials)]
        command += [function.name for function in chosen]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        for line in ran.stdout.splitlines():
            study = json.loads(line)
            yield study["function"], study["seed"], study["costs"]
        return
    # Seed by seed, so that an interrupted comparison covers every function equally.
    for seed in seeds:
        for function in chosen:
            kept = KEPT / f"{sampler} {function.name} {arguments.trials} {seed}.json"
            if not kept.exists():
                if arguments.kept_only:
                    continue
                contender = importlib.import_module(OTHERS[sampler])
                costs = contender.costs(sampler, function, seed, arguments.trials)
                KEPT.mkdir(exist_ok=True)
                unfinished = kept.with_suffix(".unfinished")
                unfinished.write_text(json.dumps(costs))
                unfinished.rename(kept)
            yield function.name, seed, json.loads(kept.read_text())


def table(results: dict[str, Regrets], names: list[str]) -> str:
    """Medians, numbers of studies, and each sampler compared with Surefoot's TPE."""
    lines = ["| function | " + " | ".join(results) + " |"]
    lines.append("| --- |" + " ---: |" * len(results))
    for name in names:
        cells = [median(regrets.get(name)) for regrets in results.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    counts = [min((len(r.get(name, [])) for name in names), default=0) for r in results.values()]
    lines.append("| seeds | " + " | ".join(map(str, counts)) + " |")
    if "tpe" in results:
        cells = [against(results["tpe"], regrets, names) for regrets in results.values()]
        lines.append("| tpe wins, ties, losses | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def median(regrets: list[float] | None) -> str:
    return f"{statistics.median(regrets):.2g}" if regrets else "-"


def against(tpe: Regrets, other: Regrets, names: list[str]) -> str:
    """Numbers of functions on which TPE's median is lower, equal and higher."""
    if other is tpe:
        return ""
    wins = ties = losses = 0
    for name in names:
        if name not in other:
            continue
        ours, theirs = statistics.median(tpe[name]), statistics.median(other[name])
        if abs(ours - theirs) <= TIE * max(ours, theirs):
            ties += 1
        elif ours < theirs:
            wins += 1
        else:
            losses += 1
    return f"{wins}, {ties}, {losses}"


if __name__ == "__main__":
    main()
