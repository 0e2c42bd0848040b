"""Discovery of the facts of a model and its loop."""

from __future__ import annotations

import copy
import pickle
from typing import Any, Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import BaseTorchFunctionMode, _get_current_function_mode_stack
from torch.utils.checkpoint import checkpoint

from models import CNN, FunctionalMLP, Recurrent, Transformer, images, module_mlp, numbers, symbols
from surefoot.torch import Discovery, describe_optimizer
from surefoot.torch.loss import _WAITING
from surefoot.torch.loss import LOSSES as LOSS_FUNCTIONS


@pytest.fixture(autouse=True)
def no_spy_waits_on() -> Iterator[None]:
    """Tests that compute no loss leave no observer to the next."""
    yield
    for observer in list(_WAITING):
        observer.stop()


def discovered(model: nn.Module, *inputs: Any) -> Discovery:
    discovery = Discovery(model)
    model(*inputs)
    discovery.close()
    assert discovery.error is None
    return discovery


def layers(model: nn.Module, *inputs: Any) -> dict[str, tuple[str, str | None]]:
    infos = discovered(model, *inputs).facts()["layers"]
    return {info["name"]: (info["kind"], info["activation"]) for info in infos}


def facts_of(model: nn.Module, loss: Callable[[Tensor], Tensor], inputs: Tensor) -> dict[str, Any]:
    discovery = Discovery(model)
    loss(model(inputs))
    return discovery.facts()


def test_functional_activations_belong_to_the_layer_before() -> None:
    assert layers(FunctionalMLP(), numbers()) == {
        "a": ("dense", "relu"),
        "b": ("dense", "sigmoid"),
        "c": ("dense", "relu"),
        "out": ("dense", "linear"),
    }


def test_a_shared_activation_module_belongs_to_every_layer_before_it() -> None:
    assert layers(CNN(), images()) == {
        "conv1": ("conv2d", "relu"),
        "bn": ("batch_norm", None),
        "conv2": ("conv2d", "relu"),
        "fc": ("dense", "linear"),
    }


def test_shapes_are_those_of_one_sample_with_channels_last() -> None:
    infos = discovered(CNN(), images()).facts()["layers"]
    assert [info["output_shape"] for info in infos] == [[8, 8, 4], [8, 8, 4], [4, 4, 6], [3]]
    assert [info["units"] for info in infos] == [4, None, 6, 3]


def test_recurrent_layers_and_embeddings_have_kinds_of_their_own() -> None:
    assert layers(Recurrent(), symbols()) == {
        "embedding": ("embedding", None),
        "lstm": ("lstm", None),
        "hidden": ("dense", "tanh"),
        "head": ("dense", "linear"),
    }
    assert layers(nn.RNN(4, 3), numbers().unsqueeze(0)) == {"rnn": ("simple_rnn", "tanh")}


def test_a_transformer_has_bare_parameters_a_tied_head_and_shortcuts() -> None:
    discovery = discovered(Transformer(), symbols())
    infos = {info["name"]: info for info in discovery.facts()["layers"]}
    assert infos["positions"]["kind"] == "other"
    assert infos["blocks.1.up"]["activation"] == "gelu"
    assert infos["blocks.1.qkv"]["activation"] == "linear"
    assert list(infos)[-1] == "head"
    assert discovery.has_residual


def test_layers_of_pytorch_transformers_are_found() -> None:
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    found = layers(nn.TransformerEncoder(block, 2), torch.randn(3, 5, 8))
    assert found["layers.1.self_attn"] == ("multi_head_attention", None)
    assert found["layers.1.linear1"] == ("dense", "relu")


def test_the_fast_path_of_a_transformer_claims_nothing_wrong() -> None:
    block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).eval()
    for parameter in block.parameters():
        parameter.requires_grad_(False)
    found = layers(block, torch.randn(3, 5, 8))
    assert found["linear1"] in (("dense", "relu"), ("dense", None))


class Bare(nn.Module):
    """An MLP of parameters without modules."""

    def __init__(self) -> None:
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(4, 6))
        self.b1 = nn.Parameter(torch.zeros(6))
        self.w2 = nn.Parameter(torch.randn(2, 6))
        self.b2 = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(x @ self.w1 + self.b1)
        return x @ self.w2.T + self.b2


def test_matrices_outside_of_modules_are_dense_layers() -> None:
    assert layers(Bare(), numbers()) == {"w1": ("dense", "tanh"), "w2": ("dense", "linear")}


