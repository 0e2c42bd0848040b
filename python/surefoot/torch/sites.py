"""Places in the user's source where modules and optimizers are created."""

from __future__ import annotations

import functools
import sys
import sysconfig
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from surefoot.source import Position


@dataclass(frozen=True)
class Site:
    """A call in a source file that created an object."""

    filename: str
    position: Position


_untyped_dictionary: Any = WeakIdKeyDictionary
_SITES: Any = _untyped_dictionary()
_LIBRARIES = tuple(
    str(Path(sysconfig.get_path(name)).resolve()) for name in ("stdlib", "purelib", "platlib")
) + (str(Path(torch.__file__).resolve().parent), str(Path(__file__).resolve().parent))


@functools.lru_cache(maxsize=1024)
def is_user_file(filename: str) -> bool:
    """Returns True for source of the user: neither a library nor generated code.

    Example:
        >>> import torch
        >>> is_user_file("train.py"), is_user_file(torch.__file__), is_user_file("<string>")
        (True, False, False)
    """
    if filename.startswith("<") and "ipython" not in filename:
        return False
    path = str(Path(filename).resolve())
    return not path.startswith(_LIBRARIES)


def position_of(frame: FrameType) -> Position:
    """Returns the position of the expression that a frame evaluates."""
    if sys.version_info >= (3, 11):
        positions = frame.f_code.co_positions()
        found = next(islice(positions, frame.f_lasti // 2, None), None)
        if found is not None:
            return found
    return (frame.f_lineno, None, None, None)


def _note(created: object) -> None:
    frame: FrameType | None = sys._getframe(2)
    # The constructors of the object's own classes.
    while frame is not None and frame.f_code.co_name == "__init__":
        first = frame.f_code.co_varnames[:1]
        if not first or frame.f_locals.get(first[0]) is not created:
            break
        frame = frame.f_back
    if frame is not None and is_user_file(frame.f_code.co_filename):
        _SITES[created] = Site(frame.f_code.co_filename, position_of(frame))


def site_of(created: object) -> Site | None:
    """Returns the place where a module or an optimizer was created, if it was recorded."""
    site: Site | None = _SITES.get(created)
    return site


def record_sites() -> None:
    """Records the places where modules and optimizers are created from now on.

    It costs a few microseconds per module and nothing in training. Advice about objects created before is
    found in the source alone, which fails more often.
    """
    for cls in (nn.Module, torch.optim.Optimizer):
        _observe(cls)


def _observe(cls: Any) -> None:
    original = cls.__init__
    if hasattr(original, "_surefoot_records"):
        return

    @functools.wraps(original)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        if not torch.compiler.is_compiling():
            try:
                _note(self)
            except Exception:  # An object without a known place.
                _SITES.pop(self, None)
        original(self, *args, **kwargs)

    setattr(init, "_surefoot_records", True)
    cls.__init__ = init
