"""Data loaders whose order and samples are functions of keys.

The order of a pass follows from (loader, pass), and the draws for a sample from (loader, pass, index). So neither the
number of worker processes nor what was loaded before has an effect, and a pass can start at any batch.
"""

from __future__ import annotations

import random
import sys
import weakref
import zlib
from collections.abc import Callable, Iterator
from typing import Any

from surefoot import _core
from surefoot.run.keys import BATCH, ORDER, SAMPLE, Keys, generator_states, set_generator_states

# `random.Random` is replaced by a subclass.
_PYTHON_GENERATOR: Any = random.SystemRandom.__mro__[1]

# For worker processes: copied when they are forked.
_keys: Keys | None = None


def _seed(key: int) -> None:
    global _keys
    if _keys is None:
        _keys = Keys(0)
        _keys.install_python()
        _keys.install_numpy()
        _keys.install_torch()
    _keys.apply_key(key)


def _number(index: Any) -> int:
    try:
        return int(index)
    except (TypeError, ValueError):
        return zlib.crc32(repr(index).encode())


def _bit_seed(bits: Any) -> Callable[[int], Any]:
    def seed(key: int) -> None:
        bits.state = type(bits)(key).state

    return seed


def _legacy_seed(state: Any) -> Callable[[int], Any]:
    return lambda key: state.seed(key & 0xFFFFFFFF)


def _own_generators(owner: Any) -> list[Callable[[int], Any]]:
    """Functions that seed the generators which an object holds in its attributes."""
    numpy, torch = sys.modules.get("numpy"), sys.modules["torch"]
    found: list[Callable[[int], Any]] = []
    value: Any
    for value in list(getattr(owner, "__dict__", {}).values()):
        if numpy is not None and isinstance(value, numpy.random.Generator):
            found.append(_bit_seed(value.bit_generator))
        elif numpy is not None and isinstance(value, numpy.random.RandomState):
            found.append(_legacy_seed(value))
        elif isinstance(value, torch.Generator):
            found.append(value.manual_seed)
        elif isinstance(value, _PYTHON_GENERATOR):
            found.append(value.seed)
        elif type(value).__module__ == type(owner).__module__ and value is not owner:
            found += _own_generators(value)
    return found


class KeyedDataset:
    """A data set whose indices carry the key of the pass."""

    def __init__(self, dataset: Any, is_parallel: bool) -> None:
        self.dataset, self._is_parallel = dataset, is_parallel
        self._seeds: list[Callable[[int], Any]] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"dataset": self.dataset, "_is_parallel": self._is_parallel, "_seeds": None}

    def _load(self, key: int, load: Callable[[Any], Any], index: Any) -> Any:
        if self._seeds is None:
            self._seeds = _own_generators(self.dataset)
        _seed(key)
        for seed in self._seeds:
            seed(key)
        assert _keys is not None
        with _keys.apart(key):
            return load(index)

    def __getitem__(self, tagged: tuple[int, Any]) -> Any:
        key, index = tagged
        return self._load(_core.key(key, SAMPLE, _number(index), 0) >> 1, self.dataset.__getitem__, index)

    @property
    def __getitems__(self) -> Callable[[list[tuple[int, Any]]], Any] | None:
        fetch = getattr(self.dataset, "__getitems__", None)
        # The samples that are fetched together depend on the number of processes.
        if fetch is None or self._is_parallel:
            return None

        def keyed(tagged: list[tuple[int, Any]]) -> Any:
            indices = [index for _, index in tagged]
            if not tagged:
                return fetch(indices)
            key, first = tagged[0]
            return self._load(_core.key(key, SAMPLE, _number(first), 1) >> 1, fetch, indices)

        return keyed

    def __len__(self) -> int:
        return len(self.dataset)


class KeyedIterable:
    """A data set without indices, whose draws follow from the pass and the worker."""

    def __init__(self, dataset: Any, key: int) -> None:
        self.dataset, self.key = dataset, key

    def __iter__(self) -> Iterator[Any]:
        worker = sys.modules["torch"].utils.data.get_worker_info()
        key = _core.key(self.key, SAMPLE, 0 if worker is None else worker.id, 2) >> 1
        _seed(key)
        for seed in _own_generators(self.dataset):
            seed(key)
        return iter(self.dataset)

    def __len__(self) -> int:
        return len(self.dataset)


