"""``surefoot.keras.fit``: training with repair for Keras."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import keras

from surefoot.fit import Result, check_forbid, check_options


def fit(
    model: Any,
    x: Any = None,
    y: Any = None,
    batch_size: int | None = None,
    epochs: int = 1,
    verbose: Any = "auto",
    callbacks: Any = None,
    validation_split: float = 0.0,
    validation_data: Any = None,
    shuffle: bool = True,
    class_weight: Any = None,
    sample_weight: Any = None,
    steps_per_epoch: int | None = None,
    validation_steps: int | None = None,
    validation_batch_size: int | None = None,
    *,
    metric: Callable[[Any, Any], float] | None = None,
    seed: int = 0,
    repair: bool = True,
    forbid: Iterable[str] = (),
    attempts: int = 16,
    runs: str | Path | None = "runs",
    name: str | None = None,
) -> Result:
    """Trains a compiled Keras model like ``model.fit``, and repairs and retrains it if something goes wrong.

    The training as given is that of ``model`` itself. At a problem, each of several remedies is tried on a new model
    with the same initial weights, and the best attempt continues; see :func:`surefoot.fit`. ``result.model`` is
    ``model`` unless the status is ``repaired``. Both end with the weights of their best epoch.

    Args:
        model: A compiled model. The layers of ``Sequential`` and functional models can be changed; for others, see
            ``docs/python.md``.
        x: Inputs as arrays, or a ``tf.data.Dataset``, ``PyDataset`` or ``DataLoader`` of batches.
        y: Targets as arrays.
        batch_size: Samples per step, 32 by default.
        epochs: Number of epochs.
        verbose: 0 prints nothing, as in ``model.fit``.
        callbacks: Keras callbacks. All are called for the training as given; attempts use copies of
            ``EarlyStopping``, ``ReduceLROnPlateau`` and ``LearningRateScheduler``.
        validation_split: Share of the last samples that are used for validation.
        validation_data: Inputs, targets and perhaps sample weights for validation, or batches of them. Without
            validation data, the training data is evaluated.
        shuffle: Shuffles arrays in each epoch.
        class_weight: Weights of classes in the loss.
        sample_weight: Weights of samples in the loss.
        steps_per_epoch: Largest number of steps of an epoch.
        validation_steps: Largest number of validation batches.
        validation_batch_size: Samples per validation batch.
        metric: Metric of all outputs and targets, better when larger; by default the accuracy for classes and R² for
            numbers.
        seed: Seed of new weights and of the sample order.
        repair: False only reports problems.
        forbid: Ids of remedies that must not be tried, such as ``["optimizer"]``.
        attempts: Maximum number of attempts.
        runs: Directory below which the runs are recorded; ``None`` records nothing.
        name: Name of the run; by default that of the script.

    Example:
        >>> import keras, numpy, surefoot.keras
        >>> keras.utils.set_random_seed(1)
        >>> x = numpy.random.default_rng(1).uniform(-1, 1, (600, 2)).astype("float32")
        >>> y = (numpy.linalg.norm(x, axis=1) < 0.8).astype("float32")
        >>> hidden = [keras.layers.Dense(16, "sigmoid") for _ in range(9)]
        >>> model = keras.Sequential([keras.Input((2,)), *hidden, keras.layers.Dense(1, "sigmoid")])
        >>> model.compile(keras.optimizers.SGD(0.1), "binary_crossentropy")
        >>> result = surefoot.keras.fit(
        ...     model, x, y, epochs=20, batch_size=16, validation_split=0.3, verbose=0, runs=None
        ... )
        >>> result.status, result.after > result.before + 0.2
        ('repaired', True)
    """
    check_options(epochs=epochs, batch_size=batch_size, seed=seed, attempts=attempts)
    allowed = check_forbid(forbid)
    if not isinstance(model, keras.Model):
        raise TypeError(f"model must be a Keras model, not {type(model).__name__}")
    if not model.compiled:
        raise ValueError("the model is not compiled; call model.compile(...) first")
    from surefoot.keras.contest import Trainings
    from surefoot.keras.data import Data

    train = Data(x, y, sample_weight, steps=steps_per_epoch)
    validation: Data | None = None
    if validation_data is not None:
        parts = validation_data if isinstance(validation_data, (list, tuple)) else (validation_data,)
        validation = Data(*parts, steps=validation_steps)
    elif validation_split:
        train, validation = train.split(validation_split)
    if not model.built:
        model(keras.tree.map_structure(lambda it: it[:1], train.sample()[0]))
    trainings = Trainings(
        model,
        train,
        validation,
        batch_size=batch_size,
        epochs=epochs,
        verbose=verbose,
        callbacks=list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else [],
        shuffle=shuffle,
        class_weight=class_weight,
        validation_batch_size=validation_batch_size,
        metric=metric,
        seed=seed,
        runs=runs,
        name=name,
        script=sys._getframe(1).f_code.co_filename,
    )
    return trainings.run(repair=repair, forbid=allowed, attempts=attempts, quiet=verbose == 0)
