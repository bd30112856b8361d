"""Exact random numbers of runs: truncated negative binomial, logarithmic and Poisson.

As in `samplers.py`, a uniform real is revealed bit by bit until a ball enclosure of the cumulative
distribution leaves one answer. No floating-point number decides anything.

Proof:      docs/proofs/tuning.md, "Drawing the number of runs"
Reference:  Papernot & Steinke, ICLR 2022
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from flint import arb, ctx

from privmax.errors import ParameterError
from privmax.noise.balls import ball
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform


def negative_binomial(eta: Fraction, gamma: Fraction, coins: Coins) -> int:
    """Draw k ≥ 1 with probability proportional to (1 − gamma)^k · Π_{0 ≤ i < k} (i + eta)/(i + 1).

    That is the negative binomial law without its zero: geometric at eta = 1, logarithmic at
    eta = 0.

    Args:
        eta: Above −1.
        gamma: Strictly between 0 and 1.
        coins: Where random bits come from.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> negative_binomial(Fraction(1), Fraction(1 << 200, (1 << 200) + 1), SYSTEM)
        1
    """
    if eta <= -1:
        raise ParameterError("eta", eta, "it must be above -1", "For example 1, 0 or -1/2.")
    if not 0 < gamma < 1:
        raise ParameterError("gamma", gamma, "it must lie strictly between 0 and 1", "")
    rest = 1 - gamma

    def ratio(k: int) -> Fraction:
        return rest * (k + eta) / (k + 1)

    return 1 + _invert(lambda: first_negative_binomial(eta, gamma), lambda k: ratio(k + 1), coins)


def poisson(mean: Fraction, coins: Coins) -> int:
    """Draw k ≥ 0 with probability e^−mean · mean^k / k!.

    Raises:
        ParameterError: The mean is not above 0.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> poisson(Fraction(1, 1 << 200), SYSTEM)
        0
    """
    if mean <= 0:
        raise ParameterError("mean", mean, "it must be above 0", "For example 10.")
    return _invert(lambda: (-ball(mean)).exp(), lambda k: mean / (k + 1), coins)


def first_negative_binomial(eta: Fraction, gamma: Fraction) -> arb:
    """Return the probability of 1 under `negative_binomial`, at the working precision.

    Examples:
        >>> float(first_negative_binomial(Fraction(1), Fraction(1, 4)).mid())
        0.25
    """
    rest = 1 - gamma
    log = ball(gamma).log()
    if eta == 0:
        return ball(rest) / -log
    return ball(rest * eta) / (-ball(eta) * log).expm1()


def _invert(first: Callable[[], arb], ratio: Callable[[int], Fraction], coins: Coins) -> int:
    """Draw the k ≥ 0 whose share of [0, 1) holds a uniform real.

    Ends with probability one: the chances of all k add up to 1, so the shares cover [0, 1), and a
    uniform real is almost surely none of their countably many ends.

    Args:
        first: Computes the chance of 0 at the precision in force.
        ratio: The chance of k + 1 in parts of that of k.
        coins: Where random bits come from.
    """
    uniform = Uniform(coins)
    sums: dict[int, tuple[int, arb, arb]] = {}  # by precision: k, its chance, the sum up to it

    def end() -> arb:
        at, chance, total = sums.get(ctx.prec) or (0, (start := first()), start)
        while at < k:
            chance = chance * ball(ratio(at))
            at, total = at + 1, total + chance
        sums[ctx.prec] = at, chance, total
        return total

    k = 0
    while not uniform.left_of(end):
        k += 1
    return k
