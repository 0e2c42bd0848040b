"""The examples of the guides run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.parametrize("call", ["surefoot.repair(train)", "surefoot.keras.fit("])
def test_an_example_of_the_guide_runs(call: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch" if "keras" not in call else "keras")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [it for it in blocks if call in it and "import" in it]
    names: dict[str, Any] = {"__name__": "example"}
    exec(compile(example, "example.py", "exec"), names)
    assert names["result"].status == "repaired"
    assert (tmp_path / names["result"].run / "summary.json").is_file()
