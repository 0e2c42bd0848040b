"""Some scripts of the corpus, executed twice, killed and resumed with another number of workers: equal digests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="PyTorch is not installed")

ROOT = Path(__file__).parents[2]
# Parameters changed without an optimizer; averages of weights; two optimizers.
NAMES = ("torch_lstm_chars", "torch_ema_resnet", "torch_gan")


def test_scripts_of_the_corpus_are_repeatable_and_resumable() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
    command = [sys.executable, str(ROOT / "eval/run/corpus.py"), "pytorch", *NAMES]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert len(results) == 2 * len(NAMES), done.stderr
    assert [result for result in results if not result["exact"]] == []
    assert done.returncode == 0
