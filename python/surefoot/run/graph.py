"""The values that a program holds, as JSON and named tensors.

A value is walked from the variables of frames and modules. Plain values become JSON; tensors and arrays are named
after their path. Restoring changes the objects that the script has built again in place, so that whoever refers to
them sees the restored state. Nothing is unpickled: a new object of a class of the program gets its attributes set.
"""

from __future__ import annotations

import array
import collections
import enum
import io
import pathlib
import random
import sys
import types
from typing import Any

from surefoot import _core
from surefoot.run import variables
from surefoot.run.loaders import KeyedIterator

_PYTHON_GENERATOR: Any = random.SystemRandom.__mro__[1]
KEEP = {"keep": True}
"""Stands for a value that the script makes again by itself, such as a function."""

_CONSTANT = (
    types.ModuleType, types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.CodeType, type,
    property, enum.Enum, pathlib.PurePath, staticmethod, classmethod, types.MappingProxyType, slice, range,
    type(Ellipsis), type(NotImplemented), types.MethodWrapperType, types.WrapperDescriptorType,
)  # fmt: skip
# Their objects are for display or run other programs.
_SKIPPED = frozenset(
    "tqdm logging argparse threading queue concurrent multiprocessing typing abc re tensorboard tensorboardX wandb mlflow "
    "matplotlib functools weakref surefoot contextlib warnings rich socket subprocess _thread ast inspect".split()
)
_DISPLAY = frozenset(("rich", "tqdm"))
_MODULE_HOOKS = ("_hooks", "_hook", "_hooks_with_kwargs", "_hooks_always_called")
_PLAIN = (bool, int, float, str)
# In the path of the state of a generator, which is always saved.
_STATE = ".(state)"
# Below this, comparing costs more than writing.
_LARGE = 4096

_DTYPES = {
    "bool": "BOOL", "uint8": "U8", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "float16": "F16",
    "bfloat16": "BF16", "float32": "F32", "float64": "F64", "uint16": "U16", "uint32": "U32", "uint64": "U64",
    "complex64": "C64",
}  # fmt: skip


