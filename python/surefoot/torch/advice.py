"""Advice as a unified diff of the user's source."""

from __future__ import annotations

import ast
import inspect
import math
import sys
from typing import Any, Callable, Mapping

from torch import nn

from surefoot.finding import Finding
from surefoot.source import Source, last_name

from .activations import OVER_CLASSES, class_name, function_name, name_of_module
from .discover import Discovery
from .layers import Layer, kind_of
from .replace import activated
from .sites import is_user_file, site_of
from .trace import ActivationCall

_NORMS = {"dense": "BatchNorm1d", "conv1d": "BatchNorm1d", "conv2d": "BatchNorm2d"}
_OPTIMIZERS = {"adam": "Adam", "nadam": "NAdam"}


class _Unknown(Exception):
    """The place of a change, or the text for it, is not known for certain."""


#: Problems whose cause is where the optimizer is created.
_OF_OPTIMIZER = ("unchanged_weights", "oscillating_loss", "diverging_loss", "update_ratio", "slow_convergence", "improper_warmup", "collapse")

#: Usual change of the weights by a step, relative to their size.
_USUAL_UPDATE = 1e-3
#: Change of the weights by a step that destroys what they have learned.
_DESTRUCTIVE_UPDATE = 0.08


def actions_for(
    problem: str, facts: Mapping[str, Any], evidence: Mapping[str, float] | None = None
) -> list[dict[str, Any]]:
    """Returns the actions that a problem is answered with in advice, none if nothing is certain.

    Args:
        problem: Id of the problem.
        facts: Facts of the run, as :meth:`Discovery.facts` returns them.
        evidence: Measurements of the finding.

    Example:
        >>> actions_for("exploding_gradient", {"layers": []})
        [{'action': 'clip_gradient', 'norm': 1.0}]
    """
    hidden = {layer["activation"] for layer in facts["layers"][:-1]}
    if problem in ("vanishing_gradient", "saturated_activation") and hidden & {"sigmoid", "tanh"}:
        return [{"action": "swap_activation", "activation": "selu"}]
    rate = _better_rate(problem, facts.get("learning_rate"), evidence or {})
    if rate is not None:
        return [{"action": "set_learning_rate", "rate": rate}]
    if problem == "dying_relu" and "relu" in hidden:
        return [{"action": "swap_activation", "activation": "leaky_relu"}]
    if problem == "uncleared_gradients":
        return [{"action": "clear_gradients"}]
    if problem in ("exploding_gradient", "loss_spike", "gradient_spike"):
        return [{"action": "clip_gradient", "norm": 1.0}]
    if problem == "improper_output_activation" and facts.get("from_logits"):
        return [{"action": "set_output_activation", "activation": "linear"}]
    if problem == "improper_output_activation" and facts.get("loss") == "binary_crossentropy":
        return [{"action": "swap_loss", "loss": "binary_crossentropy", "from_logits": True}]
    return []


def _better_rate(problem: str, rate: float | None, evidence: Mapping[str, float]) -> float | None:
    """A learning rate that suits better, rounded to one digit; None if the problem is another one."""
    if not rate:
        return None
    update = evidence.get("update_ratio", 0.0)
    largest = max(update, evidence.get("largest_update_ratio", 0.0))
    # Batch normalization over a few samples swings at any rate.
    is_too_high = (
        problem in ("diverging_loss", "update_ratio")
        or (problem == "oscillating_loss" and evidence.get("batch_size", math.inf) > 4)
        or (problem == "dying_relu" and largest >= _DESTRUCTIVE_UPDATE)
    )
    if is_too_high:
        return float(f"{rate * (_USUAL_UPDATE / largest if largest >= _DESTRUCTIVE_UPDATE else 0.1):.0e}")
    if problem == "slow_convergence" and 0 < update < _USUAL_UPDATE:
        return float(f"{rate * min(_USUAL_UPDATE / update, 1000):.0e}")
    return None


