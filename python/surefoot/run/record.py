"""Records every optimizer step of a script: digests of the batch, the loss, the parameters, the buffers and the optimizer."""

from __future__ import annotations

import gc
import json
import math
import operator
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from surefoot import _core
from surefoot.run.keys import STEP, Keys
from surefoot.run.loaders import Loaders

Part = tuple[list[int], list[int]]
"""Addresses and sizes of tensors."""
Collected = tuple[Part, "float | None"]
"""The batch and the loss of all processes."""


def tensors_in(value: Any, depth: int = 0) -> Iterator[Any]:
    """Yields the tensors of a batch or of an optimizer's state, in order."""
    torch = sys.modules["torch"]
    if isinstance(value, torch.Tensor):
        yield value
    elif depth < 4:
        if isinstance(value, dict):
            value = value.values()
        elif not isinstance(value, (list, tuple)):
            return
        for item in value:
            yield from tensors_in(item, depth + 1)


def leaves_of(value: Any) -> Iterator[Any]:
    """Yields the arrays, tensors and variables in nested containers, in order."""
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        if hasattr(value, "dtype") and hasattr(value, "shape"):
            yield value
        return
    for item in value:
        yield from leaves_of(item)


def numpy_of(value: Any) -> Any:
    """Returns an array, tensor or variable of any framework as a contiguous NumPy array."""
    numpy = sys.modules["numpy"]
    torch = sys.modules.get("torch")
    value = getattr(value, "value", value) if type(value).__module__.startswith("keras.") else value
    if torch is not None and isinstance(value, torch.Tensor):
        value = value.detach().cpu()
    array = value.numpy() if hasattr(value, "numpy") else numpy.asarray(value)
    return numpy.asarray(array, order="C")


def memory_of(tensors: list[Any], alive: list[Any]) -> Part:
    """Addresses and sizes of tensors. Copies that are needed for it are appended to ``alive``."""
    addresses, sizes = [], []
    remote = []
    for tensor in tensors:
        if tensor.device.type != "cpu":
            remote.append(tensor)
            continue
        if tensor.layout is not sys.modules["torch"].strided:
            tensor = tensor.detach().to_dense()
            alive.append(tensor)
        if not tensor.is_contiguous() and tensor.untyped_storage().nbytes() != tensor.nbytes:
            tensor = tensor.detach().contiguous()
            alive.append(tensor)
        addresses.append(tensor.data_ptr())
        sizes.append(tensor.nbytes)
    if remote:
        digests = _remote_digests(remote)
        alive.append(digests)
        addresses.append(digests.data_ptr())
        sizes.append(digests.nbytes)
    return addresses, sizes


def _remote_digests(tensors: list[Any]) -> Any:
    """One number per tensor, computed on its device and copied at once."""
    torch = sys.modules["torch"]
    numbers = [torch.hash_tensor(tensor.detach().reshape(-1)).view(torch.int64).reshape(1) for tensor in tensors]
    return torch.cat(numbers).cpu()


