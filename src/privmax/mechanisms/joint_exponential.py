"""Joint exponential mechanism: choose a whole list of k at once, by how far its worst place falls
short.

    shortfall(s_1 … s_k) = max over places j of  q_(j) − q_(s_j)
    choose the list with weight exp(−ε·shortfall / 2c)

Lists of one shortfall are counted, not enumerated: n_j(u), the number of candidates within u of
q_(j), grows with j, so Π_j (n_j(u) − j + 1) lists have a shortfall of at most u. A shortfall is
drawn first, then a list that has it, in integer arithmetic. One cost for the whole list, whatever
k: the peer to beat in small universes.

Proof:      docs/proofs/joint-exponential.md
Reference:  Gillenwater, Joseph, Muñoz Medina & Ribero Diaz, ICML 2022
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from heapq import merge
from itertools import accumulate, groupby, pairwise, product
from operator import itemgetter, mul

from flint import arb

from privmax.mechanisms.contract import (
    ROUNDING,
    Law,
    Outcome,
    Relation,
    closed_size,
    law_of,
    read_length,
    read_relation,
    require_fit,
    require_single,
)
from privmax.mechanisms.peeling import Ranker, Sequences
from privmax.mechanisms.weights import clip_width, decay, shares
from privmax.noise.balls import ball
from privmax.noise.coins import Coins
from privmax.noise.samplers import uniform_below, weighted
from privmax.numbers import positive
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Privacy, drift
from privmax.profile import Level, Profile, Window


class JointExponential(Ranker):
    """Draw the best `k` of a closed universe, in order, whatever the scores.

    Args:
        epsilon: What it costs in all.
        neighbors: "add-remove" or "replace".
        k: How many items are released.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> from privmax import JointExponential
        >>> JointExponential(epsilon=1, k=10).privacy()
        Privacy(epsilon=1, delta=0)
        >>> JointExponential(epsilon=1, k=10).lead(candidates=1000)
        114
    """

    epsilon: Exact = parameter(positive)
    neighbors: Relation = parameter(read_relation, default=ADD_REMOVE)
    k: Whole = parameter(read_length)

    def draw(self, profile: Profile, coins: Coins) -> Outcome:
        require_single(self.k)
        return self.ranking(profile, coins)[0]

    def ranking(self, profile: Profile, coins: Coins) -> list[Outcome]:
        window, lists, rate = self._view(profile)
        shortfall = lists.shortfalls[weighted(lambda: lists.weights(rate), coins)]
        first = lists.first_short(shortfall, coins)
        chosen: list[int] = []
        for place, best in enumerate(lists.best):
            least = lists.within(best + shortfall - 1) if place == first else 0
            most = lists.within(best + shortfall - (place < first))
            chosen.append(_another(least, most, chosen, coins))
        return [_outcome(window, lists, position) for position in chosen]

    def law(self, profile: Profile) -> Law:
        window, lists, rate = self._view(profile)
        chances = shares(lambda: lists.first_weights(rate))
        return law_of(window, chances, relative=ROUNDING)

    def sequences(self, profile: Profile) -> Mapping[object, Sequences]:
        window, lists, rate = self._view(profile)
        names = list(product(range(len(lists.depths)), repeat=self.k))
        chances = shares(
            lambda: [lists.size(name) * decay(rate, lists.shortfall(name)) for name in names]
        )
        scored = tuple((window.top - depth, count) for depth, count in window.blocks())
        table = {
            name: chance for name, chance in zip(names, chances, strict=True) if lists.size(name)
        }
        floor = window.top - window.floor if window.rest else None
        return {None: Sequences(scored, floor, table, error=ROUNDING, relative=ROUNDING)}

    def expect(self, profile: Profile, best: int) -> tuple[float, float]:
        window, lists, rate = self._view(profile)
        chances = shares(lambda: lists.bound_weights(rate))
        hits = [lists.hits(bound, window.depth(best)) for bound in lists.shortfalls]
        mean = math.fsum(chance * hit for chance, hit in zip(chances, hits, strict=True))
        return float(self.k), min(mean, float(self.k))

    def privacy(self) -> Privacy:
        return Privacy(self.epsilon)

    def _chance_best(self, profile: Profile) -> float:
        _, lists, rate = self._view(profile)
        return shares(lambda: lists.weights(rate))[0]  # no shortfall: all from the best level

    def _view(self, profile: Profile) -> tuple[Window, _Lists, Fraction]:
        """The profile clipped below its k-th best score, its lists, and the rate at which weight
        falls.
        """
        scale = 2 * drift(self.neighbors) * profile.sensitivity / self.epsilon
        size = closed_size(profile)
        window = profile.window(
            clip_width(scale, Fraction(size) ** self.k), require_fit(self.k, profile)
        )
        return window, _Lists(window.first(size), self.k), 1 / scale


class _Lists:
    """All lists of k candidates, by their shortfall. Candidates are numbered from the best: a
    *position*.
    """

    def __init__(self, blocks: Sequence[Level], k: int) -> None:
        self.depths, self.counts = [depth for depth, _ in blocks], [count for _, count in blocks]
        self.upto = list(accumulate(self.counts))
        self.best = [self.depths[bisect_right(self.upto, place)] for place in range(k)]
        self.shortfalls, self._sizes = self._count()

    def _count(self) -> tuple[list[int], list[int]]:
        """All shortfalls in order, and how many lists fall at most so far short. From one to the
        next, the choices of a few places grow; each has one at least, so products are divided.
        """
        choices = self._choices(0)
        shortfalls, sizes = [0], [math.prod(choices)]
        places: dict[int, list[int]] = {}
        for place, best in enumerate(self.best):
            places.setdefault(best, []).append(place)
        growth = (self._later(best, at) for best, at in places.items())
        for shortfall, group in groupby(merge(*growth, key=itemgetter(0)), key=itemgetter(0)):
            size = sizes[-1]
            for _, more, at in group:
                for place in at:
                    size = size // choices[place] * (choices[place] + more)
                    choices[place] += more
            shortfalls.append(shortfall)
            sizes.append(size)
        return shortfalls, sizes

    def _later(self, best: int, places: list[int]) -> Iterator[tuple[int, int, list[int]]]:
        """By which shortfalls the choices of some places grow, and by how much."""
        for depth, count in zip(self.depths, self.counts, strict=True):
            if depth > best:
                yield depth - best, count, places

    def within(self, depth: int) -> int:
        """Return the number of candidates that are no deeper."""
        index = bisect_right(self.depths, depth)
        return self.upto[index - 1] if index else 0

    def _choices(self, shortfall: int) -> list[int]:
        """For each place: how many candidates fall at most so far short of it, less those in the
        places before.
        """
        return [self.within(best + shortfall) - place for place, best in enumerate(self.best)]

    def weights(self, rate: Fraction) -> list[arb]:
        """Weight of all lists of each shortfall."""
        return _shells(self._sizes, self.shortfalls, rate)

    def first_weights(self, rate: Fraction) -> list[arb]:
        """Weight of all lists that begin in each block."""
        others = [math.prod(self._choices(shortfall)[1:]) for shortfall in self.shortfalls]
        totals = []
        for depth, count in zip(self.depths, self.counts, strict=True):
            sizes = [
                count * rest * (depth <= shortfall)
                for rest, shortfall in zip(others, self.shortfalls, strict=True)
            ]
            totals.append(sum(_shells(sizes, self.shortfalls, rate), start=arb(0)))
        return totals

    def bound_weights(self, rate: Fraction) -> list[arb]:
        """The same weight in all, by bounds: a list is drawn by drawing a bound by this weight, and
        then one of the lists that fall no further short.
        """
        falls = [arb(1) - decay(rate, after - here) for here, after in pairwise(self.shortfalls)]
        return [
            ball(size) * decay(rate, bound) * fall
            for size, bound, fall in zip(
                self._sizes, self.shortfalls, [*falls, arb(1)], strict=True
            )
        ]

    def hits(self, bound: int, depth: int) -> float:
        """Return the number of candidates no deeper than `depth` in a list, on average over all
        lists that fall short by at most `bound`.
        """
        within, mean = self.within(depth), 0.0
        for place, choices in enumerate(self._choices(bound)):
            mean += (min(within, choices + place) - mean) / choices
        return mean

    def first_short(self, shortfall: int, coins: Coins) -> int:
        """The first place that falls short by exactly `shortfall`, in a uniform list of that
        shortfall.
        """
        less, most = self._choices(shortfall - 1), self._choices(shortfall)
        after = [*accumulate(reversed(most[1:]), mul, initial=1)][::-1]
        sizes, before = [], 1
        for place in range(len(most)):
            sizes.append(before * (most[place] - less[place]) * after[place])
            before *= max(0, less[place])
        at = uniform_below(sum(sizes), coins)
        return bisect_right(list(accumulate(sizes)), at)

    def size(self, blocks: Sequence[int]) -> int:
        """Return the number of lists that go through these blocks in this order."""
        used = [blocks[:place].count(block) for place, block in enumerate(blocks)]
        return math.prod(
            max(0, self.counts[block] - taken) for block, taken in zip(blocks, used, strict=True)
        )

    def shortfall(self, blocks: Sequence[int]) -> int:
        """The shortfall of those lists."""
        return max(
            0, *(self.depths[block] - best for block, best in zip(blocks, self.best, strict=True))
        )


def _shells(sizes: Sequence[int], shortfalls: Sequence[int], rate: Fraction) -> list[arb]:
    """Weight of what each shortfall adds, where `sizes` counts all up to it."""
    added = [size - before for before, size in pairwise([0, *sizes])]
    return [
        ball(size) * decay(rate, shortfall)
        for size, shortfall in zip(added, shortfalls, strict=True)
    ]


def _another(least: int, most: int, chosen: Sequence[int], coins: Coins) -> int:
    """A uniform position from `least` to `most` − 1 that is not chosen yet; those chosen are all
    below `most`.
    """
    used = sorted(position for position in chosen if position >= least)
    position = least + uniform_below(most - least - len(used), coins)
    for taken in used:
        position += position >= taken
    return position


def _outcome(window: Window, lists: _Lists, position: int) -> Outcome:
    block = bisect_right(lists.upto, position)
    index = position - (lists.upto[block] - lists.counts[block])
    return Outcome(window.top - lists.depths[block], index, block == len(window.depths))
