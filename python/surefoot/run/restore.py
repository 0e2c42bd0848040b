"""Puts saved values back into the objects of a program. Nothing is unpickled."""

from __future__ import annotations

import array
import collections
import random
import sys
from typing import Any

from surefoot import _core
from surefoot.run import variables
from surefoot.run.graph import find_named
from surefoot.run.loaders import KeyedIterator

_PYTHON_GENERATOR: Any = random.SystemRandom.__mro__[1]
MISSING = object()
"""Stands for no value."""


class RestoreError(Exception):
    """A checkpoint does not fit the program; the message says why."""


class Restorer:
    """Puts saved values back into the objects of a program."""

    def __init__(self, nodes: list[Any], tensors: dict[str, tuple[str, list[int], bytes]], loaders: Any) -> None:
        self.nodes, self.tensors, self.loaders = nodes, tensors, loaders
        self._made: dict[int, Any] = {}
        self.missing: list[str] = []
        """Variables that the program has not created yet, and objects that have none yet."""

    def value(self, saved: Any, live: Any = MISSING) -> Any:
        """Returns the saved value: ``live`` if it could be changed in place. ``MISSING`` if it is to be left alone."""
        if not isinstance(saved, dict):
            return saved
        if "keep" in saved:
            return live
        if "name" in saved:
            # A function is only taken from its module if the object that had it is new.
            found = find_named(saved["name"]) if saved["member"] or live is MISSING else None
            return live if found is None else found
        index = saved["ref"]
        if index in self._made:
            return self._made[index]
        node = self.nodes[index]
        if node["t"] == "keep":
            return live
        made = getattr(self, "_" + node["t"])(node, live, index)
        self._made[index] = made
        return made

    def _bytes_of(self, content: Any) -> tuple[str, list[int], bytes] | None:
        """The saved array; ``None`` if it is to be as the script has built it."""
        if isinstance(content, dict):
            return None
        if content not in self.tensors:
            raise RestoreError(f"the checkpoint has no tensor `{content}`")
        return self.tensors[content]

    def _tensor(self, node: Any, live: Any, index: int) -> Any:
        torch = sys.modules["torch"]
        is_tensor = isinstance(live, torch.Tensor)
        array = self._bytes_of(node["v"])
        if array is None:
            if not is_tensor:
                raise RestoreError("a tensor that the script built before its loop is missing")
            plain = live.detach().cpu().contiguous()
            if node["v"]["same"] not in (None, _core.digests([plain.data_ptr()], [plain.nbytes])[0]):
                raise RestoreError("the script creates other data than in the run; was a file changed?")
            made = live
        else:
            _, shape, content = array
            dtype = getattr(torch, node["dtype"])
            flat = torch.frombuffer(bytearray(content), dtype=dtype) if content else torch.empty(0, dtype=dtype)
            restored = flat.reshape(shape)
            if is_tensor and live.shape == restored.shape and live.dtype == dtype and live.is_leaf:
                live.data.copy_(restored)
                made = live
            else:
                made = restored.clone().to(node["device"])
                if node["parameter"]:
                    made = torch.nn.Parameter(made, requires_grad=node["grad"])
            if made.requires_grad != node["grad"] and made.is_leaf and made.is_floating_point():
                made.requires_grad_(node["grad"])
        self._made[index] = made
        if made.is_leaf and made.requires_grad:
            gradient = node.get("gradient")
            if gradient == "zero":
                made.grad = torch.zeros_like(made)
            else:
                made.grad = None if gradient is None else self.value(gradient, MISSING)
        return made

    def _ndarray(self, node: Any, live: Any, index: int) -> Any:
        numpy = sys.modules["numpy"]
        is_array = isinstance(live, numpy.ndarray)
        array = self._bytes_of(node["v"])
        if array is None:
            if not is_array:
                raise RestoreError("an array that the script built before its loop is missing")
            plain = numpy.ascontiguousarray(live)
            if node["v"]["same"] not in (None, _core.digests([plain.ctypes.data], [plain.nbytes])[0]):
                raise RestoreError("the script creates other data than in the run; was a file changed?")
            return live
        _, shape, content = array
        restored = numpy.frombuffer(content, dtype=node["dtype"]).reshape(shape)
        if is_array and live.shape == restored.shape and live.dtype == restored.dtype and live.flags.writeable:
            live[...] = restored
            return live
        return restored.copy()

    def array(self, content: Any) -> Any:
        """The saved NumPy array; ``None`` if it is to be as the script has built it."""
        found = self._bytes_of(content["v"])
        if found is None:
            return None
        _, shape, raw = found
        return sys.modules["numpy"].frombuffer(raw, dtype=content["dtype"]).reshape(shape)

    def _variable(self, node: Any, live: Any, index: int) -> Any:
        return variables.restore_variable(self, node, live)

    def _array(self, node: Any, live: Any, index: int) -> Any:
        return variables.restore_array(self, node, live)

    def _tracked(self, node: Any, live: Any, index: int) -> Any:
        return variables.restore_tracked(self, node, live)

    def _position(self, node: Any, live: Any, index: int) -> Any:
        return variables.restore_position(self, node, live)

    def _scalar(self, node: Any, live: Any, index: int) -> Any:
        return self._ndarray(node["v"], None, index)[()]

    def _torch_generator(self, node: Any, live: Any, index: int) -> Any:
        torch = sys.modules["torch"]
        made = live if isinstance(live, torch.Generator) else torch.Generator()
        made.set_state(self._tensor(node["v"], None, -1 - index))
        return made

    def _numpy_generator(self, node: Any, live: Any, index: int) -> Any:
        numpy = sys.modules["numpy"]
        state = self.value(node["v"])
        bits = getattr(numpy.random, state["bit_generator"])
        made = live if isinstance(live, numpy.random.Generator) else numpy.random.Generator(bits(0))
        made.bit_generator.state = state
        return made

    def _numpy_legacy(self, node: Any, live: Any, index: int) -> Any:
        numpy = sys.modules["numpy"]
        made = live if isinstance(live, numpy.random.RandomState) else numpy.random.RandomState(0)
        made.set_state(self.value(node["v"]))
        return made

    def _random(self, node: Any, live: Any, index: int) -> Any:
        made = live if isinstance(live, _PYTHON_GENERATOR) else random.Random(0)
        made.setstate(self.value(node["v"]))
        return made

    def _iterator(self, node: Any, live: Any, index: int) -> Any:
        if isinstance(live, KeyedIterator) and live.source.number == node["loader"]:
            live.restart(*node["v"])
            return live
        return live

    def _bytes(self, node: Any, live: Any, index: int) -> Any:
        return bytes.fromhex(node["v"])

    def _bytearray(self, node: Any, live: Any, index: int) -> Any:
        return bytearray.fromhex(node["v"])

    def _complex(self, node: Any, live: Any, index: int) -> Any:
        return complex(*node["v"])

    def _numbers(self, node: Any, live: Any, index: int) -> Any:
        content = self._bytes_of(node["v"])
        if content is None:
            return live
        dtype, _, raw = content
        values = array.array("q" if dtype == "I64" else "d")
        values.frombytes(raw)
        return self._fill(node, live, index, values.tolist())

    def _list(self, node: Any, live: Any, index: int) -> Any:
        old = live if isinstance(live, list) else []
        if not isinstance(live, list):
            live = []
        self._made[index] = live
        items = [self.value(item, old[i] if i < len(old) else MISSING) for i, item in enumerate(node["v"])]
        live[:] = [item for item in items if item is not MISSING]
        return live

    def _tuple(self, node: Any, live: Any, index: int) -> Any:
        old = live if isinstance(live, tuple) else ()
        items = [self.value(item, old[i] if i < len(old) else MISSING) for i, item in enumerate(node["v"])]
        if len(old) == len(items) and all(a is b for a, b in zip(items, old)):
            return live
        return self._fill(node, live, index, items)

    def _collection(self, node: Any, live: Any, index: int) -> Any:
        items = [self.value(item) for item in node["v"]]
        return self._fill(node, live, index, items)

    def _fill(self, node: Any, live: Any, index: int, items: list[Any]) -> Any:
        kind = find_named(node["c"])
        if isinstance(live, list):
            live[:] = items
            return live
        if isinstance(live, set):
            live.clear()
            live.update(items)
            return live
        if isinstance(live, collections.deque) and live.maxlen == node.get("max"):
            live.clear()
            live.extend(items)
            return live
        if kind is collections.deque:
            return collections.deque(items, node.get("max"))
        if kind is None:
            return tuple(items) if node["t"] == "tuple" else items
        if issubclass(kind, tuple) and hasattr(kind, "_fields"):
            return kind(*items)
        return kind(items)

    def _dict(self, node: Any, live: Any, index: int) -> Any:
        kind = find_named(node["c"])
        if not isinstance(live, dict):
            live = kind() if kind in (dict, collections.OrderedDict, collections.Counter) else {}
            if kind is collections.defaultdict:
                live = collections.defaultdict()
        self._made[index] = live
        new = {}
        for saved_key, saved in node["v"]:
            key = self.value(saved_key)
            if key is MISSING:
                continue
            new[key] = self.value(saved, live.get(key, MISSING))
        kept = {key: value for key, value in new.items() if value is not MISSING}
        if list(kept) != list(live) or any(live[key] is not value for key, value in kept.items()):
            live.clear()
            live.update(kept)
        return live

    def _object(self, node: Any, live: Any, index: int) -> Any:
        kind = find_named(node["c"])
        if live is MISSING or type(live) is not kind:
            if kind is None or not isinstance(kind, type) or node["partial"]:
                return live
            try:
                live = object.__new__(kind)
            except TypeError:
                return MISSING
        self._made[index] = live
        for name, saved in node["v"].items():
            attributes = getattr(live, "__dict__", {})
            old = attributes[name] if name in attributes else getattr(live, name, MISSING)
            new = self.value(saved, old)
            if new is not old and new is not MISSING:
                if name in attributes or not hasattr(type(live), name):
                    object.__setattr__(live, name, new)
                else:
                    setattr(live, name, new)
        return live

    def _optimizer(self, node: Any, live: Any, index: int) -> Any:
        torch = sys.modules["torch"]
        if not isinstance(live, torch.optim.Optimizer):
            raise RestoreError("the script does not create an optimizer of the checkpoint; was it changed?")
        self._made[index] = live
        parameters = [p for group in live.param_groups for p in group["params"]]
        if len(parameters) != len(node["parameters"]) or len(live.param_groups) != len(node["groups"]):
            raise RestoreError("an optimizer has other parameters than in the checkpoint; was the script changed?")
        for saved, parameter in zip(node["parameters"], parameters):
            self.value(saved, parameter)
        for group, saved in zip(live.param_groups, node["groups"]):
            for name, content in saved.items():
                group[name] = self.value(content, group.get(name, MISSING))
        old = dict(live.state)
        live.state.clear()
        for at, entries in node["state"]:
            before = old.get(parameters[at], {})
            state = {name: self.value(content, before.get(name, MISSING)) for name, content in entries.items()}
            live.state[parameters[at]] = state
        return live
