"""Gradients that do not depend on the number of processes: ``surefoot run --shards N``.

Each batch is divided into N shards, for any number of processes. The samples are assigned to the shards as a
``DistributedSampler`` assigns them to N processes. The forward pass of a ``DistributedDataParallel`` model is executed
shard by shard, and the gradients of the shards are added along a fixed tree, whose upper levels span the processes.
So all sums add the same numbers in the same order.
"""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from surefoot.run.keys import generator_states, set_generator_states
from surefoot.run.loaders import Loaders
from surefoot.run.record import tell


class ShardError(Exception):
    """A batch that cannot be divided into shards; the message says why."""


def tree_sum(items: list[Any]) -> Any:
    """Adds the second half of a list to the first half, item by item, until one is left.

    The number of items is a power of two.
    """
    while len(items) > 1:
        half = len(items) // 2
        items = [a + b for a, b in zip(items[:half], items[half:])]
    return items[0]


class Shards:
    """Divides the batches of ``DistributedDataParallel`` models."""

    def __init__(self, count: int, rank: int, world: int, loaders: Loaders) -> None:
        self.count, self.rank, self.world, self.loaders = count, rank, world, loaders
        self.local = count // world
        self.is_used = False
        """True once a model was executed in shards."""

    def install(self) -> None:
        """Changes ``DistributedDataParallel`` and ``DistributedSampler``."""
        torch: Any = sys.modules["torch"]
        model_class = torch.nn.parallel.DistributedDataParallel
        create, forward, register = model_class.__init__, model_class._run_ddp_forward, model_class.register_comm_hook
        self._pass_to_shards = _make_pass_to_shards(self)

        def init(model: Any, *args: Any, **kwargs: Any) -> None:
            create(model, *args, **kwargs)
            # The gradients are averages over all processes already.
            register(model, None, lambda state, bucket: _kept(bucket))

        def run(model: Any, *args: Any, **kwargs: Any) -> Any:
            if not model.training:
                return forward(model, *args, **kwargs)
            with model._inside_ddp_forward():
                return self._forward(model, args, kwargs)

        def ignore(model: Any, state: object, hook: Any) -> None:
            tell("--shards sums gradients itself; the communication hook of the script has no effect")

        model_class.__init__, model_class._run_ddp_forward, model_class.register_comm_hook = init, run, ignore
        self._install_recomputation()
        sampler_class = torch.utils.data.distributed.DistributedSampler
        create_sampler = sampler_class.__init__

        def init_sampler(sampler: Any, *args: Any, **kwargs: Any) -> None:
            create_sampler(sampler, *args, **kwargs)
            if sampler.num_replicas == self.world:
                # Padded or cut as for one process per shard.
                length = len(sampler.dataset)
                per_shard = length // self.count if sampler.drop_last else -(-length // self.count)
                sampler.total_size = per_shard * self.count
                sampler.num_samples = sampler.total_size // self.world

        sampler_class.__init__ = init_sampler

    def _install_recomputation(self) -> None:
        """Lets activation checkpointing draw the numbers of the same shard again in the backward pass."""
        module: Any = importlib.import_module("torch.utils.checkpoint")
        original = module.checkpoint

        @functools.wraps(original)
        def checkpoint(function: Any, *args: Any, use_reentrant: bool | None = None, **kwargs: Any) -> Any:
            if use_reentrant is not False:
                raise ShardError("--shards needs torch.utils.checkpoint.checkpoint(..., use_reentrant=False)")
            shard = self.loaders.samples

            def repeatable(*values: Any, **named: Any) -> Any:
                before, self.loaders.samples = self.loaders.samples, shard
                try:
                    return function(*values, **named)
                finally:
                    self.loaders.samples = before

            return original(repeatable, *args, use_reentrant=False, **kwargs)

        module.checkpoint = checkpoint

    def _forward(self, model: Any, args: Any, kwargs: Any) -> Any:
        torch: Any = sys.modules["torch"]
        tree: Any = torch.utils._pytree
        self.is_used = True
        samples = self.loaders.samples
        inputs, structure = tree.tree_flatten((args, kwargs))
        size = self._batch_size(inputs, samples)
        names, parameters = [], []
        for name, parameter in model.module.named_parameters():
            if parameter.requires_grad:
                names.append(name)
                parameters.append(parameter)
        copies = self._pass_to_shards.apply(model.process_group, *parameters)
        states = generator_states()
        # As with one process per shard, buffers such as running statistics are updated by the first shard.
        before = [(name, buffer.clone()) for name, buffer in model.module.named_buffers()] if self.local > 1 else []
        outputs = []
        for number in range(self.local):
            if number > 0:
                set_generator_states(states)
            if samples is not None:
                self.loaders.samples = samples[number :: self.local]
            part = [self._part(value, size, number) for value in inputs]
            own_args, own_kwargs = tree.tree_unflatten(part, structure)
            values = dict(zip(names, copies[number :: self.local]))
            if number > 0:
                values.update((name, buffer.clone()) for name, buffer in before)
            outputs.append(torch.func.functional_call(model.module, values, own_args, own_kwargs))
        self.loaders.samples = samples
        return self._joined(outputs, size // self.local)

    def _batch_size(self, inputs: list[Any], samples: range | None) -> int:
        tensors = [value for value in inputs if hasattr(value, "unbind") and value.dim() > 0]
        if not tensors:
            raise ShardError("--shards needs a model with a tensor as its input")
        size: int = tensors[0].shape[0] if samples is None else len(samples)
        if size % self.local:
            raise ShardError(
                f"a batch of {size * self.world} samples ({size} per process) cannot be divided into "
                f"{self.count} shards; choose a multiple of {self.count}, or drop the last batch"
            )
        if all(size not in tensor.shape[:2] for tensor in tensors):
            shapes = ", ".join(str(tuple(tensor.shape)) for tensor in tensors)
            raise ShardError(f"no input of the model has a dimension of {size} samples: {shapes}")
        return size

    def _part(self, value: Any, size: int, number: int) -> Any:
        dimension = _dimension(value, size)
        if dimension is None:
            return value
        return value[(slice(None),) * dimension + (slice(number, None, self.local),)].contiguous()

    def _joined(self, outputs: list[Any], size: int) -> Any:
        torch: Any = sys.modules["torch"]
        flat = [torch.utils._pytree.tree_flatten(output) for output in outputs]
        joined = []
        for values in zip(*(leaves for leaves, _ in flat)):
            dimension = _dimension(values[0], size)
            if dimension is not None:
                value = torch.stack(values, dim=dimension + 1).flatten(dimension, dimension + 1)
            elif hasattr(values[0], "unbind") and values[0].dim() == 0 and values[0].is_floating_point():
                # A loss that the model computes itself.
                value = tree_sum(list(values)) / self.local
            elif hasattr(values[0], "unbind"):
                shape = tuple(values[0].shape)
                raise ShardError(f"an output of the model has no dimension of samples: its shape is {shape}")
            else:
                value = values[0]
            joined.append(value)
        return torch.utils._pytree.tree_unflatten(joined, flat[0][1])

    def reduce(self, group: Any, gradients: list[list[Any]], likes: list[Any]) -> list[Any]:
        """Adds the gradients of the shards of each process, and averages the sums over the processes.

        ``gradients`` has those of each parameter, by shard of this process.
        """
        torch: Any = sys.modules["torch"]
        local = [tree_sum([_zeros(g, like) for g in shards]) for shards, like in zip(gradients, likes)]
        is_used = torch.tensor([any(g is not None for g in shards) for shards in gradients], dtype=torch.uint8)
        if self.world > 1:
            torch.distributed.all_reduce(is_used, torch.distributed.ReduceOp.MAX, group=group)
            for dtype in sorted({g.dtype for g in local}, key=str):
                places = [at for at, g in enumerate(local) if g.dtype == dtype]
                flat = torch.cat([local[at].reshape(-1) for at in places])
                parts = [torch.empty_like(flat) for _ in range(self.world)]
                torch.distributed.all_gather(parts, flat, group=group)
                total = tree_sum(parts) / self.world
                for at, piece in zip(places, total.split([local[at].numel() for at in places])):
                    local[at] = piece.view_as(local[at])
        return [g if used else None for g, used in zip(local, is_used.tolist())]


def _make_pass_to_shards(shards: Shards) -> Any:
    torch: Any = sys.modules["torch"]

    class PassToShards(torch.autograd.Function):
        """Passes the parameters to each shard without copying them, and combines the gradients of the shards."""

        @staticmethod
        def forward(ctx: Any, group: Any, *parameters: Any) -> Any:
            ctx.group, ctx.likes = group, parameters
            ctx.set_materialize_grads(False)
            return tuple(p.detach() for p in parameters for _ in range(shards.local))

        @staticmethod
        def backward(ctx: Any, *gradients: Any) -> Any:
            by_parameter = [list(gradients[at : at + shards.local]) for at in range(0, len(gradients), shards.local)]
            return (None, *shards.reduce(ctx.group, by_parameter, ctx.likes))

    return PassToShards


def _kept(bucket: Any) -> Any:
    future: Any = sys.modules["torch"].futures.Future()
    future.set_result(bucket.buffer())
    return future


def _zeros(gradient: Any, like: Any) -> Any:
    return sys.modules["torch"].zeros_like(like) if gradient is None else gradient


def _dimension(value: Any, size: int) -> int | None:
    """Dimension of the samples of a tensor: the first, or the second as in the state of a recurrent layer."""
    if not hasattr(value, "unbind"):
        return None
    return next((at for at, length in enumerate(value.shape[:2]) if length == size), None)
