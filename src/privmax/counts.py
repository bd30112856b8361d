"""Noisy counts of what was released: which noise they get, what that costs, how far off they are.

The set is public when it is counted, and k numbers are asked for, whatever number came. One
individual moves m of them at most, each by s at most. Discrete Laplace noise of scale m·s/ε hides
that at (ε, 0). Where a delta is allowed, discrete Gaussian noise of a variance in proportion to m
does at (ε, δ), and has the smaller error from m of about 8 on. Under add-remove all counts move the
same way, and noise that all of them share hides a part of that: the standard deviation falls to two
thirds for 10 counts, and toward half for many.

Proof:      docs/proofs/counts.md
References: Ghosh, Roughgarden & Sundararajan, STOC 2009; Canonne, Kamath & Steinke, NeurIPS 2020;
            Lebeda, arXiv 2408.06853
"""

from __future__ import annotations

import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from flint import arb

from privmax.errors import ParameterError
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_gaussian, discrete_laplace
from privmax.noise.tails import gaussian_tail, laplace_tail
from privmax.numbers import Number, open_probability, plain, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, drift

CONFIDENCE = Fraction(95, 100)
"""How often a count is within its `error`."""

BITS = 12
"""To how many binary digits the standard deviation of Gaussian noise is found."""

SMALLEST = Fraction(1, 8)
"""Standard deviation, in steps, below which none is looked for: such noise is 0."""


PARTS = 33
"""Into how many parts a step is divided where noise is shared: odd, so that no draw is between two
steps.
"""

LEAST_PARTS = 3
"""The least standard deviation of noise that is shared, in those parts."""

ROUNDED = 4
"""What of a variance, in parts², covers that noise is on whole numbers and not on real ones."""

RATIOS = 64
"""Standard deviations of the shared part are tried in this many parts of that of the others."""


MANY = 256
"""From more draws than this on, they are made in bulk."""


class Noise(Parameters, ABC):
    """Noise on counts: a whole number of steps for each, of the same law for all."""

    title: ClassVar[str]
    """What it is called."""

    @property
    @abstractmethod
    def step(self) -> Fraction:
        """What one step is worth in units of the scores; 1 for counts."""

    @abstractmethod
    def draw(self, coins: Coins) -> int:
        """Draw noise, in steps."""

    @abstractmethod
    def tail(self, least: int) -> arb:
        """The probability that a draw is at least so many steps, as a ball."""

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        """Draw noise for all counts of one release, in steps."""
        return [self.draw(coins) for _ in range(number)]

    def add(self, count: int, coins: Coins) -> int | float:
        """The only count of a release with noise, in units of the scores.

        Args:
            count: The true one, in steps. It is private.
            coins: Where random bits come from.
        """
        return self.add_all([count], coins)[0]

    def add_all(self, counts: Sequence[int], coins: Coins) -> tuple[int | float, ...]:
        """All counts of one release with noise, in units of the scores.

        Args:
            counts: The true ones, in steps. They are private.
            coins: Where random bits come from.
        """
        drawn = self.draw_all(len(counts), coins)
        return tuple(self.in_units(count + more) for count, more in zip(counts, drawn, strict=True))

    def in_units(self, steps: int) -> int | float:
        """So many steps in units of the scores.

        Examples:
            >>> DiscreteLaplace(scale=1, step="0.25").in_units(7)
            1.75
        """
        if self.step == 1:
            return steps
        try:
            return float(steps * self.step)
        except OverflowError:  # after a draw nothing may fail
            return sys.float_info.max if steps > 0 else -sys.float_info.max

    def chance(self, steps: int) -> float:
        """The probability that a draw is exactly so many steps.

        Examples:
            >>> round(DiscreteLaplace(scale=1).chance(0), 6)
            0.462117
        """
        with precision(START):
            return float(self.tail(abs(steps)) - self.tail(abs(steps) + 1))

    def error(self, confidence: Number = CONFIDENCE) -> int | float:
        """How far from the truth a noisy count is at most, with a probability of `confidence`.

        It is the least such number, by the exact law of the noise; for each count on its own.

        Examples:
            >>> DiscreteLaplace(scale=5).error()
            15
            >>> DiscreteGaussian(sigma=5).error(), DiscreteGaussian(sigma=5).error("0.5")
            (10, 3)
        """
        return self.in_units(_reach(self, open_probability("confidence", confidence)))

    def to_dict(self) -> dict[str, str]:
        """The law by name, numbers exactly, as text."""
        numbers = {name: plain(getattr(self, name)) for name in self.parameters}
        return {"law": type(self).__name__, **numbers}


