"""Facts of a model and its training loop, read from one step that the loop runs anyway."""

from __future__ import annotations

import sys
import threading
from typing import Any, Iterator

import torch
import torch.overrides
from torch import Tensor, nn

from .hooks import Hook
from .layers import OTHER, WEIGHTED, Layer, is_norm, layers_of
from .loss import LossCall, LossObserver, read_graph
from .trace import ActivationCall, ForwardTrace, tensors_in


#: Untyped in PyTorch.
_OVERRIDES: Any = torch.overrides


def unwrap(model: nn.Module) -> nn.Module:
    """Returns the model inside ``torch.compile``, ``DistributedDataParallel`` or ``DataParallel``.

    Example:
        >>> from torch import nn
        >>> model = nn.Linear(2, 1)
        >>> unwrap(nn.DataParallel(model)) is model
        True
    """
    while True:
        inner = getattr(model, "_orig_mod", None)
        if inner is None and isinstance(
            model, (nn.DataParallel, nn.parallel.DistributedDataParallel)
        ):
            inner = model.module
        if not isinstance(inner, nn.Module):
            return model
        model = inner


def describe_optimizer(optimizer: Any) -> dict[str, Any]:
    """Returns name, learning rate, weight decay and momentum of an optimizer.

    Of several parameter groups, the one with most parameters counts; all of them are in ``groups``.
    The learning rate is the one before any schedule.

    Example:
        >>> import torch
        >>> optimizer = torch.optim.SGD(torch.nn.Linear(2, 1).parameters(), lr=0.1, momentum=0.9)
        >>> facts = describe_optimizer(optimizer)
        >>> facts["optimizer"], facts["learning_rate"], facts["momentum"]
        ('sgd', 0.1, 0.9)
    """
    inner = getattr(optimizer, "optimizer", None)
    if not hasattr(optimizer, "param_groups") and inner is not None:
        optimizer = inner
    groups = [
        {
            "learning_rate": _number(group.get("initial_lr", group.get("lr"))),
            "weight_decay": _number(group.get("weight_decay")),
            "momentum": _number(group.get("momentum", (group.get("betas") or (None,))[0])),
            "parameters": sum(p.numel() for p in group["params"]),
        }
        for group in optimizer.param_groups
    ]
    main = max(groups, key=lambda group: group["parameters"] or 0, default={})
    name = type(inner if isinstance(inner, torch.optim.Optimizer) else optimizer).__name__.lower()
    return {
        "optimizer": name,
        "learning_rate": main.get("learning_rate"),
        "weight_decay": main.get("weight_decay"),
        "momentum": main.get("momentum"),
        "groups": groups,
    }


def _number(value: Any) -> float | None:
    return None if value is None else float(value)


