"""Clopper–Pearson: between what bounds a probability lies, after so many hits in so many trials.

A float finds each bound, and a ball certifies it: a bound that is returned is never on the wrong
side.
"""

from __future__ import annotations

import math

from flint import arb

from privmax.noise.balls import START, precision

_STEPS = 60
"""Halvings of an interval: as many as a float has digits, and some."""

_FIRST_MARGIN = 1e-9
"""By so much of itself a bound is moved outwards before it is certified; ten times as much, if that
was too little."""


def least_chance(hits: int, trials: int, alpha: float) -> float:
    """Bound a probability from below: it is lower with probability at most `alpha`.

    Args:
        hits: How often it happened.
        trials: Of how many independent trials.
        alpha: How likely the bound may be wrong.

    Examples:
        >>> least_chance(0, 10, 0.05), round(least_chance(10, 10, 0.05), 4)
        (0.0, 0.7411)
    """
    if hits == 0:
        return 0.0
    low, high = 0.0, hits / trials
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if _tail(hits, trials, middle) <= alpha else (low, middle)
    margin = _FIRST_MARGIN
    while margin < 1:
        bound = low * (1 - margin)
        if _is_certain(hits, trials, bound, alpha):
            return bound
        margin *= 10
    return 0.0


def largest_chance(hits: int, trials: int, alpha: float) -> float:
    """Bound a probability from above: it is higher with probability at most `alpha`.

    Examples:
        >>> largest_chance(10, 10, 0.05), round(largest_chance(0, 10, 0.05), 4)
        (1.0, 0.2589)
    """
    return 1.0 - least_chance(trials - hits, trials, alpha)


def _tail(hits: int, trials: int, chance: float) -> float:
    """Return P(at least `hits`): a regularized incomplete beta function.

    It is computed by its continued fraction.
    """
    a, b = float(hits), float(trials - hits + 1)
    if chance <= 0:
        return 0.0
    if chance >= 1:
        return 1.0
    front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b)
    front = math.exp(front + a * math.log(chance) + b * math.log1p(-chance))
    if chance < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, chance) / a
    return 1 - front * _fraction(b, a, 1 - chance) / b


def _fraction(a: float, b: float, x: float) -> float:
    """Evaluate the continued fraction by Lentz's method, in some √(a + b) steps."""
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    for step in range(1, 100_000):
        two = a + 2 * step
        for term in (
            step * (b - step) * x / ((two - 1) * two),
            -(a + step) * (a + b + step) * x / (two * (two + 1)),
        ):
            d = 1 + term * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + term / c
            c = c if abs(c) > tiny else tiny
            value *= d * c
        if abs(d * c - 1) < 1e-15:
            break
    return value


def _is_certain(hits: int, trials: int, chance: float, alpha: float) -> bool:
    """Return whether P(at least `hits`) is certainly at most `alpha`."""
    with precision(2 * START):
        tail = arb(chance).beta_lower(hits, trials - hits + 1, True)
        return bool(tail <= arb(alpha))
