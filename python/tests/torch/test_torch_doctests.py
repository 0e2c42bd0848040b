"""The examples in docstrings run."""

import doctest
import importlib
import pkgutil

import pytest

import surefoot.torch

MODULES = [name for _, name, _ in pkgutil.iter_modules(surefoot.torch.__path__, "surefoot.torch.")]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_a_module_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0
