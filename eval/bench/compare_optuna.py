"""Searches of Surefoot and Optuna over real trainings, with equal wall time or processor time.

Every search runs in a process of its own, with one worker and one thread, and all methods of a seed run one after the
other. The best value of a search at a time is the lowest that any of its trials has reported by then, for all methods
alike: pruned and paused trials count. Objectives return a validation loss after each epoch. Processor time is for
machines that run other programs too; it does not count waiting for the disk.
"""

from __future__ import annotations

import argparse
import functools
import inspect
import json
import math
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

EPOCHS = 30
METHODS = ("surefoot", "surefoot, pruners", "optuna, TPE and median", "optuna, TPE and Hyperband")
SHARES = (0.25, 0.5, 1.0)
"""Parts of the budget at which the best value is printed."""

Training = Iterator[float]


@functools.cache
def digits_data() -> Any:
    import torch
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(7))
    return torch.tensor(images, dtype=torch.float32).view(-1, 1, 8, 8)[order] / 16, torch.tensor(labels)[order]


def digits(trial: Any, state: dict[str, Any]) -> Training:
    """A small convolutional network on the handwritten digits of scikit-learn."""
    import torch
    from torch import nn

    x, y = digits_data()
    torch.manual_seed(0)
    width = trial.suggest_int("width", 4, 32, log=True)
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    momentum = trial.suggest_float("momentum", 0.0, 0.99)
    decay = trial.suggest_float("decay", 1e-6, 1e-1, log=True)
    dropout = trial.suggest_float("dropout", 0.0, 0.7)
    batch = trial.suggest_int("batch", 16, 256, log=True)
    activation = trial.suggest_categorical("activation", ["ReLU", "Tanh", "Sigmoid"])
    model = nn.Sequential(
        nn.Conv2d(1, width, 3, padding=1), getattr(nn, activation)(), nn.MaxPool2d(2),
        nn.Conv2d(width, 2 * width, 3, padding=1), getattr(nn, activation)(), nn.Flatten(),
        nn.Dropout(dropout), nn.Linear(32 * width, 10),
    )  # fmt: skip
    optimizer = torch.optim.SGD(model.parameters(), lr=rate, momentum=momentum, weight_decay=decay)
    state.update(model=model, optimizer=optimizer)
    yield math.nan
    while True:
        model.train()
        for rows in torch.randperm(1200).split(batch):
            loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            value = float(nn.functional.cross_entropy(model(x[1200:]), y[1200:]))
        # After the context, which would stay active while the training waits.
        yield value


@functools.cache
def text_data() -> Any:
    import torch

    source = inspect.getsource(argparse)[:60_000]
    letters = {letter: index for index, letter in enumerate(sorted(set(source)))}
    data = torch.tensor([letters[letter] for letter in source])
    rows = data[: len(data) // 51 * 51].view(-1, 51)
    return rows[torch.randperm(len(rows), generator=torch.Generator().manual_seed(7))], letters


def text(trial: Any, state: dict[str, Any]) -> Training:
    """A recurrent network that predicts the next character of Python's own source."""
    import torch
    from torch import nn

    rows, letters = text_data()
    kept, held = rows[:900], rows[900:]
    torch.manual_seed(0)
    width = trial.suggest_int("width", 16, 128, log=True)
    rate = trial.suggest_float("rate", 1e-5, 1.0, log=True)
    kind = trial.suggest_categorical("kind", ["GRU", "LSTM"])
    optimizer_name = trial.suggest_categorical("optimizer", ["Adam", "SGD"])
    clip = trial.suggest_float("clip", 0.01, 10.0, log=True)
    batch = trial.suggest_int("batch", 8, 128, log=True)
    embedding, output = nn.Embedding(len(letters), width), nn.Linear(width, len(letters))
    recurrent = getattr(nn, kind)(width, width, batch_first=True)
    model = nn.ModuleList([embedding, recurrent, output])
    optimizer = getattr(torch.optim, optimizer_name)(model.parameters(), lr=rate)
    state.update(model=model, optimizer=optimizer)

    def loss_of(part: torch.Tensor) -> torch.Tensor:
        logits = output(recurrent(embedding(part[:, :-1]))[0])
        return nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten())

    yield math.nan
    while True:
        for part in kept[torch.randperm(len(kept))].split(batch):
            optimizer.zero_grad()
            loss_of(part).backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
        with torch.no_grad():
            value = float(loss_of(held))
        yield value


OBJECTIVES: dict[str, Callable[[Any, dict[str, Any]], Training]] = {"digits": digits, "text": text}
DATA = {"digits": digits_data, "text": text_data}


class Clock:
    """Values of a search by the time since its start."""

    def __init__(self, seconds: float, is_processor: bool) -> None:
        self.seconds = seconds
        self._now = time.process_time if is_processor else time.monotonic
        self._begun = self._now()
        self.values: list[tuple[float, float]] = []

    def note(self, value: float) -> None:
        self.values.append((self._now() - self._begun, value))

    def is_over(self) -> bool:
        return self._now() - self._begun >= self.seconds


