"""Programs with several processes: ``DistributedDataParallel`` under ``torchrun``.

Every process executes the script. Draws are keyed by the number of the sample in the global batch (``draws``), and with
shards the gradients are independent of the number of processes (``shards``). Each process computes digests; process 0
collects them, compares those of the parameters and writes the record.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
from collections.abc import Callable
from typing import Any

from surefoot import _core
from surefoot.run.draws import SampleDraws
from surefoot.run.keys import Keys
from surefoot.run.loaders import Loaders
from surefoot.run.record import Collected, Part, memory_of, tell
from surefoot.run.shards import Shards


def processes() -> tuple[int, int] | None:
    """Number of this process and number of all, as ``torchrun`` sets them; ``None`` for a program of one process."""
    rank, count = os.environ.get("RANK", ""), os.environ.get("WORLD_SIZE", "")
    return (int(rank), int(count)) if rank.isdecimal() and count.isdecimal() else None


def become_only_process() -> None:
    """Sets the variables of ``torchrun --nproc-per-node 1``, for a script that needs a process group."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"RANK": 0, "LOCAL_RANK": 0, "WORLD_SIZE": 1, "LOCAL_WORLD_SIZE": 1, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in settings.items()}, MASTER_ADDR="127.0.0.1")


class Parallel:
    """State of this process in a data-parallel program."""

    def __init__(self, rank: int, world: int, shards: int | None, keys: Keys, loaders: Loaders) -> None:
        self.rank, self.world, self.keys, self.loaders = rank, world, keys, loaders
        self.shards = None if shards is None else Shards(shards, rank, world, loaders)
        self.on_difference: Callable[[list[int]], None] = lambda ranks: None
        """Called once with the processes whose parameters differ from those of process 0."""
        self._draws = SampleDraws(loaders)
        self._group: Any = None
        self._is_first = True
        loaders.world = world

    def install(self) -> None:
        """Changes ``torch.distributed``; called once PyTorch has been imported."""
        torch: Any = sys.modules["torch"]
        self._draws.install()
        distributed = torch.distributed
        start = distributed.init_process_group

        def init_process_group(*args: Any, **kwargs: Any) -> None:
            start(*args, **kwargs)
            # A group of its own: the program's may be in use when a step ends.
            self._group = distributed.new_group(backend="gloo")

        distributed.init_process_group = distributed.distributed_c10d.init_process_group = init_process_group
        if self.shards is not None:
            self.shards.install()
        model_class = torch.nn.parallel.DistributedDataParallel
        create = model_class.__init__

        def init(model: Any, *args: Any, **kwargs: Any) -> None:
            create(model, *args, **kwargs)
            self._check_layers(model.module)

        model_class.__init__ = init
        sampler_class = torch.utils.data.distributed.DistributedSampler
        create_sampler = sampler_class.__init__

        def init_sampler(sampler: Any, *args: Any, **kwargs: Any) -> None:
            create_sampler(sampler, *args, **kwargs)
            self.keys.salt = 0

        sampler_class.__init__ = init_sampler
        if self.world > 1:
            # Until there is a `DistributedSampler`, each process draws its own numbers in loops.
            self.keys.salt = self.rank + 1

    def _check_layers(self, module: Any) -> None:
        """Names the first layer whose results depend on the number of processes."""
        layers: Any = sys.modules["torch"].nn
        kinds: Any = layers.modules.batchnorm._BatchNorm
        for name, layer in module.named_modules():
            is_synchronized = isinstance(layer, layers.SyncBatchNorm)
            if not isinstance(layer, kinds) or is_synchronized == (self.shards is None):
                continue
            label = f"`{name}` ({type(layer).__name__})"
            if is_synchronized:
                tell(
                    f"{label} uses statistics of all processes at once: the results depend on the number of processes "
                    "in spite of --shards"
                )
            else:
                tell(
                    f"{label} uses statistics of the local batch: the results depend on the number of processes. "
                    "With --shards N, they are statistics of a shard, and the results do not"
                )
            return

    def _check(self) -> None:
        """After the first step, names what makes the results depend on the number of processes."""
        self._is_first = False
        if self._group is None and self.world > 1:
            tell(
                "the script has not called init_process_group; the processes are independent, and only the first is "
                "recorded"
            )
        elif self._group is not None and self.loaders.samples is None:
            tell(
                "the batches do not come from a DataLoader with a DistributedSampler: each process draws its own "
                "numbers, and the results depend on the number of processes"
            )
        if self.shards is not None and not self.shards.is_used:
            tell("--shards has no effect: no model is wrapped in DistributedDataParallel")

    def collect(self, batch: list[Any], loss: float | None, parameters: Part, alive: list[Any]) -> Collected | None:
        """Returns the batch of all processes, as digests of its samples in order, and the mean of their losses."""
        if self._is_first:
            self._check()
        if self._group is None:
            return None
        torch: Any = sys.modules["torch"]
        samples = self.loaders.samples
        count = 0 if samples is None else len(samples)
        by_sample: list[Any] = []
        whole: list[Any] = []
        for tensor in batch:
            is_divided = count > 0 and tensor.dim() > 0 and tensor.shape[0] == count
            tensor = tensor.detach().cpu().contiguous()
            alive.append(tensor)
            (by_sample if is_divided else whole).append(tensor)
        size = [tensor.nbytes // count for tensor in by_sample for _ in range(count)]
        addresses = [t.data_ptr() + at * (t.nbytes // count) for t in by_sample for at in range(count)]
        others = memory_of(whole, alive)
        numbers = [_number(_core.digests(*parameters)), _number(_core.digests(*others))]
        numbers += [_number([digest]) for digest in _core.digests(addresses, size)]
        value = float("nan") if loss is None else loss
        mine = torch.cat([torch.tensor([value], dtype=torch.float64).view(torch.int64), torch.tensor(numbers)])
        found = [torch.empty_like(mine) for _ in range(self.world)]
        torch.distributed.all_gather(found, mine, group=self._group)
        everything = torch.stack(found)
        different = (everything[:, 1] != everything[0, 1]).nonzero().flatten().tolist()
        if different:
            self.on_difference(different)
            self.on_difference = lambda ranks: None
        # Sample i of process r is number i * world + r of the batch.
        ordered = everything[:, 3:].reshape(self.world, -1, max(count, 1)).permute(1, 2, 0).reshape(-1)
        digests = torch.cat([everything[:1, 2] if count else everything[:, 2], ordered])
        alive.append(digests)
        mean = float(everything[:, 0].contiguous().view(torch.float64).mean())
        return memory_of([digests], alive), None if loss is None else mean


def _number(digests: list[str]) -> int:
    digest = hashlib.blake2b("".join(digests).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big", signed=True)