class Advisor:
    """Writes changes of a training as a diff of the source that created it.

    A diff is complete or there is none: where one place of a change is not certain, it returns None.

    Args:
        discovery: The discovery of the model, after its first forward pass.
        optimizer: The optimizer.
        script: The file with the training loop; the main program by default.
    """

    def __init__(self, discovery: Discovery, optimizer: Any = None, script: str | None = None) -> None:
        self._discovery = discovery
        self._optimizer = optimizer
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        self._script = script or main
        self._sources: dict[str, Source] = {}

    def diff(self, *actions: Mapping[str, Any]) -> str | None:
        """Returns the actions as a unified diff, or None if they cannot be written with certainty."""
        self._sources = {}
        try:
            for action in actions:
                arguments = dict(action)
                self._apply(str(arguments.pop("action")), arguments)
            diffs = [source.diff() for _, source in sorted(self._sources.items()) if source.edits]
        except (_Unknown, OSError, TypeError, KeyError, ValueError):
            return None
        known = [text for text in diffs if text is not None]
        return "".join(known) if known and len(known) == len(diffs) else None

    def advice(self, finding: Finding, facts: Mapping[str, Any]) -> str:
        """Returns a diff for a finding. Where there is none, it returns the general advice, with the line that creates the
        optimizer if the cause is there."""
        actions = actions_for(finding.problem, facts, finding.evidence)
        diff = self.diff(*actions) if actions else None
        if diff is not None:
            return diff
        advice = finding.advice
        if actions and actions[0]["action"] == "set_learning_rate":
            advice = f"lr={actions[0]['rate']:g}  # instead of {facts['learning_rate']:g}"
        elif finding.problem not in _OF_OPTIMIZER:
            return advice
        try:
            source, call = self._optimizer_call()
        except (_Unknown, OSError):
            return advice
        return f"{advice}\n{source.name}:{call.lineno}: {source.text_of(call)}"

    def patched(self) -> dict[str, str]:
        """Returns the files that the last diff changes, by name, as they are afterwards."""
        texts = {name: source.patched() for name, source in self._sources.items() if source.edits}
        return {name: text for name, text in texts.items() if text is not None}

    def _apply(self, name: str, arguments: dict[str, Any]) -> None:
        writers: dict[str, Callable[..., None]] = {
            "swap_activation": self._swap_activation,
            "set_output_activation": self._set_output_activation,
            "set_output_units": self._set_output_units,
            "add_batch_norm": self._add_batch_norm,
            "set_learning_rate": self._set_learning_rate,
            "swap_optimizer": self._swap_optimizer,
            "clip_gradient": self._clip_gradient,
            "clear_gradients": self._clear_gradients,
            "set_batch_size": self._set_batch_size,
            "swap_loss": self._swap_loss,
        }
        if name not in writers:
            raise _Unknown
        writers[name](**arguments)

    def _source(self, filename: str | None) -> Source:
        if filename is None or not is_user_file(filename):
            raise _Unknown
        source = self._sources.get(filename) or Source.read(filename)
        if source is None:
            raise _Unknown
        self._sources[filename] = source
        return source

    # Activations.

    def _swap_activation(self, activation: str) -> None:
        calls = [call for call in self._discovery.activations if call.is_hidden]
        calls = [call for call in calls if call.activation != activation]
        if not calls:
            raise _Unknown
        for call in calls:
            source, nodes = self._locate(call, calls)
            for node in nodes:
                if name_of_module(call.module) is not None:
                    new = f"{_prefix(source, node, 'torch.nn')}{_known(class_name(activation))}()"
                else:
                    new = self._call(source, activation, _argument(source, node, call))
                source.replace(node, new)

    def _set_output_activation(self, activation: str) -> None:
        calls = [call for call in self._discovery.activations if call.is_output]
        if len(calls) != 1:
            raise _Unknown
        source, nodes = self._locate(calls[0], calls)
        if len(nodes) != 1:
            raise _Unknown
        (node,) = nodes
        if name_of_module(calls[0].module) is None:
            argument = _argument(source, node, calls[0])
            source.replace(node, argument if activation == "linear" else self._call(source, activation, argument))
        elif activation != "linear" or not source.remove_element(node):
            options = "dim=-1" if activation in OVER_CLASSES else ""
            cls = _known(class_name(activation))
            source.replace(node, f"{_prefix(source, node, 'torch.nn')}{cls}({options})")

    @staticmethod
    def _call(source: Source, activation: str, argument: str) -> str:
        function = _known(function_name(activation))
        return f"{_known(source.alias('torch.nn.functional'))}.{function}({argument})"

    def _locate(
        self, call: ActivationCall, calls: list[ActivationCall]
    ) -> tuple[Source, list[ast.Call]]:
        """Returns the constructors of an activation module, or the call of an activation function."""
        if name_of_module(call.module) is not None:
            same = [c for c in self._discovery.activations if type(c.module) is type(call.module)]
            return self._constructors(call.module, call.path, all(c in calls for c in same))
        if call.code is None:
            raise _Unknown
        source = self._source(call.code.co_filename)
        node = source.call_at(call.position, getattr(call.function, "__name__", ""))
        if node is None:
            raise _Unknown
        return source, [node]

    def _constructors(
        self, module: nn.Module, path: str, all_alike: bool
    ) -> tuple[Source, list[ast.Call]]:
        """Returns the call that created a module.

        Without a recorded place, the calls of its class in the source of the class around it are taken, if
        all modules of this class are to be changed alike or there is only one call.
        """
        name = type(module).__name__
        site = site_of(module)
        if site is not None:
            source = self._source(site.filename)
            node = source.call_at(site.position, name)
            if node is None:
                raise _Unknown
            return source, [node]
        source, scope = self._scope(path)
        found = [n for n in ast.walk(scope) if isinstance(n, ast.Call) and last_name(n) == name]
        instances = sum(type(m) is type(module) for m in self._discovery.inner.modules())
        # More calls than modules belong to other models.
        if not found or len(found) > (instances if all_alike else 1):
            raise _Unknown
        return source, found

    def _scope(self, path: str) -> tuple[Source, ast.AST]:
        """Returns the class of the user around a module, or the script if there is none."""
        while path:
            path = path.rpartition(".")[0]
            owner = type(self._discovery.inner.get_submodule(path))
            if owner.__module__.startswith("torch."):
                continue
            filename = inspect.getsourcefile(owner)
            source = self._source(filename)
            for node in ast.walk(source.tree):
                if isinstance(node, ast.ClassDef) and node.name == owner.__name__:
                    return source, node
            raise _Unknown
        source = self._source(self._script)
        return source, source.tree

    # Layers.

    def _add_batch_norm(self) -> None:
        layers = [c.layer for c in self._discovery.activations if c.is_hidden]
        targets = [x for x in dict.fromkeys(layers) if x is not None and not x.normalized]
        if not targets:
            raise _Unknown
        for layer in targets:
            norm = _NORMS.get(kind_of(layer.module) or "")
            if norm is None or (layer.kind == "dense" and len(layer.output_shape) != 1):
                raise _Unknown
            self._insert_norm(layer, norm, targets)

    def _insert_norm(self, layer: Layer, norm: str, targets: list[Layer]) -> None:
        same = [x for x in self._discovery.layers if type(x.module) is type(layer.module)]
        alike = all(x in targets for x in same)
        source, nodes = self._constructors(layer.module, layer.name, alike)
        for node in nodes:
            if not isinstance(source.parents.get(node), (ast.Call, ast.List, ast.Tuple)):
                raise _Unknown
            parent = source.parents[node]
            if isinstance(parent, ast.Call) and last_name(parent) != "Sequential":
                raise _Unknown
            units = _units(node)
            if units is None:
                raise _Unknown
            new = f"{_prefix(source, node, 'torch.nn')}{norm}({source.text_of(units)})"
            source.insert_after(node, f", {new}")

    def _set_output_units(self, units: int) -> None:
        if len(self._discovery.output_layers) != 1:
            raise _Unknown
        (layer,) = self._discovery.output_layers
        source, scope = self._scope(layer.name)
        name, given = type(layer.module).__name__, layer.units
        found = [it for it in ast.walk(scope) if isinstance(it, ast.Call) and last_name(it) == name]
        values = [value for call in found if (value := _units(call)) is not None]
        same = [it for it in values if isinstance(it, ast.Constant) and it.value == given]
        if len(same) != 1 or len(values) != len(found):
            raise _Unknown
        source.replace(same[0], str(units))

    # Optimization.

    def _optimizer_call(self) -> tuple[Source, ast.Call]:
        if self._optimizer is None:
            raise _Unknown
        name = type(self._optimizer).__name__
        site = site_of(self._optimizer)
        if site is not None:
            source = self._source(site.filename)
            node = source.call_at(site.position, name)
        else:
            source = self._source(self._script)
            found = [call for call in source.calls() if last_name(call) == name]
            node = found[0] if len(found) == 1 else None
        if node is None or not node.args:
            raise _Unknown
        return source, node

    def _set_learning_rate(self, rate: float) -> None:
        source, node = self._optimizer_call()
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if None in keywords:  # `**options` may hold it.
            raise _Unknown
        value = keywords.get("lr") or (node.args[1] if len(node.args) > 1 else None)
        if value is None:
            source.insert_after((node.args + [k.value for k in node.keywords])[-1], f", lr={rate:g}")
        else:
            source.replace(_literal(source, value), f"{rate:g}")

    def _swap_optimizer(self, optimizer: str, learning_rate: float) -> None:
        source, node = self._optimizer_call()
        keywords = {keyword.arg: keyword.value for keyword in node.keywords}
        if None in keywords or optimizer not in _OPTIMIZERS:
            raise _Unknown
        new = f"{_prefix(source, node, 'torch.optim')}{_OPTIMIZERS[optimizer]}"
        arguments = [source.text_of(node.args[0]), f"lr={learning_rate:g}"]
        if "weight_decay" in keywords:
            arguments.append(f"weight_decay={source.text_of(keywords['weight_decay'])}")
        source.replace(node, f"{new}({', '.join(arguments)})")

    def _clip_gradient(self, norm: float) -> None:
        source, node = self._optimizer_call()
        if any(last_name(call) in ("clip_grad_norm_", "clip_grad_value_") for call in source.calls()):
            raise _Unknown
        parent = source.parents.get(node)
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
            raise _Unknown
        optimizer = source.text_of(parent.targets[0])
        utils = f"{_known(source.alias('torch.nn'))}.utils"
        steps = [call for call in source.calls() if _is_step(source, call, optimizer)]
        if not steps:
            raise _Unknown
        for call in steps:
            statement = source.parents.get(call)
            if not isinstance(statement, ast.Expr):
                raise _Unknown
            function = _function(source, statement)
            parameters = _parameters(source, node, function, _function(source, parent), optimizer)
            lines = [f"{utils}.clip_grad_norm_({parameters}, {norm!r})"]
            if call.args and isinstance(call.func, ast.Attribute):  # `scaler.step(optimizer)`
                lines.insert(0, f"{source.text_of(call.func.value)}.unscale_({optimizer})")
            if not source.insert_before(statement, lines):
                raise _Unknown

    def _clear_gradients(self) -> None:
        source, node = self._optimizer_call()
        parent = source.parents.get(node)
        passes = [call for call in source.calls() if last_name(call) == "backward"]
        if not isinstance(parent, ast.Assign) or len(parent.targets) != 1 or len(passes) != 1:
            raise _Unknown
        statement = source.parents.get(passes[0])
        line = f"{source.text_of(parent.targets[0])}.zero_grad()"
        if not isinstance(statement, ast.Expr) or not source.insert_before(statement, [line]):
            raise _Unknown

    def _set_batch_size(self, size: int) -> None:
        source = self._source(self._script)
        loaders = [call for call in source.calls() if last_name(call) == "DataLoader"]
        sizes = [k.value for call in loaders for k in call.keywords if k.arg == "batch_size"]
        values = {source.range_of(node): node for node in (_literal(source, s) for s in sizes)}
        if len(values) != 1:
            raise _Unknown
        source.replace(next(iter(values.values())), str(size))

    def _swap_loss(self, loss: str, from_logits: bool) -> None:
        """Writes the one change of a loss that fits every target: that of probabilities to logits."""
        if loss != "binary_crossentropy" or not from_logits:
            raise _Unknown
        source = self._source(self._script)
        names = {"BCELoss": "BCEWithLogitsLoss", "binary_cross_entropy": "binary_cross_entropy_with_logits"}
        found = [call for call in source.calls() if last_name(call) in names]
        if len(found) != 1 or not isinstance(found[0].func, ast.Attribute):
            raise _Unknown
        function = found[0].func
        source.replace(function, f"{source.text_of(function.value)}.{names[function.attr]}")


