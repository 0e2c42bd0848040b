"""Some scripts of the corpus, executed twice, killed and resumed with another number of workers: equal digests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

ROOT = Path(__file__).parents[2]
# Parameters changed without an optimizer; averages of weights; two optimizers.
NAMES = ("torch_lstm_chars", "torch_ema_resnet", "torch_gan")


def execute(program: str, *arguments: str) -> tuple[int, list[dict[str, Any]], str]:
    """Executes a program of `eval/run`; returns its exit code, results and messages."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(ROOT / "eval/run" / program), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return done.returncode, results, done.stderr


def test_scripts_of_the_corpus_are_repeatable_and_resumable() -> None:
    code, results, errors = execute("corpus.py", "pytorch", *NAMES)
    assert len(results) == 2 * len(NAMES), errors
    assert [result for result in results if not result["exact"]] == []
    assert code == 0


def test_run_saves_what_check_derives() -> None:
    code, results, errors = execute("derivation.py", *NAMES)
    assert len(results) == len(NAMES), errors
    assert all("model" in result["derived"] or "net_g" in result["derived"] for result in results), results
    assert [result for result in results if result["not_saved"]] == []
    assert code == 0
