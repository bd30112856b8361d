"""Laws of privacy losses, in floats whose error is bounded.

Chances are floats that are only added and multiplied, and none is negative: so each operation adds
a relative error of at most 2^-52, in whatever order and with whatever rounding a machine computes,
and counting operations bounds the error of all. There is no difference and no Fourier transform,
whose errors are relative to the largest chance. Exponentials come from balls.

A law is changed only in ways that make privacy no better: losses are raised, spread onto a grid
with the mean of e^-loss kept, or, with a chance that is counted, taken as infinite.

Proof:      docs/proofs/losses.md
Reference:  Doroshenko et al., PoPETs 2022; Canonne, Kamath & Steinke, NeurIPS 2020
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.noise.balls import START, above, ball, precision
from privmax.privacy import LEAST

ROUNDING = Fraction(1, 1 << 52)
"""Relative error of a sum or a product of floats, with any rounding."""

UNDERFLOW = Fraction(1, 1 << 800)
"""More than all chances together that were too small for floats."""

CUT = 2.0**-30
"""The part of delta for the tails of each of the laws that are put together."""

LONGEST = 1 << 12
"""A law of noise that is put together has at most so many places, or the grid is made coarser."""

FINE = 96
"""So many steps at least are a standard deviation of noise."""

_FARTHEST, _WIDEST = 1 << 21, 1 << 22
"""The largest noise, and the most places, for which a law of noise is computed."""

_GRID = 1 << 64
"""Epsilons are rounded up to multiples of 1/_GRID."""

_DIGITS, _NOTCHES, _FAR = 40, 9, 700
"""Exponentials are of numbers up to _FAR, rounded down to so many binary digits after the point;
there is a table for each _NOTCHES of them.
"""

EXPONENTIAL_ROUNDINGS, FALL_ROUNDINGS = 6000, 6
"""By how many factors of 1 + ROUNDING what `_exponentials` and `falls` return is off, at most."""

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Losses:
    """Chances of losses on a grid, and of an infinite loss.

    Attributes:
        first: The loss of the first chance.
        gap: How far the losses of consecutive chances are apart.
        chances: Of these losses.
        endless: That of an infinite loss, or more.
        roundings: Every chance is off by at most so many factors of 1 + ROUNDING.
    """

    first: Fraction
    gap: Fraction
    chances: Floats
    endless: float = 0.0
    roundings: int = 0


@dataclass(frozen=True)
class Deltas:
    """The delta at each epsilon of what is released after some losses, at most.

    Attributes:
        reach: It is that of no release below -reach steps of the grid, and 0 above reach steps.
        values: From -reach to reach.
        roundings: As of `Losses`.
    """

    reach: int
    values: Floats
    roundings: int


NOTHING = Deltas(0, np.zeros(1), 0)
"""The losses of an empty release."""


def combine(one: Losses, other: Losses) -> Losses:
    """Return the law of the sum of two independent losses. Their gaps differ by a power of two."""
    while one.gap != other.gap:
        if one.gap < other.gap:
            one = coarsen(one)
        else:
            other = coarsen(other)
    few, many = sorted((one, other), key=lambda part: np.count_nonzero(part.chances))
    places, size = np.flatnonzero(few.chances), len(many.chances)
    chances, product = np.zeros(len(few.chances) + size - 1), np.empty(size)
    for place in places:
        np.multiply(many.chances, few.chances[place], out=product)
        chances[place : place + size] += product
    return Losses(
        one.first + other.first,
        one.gap,
        chances,
        one.endless + other.endless,
        one.roundings + other.roundings + len(places) + 1,
    )


def repeat(part: Losses, times: int, cut: float) -> Losses:
    """Return the law of a sum of independent losses of one law.

    Tails of a chance of about `cut` in all are taken as infinite losses at each doubling.
    """
    whole, copies = None, 1
    while True:  # ends: `copies` doubles until it is above `times`
        if times & copies:
            whole = part if whole is None else combine(whole, part)
        copies *= 2
        if copies > times:
            assert whole is not None, "times is at least 1"
            return shorten(trim(whole, cut))
        part = shorten(trim(combine(part, part), cut * copies / times))


def trim(losses: Losses, cut: float) -> Losses:
    """Return a shorter law: the tails, of a chance up to `cut` each, are infinite losses instead.

    A sum of at most 2^30 chances is off by a factor below 1 + 2^-20, so with that factor it is none
    too small.
    """
    chances = losses.chances
    low, high = np.cumsum(chances), np.cumsum(chances[::-1])
    first = int(np.searchsorted(low, cut, side="right"))
    last = int(np.searchsorted(high, cut, side="right"))
    if first + last >= len(chances):
        return losses
    lost = (float(low[first - 1]) if first else 0.0) + (float(high[last - 1]) if last else 0.0)
    return replace(
        losses,
        first=losses.first + first * losses.gap,
        chances=chances[first : len(chances) - last],
        endless=losses.endless + lost * (1 + 2.0**-20),
        roundings=losses.roundings + 3,
    )


def coarsen(losses: Losses) -> Losses:
    """Return a law with twice the gap: a loss between two places is spread onto both."""
    with precision(START):
        fall = (-ball(losses.gap)).exp()
        up, down = nearest(1 / (1 + fall)), nearest(fall / (1 + fall))
    even, odd = losses.chances[::2], losses.chances[1::2]
    chances = np.zeros(len(losses.chances) // 2 + 1)
    chances[: len(even)] = even
    chances[: len(odd)] += down * odd
    chances[1 : 1 + len(odd)] += up * odd
    return replace(losses, gap=2 * losses.gap, chances=chances, roundings=losses.roundings + 5)


def shorten(losses: Losses) -> Losses:
    """Return a law that has few places."""
    while len(losses.chances) > LONGEST:
        losses = coarsen(losses)
    return losses


def refine(losses: Losses, gap: Fraction) -> Losses:
    """Return the same law on a grid that has more places."""
    parts = int(losses.gap / gap)
    chances = np.zeros((len(losses.chances) - 1) * parts + 1)
    chances[::parts] = losses.chances
    return replace(losses, gap=gap, chances=chances)


def response_losses(steps: int, times: int, common: int, unit: Fraction) -> Losses:
    """Losses of so many randomized responses, each of which loses steps·unit, up or down.

    Args:
        steps: See above.
        times: How many there are.
        common: Divides steps; the gap is that of 2·common steps.
        unit: A step.
    """
    with precision(START):
        loss = ball(steps * unit)
        up, down = nearest(loss.exp()), nearest((-loss).exp())
    middle = min(int((times + 1) / (1 + down)), times)  # likeliest; any would do
    number = np.arange(1, times + 1, dtype=np.float64)
    weights = np.ones(times + 1)
    rise = (times - number[middle:] + 1) / number[middle:] * up
    weights[middle + 1 :] = np.cumprod(rise)
    fall = number[:middle] / (times - number[:middle] + 1) * down
    weights[:middle] = np.cumprod(fall[::-1])[::-1]
    stride = steps // common
    chances = np.zeros(times * stride + 1)
    chances[::stride] = weights / weights.sum()
    return Losses(-times * steps * unit, 2 * common * unit, chances, 0.0, 12 * times + 2)


def response_epsilon(counts: Mapping[int, int], unit: Fraction, slack: Fraction) -> Fraction | None:
    """Return the least epsilon, rounded up, of randomized responses together at a delta.

    Args:
        counts: How many there are, by how many steps each loses.
        unit: A step.
        slack: The delta.

    Returns:
        None where there are none, or `slack` is below `LEAST`.
    """
    costs = sorted((steps, times) for steps, times in counts.items() if steps)
    if not costs or slack < LEAST:
        return None
    common, cut = math.gcd(*(steps for steps, _ in costs)), float(slack) * CUT / len(costs)
    whole: Losses | None = None
    for steps, times in costs:  # those with many chances first, while the whole is short
        part = trim(response_losses(steps, times, common, unit), cut)
        whole = part if whole is None else trim(combine(whole, part), cut)
    assert whole is not None, "there are costs"
    return least_epsilon(whole, slack)


def gaussian_losses(shift: int, variance: Fraction, base: Fraction, cut: float) -> Losses | None:
    """Losses of discrete Gaussian noise x on a number that moves by a: (2ax + a²)/(2·variance).

    Args:
        shift: How far the number moves.
        variance: Of the noise.
        base: The gap is this times a power of two.
        cut: So large may the chance of noise be that is not looked at; its loss is infinite.

    Returns:
        None where there are too many values, or the number moves too far.
    """
    cut = min(cut, 2.0**-60)  # so that what is left is off by a factor below 1 + ROUNDING
    with precision(START):
        # The chance of |x| >= reach is at most 2·exp(-reach²/(2·variance)).
        reach = above((2 * ball(variance) * (2 / arb(cut)).log()).sqrt())
        deviation = ball(shift / base) / ball(variance).sqrt()
        finer = above((FINE / deviation).log() / arb(2).log())
    gap = base / Fraction(2) ** finer
    slope = shift / (variance * gap)
    if reach > _FARTHEST or 2 * reach * slope > _WIDEST or (reach + shift) * slope > 1 << 50:
        return None
    noise = np.arange(-reach, reach + 1)
    half = _exponentials(np.arange(reach + 1, dtype=np.float64) ** 2 / float(2 * variance))
    weights = np.concatenate([half[:0:-1], half])
    chance = weights / weights.sum()
    # Losses are raised by more than rounding takes from them.
    place = (2 * noise + shift).astype(np.float64) * float(slope / 2)
    place += np.abs(place) * 2.0**-49
    cell = np.floor(place)
    share, index = place - cell, (cell - cell[0]).astype(np.int64)
    with precision(START):
        bend = float((ball(gap) / -(-ball(gap)).expm1() - 1).upper()) * (1 + 2.0**-50)
    upper = np.minimum(share * (1 + (1 - share) * bend) * (1 + 2.0**-49), 1)
    size = int(index[-1]) + 1
    chances = np.zeros(size + 1)
    chances[:-1] += np.bincount(index, chance * (1 - upper), minlength=size)
    chances[1:] += np.bincount(index, chance * upper, minlength=size)
    terms = len(noise) + int(np.bincount(index).max())
    return Losses(int(cell[0]) * gap, gap, chances, cut, 2 * EXPONENTIAL_ROUNDINGS + terms + 6)


def least_epsilon(losses: Losses, slack: Fraction, after: Deltas = NOTHING) -> Fraction | None:
    """Return the least epsilon, rounded up, at which delta is at most `slack`.

    Args:
        losses: What is lost first.
        slack: Above 0.
        after: What is released then, on the grid of the losses.

    Returns:
        None where the chance of infinite losses is above `slack`, or there is no bound on errors.
    """
    size, gap, reach = len(losses.chances), losses.gap, after.reach
    # from -reach - size to reach
    tail = np.concatenate([falls(size + reach + 1, gap)[:reach:-1], after.values])
    error = (losses.roundings + max(after.roundings, FALL_ROUNDINGS) + size + 2) * ROUNDING
    if error > Fraction(1, 2):
        return None

    def delta(place: int) -> Fraction:
        """At the epsilon of a place, at most."""
        begin = max(place - reach, 0)
        later = tail[place + reach + 1 : place - begin + size + reach + 1]
        finite = float(np.dot(losses.chances[begin:], later[::-1])) if begin < size else 0.0
        return (Fraction(finite) + Fraction(losses.endless)) / (1 - error) + UNDERFLOW

    low = max(math.ceil(-losses.first / gap), -reach) - 1  # epsilon is at least 0
    high = max(size + reach, low + 1)
    if delta(high) > slack:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if delta(middle) <= slack else (middle, high)
    # Between two places delta is at most the line in e^epsilon.
    here, before = delta(high), delta(high - 1)
    part = (slack - here) / (before - here) if before > slack else Fraction(1)
    with precision(4 * START):  # finer than any part of the least delta that matters
        epsilon = ball(losses.first + high * gap) + (ball(part) * (-ball(gap)).expm1()).log1p()
        return max(Fraction(above(epsilon * _GRID), _GRID), Fraction(0))


def falls(number: int, gap: Fraction) -> Floats:
    """Return 1 - e^-x at so many multiples x of a gap, from 0 on."""
    many = 1 << _NOTCHES
    with precision(START):
        small = np.array([nearest(-(-ball(gap * n)).expm1()) for n in range(min(many, number))])
        large = [-ball(gap * many * n) for n in range(-(-number // many))]
        start = np.array([nearest(-power.expm1()) for power in large])
        left = np.array([nearest(power.exp()) for power in large])
    losses: Floats = (start[:, None] + left[:, None] * small).ravel()[:number]
    return losses


def _exponentials(numbers: Floats) -> Floats:
    """Return e^-x of numbers x, none of them negative."""
    digits = np.floor(np.minimum(numbers, _FAR) * 2.0**_DIGITS).astype(np.int64)
    result = np.ones(len(numbers))
    for place in range(_DIGITS // _NOTCHES):
        result *= _notches(place)[(digits >> place * _NOTCHES) & (1 << _NOTCHES) - 1]
    result *= _notches(_DIGITS // _NOTCHES)[digits >> _DIGITS // _NOTCHES * _NOTCHES]
    return result


@cache
def _notches(place: int) -> Floats:
    """Return e^-x for the values of x that one group of binary digits can have."""
    unit = Fraction(1 << place * _NOTCHES, 1 << _DIGITS)
    last = place == _DIGITS // _NOTCHES
    number = int(_FAR / unit) + 1 if last else 1 << _NOTCHES
    with precision(START):
        return np.array([nearest((-ball(unit * n)).exp()) for n in range(number)])


def nearest(number: arb) -> float:
    """Return a float that is off by a factor below (1 + ROUNDING)²."""
    return float(number.mid())
