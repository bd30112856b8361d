"""The cost of a fixed program of releases.

How many releases there are and at what parameters is fixed in advance; what they are asked may
depend on earlier answers.

Its ρ adds up. Privacy loss distributions are composed too, and the lesser epsilon counts: that of
discrete Gaussian noise is known, and for draws of bounded range the worst play against every
neighbor is found by a recursion.

Proof:      docs/proofs/composition.md
Reference:  Dong, Durfee & Rogers, ICML 2020; Zhu, Dong & Wang, AISTATS 2022; Doroshenko et al.,
            PoPETs 2022
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

import numpy as np

from privmax.composition import epsilon_of_rho
from privmax.losses import (
    CUT,
    FALL_ROUNDINGS,
    Deltas,
    Floats,
    Losses,
    coarsen,
    combine,
    falls,
    gaussian_losses,
    least_epsilon,
    nearest,
    refine,
    repeat,
    shorten,
    trim,
)
from privmax.noise.balls import START, ball, precision
from privmax.numbers import Number, nonnegative, open_probability, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, parameter
from privmax.privacy import LEAST

_CELLS = 256
"""So many steps are the smallest range among the rounds."""

_WIDEST = 1 << 22
"""The most losses for which a distribution is computed."""

_EXTREME = 10**100
"""Parameters above it, and below one over it, are left to ρ."""

Round = tuple[Fraction, int]
Gaussian = tuple[int, Fraction, int]


def _read_rounds(name: str, pairs: Iterable[tuple[Number, int]]) -> tuple[Round, ...]:
    return tuple((positive("range", span), whole("times", times)) for span, times in pairs)


def _read_gaussians(name: str, triples: Iterable[tuple[int, Number, int]]) -> tuple[Gaussian, ...]:
    return tuple(
        (whole("shift", shift), positive("variance", variance), whole("times", times))
        for shift, variance, times in triples
    )


class Program(Parameters):
    """Releases whose number and parameters are fixed in advance.

    Attributes:
        rounds: (range, times) of draws of bounded range, such as those of the exponential
            mechanism, in the order in which they are run.
        gaussians: (shift, variance, times) of discrete Gaussian noise on one whole number that one
            individual moves by at most `shift`, a whole number. A release of several such numbers
            is an entry for each of those that one individual can move at once.
        rest: The ρ of everything else. Distributions are then not composed.

    Examples:
        >>> program = Program(rounds=[(Fraction(1, 10), 20)], gaussians=[(1, Fraction(500), 21)])
        >>> program.rho()
        Fraction(23, 500)
        >>> program.epsilon("1e-6") <= Fraction("1.4")
        True
    """

    rounds: Parameter[Iterable[tuple[Number, int]], tuple[Round, ...]] = parameter(
        _read_rounds, default=()
    )
    gaussians: Parameter[Iterable[tuple[int, Number, int]], tuple[Gaussian, ...]] = parameter(
        _read_gaussians, default=()
    )
    rest: Exact = parameter(nonnegative, default=0)

    def rho(self) -> Fraction:
        """Return the ρ of all releases together, exactly."""
        draws = sum((span**2 * times / 8 for span, times in self.rounds), Fraction(0))
        noise = (shift**2 * times / (2 * variance) for shift, variance, times in self.gaussians)
        return draws + sum(noise, Fraction(0)) + self.rest

    def epsilon(self, delta: Number) -> Fraction:
        """Return the epsilon of all releases together at a delta, rounded up.

        Raises:
            ParameterError: The delta is not strictly between 0 and 1.
        """
        total = epsilon_of_rho(self.rho(), delta)
        tighter = self.epsilon_by_losses(delta)
        return total if tighter is None else min(total, tighter)

    def epsilon_by_losses(self, delta: Number) -> Fraction | None:
        """Return the epsilon by privacy loss distributions, rounded up.

        None: something has only a ρ; or delta is below 2^-200, or there are too many releases for
        it; or the distributions would be too large, or a parameter is beyond all floats.
        """
        slack = open_probability("delta", delta)
        if self.rest or slack < LEAST or not (self.rounds or self.gaussians) or self._is_extreme():
            return None
        gap = min((span for span, _ in self.rounds), default=Fraction(_CELLS)) / _CELLS
        noise, draws = self._noise_losses(gap, slack), self._worst_draws(gap)
        if noise is None or draws is None:
            return None
        if self.rounds:  # both on one grid
            while noise.gap < gap:
                noise = coarsen(noise)
            if len(noise.chances) * noise.gap > _WIDEST * gap:
                return None
            noise = refine(noise, gap)
        return least_epsilon(noise, slack, draws)

    def _is_extreme(self) -> bool:
        """Return whether a parameter is too large or too small to compute with.

        It is a range, a shift, a variance, a number of releases or ρ.
        """
        numbers = [self.rho(), *(span for span, _ in self.rounds)]
        for shift, variance, times in self.gaussians:
            numbers += [Fraction(shift), variance, Fraction(times)]
        return not all(1 <= number * _EXTREME <= _EXTREME**2 for number in numbers)

    def _noise_losses(self, gap: Fraction, slack: Fraction) -> Losses | None:
        """Losses of all noise together. Gaps are that of draws times a power of two."""
        whole = Losses(Fraction(0), gap, np.ones(1))
        cut = float(slack) * CUT / max(len(self.gaussians), 1)
        for number, (shift, variance, times) in enumerate(self.gaussians):
            part = gaussian_losses(shift, variance, gap, cut / times)
            if part is None:
                return None
            part = repeat(shorten(trim(part, cut / times)), times, cut)
            whole = shorten(trim(combine(whole, part), cut)) if number else part
        return whole

    def _worst_draws(self, gap: Fraction) -> Deltas | None:
        """Return the largest delta of all draws together at each epsilon."""
        steps = [(math.ceil(span / gap) + 1, times) for span, times in self.rounds]
        reach = sum(wide * times for wide, times in steps)
        if reach**2 > 64 * _WIDEST or reach * gap > 300:
            return None
        falling = falls(2 * reach + 1, gap)[::-1]  # of no draw, up to epsilon 0
        values, roundings = np.concatenate([falling[reach:], np.zeros(reach)]), FALL_ROUNDINGS
        for wide, times in reversed(steps):
            before, chances = falling[reach - wide : reach], _chances(wide, gap)
            for _ in range(times):
                values = _one_more_draw(values, before, chances)
            roundings += 4 * times
        return Deltas(reach, values, roundings)


def _chances(wide: int, gap: Fraction) -> list[tuple[float, float]]:
    """Chances of the upper and of the lower loss of a draw, by how many steps the upper one is."""
    with precision(START):
        whole = ball(wide * gap).expm1()
        lower = [ball(high * gap).expm1() / whole for high in range(1, wide)]
        upper = [1 - chance for chance in lower]
        return [(nearest(up), nearest(down)) for up, down in zip(upper, lower, strict=True)]


def _one_more_draw(deltas: Floats, before: Floats, chances: list[tuple[float, float]]) -> Floats:
    """Return the delta at each epsilon with one more draw before the others, at its worst.

    The losses of the draw are some t or t − wide, in steps of the gap; `before` are the deltas at
    so many epsilons below those of `deltas`.
    """
    wide, size, worst = len(before), len(deltas), deltas
    padded = np.concatenate([before, deltas, np.zeros(wide)])
    for high, (upper, lower) in enumerate(chances, 1):
        above, below = padded[wide - high :][:size], padded[2 * wide - high :][:size]
        worst = np.maximum(worst, upper * above + lower * below)
    return worst
