"""Tails of noise, enclosed in balls: how likely a draw is to reach a number.

Proof:      docs/proofs/counts.md
"""

from __future__ import annotations

from fractions import Fraction

from flint import arb

from privmax.noise.balls import ball

TERMS = 48
"""Terms of Euler and Maclaurin's formula that are tried before a sum is added up term by term."""

FEW = 1 << 24
"""Variance up to which that is done: some thousand terms."""

SLACK = 64
"""Bits: a remainder below 2^−64 of the sum is small enough."""


def laplace_tail(scale: Fraction, least: int) -> arb:
    """P(X ≥ least) where P(X = k) is proportional to e^(−|k|/scale).

    Examples:
        >>> bool(abs(laplace_tail(Fraction(1), 1) - 0.2689414213699951) < 1e-15)
        True
    """
    if least <= 0:
        return 1 - laplace_tail(scale, 1 - least)
    x = 1 / ball(scale)
    return (-least * x).exp() / (1 + (-x).exp())


def normal_tail(x: arb) -> arb:
    """P(Z ≥ x) for a standard normal Z.

    Examples:
        >>> bool(abs(normal_tail(arb(1)) - 0.15865525393145707) < 1e-15)
        True
    """
    return (x / arb(2).sqrt()).erfc() / 2


def gaussian_tail(variance: Fraction, least: int) -> arb:
    """P(X ≥ least) where P(X = k) is proportional to e^(−k² / (2·variance)).

    Examples:
        >>> bool(abs(gaussian_tail(Fraction(1), 1) - 0.3005288) < 1e-7)
        True
    """
    if least <= 0:
        return 1 - gaussian_tail(variance, 1 - least)
    return gaussian_sum(variance, least) / gaussian_total(variance)


def gaussian_total(variance: Fraction) -> arb:
    """Return the sum of e^(−k² / (2·variance)) over all whole numbers k.

    Examples:
        >>> bool(abs(gaussian_total(Fraction(16)) - 10.0265130) < 1e-7)
        True
    """
    return 2 * gaussian_sum(variance, 1) + 1


def gaussian_sum(variance: Fraction, least: int) -> arb:
    """Return the sum of e^(−k² / (2·variance)) over all k ≥ least, for least ≥ 1.

    By Euler and Maclaurin's formula, whose remainder is enclosed; where that does not become small,
    which is so of small variances and of the far ends of others, there are few terms, and they are
    added up.

    Examples:
        >>> bool(abs(gaussian_sum(Fraction(10**12), 10**6) - 397690.0487) < 1e-4)
        True
    """
    v, first = ball(variance), _term(variance, least)
    area = (arb.pi() * v / 2).sqrt() * (least / (2 * v).sqrt()).erfc()
    total = area + first / 2
    rest = 2 * ((2 * arb.pi() * v).sqrt() * area).sqrt()
    # f^(2j − 2) and f^(2j − 1) at `least`, over f there
    even, odd = arb(1), -least / v
    factorial = 1
    for j in range(1, TERMS + 1):
        pair = (2 * j - 1) * 2 * j
        factorial *= pair
        total -= arb.bernoulli(2 * j) / factorial * odd * first
        rest *= arb(pair).sqrt() / (4 * arb.pi() ** 2 * v)
        if rest * arb(2 * j).zeta() < total * arb((1, -SLACK)):
            return total + arb(0, (rest * arb(2 * j).zeta()).upper())
        even = -(least * odd + (2 * j - 1) * even) / v
        odd = -(least * even + 2 * j * odd) / v
    if variance <= FEW:
        return _add_up(variance, least, first)
    return total + arb(0, rest.upper() * 2)  # zeta is below 2; far out on wide noise, next to 0


def _add_up(variance: Fraction, least: int, first: arb) -> arb:
    """Return the same, term by term: those behind `k` are at most a geometric series."""
    v, total, k, term = ball(variance), arb(0), least, first
    while True:  # ends: terms fall faster than a geometric series
        total += term
        k += 1
        term = _term(variance, k)
        rest = term / (1 - (-k / v).exp())
        if rest < total * arb((1, -SLACK)):
            return total + rest.union(arb(0))


def _term(variance: Fraction, k: int) -> arb:
    return (-ball(Fraction(k * k) / (2 * variance))).exp()