class Saver:
    """Turns values into JSON and a list of tensors."""

    def __init__(self, baseline: dict[str, Any] | None, saves_gradients: bool, keeps_unchanged: bool = False) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[tuple[str, str, list[int], int, int]] = []
        self.unsaved: dict[str, str] = {}
        self.digests: dict[str, Any] = {}
        """Digests of arrays by their path; with ``keeps_unchanged`` also plain values."""
        self.iterators: set[int] = set()
        self._baseline = baseline
        self._saves_gradients = saves_gradients
        self._keeps_unchanged = keeps_unchanged
        self._memo: dict[int, int] = {}
        self._alive: list[Any] = []
        self._names: set[str] = set()

    def member(self, value: Any, path: str) -> Any:
        """Returns the JSON of a variable, an attribute or a value of a dictionary.

        With ``keeps_unchanged``, a value that has not changed since the start of the loop is not saved, so each process
        keeps its own, such as its number.
        """
        if self._keeps_unchanged and (value is None or type(value) in _PLAIN):
            self.digests[path] = repr(value)
            if self._baseline is not None and self._baseline.get(path) == repr(value):
                return KEEP
        return self.value(value, path)

    def value(self, value: Any, path: str) -> Any:
        """Returns the JSON of a value."""
        kind = type(value)
        if value is None or kind in _PLAIN:
            return value
        known = self._memo.get(id(value))
        if known is not None:
            return {"ref": known}
        if isinstance(value, _CONSTANT):
            return _named(value)
        return self._node(value, path)

    def _new(self, value: Any) -> int:
        self._memo[id(value)] = len(self.nodes)
        self._alive.append(value)
        self.nodes.append(None)
        return len(self.nodes) - 1

    def _node(self, value: Any, path: str) -> Any:
        index = self._new(value)
        content = self._content(value, path)
        if content is None:
            # Later references to the same object are kept as well.
            self.nodes[index] = {"t": "keep"}
            return KEEP
        self.nodes[index] = content
        return {"ref": index}

    def _content(self, value: Any, path: str) -> dict[str, Any] | None:
        torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
        if torch is not None:
            if isinstance(value, torch.Tensor):
                return self._tensor(value, path)
            if isinstance(value, torch.optim.Optimizer):
                return self._optimizer(value, path)
            if isinstance(value, torch.Generator):
                return {"t": "torch_generator", "v": self._tensor(value.get_state(), path + _STATE)}
            if isinstance(value, (torch.device, torch.dtype)):
                return None
        if numpy is not None:
            if isinstance(value, numpy.ndarray):
                return self._ndarray(value, path)
            if isinstance(value, numpy.generic):
                return {"t": "scalar", "v": self._ndarray(numpy.asarray(value), path)}
            if isinstance(value, numpy.random.Generator):
                return {"t": "numpy_generator", "v": self.value(value.bit_generator.state, path + _STATE)}
            if isinstance(value, numpy.random.RandomState):
                return {"t": "numpy_legacy", "v": self.value(value.get_state(), path + _STATE)}
        content = variables.content_of(self, value, path)
        if content is not variables.UNKNOWN:
            return content  # type: ignore[no-any-return]
        if isinstance(value, _PYTHON_GENERATOR):
            return {"t": "random", "v": self.value(value.getstate(), path + _STATE)}
        if isinstance(value, KeyedIterator):
            self.iterators.add(value.source.number)
            place = [value.number, value.position, value.is_done]
            return {"t": "iterator", "loader": value.source.number, "v": place}
        if isinstance(value, (bytes, bytearray)):
            return {"t": type(value).__name__, "v": value.hex()}
        if isinstance(value, complex):
            return {"t": "complex", "v": [value.real, value.imag]}
        return self._container(value, path)

    def _container(self, value: Any, path: str) -> dict[str, Any] | None:
        if isinstance(value, dict):
            pairs = [[self.value(k, f"{path}[]"), self.member(v, f"{path}.{_label(k, i)}")]
                     for i, (k, v) in enumerate(value.items())]  # fmt: skip
            return {"t": "dict", "c": _class(value), "v": pairs}
        if isinstance(value, (list, tuple)):
            numbers = _numbers(value)
            if numbers is not None:
                self._alive.append(numbers)
                address, length = numbers.buffer_info()
                content = self._array(path, "I64" if numbers.typecode == "q" else "F64", [length], address, 8 * length)
                return {"t": "numbers", "c": _class(value), "v": content}
            items = [self.value(item, f"{path}.{i}") for i, item in enumerate(value)]
            return {"t": "list" if isinstance(value, list) else "tuple", "c": _class(value), "v": items}
        if isinstance(value, (set, frozenset, collections.deque)):
            items = [self.value(item, f"{path}.{i}") for i, item in enumerate(value)]
            return {"t": "collection", "c": _class(value), "v": items, "max": getattr(value, "maxlen", None)}
        return self._object(value, path)

    def _object(self, value: Any, path: str) -> dict[str, Any] | None:
        kind = type(value)
        package = kind.__module__.partition(".")[0]
        if package in _SKIPPED or kind.__module__.startswith("torch.utils.tensorboard") or _is_display(value):
            return None
        if isinstance(value, types.GeneratorType):
            self.unsaved[path] = "generator"
            return None
        if isinstance(value, io.IOBase):
            if value.writable() if not value.closed else False:
                self.unsaved[path] = "open file"
            return None
        reduce: Any = kind.__reduce_ex__
        if reduce is not object.__reduce_ex__ and not hasattr(value, "state_dict"):
            return None
        attributes = getattr(value, "__dict__", None)
        slots = [s for c in kind.__mro__ for s in _slots(c)]
        if attributes is None and not slots:
            if kind.__module__ not in ("builtins", "itertools", "_io", "_sre", "operator") and package != "torch":
                self.unsaved[path] = kind.__qualname__
            elif kind.__module__ == "itertools" or kind.__name__.endswith("iterator"):
                self.unsaved[path] = kind.__qualname__
            return None
        loader = getattr(sys.modules.get("torch"), "utils", None)
        is_loader = loader is not None and isinstance(value, loader.data.DataLoader)
        names = ("dataset", "sampler", "batch_sampler", "generator")
        saved = {}
        unsaved = len(self.unsaved)
        items = list((attributes or {}).items()) + [(s, getattr(value, s)) for s in slots if hasattr(value, s)]
        for name, item in items:
            if is_loader and name not in names or name.endswith(_MODULE_HOOKS):
                continue
            content = self.member(item, f"{path}.{name}")
            if content is not KEEP:
                saved[name] = content
        # One with parts that cannot be saved, such as a file, must be made by the program.
        return {"t": "object", "c": _class(value), "v": saved, "partial": len(self.unsaved) > unsaved}

    def _optimizer(self, value: Any, path: str) -> dict[str, Any]:
        parameters = [p for group in value.param_groups for p in group["params"]]
        place = {id(parameter): index for index, parameter in enumerate(parameters)}
        groups = []
        for number, group in enumerate(value.param_groups):
            groups.append({k: self.value(v, f"{path}.{number}.{k}") for k, v in group.items() if k != "params"})
        state = []
        for parameter, entries in value.state.items():
            at = place.get(id(parameter))
            if at is not None:
                state.append([at, {k: self.value(v, f"{path}.state.{at}.{k}") for k, v in entries.items()}])
        held = [self.value(p, f"{path}.parameter.{i}") for i, p in enumerate(parameters)]
        return {"t": "optimizer", "parameters": held, "groups": groups, "state": state}

    def _tensor(self, value: Any, path: str) -> dict[str, Any]:
        torch = sys.modules["torch"]
        dtype = str(value.dtype).removeprefix("torch.")
        if value.layout is not torch.strided or dtype not in _DTYPES or value.is_meta:
            self.unsaved[path] = f"tensor of type {dtype}, {value.layout}"
            return {"t": "keep"}
        plain = value.detach()
        if plain.device.type != "cpu" or not plain.is_contiguous():
            plain = plain.cpu().contiguous()
        if plain.is_conj() or plain.is_neg():
            plain = plain.resolve_conj().resolve_neg()
        self._alive.append(plain)
        node = {
            "t": "tensor",
            "v": self._array(path, _DTYPES[dtype], list(plain.shape), plain.data_ptr(), plain.nbytes),
            "dtype": dtype,
            "grad": value.requires_grad and value.is_leaf,
            "parameter": isinstance(value, torch.nn.Parameter),
            "device": str(value.device),
        }
        if value.is_leaf and value.grad is not None:
            node["gradient"] = self.value(value.grad, f"{path}.grad") if self._saves_gradients else "zero"
        return node

    def _ndarray(self, value: Any, path: str) -> dict[str, Any] | None:
        numpy = sys.modules["numpy"]
        dtype = value.dtype.name
        if dtype not in _DTYPES:
            self.unsaved[path] = f"array of type {value.dtype}"
            return {"t": "keep"}
        return {"t": "ndarray", **self.array(value, path)}

    def array(self, value: Any, path: str) -> dict[str, Any]:
        """Adds a NumPy array of a known type."""
        plain = sys.modules["numpy"].ascontiguousarray(value)
        self._alive.append(plain)
        dtype = value.dtype.name
        content = self._array(path, _DTYPES[dtype], list(value.shape), plain.ctypes.data, plain.nbytes)
        return {"v": content, "dtype": dtype}

    def _array(self, path: str, dtype: str, shape: list[int], address: int, size: int) -> Any:
        """Adds an array; one that is still as the script has built it is represented by its digest."""
        if (size >= _LARGE or self._keeps_unchanged) and _STATE not in path:
            digest = _core.digests([address], [size])[0]
            self.digests[path] = digest
            if self._baseline is not None and self._baseline.get(path) == digest:
                return {"same": digest if size >= _LARGE else None}
        name, number = path, 1
        while name in self._names:
            number += 1
            name = f"{path}#{number}"
        self._names.add(name)
        self.tensors.append((name, dtype, shape, address, size))
        return name


