"""Observation of one forward pass: which layers ran, and what happened to their outputs."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, replace
from types import CodeType, FrameType, MethodDescriptorType
from typing import Any, Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakIdKeyDictionary

from surefoot.source import Position

from .activations import FUNCTIONS, GATES, OVER_CLASSES
from .layers import OTHER, Layer, is_norm, kind_of, sample_shape
from .loss import LossCall, loss_function
from .sites import position_of


@dataclass(eq=False)
class ActivationCall:
    """A call of an activation function during the forward pass.

    Attributes:
        activation: Name of the activation.
        function: The function or tensor method that was called.
        path: Name of the innermost module that was running.
        module: That module.
        layer: The layer whose output was activated, if it came from a single one.
        is_output: True if its result is an output of the model.
        is_gate: True if its result was multiplied with another value of the model.
        code: Code object of the caller.
        position: First and last line, first and last column of the call, as far as Python knows them.
    """

    activation: str
    function: Callable[..., Any]
    path: str
    module: nn.Module
    layer: Layer | None
    code: CodeType | None
    position: Position
    is_output: bool = False
    is_gate: bool = False

    @property
    def is_method(self) -> bool:
        """True for ``x.relu()``, where the activated tensor is no argument."""
        return isinstance(self.function, MethodDescriptorType)

    @property
    def is_hidden(self) -> bool:
        """True if another activation may take its place."""
        return not (self.is_output or self.is_gate or self.activation in OVER_CLASSES)


@dataclass(frozen=True)
class _Value:
    """Origin of a tensor: a layer's raw output, an activated output, or a mixture of several."""

    layer: Layer | None = None
    call: ActivationCall | None = None
    #: True if anything that is not known to keep the activation happened after it.
    changed: bool = False
    #: Number of layers with weights before it.
    depth: int = 0

    @property
    def is_raw(self) -> bool:
        return self.layer is not None and self.call is None


#: Untyped, because properties are read through their descriptors.
_TENSOR: Any = Tensor


def _members(names: str, *places: Any) -> set[Callable[..., Any]]:
    found = set()
    for name in names.split():
        for place in places or (torch, Tensor, F):
            function = getattr(place, name, None)
            if callable(function):
                found.add(function)
    return found


# An activation after one of these still belongs to the layer before.
_TRANSPARENT = _members(
    "view reshape flatten unflatten permute transpose t squeeze unsqueeze contiguous clone to float half "
    "bfloat16 double type type_as view_as reshape_as expand expand_as movedim swapaxes chunk split unbind "
    "tensor_split narrow select neg dropout dropout1d dropout2d dropout3d alpha_dropout feature_dropout "
    "feature_alpha_dropout pad pixel_shuffle __getitem__ requires_grad_ retain_grad cpu cuda"
) | {_TENSOR.T.__get__, _TENSOR.mT.__get__}
# The same, but of an activation before them no more than a mean or a maximum is left.
_POOLS = _members(
    "mean sum amax max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d avg_pool3d adaptive_max_pool1d "
    "adaptive_max_pool2d adaptive_max_pool3d adaptive_avg_pool1d adaptive_avg_pool2d adaptive_avg_pool3d "
    "lp_pool1d lp_pool2d interpolate upsample"
)
_NORMS = _members("batch_norm layer_norm group_norm instance_norm rms_norm")
_ADDITIONS = _members("add add_ sub sub_ rsub subtract __add__ __radd__ __iadd__ __sub__ __rsub__ __isub__")
_PRODUCTS = _members(
    "mul mul_ multiply div div_ divide true_divide __mul__ __rmul__ __imul__ __truediv__ __itruediv__"
)
# Linear in each of the values of the model that they take.
_LINEAR = _members(
    "matmul mm bmm addmm baddbmm einsum __matmul__ __rmatmul__ scaled_dot_product_attention bilinear tensordot "
    "multi_head_attention_forward"
)
_ARITHMETIC = _ADDITIONS | _PRODUCTS
_ATTENTIONS = _members("scaled_dot_product_attention multi_head_attention_forward", F)
_WEIGHTS: dict[Callable[..., Any], str] = {}
for _name, _kind in (
    ("linear", "dense"),
    ("conv1d", "conv1d"),
    ("conv2d", "conv2d"),
    ("conv3d", "conv3d"),
    ("conv_transpose1d", "conv_transpose1d"),
    ("conv_transpose2d", "conv_transpose2d"),
    ("conv_transpose3d", "conv_transpose3d"),
    ("embedding", "embedding"),
):
    _WEIGHTS |= dict.fromkeys(_members(_name, F), _kind)
_MATRIX = _members("matmul mm __matmul__")
_IGNORED = _members("detach detach_ item tolist numpy data") | {_TENSOR.data.__get__, _TENSOR.shape.__get__}