def leaves_below(loss: Any) -> list[Any]:
    """The tensors that ``backward`` of a loss computes gradients for, in the order of the graph."""
    found, seen, waiting = [], set(), [loss.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            found.append(node.variable)
        waiting.extend(following for following, _ in reversed(node.next_functions))
    return found


class Memory:
    """Addresses and sizes of some tensors. Most steps have the tensors of the step before, at the same addresses."""

    def __init__(self) -> None:
        self._tensors: list[Any] = []
        self._part: Part = ([], [])

    def of(self, tensors: list[Any], alive: list[Any]) -> Part:
        """Same as :func:`memory_of`, in a tenth of its time if nothing has moved."""
        known = self._tensors
        if len(tensors) == len(known) and all(map(operator.is_, tensors, known)):
            # After an assignment to `data`, the tensor is the same object at another address.
            if [tensor.data_ptr() for tensor in tensors] == self._part[0]:
                return self._part
        copies = len(alive)
        part = memory_of(tensors, alive)
        self._tensors, self._part = (tensors, part) if len(alive) == copies else ([], ([], []))
        return part


class OptimizerTensors:
    """Tensors of an optimizer: its parameters, the buffers of their models, and its state."""

    def __init__(self, parameters: list[Any]) -> None:
        self.count = len(parameters)
        self.parameters, self.buffers, self.states = Memory(), Memory(), Memory()
        self._roots = [weakref.ref(root) for root in models_of(parameters)]
        self._entries: list[Any] = []
        self._tensors: list[Any] = []
        self._extra: list[str] = []

    def all_buffers(self) -> list[Any]:
        """Returns the buffers of the models, read anew because their modules may have changed."""
        found: dict[int, Any] = {}
        waiting = [root() for root in self._roots]
        for module in waiting:
            if module is not None:
                for buffer in module._buffers.values():
                    if buffer is not None:
                        found[id(buffer)] = buffer
                waiting.extend(module._modules.values())
        return list(found.values())

    def state_of(self, optimizer: Any) -> tuple[list[Any], str]:
        """Returns the tensors in the state of the optimizer, and its numbers as text."""
        entries = [value for state in optimizer.state.values() for value in state.values()]
        if len(entries) != len(self._entries) or not all(map(operator.is_, entries, self._entries)):
            self._entries, self._tensors, self._extra = entries, [], []
            for state in optimizer.state.values():
                for name, value in state.items():
                    if isinstance(value, (int, float, str, bool)):
                        self._extra.append(f"{name}={value!r}")
                    else:
                        self._tensors.extend(tensors_in(value))
        rates = (group.get("lr") for group in optimizer.param_groups)
        numbers = [repr(rate) for rate in rates if isinstance(rate, float)]
        return self._tensors, " ".join(self._extra + numbers)


def models_of(parameters: list[Any]) -> list[Any]:
    """Finds the outermost modules that contain some of ``parameters``, in the order of these."""
    module_class = sys.modules["torch"].nn.Module
    order = {id(parameter): index for index, parameter in enumerate(parameters)}
    found: dict[int, tuple[int, Any]] = {}
    children: set[int] = set()
    # By the type: other objects may compute their `__class__`.
    for module in [item for item in gc.get_objects() if issubclass(type(item), module_class)]:
        if "_modules" not in module.__dict__:
            continue
        places = [order[id(p)] for p in module.parameters() if id(p) in order]
        if places:
            found[id(module)] = (min(places), module)
            children.update(id(child) for child in module.modules() if child is not module)
    roots = [place for key, place in found.items() if key not in children]
    return [module for _, module in sorted(roots, key=lambda root: root[0])]


class Collector(Protocol):
    """Collects the batches and losses of all processes of a program."""

    def collect(self, batch: list[Any], loss: float | None, parameters: Part, alive: list[Any]) -> Collected | None:
        """Returns the batch and the loss of all processes; ``None`` if they are independent."""


class Recording:
    """Follows the optimizer steps of a script and writes its record."""

    def __init__(self, recorder: _core.Recorder | None, keys: Keys, loaders: Loaders) -> None:
        self.recorder, self.keys, self.loaders = recorder, keys, loaders
        self.step = 0
        self.on_step: list[Callable[[Any], None]] = []
        self.losses: list[Any] = []
        """Losses since the last optimizer step."""
        self.has_gradients = False
        """True if gradients were computed since the last optimizer step."""
        self.has_optimizer = False
        """True if the program made an optimizer of PyTorch."""
        self.is_muted = False
        """True while an iteration is executed only for the objects that it creates."""
        self._parameters: list[weakref.ref[Any]] = []
        """Parameters that the latest loss depends on, if the program has no optimizer."""
        self.nonfinite_since: int | None = None
        """First step since which all losses have been NaN or infinite."""
        self._of_optimizer: weakref.WeakKeyDictionary[Any, OptimizerTensors] = weakref.WeakKeyDictionary()
        self.parallel: Collector | None = None
        """Set if the program has several processes."""
        self._passes: dict[int, list[int]] = {}
        """Passes over each loader in which a step was taken: the last one, and their number. Loader -1 is ``fit``."""
        self.is_waiting = False
        """True until the run that is resumed has reached the loop of its checkpoint."""
        self._waiting: list[tuple[str, dict[str, Any]]] = []
        """Events until then."""

    @property
    def epoch(self) -> int:
        """1-based epoch: the number of passes over a loader in which steps were taken."""
        return max((count for _, count in self._passes.values()), default=1)

    def state(self) -> dict[str, Any]:
        """Returns the counters for a checkpoint."""
        return {"step": self.step, "passes": [[loader, *place] for loader, place in self._passes.items()]}

    def restore(self, state: dict[str, Any]) -> None:
        """Sets the counters of a checkpoint."""
        self.step = state["step"]
        self._passes = {loader: place for loader, *place in state["passes"]}

    def count_pass(self, loader: int, number: int) -> None:
        """Counts pass ``number`` over a loader as an epoch, once."""
        place = self._passes.setdefault(loader, [-1, 0])
        if place[0] != number:
            place[:] = [number, place[1] + 1]

    def install(self) -> None:
        """Adds the hooks to PyTorch."""
        torch = sys.modules["torch"]
        sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook(self._after_step)
        optimizer: Any = torch.optim.Optimizer
        create = optimizer.__init__

        def created(made: Any, *args: Any, **kwargs: Any) -> None:
            self.has_optimizer = True
            create(made, *args, **kwargs)

        optimizer.__init__ = created
        # `Tensor.backward` calls it too.
        backward = torch.autograd.backward

        def noted(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if isinstance(tensors, torch.Tensor):
                self.note_loss(tensors)
            return backward(tensors, *args, **kwargs)

        torch.autograd.backward = noted

    def note_loss(self, loss: Any) -> None:
        """Remembers a loss until the next optimizer step."""
        self.has_gradients = True
        if not self.has_optimizer:
            self._parameters = [weakref.ref(parameter) for parameter in leaves_below(loss)]
        self.losses.append(loss.detach())
        del self.losses[:-16]

    def _after_step(self, optimizer: Any, _args: Any, _kwargs: Any) -> None:
        self._finish(lambda: self._write(optimizer), optimizer)

    def finish_iteration(self) -> None:
        """Ends a step at the head of a loop, in programs that change their parameters without an optimizer."""
        if self.has_gradients and not self.has_optimizer and self.losses:
            parameters = [p for p in (reference() for reference in self._parameters) if p is not None]
            models = models_of(parameters)
            buffers = [buffer for model in models for buffer in model.buffers()]
            alive: list[Any] = []
            parts = [memory_of(parameters, alive), memory_of(buffers, alive), ([], [])]
            self._finish(lambda: self._write_parts(parts, "", alive), None)

    def _finish(self, write: Callable[[], None], optimizer: Any) -> None:
        self.step += 1
        if self.loaders.owner is not None:
            self.count_pass(*self.loaders.owner)
        if (self.recorder is not None or self.parallel is not None) and not self.is_muted:
            try:
                write()
            except Exception as error:  # noqa: BLE001 - a fault of the record must not end the training
                self.stop(error)
        self.losses.clear()
        self.has_gradients = False
        for function in self.on_step:
            function(optimizer)
        self.keys.apply(STEP, self.step)

    def finish_arrays(self, parts: list[Any]) -> None:
        """Ends a step of Keras or TensorFlow. ``parts`` are nested arrays and variables, as in the record."""

        def write() -> None:
            assert self.recorder is not None
            arrays = [[numpy_of(value) for value in leaves_of(part)] for part in parts]
            memory = [([a.ctypes.data for a in part], [a.nbytes for a in part]) for part in arrays]
            scalars = [a for a in arrays[1] if a.size == 1]
            loss = float(scalars[0].reshape(())) if scalars else None
            self._note_finite(loss)
            self.recorder.step(self.step, self.epoch, loss, memory, "")

        self._finish(write, None)

    def _write(self, optimizer: Any) -> None:
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        held = self._of_optimizer.get(optimizer)
        if held is None or held.count != len(parameters):
            held = self._of_optimizer[optimizer] = OptimizerTensors(parameters)
        states, extra = held.state_of(optimizer)
        alive: list[Any] = []
        parts = [
            held.parameters.of(parameters, alive),
            held.buffers.of(held.all_buffers(), alive),
            held.states.of(states, alive),
        ]
        self._write_parts(parts, extra, alive)

    def _write_parts(self, last: list[Part], extra: str, alive: list[Any]) -> None:
        loss = self.losses[-1] if self.losses else None
        number = float(loss) if loss is not None and loss.numel() == 1 and loss.device.type == "cpu" else None
        batch = list(tensors_in(self.loaders.batch))
        collected = None if self.parallel is None else self.parallel.collect(batch, number, last[0], alive)
        if collected is None:
            first = [memory_of(batch, alive), memory_of(self.losses, alive)]
        else:
            # Losses have no digest: their rounding depends on the number of samples of a process.
            first, number = [collected[0], ([], [])], collected[1]
        self._note_finite(number)
        if self.recorder is not None:
            self.recorder.step(self.step, self.epoch, number, [*first, *last], extra)

    def _note_finite(self, loss: float | None) -> None:
        if loss is None or math.isfinite(loss):
            self.nonfinite_since = None
        elif self.nonfinite_since is None:
            self.nonfinite_since = self.step

    def event(self, kind: str, **fields: Any) -> None:
        """Records an event."""
        if self.is_waiting:
            self._waiting.append((kind, fields))
        elif self.recorder is not None:
            try:
                self.recorder.event(json.dumps({"event": kind, "step": self.step, **fields}))
            except Exception as error:  # noqa: BLE001 - as above
                self.stop(error)

    def begin(self, recorder: _core.Recorder | None) -> None:
        """Writes the record from now on, starting with the events that have waited for it."""
        self.recorder, self.is_waiting = recorder, False
        waiting, self._waiting = self._waiting, []
        for kind, fields in waiting:
            self.event(kind, **fields)

    def stop(self, error: Exception) -> None:
        """Stops recording after an error; the training continues."""
        self.recorder = None
        tell(f"the run is no longer recorded; the training continues: {error}")


_is_silent = False


def silence() -> None:
    """Prints only errors from now on: the first process of the program prints all other messages."""
    global _is_silent
    _is_silent = True


def tell(message: str) -> None:
    """Prints a message of the launcher to stderr."""
    if not _is_silent or message.startswith("error: "):
        print(f"surefoot: {message}", file=sys.stderr, flush=True)
