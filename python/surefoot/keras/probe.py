"""Gradients and outputs of layers on TensorFlow and JAX, whose compiled steps keep them inside.

A probe is a second compiled function. It computes the gradients and outputs of a batch from the same weights and random
state as the training step, and changes nothing. It costs about one training step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras


class Probe:
    """Computes gradients and outputs of layers.

    Args:
        model: A built and compiled model.
        layers: Layers whose outputs are wanted.
    """

    def __init__(self, model: Any, layers: Sequence[Any]) -> None:
        self.model = model
        self.layers = list(layers)
        self._compiled = self._jax() if keras.backend.backend() == "jax" else self._tensorflow()

    def measure(self, data: Any, state: Sequence[Any] = ()) -> tuple[list[Any], list[Any]]:
        """Returns the gradients of all trainable variables, and the outputs of the layers; None if one did not run.

        Args:
            data: A batch, as Keras passes it to ``train_step``.
            state: On JAX, the trained and other variables of the model.
        """
        x, y, weight = keras.utils.unpack_x_y_sample_weight(data)
        if keras.backend.backend() == "jax":
            trained, others = state[:2]
            return self._compiled(trained, others, x, y, weight)  # type: ignore[no-any-return]
        return self._compiled(x, y, weight)  # type: ignore[no-any-return]

    def _run(self, mapping: list[tuple[Any, Any]], x: Any, y: Any, weight: Any) -> tuple[Any, list[Any]]:
        model = self.model
        options = {"training": True} if model._call_has_training_arg else {}
        with keras.StatelessScope(state_mapping=mapping), self._captured() as outputs:
            predicted = model(x, **options)
            loss = model.compute_loss(x, y, predicted, sample_weight=weight, training=True)
        return loss, [outputs.get(id(layer)) for layer in self.layers]

    @contextmanager
    def _captured(self) -> Iterator[dict[int, Any]]:
        """Collects the outputs of the layers inside."""
        outputs: dict[int, Any] = {}

        def wrapped(layer: Any) -> Any:
            call = layer.call

            def capture(*args: Any, **kwargs: Any) -> Any:
                result = call(*args, **kwargs)
                outputs.setdefault(id(layer), result[0] if isinstance(result, (list, tuple)) else result)
                return result

            return capture

        for layer in self.layers:
            layer.__dict__["call"] = wrapped(layer)
        try:
            yield outputs
        finally:
            for layer in self.layers:
                layer.__dict__.pop("call", None)

    def _jax(self) -> Any:
        import jax

        def measure(trained: Any, others: Any, x: Any, y: Any, weight: Any) -> Any:
            model = self.model

            def loss(values: Any) -> Any:
                mapping = [*zip(model.trainable_variables, values), *zip(model.non_trainable_variables, others)]
                return self._run(mapping, x, y, weight)

            return jax.grad(loss, has_aux=True)(trained)

        return jax.jit(measure)

    def _tensorflow(self) -> Any:
        import tensorflow

        def measure(x: Any, y: Any, weight: Any) -> Any:
            variables = self.model.trainable_variables
            values = [tensorflow.convert_to_tensor(it.value) for it in variables]
            with tensorflow.GradientTape(watch_accessed_variables=False) as tape:
                tape.watch(values)
                loss, outputs = self._run(list(zip(variables, values)), x, y, weight)
            # The gradient of an embedding is sparse.
            gradients = tape.gradient(loss, values)
            return [None if it is None else tensorflow.convert_to_tensor(it) for it in gradients], outputs

        return tensorflow.function(measure, reduce_retracing=True, autograph=False)
