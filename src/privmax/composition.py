"""What k adaptive rounds cost together: the tightest of three theorems, rounded up.

A round has range r when its privacy loss always lies in some interval of length r. The exponential
mechanism at e is e-private and has range e; any e-private round has range 2e. k rounds, each
e-private and of range r, cost at most

    basic           k·e, without any delta
    range           k·(y − 1 − ln y) + r·√(k·ln(1/δ)/2),  y = r/(e^r − 1)
    concentration   the least over α > 1 of  ρα + ln(1/(αδ))/(α − 1) + ln(1 − 1/α),  ρ = k·r²/8

Proof:      docs/proofs/composition.md
Reference:  Durfee & Rogers, NeurIPS 2019; Dong, Durfee & Rogers, ICML 2020; Cesar & Rogers, ALT
            2021; Canonne, Kamath & Steinke, NeurIPS 2020
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from privmax.noise.balls import START, ball, precision
from privmax.numbers import Number, open_probability, positive, probability, whole

STEPS = 1 << 20
"""`per_round` answers in multiples of epsilon / (k·STEPS)."""


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
    high = STEPS * (rounds + 1)  # a single round of more than the total never is

    def affordable(steps: int) -> bool:
        with precision(START):
            return bool(
                price(rounds, steps * unit, slack, bounded_range=bounded_range) <= ball(total)
            )

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low * unit


def _order(rho: float, delta: float) -> Fraction:
    """A good order α: the cost is convex in it, so thirds close in on the least. Any serves."""
    delta = max(delta, math.ulp(0.0))  # what is below all floats came as 0

    def cost(log_excess: float) -> float:
        order = 1 + math.exp(log_excess)
        return rho * order - math.log(order * delta) / (order - 1) + math.log1p(-1 / order)

    low, high = math.log(1e-3), math.log(1e9)
    for _ in range(100):
        third = (high - low) / 3
        if cost(low + third) < cost(high - third):
            high -= third
        else:
            low += third
    return 1 + Fraction(math.exp((low + high) / 2))