class Discovery:
    """Discovers the layers, activations, loss and batch size of a training loop.

    It observes the first forward pass with gradients, and the loss function called after it. Then it
    removes all hooks. A compiled model runs its first forward pass without its compiled code. Where the
    loop calls parts of the model instead of the model, it observes them until it sees a loss.

    An error inside the discovery never reaches the training loop; see :attr:`error`.

    Args:
        model: The model as the loop calls it, also compiled or wrapped for several devices.
        optimizer: Its optimizer.

    Example:
        >>> import torch
        >>> from torch import nn
        >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
        >>> discovery = Discovery(model, torch.optim.Adam(model.parameters(), lr=0.01))
        >>> loss = nn.CrossEntropyLoss()(model(torch.randn(16, 4)), torch.arange(16) % 3)
        >>> facts = discovery.facts()
        >>> [(layer["name"], layer["kind"], layer["activation"]) for layer in facts["layers"]]
        [('0', 'dense', 'relu'), ('2', 'dense', 'linear')]
        >>> facts["task"], facts["classes"], facts["batch_size"], facts["learning_rate"]
        ('multi_class', 3, 16, 0.01)
    """

    def __init__(self, model: nn.Module, optimizer: Any = None) -> None:
        self.model = model
        self.inner = unwrap(model)
        self.optimizer = optimizer
        self._finished = False
        #: The first error inside the discovery.
        self.error: Exception | None = None
        self._trace: ForwardTrace | None = None
        self._observer = LossObserver()
        self._graph: LossCall | None = None
        self._batch: tuple[list[int], list[int]] = ([], [])
        self._entries: set[int] = set()
        #: Thread and module of the observed call that is running.
        self._active: tuple[int, nn.Module] | None = None
        self._stance: Any = None
        self._compiled: Any = getattr(model, "_compiled_call_impl", None)
        self._layers = layers_of(self.inner)
        self._handles: list[Any] = []
        try:
            for module in (model, *_parts(self.inner)):
                before, after = Hook(self._enter), Hook(self._leave)
                self._handles += [
                    module.register_forward_pre_hook(before, with_kwargs=True),
                    module.register_forward_hook(after, always_call=True),
                ]
                self._entries.add(id(module))
            # Code compiled by `model.compile()` would not run the hooks.
            if self._compiled is not None:
                model._compiled_call_impl = None
            self._observer.start()
        except Exception as error:
            self.error = error

    @property
    def observed(self) -> bool:
        """True after a forward pass of the model or of a part of it was observed."""
        trace = self._trace
        if trace is None or trace.error is not None or self._active is not None:
            return False
        return self._finished or bool(trace.executed)

    @property
    def layers(self) -> list[Layer]:
        """Layers with parameters in execution order, the output layer last."""
        trace = self._trace
        if trace is None or not self.observed:
            return self._layers
        order = list(trace.executed)
        # A layer that did not run stands before the one defined after it, and is never last.
        position = max(len(order) - 1, 0)
        for layer in reversed(self._layers):
            if layer in trace.executed:
                position = order.index(layer)
            else:
                order.insert(position, layer)
        if len(trace.output_layers) == 1:
            (output,) = trace.output_layers
            after = order[order.index(output) + 1 :]
            if any(not is_norm(layer.kind) for layer in after):
                order.remove(output)
                order.append(output)
        return order

    @property
    def activations(self) -> list[ActivationCall]:
        """Calls of activation functions in the observed forward pass."""
        return self._trace.calls if self._trace is not None else []

    @property
    def attentions(self) -> dict[nn.Module, str]:
        """Modules that compute an attention, with their names."""
        return self._trace.attentions if self._trace is not None else {}

    @property
    def output_layers(self) -> list[Layer]:
        """Layers that the outputs of the model come from, where this is known."""
        return self._trace.output_layers if self._trace is not None else []

    @property
    def has_residual(self) -> bool:
        """True if an addition was observed whose operands passed different numbers of layers."""
        return self._trace is not None and self._trace.has_residual

    def saw_loss(self, loss: Any) -> None:
        """Reads the loss function from the graph of a loss, if its call was not seen.

        It may be called before or after the backward pass.
        """
        self._finish()
        self._observer.stop()
        try:
            if isinstance(loss, Tensor) and loss.grad_fn is not None:
                self._graph = self._graph or read_graph(loss, self._observer)
        except Exception as error:
            self.error = self.error or error

    @property
    def loss_call(self) -> LossCall | None:
        """The call of the loss function, if it is known."""
        seen = self._trace.loss if self._trace is not None else None
        return seen or self._observer.call or self._graph

    def facts(self) -> dict[str, Any]:
        """Returns the facts found so far, with the keys of ``Facts``. Unknown facts are None."""
        self._finish()
        layers = [layer.info() for layer in self.layers]
        loss = self.loss_call
        facts: dict[str, Any] = {
            "layers": layers,
            "task": None,
            "loss": None,
            "from_logits": False,
            "classes": None,
            "batch_size": self._batch_size(loss),
        }
        if loss is not None:
            several = len(self.output_layers) > 1
            facts |= {"loss": loss.loss, "from_logits": loss.from_logits}
            if not several:
                facts |= {"task": loss.task, "classes": loss.classes}
                if loss.target_range is not None:
                    facts["target_range"] = loss.target_range
        self._set_output_activation(facts)
        if self.optimizer is not None:
            optimizer = describe_optimizer(self.optimizer)
            facts |= {key: optimizer[key] for key in ("optimizer", "learning_rate")}
        return facts

    def _set_output_activation(self, facts: dict[str, Any]) -> None:
        output = facts["layers"][-1] if facts["layers"] else None
        if output is None:
            return
        if output["kind"] not in WEIGHTED | {OTHER, "simple_rnn"}:
            # The kind of such a layer says nothing of an activation behind it, so its outputs have to.
            sources = self.output_layers
            uses = sources[0].uses if len(sources) == 1 else set()
            use = next(iter(uses)) if len(uses) == 1 else None
            if use is None:
                facts["task"] = None
            elif use != "linear":
                output["activation"] = use
        if output["activation"] == "log_softmax":
            # The loss of `log_softmax(z)` is that of the logits z.
            if facts["loss"] == "nll":
                facts |= {"loss": "sparse_categorical_crossentropy", "from_logits": True}
            if facts["from_logits"]:
                output["activation"] = "linear"

    def trace_by_hand(self) -> None:
        """Removes the hooks: :meth:`enter` and :meth:`leave` are called around the code that runs the layers.

        For frameworks that run them by another method than ``forward``.
        """
        self._remove_hooks()

    def enter(self, args: Any, kwargs: Any) -> None:
        """Begins the observation of a step."""
        self._enter(self.model, args, kwargs)

    def leave(self, output: Any) -> None:
        """Ends the observation of a step; an output of None is a step that failed."""
        self._leave(self.model, (), output)

    def close(self) -> None:
        """Removes all hooks, also in the middle of a forward pass."""
        self._stop_tracing(None)
        self._finish()
        self._observer.stop()
        self._remove_hooks()

    def _batch_size(self, loss: LossCall | None) -> int | None:
        given, returned = self._batch
        if given and returned and given[0] == returned[0]:
            return given[0]
        samples = loss.samples if loss is not None else None
        return samples if samples is not None and samples in given[:2] else None

    def _enter(self, module: nn.Module, args: Any, kwargs: Any) -> None:
        if torch.compiler.is_compiling() or self._active is not None or not torch.is_grad_enabled():
            return
        # Replicas of DataParallel and copies of the model have the same hooks.
        if id(module) not in self._entries or self._finished:
            return
        try:
            if self._trace is None or module is self.model:
                self._layers = layers_of(self.inner)
                self._trace = ForwardTrace(self.inner, self._layers)
                first = next(tensors_in((args, kwargs)), None)
                self._batch = (list(first.shape) if first is not None else [], [])
            # Importing the compiler takes seconds, and without it nothing is compiled.
            if "torch._dynamo" in sys.modules and hasattr(torch.compiler, "set_stance"):
                self._stance = torch.compiler.set_stance("force_eager")
            self._active = threading.get_ident(), module
            self._trace.start((args, kwargs), module)
            _OVERRIDES._push_mode(self._trace)
        except Exception as error:
            self.error = error
            self.close()

    def _leave(self, module: nn.Module, args: Any, output: Any) -> None:
        if torch.compiler.is_compiling() or self._active != (threading.get_ident(), module):
            return
        self._stop_tracing(output)
        if output is None or self._trace is None:  # The pass failed. The next one is observed.
            self._trace = None
            return
        if module is self.model:
            self._finish()
        if self._trace.loss is not None or self._trace.error is not None:
            self._observer.stop()

    def _stop_tracing(self, output: Any) -> None:
        """Ends the observation of a call."""
        trace = self._trace
        if self._active is None or trace is None:
            return
        self._active = None
        try:
            _remove_mode(trace)
            trace.stop(output)
            self.error = self.error or trace.error
            tensors = list(tensors_in(output))
            self._batch[1][:] = tensors[0].shape if tensors else []
            self._observer.mark(tensors)
        except Exception as error:
            self.error = error
        finally:
            if self._stance is not None:
                self._stance.__exit__(None, None, None)
                self._stance = None

    def _finish(self) -> None:
        """Ends the observation of the model, if any of it was observed."""
        trace = self._trace
        if self._finished or self._active is not None or trace is None:
            return
        self._remove_hooks()
        if trace.error is None:
            trace.finish()
            self._finished = True

    def _remove_hooks(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        if self._compiled is not None:
            self.model._compiled_call_impl = self._compiled
            self._compiled = None


def _parts(model: nn.Module) -> Iterator[nn.Module]:
    """Yields the modules that a loop may call instead of the model itself."""
    for child in model.children():
        if isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            yield from _parts(child)
        else:
            yield child


def _remove_mode(mode: ForwardTrace) -> None:
    """Takes a mode off the stack, also from below others that were entered after it."""
    if mode not in _OVERRIDES._get_current_function_mode_stack():
        return
    above = []
    while (top := _OVERRIDES._pop_mode()) is not mode:
        above.append(top)
    for other in reversed(above):
        _OVERRIDES._push_mode(other)