class DiscreteLaplace(Noise):
    """Noise x with probability proportional to e^(−|x|/scale), on multiples of the step.

    Args:
        scale: In units of the scores.
        step: What one step is worth in them.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> DiscreteLaplace(scale="0.001").add(912, SYSTEM)
        912
    """

    title = "discrete Laplace noise"
    scale: Exact = parameter(positive)
    step: Exact = parameter(positive, default=1)

    def draw(self, coins: Coins) -> int:
        return discrete_laplace(self.scale / self.step, coins)

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        scale = self.scale / self.step
        if number > MANY:
            from privmax.noise import bulk  # NumPy, which a plan of counts does not wait for

            # How many counts there are was drawn: whether this fails must not follow from it.
            if scale <= bulk.LARGEST_SCALE:
                drawn: list[int] = bulk.discrete_laplace(scale, number, coins).tolist()
                return drawn
        return super().draw_all(number, coins)

    def tail(self, least: int) -> arb:
        return laplace_tail(self.scale / self.step, least)


class DiscreteGaussian(Noise):
    """Noise x with probability proportional to e^(−x²/(2·sigma²)), on multiples of the step.

    Args:
        sigma: In units of the scores.
        step: What one step is worth in them.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> DiscreteGaussian(sigma="0.01").add(912, SYSTEM)
        912
    """

    title = "discrete Gaussian noise"
    sigma: Exact = parameter(positive)
    step: Exact = parameter(positive, default=1)

    def draw(self, coins: Coins) -> int:
        return discrete_gaussian((self.sigma / self.step) ** 2, coins)

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        sigma = self.sigma / self.step
        if number > MANY:
            from privmax.noise import bulk

            if sigma <= bulk.LARGEST_SCALE:
                drawn: list[int] = bulk.discrete_gaussian(sigma**2, number, coins).tolist()
                return drawn
        return super().draw_all(number, coins)

    def tail(self, least: int) -> arb:
        return gaussian_tail((self.sigma / self.step) ** 2, least)


def read_parts(name: str, value: int | str) -> int:
    """An odd number, perhaps as text, as `Noise.to_dict` writes it."""
    number = int(value) if isinstance(value, str) and value.isdecimal() else whole(name, value)
    if number % 2 == 0:
        raise ParameterError(name, value, "it must be odd")
    return number


