"""NumPy, loaded when something of it is first used.

Importing it takes longer than most answers, and counting the rows of a file in DuckDB needs none
of it. Laws and plans write `from privmax.deferred import np`. A module whose draws, or whose
reading, may need NumPy imports it itself, or calls `load` where the question alone says that they
may: when it is loaded must not follow from the data.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import numpy as np
else:

    class _Deferred:
        """The contents of another module, which are loaded with the first of it."""

        def __init__(self, module: str) -> None:
            self._module = module

        def __getattr__(self, name: str) -> Any:
            value = getattr(import_module(self._module), name)
            setattr(self, name, value)
            return value

    np = _Deferred("numpy")

__all__ = ["is_numpy", "load", "np"]


def load() -> None:
    """Load NumPy, which draws from here on may need.

    Examples:
        >>> load()
        >>> "numpy" in sys.modules
        True
    """
    import_module("numpy")


def is_numpy(value: object, kind: str = "generic") -> TypeGuard[np.generic]:
    """Return whether a value is a scalar of NumPy of some kind, without loading NumPy to find out.

    Examples:
        >>> is_numpy(1), is_numpy(np.int64(1)), is_numpy(np.int64(1), "complexfloating")
        (False, True, False)
    """
    return "numpy" in sys.modules and isinstance(value, getattr(np, kind))
