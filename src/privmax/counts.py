"""Noisy counts of what was released: which noise they get, what that costs, how far off they are.

The set is public when it is counted, and k numbers are asked for, whatever number came. One
individual moves m of them at most, each by s at most. Discrete Laplace noise of scale m·s/ε hides
that at (ε, 0). Where a delta is allowed, discrete Gaussian noise of a variance in proportion to m
does at (ε, δ), and has the smaller error from m of about 8 on.

Proof:      docs/proofs/counts.md
References: Ghosh, Roughgarden & Sundararajan, STOC 2009; Canonne, Kamath & Steinke, NeurIPS 2020
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

from flint import arb

from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_gaussian, discrete_laplace
from privmax.noise.tails import gaussian_tail, laplace_tail
from privmax.numbers import Number, open_probability, plain, positive
from privmax.parameters import Exact, Parameters, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy, swing

CONFIDENCE = Fraction(95, 100)
"""How often a count is within its `error`."""

BITS = 12
"""To how many binary digits the standard deviation of Gaussian noise is found."""

SMALLEST = Fraction(1, 8)
"""Standard deviation, in steps, below which none is looked for: such noise is 0."""


class Noise(Parameters, ABC):
    """Noise on a count: a whole number of steps, independent for each count."""

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

    def add(self, count: int, coins: Coins) -> int | float:
        """A count with noise, in units of the scores.

        Args:
            count: The true one, in steps. It is private.
            coins: Where random bits come from.
        """
        return self.in_units(count + self.draw(coins))

    def in_units(self, steps: int) -> int | float:
        """So many steps in units of the scores.

        Examples:
            >>> DiscreteLaplace(scale=1, step="0.25").in_units(7)
            1.75
        """
        return steps if self.step == 1 else float(steps * self.step)

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

    def tail(self, least: int) -> arb:
        return gaussian_tail((self.sigma / self.step) ** 2, least)


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
        (83, Privacy(epsilon=1, delta=1e-06))
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
    return CountNoise(gaussian, price) if gaussian.error() < laplace.error() else pure


def read_noise(written: Mapping[str, Any]) -> Noise:
    """The noise that `Noise.to_dict` wrote down.

    Examples:
        >>> read_noise(DiscreteGaussian(sigma=5).to_dict())
        DiscreteGaussian(sigma=5, step=1)
    """
    law = {kind.__name__: kind for kind in (DiscreteLaplace, DiscreteGaussian)}[written["law"]]
    return law(**{name: value for name, value in written.items() if name != "law"})


def count_moved(k: int, growth: int | None, neighbors: Neighbors) -> int:
    """How many of k counts one individual moves at most.

    Where one record is exchanged for another, both may move counts.

    Examples:
        >>> count_moved(10, None, "replace"), count_moved(10, 3, "replace")
        (10, 6)
    """
    return k if growth is None else min(k, swing(neighbors) * growth)


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

    least = moved * sensitivity**2 / Fraction(price.epsilon) ** 2  # a variance to begin at
    high = Fraction(2) ** ((int(least).bit_length() + 1) // 2)
    while not enough(high):  # ends: what is spent falls to 0 as sigma grows
        high *= 2
    while high > SMALLEST and enough(high / 2):
        high /= 2
    low = high / 2
    for _ in range(BITS):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


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


def _slack(variance: Fraction, moved: int) -> arb:
    """How much likelier a sum of `moved` draws can be than under discrete Gaussian noise of so many
    times the variance.
    """
    if moved == 1:
        return arb(1)
    q = (-(arb.pi() ** 2) * ball(min(variance, Fraction(64)))).exp()  # it falls with the variance
    ripple = 2 * q / (1 - q**3)
    return ((1 + ripple) / (1 - ripple)) ** (moved - 1) if ripple < 1 else arb("inf")


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
