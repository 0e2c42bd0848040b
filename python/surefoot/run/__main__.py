"""Executes a script: ``python -m surefoot.run OPTIONS``, with the options of ``surefoot run`` as JSON."""

from __future__ import annotations

import sys

from surefoot.run.launch import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
