"""``surefoot.board``: the live page of runs and studies, from a notebook or a script."""

from __future__ import annotations

import atexit
import html
import json
import os
import subprocess
import sys
from pathlib import Path


class Board:
    """A board that runs in a process of its own, until :meth:`stop` or the end of this process.

    In a notebook it is shown inline.
    """

    def __init__(self, url: str, process: subprocess.Popen[str]) -> None:
        self.url = url
        """Address of the page, with the token if it needs one."""
        self._process = process
        atexit.register(self.stop)

    def stop(self) -> None:
        """Ends the board."""
        if self._process.poll() is None:
            self._process.terminate()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        atexit.unregister(self.stop)

    def __repr__(self) -> str:
        return f"Board({self.url!r})"

    def _repr_html_(self) -> str:
        url = html.escape(self.url)
        return (
            f'<p><a href="{url}" target="_blank" rel="noopener">surefoot board</a></p>'
            f'<iframe src="{url}" title="surefoot board" width="100%" height="800" style="border: 0"></iframe>'
        )


def board(*paths: str | Path, host: str = "127.0.0.1", port: int | None = None) -> Board:
    """Starts ``surefoot board`` and returns it.

    Args:
        paths: Directories with runs and studies, or stores; by default ``runs``.
        host: Address to listen on. Addresses other than loopback require the token in :attr:`Board.url`.
        port: Port; by default 6060 or the next free one, and 0 takes any free one.

    Example:
        >>> import surefoot
        >>> board = surefoot.board("runs", port=0)
        >>> board.url.startswith("http://127.0.0.1:")
        True
        >>> board.stop()
    """
    command = [sys.executable, "-m", "surefoot", "board", "--json", "--host", host]
    if port is not None:
        command += ["--port", str(port)]
    # The process imports this package even if only this one has it in its path.
    path = [str(Path(__file__).parent.parent), os.environ.get("PYTHONPATH", "")]
    process = subprocess.Popen(
        [*command, "--", *(str(path) for path in paths or ("runs",))],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, path))},
        # An interrupt of the notebook does not end the board.
        start_new_session=True,
    )
    assert process.stdout is not None and process.stderr is not None
    line = process.stdout.readline()
    if not line:
        message = process.stderr.read().strip()
        process.wait()
        raise ValueError(message.removeprefix("error: ") or "surefoot board ended at once")
    # Nothing is printed later; a full pipe would stop the server.
    process.stderr.close()
    return Board(json.loads(line)["url"], process)


def inline(page: str) -> str:
    """A report as an element of a notebook, in a frame of its own without scripts."""
    return (
        f'<iframe srcdoc="{html.escape(page)}" title="surefoot report" sandbox="" width="100%" height="700" '
        'style="border: 0"></iframe>'
    )
