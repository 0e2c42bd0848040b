"""Advice as a diff of the user's source."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, Iterator

import pytest
import torch
from torch import nn

from surefoot.torch import Advisor, Discovery, actions_for, record_sites, sites

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn

x, y = torch.randn(16, 4), torch.arange(16) % 3
"""
LOOP = """\
optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(2):
    optimizer.zero_grad()
    loss = loss_fn(model(x), y)
    loss.backward()
    optimizer.step()
"""
SEQUENTIAL = """\
model = nn.Sequential(
    nn.Linear(4, 8), nn.Sigmoid(),
    nn.Linear(8, 8), nn.Sigmoid(),
    nn.Linear(8, 3),
)
"""
CLASS = """\
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 8)
        self.act = nn.Tanh()
        self.b = nn.Linear(8, 8)
        self.out = nn.Linear(8, 3)
        self.softmax = nn.Softmax(dim=1)

    def forward(self, x):
        x = self.act(self.a(x))
        x = torch.sigmoid(self.b(x)).view(-1, 8)
        return self.softmax(self.out(x))

model = Net()
"""
SELU = {"action": "swap_activation", "activation": "selu"}
CLIP = {"action": "clip_gradient", "norm": 1.0}
RATE = {"action": "set_learning_rate", "rate": 0.01}
LINEAR = {"action": "set_output_activation", "activation": "linear"}


@pytest.fixture(params=[True, False], ids=["recorded", "searched"])
def recorded(request: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[bool]:
    """Runs with and without the places of creation."""
    new: Any = type(sites._SITES)()
    monkeypatch.setattr(sites, "_SITES", new)
    before = nn.Module.__init__, torch.optim.Optimizer.__init__
    if request.param:
        record_sites()
    yield request.param
    nn.Module.__init__, torch.optim.Optimizer.__init__ = before  # type: ignore[method-assign]


def run(path: Path) -> ModuleType:
    """Runs a script as a module."""
    spec = importlib.util.spec_from_file_location("user_script", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["user_script"] = module
    sys.dont_write_bytecode = True
    spec.loader.exec_module(module)
    return module


class Script:
    """A script of the user and advice about it."""

    def __init__(self, folder: Path, text: str) -> None:
        self.path = folder / "train.py"
        self.path.write_text(text)
        user = run(self.path)
        self.discovery = Discovery(user.model)
        user.model(user.x)
        self.discovery.close()
        self.advisor = Advisor(self.discovery, getattr(user, "optimizer", None), str(self.path))

    def diff(self, *actions: dict[str, Any]) -> str | None:
        return self.advisor.diff(*actions)

    def run_patched(self) -> Any:
        """Runs the script as advised and returns its model after a discovery."""
        (text,) = self.advisor.patched().values()
        self.path.write_text(text)
        user = run(self.path)
        discovery = Discovery(user.model)
        user.model(user.x)
        discovery.close()
        return user, [call.activation for call in discovery.activations]


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)
    return lambda text: Script(tmp_path, text)


def test_activation_modules_are_replaced(script: Any, recorded: bool) -> None:
    advised = script(HEAD + SEQUENTIAL + LOOP)
    assert advised.diff(SELU) == """\
--- train.py
+++ train.py
@@ -4,8 +4,8 @@
 
 x, y = torch.randn(16, 4), torch.arange(16) % 3
 model = nn.Sequential(
-    nn.Linear(4, 8), nn.Sigmoid(),
-    nn.Linear(8, 8), nn.Sigmoid(),
+    nn.Linear(4, 8), nn.SELU(),
+    nn.Linear(8, 8), nn.SELU(),
     nn.Linear(8, 3),
 )
 optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
"""
    assert advised.run_patched()[1] == ["selu", "selu"]


def test_functional_activations_are_replaced(script: Any, recorded: bool) -> None:
    advised = script(HEAD + CLASS + LOOP)
    assert advised.diff(SELU) == """\
--- train.py
+++ train.py
@@ -7,14 +7,14 @@
     def __init__(self):
         super().__init__()
         self.a = nn.Linear(4, 8)
-        self.act = nn.Tanh()
+        self.act = nn.SELU()
         self.b = nn.Linear(8, 8)
         self.out = nn.Linear(8, 3)
         self.softmax = nn.Softmax(dim=1)
 
     def forward(self, x):
         x = self.act(self.a(x))
-        x = torch.sigmoid(self.b(x)).view(-1, 8)
+        x = F.selu(self.b(x)).view(-1, 8)
         return self.softmax(self.out(x))
 
 model = Net()
"""
    assert advised.run_patched()[1] == ["selu", "selu", "softmax"]


def test_a_softmax_before_the_loss_is_removed(script: Any, recorded: bool) -> None:
    advised = script(HEAD + CLASS + LOOP)
    assert advised.diff(LINEAR) == """\
--- train.py
+++ train.py
@@ -10,7 +10,7 @@
         self.act = nn.Tanh()
         self.b = nn.Linear(8, 8)
         self.out = nn.Linear(8, 3)
-        self.softmax = nn.Softmax(dim=1)
+        self.softmax = nn.Identity()
 
     def forward(self, x):
         x = self.act(self.a(x))
"""
    assert advised.run_patched()[1] == ["tanh", "sigmoid"]


def test_a_softmax_in_a_sequence_is_removed_with_its_comma(script: Any, recorded: bool) -> None:
    advised = script(HEAD + "model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))\n" + LOOP)
    assert advised.diff(LINEAR) == """\
--- train.py
+++ train.py
@@ -3,7 +3,7 @@
 from torch import nn
 
 x, y = torch.randn(16, 4), torch.arange(16) % 3
-model = nn.Sequential(nn.Linear(4, 3), nn.Softmax(dim=1))
+model = nn.Sequential(nn.Linear(4, 3))
 optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
 loss_fn = nn.CrossEntropyLoss()
 for epoch in range(2):
"""
    assert advised.run_patched()[1] == []


def test_a_functional_softmax_is_replaced_by_its_argument(script: Any) -> None:
    text = HEAD + CLASS.replace("self.softmax(self.out(x))", "F.softmax(self.out(x), dim=1)") + LOOP
    diff = script(text).diff(LINEAR)
    assert "-        return F.softmax(self.out(x), dim=1)\n+        return self.out(x)\n" in diff


def test_a_softmax_method_is_replaced_by_its_tensor(script: Any) -> None:
    text = HEAD + CLASS.replace("self.softmax(self.out(x))", "self.out(x).softmax(1)") + LOOP
    diff = script(text).diff(LINEAR)
    assert "-        return self.out(x).softmax(1)\n+        return self.out(x)\n" in diff


def test_the_learning_rate_is_changed_where_it_is_written(script: Any, recorded: bool) -> None:
    advised = script(HEAD + SEQUENTIAL + LOOP)
    assert advised.diff(RATE, CLIP) == """\
--- train.py
+++ train.py
@@ -8,10 +8,11 @@
     nn.Linear(8, 8), nn.Sigmoid(),
     nn.Linear(8, 3),
 )
-optimizer = torch.optim.SGD(model.parameters(), lr=10.0, momentum=0.9)
+optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
 loss_fn = nn.CrossEntropyLoss()
 for epoch in range(2):
     optimizer.zero_grad()
     loss = loss_fn(model(x), y)
     loss.backward()
+    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     optimizer.step()
"""
    user, _ = advised.run_patched()
    assert user.optimizer.param_groups[0]["lr"] == 0.01


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("SGD(model.parameters(), 10.0)", "SGD(model.parameters(), 0.01)"),
        ("Adam(model.parameters())", "Adam(model.parameters(), lr=0.01)"),
    ],
)
def test_the_learning_rate_may_be_positional_or_missing(script: Any, before: str, after: str) -> None:
    loop = LOOP.replace("SGD(model.parameters(), lr=10.0, momentum=0.9)", before)
    diff = script(HEAD + SEQUENTIAL + loop).diff(RATE)
    assert f"+optimizer = torch.optim.{after}\n" in diff


