"""Actions of the repair on PyTorch models."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from models import CNN, FunctionalMLP, Recurrent, Transformer, images, module_mlp, numbers, symbols
from surefoot.torch import CannotApply, Discovery, Subject, trace
from surefoot.torch.parts import StandardizeInputs

CLASSES = torch.arange(64) % 3


class DeepMLP(nn.Module):
    """Six hidden layers of one width in a loop, with functional activations."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(4, 8)
        self.hidden = nn.ModuleList(nn.Linear(8, 8) for _ in range(5))
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.first(x))
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.out(x)


def language_loss(output: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(output.flatten(0, 1), target.flatten())


MODELS: dict[str, tuple[Callable[[], nn.Module], Tensor, Tensor, Any]] = {
    "mlp": (module_mlp, numbers(64), CLASSES, nn.CrossEntropyLoss()),
    "functional": (FunctionalMLP, numbers(64), CLASSES, nn.CrossEntropyLoss()),
    "cnn": (CNN, images(64), CLASSES, nn.CrossEntropyLoss()),
    "lstm": (Recurrent, symbols(64), CLASSES, nn.CrossEntropyLoss()),
    "transformer": (Transformer, symbols(64), symbols(64), language_loss),
    "deep": (lambda: module_mlp(hidden=6), numbers(64), CLASSES, nn.CrossEntropyLoss()),
    "deep_functional": (DeepMLP, numbers(64), CLASSES, nn.CrossEntropyLoss()),
}


def subject_of(name: str, seed: int = 0, **options: Any) -> Subject:
    factory, inputs, targets, loss = MODELS[name]
    torch.manual_seed(seed)
    model = factory()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=0.01)
    return Subject(model, optimizer, loss, inputs, targets, factory=factory, **options)


def train(subject: Subject, steps: int = 3) -> float:
    subject.model.train()
    for _ in range(steps):
        subject.optimizer.zero_grad()
        loss = subject.loss_fn(subject.model(subject.inputs[:16]), subject.targets[:16])
        loss.backward()
        subject.optimizer.step()
    return float(loss.detach())


def activations(subject: Subject) -> list[str]:
    return [call.activation for call in subject.observe().activations]


SELU = {"action": "swap_activation", "activation": "selu"}
NORM = {"action": "add_batch_norm"}
RESIDUAL = {"action": "add_residual"}
OUTPUT = {"action": "set_output_activation", "activation": "sigmoid"}
REINITIALIZE = {"action": "reinitialize"}
CLIP = {"action": "clip_gradient", "norm": 0.5}
ADAM = {"action": "swap_optimizer", "optimizer": "adam", "learning_rate": 0.003}
DATA = {"action": "normalize_data", "clip_outliers": True}
LOSS = {"action": "swap_loss", "loss": "categorical_crossentropy", "from_logits": True}

