"""Pastes generated checkpoint code into a script, and executes it.

    python3 restart.py SCRIPT LINE SAVE RESTORE

LINE is that of a training loop; SAVE and RESTORE are files with the generated code. The script runs once
without an interruption, then it is interrupted after its second checkpoint and resumed. Both must end with
the same bits: the exit code is 1 otherwise.
"""

from __future__ import annotations

import ast
import hashlib
import os
import runpy
import sys
import tempfile
import textwrap
from pathlib import Path

import torch


class Interrupted(BaseException):
    """Ends the script after a checkpoint. Not an `Exception`, so that no script catches it."""


def pasted(text: str, line: int, save: str, restore: str) -> str:
    """Adds the code to the loop at a line; the loop starts with the restored iteration."""
    module = ast.parse(text)
    loops = (ast.For, ast.While)
    loop = next(it for it in ast.walk(module) if isinstance(it, loops) and it.lineno == line)
    loop.body += ast.parse(save).body
    restoring = ast.parse(f"import os\nif os.path.exists(path):\n{textwrap.indent(restore, '    ')}").body
    before: list[ast.stmt] = ast.parse("path = 'checkpoint.pt'").body
    if isinstance(loop, ast.For) and isinstance(loop.target, ast.Name):
        first = f"first_{loop.target.id}"
        before += ast.parse(f"{first} = 0").body
        if isinstance(loop.iter, ast.Call) and len(loop.iter.args) == 1:
            loop.iter.args.insert(0, ast.Name(first, ast.Load()))
    for parent in ast.walk(module):
        body = getattr(parent, "body", None)
        if isinstance(body, list) and loop in body:
            body[body.index(loop) : body.index(loop)] = before + restoring
    return ast.unparse(ast.fix_missing_locations(module))


def digest(script: Path, folder: Path, interrupt: int) -> str:
    """Runs the script in a folder; the hash of the model that it leaves, or nothing if it was interrupted."""
    save, count = torch.save, 0

    def counted(value: object, file: object) -> None:
        nonlocal count
        save(value, file)
        count += 1
        if count == interrupt:
            raise Interrupted

    os.chdir(folder)
    torch.save = counted
    try:
        end = runpy.run_path(str(script), run_name="__main__")
    except Interrupted:
        return ""
    finally:
        torch.save = save
    state = end["model"].state_dict()
    hasher = hashlib.sha256()
    for name in sorted(state):
        hasher.update(state[name].numpy().tobytes())
    return hasher.hexdigest()


def main(script: str, line: str, save: str, restore: str) -> int:
    """Compares an interrupted run with an uninterrupted one; the exit code."""
    code = pasted(Path(script).read_text(), int(line), Path(save).read_text(), Path(restore).read_text())
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        changed = root / "script.py"
        changed.write_text(code)
        for name in ("whole", "parts"):
            (root / name).mkdir()
        whole = digest(changed, root / "whole", 0)
        if digest(changed, root / "parts", 2):
            print("the script was not interrupted")
            return 1
        resumed = digest(changed, root / "parts", 0)
    if whole != resumed:
        print(f"{script}: a resumed run ends with other bits\n{code}")
    return int(whole != resumed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
