"""Repeatable randomness, for tests only: a seeded source is predictable, so not private."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable
from fractions import Fraction
from typing import TypeVar

from privmax.noise.coins import Coins

T = TypeVar("T", bound=Hashable)


class OutOfCoinsError(Exception):
    """A script of coins has ended; `missing` more are wanted."""

    def __init__(self, missing: int) -> None:
        super().__init__(f"the script is {missing} coins short")
        self.missing = missing


class SeededCoins:
    """The same bits for the same seed, from SHAKE-256 in counter mode."""

    def __init__(self, seed: int | str) -> None:
        self._seed = str(seed)
        self._block = 0
        self._pool = self._left = 0

    def bits(self, n: int) -> int:
        while self._left < n:
            text = f"{self._seed}/{self._block}".encode()
            self._pool = self._pool << 4096 | int.from_bytes(
                hashlib.shake_256(text).digest(512), "big"
            )
            self._left += 4096
            self._block += 1
        self._left -= n
        value = self._pool >> self._left
        self._pool &= (1 << self._left) - 1
        return value

    def bytes(self, n: int) -> bytes:
        self._block += 1
        return hashlib.shake_256(f"{self._seed}/bulk/{self._block}".encode()).digest(n)


class ScriptedCoins:
    """Exactly the given bits, then OutOfCoinsError."""

    def __init__(self, script: int, length: int) -> None:
        self._script, self._left = script, length

    def bits(self, n: int) -> int:
        if n > self._left:
            raise OutOfCoinsError(n - self._left)
        self._left -= n
        return self._script >> self._left & (1 << n) - 1

    def bytes(self, n: int) -> bytes:
        return self.bits(8 * n).to_bytes(n, "big")


def walk(draw: Callable[[Coins], T], depth: int) -> tuple[dict[T, Fraction], Fraction]:
    """Run `draw` on every script of `depth` coins, and add up the mass of each outcome.

    Returns it with the mass that does not finish.

    The true probability of an outcome lies between its mass and its mass plus what is unfinished.
    Scripts are extended only where the draw asks for more, so the cost follows the entropy of the
    draw and not 2^depth.
    """
    finished: dict[T, Fraction] = {}
    unfinished = Fraction(0)
    scripts = [(0, 0)]
    while scripts:
        script, length = scripts.pop()
        try:
            outcome = draw(ScriptedCoins(script, length))
        except OutOfCoinsError as short:
            if length + short.missing > depth:
                unfinished += Fraction(1, 1 << length)
            else:
                scripts += [
                    (script << short.missing | tail, length + short.missing)
                    for tail in range(1 << short.missing)
                ]
        else:
            finished[outcome] = finished.get(outcome, Fraction(0)) + Fraction(1, 1 << length)
    return finished, unfinished


def __dir__() -> list[str]:
    return __all__


__all__ = ["OutOfCoinsError", "ScriptedCoins", "SeededCoins", "walk"]
