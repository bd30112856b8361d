"""Exact samplers for a million draws at once, on NumPy arrays.

A coin of bias p is decided by comparing fresh random bits with the binary expansion of p, eight
bits first (which settles 255 coins of 256) and 64 at a time for the rest. A geometric number is
assembled from its binary digits, which are independent coins. Floating point is nowhere used.

Proof:      docs/proofs/samplers.md
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.noise.balls import ball, below, precision
from privmax.noise.blocks import blocks_for
from privmax.noise.coins import Coins
from privmax.numbers import whole

_FIRST, _REST = 8, 64
_LARGEST_SCALE = 1 << 48
"""Beyond this the digits of a draw could overflow 64 bits (the quotient below is tiny but not
bounded).
"""

_LARGEST_VARIANCE = _LARGEST_SCALE**2

_CHUNK = 1 << 16
"""Gaussian draws at a time, so that what is drawn stays in the processor's cache."""


def bernoulli(
    chance: Callable[[], arb], size: int, coins: Coins, *, rest: bool = False
) -> NDArray[np.bool_]:
    """Toss `size` independent coins, each True with probability `chance()`.

    Args:
        chance: Computes a real strictly between 0 and 1 at the precision in force.
        size: How many.
        coins: Where random bits come from.
        rest: The probability is 1 − `chance()` instead, which must be irrational. Where it is close
            to 1, its digits are found at a low precision only through what is missing to 1.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> bernoulli(lambda: (-ball(Fraction(1000))).exp(), 3, SYSTEM).tolist()
        [False, False, False]
    """
    whole("size", size, least=0)
    word, done = _digits(chance, 0, _FIRST, rest=rest), _FIRST
    drawn = np.frombuffer(coins.bytes(size), np.uint8)
    heads: NDArray[np.bool_] = drawn < word
    # A coin whose bits equal those of p so far is undecided. Ends: each round leaves one in 2^64 of
    # them.
    open_ = np.flatnonzero(drawn == word)
    while open_.size:
        long_word = np.uint64(_digits(chance, done, _REST, rest=rest))
        done += _REST
        drawn_long = np.frombuffer(coins.bytes(8 * open_.size), np.uint64)
        heads[open_] = drawn_long < long_word
        open_ = open_[drawn_long == long_word]
    return heads


def bernoulli_exp(x: Fraction, size: int, coins: Coins) -> NDArray[np.bool_]:
    """Toss `size` independent coins, each True with probability e^−x, for a rational x ≥ 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> bernoulli_exp(Fraction(0), 3, SYSTEM).tolist()
        [True, True, True]
    """
    if x < 0:
        raise ParameterError("x", x, "it must be 0 or above")
    if x == 0:
        return np.ones(whole("size", size, least=0), np.bool_)
    return bernoulli(lambda: (-ball(x)).exp(), size, coins)


def geometric(x: Fraction, size: int, coins: Coins) -> NDArray[np.int64]:
    """Draw `size` independent k ≥ 0 with P(k or more) = e^−kx, for a rational x > 0.

    Raises:
        ParameterError: x is below 2^−48.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> geometric(Fraction(1000), 3, SYSTEM).tolist()
        [0, 0, 0]
    """
    if not x * _LARGEST_SCALE >= 1:
        raise ParameterError("x", x, "it must be at least 2^-48", "Draw one at a time below that.")
    low_digits = max(0, (-(-2 // x) - 1).bit_length())  # so that 2^low_digits · x ≥ 2
    total = np.zeros(whole("size", size, least=0), np.int64)
    for digit in range(low_digits):
        total += (
            bernoulli(partial(_digit_chance, x * (1 << digit)), size, coins).astype(np.int64)
            << digit
        )
    # The quotient by 2^low_digits is geometric too, of rate at least 2: count its successes, of
    # which 1 in 7 goes on.
    alive = np.arange(size)
    while alive.size:
        alive = alive[bernoulli_exp(x * (1 << low_digits), alive.size, coins)]
        total[alive] += 1 << low_digits
    return total


def discrete_laplace(scale: Fraction, size: int, coins: Coins) -> NDArray[np.int64]:
    """Draw `size` independent k with probability proportional to e^(−|k|/scale).

    Args:
        scale: A rational above 0, at most 2^48.
        size: How many.
        coins: Where random bits come from.

    Raises:
        ParameterError: The scale is out of bounds.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> discrete_laplace(Fraction(1, 1000), 3, SYSTEM).tolist()
        [0, 0, 0]
    """
    if not 0 < scale <= _LARGEST_SCALE:
        raise ParameterError("scale", scale, "it must be above 0 and at most 2^48")
    x = 1 / scale
    draws = geometric(x, size, coins) + 1
    draws[bernoulli(partial(_nonzero_chance, x), size, coins, rest=True)] = 0
    signs = np.frombuffer(coins.bytes((size + 7) // 8), np.uint8)
    np.negative(draws, where=np.unpackbits(signs, count=size).view(np.bool_), out=draws)
    return draws


def discrete_gaussian(variance: Fraction, size: int, coins: Coins) -> NDArray[np.int64]:
    """Draw `size` independent k with probability proportional to e^(−k² / (2·variance)).

    Args:
        variance: A rational above 0, at most 2^96.
        size: How many.
        coins: Where random bits come from.

    Raises:
        ParameterError: The variance is out of bounds, or the size is no whole number.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> discrete_gaussian(Fraction(1, 1000), 3, SYSTEM).tolist()
        [0, 0, 0]
    """
    if not 0 < variance <= _LARGEST_VARIANCE:
        raise ParameterError("variance", variance, "it must be above 0 and at most 2^96")
    draws = np.empty(whole("size", size, least=0), np.int64)
    blocks = blocks_for(Fraction(variance))
    for start in range(0, size, _CHUNK):
        part = draws[start : start + _CHUNK]
        part[:], missing = blocks.draw(part.size, coins)
        # Ends with probability one: each round accepts with probability above 9/10.
        while missing.size:
            part[missing], rejected = blocks.draw(missing.size, coins)
            missing = missing[rejected]
    return draws


def _digit_chance(rate: Fraction) -> arb:
    """The chance that a binary digit of a geometric number is 1, `rate` being x times the worth of
    the digit.
    """
    return 1 / (1 + ball(rate).exp())


def _nonzero_chance(x: Fraction) -> arb:
    """The chance 1 − tanh(x/2) that discrete Laplace noise of scale 1/x is not 0."""
    less = (-ball(x)).exp()
    return 2 * less / (1 + less)


def _digits(chance: Callable[[], arb], skip: int, count: int, *, rest: bool) -> int:
    """Binary digits skip+1 … skip+count of the real `chance()`, as an integer; of 1 − `chance()`
    instead, which has the opposite ones, for the `rest`.

    Ends: every chance used is irrational (e^x is transcendental at rational x ≠ 0) or a short
    binary fraction.
    """
    bits = skip + count + 64
    while True:
        with precision(bits):
            value = chance() * (1 << (skip + count))
            low, high = below(value), below(value.upper())
        if low == high:
            return (~low if rest else low) & ((1 << count) - 1)
        bits *= 2