class Custom(nn.Module):
    """A layer whose code ends in an activation of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 4))

    def forward(self, x: Tensor) -> Tensor:
        return torch.special.expit(torch.einsum("bi,ij->bj", x, self.weight))


def test_nothing_is_claimed_of_unknown_layers_and_functions() -> None:
    assert layers(Custom(), numbers()) == {"custom": ("other", None)}
    swish = nn.Linear(4, 4)

    class Swish(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = swish

        def forward(self, x: Tensor) -> Tensor:
            x = self.layer(x)
            return x * torch.sigmoid(x)

    discovery = discovered(Swish(), numbers())
    assert discovery.facts()["layers"][0]["activation"] is None
    assert discovery.activations[0].is_gate


class Head(nn.Module):
    """One layer and any function behind it."""

    def __init__(self, function: Callable[[Tensor], Tensor], outputs: int = 3) -> None:
        super().__init__()
        self.layer = nn.Linear(4, outputs)
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(self.layer(x))


@pytest.mark.parametrize(
    ("function", "activation"),
    [
        (lambda x: x, "linear"),
        (lambda x: x.squeeze(-1), "linear"),
        (lambda x: x / 2, "linear"),
        (lambda x: x.softmax(-1), "softmax"),
        (lambda x: F.log_softmax(x, dim=-1), "log_softmax"),
        (lambda x: torch.sigmoid(x).squeeze(-1), "sigmoid"),
        (lambda x: torch.tanh(x) * 2, None),
        (lambda x: torch.relu(x).mean(-1), None),
        (lambda x: torch.log(x.softmax(-1)), None),
        (lambda x: torch.sigmoid(x + x), None),
        (lambda x: (x, x.softmax(-1)), None),
        (lambda x: x.exp(), None),
    ],
)
def test_the_output_activation_is_known_or_none(
    function: Callable[[Tensor], Tensor], activation: str | None
) -> None:
    assert layers(Head(function), numbers())["layer"] == ("dense", activation)


def test_an_activation_behind_a_recurrent_output_layer_is_not_missed() -> None:
    class Tail(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.LSTM(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return torch.sigmoid(self.rnn(x)[0])

    assert layers(Tail(), numbers().unsqueeze(0)) == {"rnn": ("lstm", "sigmoid")}


def test_an_output_that_mixes_layers_has_no_known_activation() -> None:
    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(4, 1), nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return torch.sigmoid(self.a(x) + self.b(x))

    assert layers(Mixed(), numbers())["b"] == ("dense", None)


def test_a_layer_that_is_used_twice_has_an_activation_only_if_both_agree() -> None:
    class Twice(nn.Module):
        def __init__(self, second: Callable[[Tensor], Tensor]) -> None:
            super().__init__()
            self.layer = nn.Linear(4, 4)
            self.second = second
            self.out = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.second(self.layer(torch.relu(self.layer(x)))))

    assert layers(Twice(torch.relu), numbers())["layer"] == ("dense", "relu")
    assert layers(Twice(torch.tanh), numbers())["layer"] == ("dense", None)


def test_a_layer_that_did_not_run_is_never_the_output() -> None:
    model = FunctionalMLP()
    model.unused = nn.Linear(3, 3)
    assert list(layers(model, numbers()))[-2:] == ["unused", "out"]


def test_frozen_layers_are_marked() -> None:
    model = module_mlp()
    for parameter in model[0].parameters():
        parameter.requires_grad_(False)
    infos = discovered(model, numbers()).facts()["layers"]
    assert [info["frozen"] for info in infos] == [True, False, False, False]
    assert infos[0]["parameters"] == 0


def test_lazy_layers_have_shapes_after_the_first_pass() -> None:
    model = nn.Sequential(nn.LazyLinear(5), nn.ReLU(), nn.LazyLinear(2))
    infos = discovered(model, numbers()).facts()["layers"]
    assert [(info["units"], info["parameters"]) for info in infos] == [(5, 25), (2, 12)]


CLASSES = torch.arange(16) % 3
LOSSES: list[tuple[Callable[[Tensor], Tensor], dict[str, Any]]] = [
    (
        lambda y: nn.CrossEntropyLoss()(y, CLASSES),
        {"loss": "sparse_categorical_crossentropy", "from_logits": True, "task": "multi_class", "classes": 3},
    ),
    (
        lambda y: F.cross_entropy(y, F.one_hot(CLASSES, 3).float()),
        {"loss": "categorical_crossentropy", "from_logits": True, "classes": 3},
    ),
    (
        lambda y: F.nll_loss(F.log_softmax(y, -1), CLASSES),
        {"loss": "sparse_categorical_crossentropy", "from_logits": True},
    ),
    (lambda y: F.nll_loss(y, CLASSES), {"loss": "nll", "from_logits": False}),
    (
        lambda y: nn.BCEWithLogitsLoss()(y[:, 0], (CLASSES > 0).float()),
        {"loss": "binary_crossentropy", "from_logits": True, "task": "binary", "classes": 2},
    ),
    (
        lambda y: F.binary_cross_entropy(torch.sigmoid(y[:, 0]), (CLASSES > 0).float()),
        {"loss": "binary_crossentropy", "from_logits": True, "task": "binary"},
    ),
    (
        lambda y: nn.MSELoss()(y, numbers()[:, :3]),
        {"loss": "mse", "from_logits": False, "task": "regression", "classes": None},
    ),
    (
        lambda y: nn.MSELoss()(y, F.one_hot(CLASSES, 3).float()),
        {"loss": "mse", "task": "multi_class", "classes": 3},
    ),
    (lambda y: F.l1_loss(y[:, 0], CLASSES.float()), {"loss": "mae", "task": None}),
    (lambda y: nn.HuberLoss()(y, numbers()[:, :3]), {"loss": "huber", "task": "regression"}),
]


@pytest.mark.parametrize(("loss", "expected"), LOSSES)
def test_the_loss_is_read_from_its_call(
    loss: Callable[[Tensor], Tensor], expected: dict[str, Any]
) -> None:
    facts = facts_of(FunctionalMLP(), loss, numbers())
    assert {key: facts[key] for key in expected} == expected


@pytest.mark.parametrize(("loss", "expected"), LOSSES)
def test_the_loss_is_read_from_its_graph_after_the_backward_pass(
    loss: Callable[[Tensor], Tensor], expected: dict[str, Any]
) -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)
    output = model(numbers())
    discovery.close()  # So that the call is not seen.
    value = loss(output)
    value.backward()
    discovery.saw_loss(value)
    facts = discovery.facts()
    assert (facts["loss"], facts["from_logits"]) == (
        expected["loss"],
        expected.get("from_logits", False),
    )
    assert facts["task"] in (expected.get("task"), None) or expected["loss"] != "mse"


@pytest.mark.parametrize(
    ("loss", "name"),
    [
        (lambda y: ((y - numbers()[:, :3]) ** 2).mean(), "mse"),
        (lambda y: (numbers()[:, :3] - y).abs().mean(), "mae"),
        (lambda y: ((y - numbers()[:, :3]) ** 4).mean(), None),
        (lambda y: F.mse_loss(y, numbers()[:, :3]) + F.cross_entropy(y, CLASSES), None),
    ],
)
def test_handwritten_losses_are_recognized_or_unknown(
    loss: Callable[[Tensor], Tensor], name: str | None
) -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)
    output = model(numbers())
    discovery._observer.stop()
    discovery.saw_loss(loss(output))
    assert discovery.facts()["loss"] == name


def test_a_sigmoid_inside_the_model_makes_probabilities() -> None:
    model = Head(torch.sigmoid, outputs=1)
    facts = facts_of(model, lambda y: F.binary_cross_entropy(y[:, 0], (CLASSES > 0).float()), numbers())
    assert (facts["from_logits"], facts["layers"][0]["activation"]) == (False, "sigmoid")


def test_log_softmax_with_nll_loss_is_cross_entropy_of_logits() -> None:
    model = Head(lambda x: F.log_softmax(x, -1))
    facts = facts_of(model, lambda y: nn.NLLLoss()(y, CLASSES), numbers())
    assert (facts["loss"], facts["from_logits"]) == ("sparse_categorical_crossentropy", True)
    assert facts["layers"][0]["activation"] == "linear"


def test_the_loss_functions_are_put_back() -> None:
    before = F.cross_entropy
    facts_of(FunctionalMLP(), lambda y: F.cross_entropy(y, CLASSES), numbers())
    assert F.cross_entropy is before


def test_a_loss_function_that_is_looked_up_before_the_forward_pass_is_seen() -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)
    F.mse_loss(model(numbers()), numbers()[:, :3])
    assert discovery.facts()["task"] == "regression"


def test_the_loss_of_a_discriminator_is_not_that_of_the_generator() -> None:
    generator = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    discriminator = nn.Sequential(nn.Linear(4, 1), nn.Sigmoid())
    discoveries = [Discovery(generator), Discovery(discriminator)]
    F.binary_cross_entropy(discriminator(numbers()), torch.ones(16, 1))
    loss = F.binary_cross_entropy(discriminator(generator(numbers())), torch.ones(16, 1))
    assert [discovery.facts()["loss"] for discovery in discoveries] == [None, "binary_crossentropy"]
    discoveries[0].saw_loss(loss)
    assert discoveries[0].facts()["loss"] is None
    discoveries[0].close()


def test_of_two_models_each_has_its_own_loss() -> None:
    one, other = FunctionalMLP(), FunctionalMLP()
    discoveries = [Discovery(one), Discovery(other)]
    outputs = [one(numbers()), other(numbers())]
    F.mse_loss(outputs[1], numbers()[:, :3])
    F.cross_entropy(outputs[0], CLASSES)
    losses = [discovery.facts()["loss"] for discovery in discoveries]
    assert losses == ["sparse_categorical_crossentropy", "mse"]
    assert F.mse_loss in LOSS_FUNCTIONS


def test_a_loss_inside_the_model_is_found() -> None:
    class WithLoss(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = module_mlp()

        def forward(self, x: Tensor, labels: Tensor) -> dict[str, Tensor]:
            logits = self.net(x)
            return {"loss": F.cross_entropy(logits, labels), "logits": logits}

    model = WithLoss()
    discovery = Discovery(model)
    model(numbers(), labels=CLASSES)["loss"].backward()
    facts = discovery.facts()
    assert (facts["loss"], facts["classes"]) == ("sparse_categorical_crossentropy", 3)
    assert facts["layers"][-1]["activation"] == "linear"


def test_the_batch_size_of_sequences_that_come_first_is_that_of_the_targets() -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.rnn = nn.GRU(4, 5)
            self.out = nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            return self.out(self.rnn(x)[0][-1])

    inputs = torch.randn(7, 16, 4)
    facts = facts_of(TimeFirst(), lambda y: F.cross_entropy(y, CLASSES), inputs)
    assert facts["batch_size"] == 16


def test_an_optimizer_with_groups_is_described_by_the_largest() -> None:
    model = module_mlp()
    groups = [
        {"params": [model[0].bias], "lr": 0.5, "weight_decay": 0.0},
        {"params": [model[0].weight, model[2].weight]},
    ]
    optimizer = torch.optim.AdamW(groups, lr=0.01, weight_decay=0.1)
    torch.optim.lr_scheduler.ConstantLR(optimizer, factor=0.1)
    found = describe_optimizer(optimizer)
    assert found["optimizer"] == "adamw"
    assert (found["learning_rate"], found["weight_decay"], found["momentum"]) == (0.01, 0.1, 0.9)
    assert [group["learning_rate"] for group in found["groups"]] == [0.5, 0.01]


def is_clean(model: nn.Module) -> bool:
    hooks = (h for m in model.modules() for h in (*m._forward_hooks, *m._forward_pre_hooks))
    return not _get_current_function_mode_stack() and next(hooks, None) is None


def test_nothing_stays_behind_after_the_first_pass() -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)
    with torch.no_grad():
        model(numbers())
    assert not discovery.observed  # Evaluations do not count.
    model(numbers())
    assert discovery.observed and is_clean(model)
    discovery.close()


class Failing(nn.Module):
    """A model that fails in its second layer."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.error = error

    def forward(self, x: Tensor) -> Tensor:
        self.layer(x)
        raise self.error


