"""``surefoot train --approve`` on a terminal."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

import surefoot

pty = pytest.importorskip("pty", reason="terminals are of Unix")

PLAN = Path(__file__).parents[2] / "examples" / "problems" / "vanishing-gradient.toml"


def train(directory: Path, answer: str, wait: float = 0.0) -> tuple[int, str]:
    """Trains a plan with a vanishing gradient, answers every question, and returns exit code and output."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "surefoot", "train", str(PLAN), "--approve"]
    environment = {**os.environ, "PYTHONPATH": str(Path(surefoot.__file__).parent.parent)}
    process = subprocess.Popen(command, cwd=directory, env=environment, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = ""
    answered = 0
    while True:
        try:
            piece = os.read(ours, 65536)
        except OSError:  # Linux reports the end of a terminal as an error.
            break
        if not piece:
            break
        text += piece.decode()
        while answered < text.count("[q]uit repairing: "):
            time.sleep(wait)
            os.write(ours, f"{answer}\n".encode())
            answered += 1
    os.close(ours)
    return process.wait(timeout=60), re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", text)


def test_quitting_delivers_the_plan_as_given_and_does_not_count_the_wait(tmp_path: Path) -> None:
    code, text = train(tmp_path, "q", wait=3.0)
    assert code == 1
    assert "the repair was declined" in text and "Try activation?" in text
    assert text.count("[q]uit") == 1 and text.count("parameters   3,057") == 1
    # The same change of twelve layers is shown once.
    assert text.count('+ activation = "selu"') <= 2 and "times)" in text
    (summary,) = tmp_path.glob("runs/*/summary.json")
    content = json.loads(summary.read_text())
    assert (content["status"], content["remedies"], content["steps"]) == ("problem", [], 1500)
    assert content["seconds"] < 3.0


def test_an_approved_remedy_repairs(tmp_path: Path) -> None:
    code, text = train(tmp_path, "yes")
    assert code == 0 and "repaired" in text