SENTENCES: dict[tuple[str, str], str] = {
    ("swap_activation", "mlp"): "Replaces 3 hidden activations with SELU and re-initializes their weights (LeCun normal).",
    ("swap_activation", "functional"): "Replaces 3 hidden activations with SELU and re-initializes their weights (LeCun normal).",
    ("swap_activation", "cnn"): "Replaces 2 hidden activations with SELU and re-initializes their weights (LeCun normal).",
    ("swap_activation", "lstm"): "Replaces 1 hidden activation with SELU and re-initializes its weights (LeCun normal).",
    ("swap_activation", "transformer"): "Replaces 2 hidden activations with SELU and re-initializes their weights (LeCun normal).",
    ("add_batch_norm", "mlp"): "Adds batch normalization before 3 hidden activations.",
    ("add_batch_norm", "functional"): "Adds batch normalization before 3 hidden activations.",
    ("add_batch_norm", "cnn"): "Adds batch normalization before 1 hidden activation.",
    ("add_batch_norm", "lstm"): "Adds batch normalization before 1 hidden activation.",
    ("add_batch_norm", "transformer"): "Adds batch normalization before 2 hidden activations.",
    ("add_residual", "deep"): "Adds a residual connection around each of 5 hidden layers.",
    ("add_residual", "deep_functional"): "Adds a residual connection around each of 5 hidden layers.",
    ("add_residual", "mlp"): "the model has too few layers of the same width in a row",
    ("add_residual", "transformer"): "the model has residual connections already",
    ("normalize_data", "mlp"): "Clips outliers and standardizes every input feature.",
    ("normalize_data", "lstm"): "the inputs are not numbers",
    ("normalize_data", "transformer"): "the inputs are not numbers",
    ("swap_loss", "transformer"): "the loss does not fit the targets",
}
ACTIONS = [SELU, NORM, RESIDUAL, OUTPUT, REINITIALIZE, CLIP, ADAM, DATA, LOSS]


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action["action"])
def test_an_action_applies_and_the_repaired_model_trains_and_loads(
    action: dict[str, Any], name: str
) -> None:
    subject = subject_of(name)
    expected = SENTENCES.get((action["action"], name))
    given = set(subject.model.state_dict())
    try:
        sentence = subject.apply(action)
    except CannotApply as error:
        sentence = str(error)
        assert expected is not None or action is RESIDUAL, sentence
    assert expected is None or sentence.startswith(expected)
    # No parameter of the user is renamed.
    assert given <= set(subject.model.state_dict())
    assert torch.isfinite(torch.tensor(train(subject)))
    check_persistence(subject, name, action)


def check_persistence(subject: Subject, name: str, *actions: dict[str, Any]) -> None:
    """The weights load into a freshly repaired model; copies and pickles compute the same."""
    subject.model.eval()
    expected = subject.model(subject.inputs[:16])
    fresh = subject_of(name, seed=9)
    for action in actions:
        try:
            fresh.apply(action)
        except CannotApply:
            pass
    fresh.model.load_state_dict(subject.model.state_dict())
    fresh.model.eval()
    torch.testing.assert_close(fresh.model(subject.inputs[:16]), expected)
    file = io.BytesIO()
    torch.save(subject.model, file)
    file.seek(0)
    loaded = torch.load(file, weights_only=False)
    for twin in (copy.deepcopy(subject.model), loaded, pickle.loads(pickle.dumps(subject.model))):
        torch.testing.assert_close(twin(subject.inputs[:16]), expected)
        assert set(twin.state_dict()) == set(subject.model.state_dict())


@pytest.mark.parametrize("name", MODELS)
def test_a_whole_recipe_applies_in_order(name: str) -> None:
    leaky = {"action": "swap_activation", "activation": "leaky_relu"}
    recipe = [ADAM, leaky, REINITIALIZE, NORM, CLIP]
    subject = subject_of(name)
    for action in recipe:
        subject.apply(action)
    assert set(activations(subject)) <= {"leaky_relu", "softmax"}
    train(subject)
    check_persistence(subject, name, *recipe)


@pytest.mark.parametrize("name", ["mlp", "functional", "cnn", "lstm", "transformer"])
def test_activations_can_be_swapped_twice(name: str) -> None:
    subject = subject_of(name)
    subject.apply(SELU)
    subject.apply({"action": "swap_activation", "activation": "elu"})
    assert set(activations(subject)) - {"softmax"} == {"elu"}


def test_swapped_functional_activations_compute_the_new_function() -> None:
    subject = subject_of("functional")
    subject.apply(SELU)
    model: Any = subject.model
    x = numbers()
    expected = model.out(F.selu(model.c(F.selu(model.b(F.selu(model.a(x)))))))
    torch.testing.assert_close(model(x), expected)
    assert isinstance(model, FunctionalMLP)
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(x), expected)


def test_lines_without_columns_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python 3.10 knows no columns."""
    monkeypatch.setattr(trace, "position_of", lambda frame: (frame.f_lineno, None, None, None))
    subject = subject_of("functional")
    subject.apply(SELU)
    model: Any = subject.model
    x = numbers()
    expected = model.out(F.selu(model.c(F.selu(model.b(F.selu(model.a(x)))))))
    torch.testing.assert_close(model(x), expected)
    assert hasattr(type(model), "_surefoot_edits")


def helper(x: Tensor) -> Tensor:
    return F.relu(x)


class Indirect(nn.Module):
    """Calls its activation through a function elsewhere, which cannot be rewritten."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(helper(self.a(x)))


