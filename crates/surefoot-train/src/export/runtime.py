import json
import math
import struct

import torch
import torch.nn.functional as F


def load(path):
    """Arrays of a safetensors file by name."""
    with open(path, "rb") as file:
        content = file.read()
    size = struct.unpack("<Q", content[:8])[0]
    arrays = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = (8 + size + offset for offset in entry["data_offsets"])
            values = torch.frombuffer(bytearray(content[start:end]), dtype=torch.float32)
            arrays[name] = values.reshape(entry["shape"]).clone()
    return arrays


def prepare(x):
    """Imputes, clips and scales encoded samples."""
    if MEANS is not None:
        x = torch.where(torch.isfinite(x), x, torch.tensor(MEANS, device=x.device))
    if LIMITS is not None:
        low, high = torch.tensor(LIMITS, device=x.device).T
        x = torch.minimum(torch.maximum(x, low), high)
    if SCALING is not None:
        offset, divisor = torch.tensor(SCALING, dtype=torch.float64, device=x.device)
        x = ((x.double() - offset) / divisor).float()
    return x


def encode(rows):
    """Samples from rows of a table: dictionaries from column names to cells, as csv.DictReader reads them."""
    samples = []
    for row in rows:
        sample = []
        for name, categories in COLUMNS:
            cell = row[name]
            if categories is None:
                sample.append(float("nan") if cell in (None, "") else float(cell))
            elif cell in (None, ""):
                sample += [float("nan")] * len(categories)
            else:
                if cell not in categories:
                    raise ValueError(f"{cell!r} is not a category of column {name!r}: {categories}")
                sample += [float(cell == category) for category in categories]
        samples.append(sample)
    return torch.tensor(samples)


def activate(x, name, option=None):
    if name == "relu":
        return F.relu(x)
    if name == "leaky_relu":
        return F.leaky_relu(x, option)
    if name == "elu":
        return F.elu(x, option)
    if name == "selu":
        return F.selu(x)
    if name == "gelu":
        return F.gelu(x, approximate="tanh" if option else "none")
    if name == "silu":
        return F.silu(x)
    if name == "tanh":
        return torch.tanh(x)
    if name == "sigmoid":
        return torch.sigmoid(x)
    if name == "hard_sigmoid":
        return torch.clamp(option * x + 0.5, 0, 1)
    if name == "softplus":
        return F.softplus(x)
    if name == "softmax":
        return F.softmax(x, dim=-1)
    return x


def affine(x, gamma, beta):
    x = x if gamma is None else x * gamma
    return x if beta is None else x + beta


def product(x, kernel, bias):
    return affine(x @ kernel, None, bias)


def as_image(x):
    """Channels first; a sequence becomes an image of height 1."""
    x = x if x.dim() == 4 else x.unsqueeze(1)
    return x.permute(0, 3, 1, 2)


def from_image(x, is_sequence):
    x = x.permute(0, 2, 3, 1)
    return x.squeeze(1) if is_sequence else x


def conv(x, kernel, bias, pad, stride, dilation):
    is_sequence = x.dim() == 3
    kernel = kernel.unsqueeze(2) if is_sequence else kernel
    y = F.conv2d(F.pad(as_image(x), pad), kernel, bias, stride, 0, dilation)
    return from_image(y, is_sequence)


def pool(x, is_max, size, pad, stride):
    is_sequence = x.dim() == 3
    x = as_image(x)
    if is_max:
        return from_image(F.max_pool2d(F.pad(x, pad, value=-math.inf), size, stride), is_sequence)
    total = F.avg_pool2d(F.pad(x, pad), size, stride)
    share = F.avg_pool2d(F.pad(torch.ones_like(x), pad), size, stride)
    return from_image(total / share, is_sequence)


def global_pool(x, is_max):
    axes = tuple(range(1, x.dim() - 1))
    return x.amax(axes) if is_max else x.mean(axes)


def batch_norm(x, mean, variance, gamma, beta, epsilon):
    return affine((x - mean) / torch.sqrt(variance + epsilon), gamma, beta)


def layer_norm(x, gamma, beta, epsilon):
    return affine(F.layer_norm(x, x.shape[-1:], eps=epsilon), gamma, beta)


def group_norm(x, groups, gamma, beta, epsilon):
    return affine(F.group_norm(x.movedim(-1, 1), groups, eps=epsilon).movedim(1, -1), gamma, beta)


def masking(x, value):
    """Steps of padding set to 0, and a mask that is True at all others."""
    mask = (x != value).any(-1, keepdim=True)
    return x * mask, mask


def recurrent(x, arrays, cell, activation, gates, reset_after, returns_sequences, mask=None):
    """A recurrent layer; `arrays` has kernel, recurrent kernel and bias of each direction."""
    outputs = []
    for index, (kernel, recurrent_kernel, bias) in enumerate(arrays):
        units = recurrent_kernel.shape[0]
        input_bias, state_bias = (bias[0], bias[1]) if reset_after and bias is not None else (bias, None)
        inputs = product(x, kernel, input_bias)
        hidden = x.new_zeros(len(x), units)
        memory = hidden
        states = []
        steps = range(x.shape[1])
        for step in reversed(steps) if index else steps:
            now = inputs[:, step]
            before = hidden, memory
            if cell == "simple":
                hidden = activate(now + hidden @ recurrent_kernel, *activation)
            elif cell == "lstm":
                i, f, g, o = (now + hidden @ recurrent_kernel).split(units, dim=-1)
                memory = activate(f, *gates) * memory + activate(i, *gates) * activate(g, *activation)
                hidden = activate(o, *gates) * activate(memory, *activation)
            else:
                z, r, h = now.split(units, dim=-1)
                if reset_after:
                    zs, rs, hs = product(hidden, recurrent_kernel, state_bias).split(units, dim=-1)
                    z, r = activate(z + zs, *gates), activate(r + rs, *gates)
                    h = activate(h + r * hs, *activation)
                else:
                    zk, rk, hk = recurrent_kernel.split(units, dim=-1)
                    z, r = activate(z + hidden @ zk, *gates), activate(r + hidden @ rk, *gates)
                    h = activate(h + (r * hidden) @ hk, *activation)
                hidden = z * hidden + (1 - z) * h
            if mask is not None:
                hidden, memory = (torch.where(mask[:, step], *it) for it in zip((hidden, memory), before))
            states.append(hidden)
        if returns_sequences:
            outputs.append(torch.stack(states[::-1] if index else states, dim=1))
        else:
            outputs.append(hidden)
    return torch.cat(outputs, dim=-1)


def attention(x, heads, key_dim, query, key, value, output):
    """Self-attention; each projection is a kernel and a bias."""
    split = lambda y: y.reshape(len(y), -1, heads, key_dim).transpose(1, 2)
    q, k, v = (split(product(x, *by)) for by in (query, key, value))
    mixed = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(key_dim), dim=-1) @ v
    return product(mixed.transpose(1, 2).reshape(len(x), -1, heads * key_dim), *output)
