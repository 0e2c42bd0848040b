"""Training loops of Keras: ``fit`` and ``train_on_batch``, loops with ``GradientTape``, and data sets in Python.

``Model.fit`` is a training loop like those of a script. A checkpoint holds its epoch and the number of batches that were
taken from the data; a resumed run starts at that epoch and takes as many batches without training on them.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

from surefoot.run.keys import ORDER, SAMPLE, Keys
from surefoot.run.loops import Entry, Loops
from surefoot.run.record import Recording
from surefoot.run.variables import plain_name

# Arguments of `fit` that its loop depends on.
_LOOP_ARGUMENTS = ("batch_size", "epochs", "steps_per_epoch", "validation_freq", "shuffle", "initial_epoch")


class Steps:
    """Finds the training steps of programs with Keras and TensorFlow."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self._depth = 0
        self._optimizers: list[Any] | None = None
        """Optimizers that the function being traced applies."""

    def install_functions(self) -> None:
        """Follows calls of ``tf.function``."""
        tf = sys.modules["tensorflow"]
        kind: Any = sys.modules["tensorflow.python.eager.polymorphic_function.polymorphic_function"].Function
        call, tape = kind.__call__, tf.GradientTape.gradient

        def called(function: Any, *args: Any, **kwargs: Any) -> Any:
            if self._depth or tf.inside_function():
                return call(function, *args, **kwargs)
            self._depth, outer, self._optimizers = 1, self._optimizers, []
            try:
                result = call(function, *args, **kwargs)
            finally:
                found, self._optimizers, self._depth = self._optimizers, outer, 0
            applied = function.__dict__.setdefault("_surefoot_optimizers", [])
            applied.extend(optimizer for optimizer in found if all(optimizer is not known for known in applied))
            if applied:
                self._finish(applied, [args, kwargs], result)
            return result

        def gradient(tape_: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._depth and not tf.inside_function() and tf.is_tensor(target):
                self.recording.losses.append(target)
            return tape(tape_, target, *args, **kwargs)

        kind.__call__ = called
        tf.GradientTape.gradient = gradient

    def install_optimizer(self, kind: Any, method: str) -> None:
        """Follows the updates of an optimizer class."""
        apply = getattr(kind, method)

        @functools.wraps(apply)
        def applied(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if self._optimizers is not None:
                self._optimizers.append(optimizer)
            if method == "apply_gradients":
                pairs = list(args[0] if args else kwargs.pop("grads_and_vars"))
                optimizer.__dict__["_surefoot_variables"] = [variable for _, variable in pairs]
                args = (pairs, *args[1:])
            if self._depth or _is_tracing():
                return apply(optimizer, *args, **kwargs)
            self._depth = 1
            try:
                result = apply(optimizer, *args, **kwargs)
            finally:
                self._depth = 0
            self._finish([optimizer], None, None)
            return result

        setattr(kind, method, applied)

    def install_model(self, kind: Any) -> None:
        """Follows the training function of ``keras.Model``, on every backend."""
        make = kind.make_train_function

        @functools.wraps(make)
        def made(model: Any, *args: Any, **kwargs: Any) -> Any:
            result = make(model, *args, **kwargs)
            function = model.train_function
            if function is not None and not getattr(function, "_surefoot", False):
                model.train_function = self._stepping(model, function)
            return result

        kind.make_train_function = made

    def _stepping(self, model: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        def step(*args: Any) -> Any:
            self._depth += 1
            try:
                result = function(*args)
            finally:
                self._depth -= 1
            logs, state = result if isinstance(result, tuple) else (result, None)
            if state is None:
                optimizer = getattr(model, "optimizer", None)
                parts = [model.trainable_variables, model.non_trainable_variables, getattr(optimizer, "variables", [])]
            else:
                parts = list(state[:3])
            loss = logs.get("loss") if isinstance(logs, dict) else None
            self.recording.finish_arrays([None, loss, *parts])
            return result

        step._surefoot = True  # type: ignore[attr-defined]
        return step

    def _finish(self, optimizers: list[Any], batch: Any, result: Any) -> None:
        variables = [v for optimizer in optimizers for v in _trained_by(optimizer)]
        models = [model for optimizer in optimizers for model in self._models(optimizer)]
        others = [v for model in models for v in model.non_trainable_variables]
        states = [v for optimizer in optimizers for v in _variables_of(optimizer)]
        loss = result if result is not None else list(self.recording.losses)
        self.recording.finish_arrays([batch, loss, variables, others, states])

    def _models(self, optimizer: Any) -> list[Any]:
        found: list[Any] | None = optimizer.__dict__.get("_surefoot_models")
        trained = _trained_by(optimizer)
        if found is None or optimizer.__dict__.get("_surefoot_count") != len(trained):
            found = models_of(trained)
            object.__setattr__(optimizer, "_surefoot_models", _Hidden(found))
            object.__setattr__(optimizer, "_surefoot_count", len(trained))
        return found


def _is_tracing() -> bool:
    tf = sys.modules.get("tensorflow")
    return tf is not None and tf.inside_function()


class _Hidden(list[Any]):
    """A list that Keras does not track."""


def _trained_by(optimizer: Any) -> list[Any]:
    found = getattr(optimizer, "_trainable_variables", None)
    if found is None:
        found = getattr(optimizer, "_surefoot_variables", [])
    return list(found)


def _variables_of(optimizer: Any) -> list[Any]:
    variables = optimizer.variables
    if not callable(variables):
        return list(variables)
    # The order of those of Keras 2 depends on the loading of checkpoints.
    return sorted(variables(), key=lambda variable: plain_name(optimizer, str(variable.name)))


def models_of(variables: list[Any]) -> list[Any]:
    """Finds the outermost models that contain some of ``variables``."""
    import gc

    kinds = tuple(sys.modules[name].Model for name in ("keras", "tf_keras") if name in sys.modules)
    order = {id(variable): index for index, variable in enumerate(variables)}
    found: dict[int, tuple[int, Any]] = {}
    inner: set[int] = set()
    for model in [item for item in gc.get_objects() if issubclass(type(item), kinds)]:
        try:
            places = [order[id(v)] for v in model.trainable_variables if id(v) in order]
            layers = list(model._flatten_layers(include_self=False))
        except (AttributeError, ValueError):
            continue
        if places:
            found[id(model)] = (min(places), model)
            inner.update(id(layer) for layer in layers)
    roots = [place for key, place in found.items() if key not in inner]
    return [model for _, model in sorted(roots, key=lambda root: root[0])]


class FitLoop:
    """One call of ``fit``."""

    def __init__(self, entry: Entry, keys: Keys, build: Callable[[Any], None]) -> None:
        self.entry, self.keys = entry, keys
        self._build: Callable[[Any], None] | None = build
        self.is_training = False
        self.epoch = self.step = self.taken = 0
        self.pass_keys = keys.state()
        self.iterator: Any = None
        self._current: Any = None
        saved = entry.saved
        self.saved: dict[str, Any] | None = None if saved is None else saved["fit"]

    def state(self) -> dict[str, Any]:
        """Returns the position for a checkpoint."""
        place = {"epoch": self.epoch, "step": self.step, "taken": self.taken, "pass_keys": self.pass_keys}
        place["batches"] = self.iterator._num_batches
        return place

    def enumerate(self, iterator: Any, original: Callable[[Any], Iterator[Any]]) -> Iterator[Any]:
        """Yields the batches of an epoch; those before the position of a checkpoint are taken and not yielded."""
        saved, self.saved = self.saved, None
        self.iterator = iterator
        if saved is not None:
            iterator._num_batches = saved["batches"]
            self.keys.restore(saved["pass_keys"])
            iterator._current_iterator = None
        if iterator._current_iterator is None or iterator.steps_per_epoch is None:
            self._begin_pass(iterator)
        if saved is not None and not saved["taken"] and self._build is not None:
            self._build(getattr(iterator._get_iterator(), "element_spec", None))
        items = original(iterator)
        before = self.pass_keys
        skip = 0 if saved is None else saved["step"]
        while True:
            before = self.keys.state()
            try:
                item = next(items)
            except StopIteration:
                break
            if saved is not None:
                # Batches of earlier epochs, from an iterator that continues over epochs.
                for _ in range(saved["taken"] - saved["step"]):
                    self._take(iterator, item[2])
                iterator._steps_seen += (saved["taken"] - saved["step"]) * iterator.steps_per_execution
                saved = None
            self._current = iterator._current_iterator
            if self.step < skip:
                self._take(iterator, item[2])
            else:
                yield item
                self.taken += 1
            self.step += 1
        if iterator._current_iterator is not self._current:
            self.pass_keys, self.taken = before, 0

    def _begin_pass(self, iterator: Any) -> None:
        adapter = iterator.data_adapter
        dataset = getattr(adapter, "py_dataset", None)
        self.pass_keys, self.taken = self.keys.state(), 0
        number = self.keys.next("fit pass")
        self.keys.apply(ORDER, number, 1)
        if dataset is not None:
            dataset._surefoot_pass = self.keys.of(ORDER, number, 2)

    def _take(self, iterator: Any, source: Any) -> None:
        for _ in range(iterator.steps_per_execution):
            batch = next(source, None)
            if batch is not None and self._build is not None:
                self._build([batch])
                self._build = None
        self.taken += 1


class Fit:
    """Makes ``Model.fit`` a training loop of the program."""

    def __init__(self, recording: Recording) -> None:
        self.recording, self.keys = recording, recording.keys
        self.loops: Loops | None = None
        self._current: FitLoop | None = None

    def install(self) -> None:
        """Changes Keras; called once it has been imported."""
        keras = sys.modules["keras"]
        fit = keras.Model.fit
        signature = inspect.signature(fit)

        @functools.wraps(fit)
        def counted(model: Any, *args: Any, **kwargs: Any) -> Any:
            if self.loops is None or self._current is not None:
                return fit(model, *args, **kwargs)
            bound = signature.bind(model, *args, **kwargs)
            return self._fit(model, fit, bound.arguments)

        keras.Model.fit = counted
        epochs: Any = sys.modules["keras.src.trainers.epoch_iterator"].EpochIterator
        enumerate_iterator = epochs._enumerate_iterator

        def enumerated(iterator: Any) -> Iterator[Any]:
            current = self._current
            if current is None or not current.is_training or current.iterator not in (None, iterator):
                return enumerate_iterator(iterator)  # type: ignore[no-any-return]
            return current.enumerate(iterator, enumerate_iterator)

        epochs._enumerate_iterator = enumerated
        self._install_datasets(keras)

    def _fit(self, model: Any, fit: Callable[..., Any], arguments: dict[str, Any]) -> Any:
        assert self.loops is not None
        keras, loops = sys.modules["keras"], self.loops
        entry = loops.begin_call("fit", repr([arguments.get(name) for name in _LOOP_ARGUMENTS]))
        try:
            if entry.is_skipped:
                # Builds the model; its state is restored later.
                arguments.update(epochs=arguments.get("initial_epoch", 0), callbacks=None, verbose=0)
                return fit(**arguments)
            current = self._current = FitLoop(entry, self.keys, functools.partial(self._build, model))
            entry.fit = current.state
            callbacks = arguments.get("callbacks")
            if current.saved is not None:
                arguments["initial_epoch"] = current.saved["epoch"]
            follower = self._follower(current, model)
            if isinstance(callbacks, keras.callbacks.CallbackList):
                given = list(callbacks.callbacks)
                callbacks.append(follower)
            else:
                given = [c for c in keras.tree.flatten(callbacks) if c is not None]
                arguments["callbacks"] = [*given, follower]
            entry.roots = {"model": model, "callbacks": given}
            entry.prepare = functools.partial(_synchronize, model)
            return fit(**arguments)
        finally:
            self._current = None
            loops.leave(entry.info.name)

    def _build(self, model: Any, data: Any) -> None:
        """Creates the variables of a model before they are restored. The other backends do that by themselves."""
        if sys.modules["keras"].config.backend() != "tensorflow" or data is None:
            return
        if not isinstance(data, list):
            data = sys.modules["tensorflow"].nest.map_structure(_spec, data)
            model._symbolic_build(data_batch=data)
            return
        self.recording.is_muted = True
        model.train_function(data)
        self.recording.is_muted = False

    def _follower(self, current: FitLoop, model: Any) -> Any:
        loops, entry, recording = self.loops, current.entry, self.recording

        class Follower(sys.modules["keras"].callbacks.Callback):  # type: ignore[misc]
            """Reports the position of ``fit`` to the loops."""

            def on_train_begin(self, logs: Any = None) -> None:
                entry.roots["history"] = model.history
                if entry.saved is not None:
                    # A backup of the script must not move the first epoch.
                    model._initial_epoch = None

            def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
                current.epoch, current.step, current.is_training = epoch, 0, True
                recording.count_pass(-1, (entry.ordinal << 32) + epoch)

            def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
                current.is_training = False

            def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
                assert loops is not None
                loops.iterate(entry)

        return Follower()

    def _install_datasets(self, keras: Any) -> None:
        """Seeds every item of a ``PyDataset`` by its index, whichever thread or process makes it."""
        keys, kind = self.keys, keras.utils.PyDataset
        adapters: Any = sys.modules["keras.src.trainers.data_adapters.py_dataset_adapter"]

        def wrap(cls: Any, /, **kwargs: Any) -> None:
            super(kind, cls).__init_subclass__(**kwargs)
            get = cls.__dict__.get("__getitem__")
            if get is None:
                return

            @functools.wraps(get)
            def keyed(dataset: Any, index: Any) -> Any:
                key = getattr(dataset, "_surefoot_pass", 0)
                if isinstance(index, int):
                    keys.apply(SAMPLE, key, index)
                    with keys.apart(key):
                        return get(dataset, index)
                return get(dataset, index)

            cls.__getitem__ = keyed

        kind.__init_subclass__ = classmethod(wrap)

        def seeded(method: Callable[..., Any]) -> Callable[..., Any]:
            # The order is drawn in the thread that runs this.
            @functools.wraps(method)
            def run(owner: Any, *args: Any) -> Any:
                keys.apply(ORDER, getattr(owner.py_dataset, "_surefoot_pass", 0), 3)
                return method(owner, *args)

            return run

        def seeded_generator(method: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
            @functools.wraps(method)
            def run(owner: Any) -> Iterator[Any]:
                keys.apply(ORDER, getattr(owner.py_dataset, "_surefoot_pass", 0), 3)
                yield from method(owner)

            return run

        adapters.OrderedEnqueuer._run = seeded(adapters.OrderedEnqueuer._run)
        adapter = adapters.PyDatasetAdapter
        adapter._finite_generator = seeded_generator(adapter._finite_generator)


def _spec(spec: Any) -> Any:
    """A symbolic tensor for the specification of an element."""
    return sys.modules["keras"].KerasTensor(tuple(spec.shape), spec.dtype.name)


def _synchronize(model: Any) -> None:
    """Writes the state of a running ``fit`` on JAX to the model's variables."""
    if getattr(model, "_jax_state", None) is not None and not getattr(model, "_jax_state_synced", True):
        model.jax_state_sync()