class SharedGaussian(Noise):
    """The sum of discrete Gaussian noise for each count and some that all counts of a release
    share, rounded to the nearest step.

    Both are drawn on parts of a step. The counts of one release must be drawn together.

    Args:
        sigma: Standard deviation of what each count has for itself, in units of the scores.
        shared: Of what all share.
        step: What one step is worth in those units.
        parts: Into how many parts a step is divided; odd.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> noise = SharedGaussian(sigma="0.1", shared="0.1")
        >>> noise.add_all([912, 640], SYSTEM), noise.error()
        ((912, 640), 0)
    """

    title = "discrete Gaussian noise, part of it shared"
    sigma: Exact = parameter(positive)
    shared: Exact = parameter(positive)
    step: Exact = parameter(positive, default=1)
    parts: Parameter[int | str, int] = parameter(read_parts, default=PARTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("sigma", "shared"):
            if getattr(self, name) * self.parts < LEAST_PARTS * self.step:
                raise ParameterError(
                    name, getattr(self, name), f"it must be at least {LEAST_PARTS} parts of a step"
                )

    @property
    def variances(self) -> tuple[Fraction, Fraction]:
        """Of what each count has for itself, and of what all share, in parts².

        Examples:
            >>> SharedGaussian(sigma=2, shared=1, parts=3).variances
            (Fraction(36, 1), Fraction(9, 1))
        """
        own, shared = (Fraction(one) * self.parts / self.step for one in (self.sigma, self.shared))
        return own**2, shared**2

    def draw(self, coins: Coins) -> int:
        return self.draw_all(1, coins)[0]

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        own, shared = self.variances
        common = discrete_gaussian(shared, coins)
        drawn = [discrete_gaussian(own, coins) + common for _ in range(number)]
        return [(one + self.parts // 2) // self.parts for one in drawn]

    def tail(self, least: int) -> arb:
        # The sum of the two is almost discrete Gaussian noise of both variances together.
        own, shared = self.variances
        slack = ripple(own * shared / (own + shared))
        tail = gaussian_tail(own + shared, self.parts * least - self.parts // 2)
        return tail * slack.union(1 / slack)


class CountNoise(NamedTuple):
    """The noise on every count of a release, and what all counts cost together."""

    noise: Noise
    privacy: Privacy


@lru_cache(maxsize=256)
def choose_noise(
    price: Privacy,
    *,
    k: int,
    growth: int | None = None,
    neighbors: Neighbors = ADD_REMOVE,
    sensitivity: int = 1,
    step: Fraction = Fraction(1),
) -> CountNoise:
    """The noise with the smallest error that hides one individual in k counts. Public facts only.

    Args:
        cost: What the counts may cost; without a delta they get Laplace noise.
        k: How many counts are asked for, whatever number comes.
        growth: How many candidates one individual's record touches at most, if there is a bound.
        neighbors: "add-remove" or "replace".
        sensitivity: By how many steps one individual can move a count.
        step: What a step is worth in units of the scores.

    Returns:
        The noise, and what it costs: delta only where the noise needs it.

    Examples:
        >>> choose_noise(Privacy("0.2"), k=1)
        CountNoise(noise=DiscreteLaplace(scale=5, step=1), privacy=Privacy(epsilon=0.2, delta=0))
        >>> hundred = choose_noise(Privacy(1, 1e-6), k=100)
        >>> hundred.noise.error(), hundred.privacy
        (46, Privacy(epsilon=1, delta=1e-06))
        >>> choose_noise(Privacy(1), k=100).noise.error()
        300
    """
    moved = count_moved(k, growth, neighbors)
    laplace = DiscreteLaplace(scale=moved * sensitivity * step / price.epsilon, step=step)
    pure = CountNoise(laplace, Privacy(price.epsilon))
    if price.delta == 0 or laplace.error() == 0:  # no other noise can be smaller
        return pure
    sigma = find_sigma(price, moved, sensitivity)
    gaussian = DiscreteGaussian(sigma=sigma * step, step=step)
    # This is what decides about delta, so that costs are those of releases recorded before noise
    # was shared.
    if gaussian.error() >= laplace.error():
        return pure
    # All counts move the same way. Where one individual moves few of them, sharing gains nothing.
    if neighbors == ADD_REMOVE and moved > 1 and 8 * moved >= k:
        own, common = find_shared(price, k, moved, sensitivity)
        shared = SharedGaussian(sigma=own * step, shared=common * step, step=step)
        if shared.error() < gaussian.error():
            return CountNoise(shared, price)
    return CountNoise(gaussian, price)


def read_noise(written: Mapping[str, Any]) -> Noise:
    """The noise that `Noise.to_dict` wrote down.

    Examples:
        >>> read_noise(DiscreteGaussian(sigma=5).to_dict())
        DiscreteGaussian(sigma=5, step=1)
    """
    kinds = (DiscreteLaplace, DiscreteGaussian, SharedGaussian)
    law = {kind.__name__: kind for kind in kinds}[written["law"]]
    return law(**{name: value for name, value in written.items() if name != "law"})


def count_moved(k: int, growth: int | None, neighbors: Neighbors) -> int:
    """How many of k counts one individual moves at most.

    Where one record is exchanged for another, both may move counts.

    Examples:
        >>> count_moved(10, None, "replace"), count_moved(10, 3, "replace")
        (10, 6)
    """
    return k if growth is None else min(k, drift(neighbors) * growth)


def find_sigma(price: Privacy, moved: int, sensitivity: int) -> Fraction:
    """The standard deviation, in steps, of discrete Gaussian noise that costs at most `price`.

    It is the least of those with so many binary digits as are tried; that it costs no more is
    certain, whatever was not tried.

    Examples:
        >>> float(find_sigma(Privacy(1, 1e-6), 1, 1)), float(find_sigma(Privacy(1, 1e-6), 100, 1))
        (4.2314453125, 42.25)
    """

    def enough(sigma: Fraction) -> bool:
        with precision(START):
            spent = gaussian_delta(price.epsilon, sigma**2, moved, sensitivity)
            return bool(spent <= ball(price.delta))

    return least_scale(enough, start_scale(price, moved, sensitivity))


def find_shared(
    price: Privacy, k: int, moved: int, sensitivity: int, parts: int = PARTS
) -> tuple[Fraction, Fraction]:
    """The standard deviations, in steps, of `SharedGaussian` noise that costs at most `price`, for
    each count and shared. Only for counts that all move the same way.

    Args:
        price: What the counts may cost.
        k: How many there are.
        moved: How many of them one individual moves at most.
        sensitivity: By how many steps.
        parts: Into how many parts a step is divided.

    Examples:
        >>> own, shared = find_shared(Privacy(1, 1e-6), 100, 100, 1)
        >>> round((own**2 + shared**2) ** 0.5 / find_sigma(Privacy(1, 1e-6), 100, 1), 2)
        0.55
    """
    ratio = _find_ratio(k, moved)

    def enough(sigma: Fraction) -> bool:
        own, shared = (sigma * parts) ** 2, (ratio * sigma * parts) ** 2
        if shared < LEAST_PARTS**2:
            return False
        with precision(START):
            spent = shared_delta(price.epsilon, (own, shared), k, moved, sensitivity * parts)
            return bool(spent <= ball(price.delta))

    sigma = least_scale(enough, start_scale(price, moved, sensitivity))
    return sigma, ratio * sigma


def start_scale(price: Privacy, moved: int, sensitivity: int) -> Fraction:
    """A standard deviation to begin at."""
    variance = moved * sensitivity**2 / Fraction(price.epsilon) ** 2
    return Fraction(2) ** ((int(variance).bit_length() + 1) // 2)


def least_scale(enough: Callable[[Fraction], bool], start: Fraction) -> Fraction:
    """The least standard deviation, to `BITS` binary digits, that is certainly enough.

    Args:
        enough: Whether one is; where one is, so are all above it.
        start: Where to begin, above 0.

    Examples:
        >>> float(least_scale(lambda sigma: sigma >= 3, Fraction(1)))
        3.0
    """
    high = start
    while not enough(high):  # ends: what is spent falls to 0 as the noise grows
        high *= 2
    while high > SMALLEST and enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(BITS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _find_ratio(k: int, moved: int) -> Fraction:
    """Which shared standard deviation, over that for each count, leaves the least noise in all."""
    ratios = [Fraction(part, RATIOS) for part in range(1, RATIOS + 1)]
    return min(ratios, key=lambda one: (1 + one**2) * _spread(Fraction(1), one**2, k, moved))


def _spread(own: Fraction, shared: Fraction, k: int, moved: int) -> Fraction:
    """The largest j − j²·w/(v + k·w) for j of k counts that move, v and w the two variances."""
    bend = shared / (own + k * shared)
    peak = min(moved, math.floor(1 / (2 * bend)))
    return max(j - j**2 * bend for j in {peak, min(moved, peak + 1)})


def gaussian_delta(epsilon: Fraction, variance: Fraction, moved: int, sensitivity: int) -> arb:
    """A ball no number of which is below the delta that discrete Gaussian noise needs at `epsilon`.

    Args:
        epsilon: The cost.
        variance: Of the noise, in steps².
        moved: How many counts one individual moves, each by `sensitivity` steps at most.
        sensitivity: In steps.

    Examples:
        >>> bool(gaussian_delta(Fraction(1), Fraction(18), 1, 1) < 1e-6)
        True
    """
    # The sum of the noise on the counts that move is within `slack` of discrete Gaussian noise
    # itself, of the variance `wide`, and tells all there is to tell.
    wide, shift = moved * variance, moved * sensitivity
    middle = epsilon * variance / sensitivity
    first = math.floor(middle - Fraction(shift, 2)) + 1
    second = math.floor(middle + Fraction(shift, 2)) + 1
    delta = gaussian_tail(wide, first) - ball(epsilon).exp() * gaussian_tail(wide, second)
    return delta * _slack(variance, moved)


def shared_delta(
    epsilon: Fraction, variances: tuple[Fraction, Fraction], k: int, moved: int, sensitivity: int
) -> arb:
    """A ball no number of which is below the delta that noise for each count, and shared noise
    beside it, needs at `epsilon`, where all counts move the same way.

    Args:
        epsilon: The cost.
        variances: Of what each count has for itself, and of what all share, in parts².
        k: How many counts there are.
        moved: How many of them one individual moves at most.
        sensitivity: By how many parts.

    Examples:
        >>> bool(shared_delta(Fraction(1), (Fraction(10**5), Fraction(4 * 10**4)), 9, 9, 33) < 1e-6)
        True
    """
    # On k + 1 whole numbers the noise is that on real ones, a little less of it, and a rounding.
    own, shared = (variance - ROUNDED for variance in variances)
    square = sensitivity**2 * _spread(own, shared, k, moved) / own + (1 / shared + k / own) / 4
    return rounded_delta(epsilon, square, k + 1)


def rounded_delta(epsilon: Fraction, square: Fraction, numbers: int) -> arb:
    """A ball no number of which is below the delta that so many whole numbers with Gaussian noise
    need at `epsilon`, of which each variance is taken to be less by `ROUNDED`.

    Args:
        epsilon: The cost.
        square: By how much the vector of their means moves at most, squared, each coordinate over
            its variance; above 0.
        numbers: How many there are.

    Examples:
        >>> bool(rounded_delta(Fraction(1), Fraction(1, 18), 3) < 1e-6)
        True
    """
    slack = ripple(Fraction(ROUNDED)) ** numbers
    left = ball(epsilon) - 2 * slack.log()
    distance = ball(square).sqrt()
    near, far = left / distance - distance / 2, left / distance + distance / 2
    root = arb(2).sqrt()
    return slack * ((near / root).erfc() - left.exp() * (far / root).erfc()) / 2


def _slack(variance: Fraction, moved: int) -> arb:
    """How much likelier a sum of `moved` draws can be than under discrete Gaussian noise of so many
    times the variance.
    """
    return arb(1) if moved == 1 else ripple(variance / 2) ** (moved - 1)


def ripple(variance: Fraction) -> arb:
    """By what factor sums of e^(−(x − a)² / (2·variance)) over all whole x differ at most, whatever
    a is.
    """
    q = (-2 * arb.pi() ** 2 * ball(min(variance, Fraction(32)))).exp()  # it falls with the variance
    ripple = 2 * q / (1 - q**3)
    return (1 + ripple) / (1 - ripple) if ripple < 1 else arb("inf")


@lru_cache(maxsize=256)
def _reach(noise: Noise, confidence: Fraction) -> int:
    """The least number of steps that a draw exceeds, up or down, with at most the remaining
    probability.
    """

    def enough(steps: int) -> bool:
        with precision(START):
            return bool(2 * noise.tail(steps + 1) <= ball(1 - confidence))

    if enough(0):
        return 0
    low, high = 0, 1
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
