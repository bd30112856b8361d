"""Exact samplers for a million draws at once, on NumPy arrays.

A coin of bias p is decided by comparing fresh random bits with the binary expansion of p, eight
bits first (which settles 255 coins of 256) and 64 at a time for the rest. A geometric number is
assembled from its binary digits, which are independent coins. No float decides an outcome.

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
from privmax.noise.balls import START, above, ball, below, precision
from privmax.noise.blocks import blocks_for
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform
from privmax.numbers import whole

_FIRST, _REST = 8, 64
LARGEST_SCALE = 1 << 48
"""Beyond this the digits of a draw could overflow 64 bits (the quotient below is tiny but not
bounded).
"""

_LARGEST_VARIANCE = LARGEST_SCALE**2

_SMALLEST_ROUNDED = 1 << 10
"""One over the least variance of a rounded Gaussian: below it nearly all draws are rejected."""

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


def bernoulli_real(chance: Callable[[], arb], size: int, coins: Coins) -> NDArray[np.bool_]:
    """Toss `size` independent coins, each True with probability `chance()`, any real from 0 to 1.

    It may be 0, 1 or a fraction that balls never tell from its neighbors, at which `bernoulli`
    would not end. A coin costs 64 bits.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> bernoulli_real(lambda: arb(1), 3, SYSTEM).tolist()
        [True, True, True]
    """
    with precision(START):
        scaled = chance() * (1 << _REST)
        least, most = below(scaled), above(scaled)
    words = np.frombuffer(coins.bytes(8 * whole("size", size, least=0)), np.uint64)
    heads, tails = _lie_below(words, least), ~_lie_below(words, most)
    for place in np.flatnonzero(~heads & ~tails).tolist():
        uniform = Uniform(coins)
        uniform.known, uniform.length = int(words[place]), _REST
        heads[place] = uniform.left_of(chance)
    return heads


def _lie_below(words: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    """Return which words of 64 bits are below a whole number, which may have more."""
    if not 0 < limit < 1 << _REST:
        return np.full(words.shape, limit > 0)
    return words < np.uint64(limit)


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
    if not x * LARGEST_SCALE >= 1:
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
    if not 0 < scale <= LARGEST_SCALE:
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


def rounded_gaussian(variance: Fraction, size: int, coins: Coins) -> NDArray[np.int64]:
    """Draw `size` independent ⌊x⌋, where x is normal with mean 0 and this variance.

    A whole number j comes with probability proportional to e^(−j²/(2·variance)), and with a coin
    for the side away from 0: together they stand for the cell from j to j + 1, or to j − 1. The
    cell is kept with the mean of e^(−u(2|j| + u)/(2·variance)) over u in it, which makes its chance
    that of the normal distribution.

    Args:
        variance: A rational from 2^−10 to 2^96.
        size: How many.
        coins: Where random bits come from.

    Raises:
        ParameterError: The variance is out of bounds, or the size is no whole number.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> set(rounded_gaussian(Fraction(1, 1000), 3, SYSTEM).tolist()) <= {-1, 0}
        True
    """
    if variance * _SMALLEST_ROUNDED < 1:
        raise ParameterError("variance", variance, "it must be at least 2^-10")
    draws = np.empty(whole("size", size, least=0), np.int64)
    missing = np.arange(size)
    # Ends with probability one: a draw is kept with probability √(2πv)/(2·Σ e^(−j²/(2v))), which
    # from a variance of 1 on is above 0.49.
    while missing.size:
        cells = discrete_gaussian(variance, missing.size, coins)
        bits = np.frombuffer(coins.bytes((missing.size + 7) // 8), np.uint8)
        upward = np.unpackbits(bits, count=missing.size).view(np.bool_)
        kept = np.where(upward, cells >= 0, cells <= 0)
        places, cells, upward = missing[kept], cells[kept], upward[kept]
        accepted = _stays_within_cell(np.abs(cells), variance, coins)
        draws[places[accepted]] = np.where(upward, cells, cells - 1)[accepted]
        kept[kept] = accepted
        missing = missing[~kept]
    return draws


def _stays_within_cell(
    starts: NDArray[np.int64], variance: Fraction, coins: Coins
) -> NDArray[np.bool_]:
    """Toss a coin for each cell that begins `starts` away from 0: is it kept?

    Its chance is at least 1 − (2·start + 1)/(2·variance), so that 64 bits of the coin settle nearly
    all of them where the variance is large; the rest are decided in balls, bit by bit.
    """
    words = np.frombuffer(coins.bytes(8 * starts.size), np.uint64)
    # Floats with room: both sides are off by some 2^−51 of themselves, and 2^−40 is added.
    limit = (2.0 * starts + 1) * (float(1 / (2 * variance)) * 2.0**64 * (1 + 2.0**-40))
    kept: NDArray[np.bool_] = (~words).astype(np.float64) * (1 - 2.0**-50) > limit
    for place in np.flatnonzero(~kept).tolist():
        coin = Uniform(coins)
        coin.known, coin.length = int(words[place]), _REST
        kept[place] = _is_kept(int(starts[place]), variance, coin, coins)
    return kept


def _is_kept(start: int, variance: Fraction, coin: Uniform, coins: Coins) -> bool:
    """Decide one such coin, of which some bits may be known.

    Ends with probability one: both intervals shrink onto reals that are almost surely not on the
    curve where the answer changes.
    """
    inside = Uniform(coins)
    while True:
        with precision(START + coin.length):
            low, high = (
                (-u * (2 * start + u) / (2 * ball(variance))).exp()
                for u in (inside.high(), inside.low())
            )
            if coin.high() <= low:
                return True
            if coin.low() >= high:
                return False
        coin.reveal()
        inside.reveal()


def _digit_chance(rate: Fraction) -> arb:
    """Return the chance that a binary digit of a geometric number is 1.

    `rate` is x times the worth of the digit.
    """
    return 1 / (1 + ball(rate).exp())


def _nonzero_chance(x: Fraction) -> arb:
    """Return the chance 1 − tanh(x/2) that discrete Laplace noise of scale 1/x is not 0."""
    less = (-ball(x)).exp()
    return 2 * less / (1 + less)


def _digits(chance: Callable[[], arb], skip: int, count: int, *, rest: bool) -> int:
    """Return binary digits skip+1 … skip+count of the real `chance()`, as an integer.

    For the `rest`, those of 1 − `chance()` instead, which has the opposite ones.

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