def _units(call: ast.Call) -> ast.expr | None:
    """Returns the argument of a layer that is its number of units."""
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    positional = call.args[1] if len(call.args) > 1 else None
    return positional or keywords.get("out_features") or keywords.get("out_channels")


def _known(name: str | None) -> str:
    if name is None:
        raise _Unknown
    return name


def _prefix(source: Source, call: ast.Call, module: str) -> str:
    """Returns the part of a callee before its last name, or that of the module that has it."""
    if isinstance(call.func, ast.Attribute):
        return source.text_of(call.func.value) + "."
    return _known(source.alias(module)) + "."


def _argument(source: Source, node: ast.Call, call: ActivationCall) -> str:
    """Returns the text of what an activation function is applied to."""
    argument = activated(node, call.is_method)
    if argument is None:
        raise _Unknown
    return source.text_of(argument)


def _literal(source: Source, value: ast.expr) -> ast.expr:
    """Returns the number itself, also where a name stands for it that is assigned once."""
    if isinstance(value, ast.Name):
        stores = [
            node
            for node in ast.walk(source.tree)
            if isinstance(node, ast.Name) and node.id == value.id and not isinstance(node.ctx, ast.Load)
        ]
        parent = source.parents.get(stores[0]) if len(stores) == 1 else None
        if not isinstance(parent, ast.Assign) or parent.targets != stores:
            raise _Unknown
        value = parent.value
    if not isinstance(value, ast.Constant) or not isinstance(value.value, (int, float)):
        raise _Unknown
    return value


def _is_step(source: Source, call: ast.Call, optimizer: str) -> bool:
    """Returns True for ``optimizer.step()`` and ``scaler.step(optimizer)``."""
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "step":
        return False
    if call.args:
        return len(call.args) == 1 and source.text_of(call.args[0]) == optimizer
    return source.text_of(call.func.value) == optimizer


def _function(source: Source, node: ast.AST) -> ast.AST:
    """Returns the function around a node, or the module."""
    while not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Module)):
        node = source.parents[node]
    return node


def _parameters(
    source: Source, optimizer_call: ast.Call, function: ast.AST, created_in: ast.AST, optimizer: str
) -> str:
    """Returns an expression for the trained parameters that is valid in `function`."""
    given = optimizer_call.args[0]
    plain = isinstance(given, ast.Call) and last_name(given) == "parameters" and not given.args
    root = source.text_of(given).split(".")[0]
    visible = function is created_in or isinstance(created_in, ast.Module)
    if isinstance(function, ast.FunctionDef):
        names = [argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)]
        visible = visible or root in names
    if plain and visible:
        return source.text_of(given)
    return f'[p for group in {optimizer}.param_groups for p in group["params"]]'
