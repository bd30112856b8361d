"""Exponential weights: what a block of equal candidates weighs, and shares of a total.

A candidate at depth d below the top weighs e^(−rate·d), so the best weighs 1. Weights are balls
(privmax.noise.balls): a draw asks for as many of their digits as it needs, a law rounds them.

Proof:      docs/proofs/exponential.md, docs/proofs/clipping.md
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from fractions import Fraction

from flint import arb

from privmax.mechanisms.contract import CLIP_LOSS, ROUNDING, closed_size
from privmax.noise.balls import START, ball, ceiling_log, precision
from privmax.noise.coins import Coins
from privmax.noise.samplers import Uniform, find_place
from privmax.privacy import Neighbors, drift
from privmax.profile import Level, Profile, Window

LOOKED_AT = 32
"""So many bits of a uniform real are compared with floats."""

DOUBT = 2.0**-40
"""Bound on the error of the shares of blocks in floats."""

LEFT_OUT = 32.0
"""Blocks that floats leave out weigh together less than e to the minus this."""

MOST_LOOKED_AT = 1 << 64
"""With so many candidates, floats are not used."""

MOST_BLOCKS = 1000
"""With more blocks that matter, floats are not used."""

LARGEST_SIZE = 400
"""With a rate of more binary digits, before the point or of zeros behind it, neither."""


def decay(rate: Fraction, depth: int) -> arb:
    """Return e^(−rate·depth) at the precision in force.

    Examples:
        >>> decay(Fraction(1), 0) == 1
        True
    """
    return (-ball(rate * depth)).exp()


def clip_width(scale: Fraction, mass: Fraction) -> int:
    """Return a width w with mass · e^(−w/scale) ≤ CLIP_LOSS, not below 1.

    Examples:
        >>> clip_width(Fraction(1), Fraction(1))
        17
    """
    return max(1, ceiling_log(scale, mass / CLIP_LOSS))


def closed_view(
    profile: Profile, epsilon: Fraction, neighbors: Neighbors, rank: int = 1
) -> tuple[Window, list[Level], Fraction]:
    """Clip a closed profile for a draw with weights exp(−ε·depth/c).

    Args:
        profile: The private scores.
        epsilon: That of the draw.
        neighbors: The relation, which says what c is.
        rank: It is clipped below its `rank`-th highest score.

    Returns:
        The clipped profile, all its blocks, and the rate at which weight falls.

    Raises:
        ParameterError: The universe is open.

    Examples:
        >>> closed_view(Profile([(9, 1)], universe=3), Fraction(1), "replace")[1:]
        ([(0, 1), (9, 2)], Fraction(1, 2))
    """
    scale = drift(neighbors) * profile.sensitivity / epsilon
    size = closed_size(profile)
    window = profile.window(clip_width(scale, Fraction(size)), rank)
    return window, window.first(size), 1 / scale


def block_weights(blocks: Sequence[Level], rate: Fraction) -> list[arb]:
    """Return count · e^(−rate·depth) of each block, at the precision in force.

    Examples:
        >>> block_weights([(0, 3)], Fraction(1)) == [3]
        True
    """
    step, value, reached = decay(rate, 1), arb(1), 0
    weights = []
    for (
        depth,
        count,
    ) in blocks:  # from one block to the next is mostly one step: cheaper than a power for each
        value *= step if depth == reached + 1 else step ** (depth - reached)
        weights.append(value * count)
        reached = depth
    return weights


def draw_block(blocks: Sequence[Level], rate: Fraction, coins: Coins) -> int:
    """Draw a block by weight: by floats where they are clear, and else by balls.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> draw_block([(0, 0), (3, 7)], Fraction(1), SYSTEM)
        1
    """
    uniform = Uniform(coins)
    places, cuts = _look(blocks, rate)
    while uniform.length < LOOKED_AT and places:
        unit = 0.5**uniform.length
        left, right = uniform.known * unit, (uniform.known + 1) * unit
        index = bisect_right(cuts, left - DOUBT)
        if index < len(places) and right + DOUBT <= cuts[index]:
            return places[index]
        uniform.reveal()
    return find_place(lambda: block_weights(blocks, rate), uniform)


def _look(blocks: Sequence[Level], rate: Fraction) -> tuple[list[int], list[float]]:
    """Return blocks with candidates, and the right ends of their shares of [0, 1) in floats.

    All within DOUBT; the last end is 2, to which nothing comes near, if there are no other blocks.
    Those whose candidates weigh less than the error of floats are left out. Nothing: floats are too
    coarse.
    """
    number = sum(count for _, count in blocks)
    size = rate.numerator.bit_length() - rate.denominator.bit_length()
    if not 0 < number < MOST_LOOKED_AT or abs(size) > LARGEST_SIZE:
        return [], []
    slope = float(rate)
    first = next(depth for depth, count in blocks if count)
    last = first + math.ceil((LEFT_OUT + math.log(number)) / slope)
    places: list[int] = []
    sums: list[float] = []
    total, left = 0.0, number
    for place, (depth, count) in enumerate(blocks):
        if depth > last:
            break
        if count:
            total += count * math.exp(-slope * (depth - first))
            left -= count
            places.append(place)
            sums.append(total)
    if len(places) > MOST_BLOCKS:
        return [], []
    cuts = [part / total for part in sums]
    if not left:
        cuts[-1] = 2.0
    return places, cuts


def block_shares(rate: Fraction, blocks: Sequence[Level]) -> list[float]:
    """Return the probability of each block, drawn by weight.

    Examples:
        >>> block_shares(Fraction(1), [(0, 3)])
        [1.0]
    """
    return shares(lambda: block_weights(blocks, rate))


def shares(weights: Callable[[], Sequence[arb]]) -> list[float]:
    """Divide weights by their sum and round to floats.

    Each is within ROUNDING of itself, and 0 only where its weight is, or where it is too small for
    a float. Ends: a weight is 0 exactly, or a sum of positive terms, whose relative radius shrinks
    with the precision.

    Args:
        weights: Computes the same weights at whatever precision is in force.

    Examples:
        >>> shares(lambda: [arb(1), arb(3)])
        [0.25, 0.75]
    """
    bits = START
    while True:
        with precision(bits):
            values = weights()
            total = sum(values, start=arb(0))
            parts = [value / total for value in values]
            # false for a ball that is not finite
            if all(part.rad() <= abs(part.mid()) * (ROUNDING / 2) for part in parts):
                return [float(part.mid()) for part in parts]
        bits *= 2


def log_last(weights: Callable[[], Sequence[arb]]) -> float:
    """Return ln of the last of some weights, −∞ where there is none; for planning only.

    Args:
        weights: Computes the same weights at whatever precision is in force.

    Examples:
        >>> log_last(lambda: [arb(3), arb(1)]), log_last(lambda: [])
        (0.0, -inf)
    """
    with precision(START):
        values = weights()
        return float(values[-1].log().mid()) if values else -math.inf


def round_chances(chances: Callable[[], Sequence[arb]]) -> list[float]:
    """Round probabilities to floats: each is within ROUNDING of the truth.

    That says little of one near 0.

    Args:
        chances: Computes the same probabilities at whatever precision is in force.

    Examples:
        >>> round_chances(lambda: [arb(1) / 4])
        [0.25]
    """
    bits = START
    while True:
        with precision(bits):
            values = chances()
            if all(
                value.rad() < ROUNDING / 2 for value in values
            ):  # false for a ball that is not finite
                return [float(value.mid()) for value in values]
        bits *= 2
