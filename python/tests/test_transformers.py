"""The callback for Transformers."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
os.environ.setdefault("HF_HUB_OFFLINE", "1")
transformers = pytest.importorskip("transformers", reason="Transformers is not installed")
pytest.importorskip("accelerate", reason="Accelerate is not installed")
from torch import nn  # noqa: E402

import surefoot.transformers  # noqa: E402

torch.set_num_threads(1)
pytestmark = pytest.mark.filterwarnings("ignore")


class Words(torch.utils.data.Dataset[Any]):
    """Sequences that count upwards."""

    def __len__(self) -> int:
        return 128

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        ids = (torch.arange(8) + index) % 11
        return {"input_ids": ids, "labels": ids}


def gpt() -> Any:
    torch.manual_seed(0)
    config = transformers.GPT2Config(
        vocab_size=11, n_positions=8, n_embd=16, n_layer=1, n_head=2, bos_token_id=0, eos_token_id=0
    )
    return transformers.GPT2LMHeadModel(config)


def train(model: Any, tmp_path: Path, watch: Any = None, trainer: Any = None, **options: Any) -> Any:
    watch = watch or surefoot.transformers.Watch(runs=None, on_finding="ignore", every=1)
    options = {"learning_rate": 1e-3, "max_steps": 32, **options}
    arguments = transformers.TrainingArguments(
        output_dir=str(tmp_path),
        per_device_train_batch_size=8,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        use_cpu=True,
        logging_steps=8,
        **options,
    )
    made = (trainer or transformers.Trainer)(
        model=model, args=arguments, train_dataset=Words(), eval_dataset=Words(), callbacks=[watch]
    )
    made.train()
    return watch


def problems(watch: Any) -> list[str]:
    return [it.problem for it in watch.findings if it.severity == "problem"]


def collect(monkeypatch: pytest.MonkeyPatch, method: str) -> list[tuple[Any, ...]]:
    """Collects the arguments of calls of a method of the session."""
    calls: list[tuple[Any, ...]] = []
    original = getattr(surefoot.Session, method)

    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        calls.append((*args, kwargs))
        return original(self, *args, **kwargs)

    monkeypatch.setattr(surefoot.Session, method, called)
    return calls


def test_a_healthy_training_has_no_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = gpt()
    calls = collect(monkeypatch, "step")
    watch = train(model, tmp_path)
    assert problems(watch) == []
    assert len(calls) == 32
    assert calls[-1][0] < calls[0][0]
    assert not any(it._forward_hooks or it._forward_pre_hooks for it in model.modules())


def test_a_falling_loss_is_not_said_to_oscillate(tmp_path: Path) -> None:
    assert problems(train(gpt(), tmp_path, learning_rate=3e-3)) == []


def test_accumulated_batches_are_one_step_with_their_mean_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = collect(monkeypatch, "step")
    train(gpt(), tmp_path, max_steps=4)
    plain = whole[0][0]
    whole.clear()
    train(gpt(), tmp_path, max_steps=4, gradient_accumulation_steps=4)
    assert len(whole) == 4
    assert whole[0][0] == pytest.approx(plain, rel=0.1)


def test_evaluations_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = collect(monkeypatch, "evaluation")
    train(gpt(), tmp_path, max_steps=16, eval_strategy="steps", eval_steps=8)
    assert len(calls) == 2


def test_nan_is_found_and_raise_ends_the_training(tmp_path: Path) -> None:
    model = gpt()
    with torch.no_grad():
        model.transformer.h[0].mlp.c_fc.weight[0, 0] = float("nan")
    watch = surefoot.transformers.Watch(runs=None, on_finding="raise")
    with pytest.raises(surefoot.TrainingProblem, match="c_fc"):
        train(model, tmp_path, watch=watch)


class OwnLoss(transformers.Trainer):
    def compute_loss(self, model: nn.Module, inputs: Any, return_outputs: bool = False, **_: Any) -> Any:
        labels = inputs.pop("labels")
        output = model(**inputs)
        loss = nn.functional.cross_entropy(output["logits"][:, :-1].reshape(-1, 11), labels[:, 1:].reshape(-1))
        return (loss, output) if return_outputs else loss


def test_the_logged_loss_is_used_where_the_model_returns_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = collect(monkeypatch, "step")
    train(gpt(), tmp_path, trainer=OwnLoss)
    assert len(calls) == 4


def test_a_fault_inside_does_not_end_the_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("injected")

    monkeypatch.setattr(surefoot.Session, "step", fail)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        train(gpt(), tmp_path, max_steps=8)
    assert len([it for it in caught if "switched itself off" in str(it.message)]) == 1