def test_activations_in_other_functions_are_replaced_while_the_model_runs() -> None:
    MODELS["indirect"] = (Indirect, numbers(64), CLASSES, nn.CrossEntropyLoss())
    try:
        subject = subject_of("indirect")
        subject.apply(SELU)
        model: Any = subject.model
        x = numbers()
        torch.testing.assert_close(model(x), model.out(F.selu(model.a(x))))
        check_persistence(subject, "indirect", SELU)
        compiled = torch.compile(model, backend="eager")
        torch.testing.assert_close(compiled(x), model(x))
        subject.apply({"action": "swap_activation", "activation": "elu"})
        torch.testing.assert_close(model(x), model.out(F.elu(model.a(x))))
    finally:
        del MODELS["indirect"]


class Closure(nn.Module):
    """Uses `super()`, defaults and keyword arguments in its forward pass."""

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Tensor, scale: float = 2.0, *, shift: float = 1.0) -> Tensor:
        assert not super().__repr__() == ""
        x = F.relu(input=self.a(x), inplace=True); y = F.relu(self.a(x[:, :4]), True)
        return self.out(x + y) * scale + shift


def test_rewritten_code_keeps_super_defaults_and_keywords() -> None:
    model = Closure()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    subject.apply({"action": "swap_activation", "activation": "elu"})
    x = numbers()
    inner = F.elu(model.a(x))
    expected = model.out(inner + F.elu(model.a(inner[:, :4]))) * 3 + 1
    torch.testing.assert_close(subject.model(x, scale=3.0), expected)


class Private(nn.Module):
    """Private names, which mean something else outside of the class."""

    def __init__(self) -> None:
        super().__init__()
        self.__a, self.__out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.__out(F.relu(self.__a(x)))


def test_code_with_private_names_is_not_rewritten() -> None:
    model = Private()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    subject.apply(SELU)
    assert activations(subject) == ["selu"]


def test_an_activation_held_in_an_attribute_is_replaced() -> None:
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)
    model = nn.Sequential(block, nn.Flatten(), nn.Linear(40, 3))
    inputs = torch.randn(64, 5, 8)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), inputs, CLASSES)
    subject.apply(SELU)
    assert block.activation is F.selu
    expected = model(inputs)
    with torch.no_grad():  # The fused inference code must not compute the old activation.
        torch.testing.assert_close(model.eval()(inputs), expected)