_TORCH = os.path.dirname(torch.__file__)
_NOT_CALLERS = {
    __file__,
    os.path.join(_TORCH, "overrides.py"),
    os.path.join(_TORCH, "_tensor.py"),
    os.path.join(_TORCH, "_jit_internal.py"),
    os.path.join(_TORCH, "nn", "functional.py"),
}


def tensors_in(value: Any, depth: int = 4) -> Iterator[Tensor]:
    """Yields the tensors inside nested lists, tuples, dictionaries and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif depth and isinstance(value, dict):
        for item in value.values():
            yield from tensors_in(item, depth - 1)
    elif depth and isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors_in(item, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__"):
        yield from tensors_in(list(vars(value).values()), depth - 1)


class ForwardTrace(TorchFunctionMode):
    """Records layers in execution order and the activations that follow them, while it is active.

    It adds a few microseconds to each call of PyTorch, for one forward pass, and keeps no tensor alive.
    """

    def __init__(self, model: nn.Module, layers: Iterable[Layer]) -> None:
        super().__init__()
        self.layers = list(layers)
        self.executed: list[Layer] = []
        self.calls: list[ActivationCall] = []
        #: Modules that compute an attention, in execution order, with their names.
        self.attentions: dict[nn.Module, str] = {}
        #: Layers that the outputs of the model come from.
        self.output_layers: list[Layer] = []
        self.loss: LossCall | None = None
        self._judged: list[_Value] = []
        self.has_residual = False
        #: The first error inside the observation, which ends it.
        self.error: Exception | None = None
        self._model = model
        self._paths = {id(module): name for name, module in model.named_modules()}
        self._root: nn.Module | None = None
        self._arguments: Any = ()
        self._outputs: list[_Value] = []
        self._stack: list[nn.Module] = []
        weak_dictionary: Any = WeakIdKeyDictionary
        self._values = weak_dictionary()
        # Parameters and views of them.
        self._weights = weak_dictionary()
        self._modules: dict[int, list[Layer]] = {}
        for layer in self.layers:
            self._modules.setdefault(id(layer.module), []).append(layer)
            for _, parameter in layer.parameters:
                self._weights.setdefault(parameter, layer)
        self._handles: list[Any] = []

    def start(self, arguments: Any, root: nn.Module) -> None:
        """Registers hooks and marks the inputs of the model.

        `root` has no hooks: its own are running, and PyTorch forbids to change them meanwhile.
        """
        self._root, self._arguments = root, arguments
        for module in self._model.modules():
            if module is root:
                continue
            self._handles.append(module.register_forward_pre_hook(self._entered))
            self._handles.append(module.register_forward_hook(self._left, always_call=True))
        for tensor in tensors_in(arguments):
            self._values.setdefault(tensor, _Value())

    def stop(self, output: Any) -> None:
        """Removes the hooks and keeps where the outputs come from."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if self._root is not None:
            self._left(self._root, self._arguments, output)
        self._root, self._arguments = None, ()
        self._outputs = self._found(tensors_in(output))
        if all(value.layer is None for value in self._outputs):
            # Where a step returns nothing but its loss, the loss function gets the outputs.
            self._outputs = self._judged

    def finish(self) -> None:
        """Notes the layers that the outputs of the last call come from."""
        for value in self._outputs:
            if value.layer is None:
                continue
            if value.call is None or value.changed:
                value.layer.uses.add(None if value.changed else "linear")
            if value.call is not None:
                value.call.is_output = True
            if value.layer not in self.output_layers:
                self.output_layers.append(value.layer)
        last = next((x for x in reversed(self.executed) if not is_norm(x.kind)), None)
        if last is not None and last not in self.output_layers:
            last.uses.add(None)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        if self.error is None:
            try:
                self._note(func, args, kwargs, result)
            except Exception as error:  # Training continues, and nothing more is learned.
                self.error = error
        return result

    def _entered(self, module: nn.Module, args: Any) -> None:
        self._stack.append(module)

    def _left(self, module: nn.Module, args: Any, output: Any) -> None:
        while self._stack and self._stack.pop() is not module:
            pass
        layers = self._modules.get(id(module), [])
        if len(layers) != 1 or self.error is not None:
            return
        (layer,) = layers
        # A container with a parameter of its own returns what its layers computed.
        if layer.kind == OTHER and next(module.children(), None) is not None:
            return
        self._ran(layer)
        first = next(tensors_in(output), None)
        if first is not None and not layer.output_shape:
            layer.output_shape = sample_shape(layer, first)
            given = next(tensors_in(args), None)
            layer.input_shape = sample_shape(layer, given) if given is not None else []
        if is_norm(layer.kind):
            return
        depth = 1 + max((value.depth for value in self._found(tensors_in(args))), default=0)
        for tensor in tensors_in(output):
            value = self._values.get(tensor)
            if value is None or value.layer is not layer:
                self._values[tensor] = _Value(layer, depth=depth)

    def _ran(self, layer: Layer) -> None:
        if layer not in self.executed:
            self.executed.append(layer)

    def _found(self, tensors: Iterable[Tensor]) -> list[_Value]:
        return [value for value in map(self._values.get, tensors) if value is not None]

    def _mark(self, result: Any, value: _Value) -> None:
        for tensor in tensors_in(result):
            self._values[tensor] = value

    def _note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        if func in _IGNORED or not _is_float(result):
            return
        if func in _ATTENTIONS:
            module = self._stack[-1] if self._stack else self._model
            self.attentions[module] = self._paths.get(id(module), "")
        tensors = list(tensors_in((args, kwargs)))
        owners = [self._weights.get(tensor) for tensor in tensors]
        for owner in owners:
            if owner is not None:
                self._ran(owner)
        values = self._found(tensors)
        name = FUNCTIONS.get(func)
        depth = max((value.depth for value in values), default=0)
        if name is not None:
            self._activated(func, name, values, result)
        elif (loss := loss_function(func)) is not None:
            if self.loss is None:
                self.loss, self._judged = LossCall.of(loss, args, kwargs), values
            self._use(values, "linear")
        elif (func in _WEIGHTS or func in _MATRIX) and any(owners):
            self._weighted(func, owners, values, result)
        elif func in _NORMS:
            self._normalized(func, owners, values, result)
        elif func in _TRANSPARENT and len(values) <= 1:
            if values:
                self._mark(result, values[0])
            elif owners and owners[0] is not None and isinstance(result, Tensor):
                self._weights[result] = owners[0]
        elif func in _ARITHMETIC and values or func in _POOLS and len(values) == 1:
            self._combined(func, values, result)
        elif values:
            self._use(values, "linear" if func in _LINEAR else None)
            first = values[0]
            if len(values) == 1 and first.call is not None:
                self._mark(result, replace(first, changed=True))
            else:
                self._mark(result, _Value(depth=depth))

    def _activated(self, func: Any, name: str, values: list[_Value], result: Any) -> None:
        value = values[0] if values else _Value()
        layer = value.layer if value.is_raw else None
        module = self._stack[-1] if self._stack else self._model
        code, position = _caller()
        path = self._paths.get(id(module), "")
        call = ActivationCall(name, func, path, module, layer, code, position)
        self.calls.append(call)
        self._use([value], name)
        if value.call is not None and value.layer is not None:
            value.layer.uses.add(None)  # An activation of an activation.
        self._mark(result, _Value(value.layer, call, depth=value.depth))

    def _weighted(
        self, func: Any, owners: list[Layer | None], values: list[_Value], result: Any
    ) -> None:
        if _WEIGHTS.get(func) != "embedding":
            self._use(values, "linear")
        # The weight is the second argument, or the first in `w @ x`.
        layer = next(owner for owner in (*owners[1:], owners[0]) if owner is not None)
        if layer.kind == OTHER:
            layer.kind = _WEIGHTS.get(func, "dense")
        is_bare = kind_of(layer.module) is None
        if is_bare and not layer.output_shape and isinstance(result, Tensor):
            layer.output_shape = sample_shape(layer, result)
        depth = 1 + max((value.depth for value in values), default=0)
        self._mark(result, _Value(layer, depth=depth))

    def _normalized(
        self, func: Any, owners: list[Layer | None], values: list[_Value], result: Any
    ) -> None:
        layer = next((owner for owner in owners if owner is not None), None)
        if layer is not None and layer.kind == OTHER:
            layer.kind = func.__name__
        if values:
            self._mark(result, values[0])
            if values[0].is_raw and values[0].layer is not None:
                values[0].layer.normalized = True

    def _combined(self, func: Any, values: list[_Value], result: Any) -> None:
        first = values[0]
        if len(values) == 1:
            self._mark(result, replace(first, changed=first.changed or first.call is not None))
            return
        for value in values:
            self._use([value], "linear" if values.count(first) == 1 else None)
            if func not in _ADDITIONS and value.call is not None and value.call.activation in GATES:
                value.call.is_gate = True
        depths = {value.depth for value in values}
        if func in _ADDITIONS and len(depths) > 1:
            self.has_residual = True
        self._mark(result, _Value(depth=max(depths)))

    @staticmethod
    def _use(values: list[_Value], name: str | None) -> None:
        for value in values:
            if value.is_raw and value.layer is not None:
                value.layer.uses.add(name)


def _is_float(result: Any) -> bool:
    first = next(tensors_in(result), None)
    return first is not None and (first.is_floating_point() or first.is_complex())


def _caller() -> tuple[CodeType | None, Position]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename in _NOT_CALLERS:
        frame = frame.f_back
    if frame is None:
        return None, (None, None, None, None)
    return frame.f_code, position_of(frame)