class KeyedSampler:
    """The order of a pass: indices, each with the key of the pass."""

    def __init__(self, sampler: Any, source: Source) -> None:
        self.sampler, self.source = sampler, source

    def __len__(self) -> int:
        return len(self.sampler)

    def __iter__(self) -> Iterator[Any]:
        source, batched = self.source, self.source.is_batched
        order, key, start, tagged = source.order_key, source.sample_key, source.start, not source.is_quiet
        _seed(order)
        batches = iter(self.sampler)
        position = 0
        while True:
            if position > 0 and not source.is_known:
                _seed(_core.key(order, ORDER, position, 0) >> 1)
            try:
                batch = next(batches)
            except StopIteration:
                return
            position += 1
            if position <= start:
                continue
            if not tagged:
                yield batch
            elif batched:
                yield [(key, index) for index in batch]
            else:
                yield (key, batch)


class Source:
    """A data loader: its number, and the pass in progress."""

    def __init__(self, loader: Any, number: int) -> None:
        data = sys.modules["torch"].utils.data
        self.number = number
        self.is_batched = loader.batch_sampler is not None
        samplers = (
            data.SequentialSampler,
            data.RandomSampler,
            data.WeightedRandomSampler,
            data.SubsetRandomSampler,
            data.distributed.DistributedSampler,
        )
        sampler = loader.sampler
        # These draw at the start of a pass only.
        self.is_known = type(sampler) in samplers and type(loader.batch_sampler) in (data.BatchSampler, type(None))
        generators = [loader.generator, getattr(sampler, "generator", None)]
        self.generators = [g for g in generators if isinstance(g, sys.modules["torch"].Generator)]
        if self.generators and getattr(sampler, "replacement", False) and type(sampler) is data.RandomSampler:
            # This one draws again every 32 samples.
            self.is_known = False
        # The seed that the program chose stays a part of the order.
        self.generator_seed = self.generators[0].initial_seed() if self.generators else 0
        self.is_iterable = isinstance(loader.dataset, data.IterableDataset)
        default = data.dataloader.default_collate
        self.is_quiet = self.is_known and type(loader.dataset) is data.TensorDataset and loader.collate_fn is default
        # It assigns the samples of each batch to the processes in turn.
        is_plain = type(loader.batch_sampler) is data.BatchSampler
        is_distributed = is_plain and type(sampler) is data.distributed.DistributedSampler
        self.distributed = sampler if is_distributed else None
        self.batch_size = loader.batch_size
        self.order_key = self.sample_key = self.start = 0
        self._before: list[Any] = []

    def begin(self, keys: Keys, number: int, start: int) -> None:
        """Prepares pass ``number`` from batch ``start`` on."""
        site = self.number << 8
        self.order_key = keys.of(ORDER | site, number, self.generator_seed)
        self.sample_key = keys.of(SAMPLE | site, number)
        self.start = 0 if self.is_iterable else start
        self._before = [generator.get_state() for generator in self.generators] if self.is_known else []
        for generator in self.generators:
            generator.manual_seed(self.order_key)

    def samples(self, position: int, world: int | None) -> range | None:
        """Numbers of the samples of batch ``position`` (from 1) in the batch of all processes; ``None`` if unknown."""
        if world is None or self.distributed is None or self.distributed.num_replicas != world:
            return None
        rank = self.distributed.rank
        count = min(self.batch_size, len(self.distributed) - (position - 1) * self.batch_size)
        return range(rank, rank + count * world, world)

    def began(self) -> None:
        """Gives the generators of the program their state back, after the order has been drawn."""
        for generator, state in zip(self.generators, self._before):
            generator.set_state(state)
        self._before = []


