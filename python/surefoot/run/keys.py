"""Keyed randomness: every generator of a program is seeded from a key, so that no generator has a history.

A key is made of the seed of the run, a site and two counters. The global generators get a new key after every
optimizer step, at the start of every loop and for every sample; whatever was drawn before has no effect after.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import random
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from surefoot import _core

# Sites of keys. Numbers are never reused, because recorded runs are repeated with them.
START = 1
STEP = 2
ORDER = 3
SAMPLE = 4
BATCH = 5
LOOP = 6
GENERATOR = 7
UUID = 8
SEED = 9
DATA = 10
DRAW = 11

# `random.Random` is replaced by a subclass.
_PYTHON_GENERATOR: Any = random.SystemRandom.__mro__[1]

_MASK = (1 << 64) - 1
_SALTED = frozenset((STEP, ORDER, BATCH, LOOP))


class ThreadGenerators(threading.local):
    """Generators of threads other than the main one, so that they do not change what the training draws."""

    def __init__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        self._python = _PYTHON_GENERATOR(0)
        self._numpy: Any = None

    def python(self) -> random.Random | None:
        """Returns Python's generator; ``None`` in the main thread."""
        return None if self._is_main else self._python

    def numpy(self) -> Any:
        """Returns NumPy's generator; ``None`` in the main thread."""
        if self._is_main:
            return None
        if self._numpy is None:
            self._numpy = sys.modules["numpy"].random.mtrand.RandomState(0)
        return self._numpy

    def seed(self, key: int) -> bool:
        """Seeds the generators of this thread; returns false in the main thread."""
        if self._is_main:
            return False
        self._python.seed(key)
        self.numpy().seed(key & 0xFFFFFFFF)
        return True


class LazyRandom(random.Random):
    """Python's generator, seeded only when a number is drawn: seeding takes longer than a short training step."""

    pending: int | None = None
    confined: ThreadGenerators | None = None

    def _settle(self) -> None:
        if self.pending is not None:
            seed, self.pending = self.pending, None
            super().seed(seed)

    def random(self) -> float:
        """Returns the next number in [0, 1)."""
        if self.confined is not None and (other := self.confined.python()) is not None:
            return other.random()
        if self.pending is not None:
            self._settle()
        return super().random()

    def getrandbits(self, k: int, /) -> int:
        """Returns ``k`` random bits."""
        if self.confined is not None and (other := self.confined.python()) is not None:
            return other.getrandbits(k)
        if self.pending is not None:
            self._settle()
        return super().getrandbits(k)

    def getstate(self) -> tuple[Any, ...]:
        """Returns the state of the generator."""
        self._settle()
        return super().getstate()

    def setstate(self, state: tuple[Any, ...]) -> None:
        """Sets the state of the generator."""
        self.pending = None
        super().setstate(state)

    def seed(self, a: Any = None, version: int = 2) -> None:
        """Seeds the generator."""
        self.pending = None
        super().seed(a, version)


