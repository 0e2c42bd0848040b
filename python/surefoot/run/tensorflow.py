"""Randomness and data of TensorFlow as functions of keys.

Operations that draw from a hidden state are replaced by stateless ones. Outside of graphs, their seed is the key of the
step and a counter; in a graph, it comes from a generator that gets the key of every step; in a function of ``tf.data``,
from a stream of seeds that belongs to the pass, one seed per element.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from surefoot.run.keys import DATA, OTHERS, Keys

# Operations with a hidden state, and how a stateless one replaces them.
_KEYED: dict[str, Callable[..., Any]] = {
    "random_standard_normal": lambda r, s, shape, dtype: r.stateless_normal(shape, s, dtype=dtype),
    "random_uniform": lambda r, s, shape, dtype: r.stateless_uniform(shape, s, dtype=dtype),
    "random_uniform_int": lambda r, s, shape, minval, maxval: r.stateless_uniform(
        shape, s, minval, maxval, dtype=_dtype_of(minval)
    ),
    "truncated_normal": lambda r, s, shape, dtype: r.stateless_truncated_normal(shape, s, dtype=dtype),
    "random_shuffle": lambda r, s, value: r.experimental.stateless_shuffle(value, s),
    "multinomial": lambda r, s, logits, num_samples, output_dtype=None: r.stateless_categorical(
        logits, num_samples, s, dtype=output_dtype or _tf().int64
    ),
    "random_gamma": lambda r, s, shape, alpha: r.stateless_gamma(_joined(shape, alpha), s, alpha, dtype=_dtype_of(alpha)),
    "random_poisson_v2": lambda r, s, shape, rate, dtype=None: r.stateless_poisson(
        _joined(shape, rate), s, rate, dtype=dtype or _tf().int64
    ),
}


def _tf() -> Any:
    return sys.modules["tensorflow"]


def _dtype_of(value: Any) -> Any:
    return _tf().convert_to_tensor(value).dtype


def _joined(shape: Any, parameter: Any) -> Any:
    return _tf().concat([shape, _tf().shape(parameter)], axis=0)


class TensorFlow:
    """The parts of TensorFlow that follow keys."""

    def __init__(self, keys: Keys, threads: int | None) -> None:
        self.keys, self.threads = keys, threads
        self._key, self._draws = 0, 0
        self._generator: Any = None
        self._element = threading.local()
        self._nodes: dict[int, weakref.ref[Any]] = {}
        self._passes: dict[int, int] = {}
        """Passes over each shuffled data set that were begun in this process."""
        self._iterate: Callable[[Any], Any]
        self.is_resuming: Callable[[], bool] = lambda: False
        """Returns true until the loop of the checkpoint to resume from has been reached."""
        self.is_trial: Callable[[], bool] = lambda: False
        """Returns true during an iteration after which the state is restored again."""

    def install(self) -> None:
        """Changes TensorFlow; called once it has been imported."""
        tf = _tf()
        try:
            if self.threads is not None:
                tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        except RuntimeError:
            # It has started its threads; the number has no effect on results with deterministic operations.
            pass
        tf.config.experimental.enable_op_determinism()
        tf.random.set_seed(0)
        self._replace_seeds()
        module = sys.modules["tensorflow.python.ops.gen_random_ops"]
        for name, function in _KEYED.items():
            setattr(module, name, self._keyed(function))
        self._replace_datasets()
        self.keys.on_apply.append(self._apply)
        self.keys.on_restore.append(self._advance)
        OTHERS["tensorflow"] = self._state, self._set_state

    def _state(self) -> dict[str, Any]:
        generator = None if self._generator is None else self._generator.state.numpy()
        return {"key": self._key, "draws": self._draws, "generator": generator}

    def _set_state(self, state: dict[str, Any]) -> None:
        self._key, self._draws = state["key"], state["draws"]
        if state["generator"] is not None:
            if self._generator is None:
                self._generator = _tf().random.Generator.from_seed(0)
            self._generator.reset(state["generator"])

    def _replace_seeds(self) -> None:
        tf, keys = _tf(), self.keys
        set_seed = tf.random.set_seed
        generator = tf.random.Generator

        @functools.wraps(set_seed)
        def folded(seed: Any) -> None:
            set_seed(keys.fold(seed))

        tf.random.set_seed = folded
        for module in (sys.modules.get("tensorflow._api.v2.random"), sys.modules["tensorflow.python.framework.random_seed"]):
            if module is not None and hasattr(module, "set_seed"):
                module.set_seed = folded  # type: ignore[attr-defined]

        def from_key(cls: Any, alg: Any = "philox") -> Any:
            return cls.from_seed(keys.of(DATA, keys.next("generator"), 1), alg=alg)

        generator.from_non_deterministic_state = classmethod(from_key)

    def _apply(self, key: int) -> None:
        self._key, self._draws = key, 0
        if self._generator is not None:
            self._generator.reset_from_seed(key)

    def _seed(self) -> Any:
        tf = _tf()
        element = getattr(self._element, "value", None)
        if element is not None:
            element.count += 1
            if element.seed is None:
                return tf.constant([0, 0], tf.int64)
            return tf.stack([tf.cast(element.seed, tf.int64), tf.constant(element.count, tf.int64)])
        if tf.inside_function():
            with tf.init_scope():
                if self._generator is None:
                    self._generator = tf.random.Generator.from_seed(self._key)
            return self._generator.make_seeds(1)[:, 0]
        self._draws += 1
        return tf.constant([self._key, self._draws], tf.int64)

    def _keyed(self, function: Callable[..., Any]) -> Callable[..., Any]:
        def keyed(*args: Any, seed: Any = 0, seed2: Any = 0, name: Any = None, **kwargs: Any) -> Any:
            return function(_tf().random, self._seed(), *args, **kwargs)

        return keyed

    def _replace_datasets(self) -> None:
        tf, keys = _tf(), self.keys
        seeds = sys.modules["tensorflow.python.data.util.random_seed"]
        data: Any = sys.modules["tensorflow.python.data.ops.dataset_ops"]
        get_seed = seeds.get_seed

        def keyed_seed(seed: Any) -> Any:
            if seed is None:
                seed = keys.of(DATA, keys.next("data seed")) >> 1
            key = tf.constant(keys.of(DATA, 0, 2), tf.int64) if not tf.is_tensor(seed) else get_seed(seed)[1]
            return tf.convert_to_tensor(seed, tf.int64), key

        seeds.get_seed = keyed_seed  # type: ignore[attr-defined]
        for name, module in (("_ShuffleDataset", "shuffle_op"), ("_RandomDataset", "random_op")):
            __import__(f"tensorflow.python.data.ops.{module}")
            self._number(getattr(sys.modules[f"tensorflow.python.data.ops.{module}"], name))
        dataset = data.DatasetV2
        self._iterate = dataset.__iter__

        def iterate(source: Any) -> Any:
            if not tf.inside_function():
                self._count(source)
            return self._iterate(source)

        dataset.__iter__ = iterate
        owned: Any = sys.modules["tensorflow.python.data.ops.iterator_ops"].OwnedIterator
        following = owned.__next__

        def counted(iterator: Any) -> Any:
            ahead = getattr(iterator, "_surefoot_ahead", None)
            item = ahead.pop() if ahead else following(iterator)
            iterator._surefoot_position = getattr(iterator, "_surefoot_position", 0) + 1
            if self.is_trial():
                iterator._surefoot_taken = [*getattr(iterator, "_surefoot_taken", ()), item]
            return item

        restore = owned._restore_from_tensors

        def restored(iterator: Any, tensors: Any) -> Any:
            # The position of the run, counted from the start, replaces that in a checkpoint of the script.
            if self.is_resuming():
                return []
            iterator._surefoot_is_restored = True
            return restore(iterator, tensors)

        owned.__next__, owned._restore_from_tensors = counted, restored
        for name in ("map", "flat_map", "interleave", "filter"):
            setattr(dataset, name, self._with_seeds(getattr(dataset, name), name == "filter"))

    def _number(self, kind: Any) -> None:
        create, nodes, keys = kind.__init__, self._nodes, self.keys

        @functools.wraps(create)
        def init(node: Any, *args: Any, **kwargs: Any) -> None:
            number = keys.next("dataset")
            create(node, *args, **kwargs)
            node._surefoot_number = number
            nodes[number] = weakref.ref(node)

        kind.__init__ = init

    def _count(self, dataset: Any) -> None:
        for node in _upstream(dataset):
            number = getattr(node, "_surefoot_number", None)
            if number is not None:
                self.keys.next(f"data {number}")
                self._passes[number] = self._passes.get(number, 0) + 1

    def _advance(self) -> None:
        """Begins as many passes as the counters tell: the order of a pass follows from the number of those before."""
        for number, reference in list(self._nodes.items()):
            node = reference()
            if node is None:
                del self._nodes[number]
                continue
            while self._passes.get(number, 0) < self.keys.counters.get(f"data {number}", 0):
                self._passes[number] = self._passes.get(number, 0) + 1
                self._iterate(node)

    def _with_seeds(self, method: Any, is_filter: bool) -> Any:
        tf, keys = _tf(), self.keys
        autograph: Any = sys.modules["tensorflow.python.autograph.impl.api"]
        contexts: Any = sys.modules["tensorflow.python.autograph.core.ag_ctx"]

        @functools.wraps(method)
        def seeded(dataset: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
            outer = getattr(self._element, "value", None)
            probe = self._element.value = _Element(None)
            before = dict(keys.counters)
            try:
                result = method(dataset, function, *args, **kwargs)
            finally:
                self._element.value = outer
            if not probe.count:
                return result
            keys.counters = before
            stream = tf.data.Dataset.random(seed=keys.of(DATA, keys.next("stream")) >> 1, rerandomize_each_iteration=True)
            converted = autograph.tf_convert(function, contexts.control_status_ctx())
            is_tuple = isinstance(dataset.element_spec, tuple)

            def with_seed(element: Any, seed: Any) -> Any:
                outer = getattr(self._element, "value", None)
                self._element.value = _Element(seed)
                try:
                    return converted(*element) if is_tuple else converted(element)
                finally:
                    self._element.value = outer

            unconverted = tf.autograph.experimental.do_not_convert(with_seed)
            result = method(tf.data.Dataset.zip((dataset, stream)), unconverted, *args, **kwargs)
            return result.map(_first) if is_filter else result

        return seeded


class _Element:
    """The element that a function of ``tf.data`` is traced for: its seed, and the number of draws."""

    def __init__(self, seed: Any) -> None:
        self.seed, self.count = seed, 0


def _first(element: Any, _seed: Any) -> Any:
    return element


def _upstream(dataset: Any) -> Iterator[Any]:
    seen, waiting = set(), [dataset]
    while waiting:
        node = waiting.pop()
        if id(node) in seen or not hasattr(node, "_inputs"):
            continue
        seen.add(id(node))
        yield node
        waiting.extend(node._inputs())
