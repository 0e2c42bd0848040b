"""Facts of the loss function: from its call, or from the graph that it leaves behind."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any, Callable, Iterable, Iterator, Mapping
from weakref import WeakSet

import torch
import torch.nn.functional as F
from torch import Tensor

#: Loss functions of PyTorch with their names in plans.
LOSSES: Mapping[Callable[..., Any], str] = {
    F.cross_entropy: "sparse_categorical_crossentropy",
    F.nll_loss: "nll",
    F.binary_cross_entropy: "binary_crossentropy",
    F.binary_cross_entropy_with_logits: "binary_crossentropy",
    F.mse_loss: "mse",
    F.l1_loss: "mae",
    F.smooth_l1_loss: "huber",
    F.huber_loss: "huber",
    F.kl_div: "kl_divergence",
    F.poisson_nll_loss: "poisson",
}
_TAKE_LOGITS = {F.cross_entropy, F.binary_cross_entropy_with_logits}

_NODES: Mapping[str, tuple[str, bool]] = {
    "NllLoss": ("nll", False),
    "NllLoss2D": ("nll", False),
    "BinaryCrossEntropy": ("binary_crossentropy", False),
    "BinaryCrossEntropyWithLogits": ("binary_crossentropy", True),
    "MseLoss": ("mse", False),
    "L1Loss": ("mae", False),
    "SmoothL1Loss": ("huber", False),
    "HuberLoss": ("huber", False),
    "KlDiv": ("kl_divergence", False),
}
_VIEWS = frozenset(
    "View UnsafeView Reshape ReshapeAlias Squeeze Unsqueeze Select Slice Transpose Permute T Clone Alias "
    "ToCopy Expand Index".split()
)
#: Key of the mark on the graph nodes of the model's outputs.
_MARK = "surefoot_output"
#: Largest number of graph nodes between a loss and the model that are read.
_MOST_NODES = 256
#: Targets of at least so many values tell classes from numbers.
_LEAST_TARGETS = 4


@dataclass
class LossCall:
    """Facts of a loss function that was called.

    Attributes:
        loss: Name of the loss, such as ``"mse"``.
        from_logits: True if the loss expects logits.
        task: ``"binary"``, ``"multi_class"``, ``"multi_label"`` or ``"regression"``; None if unknown.
        classes: Number of classes, if known.
        samples: Size of the first dimension of the targets.
        target_range: Smallest and largest target of a regression in this batch.
        mismatch: Shapes of output and target, if the loss compares each output with the targets of other samples.
    """

    loss: str
    from_logits: bool = False
    task: str | None = None
    classes: int | None = None
    samples: int | None = None
    target_range: list[float] | None = None
    mismatch: tuple[list[int], list[int]] | None = None

    @staticmethod
    def of(func: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> LossCall:
        """Reads the facts from the arguments of a loss function."""
        output = args[0] if args else kwargs.get("input")
        target = args[1] if len(args) > 1 else kwargs.get("target")
        call = LossCall(LOSSES[func], func in _TAKE_LOGITS)
        if not isinstance(output, Tensor) or not isinstance(target, Tensor):
            return call
        call.samples = target.shape[0] if target.dim() else 1
        call._compare_shapes(output, target)
        before, is_model = _before(output)
        if call.loss in ("nll", "sparse_categorical_crossentropy"):
            width = output.shape[1 if output.dim() > 1 else 0]
            call._classifies(int(width))
            if func is F.cross_entropy and target.is_floating_point():
                call.loss = "categorical_crossentropy"
            # The logarithm of a softmax is made of logits, too.
            if before == "LogSoftmax":
                call.loss, call.from_logits = "sparse_categorical_crossentropy", True
        elif call.loss == "binary_crossentropy":
            if output.numel() == call.samples:
                call.task, call.classes = "binary", 2
            else:
                call._read_targets(target)
            # A sigmoid between model and loss makes the model's output logits.
            call.from_logits |= before == "Sigmoid" and not is_model
        elif call.loss in ("mse", "mae", "huber", "poisson"):
            call._read_targets(target)
            if func is F.poisson_nll_loss:
                call.from_logits = bool(kwargs.get("log_input", True))
        return call

    def _compare_shapes(self, output: Tensor, target: Tensor) -> None:
        """Notes shapes that broadcasting turns into all pairs of outputs and targets."""
        if self.loss in ("mse", "mae", "huber", "binary_crossentropy") and output.shape != target.shape:
            pairs = torch.broadcast_shapes(output.shape, target.shape).numel()
            if pairs > max(output.numel(), target.numel()):
                self.mismatch = (list(output.shape), list(target.shape))

    def _classifies(self, classes: int) -> None:
        self.classes = classes
        self.task = "binary" if classes == 2 else "multi_class"

    def _read_targets(self, target: Tensor) -> None:
        """Tells classes from numbers where the values leave no doubt."""
        values = target.detach().to(torch.float64).flatten()
        if values.numel() < _LEAST_TARGETS or not bool(torch.isfinite(values).all()):
            return
        low, high = float(values.min()), float(values.max())
        if bool(((values == 0) | (values == 1)).all()):
            width = target.shape[-1] if target.dim() > 1 else 1
            rows = target.detach().to(torch.float64).reshape(-1, width)
            if width == 1 and target.dim() <= 2 and low != high:
                self.task, self.classes = "binary", 2
            elif width > 1 and target.dim() == 2 and bool((rows.sum(1) == 1).all()):
                self._classifies(int(width))
            elif width > 1 and target.dim() == 2 and self.loss == "binary_crossentropy":
                self.task, self.classes = "multi_label", int(width)
            return
        if self.loss == "binary_crossentropy":
            return
        # A few whole numbers may be the numbers of classes.
        if bool((values == values.round()).all()) and len(set(values.tolist())) <= 10:
            return
        self.task, self.target_range = "regression", [low, high]


def _short(node: Any) -> str:
    return str(node.name()).split("Backward")[0]


def _before(output: Tensor) -> tuple[str | None, bool]:
    """Returns the operation that computed `output`, and True if it belongs to the model."""
    node: Any = output.grad_fn
    is_model = False
    for _ in range(_MOST_NODES):
        if node is None:
            return None, is_model
        is_model = is_model or _MARK in node.metadata
        if _short(node) not in _VIEWS:
            return _short(node), is_model
        node = node.next_functions[0][0] if node.next_functions else None
    return None, is_model


def read_graph(loss: Tensor, observer: LossObserver | None = None) -> LossCall | None:
    """Reads the facts of a loss from its graph, before or after the backward pass.

    The graph has no targets, so the task of a regression stays unknown. A loss of outputs that another
    than the given observer has marked is that of another model.

    Example:
        >>> import torch
        >>> output = torch.zeros(8, 3, requires_grad=True)
        >>> loss = torch.nn.functional.cross_entropy(output, torch.zeros(8, dtype=torch.long))
        >>> found = read_graph(loss)
        >>> found.loss, found.from_logits, found.classes
        ('sparse_categorical_crossentropy', True, 3)
    """
    nodes = list(_walk(loss.grad_fn))
    marks = [node.metadata[_MARK] for node, inside in nodes if inside]
    if observer is not None and marks and not any(id(observer) in mark for mark in marks):
        return None
    names = [_short(node) for node, _ in nodes]
    kinds = {_NODES[name] for name in names if name in _NODES}
    if len(kinds) > 1:
        return None
    if not kinds:
        return _handwritten(nodes, names)
    ((name, from_logits),) = kinds
    call = LossCall(name, from_logits)
    node, inside = next((n, inside) for n, inside in nodes if _short(n) in _NODES)
    if inside or (marks and not _is_direct(list(_walk(node)))):
        return None
    source, is_model = _source(node)
    shape = _shape(source)
    if name == "nll":
        if source is not None and _short(source) == "LogSoftmax":
            call = LossCall("sparse_categorical_crossentropy", True)
        if len(shape) > 1:
            call._classifies(shape[1])
        call.samples = shape[0] if len(shape) > 1 else None
    elif name == "binary_crossentropy":
        if source is not None and _short(source) == "Sigmoid" and not is_model:
            call.from_logits = True
        if len(shape) == 1 or len(shape) == 2 and shape[1] == 1:
            call.task, call.classes, call.samples = "binary", 2, shape[0]
    return call


def _walk(node: Any) -> Iterator[tuple[Any, bool]]:
    """Yields the nodes from a loss down to the outputs of the model; these come with True."""
    queue: list[Any] = [node]
    seen: set[Any] = set()
    while queue and len(seen) < _MOST_NODES:
        node = queue.pop(0)
        if node is None or node in seen:
            continue
        seen.add(node)
        inside = _MARK in node.metadata
        yield node, inside
        if not inside:
            queue.extend(parent for parent, _ in node.next_functions)


def _is_direct(nodes: list[tuple[Any, bool]]) -> bool:
    """Returns False if parameters of another model, such as a discriminator, come before the mark."""
    return not any("AccumulateGrad" in node.name() for node, _ in nodes)


def _source(node: Any) -> tuple[Any, bool]:
    """Returns the node that computed the input of a loss, through views."""
    is_model = False
    for _ in range(_MOST_NODES):
        node = node.next_functions[0][0] if node.next_functions else None
        if node is None:
            return None, is_model
        is_model = is_model or _MARK in node.metadata
        # The class dimension of reordered outputs is the one that the loss sees.
        if _short(node) not in _VIEWS:
            return node, is_model
    return None, is_model


def _shape(node: Any) -> tuple[int, ...]:
    metadata = getattr(node, "_input_metadata", None)
    return tuple(metadata[0].shape) if metadata else ()


def _handwritten(nodes: list[tuple[Any, bool]], names: list[str]) -> LossCall | None:
    """Recognizes ``((output - target) ** 2).mean()`` and the like."""
    outside = [name for name, (_, inside) in zip(names, nodes) if not inside]
    if any(inside for _, inside in nodes) and outside[:1] == ["Mean"]:
        rest = [name for name in outside[1:] if name not in _VIEWS]
        squares = [node for node, _ in nodes if _short(node) == "Pow"]
        if rest in (["Pow", "Sub"], ["Pow", "Rsub"]) and squares[0]._saved_exponent == 2:
            return LossCall("mse")
        if rest in (["Abs", "Sub"], ["Abs", "Rsub"]):
            return LossCall("mae")
    if "LogSoftmax" in outside:
        node = nodes[names.index("LogSoftmax")][0]
        call = LossCall("categorical_crossentropy", True)
        shape = _shape(node)
        if len(shape) > 1:
            call._classifies(shape[1])
        return call
    return None


class LossObserver:
    """Reads the first call of a loss function with an output that it has marked.

    While an observer waits, the loss functions in ``torch.nn.functional``, which the modules of ``torch.nn``
    call, are replaced by ones that look at their arguments. It has to start before the forward pass:
    ``F.mse_loss(model(x), y)`` looks up the function first.
    """

    def __init__(self) -> None:
        self.call: LossCall | None = None

    def start(self) -> None:
        """Starts to wait for a call."""
        _WAITING.add(self)
        _replace_losses()

    def stop(self) -> None:
        """Stops waiting. With the last observer, the original functions come back."""
        _WAITING.discard(self)
        _replace_losses()

    def mark(self, tensors: Iterable[Tensor]) -> None:
        """Marks the graph nodes of the model's outputs, where the model ends and the loss begins."""
        for tensor in tensors:
            node: Any = tensor.grad_fn
            if node is not None:
                node.metadata.setdefault(_MARK, set()).add(id(self))

    def _saw(self, function: Callable[..., Any], args: Any, kwargs: Mapping[str, Any]) -> None:
        output = args[0] if args else kwargs.get("input")
        if not isinstance(output, Tensor):
            return
        nodes = list(_walk(output.grad_fn))
        marks = [node.metadata[_MARK] for node, inside in nodes if inside]
        if _is_direct(nodes) and any(id(self) in mark for mark in marks):
            self.stop()
            self.call = LossCall.of(function, args, kwargs)


#: An observer whose discovery is gone waits no longer.
_WAITING: WeakSet[LossObserver] = WeakSet()
_REPLACED: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {}


def loss_function(function: Any) -> Callable[..., Any] | None:
    """Returns the loss function that a function is or that it replaces."""
    original = getattr(function, "__wrapped__", function)
    return original if original in LOSSES else None


def _replace_losses() -> None:
    if _WAITING and not _REPLACED:
        for function in LOSSES:
            name = function.__name__
            if getattr(F, name, None) is function:
                _REPLACED[name] = function, _observed(function)
                setattr(F, name, _REPLACED[name][1])
    elif not _WAITING:
        for name, (original, replacement) in _REPLACED.items():
            if getattr(F, name) is replacement:
                setattr(F, name, original)
        _REPLACED.clear()


def _observed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def observed(*args: Any, **kwargs: Any) -> Any:
        if not torch.compiler.is_compiling():
            _replace_losses()
            for observer in list(_WAITING):
                try:
                    observer._saw(function, args, kwargs)
                except Exception:  # The loss stays unknown.
                    observer.stop()
        return function(*args, **kwargs)

    return observed
