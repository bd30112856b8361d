"""Draws the first k candidates to arrive when every one has noise of its own.

There is one chain of arrivals per block of equals.

The race of `privmax.noise.race` goes on after its winner. A candidate at depth d arrives at
y(V)/e^(−rate·d), V uniform. Of n equal candidates the first has V_1 = U_1^(1/n), the next V_2 =
V_1·U_2^(1/(n−1)), and so on: a chain is as long as needed, whatever n. Uniforms are revealed
until two arrivals are told apart; nothing is rounded.

Proof:      docs/proofs/competitors.md
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb
from numpy.typing import NDArray

from privmax.itemsets.numbering import nth_outside
from privmax.noise import bulk
from privmax.noise.balls import START, ball, precision
from privmax.noise.coins import Coins
from privmax.noise.race import TimedNoise
from privmax.noise.samplers import uniform_below

BITS_A_LOOK = 16
"""The number of bits of a uniform number that are revealed at once."""


class Gumbel:
    """Gumbel noise: arrivals are exponential.

    The order of arrival is that of drawing by weight and peeling.
    """

    def time(self, log_v: arb) -> arb:
        return -log_v


GUMBEL = Gumbel()


def draw_arrivals(
    blocks: Sequence[tuple[int, int]], rate: Fraction, noise: TimedNoise, k: int, coins: Coins
) -> list[int]:
    """Return the blocks of the first k candidates to arrive, in order of arrival.

    A block is (depth, count).

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> sorted(draw_arrivals([(0, 1), (5, 1)], Fraction(1), GUMBEL, 2, SYSTEM))
        [0, 1]
    """
    chains = [
        _Chain(place, depth * rate, count, noise, coins)
        for place, (depth, count) in enumerate(blocks)
        if count
    ]
    heapq.heapify(chains)
    order: list[int] = []
    while len(order) < k and chains:
        first = chains[0]
        order.append(first.place)
        if first.advance():
            heapq.heapreplace(chains, first)
        else:
            heapq.heappop(chains)
    return order


def draw_strongest(scores: NDArray[np.int64], k: int, rate: Fraction, coins: Coins) -> list[int]:
    """k places drawn one after the other, each with weight e^(rate·score) among those left.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> draw_strongest(np.array([0, 10**6]), 1, Fraction(1), SYSTEM)
        [1]
    """
    levels, counts = np.unique(scores, return_counts=True)
    top = int(levels[-1])
    blocks = [
        (top - level, count)
        for level, count in zip(levels[::-1].tolist(), counts[::-1].tolist(), strict=True)
    ]
    members: dict[int, list[int]] = {}
    order = []
    for block in draw_arrivals(blocks, rate, GUMBEL, k, coins):
        if block not in members:
            members[block] = np.flatnonzero(scores == top - blocks[block][0]).tolist()
        order.append(members[block].pop(uniform_below(len(members[block]), coins)))
    return order


def add_noise(
    counts: NDArray[np.int64], sensitivity: int, epsilon: Fraction, coins: Coins
) -> NDArray[np.int64]:
    """Add discrete Laplace noise to counts.

    One individual moves the sum of their absolute changes by `sensitivity`.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> add_noise(np.array([[5, 7]]), 1, Fraction(1), SYSTEM).shape
        (1, 2)
    """
    return counts + bulk.discrete_laplace(sensitivity / epsilon, counts.size, coins).reshape(
        counts.shape
    )


def draw_places(count: int, times: int, coins: Coins) -> list[int]:
    """`times` different places out of `count`, in random order.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> sorted(draw_places(3, 3, SYSTEM))
        [0, 1, 2]
    """
    used: list[int] = []
    drawn = []
    for _ in range(times):
        place = nth_outside(uniform_below(count - len(used), coins), used)
        drawn.append(place)
        used = sorted([*used, place])
    return drawn


def shuffle(count: int, coins: Coins) -> NDArray[np.int64]:
    """Return the numbers 0 … count−1 in random order.

    Examples:
        >>> from privmax.noise.coins import SYSTEM
        >>> sorted(shuffle(3, SYSTEM).tolist())
        [0, 1, 2]
    """
    order = list(range(count))
    for place in range(count - 1, 0, -1):
        other = uniform_below(place + 1, coins)
        order[place], order[other] = order[other], order[place]
    return np.array(order, np.int64)


class _Chain:
    """The next arrival of a block, known as closely as someone asked."""

    __slots__ = ("_coins", "_exponent", "_left", "_noise", "_uniforms", "high", "low", "place")

    def __init__(
        self, place: int, exponent: Fraction, count: int, noise: TimedNoise, coins: Coins
    ) -> None:
        self.place = place
        self._exponent, self._left, self._noise, self._coins = exponent, count, noise, coins
        self._uniforms: list[
            tuple[int, int, int]
        ] = []  # known bits, how many, and which root is taken
        self.advance()

    def advance(self) -> bool:
        """Turn to the next arrival; False if there is none."""
        if not self._left:
            return False
        self._uniforms.append((0, 0, self._left))
        self._left -= 1
        self.look()
        return True

    def look(self) -> None:
        """Reveal more bits of the uniforms known worst, and narrow the bounds of the arrival."""
        shortest = min(length for _, length, _ in self._uniforms)
        least = most = arb(0)
        with precision(START + shortest + BITS_A_LOOK):
            for index, (known, length, root) in enumerate(self._uniforms):
                if length == shortest:
                    known = known << BITS_A_LOOK | self._coins.bits(BITS_A_LOOK)  # noqa: PLW2901  # the new state
                    length += BITS_A_LOOK  # noqa: PLW2901
                    self._uniforms[index] = known, length, root
                least += arb((known + 1, -length)).log() / root
                most = most + arb((known, -length)).log() / root if known else arb.neg_inf()
            weight = (-ball(self._exponent)).exp()
            self.low = self._noise.time(least) / weight
            self.high = self._noise.time(most) / weight if most.is_finite() else arb.pos_inf()

    def __lt__(self, other: _Chain) -> bool:
        """Return whether it arrives first.

        Ends with probability one: two continuous times are almost surely different.
        """
        while True:
            if self.high < other.low:
                return True
            if other.high < self.low:
                return False
            (self if self.high - self.low > other.high - other.low else other).look()
