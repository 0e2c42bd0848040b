"""Variables and arrays of TensorFlow, Keras and JAX in checkpoints: how they are saved and put back."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any

from surefoot.run.record import numpy_of

if TYPE_CHECKING:
    from surefoot.run.graph import Saver
    from surefoot.run.restore import Restorer

UNKNOWN = object()
"""The value does not belong to one of these libraries."""

_LIBRARIES = frozenset("tensorflow keras tf_keras jax jaxlib flax optax h5py absl google ml_dtypes".split())
_PLAIN = (bool, int, float, str, type(None))


def _kinds(module: str, *names: str) -> tuple[Any, ...]:
    found: list[Any] = []
    for name in names:
        value: Any = sys.modules.get(module)
        for part in name.split("."):
            value = getattr(value, part, None)
        if isinstance(value, type):
            found.append(value)
    return tuple(found)


def _is_loaded() -> bool:
    return "tensorflow" in sys.modules or "keras" in sys.modules or "jax" in sys.modules


def content_of(saver: Saver, value: Any, path: str) -> Any:
    """Returns the node of a value, ``None`` to leave it alone, or ``UNKNOWN``."""
    if not _is_loaded():
        return UNKNOWN
    variables = _kinds("keras", "Variable") + _kinds("tensorflow", "Variable")
    if isinstance(value, variables):
        return {"t": "variable", "v": saver.array(numpy_of(value), path)}
    if isinstance(value, _kinds("tensorflow", "Tensor")):
        if not hasattr(value, "numpy") or value.dtype.name in ("string", "variant", "resource"):
            return None
        return {"t": "array", "f": "tensorflow", "v": saver.array(numpy_of(value), path)}
    if isinstance(value, _kinds("jax", "Array")):
        if not sys.modules["jax"].dtypes.issubdtype(value.dtype, sys.modules["numpy"].number) and value.dtype != bool:
            # A key of `jax.random` with its own type.
            data = sys.modules["jax"].random.key_data(value)
            return {"t": "array", "f": "jax key", "v": saver.array(numpy_of(data), path)}
        return {"t": "array", "f": "jax", "v": saver.array(numpy_of(value), path)}
    held = held_by(value)
    if held is not None:
        return _tracked(saver, value, held, path)
    if type(value).__name__ == "OwnedIterator":
        if getattr(value, "_surefoot_is_restored", False):
            saver.unsaved[path] = "iterator that the script has restored"
            return None
        return {"t": "position", "v": getattr(value, "_surefoot_position", 0)}
    callbacks = _kinds("keras", "callbacks.Callback") + _kinds("tf_keras", "callbacks.Callback")
    if isinstance(value, callbacks + _kinds("tensorflow", "train.CheckpointManager")):
        return UNKNOWN
    if type(value).__module__.partition(".")[0] in _LIBRARIES and not isinstance(value, (list, tuple, dict, set)):
        return None
    return UNKNOWN


def held_by(value: Any) -> list[Any] | None:
    """Returns the variables of a layer, a model, an optimizer or the like; ``None`` for other objects."""
    for library in ("keras", "tf_keras"):
        if isinstance(value, _kinds(library, "Model")):
            return [*value.variables, *getattr(value, "metrics_variables", [])]
        if isinstance(value, _kinds(library, "Layer", "layers.Layer", "metrics.Metric")):
            return list(value.variables)
        if isinstance(value, _kinds(library, "optimizers.Optimizer", "optimizers.legacy.Optimizer")):
            variables = value.variables
            return list(variables() if callable(variables) else variables)
        if isinstance(value, _kinds(library, "random.SeedGenerator")):
            return [value.state]
    if isinstance(value, _kinds("tensorflow", "random.Generator")):
        return [value.state]
    if isinstance(value, _kinds("tensorflow", "train.Checkpoint")):
        return [value._save_counter] if value._save_counter is not None else []
    if isinstance(value, _kinds("tensorflow", "Module")):
        return list(value.variables)
    return None


def _names(owner: Any, variables: list[Any]) -> list[str]:
    names = [str(getattr(v, "path", None) or getattr(v, "name", i)) for i, v in enumerate(variables)]
    return [plain_name(owner, name) for name in names]


def plain_name(owner: Any, name: str) -> str:
    """The name of a variable without that of its optimizer, which may be numbered.

    Optimizers of Keras 2 put their name before it, except for variables that a checkpoint of the script created.
    """
    return re.sub(rf"^{re.escape(str(getattr(owner, '_name', '')))}(_\d+)?/", "", name)


def _tracked(saver: Saver, value: Any, held: list[Any], path: str) -> dict[str, Any]:
    names = _names(value, held)
    node: dict[str, Any] = {"t": "tracked", "c": type(value).__qualname__, "names": names}
    node["v"] = [saver.value(variable, f"{path}.{name}") for name, variable in zip(names, held)]
    optimizer = getattr(value, "optimizer", None)
    if held_by(optimizer) is not None:
        node["optimizer"] = saver.value(optimizer, f"{path}.optimizer")
    trained = getattr(value, "_trainable_variables", None)
    if isinstance(value, _kinds("keras", "optimizers.Optimizer")) and trained is not None:
        node["trained"] = [saver.value(variable, f"{path}.trained.{i}") for i, variable in enumerate(trained)]
    if type(value).__module__.partition(".")[0] not in _LIBRARIES:
        numpy = sys.modules["numpy"]
        kinds = (*_PLAIN, numpy.ndarray, numpy.generic)
        own = {k: v for k, v in vars(value).items() if not k.startswith("_") and isinstance(v, kinds)}
        node["own"] = {name: saver.value(item, f"{path}.{name}") for name, item in own.items()}
    return node


def _name(node: Any) -> str:
    name = node["v"]["v"]
    return name if isinstance(name, str) else "a variable"


def restore_variable(restorer: Restorer, node: Any, live: Any) -> Any:
    """Assigns a saved variable to the one of the program."""
    if not isinstance(live, _kinds("keras", "Variable") + _kinds("tensorflow", "Variable")):
        restorer.missing.append(_name(node))
        return live
    array = restorer.array(node["v"])
    if array is not None:
        if tuple(live.shape) != array.shape:
            restorer.missing.append(_name(node))
            return live
        live.assign(array)
    return live


def restore_array(restorer: Restorer, node: Any, live: Any) -> Any:
    """Makes a saved tensor of TensorFlow or JAX."""
    array = restorer.array(node["v"])
    if array is None:
        return live
    if node["f"] == "tensorflow":
        return sys.modules["tensorflow"].constant(array)
    jax: Any = sys.modules["jax"]
    made = jax.numpy.asarray(array)
    return jax.random.wrap_key_data(made) if node["f"] == "jax key" else made


def restore_tracked(restorer: Restorer, node: Any, live: Any) -> Any:
    """Assigns the variables of a layer, a model or an optimizer."""
    held = held_by(live)
    if held is None or type(live).__qualname__ != node["c"]:
        restorer.missing.append(node["c"])
        return live
    if len(held) != len(node["v"]) and "trained" in node and not live.built:
        trained = [restorer.value(saved) for saved in node["trained"]]
        if all(isinstance(variable, _kinds("keras", "Variable")) for variable in trained):
            live.build(trained)
            held = held_by(live) or []
    if len(held) != len(node["v"]) and isinstance(live, _kinds("tensorflow", "train.Checkpoint")):
        live._maybe_create_save_counter()
        held = held_by(live) or []
    if len(held) != len(node["v"]):
        restorer.missing.append(node["c"])
        return live
    names = _names(live, held)
    if sorted(names) == sorted(node["names"]):
        # An optimizer that a checkpoint of the script was loaded into may create its variables in another order.
        places: dict[str, list[Any]] = {}
        for name, variable in zip(names, held):
            places.setdefault(name, []).append(variable)
        held = [places[name].pop(0) for name in node["names"]]
    for saved, variable in zip(node["v"], held):
        restorer.value(saved, variable)
    if "optimizer" in node:
        restorer.value(node["optimizer"], live.optimizer)
    for name, saved in node.get("own", {}).items():
        old = vars(live).get(name)
        new = restorer.value(saved, old)
        if new is not old:
            setattr(live, name, new)
    return live


def restore_position(restorer: Restorer, node: Any, live: Any) -> Any:
    """Moves an iterator of ``tf.data`` to where it was: puts back elements of a trial iteration, or takes more."""
    while getattr(live, "_surefoot_position", 0) > node["v"] and getattr(live, "_surefoot_taken", None):
        live._surefoot_ahead = [*getattr(live, "_surefoot_ahead", ()), live._surefoot_taken.pop()]
        live._surefoot_position -= 1
    while getattr(live, "_surefoot_position", 0) < node["v"]:
        next(live)
    return live
