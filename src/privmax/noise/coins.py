"""The sources of random bits: the operating system, unless a test scripts them."""

from __future__ import annotations

import os
import threading
from typing import Protocol


class Coins(Protocol):
    """A stream of independent fair bits."""

    def bits(self, n: int) -> int:
        """Return the next `n` bits as an integer in [0, 2^n)."""
        ...

    def bytes(self, n: int) -> bytes:
        """Return `n` fresh random bytes, for bulk sampling."""
        ...


class SystemCoins:
    """Bits from the operating system's generator, bought 512 bytes at a time.

    Each thread has its own buffer, and a forked child starts with an empty one: no bit is ever used
    twice.

    Examples:
        >>> 0 <= SystemCoins().bits(3) < 8, len(SystemCoins().bytes(5))
        (True, 5)
    """

    _block = 512

    def __init__(self) -> None:
        self._local = threading.local()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def bits(self, n: int) -> int:
        pool: int = getattr(self._local, "pool", 0)
        left: int = getattr(self._local, "left", 0)
        while left < n:
            pool = pool << 8 * self._block | int.from_bytes(os.urandom(self._block), "big")
            left += 8 * self._block
        left -= n
        self._local.left = left
        self._local.pool = pool & (1 << left) - 1
        return pool >> left

    def bytes(self, n: int) -> bytes:
        return os.urandom(n)

    def _forget(self) -> None:
        self._local = threading.local()


SYSTEM = SystemCoins()
"""The source of every bit outside of tests."""
