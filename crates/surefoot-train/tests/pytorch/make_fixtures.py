"""Records what PyTorch computes, for the trainer's tests to agree with.

Each case is a small model in the plan's language with its weights, one batch, and what PyTorch
makes of them: outputs, loss and gradients (``layers.json``, ``losses.json``), or the weights after
each of a few updates (``optimizers.json``). To record them again, from this directory:

    python3 -m venv venv && venv/bin/pip install torch keras numpy
    venv/bin/python make_fixtures.py

Models are run by PyTorch's own modules and functions wherever it has them. Keras 3 (on PyTorch)
says what a loss or an optimizer means where the two differ; where they agree, ``torch.optim`` is
held against it here. Computed in float64 from weights and inputs that float32 holds exactly, save
the cases marked ``"precision": "float32"``, whose values depend on it.

``output`` and ``gradients`` are those of training and are absent where training draws at random
(dropout); ``eval_output`` is inference with the weights as given, where it differs; ``moving`` are
the statistics of batch normalisation after the step; ``after[n]`` are the arrays of ``weights``, in
their order, after update ``n + 1``.
"""

from __future__ import annotations

import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ["KERAS_BACKEND"] = "torch"

import keras
import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call

Spec = dict[str, Any]

FIXTURES = Path(__file__).parent / "fixtures"

# How far values stay from where a derivative jumps, so that rounding cannot choose the side.
KINK_MARGIN = 2e-3

# Keras's `epsilon()`, by which losses keep probabilities from 0 and 1.
PROBABILITY_EPSILON = 1e-7


# --- weights -------------------------------------------------------------------------------------


@dataclass
class Weights:
    """The arrays of a model by (layer, name), made when a layer first asks for them."""

    generator: torch.Generator
    dtype: torch.dtype
    arrays: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    moving: dict[tuple[str, str], Tensor] = field(default_factory=dict)
    margin: float = math.inf
    penalty: Tensor | float = 0.0

    def draw(self, *shape: int) -> Tensor:
        """Standard normal values with few digits, the same in float32 and in the file."""
        values = torch.randn(shape, generator=self.generator, dtype=torch.float64)
        return torch.round(values, decimals=4).float().to(self.dtype)

    def keep_from(self, kink: float, x: Tensor) -> None:
        self.margin = min(self.margin, float((x.detach() - kink).abs().min()))


@dataclass
class Scope:
    """The weights of one layer, in the layouts of `surefoot_plan::Weight`."""

    weights: Weights
    layer: str
    spec: Spec

    def __call__(self, name: str, *shape: int) -> Tensor:
        key = (self.layer, name)
        if key not in self.weights.arrays:
            self.weights.arrays[key] = self._initial(name, shape).requires_grad_()
        array = self.weights.arrays[key]
        self._penalise(name, array)
        return array

    def moving(self, name: str, size: int) -> Tensor:
        key = (self.layer, name)
        if key not in self.weights.moving:
            draw = self.weights.draw(size)
            self.weights.moving[key] = draw.abs() + 0.5 if "variance" in name else draw
        return self.weights.moving[key]

    def _initial(self, name: str, shape: tuple[int, ...]) -> Tensor:
        if (given := self.spec.get("initial", {}).get(name)) is not None:
            return torch.tensor(given, dtype=torch.float32).to(self.weights.dtype)
        values = self.weights.draw(*shape)
        if "gamma" in name:
            values = 1 + 0.3 * values
        elif len(shape) > 1:
            fan_in = values.numel() // (shape[0] if len(shape) > 2 else shape[-1])
            values = values / math.sqrt(fan_in)
        else:
            values = 0.3 * values
        return torch.round(values.double(), decimals=5).float().to(self.weights.dtype)

    def _penalise(self, name: str, array: Tensor) -> None:
        kind = next((k for k in ("recurrent_kernel", "kernel", "bias") if name.endswith(k)), "")
        regularizer = self.spec.get(f"{kind.removesuffix('_kernel')}_regularizer")
        if regularizer:
            self.weights.penalty = (
                self.weights.penalty
                + regularizer.get("l1", 0.0) * array.abs().sum()
                + regularizer.get("l2", 0.0) * array.square().sum()
            )


# --- activations ---------------------------------------------------------------------------------


def named(spec: str | Spec) -> tuple[str, Spec]:
    """Splits `"relu"` and `{"name": "elu", "alpha": 1.0}` into a name and its settings."""
    if isinstance(spec, str):
        return spec, {}
    return spec["name"], {key: value for key, value in spec.items() if key != "name"}


def activate(spec: str | Spec, x: Tensor, weights: Weights) -> Tensor:
    name, settings = named(spec)
    match name:
        case "relu":
            weights.keep_from(0, x)
            return F.relu(x)
        case "leaky_relu":
            weights.keep_from(0, x)
            return F.leaky_relu(x, settings["negative_slope"])
        case "elu":
            weights.keep_from(0, x)
            return F.elu(x, settings["alpha"])
        case "selu":
            weights.keep_from(0, x)
            return F.selu(x)
        case "gelu":
            return F.gelu(x, approximate="tanh" if settings["approximate"] else "none")
        case "silu":
            return F.silu(x)
        case "tanh":
            return torch.tanh(x)
        case "sigmoid":
            return torch.sigmoid(x)
        case "hard_sigmoid":
            slope = settings["slope"]
            weights.keep_from(0.5 / slope, x.abs())
            if math.isclose(slope, 1 / 6):
                return F.hardsigmoid(x)
            return torch.clamp(slope * x + 0.5, 0, 1)
        case "softplus":
            return F.softplus(x)
        case "softmax":
            return F.softmax(x, dim=-1)
        case "linear":
            return x
    raise ValueError(f"unknown activation {name}")


# --- layers: x is [batch, ..., channels] ---------------------------------------------------------


def channels_first(x: Tensor) -> Tensor:
    return x.movedim(-1, 1)


def channels_last(x: Tensor) -> Tensor:
    return x.movedim(1, -1)


