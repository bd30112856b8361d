"""The joint cost of rounds of noisy totals: the width of the noise, and the thresholds.

Round j adds normal noise of variance σ²/share_j to totals that one individual moves by a vector of
norm 1 at most. All rounds together are one Gaussian release with noise σ. A key that only one
individual has must not pass: with probability at most δ_j it does in round j.

    δ_G(ε + ln(1 − Σδ_j), 1/σ) + Σδ_j ≤ δ

Every number here is public, and is rounded so that the cost is never understated.

Proof:      docs/proofs/keys-rounds.md
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

from flint import arb

from privmax.composition import least_at
from privmax.count_costs import least_scale
from privmax.noise.balls import START, ball, precision
from privmax.noise.tails import normal_tail

ONE = 1 << 16
"""The number of steps in a weight of 1: weights and totals are whole numbers of steps."""

MOST = 1 << 16
"""Keys of one individual that may count at most: the square of a weight of one step is 2^−32."""

_FINEST = 1 << 22
"""Into how many parts the weights from 0 to 1 are divided at most, to bound a maximum."""

_GRID = 64
"""Weights that are tried in floats, to guess where that maximum is."""


_AIM = 1 - 2**-9
"""The part of its delta that a threshold aims at, so that bounds need not be sharp."""


def gaussian_profile(epsilon: arb, sigma: Fraction) -> arb:
    """δ_G: the least delta of one Gaussian release of sensitivity 1 at `epsilon`.

    Examples:
        >>> bool(abs(gaussian_profile(arb(1), Fraction(1)) - 0.1269367375) < 1e-9)
        True
    """
    half, slope = ball(1 / (2 * sigma)), epsilon * ball(sigma)
    return normal_tail(slope - half) - epsilon.exp() * normal_tail(slope + half)


@lru_cache(maxsize=256)
def find_noise(epsilon: Fraction, delta: Fraction, passing: Fraction) -> Fraction:
    """The standard deviation σ that (ε, δ) allows all rounds together.

    Args:
        epsilon: What all rounds cost.
        delta: The same.
        passing: Σδ_j, the part of delta that is left to thresholds.

    Examples:
        >>> float(find_noise(Fraction(1), Fraction(1, 10**6), Fraction(1, 2 * 10**6)))
        4.365234375
    """

    def enough(sigma: Fraction) -> bool:
        with precision(START):
            shifted = ball(epsilon) + (-ball(passing)).log1p()
            return bool(gaussian_profile(shifted, sigma) <= ball(delta - passing))

    return least_scale(enough, Fraction(4))


@lru_cache(maxsize=1024)
def find_threshold(variance: Fraction, delta: Fraction, most: int, *, equal: bool) -> int:
    """Find the threshold of totals, in steps: one individual's own keys pass with at most `delta`.

    Args:
        variance: Of the noise, in records².
        delta: The probability that one of them does.
        most: How many keys of one individual count at most.
        equal: Whether all its weights are equal, 1/√t for t keys. Otherwise they may be anything
            whose squares add up to 1 at most.

    Examples:
        >>> delta = Fraction(1, 2 * 10**6)
        >>> round(find_threshold(Fraction(19), delta, 30, equal=True) / ONE, 2)
        24.26
    """
    bound = _bound_equal if equal else _bound_any
    # In floats to begin with; then certainly, each time a little higher until it holds.
    low, high = 0.0, 2.0 + 40 * math.sqrt(variance)
    aim = float(delta) * _AIM
    for _ in range(40):
        middle = (low + high) / 2
        passes = _guess(middle, float(variance), most, equal=equal)
        low, high = (low, middle) if passes <= aim else (middle, high)
    threshold = math.ceil(high * ONE)
    while not bound(Fraction(threshold, ONE), variance, delta, most):
        threshold += max(1, threshold >> 11)
    return threshold


def _guess(threshold: float, variance: float, most: int, *, equal: bool) -> float:
    """The largest chance that one of an individual's own keys passes, in floats."""
    if equal:
        sizes = range(1, most + 1) if most <= 64 else {*range(1, 65), *_spread(most)}
        return max(size * _tail(threshold - size**-0.5, variance) for size in sizes)
    slope = _slope(threshold, variance, most)
    return most * max(
        _tail(threshold - weight / _GRID, variance) - slope * (weight / _GRID) ** 2
        for weight in range(_GRID + 1)
    ) + slope  # fmt: skip


def _spread(most: int) -> set[int]:
    return {round(64 * (most / 64) ** (part / 64)) for part in range(65)}


def _slope(threshold: float, variance: float, most: int) -> float:
    """The multiplier λ of squared weight at which the bound is the least, in floats.

    The bound most·max(tail(w) − λw²) + λ is convex in λ.
    """
    chances = [
        (weight / _GRID, _tail(threshold - weight / _GRID, variance)) for weight in range(_GRID + 1)
    ]

    def bound(slope: float) -> float:
        return most * max(chance - slope * weight**2 for weight, chance in chances) + slope

    return least_at(bound, 0.0, 2 * chances[-1][1], steps=40)


def _tail(distance: float, variance: float) -> float:
    return math.erfc(distance / math.sqrt(2 * variance)) / 2


def _bound_equal(threshold: Fraction, variance: Fraction, delta: Fraction, most: int) -> bool:
    """Whether t keys of weight 1/√t each pass with `delta` at most, for every t up to `most`."""
    if most > 1 << 10:  # as good, and quicker
        return _bound_any(threshold, variance, delta, most)
    with precision(START):
        sigma = ball(variance).sqrt()
        return all(
            size * normal_tail((ball(threshold) - 1 / arb(size).sqrt()) / sigma) <= ball(delta)
            for size in range(1, most + 1)
        )


def _bound_any(threshold: Fraction, variance: Fraction, delta: Fraction, most: int) -> bool:
    """Whether keys of any weights with squares of at most 1 in all pass with `delta` at most.

    For every λ ≥ 0, Σ tail(w_i) ≤ most·max_w (tail(w) − λw²) + λ, as Σ w_i² ≤ 1. The maximum is
    bounded interval by interval: the tail rises with w, and so does the square.
    """
    guess = _slope(float(threshold), float(variance), most)
    slope = Fraction(guess).limit_denominator(10**30) if guess > 1e-25 else Fraction(guess)
    room = (delta - slope) / most
    if room <= 0:
        return False
    with precision(START):
        sigma, limit = ball(variance).sqrt(), ball(room)
        parts = [(0, _FINEST)]
        while parts:
            start, end = parts.pop()
            chance = normal_tail((ball(threshold) - ball(Fraction(end, _FINEST))) / sigma)
            if chance - ball(slope * Fraction(start, _FINEST) ** 2) <= limit:
                continue
            if end - start == 1:
                return False
            middle = (start + end) // 2
            parts += [(start, middle), (middle, end)]
    return True
