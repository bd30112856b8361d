"""The total cost of k adaptive rounds: the tightest of three theorems, rounded up.

A round has range r when its privacy loss always lies in some interval of length r. The exponential
mechanism at e is e-private and has range e; any e-private round has range 2e. k rounds, each
e-private and of range r, cost at most

    basic           k·e, without any delta
    range           k·(y − 1 − ln y) + r·√(k·ln(1/δ)/2),  y = r/(e^r − 1)
    concentration   the least over α > 1 of  ρα + ln(1/(αδ))/(α − 1) + ln(1 − 1/α),  ρ = k·r²/8

A release that is ρ-zCDP costs the third, too, whatever it is: `epsilon_of_rho` and `largest_rho`
go from one to the other.

Proof:      docs/proofs/composition.md
Reference:  Durfee & Rogers, NeurIPS 2019; Dong, Durfee & Rogers, ICML 2020; Cesar & Rogers, ALT
            2021; Canonne, Kamath & Steinke, NeurIPS 2020; Bun & Steinke, TCC 2016
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

from flint import arb

from privmax.noise.balls import START, above, ball, below, precision
from privmax.numbers import (
    Number,
    nonnegative,
    open_probability,
    positive,
    probability,
    whole,
)

STEPS = 1 << 20
"""`per_round` answers in multiples of epsilon / (k·STEPS)."""

_FINE = 1 << 30
"""`largest_rho` is found to one part in so many."""

_MOST = 1 << 40
"""The largest ρ for which an order is sought."""

_SLACK = "Zero-concentrated privacy has an epsilon only beside a delta above 0, for example 1e-6."


def price_by_range(rounds: int, span: Fraction, delta: Fraction) -> arb:
    """Return epsilon of rounds of a given range, by their mean loss and the deviation from it.

    Args:
        rounds: How many there are.
        span: The range of each.
        delta: The probability of a larger deviation.

    Examples:
        >>> with precision(START):
        ...     float(price_by_range(100, Fraction(1, 10), Fraction(1, 10**6)).mid()) < 3
        True
    """
    y = ball(span) / ball(span).expm1()
    return (
        rounds * (y - 1 - y.log())
        + ball(span) * (ball(rounds / Fraction(2)) * -ball(delta).log()).sqrt()
    )


def price_by_concentration(rounds: int | Fraction, span: Fraction, delta: Fraction) -> arb:
    """Return the same by concentrated differential privacy.

    The order is chosen in floats: every order is valid.

    Args:
        rounds: How many there are. Only ρ = rounds·span²/8 counts, so it may be a fraction.
        span: The range of each.
        delta: Above 0.

    Examples:
        >>> with precision(START):
        ...     float(price_by_concentration(100, Fraction(1, 10), Fraction(1, 10**6)).mid()) < 3
        True
    """
    rho = rounds * span**2 / 8
    order = ball(_order(float(rho), float(delta)))
    return ball(rho) * order - (order * ball(delta)).log() / (order - 1) + (1 - 1 / order).log()


def price(rounds: int, epsilon: Fraction, delta: Fraction, *, bounded_range: bool) -> arb:
    """Return epsilon of `epsilon`-private rounds for a given delta: the least of the three.

    Args:
        rounds: How many there are.
        epsilon: That of each.
        delta: That of all together; 0: only basic composition applies.
        bounded_range: Whether the range of each is epsilon, too; otherwise it is taken as twice
            that.

    Examples:
        >>> with precision(START):
        ...     price(3, Fraction(1), Fraction(0), bounded_range=True) == 3
        True
    """
    basic = ball(rounds * epsilon)
    if not delta:
        return basic
    span = epsilon if bounded_range else 2 * epsilon
    others = price_by_range(rounds, span, delta), price_by_concentration(rounds, span, delta)
    return min((basic, *others), key=lambda cost: cost.upper())


@lru_cache(maxsize=1024)
def per_round(epsilon: Number, delta: Number, rounds: int, *, bounded_range: bool) -> Fraction:
    """Return the largest epsilon for each of so many rounds that together fit a cost.

    Args:
        epsilon: What all rounds may cost, with `delta`.
        delta: All of it is spent on composition; with 0 the answer is epsilon / rounds.
        rounds: How many there are.
        bounded_range: Whether the range of each round is its epsilon.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> per_round(1, 0, 4, bounded_range=True)
        Fraction(1, 4)
        >>> per_round(1, "1e-6", 100, bounded_range=True) > Fraction(1, 100)
        True
    """
    total, slack = positive("epsilon", epsilon), probability("delta", delta)
    if whole("rounds", rounds) == 1 or not slack:
        return total / rounds
    open_probability("delta", slack)
    unit = total / (rounds * STEPS)
    low = STEPS  # basic composition is always affordable
    high = STEPS * (rounds + 1)  # more than the total each: only a huge delta could afford it

    def affordable(steps: int) -> bool:
        with precision(START):
            return bool(
                price(rounds, steps * unit, slack, bounded_range=bounded_range) <= ball(total)
            )

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low * unit


def epsilon_of_rho(rho: Number, delta: Number) -> Fraction:
    """Return the epsilon that a ρ-zCDP release has at a delta, rounded up.

    Args:
        rho: Of all that is released together: ρ adds up, also over adaptive releases.
        delta: Above 0 and below 1.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> cost = epsilon_of_rho("0.1", "1e-6")
        >>> round(float(cost), 4)
        2.1419
        >>> epsilon_of_rho(0, "1e-6")
        Fraction(0, 1)
    """
    total, slack = nonnegative("rho", rho), open_probability("delta", delta, _SLACK)
    if not total:
        return total
    with precision(START):
        wide = ball(total) + 2 * (ball(total) * _minus_log(slack)).sqrt()
        if total > _MOST:  # where the order could not be chosen in floats
            return _round_up(wide)
        # A round of range 1 has ρ = 1/8: so many of them, a fraction too, have this one.
        tight = price_by_concentration(8 * total, Fraction(1), slack)
        return _round_up(min(tight, wide, key=lambda cost: cost.upper()))


@lru_cache(maxsize=1024)
def largest_rho(epsilon: Number, delta: Number) -> Fraction:
    """Return the largest ρ whose cost fits an epsilon and a delta, rounded down.

    Args:
        epsilon: What all may cost, with `delta`.
        delta: Above 0 and below 1.

    Raises:
        ParameterError: A number is out of bounds.

    Examples:
        >>> rho = largest_rho(1, "1e-6")
        >>> round(float(rho), 5)
        0.02436
        >>> epsilon_of_rho(rho, "1e-6") <= 1
        True
    """
    total, slack = positive("epsilon", epsilon), open_probability("delta", delta, _SLACK)
    with precision(START):
        log = _minus_log(slack)
        # Where ρ + 2√(ρ·ln(1/δ)) is epsilon: never too large.
        start = _round_down((ball(total) / ((log + ball(total)).sqrt() + log.sqrt())) ** 2)
    low = _FINE - (_FINE >> 20)  # so that rounding up the cost of ρ does not matter
    # Where epsilon is much less than delta, that is far too small: δ² has an epsilon of 0.
    if slack**2 > start and epsilon_of_rho(slack**2, slack) <= total:
        start, low = slack**2, _FINE
    unit = start / _FINE

    def affordable(steps: int) -> bool:
        return epsilon_of_rho(steps * unit, slack) <= total

    high = 2 * _FINE
    while affordable(high):  # ends: the cost grows with ρ beyond all bounds
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low * unit


def _minus_log(delta: Fraction) -> arb:
    """ln(1/δ), a ball above 0 even where δ is almost 1."""
    return -ball(delta).log() if 2 * delta <= 1 else -ball(delta - 1).log1p()


def _round_up(cost: arb) -> Fraction:
    """Return the next multiple of 2^-64 above a cost, or of a smaller power for small costs."""
    bits = 64
    while above(cost * arb((1, bits))) in range(1, _FINE):
        bits += 64
    return Fraction(max(above(cost * arb((1, bits))), 0), 1 << bits)


def _round_down(number: arb) -> Fraction:
    """Return the same below a number above 0."""
    bits = 64
    while below(number * arb((1, bits))) < _FINE:
        bits += 64
    return Fraction(below(number * arb((1, bits))), 1 << bits)


def least_at(cost: Callable[[float], float], low: float, high: float, *, steps: int) -> float:
    """Return about where a convex function of floats is the least, between two others.

    Examples:
        >>> round(least_at(lambda x: (x - 1) ** 2, -9, 9, steps=100), 6)
        1.0
    """
    for _ in range(steps):
        third = (high - low) / 3
        if cost(low + third) < cost(high - third):
            high -= third
        else:
            low += third
    return (low + high) / 2


def _order(rho: float, delta: float) -> Fraction:
    """Return a good order α; any serves.

    The cost is convex in it.
    """
    delta = max(delta, math.ulp(0.0))  # what is below all floats came as 0

    def cost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return rho * order - math.log(order * delta) / (order - 1) + math.log1p(-1 / order)

    return 1 + Fraction(math.exp(least_at(cost, math.log(1e-3), math.log(1e9), steps=100)))
