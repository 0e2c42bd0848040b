"""Compares what `surefoot check` derives for a checkpoint with what `surefoot run` saves.

    python eval/run/derivation.py [NAME...]

NAME is a PyTorch script of the corpus. Its sound form is checked, and executed with `surefoot run`. Prints one JSON
object per script: `derived` are the members that `check` lists, `not_saved` those of them that no checkpoint of `run`
holds, and `not_derived` the values that change from one iteration to another and that `check` does not list. The exit
code is 1 if anything is not saved.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import corpus
from surefoot.run import checkpoint, launch

GENERATORS = ("python", "numpy", "torch")


def derived(script: Path) -> dict[str, str]:
    """Members of the script's checkpoint according to `check`: names and kinds."""
    command = [sys.executable, "-m", "surefoot", "check", "--json", str(script)]
    lines = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    events = [json.loads(line) for line in lines]
    members = [m for event in events if event["event"] == "checkpoint" for m in event["members"]]
    return {member["name"]: member["kind"] for member in members}


def observe(script: Path, result: Path) -> None:
    """Executes a script and writes what its checkpoints hold."""
    saver_class = checkpoint.Saver
    defaults = {"arguments": [], "runs": "records", "every": 1, "seed": 0, "resume": None, "recover": False}
    run = launch.Launch(launch.Options(script=str(script), replay=False, **defaults))
    checkpoints: Any = run.checkpoints
    heads: list[dict[str, Any]] = []

    def saver_of_plain_values(baseline: Any, saves_gradients: bool, **_: Any) -> Any:
        return saver_class(baseline, saves_gradients, keeps_unchanged=True)

    checkpoint.Saver = saver_of_plain_values  # type: ignore

    def head(entry: Any) -> None:
        if run.runtime.recording.step > 0:
            saver = checkpoints._walk(entry, None)
            heads.append({"frames": checkpoints._frames, "modules": checkpoints._modules, "nodes": saver.nodes})
            heads[-1]["digests"] = saver.digests
            del heads[1:-1]

    checkpoints.loops.on_head = head
    code = run.execute()
    result.write_text(json.dumps({"code": code, "heads": heads}))


def is_saved(name: str, head: dict[str, Any]) -> bool:
    """True if the variable or attribute `name`, such as `trainer.best`, is in the state at the head of a loop."""
    first, *rest = name.split(".")
    scopes = [frame["values"] for frame in head["frames"]] + list(head["modules"].values())
    for scope in scopes:
        if first not in scope:
            continue
        value = scope[first]
        for part in rest:
            node = head["nodes"][value["ref"]] if isinstance(value, dict) and "ref" in value else {}
            # Other nodes, such as those of an optimizer, are saved whole.
            value = node.get("v", {}).get(part, {"keep": True}) if node.get("t") == "object" else value
        if value != {"keep": True}:
            return True
    return False


def compare(name: str, script: Path) -> dict[str, Any]:
    """Compares the two derivations for one script."""
    members = derived(script)
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.json"
        child = os.fork()
        if child == 0:
            os.chdir(folder)
            output = os.open("output.txt", os.O_WRONLY | os.O_CREAT)
            os.dup2(output, 1)
            os.dup2(output, 2)
            try:
                observe(script, result)
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        found = json.loads(result.read_text()) if result.exists() else {"heads": []}
        output_text = (Path(folder) / "output.txt").read_text()
    if len(found["heads"]) < 2:
        return {"script": name, "error": output_text[-500:]}
    before, after = found["heads"]
    wanted = [member for member, kind in members.items() if kind != "position" and member not in GENERATORS]
    changed = {path for path, digest in after["digests"].items() if before["digests"].get(path) != digest}
    # Paths without the name of the function, and without the parts of an object.
    names = sorted({".".join(path.split(".")[1:3]) for path in changed})
    known = [n for n in names if any(n == m or n.startswith(f"{m}.") or m.startswith(f"{n}.") for m in members)]
    return {
        "script": name,
        "derived": sorted(members),
        "not_saved": [member for member in wanted if not is_saved(member, after)],
        "not_derived": [n for n in names if n not in known],
    }


def main(names: list[str]) -> int:
    """Compares the scripts with these names, or all of PyTorch; returns the exit code."""
    import torch

    torch.set_num_threads(1)
    results = [compare(name, path) for name, path in corpus.scripts(["pytorch"], names) if name.endswith("/sound")]
    for result in results:
        print(json.dumps(result), flush=True)
    return 1 if any("error" in result or result["not_saved"] for result in results) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