def test_a_named_learning_rate_is_changed_at_its_assignment(script: Any) -> None:
    loop = "LR = 10.0\n" + LOOP.replace("lr=10.0", "lr=LR")
    assert "-LR = 10.0\n+LR = 0.01\n" in script(HEAD + SEQUENTIAL + loop).diff(RATE)


def test_the_optimizer_is_replaced(script: Any, recorded: bool) -> None:
    loop = LOOP.replace("momentum=0.9", "weight_decay=1e-4")
    advised = script(HEAD + SEQUENTIAL + loop)
    diff = advised.diff({"action": "swap_optimizer", "optimizer": "adam", "learning_rate": 0.003})
    assert "+optimizer = torch.optim.Adam(model.parameters(), lr=0.003, weight_decay=1e-4)\n" in diff
    assert type(advised.run_patched()[0].optimizer).__name__ == "Adam"


IN_FUNCTIONS = """\
def step(optimizer, x, y):
    loss = F.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()

def main():
    global net, model, optimizer
    net = nn.Sequential(nn.Linear(4, 3))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    step(optimizer, x, y)
    model = net

main()
"""


def test_clipping_in_another_function_uses_the_optimizer_that_is_there(script: Any) -> None:
    advised = script(HEAD + IN_FUNCTIONS)
    line = '+    nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 1.0)\n'
    assert line in advised.diff(CLIP)
    advised.run_patched()


def test_scaled_gradients_are_unscaled_before_they_are_clipped(script: Any) -> None:
    loop = LOOP.replace("    optimizer.step()\n", "    scaler.step(optimizer)\n    scaler.update()\n")
    scaler = "scaler = torch.amp.GradScaler('cpu', enabled=False)\n"
    advised = script(HEAD + SEQUENTIAL + scaler + loop)
    assert """\
+    scaler.unscale_(optimizer)
+    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
     scaler.step(optimizer)
""" in advised.diff(CLIP)
    advised.run_patched()


