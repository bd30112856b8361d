"""Blocks from which discrete Gaussian noise is drawn in bulk: a table, and rejections where needed.

The magnitudes 1, 2, 3, … are cut into blocks of 2^shift numbers. A block is drawn with the weight
that its numbers would have if each weighed what the first one does. A number of the block, drawn
uniformly, is then accepted with the chance that its weight is smaller by. Beyond `reach` a
geometric tail stands over all further numbers. Where a block is one number, as below a standard
deviation of 64, all but the tail is accepted: the blocks are a table of the distribution.

Proof:      docs/proofs/samplers.md
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import isqrt

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.noise.balls import START, above, ball, below, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform, bernoulli_exp, geometric

_FINE = 5
"""A block is at most 2^-_FINE standard deviations wide: rejections are rare, and blocks are few."""

_SPREAD = 8
"""Tails begin after so many standard deviations: one draw in 10^15 gets there."""

_SHORT, _LONG = 16, 64
"""A block is known from its first bits alone, or else by 64."""

_UNIT = 1 << 32
"""Fixed-point numbers of 32 binary digits are in units of 1/_UNIT."""


class Blocks:
    """The blocks for one variance.

    In this order: 0; the blocks above it from the smallest numbers up; those below it; the tail
    above; the tail below.

    Attributes:
        variance: The variance parameter.
        shift: A block is 2^shift numbers.
        reach: The least magnitude in the tails.

    Examples:
        >>> blocks = Blocks(Fraction(100 * 100))
        >>> 1 << blocks.shift, blocks.reach
        (2, 809)
    """

    def __init__(self, variance: Fraction, *, fine: int = _FINE, spread: int = _SPREAD) -> None:
        self.variance = variance
        self.shift = max(0, isqrt(variance.__floor__()).bit_length() - 1 - fine)
        width = 1 << self.shift
        count = -(-spread * (isqrt(variance.__ceil__()) + 1) >> self.shift)
        self._firsts = range(1, 1 + count * width, width)
        self.reach = 1 + count * width
        with precision(START):
            scaled = [cut * arb((1, _LONG)) for cut in self._cuts()]
            lows = [below(cut) for cut in scaled]
            highs = [min(above(cut), 1 << _LONG) - 1 for cut in scaled]
        # What bounds a cut bounds all further ones, so both may be made to rise.
        self._lows = np.maximum.accumulate(np.array(lows, np.uint64))
        self._highs = np.minimum.accumulate(np.array(highs, np.uint64)[::-1])[::-1]
        words = np.arange(1 << _SHORT, dtype=np.uint64) << np.uint64(_LONG - _SHORT)
        least, most = self._count_cuts(words, words | np.uint64((1 << _LONG - _SHORT) - 1))
        self._cells = np.where(least == most, least, -1).astype(np.int16)
        self._base = np.array([0, *self._firsts, *self._firsts, 0, 0], np.int64)
        self._sign = np.array([0] + [1] * count + [-1] * count + [0, 0], np.int64)
        self._single = self._sign * self._base
        if self.shift:
            self._prepare_rejection()

    def draw(self, size: int, coins: Coins) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Draw `size` numbers and the places, in order, of those that are rejected."""
        block = self._draw_block(size, coins)
        tails = np.flatnonzero(block > 2 * len(self._firsts))
        if self.shift:
            offset = _offsets(self.shift, size, coins)
            values = self._sign[block] * (self._base[block] + offset)
            rejected = self._reject(block, offset, coins)
        else:
            values = self._single[block]
            rejected = tails[:0]
        for place in tails:
            value = self._draw_tail(coins)
            values[place] = value or 0
            if block[place] % 2 == 0:
                values[place] *= -1
            if value is None:
                rejected = np.sort(np.append(rejected, place))
        return values, rejected

    def _draw_block(self, size: int, coins: Coins) -> NDArray[np.int16]:
        """Draw a block by its weight.

        16 bits decide where those leave one block, else 64, else one at a time.
        """
        words = np.frombuffer(coins.bytes(2 * size), np.uint16)
        block = self._cells[words]
        open_ = np.flatnonzero(block < 0)
        if open_.size:
            more = np.frombuffer(coins.bytes(8 * open_.size), np.uint64) >> np.uint64(_SHORT)
            longer = words[open_].astype(np.uint64) << np.uint64(_LONG - _SHORT) | more
            least, most = self._count_cuts(longer, longer)
            block[open_] = least
            for place in np.flatnonzero(least != most):
                uniform = Uniform(coins)
                uniform.known, uniform.length = int(longer[place]), _LONG
                block[open_[place]] = self._find(uniform, int(least[place]), int(most[place]))
        return block

    def _count_cuts(
        self, low: NDArray[np.uint64], high: NDArray[np.uint64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Count the cuts certainly at or left of U, and those not certainly right of it.

        Args:
            low: The first 64 bits of U, at least.
            high: The same, at most.
        """
        least = np.searchsorted(self._highs, low, side="left")
        return least, np.searchsorted(self._lows, high, side="right")

    def _find(self, uniform: Uniform, least: int, most: int) -> int:
        """Find the block of a uniform real.

        It is right of `least` cuts and left of all but `most`.
        """
        for block in range(least, most):
            if uniform.left_of(lambda block=block: self._cuts()[block]):  # type: ignore[misc]
                return block
        return most

    def _prepare_rejection(self) -> None:
        """Tabulate, for each block, chances of which its numbers are sure, and coefficients of x.

        The chances are out of 256.
        """
        width, variance = 1 << self.shift, self.variance
        steep = [first * width / variance for first in self._firsts]
        curve = width**2 / (2 * variance)
        sure = [256 * (1 - slope - curve) // 1 for slope in steep]
        slopes = [slope * _UNIT // 1 for slope in steep]
        self._sure = np.array([256, *sure, *sure, 256, 256], np.uint16)
        self._slopes = np.array([0, *slopes, *slopes, 0, 0], np.uint64)
        self._curve = np.uint64(curve * _UNIT // 1)

    def _reject(
        self, block: NDArray[np.int16], offset: NDArray[np.int64], coins: Coins
    ) -> NDArray[np.int64]:
        """Return where a coin of bias e^−x falls on tails.

        x is how much less the number weighs than the first of its block: by 8 bits, by 32, or one
        at a time.
        """
        words = np.frombuffer(coins.bytes(block.size), np.uint8)
        open_ = np.flatnonzero(words >= self._sure[block])
        block, offset = block[open_], offset[open_]
        more = np.frombuffer(coins.bytes(4 * open_.size), np.uint32) >> np.uint32(8)
        longer = words[open_].astype(np.int64) << 24 | more
        low, high = self._accept_bounds(block, offset)
        tails = longer >= high
        for place in np.flatnonzero(~tails & (longer >= low)):
            uniform = Uniform(coins)
            uniform.known, uniform.length = int(longer[place]), 32
            x = self._exponent(int(block[place]), int(offset[place]))
            tails[place] = not uniform.left_of(lambda x=x: (-ball(x)).exp())  # type: ignore[misc]
        return open_[tails]

    def _accept_bounds(
        self, block: NDArray[np.int16], offset: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Bounds of e^−x in units of 2^−32, by the first terms of its series in whole numbers."""
        up, down = np.uint64(max(0, 32 - self.shift)), np.uint64(max(0, self.shift - 32))
        part = offset.astype(np.uint64) << up >> down  # how far into the block
        digits = np.uint64(32)
        x = (self._slopes[block] * part >> digits) + (
            self._curve * (part * part >> digits) >> digits
        )
        square = x * x >> digits
        cube = square * x >> digits
        fourth = cube * x >> digits
        three = _UNIT - x.astype(np.int64) + (square // 2).astype(np.int64)
        three -= (cube // np.uint64(6)).astype(np.int64)
        return three - 8, three + (fourth // np.uint64(24)).astype(np.int64) + 3

    def _exponent(self, block: int, offset: int) -> Fraction:
        first = int(self._base[block])
        return ((first + offset) ** 2 - first**2) / (2 * self.variance)

    def _draw_tail(self, coins: Coins) -> int | None:
        """Return a magnitude in a tail; None: it is rejected."""
        excess = geometric(self.reach / self.variance, coins)
        accepted = bernoulli_exp(excess**2 / (2 * self.variance), coins)
        return self.reach + excess if accepted else None

    def _cuts(self) -> list[arb]:
        """Return the right end of each block's share of [0, 1), but the last."""
        double = 2 * self.variance
        width = 1 << self.shift
        blocks = [width * (-ball(first**2 / double)).exp() for first in self._firsts]
        tail = (-ball(self.reach**2 / double)).exp() / -(-ball(self.reach / self.variance)).expm1()
        total, sums = arb(0), []
        for weight in (arb(1), *blocks, *blocks, tail, tail):
            total += weight
            sums.append(total)
        return [part / total for part in sums[:-1]]


@lru_cache(maxsize=16)
def blocks_for(variance: Fraction) -> Blocks:
    """Return the blocks for a variance; they are made once.

    Examples:
        >>> blocks_for(Fraction(4)) is blocks_for(Fraction(4))
        True
    """
    return Blocks(variance)


def _offsets(shift: int, size: int, coins: Coins) -> NDArray[np.int64]:
    """Uniform numbers below 2^shift."""
    length = next(length for length in (1, 2, 4, 8) if 8 * length >= shift)
    words = np.frombuffer(coins.bytes(length * size), f"u{length}").astype(np.uint64)
    return (words & np.uint64((1 << shift) - 1)).astype(np.int64)
