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
from privmax.privacy import Number, open_probability, positive, probability, whole

STEPS = 1 << 20
"""`per_round` answers in multiples of epsilon / (k·STEPS)."""


def price_by_range(rounds: int, span: Fraction, delta: Fraction) -> arb:
    """Epsilon of so many rounds of range `span`, by their mean loss and the deviation from it."""
    y = ball(span) / ball(span).expm1()
    return (
        rounds * (y - 1 - y.log())
        + ball(span) * (ball(rounds / Fraction(2)) * -ball(delta).log()).sqrt()
    )


def price_by_concentration(rounds: int | Fraction, span: Fraction, delta: Fraction) -> arb:
    """The same by concentrated differential privacy, at an order chosen in floats: every order is
    valid.

    Only ρ = rounds·span²/8 counts, so `rounds` may be a fraction.
    """
    rho = rounds * span**2 / 8
    order = ball(_order(float(rho), float(delta)))
    return ball(rho) * order - (order * ball(delta)).log() / (order - 1) + (1 - 1 / order).log()


def price(rounds: int, epsilon: Fraction, delta: Fraction, *, ranged: bool) -> arb:
    """Epsilon of so many `epsilon`-private rounds for `delta`; with `ranged` their range is epsilon
    too.
    """
    basic = ball(rounds * epsilon)
    if not delta:
        return basic
    span = epsilon if ranged else 2 * epsilon
    others = price_by_range(rounds, span, delta), price_by_concentration(rounds, span, delta)
    return min((basic, *others), key=lambda cost: cost.upper())


@lru_cache(maxsize=1024)
def per_round(epsilon: Number, delta: Number, rounds: int, *, ranged: bool) -> Fraction:
    """The largest epsilon for each of so many rounds that together cost at most (`epsilon`,
    `delta`).

    All of it is spent on composition; with delta = 0 it is epsilon / rounds.
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
            return bool(price(rounds, steps * unit, slack, ranged=ranged) <= ball(total))

    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if affordable(middle) else (low, middle)
    return low * unit


def _order(rho: float, delta: float) -> Fraction:
    """A good order α: the price is convex in it, so thirds close in on the least. Any serves."""
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
