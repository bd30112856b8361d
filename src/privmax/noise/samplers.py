"""Exact samplers, one draw at a time.

All of them are one idea: a uniform real U in [0, 1) is revealed bit by bit, and each sampler stops
at the first moment when the bits seen so far and a ball enclosure of its distribution leave one
answer. No floating-point number decides anything, and about two bits more than the entropy of the
answer are spent.

Proof:      docs/proofs/samplers.md
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction
from math import isqrt

from flint import arb

from privmax.errors import ParameterError
from privmax.noise.balls import START, above, ball, below, precision
from privmax.noise.coins import Coins


class Uniform:
    """A uniform real in [0, 1) of which only the first bits have been looked at.

    Attributes:
        known: Those bits, as an integer.
        length: How many they are.

    Examples:
        >>> from privmax.testing import ScriptedCoins
        >>> uniform = Uniform(ScriptedCoins(0b10, 2))
        >>> uniform.reveal()
        >>> uniform.known, uniform.length
        (1, 1)
    """

    __slots__ = ("_coins", "known", "length")

    def __init__(self, coins: Coins) -> None:
        self._coins = coins
        self.known = 0
        self.length = 0

    def reveal(self) -> None:
        """Look at one more bit."""
        self.known = self.known << 1 | self._coins.bits(1)
        self.length += 1

    def low(self) -> arb:
        """Return the left end of the interval the real is known to lie in."""
        return arb((self.known, -self.length))

    def high(self) -> arb:
        """Return the right end of that interval."""
        return arb((self.known + 1, -self.length))

    def left_of(self, point: Callable[[], arb]) -> bool:
        """Return whether the real is below `point()`, looking at as few further bits as that takes.

        Ends with probability one: the interval shrinks onto a real that is almost surely not the
        point.
        """
        bits = START + self.length
        while True:
            with precision(bits):
                scaled = point() * arb((1, bits))
                finite = scaled.is_finite()  # at too low a precision it may not be
                least, most = (below(scaled), above(scaled)) if finite else (0, 1 << bits)
            while self.length < bits - 16:
                shift = bits - self.length
                if (self.known + 1) << shift <= least:
                    return True
                if self.known << shift >= most:
                    return False
                self.reveal()
            bits *= 2


def uniform_below(n: int, coins: Coins) -> int:
    """Draw an integer uniform on 0 … n−1.

    Raises:
        ParameterError: n is below 1.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> uniform_below(1, SYSTEM)
        0
    """
    if n < 1:
        raise ParameterError("n", n, "it must be at least 1")
    width = (n - 1).bit_length()
    while True:  # each round accepts with probability above one half
        value = coins.bits(width)
        if value < n:
            return value


def weighted(weights: Callable[[], Sequence[arb]], coins: Coins) -> int:
    """Draw an index k with probability weights[k] / sum(weights).

    Ends with probability one: each boundary between two indices is a single point, and the interval
    of U shrinks onto a point that is almost surely none of them.

    Args:
        weights: Computes the same non-negative weights at whatever precision is in force. They may
            be of any size (2^40 equal candidates are one weight 2^40·e^−x).
        coins: Where random bits come from.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> weighted(lambda: [arb(0), arb(1)], SYSTEM)
        1
    """
    return find_place(weights, Uniform(coins))


def find_place(weights: Callable[[], Sequence[arb]], uniform: Uniform) -> int:
    """Return the index in whose share of [0, 1) a uniform real lies, as `weighted` does.

    Args:
        weights: As in `weighted`.
        uniform: Some of its bits may have been revealed.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> find_place(lambda: [arb(0), arb(1)], Uniform(SYSTEM))
        1
    """
    bits = START + uniform.length
    while True:
        cuts = _Boundaries(weights, bits)
        while cuts.known and uniform.length < bits - 16:
            shift = bits - uniform.length
            left, right = uniform.known << shift, (uniform.known + 1) << shift
            index = bisect_right(
                cuts, left
            )  # all boundaries before `index` are certainly at or left of U
            if right <= cuts.low(index):
                return index
            uniform.reveal()
        bits *= 2


def bernoulli(chance: Callable[[], arb], coins: Coins) -> bool:
    """Toss a coin: True with probability `chance()`.

    Args:
        chance: Computes a real in [0, 1] at the precision in force.
        coins: Where random bits come from.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> bernoulli(lambda: arb(1), SYSTEM)
        True
    """
    return Uniform(coins).left_of(chance)


def bernoulli_exp(x: Fraction, coins: Coins) -> bool:
    """Toss a coin: True with probability e^−x, for a rational x ≥ 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> bernoulli_exp(Fraction(0), SYSTEM)
        True
    """
    if x < 0:
        raise ParameterError("x", x, "it must be 0 or above")
    return x == 0 or bernoulli(lambda: (-ball(x)).exp(), coins)


def geometric(x: Fraction, coins: Coins) -> int:
    """Draw k ≥ 0 with P(k or more) = e^−kx, for a rational x > 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> geometric(Fraction(1000), SYSTEM)
        0
    """
    if x <= 0:
        raise ParameterError("x", x, "it must be above 0")
    return jump(lambda: ball(x), coins)


def jump(rate: Callable[[], arb], coins: Coins, limit: int | None = None) -> int:
    """Draw min(limit, k) where P(k or more) = e^(−k·rate).

    That is how many trials fail before the first success: ⌊−ln U / rate⌋. Ends with probability
    one, as `weighted` does.

    Args:
        rate: Computes the rate at the precision in force.
        coins: Where random bits come from.
        limit: Where to stop; None: nowhere.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> jump(lambda: arb(1), SYSTEM, limit=0)
        0
    """
    uniform = Uniform(coins)
    bits = START
    while True:
        with precision(bits):
            speed = rate()
            while uniform.length < bits - 16:
                trials = -uniform.high().log() / speed
                # Compared as balls: where the rate is tiny, the number has billions of digits.
                if limit is not None and trials >= limit:
                    return limit
                least = below(trials)
                # The other end is compared as a ball, too: it has no limit.
                if uniform.known and -uniform.low().log() / speed < least + 1:
                    return least
                uniform.reveal()
        bits *= 2


def discrete_laplace(scale: Fraction, coins: Coins) -> int:
    """Draw k with probability proportional to e^(−|k|/scale), for a rational scale > 0.

    Raises:
        ParameterError: The scale is not above 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> discrete_laplace(Fraction(1, 1000), SYSTEM)
        0
    """
    if scale <= 0:
        raise ParameterError("scale", scale, "it must be above 0")
    x = 1 / scale

    def sides() -> tuple[arb, arb, arb]:
        q = (-ball(x)).exp()
        return q, 1 - q, q

    side = weighted(sides, coins) - 1
    return side * (1 + geometric(x, coins)) if side else 0


def discrete_gaussian(variance: Fraction, coins: Coins) -> int:
    """Draw k with probability proportional to e^(−k² / (2·variance)), for a rational variance > 0.

    A draw of discrete Laplace noise is accepted with the probability that makes the difference:
    about three in four are, and at worst two in five, so it ends with probability one.

    Raises:
        ParameterError: The variance is not above 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> discrete_gaussian(Fraction(1, 1000), SYSTEM)
        0
    """
    if variance <= 0:
        raise ParameterError("variance", variance, "it must be above 0")
    while True:
        value = _try_gaussian(variance, coins)
        if value is not None:
            return value


def _try_gaussian(variance: Fraction, coins: Coins) -> int | None:
    """Run one round: a draw of discrete Laplace noise, or None where it is not accepted."""
    scale = isqrt(variance.numerator // variance.denominator) + 1  # ⌊σ⌋ + 1
    value = discrete_laplace(Fraction(scale), coins)
    miss = abs(value) - variance / scale
    return value if bernoulli_exp(miss**2 / (2 * variance), coins) else None


class _Boundaries:
    """The right end of each index's share of [0, 1), in units of 2^−bits.

    It is rounded up (by indexing) or down (`low`).

    Rounded to integers only where looked at, and then once: a search looks at few of them, again
    and again.
    """

    def __init__(self, weights: Callable[[], Sequence[arb]], bits: int) -> None:
        self._bits = bits
        with precision(bits + 32):
            total = arb(0)
            self._sums = [total := total + weight for weight in weights()]
            self._unit = arb((1, bits)) / total
        self.known = (
            self._unit.is_finite()
        )  # not so when the precision is too low for the exponents
        last = len(self._sums) - 1
        self._rounded = {last: (1 << bits, 1 << bits)}

    def __len__(self) -> int:
        return len(self._sums)

    def __getitem__(self, index: int) -> int:
        return self._both(index)[1]

    def low(self, index: int) -> int:
        return self._both(index)[0]

    def _both(self, index: int) -> tuple[int, int]:
        if index not in self._rounded:
            with precision(self._bits + 32):
                scaled = self._sums[index] * self._unit
                self._rounded[index] = below(scaled), above(scaled)
        return self._rounded[index]
