"""Calls a function when a module has been imported, without importing it."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable, Sequence
from types import ModuleType


class _Loader(importlib.abc.Loader):
    def __init__(self, name: str, loader: importlib.abc.Loader) -> None:
        self.name, self.loader = name, loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self.loader.exec_module(module)
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        for function in _finder.waiting.pop(self.name, []):
            function()


class _Finder(importlib.abc.MetaPathFinder):
    def __init__(self) -> None:
        self.waiting: dict[str, list[Callable[[], None]]] = {}
        self.looking_for: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if name not in self.waiting or name in self.looking_for:
            return None
        self.looking_for.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self.looking_for.remove(name)
        if spec is None or spec.loader is None:
            return spec
        spec.loader = _Loader(name, spec.loader)
        return spec


_finder = _Finder()


def when_imported(name: str, function: Callable[[], None]) -> None:
    """Calls ``function`` after the module ``name`` has been imported; at once if it has been."""
    if name in sys.modules:
        function()
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    _finder.waiting.setdefault(name, []).append(function)
