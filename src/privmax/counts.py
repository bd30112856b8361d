"""Noisy counts of what was released: which noise they get, and how far off they are.

The set is public when it is counted, and k numbers are asked for, whatever number came. One
individual moves m of them at most, each by s at most. Discrete Laplace noise of scale m·s/ε hides
that at (ε, 0). Where a delta is allowed, discrete Gaussian noise of a variance in proportion to m
does at (ε, δ), and has the smaller error from m of about 8 on. Under add-remove all counts move the
same way, and noise that all of them share hides a part of that: the standard deviation falls to two
thirds for 10 counts, and toward half for many.

Proof:      docs/proofs/counts.md
Reference:  Ghosh, Roughgarden & Sundararajan, STOC 2009
"""

from __future__ import annotations

import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from flint import arb

from privmax.count_costs import LEAST_PARTS, PARTS, find_shared, find_sigma, ripple
from privmax.errors import ParameterError
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_gaussian, discrete_laplace
from privmax.noise.tails import gaussian_tail, laplace_tail
from privmax.numbers import Number, open_probability, plain, positive, whole
from privmax.parameters import Exact, Parameter, Parameters, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, drift

CONFIDENCE = Fraction(95, 100)
"""The probability that a count is within its `error`."""

MANY = 64
"""From more draws than this on, they are made in bulk."""


class Noise(Parameters, ABC):
    """Noise on counts: a whole number of steps for each, of the same law for all."""

    title: ClassVar[str]
    """The name of the noise."""

    @property
    @abstractmethod
    def step(self) -> Fraction:
        """The size of one step in units of the scores; 1 for counts."""

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
        """Bound the error of a noisy count, with a probability of `confidence`.

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
        return draw_laplaces(self.scale / self.step, number, coins)

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
        return draw_gaussians((self.sigma / self.step) ** 2, number, coins)

    def tail(self, least: int) -> arb:
        return gaussian_tail((self.sigma / self.step) ** 2, least)


def draw_laplaces(scale: Fraction, number: int, coins: Coins) -> list[int]:
    """So many draws of discrete Laplace noise."""
    if number > MANY:
        from privmax.noise import bulk  # NumPy, which a plan of counts does not wait for

        # How many counts there are was drawn: whether this fails must not follow from it.
        if scale <= bulk.LARGEST_SCALE:
            drawn: list[int] = bulk.discrete_laplace(scale, number, coins).tolist()
            return drawn
    return [discrete_laplace(scale, coins) for _ in range(number)]


def draw_gaussians(variance: Fraction, number: int, coins: Coins) -> list[int]:
    """So many draws of discrete Gaussian noise."""
    if number > MANY:
        from privmax.noise import bulk

        if variance <= bulk.LARGEST_SCALE**2:
            drawn: list[int] = bulk.discrete_gaussian(variance, number, coins).tolist()
            return drawn
    return [discrete_gaussian(variance, coins) for _ in range(number)]


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
    """Return the most of k counts that one individual moves.

    Where one record is exchanged for another, both may move counts.

    Examples:
        >>> count_moved(10, None, "replace"), count_moved(10, 3, "replace")
        (10, 6)
    """
    return k if growth is None else min(k, drift(neighbors) * growth)


@lru_cache(maxsize=256)
def _reach(noise: Noise, confidence: Fraction) -> int:
    """The least number of steps that a draw exceeds, up or down, with at most the remaining
    probability.
    """

    def enough(steps: int) -> bool:
        with precision(START + 2 * steps.bit_length()):  # so that wide noise is told from endless
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