def test_batch_norm_is_inserted_behind_hidden_layers(script: Any, recorded: bool) -> None:
    advised = script(HEAD + SEQUENTIAL + LOOP)
    diff = advised.diff({"action": "add_batch_norm"})
    if not recorded:  # Which of the linear layers is hidden is not known.
        assert diff is None
        return
    assert "+    nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Sigmoid(),\n" in diff
    assert any(isinstance(m, nn.BatchNorm1d) for m in advised.run_patched()[0].model)


def test_the_batch_size_is_changed(script: Any) -> None:
    loader = "loader = torch.utils.data.DataLoader(list(zip(x, y)), batch_size=2, shuffle=True)\n"
    advised = script(HEAD + SEQUENTIAL + loader + LOOP)
    diff = advised.diff({"action": "set_batch_size", "size": 32})
    assert "+loader = torch.utils.data.DataLoader(list(zip(x, y)), batch_size=32, shuffle=True)\n" in diff
    assert advised.run_patched()[0].loader.batch_size == 32


def test_a_loss_of_probabilities_becomes_one_of_logits(script: Any) -> None:
    loop = LOOP.replace("CrossEntropyLoss()", "BCELoss()").replace("model(x), y", "model(x).sigmoid()[:, 0], (y > 0).float()")
    action = {"action": "swap_loss", "loss": "binary_crossentropy", "from_logits": True}
    assert "+loss_fn = nn.BCEWithLogitsLoss()\n" in script(HEAD + SEQUENTIAL + loop).diff(action)


def test_text_beyond_ascii_does_not_shift_the_change(script: Any, recorded: bool) -> None:
    text = HEAD + "name = 'größe'; model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))  # → ü\n"
    diff = script(text).diff(SELU)
    assert "+name = 'größe'; model = nn.Sequential(nn.Linear(4, 8), nn.SELU(), nn.Linear(8, 3))  # → ü\n" in diff


@pytest.mark.parametrize(
    ("text", "action"),
    [
        # The class is chosen at run time.
        (HEAD + "act = nn.Tanh\nmodel = nn.Sequential(nn.Linear(4, 8), act(), nn.Linear(8, 3))\n", SELU),
        # The rate is computed.
        (HEAD + SEQUENTIAL + LOOP.replace("lr=10.0", "lr=5 * 2.0"), RATE),
        # The rate is assigned twice.
        (HEAD + SEQUENTIAL + "LR = 1.0\nLR = 10.0\n" + LOOP.replace("lr=10.0", "lr=LR"), RATE),
        (HEAD + SEQUENTIAL + LOOP.replace("lr=10.0, ", "**dict(lr=10.0), "), RATE),
        # The gradient is clipped already.
        (HEAD + SEQUENTIAL + LOOP.replace("    optimizer.step", "    nn.utils.clip_grad_norm_(model.parameters(), 9)\n    optimizer.step"), CLIP),
        (HEAD + SEQUENTIAL + LOOP.replace("    loss.backward()\n    optimizer.step()", "    loss.backward(); optimizer.step()"), CLIP),
        # Code of a library cannot be changed.
        (HEAD + "model = nn.Sequential(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True), nn.Linear(4, 3))\n", SELU),
        (HEAD + SEQUENTIAL + LOOP, {"action": "scale_targets"}),
        (HEAD + SEQUENTIAL + LOOP, LINEAR),
    ],
)
def test_without_certainty_there_is_no_diff(script: Any, recorded: bool, text: str, action: Any) -> None:
    assert script(text).diff(action) is None


def test_another_model_in_the_script_is_left_alone(script: Any, recorded: bool) -> None:
    other = "other = nn.Sequential(nn.Linear(4, 8), nn.Sigmoid(), nn.Linear(8, 8), nn.Sigmoid())\n"
    diff = script(HEAD + other + SEQUENTIAL + LOOP).diff(SELU)
    assert diff is None if not recorded else "-other" not in diff


def test_a_problem_is_answered_only_by_what_its_facts_support() -> None:
    def facts(hidden: str, **more: Any) -> dict[str, Any]:
        return {"layers": [{"activation": hidden}, {"activation": "softmax"}], **more}

    assert actions_for("vanishing_gradient", facts("sigmoid")) == [SELU]
    assert actions_for("vanishing_gradient", facts("relu")) == []
    assert actions_for("dying_relu", facts("relu"))[0]["activation"] == "leaky_relu"
    assert actions_for("improper_output_activation", facts("relu", from_logits=True)) == [LINEAR]
    assert actions_for("oscillating_loss", facts("relu")) == []


def test_objects_made_by_libraries_have_no_place(recorded: bool) -> None:
    block = nn.TransformerEncoderLayer(4, 2, 8)
    assert sites.site_of(block.linear1) is None
    assert (sites.site_of(block) is not None) == recorded
