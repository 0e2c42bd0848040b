"""Execution of unmodified training scripts: repeatable, recorded and resumable to the bit.

``launch`` executes a script, ``keys`` and ``loaders`` replace its randomness, ``environment`` fixes what else differs
between executions, ``record`` writes digests of every step, ``loops`` counts its training loops, and ``checkpoint``
saves and restores what they carry.
"""

from __future__ import annotations

from surefoot.run.runtime import deterministic

__all__ = ["deterministic"]