def test_after_an_exception_in_the_model_the_next_pass_is_observed() -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)
    with pytest.raises(RuntimeError):
        model(torch.randn(2, 5))
    assert not _get_current_function_mode_stack() and not discovery.observed
    assert len(discovery.facts()["layers"]) == 4
    model(numbers())
    assert discovery.observed and is_clean(model)
    discovery.close()


def test_close_cleans_up_after_an_interrupt() -> None:
    model = Failing(KeyboardInterrupt())
    discovery = Discovery(model)
    with pytest.raises(KeyboardInterrupt):
        model(numbers())
    discovery.close()
    assert is_clean(model)


def test_modes_that_the_model_left_active_stay() -> None:
    other: Any = BaseTorchFunctionMode()

    class Leaving(nn.Linear):
        def forward(self, x: Tensor) -> Tensor:
            other.__enter__()
            return super().forward(x)

    discovery = Discovery(Leaving(4, 1))
    discovery.model(numbers())
    stack = _get_current_function_mode_stack()
    other.__exit__(None, None, None)
    assert stack == [other] and discovery.observed


def test_an_error_inside_the_discovery_does_not_reach_the_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("a bug")

    monkeypatch.setattr("surefoot.torch.trace.ForwardTrace._note", broken)
    model = FunctionalMLP()
    discovery = Discovery(model)
    assert model(numbers()).shape == (16, 3)
    assert isinstance(discovery.error, RuntimeError)
    assert is_clean(model) and len(discovery.facts()["layers"]) == 4


