"""Floats as other machines compute them: every sum and product is rounded another way."""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

MODES = {"nearest": 0, "downward": 0x400, "upward": 0x800, "toward zero": 0xC00}
"""The numbers that fesetround of x86 knows them by."""


@contextmanager
def rounding(mode: str) -> Iterator[None]:
    """Let the processor round every sum and every product of floats another way."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("how floats are rounded is set for x86 and Linux")
    library = ctypes.CDLL("libm.so.6")
    assert library.fesetround(MODES[mode]) == 0
    try:
        yield
    finally:
        library.fesetround(0)