def search_surefoot(objective: str, seed: int, clock: Clock, resume: bool) -> int:
    import surefoot

    def run(trial: surefoot.Trial) -> None:
        state: dict[str, Any] = {}
        training = OBJECTIVES[objective](trial, state)
        next(training)
        trial.restore(**state)
        for epoch in trial.epochs(EPOCHS):
            value = next(training)
            clock.note(value)
            trial.report(value, epoch)
            if clock.is_over() or trial.should_stop():
                if resume:
                    trial.checkpoint(**state)
                return

    with tempfile.TemporaryDirectory() as runs:
        return len(surefoot.tune(run, stop=clock.is_over, resume=resume, seed=seed, runs=runs).trials)


def search_optuna(objective: str, seed: int, clock: Clock, pruner: Any) -> int:
    import optuna

    def run(trial: optuna.Trial) -> float:
        training = OBJECTIVES[objective](trial, {})
        next(training)
        best = math.inf
        for epoch in range(EPOCHS):
            value = next(training)
            clock.note(value)
            best = min(best, value) if math.isfinite(value) else best
            # Optuna's median pruner judges a trial by its best report, so NaN alone would not end it.
            trial.report(value if math.isfinite(value) else 1e9, epoch)
            if clock.is_over() or trial.should_prune():
                raise optuna.TrialPruned
        return min(best, 1e9)

    def end(study: optuna.Study, trial: optuna.trial.FrozenTrial) -> None:
        if clock.is_over():
            study.stop()

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), pruner=pruner)
    study.optimize(run, callbacks=[end])
    return len(study.trials)


def search(method: str, objective: str, seed: int, seconds: float, is_processor: bool) -> dict[str, Any]:
    """Runs one search and returns its best values."""
    # Imports and data are loaded before the clock starts.
    import optuna
    import torch

    import surefoot  # noqa: F401

    torch.set_num_threads(1)
    DATA[objective]()
    clock = Clock(seconds, is_processor)
    if method.startswith("surefoot"):
        trials = search_surefoot(objective, seed, clock, resume=method == "surefoot")
    else:
        hyperband = optuna.pruners.HyperbandPruner(1, EPOCHS)
        pruner = hyperband if method.endswith("Hyperband") else optuna.pruners.MedianPruner()
        trials = search_optuna(objective, seed, clock, pruner)
    within = [(at, value) for at, value in clock.values if at <= seconds and math.isfinite(value)]
    best = [min((value for at, value in within if at <= share * seconds), default=math.inf) for share in SHARES]
    return {
        "objective": objective,
        "method": method,
        "seed": seed,
        "seconds": seconds,
        "trials": trials,
        "epochs": len(within),
        "best": best,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--objective", choices=list(OBJECTIVES), action="append", help="by default all")
    parser.add_argument("--seconds", type=float, default=300.0, help="time of a search")
    parser.add_argument("--processor-time", action="store_true", help="count processor time instead of wall time")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=1000)
    parser.add_argument("--json", action="store_true", help="print one JSON object for each search")
    parser.add_argument("--search", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.search:
        print(json.dumps(search(**json.loads(arguments.search))))
        return
    for objective in arguments.objective or list(OBJECTIVES):
        results: dict[str, list[dict[str, Any]]] = {method: [] for method in METHODS}
        for seed in range(arguments.first_seed, arguments.first_seed + arguments.seeds):
            for method in METHODS:
                job = {
                    "method": method,
                    "objective": objective,
                    "seed": seed,
                    "seconds": arguments.seconds,
                    "is_processor": arguments.processor_time,
                }
                done = subprocess.run(
                    [sys.executable, __file__, "--search", json.dumps(job)],
                    stdout=subprocess.PIPE,
                    text=True,
                    check=True,
                )
                results[method].append(json.loads(done.stdout.splitlines()[-1]))
                if arguments.json:
                    print(json.dumps(results[method][-1]), flush=True)
        kind = "processor" if arguments.processor_time else "wall"
        print(f"{objective}: {arguments.seeds} seeds, {arguments.seconds:.0f} s of {kind} time for each search")
        heads = [f"best at {share:.0%}" for share in SHARES]
        print(f"{'method':<28}{'trials':>8}{'epochs':>8}" + "".join(f"{it:>14}" for it in heads) + "   each seed")
        for method, found in results.items():
            best = [statistics.mean(it["best"][i] for it in found) for i in range(len(SHARES))]
            counts = [statistics.mean(it[key] for it in found) for key in ("trials", "epochs")]
            each = " ".join(f"{it['best'][-1]:.4f}" for it in found)
            cells = [*(f"{it:>8.0f}" for it in counts), *(f"{it:>14.4f}" for it in best)]
            print(f"{method:<28}{''.join(cells)}   {each}")


if __name__ == "__main__":
    main()
