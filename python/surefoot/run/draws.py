"""Draws that belong to samples: keyed by the number of the sample in the global batch.

A process of a data-parallel program sees a part of each batch. Where it draws a tensor with one entry per sample, such
as the mask of a dropout, the numbers of each sample follow from the step and from the position of the sample in the
batch of all processes. All other draws are the same in every process. So the numbers do not depend on the
number of processes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from surefoot import _core
from surefoot.run.keys import DRAW
from surefoot.run.loaders import Loaders
from surefoot.run.record import tell

# All draws of PyTorch on the CPU end in one of these operators. Some fill a tensor, some make a new one.
FILLING = (
    "bernoulli_.float", "bernoulli_.Tensor", "uniform_", "normal_", "exponential_", "random_", "random_.from",
    "random_.to", "log_normal_", "cauchy_", "geometric_",
)  # fmt: skip
MAKING = (
    "normal.Tensor_float", "normal.float_Tensor", "normal.Tensor_Tensor", "multinomial", "poisson", "binomial",
    "_standard_gamma", "_sample_dirichlet",
)  # fmt: skip


class SampleDraws:
    """Replaces the random operators of PyTorch on the CPU."""

    def __init__(self, loaders: Loaders) -> None:
        self.loaders = loaders
        self._library: Any = None
        self._has_warned = False

    def install(self) -> None:
        """Replaces the operators; called once PyTorch has been imported."""
        torch: Any = sys.modules["torch"]
        if not hasattr(torch.library, "get_kernel"):
            tell(
                f"PyTorch {torch.__version__} cannot draw by sample, which needs version 2.9 or newer; "
                "the results depend on the number of processes"
            )
            return
        self._generator = torch.Generator()
        self._library = torch.library.Library("aten", "IMPL", "CPU")
        for name in (*FILLING, *MAKING):
            kernel = torch.library.get_kernel(f"aten::{name}", "CPU")
            replacement = (self._filling if name in FILLING else self._making)(name, kernel)
            self._library.impl(name, replacement, "CPU", with_keyset=True, allow_override=True)
        kernel = torch.library.get_kernel("aten::randperm", "CPU")
        self._library.impl("randperm", self._permutation(kernel), "CPU", with_keyset=True, allow_override=True)

    def _filling(self, name: str, kernel: Any) -> Callable[..., Any]:
        # A mask may have the samples second, or several rows per sample: one per head of an attention or per token.
        is_mask = name.startswith("bernoulli_")

        def fill(keys: Any, tensor: Any, *args: Any, generator: Any = None) -> Any:
            parts = None if generator is not None else self._parts(tensor, is_mask)
            if parts is None:
                kernel.call_boxed(keys, tensor, *args, generator=generator)
                return tensor
            self._draw_base()
            others = [self._parts(a.expand_as(tensor), is_mask) if hasattr(a, "expand_as") else None for a in args]
            for number, part in enumerate(parts):
                own = [arg if split is None else split[number] for arg, split in zip(args, others)]
                kernel.call_boxed(keys, part, *own, generator=self._seeded(number))
            return tensor

        return fill

    def _making(self, name: str, kernel: Any) -> Callable[..., Any]:
        def make(keys: Any, *args: Any, generator: Any = None) -> Any:
            tensors = [arg for arg in args if hasattr(arg, "unbind")]
            samples = self.loaders.samples
            if samples is None or generator is not None or any(len(samples) != t.shape[:1].numel() for t in tensors):
                return kernel.call_boxed(keys, *args, generator=generator)
            self._draw_base()
            rows = []
            for number in range(len(samples)):
                own = [arg[number] if hasattr(arg, "unbind") else arg for arg in args]
                rows.append(kernel.call_boxed(keys, *own, generator=self._seeded(number)))
            return sys.modules["torch"].stack(rows)

        return make

    def _permutation(self, kernel: Any) -> Callable[..., Any]:
        def permute(keys: Any, n: int, **kwargs: Any) -> Any:
            samples = self.loaders.samples
            if samples is not None and n == len(samples) > 1 and not self._has_warned:
                self._has_warned = True
                tell(
                    "permutations of the samples of one process (torch.randperm) depend on the number of processes, "
                    "and so do the results"
                )
            return kernel.call_boxed(keys, n, **kwargs)

        return permute

    def _parts(self, tensor: Any, is_mask: bool) -> Any:
        """Views of the entries of each sample; ``None`` if the tensor has no entry per sample."""
        samples = self.loaders.samples
        if samples is None or tensor.dim() == 0 or tensor.numel() == 1:
            return None
        count = len(samples)
        if tensor.shape[0] == count:
            return tensor.unbind(0)
        if is_mask and tensor.dim() > 1:
            if tensor.shape[1] == count:
                return tensor.unbind(1)
            if tensor.shape[0] % count == 0:
                return tensor.split(tensor.shape[0] // count)
        return None

    def _draw_base(self) -> None:
        """Draws the key of one operator from the global generator, whose state is the same in all processes."""
        torch: Any = sys.modules["torch"]
        self._base = int(torch.empty((), dtype=torch.int64).random_(generator=torch.default_generator))

    def _seeded(self, number: int) -> Any:
        assert self.loaders.samples is not None
        self._generator.manual_seed(_core.key(self._base, DRAW, self.loaders.samples[number], 0) >> 1)
        return self._generator
