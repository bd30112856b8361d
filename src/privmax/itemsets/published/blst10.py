"""Top-k by the exponential mechanism or by Laplace noise, on clipped supports.

Supports are clipped a public depth below the k-th.

    clipped support = max(support, k-th highest support − depth)
    BLST10          k draws with weight e^(ε·clipped/4k), each without those drawn before;    depth
                    (4k/ε)·ln(k·|U|/ρ)
    BLST10Laplace   the k highest of clipped + Lap(4k/ε);                                      depth
                    (8k/ε)·ln(|U|/ρ)
    then            the supports of those k, each with discrete Laplace noise of scale 2k/ε

All itemsets at the clip are one block of equals, so the universe is counted and never listed.
Constants were derived again, not read in the publication: half of ε chooses, half measures the
supports.

Proof:      docs/proofs/competitors.md
Reference:  Bhaskar, Laxman, Smith & Thakurta, KDD 2010
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.numbering import Numbering, nth_outside
from privmax.itemsets.published.arrivals import GUMBEL, add_noise, draw_arrivals, draw_places
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
from privmax.noise.race import LAPLACE, TimedNoise
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import REPLACE, Neighbors, Privacy
from privmax.profile import Level

if TYPE_CHECKING:
    from privmax.itemsets.baskets import Baskets
    from privmax.itemsets.miner.window import Miner

LISTED_AT_ONCE = 1 << 20
"""So many itemsets are looked up in one list; beyond, one support at a time."""


class _TopK(Method):
    """The common part of the two methods."""

    epsilon: Exact = parameter(positive)
    failure: Exact = parameter(open_probability, default="0.1")
    floor: Whole = parameter(whole, default=0, least=0)
    neighbors: ClassVar[Neighbors] = REPLACE

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        universe = Numbering(problem.rows.items, problem.sizes)
        k = min(problem.k, universe.size)
        if not k:
            return []
        view = _View(
            problem.miner(problem.sizes), universe, k, self._depth(k, universe.size), self.floor
        )
        rate = self.parts()["itemsets"] / (2 * k)
        names, supports = view.name(
            draw_arrivals(view.blocks, rate, self._noise, k, coins), problem.rows, coins
        )
        shown = add_noise(np.array(supports, np.int64), k, self.parts()["supports"], coins)
        return [Found(codes, support) for codes, support in zip(names, shown.tolist(), strict=True)]

    def parts(self) -> dict[str, Fraction]:
        """Return how the cost is split."""
        return {"itemsets": self.epsilon / 2, "supports": self.epsilon / 2}

    def privacy(self) -> Privacy:
        return Privacy(sum(self.parts().values()))

    _noise: ClassVar[TimedNoise]

    def _depth(self, k: int, universe: int) -> int:
        raise NotImplementedError


class BLST10(_TopK):
    """The k most frequent itemsets of a closed universe, by k draws of the exponential mechanism.

    How many individuals there are is public.

    Args:
        epsilon: What it costs in all.
        failure: ρ. The depth is such that a clipped candidate would have been drawn with at most
            this probability.
        floor: Supports below this public number count as it. It bounds the work where there are
            very many itemsets.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> method = BLST10(epsilon=1)
        >>> method.privacy(), method.neighbors
        (Privacy(epsilon=1, delta=0), 'replace')
        >>> {part: str(share) for part, share in method.parts().items()}
        {'itemsets': '1/2', 'supports': '1/2'}
    """

    epsilon: Exact = parameter(positive)
    failure: Exact = parameter(open_probability, default="0.1")
    floor: Whole = parameter(whole, default=0, least=0)
    _noise = GUMBEL

    def _depth(self, k: int, universe: int) -> int:
        return max(0, ceiling_log(4 * k / self.epsilon, k * universe / self.failure))


class BLST10Laplace(_TopK):
    """The k most frequent itemsets of a closed universe, by the highest of noisy supports.

    It takes what `BLST10` takes, and costs the same.

    Examples:
        >>> BLST10Laplace(epsilon=1).privacy() == BLST10(epsilon=1).privacy()
        True
    """

    epsilon: Exact = parameter(positive)
    failure: Exact = parameter(open_probability, default="0.1")
    floor: Whole = parameter(whole, default=0, least=0)
    _noise = LAPLACE

    def _depth(self, k: int, universe: int) -> int:
        return max(0, ceiling_log(8 * k / self.epsilon, universe / self.failure))


class _View:
    """The clipped supports of a universe: blocks of (depth below the best, how many).

    The clipped block is last.
    """

    def __init__(self, miner: Miner, universe: Numbering, k: int, depth: int, floor: int) -> None:
        self._miner, self._universe = miner, universe
        best = miner.best()
        levels = self._deepen(best, k, depth, floor)
        reached = 0
        kth = 0  # of those that occur in no row, if there are fewer than k that do
        for support, count in levels:
            reached += count
            if reached >= k:
                kth = support
                break
        self.clip = max(kth - depth, floor)
        self.levels = [level for level in levels if level[0] > self.clip]
        top = max(best, self.clip)
        self.clipped = universe.size - sum(count for _, count in self.levels)
        self.blocks = [(top - support, count) for support, count in self.levels]
        self.blocks += [(top - self.clip, self.clipped)] * bool(self.clipped)

    def _deepen(self, best: int, k: int, depth: int, floor: int) -> Sequence[Level]:
        """Return the occupied levels down to `depth` below the k-th itemset, or to the floor."""
        width = depth
        while True:  # ends: each look is deeper, down to the floor at last
            above = max(best - width, floor)
            levels = self._miner.histogram(above)
            reached = 0
            for support, count in levels:
                reached += count
                if reached >= k:
                    if max(support - depth, floor) >= above:
                        return levels
                    width = best - support + depth
                    break
            else:
                if above == floor:
                    return levels
                width = 2 * width + 1

    def name(
        self, drawn: Sequence[int], rows: Baskets, coins: Coins
    ) -> tuple[list[tuple[int, ...]], list[int]]:
        """Return a uniform itemset for every block drawn, without those before, and its support."""
        times = {block: drawn.count(block) for block in dict.fromkeys(drawn)}
        which = {
            block: iter(draw_places(self.blocks[block][1], count, coins))
            for block, count in times.items()
        }
        chosen = [(block, next(which[block])) for block in drawn]
        explicit = {block for block in times if block < len(self.levels)}
        members = self._members(explicit)
        outside = self._exclusions() if len(explicit) < len(times) else []
        names, supports = [], []
        for block, place in chosen:
            if block in explicit:
                row = members[block][place]
                names.append(tuple(code for code in row.tolist() if code >= 0))
                supports.append(self.levels[block][0])
            else:
                names.append(self._universe.unrank(nth_outside(place, outside)))
                supports.append(rows.support(names[-1]))
        return names, supports

    def _members(self, blocks: set[int]) -> dict[int, NDArray[np.int32]]:
        """Return all itemsets of each block."""
        if not blocks:
            return {}
        lowest = max(blocks)
        if sum(count for _, count in self.levels[: lowest + 1]) > LISTED_AT_ONCE:
            return {block: self._miner.at(self.levels[block][0]) for block in blocks}
        itemsets, _ = self._miner.above(self.levels[lowest][0] - 1)
        ends = np.cumsum([count for _, count in self.levels[: lowest + 1]]).tolist()
        return {
            block: itemsets[ends[block] - self.levels[block][1] : ends[block]] for block in blocks
        }

    def _exclusions(self) -> Sequence[int]:
        """Return the numbers of all itemsets above the clip, ascending."""
        return sorted(self._universe.ranks(self._miner.above(self.clip)[0]))
