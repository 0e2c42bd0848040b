"""The ``surefoot`` command."""

from __future__ import annotations

import signal
import sys

from surefoot import _core


def main() -> int:
    """Runs the command line of this process and returns its exit code."""
    # Python's handler would only set a flag that no bytecode is left to read.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core.command(sys.argv[1:], [sys.executable, "-m", "surefoot"])


if __name__ == "__main__":
    sys.exit(main())
