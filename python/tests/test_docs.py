"""The examples of the guides run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def run_example(guide: str, call: str) -> dict[str, Any]:
    """Runs the example of a guide that contains a call, and returns its variables."""
    blocks = re.findall(r"```python\n(.*?)```", (DOCS / guide).read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [it for it in blocks if call in it and "import" in it]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example.py", "exec"), names)
    return names


@pytest.mark.parametrize("call", ["surefoot.repair(train)", "surefoot.keras.fit("])
def test_an_example_of_the_guide_runs(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch" if "keras" not in call else "keras")
    monkeypatch.chdir(tmp_path)
    names = run_example("python.md", call)
    assert names["result"].status == "repaired"
    assert (tmp_path / names["result"].run / "summary.json").is_file()


@pytest.mark.parametrize("call", ["tune(objective, trials=30)", "resume=True"])
def test_an_example_of_a_search_runs(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    monkeypatch.chdir(tmp_path)
    study = run_example("tune-python.md", call)["study"]
    assert not [it.traceback for it in study.trials if it.state == "failed"]
    assert study.best_value is not None
    assert call != "resume=True" or "paused" in [it.state for it in study.trials]