@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_is_observed_before_it_is_compiled(in_place: bool) -> None:
    model: Any = FunctionalMLP()
    compiled = model
    if in_place:
        model.compile(backend="eager")
    else:
        compiled = torch.compile(model, backend="eager")
    discovery = Discovery(compiled)
    expected = compiled(numbers())
    assert discovery.facts()["layers"][1]["activation"] == "sigmoid"
    torch.testing.assert_close(compiled(numbers()), expected)
    assert is_clean(model)


def test_a_compiled_training_step_is_left_alone() -> None:
    model = FunctionalMLP()
    discovery = Discovery(model)

    @torch.compile(backend="eager", fullgraph=True)
    def step(x: Tensor) -> Tensor:
        return F.cross_entropy(model(x), CLASSES)

    loss = step(numbers())
    loss.backward()
    discovery.close()
    assert discovery.error is None and len(discovery.facts()["layers"]) == 4


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointed_layers_are_observed_once(reentrant: bool) -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = nn.Linear(4, 4)
            self.block = nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4), nn.ReLU())
            self.out = nn.Linear(4, 1)

        def forward(self, x: Tensor) -> Tensor:
            x = torch.relu(self.first(x))
            return self.out(checkpoint(self.block, x, use_reentrant=reentrant))

    model = Checkpointed()
    discovery = Discovery(model)
    model(numbers()).sum().backward()
    found = [(info["name"], info["activation"]) for info in discovery.facts()["layers"]]
    assert found[:3] == [("first", "relu"), ("block.0", "tanh"), ("block.2", "relu")]
    assert len(found) == 4
    discovery.close()


