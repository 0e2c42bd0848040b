"""Layers and losses of repaired models."""

from __future__ import annotations

from typing import Any

import keras


@keras.saving.register_keras_serializable(package="surefoot")
class CleanInputs(keras.layers.Layer):
    """Replaces missing values of every feature and clips outliers.

    Args:
        mean: Value of each feature that replaces missing ones.
        low: Smallest value of each feature; ``None`` does not clip.
        high: Largest value of each feature.
        axis: Axis of the features.

    Example:
        >>> import numpy
        >>> layer = CleanInputs([2.0], low=[0.0], high=[5.0])
        >>> x = numpy.array([[1.0], [float("nan")], [100.0]], "float32")
        >>> keras.ops.convert_to_numpy(layer(x)).ravel().tolist()
        [1.0, 2.0, 5.0]
    """

    def __init__(
        self,
        mean: list[float],
        low: list[float] | None = None,
        high: list[float] | None = None,
        axis: int = -1,
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self.mean, self.low, self.high, self.axis = mean, low, high, axis

    def call(self, inputs: Any) -> Any:
        x = keras.ops.cast(inputs, self.compute_dtype)
        if self.low is not None and self.high is not None:
            x = keras.ops.minimum(keras.ops.maximum(x, self._along(self.low, x)), self._along(self.high, x))
        return keras.ops.where(keras.ops.isfinite(x), x, self._along(self.mean, x))

    def _along(self, values: list[float], x: Any) -> Any:
        shape = [1] * len(x.shape)
        shape[self.axis] = len(values)
        return keras.ops.reshape(keras.ops.convert_to_tensor(values, x.dtype), shape)

    def compute_output_shape(self, input_shape: Any) -> Any:
        return input_shape

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mean": self.mean, "low": self.low, "high": self.high, "axis": self.axis}
