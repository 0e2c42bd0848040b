"""Reads and writes the variables of the frames of a program."""

from __future__ import annotations

import ctypes
import inspect
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def is_module(frame: FrameType) -> bool:
    """Returns true if the variables of the frame are those of its module."""
    # Not by comparing dictionaries: reading those of a function discards assignments to its variables.
    return not frame.f_code.co_flags & inspect.CO_OPTIMIZED


def chain(frame: FrameType | None, is_program: Callable[[str], bool]) -> list[FrameType]:
    """Frames of functions of the program that are being executed, outermost first."""
    found = []
    while frame is not None:
        if is_program(frame.f_code.co_filename) and not is_module(frame):
            found.append(frame)
        frame = frame.f_back
    return found[::-1]


def name_of(frame: FrameType) -> str:
    """Name of the function of a frame."""
    return getattr(frame.f_code, "co_qualname", frame.f_code.co_name)


def assign(frame: FrameType, values: dict[str, Any]) -> None:
    """Sets variables of a frame, of a function too."""
    if not values:
        return
    variables = frame.f_locals
    variables.update(values)
    if sys.version_info < (3, 13) and not is_module(frame):
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
