"""Compares the training speed of Surefoot with PyTorch and Keras.

Also measures the cost of watching, and the gain of a second core in medium cases. Called by
`eval/bench/speed`, which creates the Python environment. All contenders of a case train in turn,
round after round (A B C A B C ...), so that other load on the machine affects them alike; medians are
compared, in medium cases the fastest rounds. That load is measured too: on shared cores PyTorch's
threads wait for each other and take up to a hundred times as long, so no target counts as met on a
busy machine. For the Python contenders, imports, compilation and one warm-up are excluded; for Surefoot
the seconds are those of its summary, without process start and exit. All contenders use the same number
of threads, unless the name says otherwise.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

BENCH = Path(__file__).parent
REPOSITORY = BENCH.parent.parent
DATA = BENCH / ".data"
SUREFOOT = REPOSITORY / "target" / "release" / "surefoot"

sys.path.insert(0, str(BENCH / "contenders"))
from protocol import BATCH, THREADS

PYTORCH = "PyTorch"
PYTORCH_FUSED = "PyTorch, fused Adam"
PYTORCH_LOADER = "PyTorch, DataLoader"
PYTORCH_COMPILED = "PyTorch, torch.compile"
KERAS = "Keras on TensorFlow"
UNWATCHED = "Surefoot"
ONE_WORKER = "Surefoot, one worker"
WATCHED = "Surefoot, every step watched"


@dataclass(frozen=True)
class Case:
    """Model that all contenders train."""

    name: str
    title: str
    contenders: tuple[str, ...]
    per_step: bool  # report milliseconds per step instead of seconds of the whole training
    medium: bool = False  # large enough to gain from every core


CASES = [
    Case(
        "mlp",
        "MLP 10x8, 1,000 circle samples, batch 32, 50 epochs (PyTorch on 1 thread)",
        (KERAS, PYTORCH, PYTORCH_FUSED, PYTORCH_LOADER),
        False,
    ),
    Case("lenet", "LeNet-5, 28x28x1, batch 64", (PYTORCH,), True),
    Case("cnn", "4-conv CNN, 32x32x3, batch 64", (PYTORCH,), True),
    Case("lstm", "LSTM(64), 50 steps of 16 features, batch 64", (PYTORCH,), True),
    Case("wide_mlp", "MLP 784-2048-2048-10, batch 128", (PYTORCH,), True, medium=True),
    Case("transformer", "3 transformer blocks, width 256, 64 tokens, batch 32", (PYTORCH,), True, medium=True),
    Case("gpt", "6 transformer blocks, width 384, 128 tokens, batch 8", (PYTORCH,), True, medium=True),
    Case("residual", "residual CNN, 64-128-256 channels, 32x32x3, batch 32", (PYTORCH,), True, medium=True),
    Case("resnet18", "ResNet-18, 32x32x3, batch 64", (PYTORCH,), True, medium=True),
]


@dataclass(frozen=True)
class Measurement:
    """One training by one contender."""

    steps: int
    seconds: float
    peak_bytes: int | None = None

    @property
    def step_seconds(self) -> float:
        return self.seconds / self.steps


@dataclass
class Result:
    """All rounds of a case, by contender."""

    case: Case
    rounds: dict[str, list[Measurement]] = field(default_factory=dict)

    def seconds(self, contender: str) -> list[float]:
        """Seconds of a step or of the whole training, depending on the case, by round."""
        return [m.step_seconds if self.case.per_step else m.seconds for m in self.rounds[contender]]

    def median(self, contender: str) -> float:
        return statistics.median(self.seconds(contender))

    def speedup(self, other: str, contender: str = UNWATCHED) -> float:
        """Speed of the contender relative to `other`: by medians, in medium cases by the fastest rounds.

        Other load only ever makes a round slower, and medium cases have few rounds.
        """
        compare = min if self.case.medium else statistics.median
        return compare(self.seconds(other)) / compare(self.seconds(contender))

    def watching_time(self) -> float:
        """Relative time that watching adds: median over rounds of the ratio of neighbouring runs."""
        pairs = zip(self.rounds[WATCHED], self.rounds[UNWATCHED])
        return statistics.median(w.step_seconds / u.step_seconds for w, u in pairs) - 1

    def watching_memory(self) -> float:
        peaks = {
            c: statistics.median(m.peak_bytes for m in self.rounds[c] if m.peak_bytes is not None)
            for c in (WATCHED, UNWATCHED)
        }
        return peaks[WATCHED] / peaks[UNWATCHED] - 1


@dataclass(frozen=True)
class Target:
    """Promised figure, measured figure and result."""

    text: str
    measured: str
    met: bool


# --- contenders ----------------------------------------------------------------------------------

Run = Callable[[Case], Measurement]


@contextmanager
def python_contender(module: str) -> Iterator[Callable[[str], Measurement]]:
    """Process of a contender; call it with the name of a case."""
    environment = os.environ | {"OMP_NUM_THREADS": str(THREADS), "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(
        [sys.executable, BENCH / "contenders" / f"{module}.py"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdin is not None and process.stdout is not None
    stdin, stdout = process.stdin, process.stdout

    def answer() -> dict[str, float]:
        if not (line := stdout.readline()):
            raise SystemExit(f"eval/bench/contenders/{module}.py ended early; run it alone to see why")
        return json.loads(line)

    def run(name: str) -> Measurement:
        print(name, file=stdin, flush=True)
        reply = answer()
        return Measurement(int(reply["steps"]), reply["seconds"])

    answer()
    try:
        yield run
    finally:
        stdin.close()
        process.wait()


def surefoot(case: Case, watch: str, workers: int = THREADS) -> Measurement:
    """Trains the plan of a case once, in a temporary directory."""
    with tempfile.TemporaryDirectory() as runs, tempfile.TemporaryFile("w+") as stdout:
        command: list[str | Path] = [SUREFOOT, "train", BENCH / "plans" / f"{case.name}.toml"]
        command += ["--json", "--quiet", "--no-repair", "--runs", runs]
        command += ["--workers", str(workers), "--set", f"watch.every={watch}"]
        process = subprocess.Popen(command, stdout=stdout)
        # wait4, unlike Popen.wait, returns the resource usage of this child alone.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            raise SystemExit(f"surefoot train {case.name} ended with {process.returncode}")
        stdout.seek(0)
        lines = stdout.read().splitlines()
    if not lines:
        raise SystemExit(f"surefoot train {case.name} printed no summary")
    summary = json.loads(lines[-1])
    kibibyte = 1 if sys.platform == "darwin" else 1024
    return Measurement(summary["steps"], summary["seconds"], usage.ru_maxrss * kibibyte)


# --- quiet ---------------------------------------------------------------------------------------

# Largest share of the cores that other processes may use for a valid comparison.
QUIET = 0.05


@dataclass(frozen=True)
class Clock:
    """Processor seconds of the whole machine, and of this process with its finished children."""

    wall: float
    machine: float
    own: float

    @classmethod
    def now(cls) -> Clock | None:
        """Current reading; None without Linux's `/proc/stat`."""
        try:
            fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
        except OSError:
            return None
        user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, fields[:8])
        machine = (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
        usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return cls(time.monotonic(), machine, sum(u.ru_utime + u.ru_stime for u in usages))

    def taken_by_others(self, later: Clock) -> float:
        """Share of all cores that other processes used between two readings."""
        others = (later.machine - self.machine) - (later.own - self.own)
        return max(others, 0.0) / ((later.wall - self.wall) * (os.cpu_count() or 1))


# --- measuring -----------------------------------------------------------------------------------


def write_data() -> None:
    """Writes the sequences of the LSTM case, noise around a mean that encodes the class, and random tokens."""
    random = np.random.default_rng(1)
    samples = 10 * BATCH
    DATA.mkdir(exist_ok=True)
    tokens = random.integers(64, size=(8, 129))
    np.save(DATA / "gpt_tokens.npy", tokens[:, :-1])
    np.save(DATA / "gpt_next.npy", tokens[:, 1:, None])
    labels = random.integers(10, size=samples)
    features = random.normal(size=(samples, 50, 16)) + 0.1 * labels[:, None, None]
    np.save(DATA / "lstm_features.npy", features.astype(np.float32))
    np.save(DATA / "lstm_labels.npy", labels.astype(np.int64))


def contenders_of(case: Case, with_surefoot: bool, compiled: bool) -> list[str]:
    """Contenders of a case, in the order of a round."""
    contenders = [*case.contenders]
    if case.medium and compiled:
        contenders.append(PYTORCH_COMPILED)
    if with_surefoot:
        contenders += [UNWATCHED, WATCHED]
        if case.medium:
            contenders.append(ONE_WORKER)
    return contenders


def measure(
    cases: list[Case], rounds: int, with_surefoot: bool, compiled: bool, progress: Callable[[str], None]
) -> list[Result]:
    with ExitStack() as stack:
        pytorch = stack.enter_context(python_contender("pytorch"))
        runs: dict[str, Run] = {
            PYTORCH: lambda case: pytorch(case.name),
            PYTORCH_FUSED: lambda case: pytorch(f"{case.name}_fused"),
            PYTORCH_LOADER: lambda case: pytorch(f"{case.name}_loader"),
            PYTORCH_COMPILED: lambda case: pytorch(f"{case.name}_compiled"),
            UNWATCHED: lambda case: surefoot(case, "never"),
            WATCHED: lambda case: surefoot(case, "1"),
            ONE_WORKER: lambda case: surefoot(case, "never", workers=1),
        }
        if any(KERAS in case.contenders for case in cases):
            keras = stack.enter_context(python_contender("keras_tensorflow"))
            runs[KERAS] = lambda case: keras(case.name)
        results = []
        for case in cases:
            contenders = contenders_of(case, with_surefoot, compiled)
            result = Result(case, {contender: [] for contender in contenders})
            for number in range(rounds):
                progress(f"{case.name}: round {number + 1} of {rounds}")
                for contender in contenders:
                    result.rounds[contender].append(runs[contender](case))
            if not case.per_step:
                check_steps(result)
            results.append(result)
    return results


def check_steps(result: Result) -> None:
    """Raises unless all contenders took the same number of steps."""
    steps = {c: measured[0].steps for c, measured in result.rounds.items()}
    if len(set(steps.values())) > 1:
        raise SystemExit(f"{result.case.name}: the contenders took different numbers of steps: {steps}")


# --- judging -------------------------------------------------------------------------------------


def targets(results: list[Result]) -> Iterator[Target]:
    """Targets for speed and for the cost of watching."""
    for result in results:
        name = result.case.name
        promised = {KERAS: 20.0, PYTORCH: 5.0} if name == "mlp" else {PYTORCH: 1.0}
        for other, least in promised.items():
            speedup = result.speedup(other)
            text = f"{name}: not slower than {other}" if least == 1 else f"{name}: {least:g}x faster than {other}"
            yield Target(text, f"{speedup:.2f}x", speedup >= least)
        if result.case.medium:
            speedup = result.speedup(ONE_WORKER)
            yield Target(f"{name}: {THREADS} workers are 1.8x as fast as one", f"{speedup:.2f}x", speedup >= 1.8)
        if PYTORCH_COMPILED in result.rounds:
            speedup = result.speedup(PYTORCH_COMPILED)
            yield Target(f"{name}: at most 1.2x slower than torch.compile", f"{speedup:.2f}x", speedup >= 1 / 1.2)
    for result in results:
        name = result.case.name
        most = 0.10 if name == "mlp" else 0.03
        time = result.watching_time()
        yield Target(f"{name}: watching takes at most {most:.0%} more time", f"{time:+.1%}", time <= most)
        memory = result.watching_memory()
        yield Target(f"{name}: watching takes at most 2% more memory", f"{memory:+.1%}", memory <= 0.02)


def tables(results: list[Result], judged: list[Target], rounds: int, others: float | None) -> Iterator[str]:
    yield f"medians of {rounds} rounds, {THREADS} threads each, {os.cpu_count()} cores"
    quiet = others is None or others <= QUIET
    if others is not None:
        yield f"other processes used {others:.0%} of the cores" + ("" if quiet else ": too much for a comparison, run it again")
    for result in results:
        unit, factor = ("ms a step", 1e3) if result.case.per_step else ("s", 1.0)
        yield f"\n{result.case.title}"
        for contender, measured in result.rounds.items():
            values = [factor * seconds for seconds in result.seconds(contender)]
            line = f"  {contender:<30}{statistics.median(values):>10.3f} {unit:<10}"
            line += f"{min(values):>10.3f} to {max(values):.3f}"
            if UNWATCHED in result.rounds and contender not in (UNWATCHED, WATCHED):
                line += f"   Surefoot is {result.speedup(contender):.2f}x as fast"
            if (peak := measured[0].peak_bytes) is not None:
                line += f"   peak {peak / 2**20:.0f} MiB"
            yield line
        if WATCHED in result.rounds:
            yield f"  watching: time {result.watching_time():+.1%}, memory {result.watching_memory():+.1%}"
    if judged:
        yield "\ntargets"
        width = max(len(target.text) for target in judged)
        for target in judged:
            verdict = "MISSED" if not target.met else "met" if quiet else "unsure"
            yield f"  {verdict:<6}  {target.text:<{width}}  {target.measured}"


def as_json(results: list[Result], judged: list[Target], rounds: int, others: float | None) -> str:
    cases = [
        {
            "case": result.case.name,
            "contenders": {
                contender: {"median_seconds": result.median(contender), "rounds": [asdict(m) for m in measured]}
                for contender, measured in result.rounds.items()
            },
        }
        for result in results
    ]
    report = {
        "threads": THREADS,
        "rounds": rounds,
        "taken_by_others": others,
        "quiet": others is None or others <= QUIET,
        "cases": cases,
        "targets": [asdict(target) for target in judged],
    }
    return json.dumps(report)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="eval/bench/speed", description=(__doc__ or "").splitlines()[0])
    names = [case.name for case in CASES]
    parser.add_argument("--case", action="append", choices=names, help="only this case; may be repeated")
    parser.add_argument("--rounds", type=int, default=5, help="number of trainings per contender (at least 3)")
    parser.add_argument("--compile", action="store_true", help="also measure torch.compile (minutes to set up)")
    parser.add_argument("--without-surefoot", action="store_true", help="measure only the other contenders")
    parser.add_argument("--json", action="store_true", help="one JSON object on stdout, tables on stderr")
    return parser.parse_args()


def build_surefoot() -> None:
    subprocess.run(["cargo", "build", "--release", "--quiet"], cwd=REPOSITORY, check=True)


def main() -> int:
    options = arguments()
    rounds = max(options.rounds, 3)
    with_surefoot = not options.without_surefoot
    if with_surefoot:
        build_surefoot()
    write_data()
    cases = [case for case in CASES if options.case is None or case.name in options.case]
    before = Clock.now()
    progress = partial(print, file=sys.stderr, flush=True)
    results = measure(cases, rounds, with_surefoot, options.compile, progress)
    after = Clock.now()
    others = before.taken_by_others(after) if before and after else None
    judged = list(targets(results)) if with_surefoot else []
    for line in tables(results, judged, rounds, others):
        print(line, file=sys.stderr if options.json else sys.stdout)
    if options.json:
        print(as_json(results, judged, rounds, others))
    quiet = others is None or others <= QUIET
    return 0 if quiet and all(target.met for target in judged) else 1


if __name__ == "__main__":
    sys.exit(main())