def test_wrapped_models_keep_the_names_of_the_model() -> None:
    assert "a" in layers(nn.DataParallel(FunctionalMLP()), numbers())


def test_a_distributed_model_is_observed(tmp_path: Any) -> None:
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{tmp_path}/store", rank=0, world_size=1
    )
    try:
        model = nn.parallel.DistributedDataParallel(FunctionalMLP())
        assert layers(model, numbers())["b"] == ("dense", "sigmoid")
    finally:
        torch.distributed.destroy_process_group()


class Parts(nn.Module):
    """A model whose parts the loop calls, as a Lightning module does."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
        self.heads = nn.ModuleList([nn.Linear(8, 8), nn.Linear(8, 3)])

    def training_step(self, x: Tensor) -> Tensor:
        hidden = self.heads[0](self.encoder(x))
        return F.cross_entropy(self.heads[1](hidden), CLASSES)


def test_parts_that_the_loop_calls_are_observed_until_the_loss() -> None:
    model = Parts()
    discovery = Discovery(model)
    loss = model.training_step(numbers())
    assert discovery.observed
    discovery.saw_loss(loss)
    facts = discovery.facts()
    found = [(info["name"], info["activation"]) for info in facts["layers"]]
    assert found == [("encoder.0", "relu"), ("heads.0", "linear"), ("heads.1", "linear")]
    assert (facts["classes"], facts["batch_size"]) == (3, 16)
    assert is_clean(model)


def test_a_call_of_the_model_counts_more_than_one_of_its_parts() -> None:
    model = module_mlp()
    discovery = Discovery(model)
    model[0](numbers())
    model(numbers())
    infos = discovery.facts()["layers"]
    assert [info["activation"] for info in infos] == ["sigmoid", "sigmoid", "sigmoid", "linear"]
    discovery.close()


def test_a_model_can_be_copied_and_saved_while_it_waits() -> None:
    model = FunctionalMLP()
    discovery = Discovery(model, torch.optim.SGD(model.parameters(), lr=0.1))
    twins = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for twin in twins:
        twin(numbers())
    assert not discovery.observed
    discovery.close()
    assert F.cross_entropy in LOSS_FUNCTIONS
