"""Statistics in fused kernels, run by Triton's interpreter on the CPU."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")
pytest.importorskip("triton", reason="Triton is not installed")

COMPARED = """
import torch
from surefoot.torch import device, fused

torch.manual_seed(0)
shapes = [(12, 30), (3, 7), (16, 8, 3, 3), (20000,), (1,)]
rows = [True, True, False, False, False]
for dtype in (torch.float32, torch.bfloat16, torch.float16):
    for limits in (None, (-0.5, 0.875)):
        tensors = [torch.randn(shape).to(dtype) for shape in shapes]
        tensors[0][3] = 0
        tensors[0][4, 1] = float("nan")
        tensors[2][1, 1, 1, 1] = float("inf")
        tensors[2][1, 1, 1, 2] = float("-inf")
        tensors[3][::3] = 0
        assert fused.works_on(tensors[0].device) and fused.can_measure(tensors)
        found = fused.statistics(tensors, rows, limits)
        for tensor, by_row, row in zip(tensors, rows, found):
            expected = device.statistics(tensor, by_row, None if by_row else limits)
            if not by_row and limits is None:
                expected[9] = row[9] = 0  # without a meaning
            torch.testing.assert_close(row, expected, rtol=1e-4, atol=1e-2)
    again = [it.clone() * 2 for it in tensors]
    assert float(fused.statistics(again, rows, limits)[0, 8]) == 2 * float(found[0, 8])
assert not fused.can_measure([torch.zeros(2, 3).T, torch.zeros(2, 3)])
assert not fused.can_measure([torch.zeros(2), torch.zeros(2, dtype=torch.float64)])
"""

DELIVERED = """
import torch
from torch import nn
from surefoot.torch import device, fused

class Core:
    def __init__(self):
        self.seen = []
    def measured(self, quantity, layer, statistics, share):
        self.seen.append((quantity, layer, [round(it, 3) for it in statistics], share and round(share, 4)))

class Session:
    def __init__(self):
        self.core = Core()
    def step(self, loss, **numbers):
        pass

def deliver(is_fused):
    torch.manual_seed(0)
    fused.works_on = lambda device: is_fused
    parameters = {i: [nn.Parameter(torch.randn(6, 5)), nn.Parameter(torch.randn(6))] for i in range(3)}
    session, queue = Session(), device.Queue()
    queue.sample({i: [it.detach() for it in layer] for i, layer in parameters.items()})
    with torch.no_grad():
        for layer in parameters.values():
            for it in layer:
                it.mul_(1.01)
    queue.measure("weight", {i: [it.detach() for it in layer] for i, layer in parameters.items()}, {}, 1.0)
    queue.measure("gradient", {i: [it.detach() for it in layer] for i, layer in parameters.items()}, {0: True}, 1.0)
    queue.measure("output", {1: [torch.tanh(5 * torch.randn(8, 4))]}, {}, 1.0, (-0.98, 0.98))
    queue.put([1.0], None, None, None)
    queue.deliver(session, wait=True)
    return session.core.seen

plain, by_kernels = deliver(False), deliver(True)
assert plain == by_kernels, (plain, by_kernels)
updates = [share for quantity, _, _, share in plain if quantity == "weight"]
assert updates == [0.0099] * 3, updates
"""


@pytest.mark.parametrize("script", [COMPARED, DELIVERED], ids=["statistics", "delivery"])
def test_fused_kernels_measure_what_plain_operations_do(script: str) -> None:
    package = str(Path(__file__).parents[2])
    environment = {**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": package}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
