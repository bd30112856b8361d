"""Counts of a released set up to a common constant: their order, and how far apart they are.

Every count gets noise of its own, and only differences are released. Under add-remove all counts
move the same way, and what all of them move by cancels: Gaussian noise needs half the standard
deviation that it has for the counts themselves, Laplace noise half the scale. Under replace some
counts rise where others fall, and nothing is gained.

Proof:      docs/proofs/ranked-margin.md
References: Lebeda, arXiv 2408.06853, whose shared noise is infinite here
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

from flint import arb

from privmax.count_costs import (
    LEAST_PARTS,
    PARTS,
    ROUNDED,
    least_scale,
    ripple,
    rounded_delta,
    start_scale,
)
from privmax.counts import Noise, count_moved, draw_gaussians, draw_laplaces, read_parts
from privmax.errors import ParameterError
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import discrete_gaussian, discrete_laplace, uniform_below
from privmax.noise.tails import gaussian_tail
from privmax.numbers import positive
from privmax.parameters import Exact, Parameter, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy


class RelativePlace(NamedTuple):
    """A place in a list that is sorted by noisy counts.

    Attributes:
        number: Which of the counts is there, from 0.
        relative: Its noisy count less that of the first place, in steps; 0 or below.
    """

    number: int
    relative: int


class RelativeNoise(Noise):
    """Noise on counts of which only differences are released.

    `draw` gives the noise of one count, in parts of a step. `tail`, `chance` and `error` are of the
    difference of two counts, in steps.
    """

    @property
    @abstractmethod
    def parts(self) -> int:
        """Into how many parts a step is divided; odd."""

    @abstractmethod
    def weigh(self, parts: int) -> float:
        """Return how likely the noise of one count is, up to a constant factor."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """A number of parts that the noise of one count exceeds with probability below 1e-15."""

    def rank(self, counts: Sequence[int], coins: Coins) -> list[RelativePlace]:
        """Sort counts with noise, the highest first; ties are broken by coins.

        Args:
            counts: The true ones, in steps. They are private.
            coins: Where random bits come from.

        Examples:
            >>> from privmax.noise.coins import SYSTEM
            >>> RelativeLaplace(scale="0.001").rank([640, 912], SYSTEM)
            [RelativePlace(number=1, relative=0), RelativePlace(number=0, relative=-272)]
        """
        drawn = self.draw_all(len(counts), coins)
        noisy = [self.parts * count + more for count, more in zip(counts, drawn, strict=True)]
        # Sorting is stable, and the order in which counts are given may follow from true ones.
        order = sorted(_shuffle(len(noisy), coins), key=lambda index: -noisy[index])
        # Only differences are rounded: how a noisy count itself is rounded is not a function of
        # differences.
        return [RelativePlace(one, self._round(noisy[one] - noisy[order[0]])) for one in order]

    def add_all(self, counts: Sequence[int], coins: Coins) -> tuple[int | float, ...]:
        """All counts of one release with noise, less the highest, in units of the scores."""
        differences = dict(self.rank(counts, coins))
        return tuple(self.in_units(differences[number]) for number in range(len(counts)))

    def _round(self, parts: int) -> int:
        """To the nearest step; no number of parts is between two, as a step has an odd number."""
        return (parts + self.parts // 2) // self.parts


def _shuffle(number: int, coins: Coins) -> list[int]:
    """0 … number − 1 in an order of which all are equally likely."""
    order = list(range(number))
    for last in range(number - 1, 0, -1):
        other = uniform_below(last + 1, coins)
        order[last], order[other] = order[other], order[last]
    return order


class RelativeLaplace(RelativeNoise):
    """Discrete Laplace noise on counts of which only differences are released.

    Args:
        scale: Of the noise of one count, in units of the scores.
        step: What one step is worth in them.

    Examples:
        >>> RelativeLaplace(scale=5).error()
        21
    """

    title = "discrete Laplace noise, up to a constant"
    scale: Exact = parameter(positive)
    step: Exact = parameter(positive, default=1)

    @property
    def parts(self) -> int:
        return 1

    @property
    def reach(self) -> int:
        return int(36 * self.scale / self.step) + 2

    def draw(self, coins: Coins) -> int:
        return discrete_laplace(self.scale / self.step, coins)

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        return draw_laplaces(self.scale / self.step, number, coins)

    def weigh(self, parts: int) -> float:
        return math.exp(-float(abs(parts) * self.step / self.scale))

    def tail(self, least: int) -> arb:
        if least < 1:
            return 1 - self.tail(1 - least)
        # The difference is d with probability (1−q)²/(1+q)²·q^d·(d + (1+q²)/(1−q²)), added up.
        q = (-ball(self.step / self.scale)).exp()
        once = 1 / (1 - q)
        terms = (least + (1 + q**2) * once / (1 + q)) * once + q * once**2
        return ((1 - q) / (1 + q)) ** 2 * q**least * terms


class RelativeGaussian(RelativeNoise):
    """Discrete Gaussian noise on counts of which only differences are released.

    It is drawn on parts of a step, and differences are rounded to the nearest step.

    Args:
        sigma: Standard deviation of the noise of one count, in units of the scores.
        step: What one step is worth in them.
        parts: Into how many parts a step is divided; odd.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> RelativeGaussian(sigma=5).error()
        14
    """

    title = "discrete Gaussian noise, up to a constant"
    sigma: Exact = parameter(positive)
    step: Exact = parameter(positive, default=1)
    parts: Parameter[int | str, int] = parameter(read_parts, default=PARTS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.sigma * self.parts < LEAST_PARTS * self.step:
            raise ParameterError(
                "sigma", self.sigma, f"it must be at least {LEAST_PARTS} parts of a step"
            )

    @property
    def variance(self) -> Fraction:
        """Of the noise of one count, in parts²."""
        return (Fraction(self.sigma) * self.parts / self.step) ** 2

    @property
    def reach(self) -> int:
        return int(9 * self.sigma * self.parts / self.step) + 2

    def draw(self, coins: Coins) -> int:
        return discrete_gaussian(self.variance, coins)

    def draw_all(self, number: int, coins: Coins) -> list[int]:
        return draw_gaussians(self.variance, number, coins)

    def weigh(self, parts: int) -> float:
        return math.exp(-float(parts**2 / (2 * self.variance)))

    def tail(self, least: int) -> arb:
        # The difference of the two is almost discrete Gaussian noise of twice the variance. Rounded
        # to steps, two relative counts are off by `least` only if it exceeds `least` − 1 steps.
        slack = ripple(self.variance / 2)
        tail = gaussian_tail(2 * self.variance, self.parts * (least - 1) + 1)
        return tail * slack.union(1 / slack)


class OrderNoise(NamedTuple):
    """Noise on counts of which only differences are released, and what they cost together."""

    noise: RelativeNoise
    privacy: Privacy


@lru_cache(maxsize=256)
def choose_order_noise(
    price: Privacy,
    *,
    k: int,
    growth: int | None = None,
    neighbors: Neighbors = ADD_REMOVE,
    sensitivity: int = 1,
    step: Fraction = Fraction(1),
) -> OrderNoise:
    """The noise that tells two of k counts apart best, where only differences are released.

    Public facts only.

    Args:
        price: What the differences may cost; without a delta counts get Laplace noise.
        k: How many counts there are at most.
        growth: How many candidates one individual's record touches at most, if there is a bound.
        neighbors: "add-remove" or "replace".
        sensitivity: By how many steps one individual can move a count.
        step: What a step is worth in units of the scores.

    Returns:
        The noise, and what it costs: delta only where the noise needs it.

    Examples:
        >>> choose_order_noise(Privacy("0.5"), k=2).noise
        RelativeLaplace(scale=2, step=1)
        >>> hundred = choose_order_noise(Privacy(1, 1e-6), k=100)
        >>> hundred.noise.error(), hundred.privacy
        (59, Privacy(epsilon=1, delta=1e-06))
    """
    moved = count_moved(k, growth, neighbors)
    # Where all move the same way, subtract what most of them move by.
    most = min(moved, k // 2) if neighbors == ADD_REMOVE else moved
    scale = max(most, 1) * sensitivity * step / Fraction(price.epsilon)
    laplace = RelativeLaplace(scale=scale, step=step)
    if price.delta and laplace.error() > 0:
        sigma = find_relative(price, k, moved, sensitivity, neighbors)
        gaussian = RelativeGaussian(sigma=sigma * step, step=step)
        if gaussian.error() < laplace.error():
            return OrderNoise(gaussian, price)
    return OrderNoise(laplace, Privacy(price.epsilon))


def find_relative(
    price: Privacy, k: int, moved: int, sensitivity: int, neighbors: Neighbors, parts: int = PARTS
) -> Fraction:
    """The standard deviation, in steps, of `RelativeGaussian` noise that costs at most `price`.

    Args:
        price: What the differences may cost.
        k: How many counts there are.
        moved: How many of them one individual moves at most.
        sensitivity: By how many steps.
        neighbors: "add-remove" or "replace".
        parts: Into how many parts a step is divided.

    Examples:
        >>> both = [find_relative(Privacy(1, 1e-6), 10, 10, 1, one)
        ...         for one in ("add-remove", "replace")]
        >>> [round(float(sigma), 2) for sigma in both]
        [6.68, 13.36]
    """
    square = parts**2 * sensitivity**2 * relative_spread(k, moved, neighbors)
    square += Fraction(k, 4) if neighbors == ADD_REMOVE else 0

    def enough(sigma: Fraction) -> bool:
        variance = (sigma * parts) ** 2
        if variance < LEAST_PARTS**2:
            return False
        with precision(START):
            spent = rounded_delta(price.epsilon, square / (variance - ROUNDED), k)
            return bool(spent <= ball(price.delta))

    return least_scale(enough, start_scale(price, moved, sensitivity))


def relative_spread(k: int, moved: int, neighbors: Neighbors) -> Fraction:
    """The largest sum of squares by which k counts move beyond a common constant, where one
    individual moves `moved` of them by 1 at most.

    Examples:
        >>> relative_spread(10, 10, "add-remove"), relative_spread(10, 10, "replace")
        (Fraction(5, 2), Fraction(10, 1))
    """
    if neighbors != ADD_REMOVE:
        return Fraction(moved)
    most = min(moved, k // 2)
    return max(most - Fraction(most**2, k), Fraction(1, 4))


def read_relative(written: Mapping[str, Any]) -> RelativeNoise:
    """The noise that `Noise.to_dict` wrote down.

    Examples:
        >>> read_relative(RelativeLaplace(scale=5).to_dict())
        RelativeLaplace(scale=5, step=1)
    """
    law = {kind.__name__: kind for kind in (RelativeLaplace, RelativeGaussian)}[written["law"]]
    return law(**{name: value for name, value in written.items() if name != "law"})
