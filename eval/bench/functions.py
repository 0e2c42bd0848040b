"""Benchmark functions for samplers, equal to those in `crates/surefoot-tune/examples/regret.rs`.

`functions.json` holds the space and the minimum of each. `samplers.py` holds both languages to
the same values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Point = dict[str, Any]


@dataclass(frozen=True)
class Function:
    """A function, its domain and its minimum."""

    name: str
    minimum: float
    parameters: list[dict[str, Any]]
    value: Callable[[Point], float]


def sphere(p: Point) -> float:
    centre = (1.3, -2.1, 0.7, 3.1, -0.9)
    return sum((p[f"x{i}"] - c) ** 2 for i, c in enumerate(centre, 1))


def branin(p: Point) -> float:
    x, y = p["x1"], p["x2"]
    bend = y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6
    return bend**2 + 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10


def rosenbrock(p: Point) -> float:
    x = [p[f"x{i}"] for i in range(1, 5)]
    return sum(100 * (b - a * a) ** 2 + (1 - a) ** 2 for a, b in zip(x, x[1:]))


HARTMANN_WEIGHTS = (1.0, 1.2, 3.0, 3.2)
HARTMANN_SCALES = (
    (10, 3, 17, 3.5, 1.7, 8),
    (0.05, 10, 17, 0.1, 8, 14),
    (3, 3.5, 1.7, 10, 17, 8),
    (17, 8, 0.05, 10, 0.1, 14),
)
HARTMANN_CENTRES = (
    (0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886),
    (0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991),
    (0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.6650),
    (0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381),
)


def hartmann(p: Point) -> float:
    x = [p[f"x{i}"] for i in range(1, 7)]
    total = 0.0
    for weight, scales, centres in zip(HARTMANN_WEIGHTS, HARTMANN_SCALES, HARTMANN_CENTRES):
        distance = sum(s * (v - c) ** 2 for v, s, c in zip(x, scales, centres))
        total -= weight * math.exp(-distance)
    return total


def ackley(p: Point) -> float:
    x = [p[f"x{i}"] for i in range(1, 6)]
    square = sum(v * v for v in x) / 5
    wave = sum(math.cos(2 * math.pi * v) for v in x) / 5
    return -20 * math.exp(-0.2 * math.sqrt(square)) - math.exp(wave) + 20 + math.e


def rastrigin(p: Point) -> float:
    x = [p[f"x{i}"] for i in range(1, 5)]
    return sum(v * v - 10 * math.cos(2 * math.pi * v) + 10 for v in x)


def styblinski(p: Point) -> float:
    x = [p[f"x{i}"] for i in range(1, 9)]
    return sum(v**4 - 16 * v * v + 5 * v for v in x) / 2


def valley(p: Point) -> float:
    """A narrow valley on logarithmic scales: the best rate grows with the batch."""
    rate = math.log10(p["rate"]) + 3
    batch = math.log2(p["batch"] / 64)
    decay = math.log10(p["decay"]) + 4
    across = 4 * (rate - 0.3 * batch)
    return across**2 + 0.1 * batch**2 + 0.05 * decay**2 + (p["warmup"] - 0.1) ** 2


def network(p: Point) -> float:
    """Choices and numbers: the best rate depends on the optimizer, the depth on the activation."""
    activation = {"gelu": 0.0, "relu": 0.05, "tanh": 0.2, "sigmoid": 0.6}[p["activation"]]
    optimizer = {"adam": 0.0, "sgd": 0.03, "rmsprop": 0.08}[p["optimizer"]]
    best_rate = {"adam": -3.0, "sgd": -1.0, "rmsprop": -3.5}[p["optimizer"]]
    depth = 5 if p["activation"] in ("gelu", "relu") else 2
    rate = min((math.log10(p["rate"]) - best_rate) ** 2, 4.0)
    width = (math.log2(p["width"]) - 7) ** 2
    dropout = (p["dropout"] - 0.2) ** 2
    layers = (p["layers"] - depth) ** 2
    return activation + optimizer + 0.3 * rate + 0.03 * width + 0.5 * dropout + 0.02 * layers


def conditional(p: Point) -> float:
    """Conditional parameters that depend on optimizer and depth."""
    rate = math.log10(p["rate"])
    if p["optimizer"] == "sgd":
        slow = 0.9 - p["momentum"]
        optimizer = 0.5 * (rate + 2 - slow) ** 2 + slow**2
    else:
        optimizer = 0.05 + 0.2 * (rate + 3) ** 2 + 5 * (p["beta2"] - 0.95) ** 2
    depth = (0.3, 0.0, 0.1)[p["layers"] - 1]
    widths = sum((math.log2(p[f"width{i}"]) - (8 - i)) ** 2 for i in range(1, p["layers"] + 1))
    return optimizer + depth + 0.04 * widths


def cliff(p: Point) -> float:
    """NaN beyond a plane close to the minimum, and in a hole elsewhere."""
    x, y, z = p["x"], p["y"], p["z"]
    if x + y > 1.2 or (x - 0.2) ** 2 + (z - 0.8) ** 2 < 0.02:
        return math.nan
    return 4 * (x - 0.65) ** 2 + 4 * (y - 0.5) ** 2 + (z - 0.3) ** 2


def diverging(p: Point) -> float:
    """Rises to 1e30 for large steps."""
    step = math.log10(p["rate"] / (1 - p["momentum"]))
    clip = math.log10(p["clip"])
    value = (step + 0.5) ** 2 + 0.5 * (p["momentum"] - 0.8) ** 2 + 0.1 * clip**2
    return value + 10 ** (30 * min(step, 1.0)) if step > 0 else value


def functions() -> dict[str, Function]:
    """All functions by name."""
    text = (Path(__file__).parent / "functions.json").read_text()
    return {
        name: Function(name, entry["minimum"], entry["parameters"], globals()[name])
        for name, entry in json.loads(text).items()
    }
