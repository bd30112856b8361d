"""A race of blocks: which of many noisy scores is the largest.

It draws one number for each block of equal candidates.

A candidate at depth d with noise Z arrives at time e^(−λ(Z − d)), where λ is the rate at which the
noise decays: the largest noisy score comes first. The first of n equal candidates has V = U^(1/n),
the probability of less noise than its own, and arrives at y(V)/p with p = e^(−λ·depth). Each kind
of noise is one function y.

Proof:      docs/proofs/race.md
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property, partial
from typing import TYPE_CHECKING, Protocol, TypeAlias

from flint import arb

from privmax.deferred import np
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform

if TYPE_CHECKING:
    from numpy.typing import NDArray


QUADRATURE_ERROR = 1e-11
"""Bound on the error of `race_law`: see the section on quadrature of the proof page."""

Floats: TypeAlias = "NDArray[np.float64]"

_OVER = 45.0
"""A law stops where a candidate has come but with probability e^−45."""


class TimedNoise(Protocol):
    """A kind of noise in the time form."""

    def time(self, log_v: arb) -> arb:
        """Return y, given ln V."""
        ...


class RaceNoise(TimedNoise, Protocol):
    """Noise that can be raced: as balls for the draw, and as floats for the law.

    A block starts at some time, before which it never comes; its age is counted from there.
    """

    @property
    def latest(self) -> float:
        """A time by which the best block has certainly come."""
        ...

    def log_v(self, y: arb) -> arb:
        """Return ln V, given y: the inverse of `time`."""
        ...

    def starts(self, exponents: Floats) -> Floats:
        """Return ln of the time at which each block starts; −∞ for 0."""
        ...

    def bends(self, exponents: Floats) -> Floats:
        """Return ln of the times at which the formula of some block changes."""
        ...

    def rates(self, exponents: Floats) -> Floats:
        """Return ln of the scale of each hazard."""
        ...

    def hazards(self, ages: Floats, exponents: Floats) -> tuple[Floats, Floats]:
        """Return ln(−ln v) and ln of the hazard −d(ln v)/dt of one candidate.

        Args:
            ages: Logarithms of ages.
            exponents: Of the blocks.
        """
        ...


@dataclass(frozen=True)
class ExponentialNoise:
    """Exponential noise, or that noise given that it is at most τ.

    Attributes:
        cut: Computes κ = e^(−λτ), below 1; by default 0.

    Examples:
        >>> EXPONENTIAL.time(arb(0)) == 0
        True
    """

    cut: Callable[[], arb] = lambda: arb(0)
    latest = 1.0

    def time(self, log_v: arb) -> arb:
        late = -log_v.expm1()
        return late + self.cut() * (1 - late)

    def log_v(self, y: arb) -> arb:
        cut = self.cut()
        return ((cut - y) / (1 - cut)).log1p().min(arb(0))

    def starts(self, exponents: Floats) -> Floats:
        return exponents + self._log_cut

    def bends(self, exponents: Floats) -> Floats:
        return self.starts(exponents)

    def rates(self, exponents: Floats) -> Floats:
        return -exponents - self._log_left

    def hazards(self, ages: Floats, exponents: Floats) -> tuple[Floats, Floats]:
        rates = self.rates(exponents)
        log_y = ages + rates
        y = _unlog(log_y)
        return log_y + np.log(-np.log1p(-y) / y), rates - np.log1p(-y)

    @cached_property
    def _log_cut(self) -> float:
        return _log(self.cut)

    @cached_property
    def _log_left(self) -> float:
        return _log(lambda: 1 - self.cut())


class LaplaceNoise:
    """Real-valued Laplace noise.

    Examples:
        >>> LAPLACE.log_v(arb(0)) == 0
        True
    """

    latest = math.inf

    def time(self, log_v: arb) -> arb:
        return _either(log_v + arb.const_log2(), -2 * log_v.expm1(), (-log_v).exp() / 2)

    def log_v(self, y: arb) -> arb:
        return _either(1 - y, (-y / 2).log1p(), -(2 * y).log())

    def starts(self, exponents: Floats) -> Floats:
        return np.full_like(exponents, -np.inf)

    def bends(self, exponents: Floats) -> Floats:
        return exponents

    def rates(self, exponents: Floats) -> Floats:
        return -exponents

    def hazards(self, ages: Floats, exponents: Floats) -> tuple[Floats, Floats]:
        log_y = ages - exponents
        y, beyond = _unlog(log_y), np.maximum(log_y, 0.0)
        log_minus = log_y - beyond + np.log(beyond - np.log1p(-y / 2) / y)
        return log_minus, -exponents - np.log(2 - y) - beyond


EXPONENTIAL = ExponentialNoise()
LAPLACE = LaplaceNoise()


def run_race(
    blocks: Sequence[tuple[int, int]], rate: Fraction, noise: RaceNoise, coins: Coins
) -> int:
    """Find the block that arrives first.

    Args:
        blocks: (depth, count) of each; depth 0 comes first in the list.
        rate: λ, at which the noise decays.
        noise: Its kind.
        coins: Where random bits come from.

    Returns:
        The index of the block.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> run_race([(0, 5)], Fraction(1), LAPLACE, SYSTEM)
        0
    """
    runners = [_Runner(depth * rate, count, noise, coins) for depth, count in blocks]
    first = 0
    runners[0].arrive()
    for index in range(1, len(runners)):
        if not runners[index].after(runners[first].high) and _earlier(
            runners[index], runners[first]
        ):
            first = index
    return first


def race_law(blocks: Sequence[tuple[int, int]], rate: Fraction, noise: RaceNoise) -> list[float]:
    """Return P(b comes first) = ∫ n_b·hazard_b·Π_e S_e dt for every block b.

    By Gauss–Legendre on panels that double; each is within QUADRATURE_ERROR. Everything is kept as
    logarithms: counts and times may lie beyond the floats.

    Args:
        blocks: (depth, count) of each; depth 0 comes first in the list.
        rate: λ, at which the noise decays.
        noise: Its kind.

    Examples:
        >>> race_law([(0, 5)], Fraction(1), EXPONENTIAL)
        [1.0]
    """
    exponents = np.array([float(rate * depth) for depth, _ in blocks])
    late = np.flatnonzero(
        noise.starts(exponents) >= math.log(noise.latest)
    )  # the best one has come before they start
    able = len(blocks) - late.size
    if able == 1:
        return [1.0] + [0.0] * late.size
    log_counts = np.array([_log(partial(ball, count)) for _, count in blocks[:able]])
    with np.errstate(divide="ignore", invalid="ignore"):  # ln 0 = −∞ is meant
        wins = _integrals(exponents[:able], log_counts, noise)
    total = sum(wins)
    return [win / total for win in wins] + [0.0] * late.size


class _Runner:
    """The first arrival of a block, y(U^(1/count)) / e^(−exponent), U revealed as needed."""

    def __init__(self, exponent: Fraction, count: int, noise: RaceNoise, coins: Coins) -> None:
        self._exponent, self._count, self._noise = exponent, count, noise
        self._uniform = Uniform(coins)
        self.low, self.high = arb(0), arb.pos_inf()

    def arrive(self) -> None:
        """Look until it is known to come before the latest time there is.

        Only for the best block: it always does.
        """
        while not self.high < self._noise.latest:
            self.look()

    def after(self, time: arb) -> bool:
        """Return whether it comes later than a time before the latest: U < v(p·time)^count.

        A few bits decide.
        """
        limit = time.upper()
        return self._uniform.left_of(
            lambda: (self._noise.log_v(self._weight() * limit) * self._count).exp()
        )

    def width(self) -> arb:
        """Return how uncertain the arrival still is."""
        return self.high - self.low

    def look(self) -> None:
        """Reveal one more bit of U and narrow the bounds of the arrival."""
        self._uniform.reveal()
        with precision(START + self._uniform.length):
            weight = self._weight()
            self.low = self._noise.time(self._uniform.high().log() / self._count) / weight
            if self._uniform.known:
                self.high = self._noise.time(self._uniform.low().log() / self._count) / weight

    def _weight(self) -> arb:
        return (-ball(self._exponent)).exp()


def _earlier(left: _Runner, right: _Runner) -> bool:
    """Return whether `left` arrives first.

    Ends with probability one: two continuous times are almost surely different.
    """
    while True:
        if left.high < right.low:
            return True
        if right.high < left.low:
            return False
        (left if left.width() > right.width() else right).look()


def _integrals(exponents: Floats, log_counts: Floats, noise: RaceNoise) -> list[float]:
    """Return the integral of every block; they add up to 1 but for rounding."""
    origins, places, times, weights = _nodes(exponents, log_counts, noise)
    log_survival = np.zeros_like(times)
    hazards = []
    for exponent, log_count, start in zip(
        exponents, log_counts, noise.starts(exponents), strict=True
    ):
        own = int(np.searchsorted(origins, start))  # the origin at which this block starts
        begin = int(np.searchsorted(places, own))
        gaps = _log_difference(origins[own:], start)
        ages = np.logaddexp(times[begin:], gaps[places[begin:] - own])
        log_minus, log_hazard = noise.hazards(ages, exponent)
        log_survival[begin:] -= np.exp(np.minimum(log_count + log_minus, 700.0))
        hazards.append((begin, log_count + log_hazard + weights[begin:]))
    return [float(np.exp(mass + log_survival[begin:]).sum()) for begin, mass in hazards]


def _nodes(
    exponents: Floats, log_counts: Floats, noise: RaceNoise
) -> tuple[Floats, NDArray[np.intp], Floats, Floats]:
    """Return the points to sum over, in order of time, and their weights.

    A point is given by the last change of formula before it (its place among the origins) and the
    time since then. Origins, times and weights are logarithms.
    """
    starts, end = noise.starts(exponents), _end(exponents, log_counts, noise)
    bends = noise.bends(exponents)
    origins = np.unique([starts.min(), *bends[(bends > starts.min()) & (bends < end)]])
    small = -np.log(16.0 * len(exponents)) - log_counts - noise.rates(exponents)
    abscissas, shares = _quadrature()
    places, times, weights = [], [], []
    for place, (origin, until) in enumerate(zip(origins, [*origins[1:], end], strict=True)):
        started = starts <= origin
        step = np.maximum(_log_difference(origin, starts[started]), small[started]).min()
        last = _log_difference(until, origin)
        doubled = np.arange(max(0.0, np.ceil((last - step) / np.log(2)))) * np.log(2)
        highs = np.append(step + doubled, last)
        ratios = np.exp(np.append(-np.inf, highs[:-1]) - highs)[:, None]
        times.append((highs[:, None] + np.log(ratios + (1 - ratios) * abscissas)).ravel())
        weights.append((highs[:, None] + np.log((1 - ratios) * shares)).ravel())
        places.append(np.full(times[-1].size, place))
    return origins, np.concatenate(places), np.concatenate(times), np.concatenate(weights)


@cache
def _quadrature() -> Floats:
    """Return the abscissas and the weights of the Gauss–Legendre rule on [0, 1]."""
    rule: Floats = (np.polynomial.legendre.leggauss(24) + np.array([[1.0], [0.0]])) / 2
    return rule


def _end(exponents: Floats, log_counts: Floats, noise: RaceNoise) -> float:
    """Return ln of a time by which a candidate has come but with probability e^−45.

    It is not much later than the first such time.
    """
    starts = noise.starts(exponents)

    def over(log_time: float) -> bool:
        ages = _log_difference(log_time, starts)
        log_minus, _ = noise.hazards(ages[starts < log_time], exponents[starts < log_time])
        return bool(
            np.exp(np.minimum(log_counts[starts < log_time] + log_minus, 700.0)).sum() > _OVER
        )

    low = max(float(starts.min()), -float((log_counts + noise.rates(exponents)).max()))
    high = min(
        math.log(noise.latest), _OVER + 1
    )  # Laplace: at e^46 the best one is left with probability e^−46/2
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (low, middle) if over(middle) else (middle, high)
    return high


def _either(side: arb, above: arb, below: arb) -> arb:
    """Return `above` where `side` is positive, `below` where it is negative.

    Where that is not known, a ball that holds both.
    """
    if side > 0:
        return above
    return below if side < 0 else above.union(below)


def _unlog(log_y: Floats) -> Floats:
    """min(y, 1), and not below e^−600, where −ln(1 − y)/y is 1 already."""
    return np.exp(np.clip(log_y, -600.0, 0.0))


def _log(number: Callable[[], arb]) -> float:
    """Return ln of a number as a float; −∞ for 0."""
    with precision(START):
        value = number()
        return -math.inf if value == 0 else float(value.log().mid())


def _log_difference(larger: Floats | float, smaller: Floats | float) -> Floats:
    """Return ln(e^larger − e^smaller); −∞ where they are equal."""
    return np.where(
        np.equal(larger, smaller), -np.inf, larger + np.log1p(-np.exp(np.subtract(smaller, larger)))
    )