def _named(value: Any) -> Any:
    """A member of an enumeration, a function or a class by its name; ``KEEP`` for what has none."""
    is_member = isinstance(value, enum.Enum)
    if is_member:
        name = f"{type(value).__module__}:{type(value).__qualname__}.{value.name}"
    elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)):
        name = f"{value.__module__}:{value.__qualname__}"
    else:
        return KEEP
    return {"name": name, "member": is_member} if find_named(name) is value else KEEP


def _is_display(value: Any) -> bool:
    """Returns true for progress bars, and for objects of libraries that hold one, such as a callback."""
    if any(parent.__module__.partition(".")[0] in _DISPLAY for parent in type(value).__mro__):
        return True
    file = getattr(sys.modules.get(type(value).__module__), "__file__", None) or ""
    held = vars(value).values() if "site-packages" in file and hasattr(value, "__dict__") else ()
    return any(parent.__module__.partition(".")[0] in _DISPLAY for item in held for parent in type(item).__mro__)


def _slots(kind: type) -> list[str]:
    slots = kind.__dict__.get("__slots__", ())
    return [s for s in ([slots] if isinstance(slots, str) else slots) if s not in ("__dict__", "__weakref__")]


def _class(value: Any) -> str:
    return f"{type(value).__module__}:{type(value).__qualname__}"


def _label(key: Any, index: int) -> str:
    return str(key) if isinstance(key, (str, int)) else str(index)


def _numbers(values: Any) -> array.array[Any] | None:
    """The numbers of a long list in a compact form; ``None`` if it has anything else."""
    if len(values) < 64:
        return None
    kind = type(values[0])
    if kind not in (int, float) or any(type(value) is not kind for value in values):
        return None
    try:
        return array.array("q" if kind is int else "d", values)
    except OverflowError:
        return None


def find_named(name: str) -> Any:
    """The class with a name, if its module has been imported."""
    module, _, qualified = name.partition(":")
    found: Any = sys.modules.get(module)
    for part in qualified.split("."):
        found = getattr(found, part, None)
    return found
