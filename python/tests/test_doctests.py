"""The examples in docstrings run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import pkgutil
from pathlib import Path

import pytest

import surefoot

HOSTS = {f"surefoot.{it}": it for it in ("keras", "lightning", "optuna", "ray", "transformers")}
NEEDS_TORCH = tuple(
    f"surefoot.{it}" for it in ("contest", "fit", "lightning", "load", "torch", "transformers", "watch")
)
KERAS = [str(Path(it) / "keras") for it in surefoot.__path__]
MODULES = [
    "surefoot",
    *(it.name for it in pkgutil.iter_modules(surefoot.__path__, "surefoot.") if it.name != "surefoot._core"),
    *(it.name for it in pkgutil.iter_modules(KERAS, "surefoot.keras.")),
]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    host = HOSTS.get(".".join(name.split(".")[:2]))
    needed = [host] if host is not None else []
    needed += ["torch"] if name in NEEDS_TORCH else []
    for host in needed:
        if importlib.util.find_spec(host) is None:
            pytest.skip(f"{host} is not installed")
    assert doctest.testmod(importlib.import_module(name)).failed == 0