def same_padding(sizes: list[int], kernel: list[int], strides: list[int], dilation: list[int]) -> list[int]:
    """TensorFlow's `same`, as `F.pad` wants it: the odd one out goes to the end."""
    pads: list[int] = []
    for size, k, stride, d in zip(sizes, kernel, strides, dilation):
        outputs = -(-size // stride)
        total = max((outputs - 1) * stride + (k - 1) * d + 1 - size, 0)
        pads = [total // 2, total - total // 2, *pads]
    return pads


def listed(value: Any, rank: int) -> list[int]:
    return list(value) if isinstance(value, (list, tuple)) else [value] * rank


def dense(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    kernel = w("kernel", x.shape[-1], spec["units"])
    bias = w("bias", spec["units"]) if spec.get("use_bias", True) else None
    return activate(spec.get("activation", "linear"), F.linear(x, kernel.T, bias), w.weights)


def convolution(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    rank = x.dim() - 2
    kernel_size = listed(spec["kernel_size"], rank)
    strides = listed(spec.get("strides", 1), rank)
    dilation = listed(spec.get("dilation_rate", 1), rank)
    kernel = w("kernel", spec["filters"], x.shape[-1], *kernel_size)
    bias = w("bias", spec["filters"]) if spec.get("use_bias", True) else None
    x = channels_first(x)
    if spec.get("padding") == "same":
        x = F.pad(x, same_padding(list(x.shape[2:]), kernel_size, strides, dilation))
    convolve = F.conv1d if rank == 1 else F.conv2d
    y = channels_last(convolve(x, kernel, bias, stride=strides, dilation=dilation))
    return activate(spec.get("activation", "linear"), y, w.weights)


def pooling(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    rank = x.dim() - 2
    size = listed(spec.get("pool_size", 2), rank)
    strides = listed(spec.get("strides", size), rank)
    x = channels_first(x)
    pads = [0] * (2 * rank)
    if spec.get("padding") == "same":
        pads = same_padding(list(x.shape[2:]), size, strides, [1] * rank)
    if spec["layer"].startswith("max"):
        x = F.pad(x, pads, value=-math.inf)
        windows = x
        for axis in range(rank):
            windows = windows.unfold(2 + axis, size[axis], strides[axis])
        first, second = windows.flatten(-rank).topk(2).values.detach().unbind(-1)
        w.weights.margin = min(w.weights.margin, float((first - second).min()))
        pool = F.max_pool1d if rank == 1 else F.max_pool2d
        return channels_last(pool(x, size, strides))
    # Only real inputs count: the padded mean is divided by the share of them in each window.
    mean = F.avg_pool1d if rank == 1 else F.avg_pool2d
    share = mean(F.pad(torch.ones_like(x), pads), size, strides)
    return channels_last(mean(F.pad(x, pads), size, strides) / share)


def global_pooling(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    positions = x.flatten(1, -2)
    if spec["layer"] == "global_average_pool":
        return positions.mean(dim=1)
    first, second = positions.topk(2, dim=1).values.detach().unbind(1)
    w.weights.margin = min(w.weights.margin, float((first - second).min()))
    return positions.amax(dim=1)


def reshape(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    return x.flatten(1) if spec["layer"] == "flatten" else x.reshape(len(x), *spec["target_shape"])


def dropout(x: Tensor, spec: Spec, w: Scope, training: bool) -> Tensor:
    return F.dropout(x, spec["rate"], training)


def scale_and_offset(spec: Spec, w: Scope, size: int) -> tuple[Tensor | None, Tensor | None]:
    gamma = w("gamma", size) if spec.get("scale", True) else None
    beta = w("beta", size) if spec.get("center", True) else None
    return gamma, beta


def batch_norm(x: Tensor, spec: Spec, w: Scope, training: bool) -> Tensor:
    gamma, beta = scale_and_offset(spec, w, x.shape[-1])
    mean, variance = w.moving("moving_mean", x.shape[-1]), w.moving("moving_variance", x.shape[-1])
    epsilon, momentum = spec.get("epsilon", 1e-3), spec.get("momentum", 0.99)
    if not training:
        return channels_last(F.batch_norm(channels_first(x), mean, variance, gamma, beta, False, 0.0, epsilon))
    # PyTorch keeps the unbiased variance; Keras, and so Surefoot, the one it normalises by.
    rows = x.detach().flatten(0, -2)
    w.weights.moving[w.layer, "moving_mean"] = momentum * mean + (1 - momentum) * rows.mean(0)
    w.weights.moving[w.layer, "moving_variance"] = momentum * variance + (1 - momentum) * rows.var(0, correction=0)
    return channels_last(F.batch_norm(channels_first(x), None, None, gamma, beta, True, 0.0, epsilon))


def layer_norm(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    gamma, beta = scale_and_offset(spec, w, x.shape[-1])
    return F.layer_norm(x, x.shape[-1:], gamma, beta, spec.get("epsilon", 1e-3))


def group_norm(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    gamma, beta = scale_and_offset(spec, w, x.shape[-1])
    return channels_last(F.group_norm(channels_first(x), spec["groups"], gamma, beta, spec.get("epsilon", 1e-3)))


def embedding(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    return F.embedding(x.long(), w("embeddings", spec["input_dim"], spec["output_dim"]))


def position_embedding(x: Tensor, spec: Spec, w: Scope, _: bool) -> Tensor:
    return x + w("embeddings", *x.shape[1:])


# --- recurrent layers ----------------------------------------------------------------------------

Cell = Callable[[Tensor, tuple[Tensor, ...]], tuple[Tensor, ...]]


def scan(cell: Cell, x: Tensor, states: tuple[Tensor, ...]) -> Tensor:
    outputs = []
    for step in x.unbind(1):
        states = cell(step, states)
        outputs.append(states[0])
    return torch.stack(outputs, dim=1)


def simple_rnn_cell(spec: Spec, w: Scope, arrays: list[Tensor]) -> Cell:
    kernel, recurrent, bias = arrays

    def cell(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        return (activate(spec.get("activation", "tanh"), x @ kernel + states[0] @ recurrent + bias, w.weights),)

    return cell


def lstm_cell(spec: Spec, w: Scope, arrays: list[Tensor]) -> Cell:
    kernel, recurrent, bias = arrays

    def cell(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        h, c = states
        gate = lambda z: activate(spec.get("recurrent_activation", "sigmoid"), z, w.weights)
        act = lambda z: activate(spec.get("activation", "tanh"), z, w.weights)
        i, f, g, o = (x @ kernel + h @ recurrent + bias).chunk(4, dim=-1)
        c = gate(f) * c + gate(i) * act(g)
        return gate(o) * act(c), c

    return cell


def gru_cell(spec: Spec, w: Scope, arrays: list[Tensor]) -> Cell:
    kernel, recurrent, bias = arrays
    units = spec["units"]

    def cell(x: Tensor, states: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        (h,) = states
        gate = lambda z: activate(spec.get("recurrent_activation", "sigmoid"), z, w.weights)
        act = lambda z: activate(spec.get("activation", "tanh"), z, w.weights)
        if spec.get("reset_after", True):
            from_input, from_state = x @ kernel + bias[0], h @ recurrent + bias[1]
            z, r = gate((from_input + from_state)[:, : 2 * units]).chunk(2, dim=-1)
            candidate = act(from_input[:, 2 * units :] + r * from_state[:, 2 * units :])
        else:
            from_input = x @ kernel + bias
            z, r = gate(from_input[:, : 2 * units] + h @ recurrent[:, : 2 * units]).chunk(2, dim=-1)
            candidate = act(from_input[:, 2 * units :] + (r * h) @ recurrent[:, 2 * units :])
        return (z * h + (1 - z) * candidate,)

    return cell


def torch_recurrence(spec: Spec) -> Callable[..., tuple[Tensor, ...]] | None:
    """PyTorch's own operation for the layer (what `nn.LSTM` and its kin call), if it has one."""
    activation = named(spec.get("activation", "tanh"))[0]
    plain_gates = activation == "tanh" and spec.get("recurrent_activation", "sigmoid") == "sigmoid"
    match spec["layer"]:
        case "simple_rnn":
            return {"tanh": torch.rnn_tanh, "relu": torch.rnn_relu}.get(activation)
        case "lstm" if plain_gates:
            return torch.lstm
        case "gru" if plain_gates and spec.get("reset_after", True):
            return torch.gru
    return None


def torch_parameters(spec: Spec, arrays: list[Tensor]) -> list[Tensor]:
    """Our arrays of one direction in PyTorch's layout and order of gates."""
    kernel, recurrent, bias = arrays
    match spec["layer"]:
        case "gru":  # Keras: update, reset, candidate. PyTorch: reset, update, candidate.

            def order(a: Tensor) -> Tensor:
                z, r, n = a.chunk(3, dim=-1)
                return torch.cat([r, z, n], dim=-1)

            kernel, recurrent, bias = order(kernel), order(recurrent), order(bias)
            return [kernel.T, recurrent.T, bias[0], bias[1]]
        case _:
            return [kernel.T, recurrent.T, bias, torch.zeros_like(bias)]


def recurrent(x: Tensor, spec: Spec, w: Scope, training: bool) -> Tensor:
    units, inputs = spec["units"], x.shape[-1]
    gates, make_cell, states = {
        "simple_rnn": (1, simple_rnn_cell, 1),
        "lstm": (4, lstm_cell, 2),
        "gru": (3, gru_cell, 1),
    }[spec["layer"]]
    both = spec.get("bidirectional", False)
    width = gates * units
    bias_shape = (2, width) if spec["layer"] == "gru" and spec.get("reset_after", True) else (width,)
    directions: list[list[Tensor]] = []
    for prefix in ("forward_", "backward_") if both else ("",):
        kernel = w(prefix + "kernel", inputs, width)
        recurrent_kernel = w(prefix + "recurrent_kernel", units, width)
        has_bias = spec.get("use_bias", True)
        bias = w(prefix + "bias", *bias_shape) if has_bias else torch.zeros(bias_shape, dtype=x.dtype)
        directions.append([kernel, recurrent_kernel, bias])

    operation = torch_recurrence(spec)
    if operation is not None:
        parameters = [p for arrays in directions for p in torch_parameters(spec, arrays)]
        state = torch.zeros(len(directions), len(x), units, dtype=x.dtype)
        initial = (state, state) if states == 2 else state
        y = operation(x, initial, parameters, True, 1, 0.0, training, both, True)[0]
    else:
        zeros = (torch.zeros(len(x), units, dtype=x.dtype),) * states
        y = scan(make_cell(spec, w, directions[0]), x, zeros)
        if both:
            y = torch.cat([y, scan(make_cell(spec, w, directions[1]), x.flip(1), zeros).flip(1)], dim=-1)
    if spec.get("return_sequences", False):
        return y
    # The backward reading ends at the first step.
    return torch.cat([y[:, -1, :units], y[:, 0, units:]], dim=-1)


# --- attention -----------------------------------------------------------------------------------


def attention_arrays(spec: Spec, w: Scope, features: int, inner: int, prefix: str = "") -> dict[str, Tensor]:
    shapes = {"query": (features, inner), "key": (features, inner), "value": (features, inner)}
    shapes["output"] = (inner, features)
    arrays = {}
    for part, shape in shapes.items():
        arrays[f"{part}_kernel"] = w(f"{prefix}{part}_kernel", *shape)
        if spec.get("use_bias", True):
            arrays[f"{part}_bias"] = w(f"{prefix}{part}_bias", shape[1])
    return arrays


def attention_parameters(arrays: dict[str, Tensor], prefix: str = "") -> dict[str, Tensor]:
    """Our arrays as the parameters of an `nn.MultiheadAttention`."""
    parts = ("query", "key", "value")
    parameters = {
        f"{prefix}in_proj_weight": torch.cat([arrays[f"{part}_kernel"].T for part in parts]),
        f"{prefix}out_proj.weight": arrays["output_kernel"].T,
    }
    if "query_bias" in arrays:
        parameters[f"{prefix}in_proj_bias"] = torch.cat([arrays[f"{part}_bias"] for part in parts])
        parameters[f"{prefix}out_proj.bias"] = arrays["output_bias"]
    return parameters


def multi_head_attention(x: Tensor, spec: Spec, w: Scope, training: bool) -> Tensor:
    features, heads = x.shape[-1], spec["num_heads"]
    key_dim = spec.get("key_dim", features // heads)
    arrays = attention_arrays(spec, w, features, heads * key_dim)
    if heads * key_dim == features:
        module = nn.MultiheadAttention(
            features, heads, bias=spec.get("use_bias", True), batch_first=True, dtype=x.dtype
        ).train(training)
        return functional_call(module, attention_parameters(arrays), (x, x, x))[0]

    def project(part: str) -> Tensor:
        y = F.linear(x, arrays[f"{part}_kernel"].T, arrays.get(f"{part}_bias"))
        return y.unflatten(-1, (heads, key_dim)).transpose(1, 2)

    mixed = F.scaled_dot_product_attention(project("query"), project("key"), project("value"))
    return F.linear(mixed.transpose(1, 2).flatten(2), arrays["output_kernel"].T, arrays.get("output_bias"))


def transformer(x: Tensor, spec: Spec, w: Scope, training: bool) -> Tensor:
    features, inner = x.shape[-1], spec["feed_forward"]
    parameters = attention_parameters(attention_arrays(spec, w, features, features, "attention_"), "self_attn.")
    for norm, name in (("norm1", "attention_norm"), ("norm2", "feed_forward_norm")):
        parameters[f"{norm}.weight"] = w(f"{name}_gamma", features)
        parameters[f"{norm}.bias"] = w(f"{name}_beta", features)
    for part, shape in (("1", (features, inner)), ("2", (inner, features))):
        parameters[f"linear{part}.weight"] = w(f"feed_forward_{part}_kernel", *shape).T
        parameters[f"linear{part}.bias"] = w(f"feed_forward_{part}_bias", shape[1])
    module = nn.TransformerEncoderLayer(
        features,
        spec["num_heads"],
        inner,
        dropout=spec.get("dropout", 0.0),
        activation=lambda z: activate(spec.get("activation", "relu"), z, w.weights),
        layer_norm_eps=spec.get("epsilon", 1e-3),
        batch_first=True,
        norm_first=spec.get("norm_first", False),
        dtype=x.dtype,
    ).train(training)
    return functional_call(module, parameters, (x,))


# --- models --------------------------------------------------------------------------------------

LAYERS: dict[str, Callable[[Tensor, Spec, Scope, bool], Tensor]] = {
    "dense": dense,
    "conv1d": convolution,
    "conv2d": convolution,
    "max_pool1d": pooling,
    "max_pool2d": pooling,
    "average_pool1d": pooling,
    "average_pool2d": pooling,
    "global_max_pool": global_pooling,
    "global_average_pool": global_pooling,
    "flatten": reshape,
    "reshape": reshape,
    "dropout": dropout,
    "batch_norm": batch_norm,
    "layer_norm": layer_norm,
    "group_norm": group_norm,
    "embedding": embedding,
    "position_embedding": position_embedding,
    "simple_rnn": recurrent,
    "lstm": recurrent,
    "gru": recurrent,
    "multi_head_attention": multi_head_attention,
    "transformer": transformer,
    "activation": lambda x, spec, w, _: activate(spec["activation"], x, w.weights),
}


def run(
    model: list[Spec], x: Tensor, weights: Weights, training: bool, prefix: str = "", counts: Counter[str] | None = None
) -> Tensor:
    """The model's output. Layers are counted by kind, depth first, through residual blocks."""
    counts = Counter() if counts is None else counts
    for spec in model:
        kind = spec["layer"]
        counts[kind] += 1
        name = prefix + spec.get("name", f"{kind}_{counts[kind]}")
        if kind == "residual":
            branch = run(spec["layers"], x, weights, training, f"{name}/", counts)
            x = run(spec.get("shortcut", []), x, weights, training, f"{name}/shortcut/", counts) + branch
        else:
            x = LAYERS[kind](x, spec, Scope(weights, name, spec), training)
    return x


# --- losses --------------------------------------------------------------------------------------


def dense_targets(targets: Spec, output: Tensor) -> Tensor:
    """Targets as numbers of the output's shape; classes become one-hot, or 0 and 1."""
    if "values" in targets:
        return torch.tensor(targets["values"], dtype=torch.float32).to(output.dtype).reshape(output.shape)
    classes = torch.tensor(targets["classes"])
    if output.shape[-1] == 1:
        return classes.to(output.dtype).unsqueeze(-1)
    return F.one_hot(classes, output.shape[-1]).to(output.dtype)


def loss_value(spec: str | Spec, output: Tensor, targets: Spec, weights: Weights) -> Tensor:
    name, settings = named(spec)
    low, high = PROBABILITY_EPSILON, 1 - PROBABILITY_EPSILON
    if name in ("categorical_crossentropy", "sparse_categorical_crossentropy"):
        sparse = name.startswith("sparse")
        y = torch.tensor(targets["classes"]) if sparse else dense_targets(targets, output)
        if settings["from_logits"]:
            return F.cross_entropy(output, y)
        log_p = torch.log(torch.clamp(output / output.sum(-1, keepdim=True), low, high))
        return F.nll_loss(log_p, y) if sparse else -(y * log_p).sum(-1).mean()
    y = dense_targets(targets, output)
    match name:
        case "binary_crossentropy" if settings["from_logits"]:
            return F.binary_cross_entropy_with_logits(output, y)
        case "binary_crossentropy":
            return F.binary_cross_entropy(torch.clamp(output, low, high), y)
        case "mse":
            return F.mse_loss(output, y)
        case "mae":
            weights.keep_from(0, output - y)
            return F.l1_loss(output, y)
        case "huber":
            return F.huber_loss(output, y, delta=settings["delta"])
        case "hinge":
            margin = 1 - (2 * y - 1) * output
            weights.keep_from(0, margin)
            return torch.clamp(margin, min=0).mean()
        case "kl_divergence":
            y = torch.clamp(y, low, 1)
            log_p = torch.log(torch.clamp(output, low, 1))
            return F.kl_div(log_p, y, reduction="batchmean")
        case "poisson":
            return F.poisson_nll_loss(output, y, log_input=False, eps=PROBABILITY_EPSILON)
    raise ValueError(f"unknown loss {name}")


KERAS_LOSSES = {
    "binary_crossentropy": keras.losses.BinaryCrossentropy,
    "categorical_crossentropy": keras.losses.CategoricalCrossentropy,
    "sparse_categorical_crossentropy": keras.losses.SparseCategoricalCrossentropy,
    "mse": keras.losses.MeanSquaredError,
    "mae": keras.losses.MeanAbsoluteError,
    "huber": keras.losses.Huber,
    "hinge": keras.losses.Hinge,
    "kl_divergence": keras.losses.KLDivergence,
    "poisson": keras.losses.Poisson,
}


def keras_loss_value(spec: str | Spec, output: Tensor, targets: Spec) -> Tensor:
    name, settings = named(spec)
    dtype = "float32" if output.dtype == torch.float32 else "float64"
    sparse = name.startswith("sparse")
    y = torch.tensor(targets["classes"]) if sparse else dense_targets(targets, output)
    return KERAS_LOSSES[name](**settings, dtype=dtype)(y, output)


# --- cases ---------------------------------------------------------------------------------------


@dataclass
class Case:
    """A model, its loss, and the kind of batch it sees."""

    name: str
    model: list[Spec]
    input_shape: list[int]
    loss: str | Spec = "mse"
    batch: int = 4
    classes: int = 0  # of the targets; 0 means numbers
    input: list[float] | None = None
    targets: Spec | None = None
    symbols: int = 0  # of a whole-numbered input; 0 means real numbers
    precision: str = "float64"


@dataclass
class Prepared:
    """A case with its batch and weights drawn."""

    case: Case
    weights: Weights
    input: Tensor
    targets: Spec
    initial_moving: dict[tuple[str, str], Tensor]
    output: Tensor
    eval_output: Tensor
    loss: Tensor


def prepare(case: Case) -> Prepared:
    """Draws batch and weights from the case's name, again if a value comes near a kink."""
    for attempt in range(1000):
        generator = torch.Generator().manual_seed(zlib.crc32(f"{case.name}/{attempt}".encode()))
        weights = Weights(generator, getattr(torch, case.precision))
        shape = (case.batch, *case.input_shape)
        if case.input is not None:
            x = torch.tensor(case.input, dtype=torch.float32).to(weights.dtype).reshape(shape)
        elif case.symbols:
            x = torch.randint(case.symbols, shape, generator=generator)
        else:
            x = weights.draw(*shape)
        eval_output = run(case.model, x, weights, training=False).detach()
        initial_moving = dict(weights.moving)
        weights.penalty = 0.0
        output = run(case.model, x, weights, training=True)
        targets = case.targets or draw_targets(case, output, weights)
        loss = loss_value(case.loss, output, targets, weights) + weights.penalty
        if weights.margin > KINK_MARGIN:
            return Prepared(case, weights, x, targets, initial_moving, output, eval_output, loss)
    raise RuntimeError(f"{case.name}: no draw stays clear of the kinks")


def draw_targets(case: Case, output: Tensor, weights: Weights) -> Spec:
    if case.classes:
        draw = torch.randint(case.classes, (case.batch,), generator=weights.generator)
        return {"classes": draw.tolist()}
    return {"values": given_numbers(weights.draw(*output.shape)), "width": output.shape[-1]}


def given_numbers(x: Tensor) -> list[float | int]:
    """Values that float32 holds exactly, in as few digits as bring them back."""
    if not x.is_floating_point():
        return x.flatten().tolist()
    return [float(str(v)) for v in x.detach().flatten().numpy().astype(np.float32)]


def numbers(x: Tensor) -> list[float]:
    return [float(f"{v:.9g}") for v in x.detach().flatten().tolist()]


def given_arrays(named_arrays: dict[tuple[str, str], Tensor]) -> list[Spec]:
    return [
        {"layer": layer, "name": name, "shape": list(a.shape), "values": given_numbers(a)}
        for (layer, name), a in named_arrays.items()
    ]


def arrays(named_arrays: dict[tuple[str, str], Tensor]) -> list[Spec]:
    return [{"layer": layer, "name": name, "values": numbers(a)} for (layer, name), a in named_arrays.items()]


def plain(model: list[Spec]) -> list[Spec]:
    """The model as the plan writes it, without the weights given to it here."""
    return [{k: plain(v) if k == "layers" else v for k, v in spec.items() if k != "initial"} for spec in model]


def draws_at_random(model: list[Spec]) -> bool:
    return any(s.get("rate", 0) or s.get("dropout", 0) or draws_at_random(s.get("layers", [])) for s in model)


def describe(prepared: Prepared) -> Spec:
    case = prepared.case
    return {
        "name": case.name,
        "model": plain(case.model),
        "loss": case.loss,
        **({"precision": case.precision} if case.precision != "float64" else {}),
        "input_shape": case.input_shape,
        "integer_input": bool(case.symbols),
        "batch": case.batch,
        "input": given_numbers(prepared.input),
        "targets": prepared.targets,
        "weights": given_arrays(prepared.weights.arrays | prepared.initial_moving),
    }


def record(case: Case) -> Spec:
    prepared = prepare(case)
    recorded = describe(prepared)
    if not draws_at_random(case.model):
        leaves = prepared.weights.arrays
        gradients = torch.autograd.grad(prepared.loss, list(leaves.values()))
        recorded["output"] = numbers(prepared.output)
        recorded["loss_value"] = numbers(prepared.loss)[0]
        recorded["gradients"] = arrays(dict(zip(leaves, gradients)))
    if not torch.equal(prepared.output.detach(), prepared.eval_output):
        recorded["eval_output"] = numbers(prepared.eval_output)
    if prepared.weights.moving:
        recorded["moving"] = arrays(prepared.weights.moving)
    return recorded


def record_loss(case: Case) -> Spec:
    prepared = prepare(case)
    ours = prepared.loss - prepared.weights.penalty
    theirs = keras_loss_value(case.loss, prepared.output, prepared.targets)
    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-6, check_dtype=False, msg=lambda m: f"{case.name}: {m}")
    return record(case)


# --- the layers ----------------------------------------------------------------------------------


def layer(kind: str, **settings: Any) -> Spec:
    return {"layer": kind, **settings}


def activation_cases() -> Iterator[Case]:
    activations: dict[str, str | Spec] = {
        "relu": "relu",
        "leaky_relu": {"name": "leaky_relu", "negative_slope": 0.2},
        "leaky_relu_0.01": {"name": "leaky_relu", "negative_slope": 0.01},
        "elu": {"name": "elu", "alpha": 1.0},
        "elu_0.5": {"name": "elu", "alpha": 0.5},
        "selu": "selu",
        "gelu": {"name": "gelu", "approximate": False},
        "gelu_approximate": {"name": "gelu", "approximate": True},
        "silu": "silu",
        "tanh": "tanh",
        "sigmoid": "sigmoid",
        "hard_sigmoid": {"name": "hard_sigmoid", "slope": 1 / 6},
        "hard_sigmoid_0.2": {"name": "hard_sigmoid", "slope": 0.2},
        "softplus": "softplus",
        "softmax": "softmax",
        "linear": "linear",
    }
    # Wide enough a range to reach both flat ends of the hard sigmoid.
    wide = [round(6 * math.sin(1.7 * i + 0.3), 3) for i in range(12)]
    for name, spec in activations.items():
        model = [layer("dense", units=5, activation=spec), layer("dense", units=2)]
        yield Case(f"activation_{name}", model, [3], input=wide)
    model = [layer("dense", units=4), layer("activation", activation="tanh"), layer("dense", units=2)]
    yield Case("activation_layer", model, [3])
    model = [layer("dense", units=4), layer("activation", activation="softmax"), layer("global_average_pool")]
    yield Case("activation_layer_softmax_of_a_sequence", model, [3, 2])


def dense_cases() -> Iterator[Case]:
    yield Case("dense", [layer("dense", units=3)], [4])
    yield Case("dense_without_bias", [layer("dense", units=3, use_bias=False, activation="tanh")], [4])
    yield Case("dense_on_a_sequence", [layer("dense", units=3, activation="relu"), layer("flatten")], [4, 2])
    yield Case("dense_named", [layer("dense", name="hidden", units=3), layer("dense", units=2)], [4])
    regularized = [
        layer("dense", units=3, activation="tanh", kernel_regularizer={"l1": 0.01, "l2": 0.0}),
        layer(
            "dense",
            units=2,
            kernel_regularizer={"l1": 0.0, "l2": 0.02},
            bias_regularizer={"l1": 0.03, "l2": 0.04},
        ),
    ]
    yield Case("dense_regularized", regularized, [4])
    ten = [layer("dense", units=4, activation="tanh") for _ in range(10)]
    yield Case(
        "dense_ten_deep",
        [*ten, layer("dense", units=1, activation="sigmoid")],
        [2],
        loss={"name": "binary_crossentropy", "from_logits": False},
        batch=3,
        classes=2,
    )


def convolution_cases() -> Iterator[Case]:
    end = [layer("flatten"), layer("dense", units=2)]
    settings_1d: dict[str, Spec] = {
        "valid": {},
        "same": {"padding": "same"},
        "same_even_kernel": {"padding": "same", "kernel_size": 4},
        "same_strided": {"padding": "same", "strides": 2},
        "strided": {"strides": 2},
        "dilated": {"dilation_rate": 2},
        "same_dilated": {"padding": "same", "dilation_rate": 2, "kernel_size": 2},
        "without_bias": {"use_bias": False, "activation": "relu"},
    }
    for name, settings in settings_1d.items():
        model = [layer("conv1d", **{"filters": 3, "kernel_size": 3, **settings}), *end]
        yield Case(f"conv1d_{name}", model, [7, 2], batch=3)
    settings_2d: dict[str, Spec] = {
        "valid": {},
        "same": {"padding": "same"},
        "same_even_kernel": {"padding": "same", "kernel_size": [2, 4]},
        "same_strided": {"padding": "same", "strides": [2, 2]},
        "same_strided_uneven": {"padding": "same", "strides": [2, 3], "kernel_size": [3, 2]},
        "strided": {"strides": [2, 1]},
        "dilated": {"dilation_rate": [2, 1], "kernel_size": [2, 3]},
        "same_dilated": {"padding": "same", "dilation_rate": [2, 2], "kernel_size": [2, 2]},
        "without_bias": {"use_bias": False, "activation": "relu"},
        "one_by_one": {"kernel_size": [1, 1], "activation": "tanh"},
    }
    for name, settings in settings_2d.items():
        model = [layer("conv2d", **{"filters": 3, "kernel_size": [3, 3], **settings}), *end]
        yield Case(f"conv2d_{name}", model, [5, 6, 2], batch=2)
    regularized = layer(
        "conv2d",
        filters=2,
        kernel_size=[2, 2],
        kernel_regularizer={"l1": 0.01, "l2": 0.02},
        bias_regularizer={"l1": 0.0, "l2": 0.03},
    )
    yield Case("conv2d_regularized", [regularized, *end], [3, 3, 2], batch=3)
    regularized = {**regularized, "layer": "conv1d", "kernel_size": 2}
    yield Case("conv1d_regularized", [regularized, *end], [4, 2], batch=3)


def pooling_cases() -> Iterator[Case]:
    end = [layer("flatten"), layer("dense", units=2)]
    for kind in ("max", "average"):
        settings_1d: dict[str, Spec] = {
            "default": {},
            "overlapping": {"pool_size": 3, "strides": 2},
            "same": {"padding": "same"},
            "same_overlapping": {"pool_size": 3, "strides": 2, "padding": "same"},
            "same_dense": {"pool_size": 2, "strides": 1, "padding": "same"},
        }
        for name, settings in settings_1d.items():
            model = [layer("conv1d", filters=2, kernel_size=2), layer(f"{kind}_pool1d", **settings), *end]
            yield Case(f"{kind}_pool1d_{name}", model, [8, 2], batch=3)
        settings_2d: dict[str, Spec] = {
            "default": {},
            "overlapping": {"pool_size": [3, 2], "strides": [2, 1]},
            "same": {"padding": "same"},
            "same_overlapping": {"pool_size": [3, 3], "strides": [2, 2], "padding": "same"},
            "same_dense": {"pool_size": [2, 2], "strides": [1, 1], "padding": "same"},
        }
        for name, settings in settings_2d.items():
            model = [layer("conv2d", filters=2, kernel_size=[2, 2]), layer(f"{kind}_pool2d", **settings), *end]
            yield Case(f"{kind}_pool2d_{name}", model, [6, 5, 1], batch=3)
        last = [layer(f"global_{kind}_pool"), layer("dense", units=2)]
        yield Case(f"global_{kind}_pool_1d", [layer("conv1d", filters=3, kernel_size=2), *last], [6, 2])
        yield Case(f"global_{kind}_pool_2d", [layer("conv2d", filters=3, kernel_size=[2, 2]), *last], [4, 5, 1])


def shape_cases() -> Iterator[Case]:
    model = [layer("conv2d", filters=2, kernel_size=[2, 2]), layer("flatten"), layer("dense", units=3)]
    yield Case("flatten", model, [3, 4, 1])
    model = [
        layer("dense", units=12),
        layer("reshape", target_shape=[2, -1, 2]),
        layer("conv2d", filters=2, kernel_size=[2, 2], activation="tanh"),
        layer("flatten"),
        layer("dense", units=2),
    ]
    yield Case("reshape", model, [3])
    model = [layer("dense", units=4, activation="tanh"), layer("dropout", rate=0.5), layer("dense", units=2)]
    yield Case("dropout", model, [3])
    model[1] = layer("dropout", rate=0.0)
    yield Case("dropout_none", model, [3])


def normalization_cases() -> Iterator[Case]:
    settings: dict[str, Spec] = {
        "default": {},
        "momentum": {"momentum": 0.8, "epsilon": 1e-5},
        "no_scale": {"scale": False},
        "no_center": {"center": False},
    }
    for name, s in settings.items():
        model = [layer("dense", units=3), layer("batch_norm", **s), layer("dense", units=2)]
        yield Case(f"batch_norm_{name}", model, [4], batch=6)
    model = [layer("conv1d", filters=3, kernel_size=2), layer("batch_norm"), layer("global_average_pool")]
    yield Case("batch_norm_1d", model, [5, 2])
    model = [
        layer("conv2d", filters=3, kernel_size=[2, 2], use_bias=False),
        layer("batch_norm"),
        layer("activation", activation="relu"),
        layer("flatten"),
        layer("dense", units=2),
    ]
    yield Case("batch_norm_2d", model, [4, 4, 2])
    settings = {
        "default": {},
        "epsilon": {"epsilon": 1e-5},
        "no_scale": {"scale": False},
        "no_center": {"center": False},
    }
    for name, s in settings.items():
        model = [layer("dense", units=4), layer("layer_norm", **s), layer("dense", units=2)]
        yield Case(f"layer_norm_{name}", model, [3])
    model = [layer("conv1d", filters=4, kernel_size=2), layer("layer_norm"), layer("flatten"), layer("dense", units=2)]
    yield Case("layer_norm_1d", model, [5, 2])
    end = [layer("flatten"), layer("dense", units=2)]
    for name, s in settings.items():
        model = [layer("conv2d", filters=4, kernel_size=[2, 2]), layer("group_norm", groups=2, **s), *end]
        yield Case(f"group_norm_{name}", model, [4, 3, 2])
    model = [layer("conv2d", filters=3, kernel_size=[2, 2]), layer("group_norm", groups=3), *end]
    yield Case("group_norm_instance", model, [4, 3, 2])
    model = [layer("conv1d", filters=4, kernel_size=2), layer("group_norm", groups=2), *end]
    yield Case("group_norm_1d", model, [5, 2])
    model = [layer("dense", units=6), layer("group_norm", groups=2), layer("dense", units=2)]
    yield Case("group_norm_dense", model, [3])


def sequence_cases() -> Iterator[Case]:
    model = [layer("embedding", input_dim=5, output_dim=3), layer("flatten"), layer("dense", units=2)]
    yield Case("embedding", model, [4], symbols=5)
    model = [layer("embedding", input_dim=5, output_dim=3), layer("position_embedding"), layer("global_average_pool")]
    yield Case("position_embedding", [*model, layer("dense", units=2, activation="tanh")], [4], symbols=5)
    model = [layer("position_embedding"), layer("dense", units=2, activation="tanh"), layer("flatten")]
    yield Case("position_embedding_of_numbers", model, [3, 2])

    end = [layer("dense", units=2)]
    many = [layer("flatten"), *end]
    common: dict[str, Spec] = {
        "default": {},
        "sequences": {"return_sequences": True},
        "bidirectional": {"bidirectional": True},
        "bidirectional_sequences": {"bidirectional": True, "return_sequences": True},
        "without_bias": {"use_bias": False},
        "regularized": {
            "kernel_regularizer": {"l1": 0.01, "l2": 0.0},
            "recurrent_regularizer": {"l1": 0.0, "l2": 0.02},
        },
    }
    hard = {"name": "hard_sigmoid", "slope": 0.2}
    own: dict[str, dict[str, Spec]] = {
        "simple_rnn": {"relu": {"activation": "relu"}, "sigmoid": {"activation": "sigmoid", "bidirectional": True}},
        "lstm": {
            "hard_sigmoid": {"recurrent_activation": hard},
            "softplus": {"activation": "softplus", "bidirectional": True, "return_sequences": True},
        },
        "gru": {
            "reset_before": {"reset_after": False},
            "reset_before_bidirectional": {"reset_after": False, "bidirectional": True, "return_sequences": True},
            "reset_before_without_bias": {"reset_after": False, "use_bias": False},
            "hard_sigmoid": {"recurrent_activation": hard},
            "softplus": {"activation": "softplus"},
        },
    }
    for kind, extra in own.items():
        for name, settings in {**common, **extra}.items():
            sequences = settings.get("return_sequences", False)
            model = [layer(kind, units=3, **settings), *(many if sequences else end)]
            yield Case(f"{kind}_{name}", model, [4, 2], batch=3)
        stacked = [layer(kind, units=3, return_sequences=True), layer(kind, units=2), *end]
        yield Case(f"{kind}_stacked", stacked, [4, 2], batch=3)


def attention_cases() -> Iterator[Case]:
    end = [layer("flatten"), layer("dense", units=2)]
    attentions: dict[str, Spec] = {
        "default": {},
        "key_dim": {"key_dim": 3},
        "without_bias": {"use_bias": False},
        "without_bias_key_dim": {"use_bias": False, "key_dim": 1},
    }
    for name, settings in attentions.items():
        model = [layer("multi_head_attention", num_heads=2, **settings), *end]
        yield Case(f"multi_head_attention_{name}", model, [3, 4], batch=3)
    gelu = {"name": "gelu", "approximate": False}
    transformers: dict[str, Spec] = {
        "default": {},
        "norm_first": {"norm_first": True},
        "gelu": {"activation": gelu, "epsilon": 1e-5},
        "norm_first_silu": {"norm_first": True, "activation": "silu"},
        "dropout": {"dropout": 0.1},
    }
    for name, settings in transformers.items():
        model = [layer("transformer", num_heads=2, feed_forward=5, **settings), *end]
        yield Case(f"transformer_{name}", model, [3, 4], batch=3)


def composed_cases() -> Iterator[Case]:
    inner = [layer("dense", units=3, activation="tanh"), layer("batch_norm"), layer("dense", units=4)]
    model = [layer("dense", units=4), layer("residual", layers=inner), layer("dense", units=2)]
    yield Case("residual", model, [3], batch=5)
    nested = [layer("dense", units=4, activation="tanh"), layer("residual", layers=[layer("dense", units=4)])]
    model = [layer("residual", layers=nested), layer("residual", layers=[layer("layer_norm")]), layer("dense", units=2)]
    yield Case("residual_nested", model, [4])
    shortcut = [layer("dense", units=5, activation="tanh")]
    block = layer("residual", layers=[layer("dense", units=3, activation="tanh"), layer("dense", units=5)], shortcut=shortcut)
    yield Case("residual_shortcut", [block, layer("dense", units=2)], [4])
    cross_entropy = {"name": "sparse_categorical_crossentropy", "from_logits": False}
    conv = layer("conv2d", filters=3, kernel_size=[3, 3], padding="same", use_bias=False)
    block = layer("residual", layers=[conv, layer("batch_norm"), layer("activation", activation="relu")])
    model = [conv, layer("batch_norm"), block, layer("max_pool2d"), layer("global_average_pool")]
    model = [*model, layer("dense", units=3, activation="softmax")]
    yield Case("small_residual_network", model, [6, 6, 1], loss=cross_entropy, classes=3)
    model = [
        layer("embedding", input_dim=6, output_dim=4),
        layer("position_embedding"),
        layer("transformer", num_heads=2, feed_forward=5, norm_first=True),
        layer("layer_norm"),
        layer("global_average_pool"),
        layer("dense", units=3),
    ]
    logits = {"name": "sparse_categorical_crossentropy", "from_logits": True}
    yield Case("small_transformer", model, [4], loss=logits, classes=3, symbols=6)


def layer_cases() -> Iterator[Case]:
    yield from dense_cases()
    yield from activation_cases()
    yield from convolution_cases()
    yield from pooling_cases()
    yield from shape_cases()
    yield from normalization_cases()
    yield from sequence_cases()
    yield from attention_cases()
    yield from composed_cases()


# --- the losses ----------------------------------------------------------------------------------


def identity(width: int) -> Spec:
    """A layer whose output is its input to the bit, so that a case can name the output."""
    eye = [[float(i == j) for j in range(width)] for i in range(width)]
    return layer("dense", units=width, initial={"kernel": eye, "bias": [0.0] * width})


def given(name: str, loss: str | Spec, rows: list[list[float]], targets: Spec, precision: str = "float64") -> Case:
    """A case whose model's outputs are `rows`."""
    width = len(rows[0])
    flat = [v for row in rows for v in row]
    return Case(name, [identity(width)], [width], loss, len(rows), input=flat, targets=targets, precision=precision)


def loss_cases() -> Iterator[Case]:
    def ce(kind: str, from_logits: bool) -> Spec:
        return {"name": f"{kind}crossentropy", "from_logits": from_logits}

    hidden = layer("dense", units=4, activation="tanh")
    for kind, outputs in (("binary_", 1), ("categorical_", 3), ("sparse_categorical_", 3)):
        last = "sigmoid" if outputs == 1 else "softmax"
        for from_logits, activation in ((False, last), (True, "linear")):
            form = "logits" if from_logits else "probabilities"
            model = [hidden, layer("dense", units=outputs, activation=activation)]
            yield Case(f"{kind}crossentropy_{form}", model, [3], ce(kind, from_logits), 5, max(outputs, 2))
    model = [hidden, layer("dense", units=3, activation="sigmoid")]
    yield Case("binary_crossentropy_several_outputs", model, [3], ce("binary_", False), 5, 3)
    model = [hidden, layer("dense", units=3)]
    yield Case("binary_crossentropy_several_logits", model, [3], ce("binary_", True), 5, 3)
    for kind in ("categorical_", "sparse_categorical_"):
        # Outputs that are no distribution are made one first.
        model = [hidden, layer("dense", units=3, activation="sigmoid")]
        yield Case(f"{kind}crossentropy_of_sigmoids", model, [3], ce(kind, False), 5, 3)

    # Probabilities 0 and 1, right and wrong, and logits of +-50.
    p = [[0.0], [1.0], [0.0], [1.0], [0.3], [1e-5]]
    y = {"classes": [0, 1, 1, 0, 1, 1]}
    yield given("binary_crossentropy_extreme_probabilities", ce("binary_", False), p, y, "float32")
    z = [[-50.0], [50.0], [-50.0], [50.0], [0.3], [-20.0]]
    yield given("binary_crossentropy_extreme_logits", ce("binary_", True), z, y, "float32")
    p3 = [[1.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.2, 0.5, 0.3], [0.0, 0.25, 0.75], [0.0, 0.25, 0.75]]
    z3 = [[50.0, 0.0, -50.0], [50.0, 0.0, -50.0], [0.2, 0.5, 0.3], [-50.0, 1.0, 2.0], [-50.0, 1.0, 2.0]]
    y3 = {"classes": [0, 1, 2, 0, 1]}
    for kind in ("categorical_", "sparse_categorical_"):
        yield given(f"{kind}crossentropy_extreme_probabilities", ce(kind, False), p3, y3, "float32")
        yield given(f"{kind}crossentropy_extreme_logits", ce(kind, True), z3, y3, "float32")

    plain_losses: dict[str, str | Spec] = {
        "mse": "mse",
        "mae": "mae",
        "huber": {"name": "huber", "delta": 1.0},
        "huber_0.3": {"name": "huber", "delta": 0.3},
    }
    for name, loss in plain_losses.items():
        for outputs in (1, 3):
            model = [hidden, layer("dense", units=outputs)]
            yield Case(f"{name}_of_{outputs}_numbers", model, [3], loss, 5)
            yield Case(f"{name}_of_classes_{outputs}_outputs", model, [3], loss, 5, max(outputs, 2))
    for outputs in (1, 3):
        model = [hidden, layer("dense", units=outputs)]
        yield Case(f"hinge_{outputs}_outputs", model, [3], "hinge", 5, max(outputs, 2))
        model = [hidden, layer("dense", units=outputs, activation="softplus")]
        yield Case(f"poisson_of_classes_{outputs}_outputs", model, [3], "poisson", 5, max(outputs, 2))
    counts = {"values": [0.0, 1.0, 2.0, 5.0, 3.0, 1.0, 0.0, 4.0, 2.0, 1.0], "width": 2}
    model = [hidden, layer("dense", units=2, activation="softplus")]
    yield Case("poisson_of_counts", model, [3], "poisson", 5, targets=counts)
    counts = {"values": [0.0, 1.0, 2.0, 5.0], "width": 1}
    yield given("poisson_extreme", "poisson", [[0.0], [1e-5], [3.0], [40.0]], counts, "float32")
    yield given("hinge_far", "hinge", [[50.0], [-50.0], [0.5], [-0.5]], {"classes": [0, 0, 1, 1]}, "float32")
    model = [hidden, layer("dense", units=3, activation="softmax")]
    yield Case("kl_divergence_of_classes", model, [3], "kl_divergence", 5, 3)
    soft = {"values": [0.2, 0.3, 0.5, 0.7, 0.2, 0.1, 0.05, 0.9, 0.05, 0.6, 0.1, 0.3, 0.25, 0.5, 0.25], "width": 3}
    yield Case("kl_divergence_of_distributions", model, [3], "kl_divergence", 5, targets=soft)
    yield Case("categorical_crossentropy_of_distributions", model, [3], ce("categorical_", False), 5, targets=soft)
    yield given("kl_divergence_extreme", "kl_divergence", p3, y3, "float32")


# --- the optimizers ------------------------------------------------------------------------------

UPDATES = 5

OPTIMIZERS: dict[str, type[keras.optimizers.Optimizer]] = {
    "sgd": keras.optimizers.SGD,
    "rmsprop": keras.optimizers.RMSprop,
    "adagrad": keras.optimizers.Adagrad,
    "adadelta": keras.optimizers.Adadelta,
    "adam": keras.optimizers.Adam,
    "adamw": keras.optimizers.AdamW,
    "nadam": keras.optimizers.Nadam,
}

TorchOptimizer = Callable[[list[Tensor]], torch.optim.Optimizer]

# Where epsilon's place is all that differs, it is made too small to matter.
TINY = 1e-15


@dataclass
class Updates:
    """An optimizer with its settings, and PyTorch's own where it follows the same rule."""

    name: str
    algorithm: str
    settings: Spec = field(default_factory=dict)
    schedule: Spec = field(default_factory=dict)
    steps: int = UPDATES
    torch: TorchOptimizer | None = None


def learning_rate(base: float, schedule: Spec, step: int) -> float:
    """The rate of an update, the first being step 0; decay starts when the warm-up has ended."""
    warmup = schedule.get("warmup_steps", 0)
    if step < warmup:
        return base * (step + 1) / warmup
    t, length = step - warmup, schedule.get("decay_steps", 1)
    match schedule.get("decay", "constant"):
        case "constant":
            return base
        case "step":
            return base * schedule["decay_rate"] ** (t // length)
        case "exponential":
            return base * schedule["decay_rate"] ** (t / length)
        case "cosine":
            alpha = schedule.get("alpha", 0.0)
            return base * (alpha + (1 - alpha) * 0.5 * (1 + math.cos(math.pi * min(t / length, 1.0))))
    raise ValueError(f"unknown decay {schedule}")


def gradients_at(prepared: Prepared, values: list[Tensor]) -> tuple[list[Tensor], float]:
    leaves = [v.detach().clone().requires_grad_() for v in values]
    weights = Weights(prepared.weights.generator, prepared.weights.dtype, dict(zip(prepared.weights.arrays, leaves)))
    output = run(prepared.case.model, prepared.input, weights, training=True)
    loss = loss_value(prepared.case.loss, output, prepared.targets, weights)
    return list(torch.autograd.grad(loss, leaves)), loss.item()


def keras_updates(updates: Updates, prepared: Prepared) -> tuple[list[list[Tensor]], list[float], list[float]]:
    optimizer = OPTIMIZERS[updates.algorithm](**updates.settings)
    base = float(optimizer.learning_rate)
    variables = [keras.Variable(a.detach().clone(), dtype="float64") for a in prepared.weights.arrays.values()]
    optimizer.build(variables)
    after, losses, rates = [], [], []
    for step in range(updates.steps):
        rate = learning_rate(base, updates.schedule, step)
        optimizer.learning_rate = rate
        gradients, loss = gradients_at(prepared, [v.value for v in variables])
        optimizer.apply(gradients, variables)
        after.append([v.value.detach().clone() for v in variables])
        losses.append(loss)
        rates.append(rate)
    return after, losses, rates


def torch_updates(updates: Updates, prepared: Prepared) -> list[Tensor]:
    assert updates.torch is not None
    parameters = [a.detach().clone().requires_grad_() for a in prepared.weights.arrays.values()]
    optimizer = updates.torch(parameters)
    base = updates.settings["learning_rate"]
    for step in range(updates.steps):
        gradients, _ = gradients_at(prepared, parameters)
        for parameter, gradient in zip(parameters, gradients):
            parameter.grad = gradient
        clip(updates.settings, parameters)
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(base, updates.schedule, step)
        optimizer.step()
    return parameters


def clip(settings: Spec, parameters: list[Tensor]) -> None:
    if (limit := settings.get("clipvalue")) is not None:
        nn.utils.clip_grad_value_(parameters, limit)
    if (limit := settings.get("clipnorm")) is not None:
        for parameter in parameters:
            nn.utils.clip_grad_norm_(parameter, limit)
    if (limit := settings.get("global_clipnorm")) is not None:
        nn.utils.clip_grad_norm_(parameters, limit)


def record_updates(updates: Updates) -> Spec:
    model = [layer("dense", units=4, activation="tanh"), layer("dense", units=2)]
    prepared = prepare(Case("optimizer", model, [3], batch=5))
    after, losses, rates = keras_updates(updates, prepared)
    source = f"keras.optimizers.{OPTIMIZERS[updates.algorithm].__name__}"
    if updates.torch is not None:
        theirs = torch_updates(updates, prepared)
        torch.testing.assert_close(theirs, after[-1], rtol=1e-5, atol=1e-6, msg=lambda m: f"{updates.name}: {m}")
        source += f", torch.optim.{type(updates.torch([torch.zeros(1)])).__name__}"
    described = describe(prepared)
    described["name"] = updates.name
    optimizer = OPTIMIZERS[updates.algorithm](**updates.settings)
    return {
        **described,
        "source": source,
        "optimizer": {"name": updates.algorithm, **updates.settings},
        "base_learning_rate": float(f"{float(optimizer.learning_rate):.9g}"),
        "schedule": updates.schedule,
        "steps": updates.steps,
        "learning_rates": [float(f"{r:.9g}") for r in rates],
        "losses": [float(f"{v:.9g}") for v in losses],
        "after": [[numbers(a) for a in step] for step in after],
    }


def update_cases() -> Iterator[Updates]:
    o = torch.optim
    yield Updates("sgd_default", "sgd")
    yield Updates("sgd", "sgd", {"learning_rate": 0.1}, torch=lambda p: o.SGD(p, 0.1))
    momentum = {"learning_rate": 0.1, "momentum": 0.9}
    yield Updates("sgd_momentum", "sgd", momentum, torch=lambda p: o.SGD(p, 0.1, 0.9))
    nesterov = {**momentum, "nesterov": True}
    yield Updates("sgd_nesterov", "sgd", nesterov, torch=lambda p: o.SGD(p, 0.1, 0.9, nesterov=True))
    yield Updates("sgd_weight_decay", "sgd", {**momentum, "weight_decay": 0.05})

    yield Updates("rmsprop_default", "rmsprop")
    rmsprop = {"learning_rate": 0.01, "rho": 0.8, "epsilon": TINY}
    yield Updates("rmsprop", "rmsprop", rmsprop, torch=lambda p: o.RMSprop(p, 0.01, 0.8, TINY))
    yield Updates("rmsprop_momentum", "rmsprop", {"learning_rate": 0.01, "momentum": 0.9})
    yield Updates("rmsprop_centered", "rmsprop", {"learning_rate": 0.01, "centered": True})
    full = {**rmsprop, "momentum": 0.5, "centered": True}
    yield Updates(
        "rmsprop_centered_momentum",
        "rmsprop",
        full,
        torch=lambda p: o.RMSprop(p, 0.01, 0.8, TINY, momentum=0.5, centered=True),
    )
    yield Updates("rmsprop_epsilon", "rmsprop", {"learning_rate": 0.01, "epsilon": 0.01})

    yield Updates("adagrad_default", "adagrad")
    adagrad = {"learning_rate": 0.1, "initial_accumulator_value": 0.5, "epsilon": TINY}
    yield Updates(
        "adagrad",
        "adagrad",
        adagrad,
        torch=lambda p: o.Adagrad(p, 0.1, initial_accumulator_value=0.5, eps=TINY),
    )
    yield Updates("adagrad_epsilon", "adagrad", {"learning_rate": 0.1, "epsilon": 0.01})

    yield Updates("adadelta_default", "adadelta")
    adadelta = {"learning_rate": 1.0, "rho": 0.9, "epsilon": 1e-6}
    yield Updates("adadelta", "adadelta", adadelta, torch=lambda p: o.Adadelta(p, 1.0, 0.9, 1e-6))

    yield Updates("adam_default", "adam")
    adam = {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "epsilon": TINY}
    yield Updates("adam", "adam", adam, torch=lambda p: o.Adam(p, 0.05, (0.8, 0.95), TINY))
    amsgrad = {**adam, "amsgrad": True}
    yield Updates("adam_amsgrad", "adam", amsgrad, torch=lambda p: o.Adam(p, 0.05, (0.8, 0.95), TINY, amsgrad=True))
    yield Updates("adam_epsilon", "adam", {"learning_rate": 0.05, "epsilon": 0.01})
    yield Updates("adam_weight_decay", "adam", {"learning_rate": 0.05, "weight_decay": 0.1})

    yield Updates("adamw_default", "adamw")
    adamw = {**adam, "weight_decay": 0.1}
    yield Updates("adamw", "adamw", adamw, torch=lambda p: o.AdamW(p, 0.05, (0.8, 0.95), TINY, 0.1))
    yield Updates(
        "adamw_amsgrad",
        "adamw",
        {**adamw, "amsgrad": True},
        torch=lambda p: o.AdamW(p, 0.05, (0.8, 0.95), TINY, 0.1, amsgrad=True),
    )

    yield Updates("nadam_default", "nadam")
    nadam = {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-6}
    # Keras's momentum schedule is PyTorch's with a decay of 1 a step instead of 0.004.
    yield Updates("nadam", "nadam", nadam, torch=lambda p: o.NAdam(p, 0.05, (0.8, 0.95), 1e-6, momentum_decay=1.0))

    sgd: TorchOptimizer = lambda p: o.SGD(p, 0.5)
    for limit, value in (("clipvalue", 0.1), ("clipnorm", 0.2), ("global_clipnorm", 0.3)):
        yield Updates(f"{limit}_small", "sgd", {"learning_rate": 0.5, limit: value}, torch=sgd)
        yield Updates(f"{limit}_large", "sgd", {"learning_rate": 0.5, limit: 100.0}, torch=sgd)
    yield Updates("adam_global_clipnorm", "adam", {"learning_rate": 0.05, "global_clipnorm": 0.3})

    schedules: dict[str, Spec] = {
        "constant": {"decay": "constant"},
        "constant_warmup": {"decay": "constant", "warmup_steps": 4},
        "step": {"decay": "step", "decay_steps": 3, "decay_rate": 0.5},
        "exponential": {"decay": "exponential", "decay_steps": 3, "decay_rate": 0.5},
        "cosine": {"decay": "cosine", "decay_steps": 8},
        "cosine_alpha": {"decay": "cosine", "decay_steps": 8, "alpha": 0.1},
        "cosine_warmup": {"decay": "cosine", "decay_steps": 6, "alpha": 0.1, "warmup_steps": 3},
        "step_warmup": {"decay": "step", "decay_steps": 2, "decay_rate": 0.1, "warmup_steps": 2},
        "exponential_warmup": {"decay": "exponential", "decay_steps": 2, "decay_rate": 0.1, "warmup_steps": 2},
    }
    for name, schedule in schedules.items():
        yield Updates(
            f"schedule_{name}", "sgd", {"learning_rate": 0.1}, schedule, steps=10, torch=lambda p: o.SGD(p, 0.1)
        )
    # Keras keeps the rate inside the velocity, so a changing rate tells it from PyTorch.
    decay = schedules["exponential"]
    yield Updates("schedule_with_momentum", "sgd", momentum, decay, steps=10)
    yield Updates("schedule_with_nesterov", "sgd", nesterov, decay, steps=10)
    yield Updates("schedule_with_adamw", "adamw", {"learning_rate": 0.05, "weight_decay": 0.1}, decay, steps=10)


# --- recording -----------------------------------------------------------------------------------


def write(name: str, cases: list[Spec]) -> None:
    """One case a line, so that a change shows which case it touched."""
    FIXTURES.mkdir(exist_ok=True)
    path = FIXTURES / name
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in cases)
    path.write_text(f"[\n{lines}\n]\n")
    print(f"{path.name}: {len(cases)} cases, {path.stat().st_size / 1000:.0f} kB")


def main() -> None:
    torch.use_deterministic_algorithms(True)
    keras.config.set_floatx("float64")
    keras.config.set_epsilon(PROBABILITY_EPSILON)
    write("layers.json", [record(case) for case in layer_cases()])
    write("losses.json", [record_loss(case) for case in loss_cases()])
    write("optimizers.json", [record_updates(updates) for updates in update_cases()])


if __name__ == "__main__":
    main()