def test_gates_and_attention_keep_their_activations() -> None:
    class Gated(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.value, self.gate, self.out = nn.Linear(4, 8), nn.Linear(4, 8), nn.Linear(8, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(torch.relu(self.value(x)) * torch.sigmoid(self.gate(x)))

    model = Gated()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    subject.apply(SELU)
    assert sorted(activations(subject)) == ["selu", "sigmoid"]


def test_a_module_that_also_serves_the_output_is_not_replaced() -> None:
    act = nn.Sigmoid()
    model = nn.Sequential(nn.Linear(4, 4), act, nn.Linear(4, 1), act)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.BCELoss(), numbers(64), torch.ones(64, 1))
    with pytest.raises(CannotApply, match="used for other layers"):
        subject.apply(SELU)


def test_frozen_layers_keep_their_weights() -> None:
    subject = subject_of("mlp")
    model: Any = subject.model
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    frozen, trained = model[0].weight.clone(), model[2].weight.clone()
    subject.apply(REINITIALIZE)
    assert torch.equal(model[0].weight, frozen)
    assert not torch.equal(model[2].weight, trained)


def test_new_weights_depend_on_the_seed_and_nothing_else() -> None:
    def weights(seed: int, before: int) -> Tensor:
        subject = subject_of("transformer", seed=before)
        subject.seed = seed
        torch.manual_seed(before)
        subject.apply(REINITIALIZE)
        return torch.cat([p.detach().flatten() for p in subject.model.parameters()])

    assert torch.equal(weights(1, before=5), weights(1, before=6))
    assert not torch.equal(weights(1, before=5), weights(2, before=5))


def test_parameters_outside_of_layers_need_the_factory() -> None:
    subject = subject_of("transformer")
    model: Any = subject.model
    before = model.positions.clone()
    assert subject.apply(REINITIALIZE) == "Re-initializes the weights of every layer to fit its activation."
    assert not torch.equal(model.positions, before)
    subject = subject_of("transformer")
    subject.factory = None
    assert subject.apply(REINITIALIZE).endswith("; 1 parameter outside of layers keeps its value.")


def test_weight_normalized_layers_are_re_initialized() -> None:
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 64)), nn.ReLU(), nn.Linear(64, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    subject.apply(REINITIALIZE)
    assert float(model[0].weight.detach().std()) == pytest.approx((2 / 4) ** 0.5, rel=0.2)


def test_new_weights_start_without_the_momentum_of_the_old() -> None:
    subject = subject_of("mlp")
    subject.apply({"action": "swap_optimizer", "optimizer": "momentum", "learning_rate": 0.1})
    train(subject)
    model: Any = subject.model
    assert model[0].weight in subject.optimizer.state
    subject.apply(SELU)
    assert model[0].weight not in subject.optimizer.state
    assert model[6].weight in subject.optimizer.state


def test_new_parameters_are_trained() -> None:
    subject = subject_of("mlp")
    subject.apply(NORM)
    norm: Any = subject.model[0].surefoot_norm  # type: ignore[index]
    before = norm.weight.clone()
    train(subject)
    assert not torch.equal(norm.weight, before)
    assert len(subject.optimizer.param_groups) == 1


def test_batch_norm_is_found_as_a_layer_afterwards() -> None:
    subject = subject_of("mlp")
    subject.apply(NORM)
    infos = subject.observe().facts()["layers"]
    kinds = [(info["name"], info["kind"], info["activation"]) for info in infos[:2]]
    assert kinds == [("0", "dense", "sigmoid"), ("0.surefoot_norm", "batch_norm", None)]
    with pytest.raises(CannotApply):
        subject.apply(NORM)


@pytest.mark.parametrize(("activation", "function"), [("linear", lambda x: x), ("sigmoid", torch.sigmoid)])
def test_the_output_activation_is_replaced_or_removed(activation: str, function: Any) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    subject.apply({"action": "set_output_activation", "activation": activation})
    x = numbers()
    torch.testing.assert_close(model(x), function(model[0](x)))


class Methods(nn.Module):
    """Activations as tensor methods with arguments."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.out = nn.Linear(4, 8), nn.Linear(8, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.out(self.a(x).relu()).softmax(1)


def test_tensor_methods_with_arguments_are_replaced_more_than_once() -> None:
    model = Methods()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES)
    x = numbers()
    for hidden, output in (("selu", "sigmoid"), ("elu", "linear")):
        subject.apply({"action": "swap_activation", "activation": hidden})
        subject.apply({"action": "set_output_activation", "activation": output})
        logits = model.out(getattr(F, hidden)(model.a(x)))
        expected = torch.sigmoid(logits) if output == "sigmoid" else logits
        torch.testing.assert_close(model(x), expected)


def test_an_output_activation_is_added_behind_the_output_layer() -> None:
    subject = subject_of("functional")
    before = subject.model(numbers())
    assert subject.apply(OUTPUT) == "Sets the output activation to sigmoid."
    torch.testing.assert_close(subject.model(numbers()), torch.sigmoid(before))
    with pytest.raises(CannotApply, match="already"):
        subject.apply(OUTPUT)


def test_a_loss_of_logits_removes_the_softmax() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.MSELoss(), numbers(64), F.one_hot(CLASSES, 3).float())
    sentence = subject.apply(LOSS)
    assert sentence == "Replaces the loss with categorical cross-entropy and sets the output activation to linear."
    output = model(numbers())
    torch.testing.assert_close(output, model[0](numbers()))
    loss = subject.loss_fn(output, subject.targets[:16])
    torch.testing.assert_close(loss, F.cross_entropy(output, CLASSES[:16]))


def test_a_loss_of_probabilities_keeps_the_sigmoid() -> None:
    model = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    subject = Subject(model, optimizer, nn.MSELoss(), numbers(64), (CLASSES > 0).float())
    action = {"action": "swap_loss", "loss": "binary_crossentropy", "from_logits": False}
    assert subject.apply(action) == "Replaces the loss with binary cross-entropy."
    output = model(numbers())
    expected = F.binary_cross_entropy(output[:, 0], (CLASSES[:16] > 0).float())
    torch.testing.assert_close(subject.loss_fn(output, subject.targets[:16]), expected)


def test_a_regression_gets_the_mean_squared_error() -> None:
    subject = subject_of("mlp")
    subject.targets = numbers(64)[:, :3] * 2
    subject.apply({"action": "swap_loss", "loss": "mean_squared_error", "from_logits": False})
    train(subject)
    subject.targets = CLASSES
    with pytest.raises(CannotApply, match="does not fit the targets"):
        subject.apply({"action": "swap_loss", "loss": "mean_squared_error", "from_logits": False})


def test_inputs_are_standardized_inside_the_model() -> None:
    subject = subject_of("mlp")
    plain = copy.deepcopy(subject.model)
    scale, shift = torch.tensor([1.0, 100.0, 1e-3, 1.0]), torch.tensor([0.0, 500.0, 0.0, -7.0])
    subject.inputs = numbers(64) * scale + shift
    subject.inputs[5, 1] = float("nan")
    sentence = subject.apply(DATA)
    assert sentence == "Clips outliers and standardizes every input feature, and imputes missing values."
    clean = (numbers(64) - numbers(64).mean(0)) / numbers(64).std(0, correction=0)
    rows = [0, 1, 2, 3, 6, 7]
    torch.testing.assert_close(subject.model(subject.inputs)[rows], plain(clean)[rows], rtol=0.1, atol=0.1)
    assert torch.isfinite(subject.model(subject.inputs)).all()
    with pytest.raises(CannotApply, match="already"):
        subject.apply(DATA)


def test_images_are_standardized_by_channel_and_outliers_are_clipped() -> None:
    subject = subject_of("cnn")
    subject.inputs = images(64) * 50 + 100
    subject.inputs[0, 0, 0, 0] = 1e9
    subject.apply(DATA)
    model: Any = subject.model
    assert model.surefoot_inputs_mean.shape == (1, 1, 1)
    (clean,) = StandardizeInputs()(model, (subject.inputs,))
    assert clean.abs().max() < 10


def test_predictions_of_scaled_targets_have_the_scale_of_the_targets() -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
    inputs = numbers(64)
    targets = 5000 + 300 * inputs[:, :1]
    subject = Subject(model, optimizer, nn.MSELoss(), inputs, targets)
    assert subject.apply({"action": "scale_targets"}) == "Standardizes the targets; predictions are converted back."
    first = train(subject, 1)
    assert first < 10  # In standard deviations.
    train(subject, 300)
    assert (subject.model(inputs) - targets).abs().mean() < 60
    with pytest.raises(CannotApply, match="already"):
        subject.apply({"action": "scale_targets"})
    with pytest.raises(CannotApply, match="not numbers"):
        subject_of("mlp").apply({"action": "scale_targets"})


def test_the_gradient_is_clipped_before_the_step_also_after_a_swap() -> None:
    subject = subject_of("mlp")
    subject.apply({"action": "clip_gradient", "norm": 1e-3})
    subject.apply({"action": "swap_optimizer", "optimizer": "momentum", "learning_rate": 1.0})
    before = torch.cat([p.detach().flatten() for p in subject.model.parameters()])
    for group in subject.optimizer.param_groups:
        group["weight_decay"] = 0.0
    train(subject, 1)
    after = torch.cat([p.detach().flatten() for p in subject.model.parameters()])
    assert 0 < (after - before).norm() < 2.1e-3  # Nesterov momentum takes 1.9 times the gradient.


def test_a_swapped_optimizer_keeps_weight_decay_and_the_ratio_of_rates() -> None:
    model = module_mlp()
    parameters = list(model.parameters())
    groups = [{"params": parameters[:1], "lr": 0.5}, {"params": parameters[1:]}]
    optimizer = torch.optim.SGD(groups, lr=0.05, weight_decay=0.01)
    scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    subject = Subject(model, optimizer, nn.CrossEntropyLoss(), numbers(64), CLASSES, scheduler=scheduler)
    assert subject.apply(ADAM) == "Trains with adam at a learning rate of 0.003 instead of sgd at 0.05."
    rates = [group["lr"] for group in subject.optimizer.param_groups]
    assert rates == pytest.approx([0.03, 0.003])
    assert [group["weight_decay"] for group in subject.optimizer.param_groups] == [0.01, 0.01]
    assert subject.scheduler is None


def test_the_learning_rate_changes_with_its_schedule() -> None:
    subject = subject_of("mlp", epochs=10)
    subject.apply({"action": "set_decay", "decay": "cosine"})
    change = subject.apply({"action": "set_learning_rate", "rate": 0.01})
    assert change == "Sets the learning rate to 0.01 instead of 0.1."
    subject.apply({"action": "extend_training", "factor": 2})
    assert subject.epochs == 20 and subject.scheduler is not None
    rates = []
    for _ in range(20):
        subject.optimizer.step()
        rates.append(subject.optimizer.param_groups[0]["lr"])
        subject.scheduler.step()
    assert rates[0] == pytest.approx(0.01) and rates[-1] < 1e-4
    subject.apply({"action": "set_decay", "decay": "constant"})
    assert subject.scheduler is None
    assert subject.optimizer.param_groups[0]["lr"] == pytest.approx(0.01)


def test_numbers_of_the_loop_are_set() -> None:
    subject = subject_of("mlp", batch_size=4, epochs=3)
    assert subject.apply({"action": "set_batch_size", "size": 64}) == "Sets the batch size to 64 instead of 4."
    assert subject.apply({"action": "extend_training", "factor": 5}) == "Trains for 15 epochs instead of 3."
    assert (subject.batch_size, subject.epochs) == (64, 15)


def test_wrong_actions_are_named() -> None:
    subject = subject_of("mlp")
    with pytest.raises(ValueError, match="unknown action `melt`; available: add_batch_norm"):
        subject.apply({"action": "melt"})
    with pytest.raises(ValueError, match="set_batch_size.*size"):
        subject.apply({"action": "set_batch_size"})
    with pytest.raises(CannotApply, match="no activation `melt`"):
        subject.apply({"action": "swap_activation", "activation": "melt"})


def test_observing_a_model_does_not_change_it() -> None:
    subject = subject_of("cnn")
    state = {key: value.clone() for key, value in subject.model.state_dict().items()}
    generator = torch.get_rng_state()
    subject.observe()
    assert torch.equal(torch.get_rng_state(), generator)
    assert all(torch.equal(value, state[key]) for key, value in subject.model.state_dict().items())


def test_residual_layers_compute_a_sum() -> None:
    subject = subject_of("deep_functional")
    subject.apply(RESIDUAL)
    model: Any = subject.model
    x = torch.tanh(model.first(numbers()))
    for layer in model.hidden:
        x = x + F.linear(torch.tanh(layer.surefoot_norm(x)), layer.weight, layer.bias)
    expected = F.linear(model.out.surefoot_norm(x), model.out.weight, model.out.bias)
    torch.testing.assert_close(model(numbers()), expected)


def test_the_discovery_of_a_repaired_model_names_its_layers() -> None:
    subject = subject_of("deep")
    subject.apply(RESIDUAL)
    discovery = Discovery(subject.model)
    subject.model(numbers())
    assert discovery.has_residual and discovery.error is None
