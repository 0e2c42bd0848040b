"""The first place that is not finite."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models import CNN, images, module_mlp, numbers
from surefoot.torch.first_nonfinite import first_nonfinite


class Faulty(nn.Module):
    """Computes a function between two layers."""

    def __init__(self, function: nn.Module) -> None:
        super().__init__()
        self.before = nn.Linear(4, 4)
        self.function = function
        self.after = nn.Linear(4, 1)

    def forward(self, x: Tensor) -> Tensor:
        return self.after(self.function(self.before(x)))


class Log(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return torch.log(x)


class RootOfZero(nn.Module):
    """Finite forward, infinite backward."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sqrt(x * 0)


def test_the_innermost_module_of_the_forward_pass_is_named() -> None:
    found = first_nonfinite(nn.Sequential(Faulty(Log())), numbers())
    assert found is not None and (found.layer, found.phase) == ("0.function", "forward")
    assert found.nan > 0


def test_a_gradient_is_named_at_the_layer_where_it_appears() -> None:
    model = Faulty(RootOfZero())
    assert first_nonfinite(model, numbers()) is None
    found = first_nonfinite(model, numbers(), lambda y: y.square().mean())
    assert found is not None and (found.layer, found.phase) == ("before", "backward")
    assert "backward pass" in str(found)


def test_input_weight_and_loss_are_told_apart() -> None:
    model = module_mlp()
    bad = numbers()
    bad[3, 1] = float("nan")
    assert str(first_nonfinite(model, bad)) == "The input batch has 1 NaN value."
    loss = first_nonfinite(model, numbers(), lambda y: torch.log(y - 1e9).mean())
    assert loss is not None and loss.phase == "loss"
    with torch.no_grad():
        model[4].weight[0, 0] = float("inf")
    weight = first_nonfinite(model, numbers())
    assert weight is not None and weight.layer == "4.weight"


def test_a_finite_batch_has_none() -> None:
    assert first_nonfinite(CNN(), images(), lambda y: y.mean()) is None


def test_neither_the_model_nor_the_generators_change() -> None:
    model = CNN()
    model(images()).sum().backward()
    gradients = [parameter.grad.clone() for parameter in model.parameters()]
    state = {key: value.clone() for key, value in model.state_dict().items()}
    generator = torch.get_rng_state()
    first_nonfinite(model, images(), lambda y: y.mean())
    assert torch.equal(torch.get_rng_state(), generator)
    for key, value in model.state_dict().items():
        assert torch.equal(value, state[key])
    for parameter, gradient in zip(model.parameters(), gradients):
        assert torch.equal(parameter.grad, gradient)
    assert not any(module._forward_hooks for module in model.modules())
    assert not any(parameter._backward_hooks for parameter in model.parameters())
