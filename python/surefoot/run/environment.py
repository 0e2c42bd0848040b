"""Fixes other differences between two executions than random numbers: listings, order of results, clock, algorithms."""

from __future__ import annotations

import collections
import concurrent.futures
import glob
import itertools
import multiprocessing.pool
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any


class _Entries:
    """Sorted entries of a directory, used like the result of ``os.scandir``."""

    def __init__(self, entries: list[Any]) -> None:
        self._entries = iter(entries)

    def __iter__(self) -> Iterator[Any]:
        return self._entries

    def __next__(self) -> Any:
        return next(self._entries)

    def __enter__(self) -> _Entries:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def close(self) -> None:
        """Does nothing: all entries have been read."""


def sort_listings() -> None:
    """Sorts the results of ``os.listdir``, ``os.scandir``, ``glob`` and ``Path.iterdir``."""
    listdir, scandir = os.listdir, os.scandir
    iglob, iterdir, path_glob, rglob = glob.iglob, Path.iterdir, Path.glob, Path.rglob

    def sorted_scandir(path: Any = ".") -> Any:
        if isinstance(path, int):
            return scandir(path)
        with scandir(path) as entries:
            return _Entries(sorted(entries, key=lambda entry: entry.name))

    def sorted_iglob(*args: Any, **kwargs: Any) -> Any:
        return iter(sorted(iglob(*args, **kwargs)))

    system: Any = os
    system.listdir = lambda path=None: sorted(listdir(path))
    system.scandir = sorted_scandir
    patterns: Any = glob
    patterns.iglob = sorted_iglob
    patterns.glob = lambda *args, **kwargs: sorted(iglob(*args, **kwargs))
    paths: Any = Path
    paths.iterdir = lambda self: iter(sorted(iterdir(self)))
    paths.glob = lambda self, *args, **kwargs: iter(sorted(path_glob(self, *args, **kwargs)))
    paths.rglob = lambda self, *args, **kwargs: iter(sorted(rglob(self, *args, **kwargs)))


def order_arrivals() -> None:
    """Results of threads and processes arrive in the order of their submission."""
    numbers = itertools.count()
    create = concurrent.futures.Future.__init__

    def numbered(self: Any) -> None:
        create(self)
        self._surefoot_number = next(numbers)

    def as_completed(fs: Iterable[Any], timeout: float | None = None) -> Iterator[Any]:
        end = None if timeout is None else time.monotonic() + timeout
        for future in sorted(set(fs), key=lambda future: getattr(future, "_surefoot_number", 0)):
            remaining = None if end is None else end - time.monotonic()
            if not concurrent.futures.wait([future], timeout=remaining).done:
                raise TimeoutError("some futures are unfinished")
            yield future

    futures: Any = concurrent.futures
    futures.Future.__init__ = numbered
    futures.as_completed = as_completed
    pool: Any = multiprocessing.pool.Pool
    pool.imap_unordered = pool.imap


class Clock:
    """Counts the lines of the program that read the clock."""

    def __init__(self, is_program: Callable[[str], bool], recent: collections.deque[float]) -> None:
        self.reads: dict[str, int] = {}
        self._is_program, self._recent = is_program, recent

    def install(self) -> None:
        """Replaces ``time.time`` and ``time.time_ns``."""
        for name in ("time", "time_ns"):
            setattr(time, name, self._counted(getattr(time, name), 1e-9 if name == "time_ns" else 1))

    def _counted(self, read: Callable[[], Any], unit: float) -> Callable[[], Any]:
        def counted() -> Any:
            frame = sys._getframe(1)
            now = read()
            if self._is_program(frame.f_code.co_filename):
                line = f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
                self.reads[line] = self.reads.get(line, 0) + 1
                self._recent.append(now * unit)
            return now

        return counted


def warn_of_spawn(tell: Callable[[str], None]) -> None:
    """Prints a message when the program calls ``torch.multiprocessing.spawn``: its processes are not followed."""
    processes: Any = sys.modules["torch"].multiprocessing
    spawn = processes.spawn

    def spawned(*args: Any, **kwargs: Any) -> Any:
        tell("processes that the script starts itself are not recorded; start them with torchrun")
        return spawn(*args, **kwargs)

    processes.spawn = spawned


def use_deterministic_algorithms(report: Callable[[str, str], None]) -> None:
    """Selects PyTorch's deterministic algorithms.

    ``report`` is called with the message and the line of each operation that has none.
    """
    torch: Any = sys.modules["torch"]
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cudnn.benchmark = False
    strict = torch.use_deterministic_algorithms

    def use(mode: bool, *, warn_only: bool = False) -> None:
        # A program may ask for errors, but not for algorithms that are not deterministic.
        strict(True, warn_only=warn_only if mode else True)

    torch.use_deterministic_algorithms = use
    shown = warnings.showwarning
    reported: set[tuple[str, str]] = set()
    warnings.filterwarnings("always", message=".*does not have a deterministic implementation")

    def show(message: Any, category: Any, filename: str, lineno: int, file: Any = None, line: Any = None) -> None:
        text = str(message)
        if "does not have a deterministic implementation" not in text:
            shown(message, category, filename, lineno, file, line)
            return
        operation, where = text.split(" does not")[0], f"{filename}:{lineno}"
        if (operation, where) not in reported:
            reported.add((operation, where))
            report(operation, where)

    warnings.showwarning = show
