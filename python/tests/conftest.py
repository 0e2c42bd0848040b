"""Settings of all tests."""

import os

# Without it, Keras imports TensorFlow. Must be set before Keras is imported.
os.environ.setdefault("KERAS_BACKEND", "torch")
