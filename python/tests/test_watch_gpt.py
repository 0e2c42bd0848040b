"""The watch of a small GPT on generated text, healthy and faulty."""

from __future__ import annotations

import math
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
import torch.nn.functional as F  # noqa: E402
from torch import nn  # noqa: E402

import surefoot  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def nothing_is_compiled() -> None:
    """Attention is not observed in a process that has compiled code, as tests before these have."""
    dynamo = sys.modules.get("torch._dynamo")
    if dynamo is not None:
        dynamo.reset()
        dynamo.utils.counters.clear()


WIDTH, HEADS, CONTEXT = 32, 4, 32
LETTERS = "abcdefghijklmnopqrstuvwxyz ."
WORDS = ["the", "cat", "saw", "a", "dog", "near", "old", "house", "and", "sang", "to", "birds"]


def text(seed: int) -> torch.Tensor:
    """Sentences of words in a fixed order of kinds, as letters."""
    generator = torch.Generator().manual_seed(seed)
    drawn = torch.randint(len(WORDS), (2000,), generator=generator).tolist()
    words = " ".join(WORDS[it] + ("." if index % 7 == 6 else "") for index, it in enumerate(drawn))
    return torch.tensor([LETTERS.index(it) for it in words])


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, _ = x.shape
        q, k, v = (
            it.view(batch, length, HEADS, -1).transpose(1, 2) for it in self.qkv(self.norm1(x)).chunk(3, dim=-1)
        )
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Gpt(nn.Module):
    def __init__(self, blocks: int = 2) -> None:
        super().__init__()
        self.tokens, self.positions = nn.Embedding(len(LETTERS), WIDTH), nn.Embedding(CONTEXT, WIDTH)
        self.blocks = nn.Sequential(*(Block() for _ in range(blocks)))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(LETTERS), bias=False)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                scale = 0.02 / math.sqrt(2 * blocks) if name.endswith(("out.weight", "down.weight")) else 0.02
                nn.init.normal_(parameter, std=scale)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.norm(self.blocks(x)))


def train(
    lr: float = 1e-3,
    warmup: int = 20,
    steps: int = 150,
    seed: int = 0,
    left_out: str = "",
    spoil_at: int = -1,
    clip: float = 1.0,
    slow: str = "",
    grow: tuple[str, float] = ("", 1.0),
) -> Any:
    """Trains a GPT. Parameters ``left_out`` are not in the optimizer, ``slow`` ones have a rate of nearly 0, and ``grow`` is
    a parameter with a factor that it is multiplied by after each step."""
    torch.manual_seed(seed)
    model, corpus = Gpt(), text(seed)
    used = [(name, it) for name, it in model.named_parameters() if not (left_out and name.startswith(left_out))]
    groups = [
        {"params": [it for name, it in used if not (slow and name.startswith(slow))], "lr": lr},
        {"params": [it for name, it in used if slow and name.startswith(slow)], "lr": 1e-6 * lr, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW([it for it in groups if it["params"]])
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min((step + 1) / max(warmup, 1), 1.0))
    options: dict[str, Any] = {"epochs": 1, "steps_per_epoch": steps, "runs": None, "on_finding": "ignore"}
    with surefoot.watch(model, optimizer, every=2, **options) as run:
        for step in range(steps):
            starts = torch.randint(len(corpus) - CONTEXT - 1, (8,))
            x = torch.stack([corpus[it : it + CONTEXT] for it in starts.tolist()])
            y = torch.stack([corpus[it + 1 : it + CONTEXT + 1] for it in starts.tolist()])
            loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            if step == spoil_at:
                with torch.no_grad():
                    model.blocks[1].up.weight[3, 5] = float("nan")
                loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip)
            optimizer.step()
            schedule.step()
            if grow[0]:
                with torch.no_grad():
                    model.get_parameter(grow[0]).mul_(grow[1])
            run.step(loss)
    run.last_loss = float(loss.detach())
    return run


def problems(run: Any) -> dict[str, Any]:
    return {it.problem: it for it in run.findings if it.severity == "problem"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_healthy_gpt_has_no_problem(seed: int) -> None:
    run = train(seed=seed)
    assert problems(run) == {}
    assert run.last_loss < 1.6


def test_a_rate_100_times_too_high_without_warm_up_is_found() -> None:
    run = train(lr=0.1, warmup=0)
    # The healthy run reaches 1.3.
    assert run.last_loss > 2.0
    assert problems(run)
    assert min(it.step for it in problems(run).values()) < 75


def test_a_rate_that_learns_without_warm_up_is_no_problem() -> None:
    run = train(lr=3e-3, warmup=0)
    assert run.last_loss < 1.0
    assert problems(run) == {}


def test_nan_in_the_middle_names_the_layer() -> None:
    finding = problems(train(spoil_at=60))["non_finite_loss"]
    assert finding.step == 61
    assert "blocks.1.up" in finding.message


@pytest.mark.parametrize("part", ["tokens", "head"])
def test_a_part_that_is_not_in_the_optimizer_is_named(part: str) -> None:
    run = train(left_out=part)
    named = [it for it in run.findings if it.problem == "unchanged_weights"]
    assert named and named[0].layers == [part]


def warnings_of(run: Any) -> dict[str, Any]:
    return {it.problem: it for it in run.findings if it.severity == "warning"}


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_healthy_gpt_has_no_warning(seed: int) -> None:
    assert warnings_of(train(seed=seed)) == {}


def test_a_head_with_a_tiny_rate_is_named() -> None:
    finding = warnings_of(train(slow="head"))["uneven_updates"]
    assert finding.layers == ["head"]
    assert "do not learn" in finding.message


def test_growing_attention_logits_are_named() -> None:
    finding = warnings_of(train(grow=("blocks.1.qkv.weight", 1.03)))["attention_drift"]
    assert finding.layers == ["blocks.1 (attention)"]


def test_growing_outputs_are_named() -> None:
    # The norm after it keeps the loss low.
    finding = warnings_of(train(grow=("blocks.1.down.weight", 1.1)))["output_drift"]
    assert finding.layers == ["blocks.1.down"]


def test_a_warm_up_longer_than_the_training_is_found() -> None:
    assert "still rises" in warnings_of(train(warmup=1000))["improper_warmup"].message


def test_a_high_rate_without_warm_up_is_found() -> None:
    assert "full learning rate" in warnings_of(train(lr=0.3, warmup=0))["improper_warmup"].message


def test_attention_is_called_as_before_after_the_watch() -> None:
    original = F.scaled_dot_product_attention
    train(steps=3)
    assert F.scaled_dot_product_attention is original