class Keys:
    """The keys of a run, and the global generators that follow them."""

    def __init__(self, seed: int) -> None:
        self.seed = seed & _MASK
        self.salt = 0
        """Part of the keys of loops, steps, batches and orders; 0 unless each process draws its own numbers."""
        self.counters: dict[str, int] = {}
        """Number of generators, loaders and the like that the program has made so far."""
        self._python = LazyRandom(seed)
        self._torch_seed: Callable[[int], Any] | None = None
        self._cuda_seed: Callable[[int], Any] | None = None
        self._numpy_seed: Callable[[int], Any] | None = None
        self.clock_reads: collections.deque[float] = collections.deque(maxlen=8)
        """Times that the program has read recently, in seconds."""
        self.on_apply: list[Callable[[int], None]] = []
        """Called with every key that is applied."""
        self.on_restore: list[Callable[[], None]] = []
        """Called after counters were restored."""

    def of(self, site: int, first: int = 0, second: int = 0) -> int:
        """Returns the key of a site and two counters, below 2**63."""
        seed = self.seed
        if self.salt and site & 0xFF in _SALTED:
            seed = _core.key(seed, site, self.salt, 0)
        return _core.key(seed, site, first & _MASK, second & _MASK) >> 1

    def next(self, name: str) -> int:
        """Returns how often this was called with ``name`` before."""
        count = self.counters.get(name, 0)
        self.counters[name] = count + 1
        return count

    def apply(self, site: int, first: int = 0, second: int = 0) -> None:
        """Seeds the global generators of Python, NumPy and PyTorch."""
        self.apply_key(self.of(site, first, second))

    def apply_key(self, key: int) -> None:
        """Seeds the global generators with ``key``; in another thread than the main one, those of the thread."""
        if self._python.confined is not None and self._python.confined.seed(key):
            return
        self._python.pending = key
        if self._numpy_seed is not None:
            self._numpy_seed(key & 0xFFFFFFFF)
        if self._torch_seed is not None:
            self._torch_seed(key)
            if self._cuda_seed is not None:
                self._cuda_seed(key)
        for function in self.on_apply:
            function(key)

    def fold(self, value: Any) -> int:
        """Makes the seed that the program sets a part of all later keys, and returns the seed to use.

        No seed and a seed from the clock are replaced by a key, so that they are the same in every run.
        """
        if value is None or is_clock(value) or self._is_from_clock(value):
            return self.of(SEED, self.next("seed"))
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = uuid.uuid5(uuid.NAMESPACE_OID, repr(value)).int
        self.seed = _core.key(self.seed, SEED, number & _MASK, 0)
        return number

    def _is_from_clock(self, value: Any) -> bool:
        """Returns true if ``value`` is the remainder of a time that the program has read, in some unit."""
        if not isinstance(value, int) or value < 1000:
            return False
        return any(
            int(read * scale) % modulus == value
            for read in self.clock_reads
            for scale in (1, 10**3, 10**6, 10**9)
            for modulus in (2**31, 2**31 - 1, 2**32, 2**32 - 1, *(10**digits for digits in range(4, 10)))
        )

    @contextlib.contextmanager
    def apart(self, key: int) -> Iterator[None]:
        """Code that loads a sample: seeds that it sets and generators that it makes have no effect outside."""
        before = self.seed, self.counters
        self.seed, self.counters = key, {}
        try:
            yield
        finally:
            self.seed, self.counters = before

    def state(self) -> dict[str, Any]:
        """Returns the counters and the seed, for a checkpoint."""
        return {"seed": self.seed, "counters": dict(self.counters)}

    def restore(self, state: dict[str, Any]) -> None:
        """Sets the counters and the seed of a checkpoint."""
        self.seed = state["seed"]
        self.counters = dict(state["counters"])
        for function in self.on_restore:
            function()

    def install_python(self) -> None:
        """Replaces the global generator of ``random`` and the entropy of ``uuid``."""
        generator = self._python
        for name in dir(random):
            bound = getattr(getattr(random, name), "__self__", None)
            if isinstance(bound, random.Random):
                setattr(random, name, getattr(generator, name))
        module: Any = random
        module._inst = generator

        def seed(a: Any = None, version: int = 2) -> None:
            if isinstance(a, (int, float)) or a is None:
                a = self.fold(a)
            generator.seed(a, version)

        class KeyedRandom(random.Random):
            """A generator whose default seed is a key."""

            def __init__(self_, x: Any = None) -> None:
                super().__init__(self.of(GENERATOR, self.next("generator")) if x is None else x)

        KeyedRandom.__name__ = KeyedRandom.__qualname__ = "Random"
        module.seed = seed
        module.Random = KeyedRandom

        def uuid4() -> uuid.UUID:
            key = self.next("uuid")
            return uuid.UUID(int=self.of(UUID, key) << 64 | self.of(UUID, key, 1), version=4)

        identifiers: Any = uuid
        identifiers.uuid4 = uuid4

    def confine_threads(self) -> None:
        """Gives every other thread generators of its own, for frameworks that load data in threads."""
        if self._python.confined is not None:
            return
        confined = self._python.confined = ThreadGenerators()
        numpy: Any = sys.modules["numpy"]
        state = numpy.random.mtrand._rand

        def dispatched(name: str) -> Callable[..., Any]:
            main = getattr(numpy.random, name)

            @functools.wraps(main)
            def draw(*args: Any, **kwargs: Any) -> Any:
                other = confined.numpy()
                return main(*args, **kwargs) if other is None else getattr(other, name)(*args, **kwargs)

            return draw

        for name in dir(state):
            if not name.startswith("_") and callable(getattr(numpy.random, name, None)):
                setattr(numpy.random, name, dispatched(name))

    def install_numpy(self) -> None:
        """Lets the generators of NumPy follow the keys."""
        numpy: Any = sys.modules["numpy"]
        legacy_seed, default_rng = numpy.random.seed, numpy.random.default_rng
        self._numpy_seed = legacy_seed

        def seed(seed: Any = None) -> None:
            legacy_seed(self.fold(seed) & 0xFFFFFFFF if seed is None or isinstance(seed, (int, float)) else seed)

        @functools.wraps(default_rng)
        def keyed_rng(seed: Any = None) -> Any:
            if seed is None or is_clock(seed):
                seed = self.of(GENERATOR, self.next("generator"))
            return default_rng(seed)

        class RandomState(numpy.random.RandomState):
            """A generator whose default seed is a key."""

            def __init__(self_, seed: Any = None) -> None:
                super().__init__(self.of(GENERATOR, self.next("generator")) & 0xFFFFFFFF if seed is None else seed)

        numpy.random.seed = seed
        numpy.random.default_rng = keyed_rng
        numpy.random.RandomState = RandomState
        self.apply(START)

    def install_torch(self) -> None:
        """Lets the generators of PyTorch follow the keys."""
        torch: Any = sys.modules["torch"]
        torch_seed = torch.manual_seed
        self._torch_seed = torch.default_generator.manual_seed
        if torch.cuda.is_available():
            self._cuda_seed = torch.cuda.manual_seed_all

        @functools.wraps(torch_seed)
        def manual_seed(seed: Any) -> Any:
            return torch_seed(self.fold(seed))

        def seed() -> int:
            key = self.fold(None)
            torch_seed(key)
            return key

        torch.manual_seed = torch.random.manual_seed = manual_seed
        torch.seed = torch.random.seed = seed
        self.apply(START)


