"""Gaussian noise on counts: what it costs, and the least of it for a cost.

Proof:      docs/proofs/counts.md
References: Canonne, Kamath & Steinke, NeurIPS 2020; Lebeda, arXiv 2408.06853
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from flint import arb

from privmax.noise.balls import START, ball, precision
from privmax.noise.tails import gaussian_tail
from privmax.privacy import Privacy

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
"""The part of a variance, in parts², for noise that is on whole numbers, not real ones."""

RATIOS = 64
"""Standard deviations of the shared part are tried in this many parts of that of the others."""


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
    """Find the ratio of the shared standard deviation to each count's own with the least noise."""
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
    """Bound the ratio of probabilities of a sum of `moved` draws and of discrete Gaussian noise of
    so many times the variance.
    """
    return arb(1) if moved == 1 else ripple(variance / 2) ** (moved - 1)


def ripple(variance: Fraction) -> arb:
    """By what factor sums of e^(−(x − a)² / (2·variance)) over all whole x differ at most, whatever
    a is.
    """
    q = (-2 * arb.pi() ** 2 * ball(min(variance, Fraction(32)))).exp()  # it falls with the variance
    ripple = 2 * q / (1 - q**3)
    return (1 + ripple) / (1 - ripple) if ripple < 1 else arb("inf")
