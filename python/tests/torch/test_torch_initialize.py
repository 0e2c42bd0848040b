"""Initial weights that fit the activations."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from models import numbers
from surefoot.torch import Discovery, layers_of
from surefoot.torch.initialize import initialize


class Bare(nn.Module):
    """The same width as a matrix from the left and from the right."""

    def __init__(self) -> None:
        super().__init__()
        self.right = nn.Parameter(torch.zeros(4, 400))
        self.left = nn.Parameter(torch.zeros(300, 400))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(torch.relu(x @ self.right), self.left)


def test_the_number_of_inputs_is_that_of_the_way_a_matrix_is_used() -> None:
    model = Bare()
    discovery = Discovery(model)
    model(numbers())
    discovery.close()
    for layer in discovery.layers:
        assert initialize(layer, "relu", seed=0)
    assert float(model.right.detach().std()) == pytest.approx((2 / 4) ** 0.5, rel=0.1)
    assert float(model.left.detach().std()) == pytest.approx((2 / 400) ** 0.5, rel=0.1)


@pytest.mark.parametrize(
    ("activation", "deviation"),
    [("relu", (2 / 200) ** 0.5), ("selu", (1 / 200) ** 0.5), ("tanh", (2 / (200 + 300)) ** 0.5)],
)
def test_the_spread_of_weights_fits_the_activation(activation: str, deviation: float) -> None:
    model = nn.Linear(200, 300)
    (layer,) = layers_of(model)
    initialize(layer, activation, seed=0)
    assert float(model.weight.detach().std()) == pytest.approx(deviation, rel=0.05)
    assert not model.bias.detach().any()


def test_recurrent_weights_are_orthogonal_and_the_forget_gate_is_open() -> None:
    model = nn.LSTM(3, 5)
    (layer,) = layers_of(model)
    initialize(layer, None, seed=0)
    for block in model.weight_hh_l0.detach().split(5):
        torch.testing.assert_close(block @ block.T, torch.eye(5), atol=1e-5, rtol=0)
    bias = (model.bias_ih_l0 + model.bias_hh_l0).detach()
    assert bias.tolist() == [0.0] * 5 + [1.0] * 5 + [0.0] * 10


def test_a_draw_does_not_depend_on_other_layers() -> None:
    one = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
    other = nn.Sequential(nn.Linear(4, 7), nn.Linear(4, 4))
    for model in (one, other):
        for layer in layers_of(model):
            initialize(layer, "relu", seed=3)
    assert torch.equal(one[1].weight, other[1].weight)
    assert not torch.equal(one[0].weight, one[1].weight)