def is_clock(value: Any) -> bool:
    """Returns true if ``value`` is a current time in seconds, or in smaller units."""
    if not isinstance(value, (int, float)):
        return False
    now = time.time()
    return any(abs(value - now * scale) < 86_400 * scale for scale in (1, 10**3, 10**6, 10**9))


OTHERS: dict[str, tuple[Callable[[], Any], Callable[[Any], None]]] = {}
"""Functions that return and set the states of generators of other libraries."""


def generator_states() -> dict[str, Any]:
    """States of the global generators."""
    states: dict[str, Any] = {"python": random.getstate()}
    states.update({name: get() for name, (get, _) in OTHERS.items()})
    if "numpy" in sys.modules:
        states["numpy"] = sys.modules["numpy"].random.get_state()
    if "torch" in sys.modules:
        torch: Any = sys.modules["torch"]
        states["torch"] = torch.get_rng_state()
        if torch.cuda.is_available():
            states["cuda"] = torch.cuda.get_rng_state_all()
    return states


def set_generator_states(states: dict[str, Any]) -> None:
    """Sets the states of the global generators."""
    random.setstate(states["python"])
    for name, (_, put) in OTHERS.items():
        if name in states:
            put(states[name])
    if "numpy" in states:
        sys.modules["numpy"].random.set_state(states["numpy"])
    if "torch" in states:
        sys.modules["torch"].set_rng_state(states["torch"])
    if "cuda" in states:
        sys.modules["torch"].cuda.set_rng_state_all(states["cuda"])
