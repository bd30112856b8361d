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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from privmax.composition import epsilon_of_rho
from privmax.numbers import Number, nonnegative, open_probability, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, parameter

LEAST = Fraction(1, 10**9)
"""The least delta for which distributions, in floats, say anything."""

FLOATS, FLOATS_EACH = 1e-11, 1e-14
"""How much of delta the rounding of floats may cost: the larger of the first, and of the second for
each release with noise. More than ten times what was seen, of 20 and of 16,000 releases.
"""

UPWARD = 1 + Fraction(1, 1 << 40)
"""By what an epsilon that was computed in floats is multiplied."""

_COARSEST, _FINEST = 10, 20
"""Losses of Gaussian noise are on multiples of some 2^-bits, with bits between these."""

_CELLS = 256
"""So many steps are the smallest range among the rounds."""

_WIDEST = 1 << 22
"""The most losses, or values of noise, for which a distribution is computed."""

_EXTREME = 10**100
"""Parameters above it, and below one over it, are left to ρ."""

Floats = NDArray[np.float64]
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

        None: something has only a ρ; or delta is below 1e-9, or too small for so many releases; or
        the distributions would be too large, or a parameter is beyond all floats.
        """
        slack = open_probability("delta", delta)
        if self.rest or slack < LEAST or not (self.rounds or self.gaussians) or self._is_extreme():
            return None
        noise, draws = self._noise_losses(), self._worst_draws()
        if noise is None or draws is None:
            return None
        releases = sum(times for *_, times in self.gaussians)
        target = float(slack) * (1 - 1e-3) - max(FLOATS, FLOATS_EACH * releases)
        low, high = 0.0, float(epsilon_of_rho(self.rho(), slack))
        if _delta(high, noise, draws) > target:
            return None  # not less than by rho
        while high - low > 1e-6 * high:
            middle = (low + high) / 2
            low, high = (low, middle) if _delta(middle, noise, draws) <= target else (middle, high)
        return Fraction(high) * UPWARD

    def _is_extreme(self) -> bool:
        """Return whether a parameter is too large or too small to compute with.

        It is a range, a shift, a variance or ρ.
        """
        numbers = [self.rho(), *(span for span, _ in self.rounds)]
        for shift, variance, _ in self.gaussians:
            numbers += [Fraction(shift), variance]
        return not all(1 <= number * _EXTREME <= _EXTREME**2 for number in numbers)

    def _noise_losses(self) -> Losses | None:
        """Losses of all noise together."""
        bits = 0 if not self.gaussians else _grid(self.gaussians)
        lowest, chances = 0, np.ones(1)
        for shift, variance, times in self.gaussians:
            part = _gaussian_losses(shift, variance, bits)
            if part is None or (len(part.chances) * times + len(chances)) > _WIDEST:
                return None
            lowest += part.lowest * times
            chances = _convolve(chances, part.chances, times)
        return Losses(lowest, chances, 2.0**-bits)

    def _worst_draws(self) -> Losses | None:
        """Return the largest delta of all draws together at each epsilon.

        Epsilons are taken as if they were losses.
        """
        gap = min((float(span) for span, _ in self.rounds), default=1.0) / _CELLS
        steps = [(math.ceil(span / Fraction(gap)) + 1, times) for span, times in self.rounds]
        reach = sum(wide * times for wide, times in steps)
        if reach * sum(wide * times for wide, times in steps) > 64 * _WIDEST or reach * gap > 300:
            return None
        deltas = _no_draw(-reach, reach, gap)
        for wide, times in reversed(steps):
            for _ in range(times):
                deltas = _one_more_draw(deltas, reach, wide, gap)
        return Losses(-reach, deltas, gap)


@dataclass(frozen=True)
class Losses:
    """Numbers, one for each of consecutive multiples of a gap from the lowest up."""

    lowest: int
    chances: Floats
    gap: float

    def places(self) -> Floats:
        return np.arange(self.lowest, self.lowest + len(self.chances), dtype=np.float64) * self.gap


def _grid(gaussians: Sequence[tuple[int, Fraction, int]]) -> int:
    """Return how many binary digits losses have on the grid.

    Enough that spreading losses onto the grid, once per release, adds little to their deviation.
    """
    least = min(shift / math.sqrt(variance) for shift, variance, _ in gaussians)
    return min(max(math.ceil(math.log2(30 / least)), _COARSEST), _FINEST)


def _gaussian_losses(shift: int, variance: Fraction, bits: int) -> Losses | None:
    """Losses of discrete Gaussian noise x on a number that moves by a: (2ax + a²)/(2·variance)."""
    reach = 12 * (math.isqrt(math.ceil(variance)) + 1)
    slope = float(Fraction(shift) / variance)
    if max(2 * reach, 2 * slope * reach * 2**bits) > _WIDEST:
        return None
    noise = np.arange(-reach, reach + 1, dtype=np.float64)
    weight = np.exp(-(noise**2) / (2 * float(variance)))
    chance = weight / weight.sum()  # beyond the reach lies less than 1e-30
    loss = (slope * noise + slope * shift / 2) * 2.0**bits
    cell = np.floor(loss).astype(np.int64)
    upper = np.expm1((cell - loss) * 2.0**-bits) / math.expm1(-(2.0**-bits))
    lowest, size = int(cell[0]), int(cell[-1] - cell[0]) + 1
    chances = np.zeros(size + 1)
    chances[:-1] += np.bincount(cell - lowest, chance * (1 - upper), minlength=size)
    chances[1:] += np.bincount(cell - lowest, chance * upper, minlength=size)
    return Losses(lowest, chances, 2.0**-bits)


def _convolve(chances: Floats, other: Floats, times: int) -> Floats:
    """Chances of a sum of losses: one by the first, and so many by the other."""
    size = len(chances) + (len(other) - 1) * times
    length = 1 << (size - 1).bit_length()
    transform = np.fft.rfft(chances, length) * np.fft.rfft(other, length) ** times
    result: Floats = np.maximum(np.fft.irfft(transform, length)[:size], 0)
    return result


def _no_draw(first: int, last: int, gap: float) -> Floats:
    """Return the delta at each epsilon if nothing is released."""
    result: Floats = np.maximum(-np.expm1(np.arange(first, last + 1) * gap), 0)
    return result


def _one_more_draw(deltas: Floats, reach: int, wide: int, gap: float) -> Floats:
    """Return the delta at each epsilon with one more draw before the others, at its worst.

    The losses of the draw are some t or t − wide, in steps of the gap.
    """
    before = _no_draw(-reach - wide, -reach - 1, gap)
    padded = np.concatenate([before, deltas, np.zeros(wide)])
    size, worst = len(deltas), deltas
    for high in range(1, wide):
        chance = math.expm1((wide - high) * gap) / math.expm1(wide * gap) * math.exp(high * gap)
        above, below = padded[wide - high :][:size], padded[2 * wide - high :][:size]
        worst = np.maximum(worst, chance * above + (1 - chance) * below)
    return worst


def _delta(epsilon: float, noise: Losses, draws: Losses) -> float:
    """Return the delta of noise and draws together, at most."""
    left = epsilon - noise.places()
    # Deltas are convex in e^epsilon, so between two places they lie below the line.
    places = draws.places()
    low, high = float(places[0]), float(places[-1])  # from here on it is 0
    between = np.interp(np.exp(np.clip(left, low, high)), np.exp(places), draws.chances)
    deltas = np.where(left < low, -np.expm1(np.minimum(left, 0)), between)
    return float(noise.chances @ deltas)