class KeyedIterator:
    """One pass over a data loader, which can start at any batch."""

    def __init__(self, loaders: Loaders, loader: Any, source: Source, number: int, position: int = 0) -> None:
        self.loaders, self.loader, self.source = loaders, loader, source
        self.number, self.position = number, position
        self.is_done = False
        self.in_loop = False
        self._inner: Iterator[Any] | None = None
        loaders.live[source.number] = weakref.ref(self)

    def __iter__(self) -> KeyedIterator:
        return self

    def __len__(self) -> int:
        return len(self.loader)

    def restart(self, number: int, position: int, is_done: bool) -> None:
        """Continues at a batch of a pass."""
        self.number, self.position, self.is_done, self._inner = number, position, is_done, None

    def __next__(self) -> Any:
        loaders = self.loaders
        if self.is_done:
            raise StopIteration
        self.in_loop = loaders.is_pulled
        if loaders.is_skipping and not loaders.is_program(sys._getframe(1).f_code.co_filename):
            # These batches are not used, except perhaps by a generator of the program, which gets real ones.
            self.position += 1
            return None
        owner = (self.source.number, self.number)
        states = None
        samples, loaders.samples = loaders.samples, None
        if self._inner is None:
            if loaders.owner == owner:
                # A pass that is resumed: in the original run, nothing was drawn here.
                states = generator_states()
            self._inner = loaders.begin(self)
        try:
            batch = next(self._inner)
        except StopIteration:
            self.is_done, self._inner, loaders.samples = True, None, samples
            if states is not None:
                set_generator_states(states)
            raise
        self.position += 1
        self.source.began()
        if states is not None:
            set_generator_states(states)
        if loaders.owner != owner or not self.source.is_quiet:
            loaders.owner = owner
            loaders.keys.apply(BATCH | self.source.number << 8, self.number, self.position)
        loaders.batch, loaders.samples = batch, self.source.samples(self.position, loaders.world)
        return batch


class Loaders:
    """All data loaders of the program."""

    def __init__(self, keys: Keys, is_program: Callable[[str], bool]) -> None:
        global _keys
        _keys = keys
        self.keys, self.is_program = keys, is_program
        self.owner: tuple[int, int] | None = None
        """Loader and pass that gave the latest batch."""
        self.batch: Any = None
        self.samples: range | None = None
        """Numbers of the samples of the latest batch in the batch of all processes; ``None`` if unknown."""
        self.world: int | None = None
        """Number of processes, if the program was started for several."""
        self.live: dict[int, weakref.ref[KeyedIterator]] = {}
        self.pending: dict[int, tuple[int, int]] = {}
        """Passes to continue, by loader: number of the pass, and position."""
        self.is_pulled = False
        """True while a counted loop asks for its next item."""
        self.is_skipping = False
        self._iterate: Callable[[Any], Iterator[Any]]

    def install(self) -> None:
        """Replaces the iteration of ``DataLoader``."""
        loader_class: Any = sys.modules["torch"].utils.data.DataLoader
        create, self._iterate = loader_class.__init__, loader_class.__iter__
        index_sampler = loader_class._index_sampler.fget

        def init(loader: Any, *args: Any, **kwargs: Any) -> None:
            create(loader, *args, **kwargs)
            object.__setattr__(loader, "_surefoot", Source(loader, self.keys.next("loader")))

        def keyed_sampler(loader: Any) -> Any:
            sampler = index_sampler(loader)
            source = loader.__dict__.get("_surefoot")
            return sampler if source is None or source.is_iterable else KeyedSampler(sampler, source)

        def iterate(loader: Any) -> Iterator[Any]:
            source = loader.__dict__.get("_surefoot")
            if source is None:
                return self._iterate(loader)
            if source.number in self.pending:
                return KeyedIterator(self, loader, source, *self.pending.pop(source.number))
            return KeyedIterator(self, loader, source, self.keys.next(f"pass {source.number}"))

        loader_class.__init__ = init
        loader_class.__iter__ = iterate
        loader_class._index_sampler = property(keyed_sampler)

    def begin(self, iterator: KeyedIterator) -> Iterator[Any]:
        """Starts a pass at the position of ``iterator``."""
        loader, source = iterator.loader, iterator.source
        source.begin(self.keys, iterator.number, iterator.position)
        self.keys.apply_key(source.order_key)
        dataset = loader.dataset
        wrapped = dataset
        if source.is_iterable:
            wrapped = KeyedIterable(dataset, source.sample_key)
        elif not source.is_quiet:
            wrapped = KeyedDataset(dataset, self.world is not None)
        # Only the iterator sees the wrapper: the attribute of the loader stays what the program made it.
        object.__setattr__(loader, "dataset", wrapped)
        try:
            inner = self._iterate(loader)
        finally:
            object.__setattr__(loader, "dataset", dataset)
        if source.is_iterable:
            for _ in range(iterator.position):
                next(inner)
        return inner

    def unfinished(self) -> dict[int, tuple[int, int]]:
        """Passes in progress outside of counted loops, by loader."""
        found = {}
        for number, reference in self.live.items():
            iterator = reference()
            if iterator is not None and not iterator.is_done and not iterator.in_loop and iterator.position:
                found[number] = (iterator.number, iterator.position)
        return found
