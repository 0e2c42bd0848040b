"""Keras 3: watching ``model.fit``, and training with repair, on PyTorch, TensorFlow and JAX."""

from surefoot.keras.fit import fit
from surefoot.keras.watch import Watch

__all__ = ["Watch", "fit"]
