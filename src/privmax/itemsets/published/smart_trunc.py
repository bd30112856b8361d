"""SmartTrunc: cut long rows to a noisy length, then count level by level.

Each candidate has noise.

    share 1   the number of rows of each length, with noise; L is where 85 % of them are no longer
    share 2   for every size i: all candidates (each subset of one less was kept at the level
              before) are counted in rows cut to L items, with noise for min(|candidates|, C(L, i))
              of them; the best are kept

A row keeps the items that matter most to the candidates of the level, by what was released before;
at the first level, where nothing was, by an order of the items drawn at random beforehand. So a cut
depends on the row and on what is public, and one individual is still one row.

The publication asks for a threshold and finds all itemsets above it; the k-th best noisy support so
far is put in its place. Reconstructed from its description: the split of the budget (equal over
levels; their number is public here and was estimated there), the importance of an item (sum of the
noisy supports from which its candidates were built), no second threshold for the loss by cutting.

Proof:      docs/proofs/competitors.md
Reference:  Zeng, Naughton & Cai, PVLDB 6(1), 2012
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.published.arrivals import add_noise, shuffle
from privmax.itemsets.published.priv_basis import Shares, read_shares
from privmax.itemsets.published.records import Bits, Records
from privmax.noise.coins import Coins
from privmax.numbers import open_probability, positive, whole
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy

Itemset = tuple[int, ...]


class SmartTrunc(Method):
    """The k most frequent itemsets of a closed universe, with their supports in rows that were cut.

    Args:
        epsilon: What it costs in all.
        shares: Of epsilon: for the lengths, for the levels together; they add up to 1.
        percentile: Share of the rows that is not cut, but for noise.
        longest: Public: no row is left longer than this, and lengths are counted up to it.
        levels: Public: itemsets of more items than this are not looked for.
        most_candidates: Public: so many at most are counted at a level, those with the best parts.
        spare: So many more than k are kept at a level that was not asked for, to build the next
            from.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> {part: str(share) for part, share in SmartTrunc(epsilon=1).parts().items()}
        {'lengths': '1/10', 'levels': '9/10'}
        >>> SmartTrunc(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
    """

    epsilon: Exact = parameter(positive)
    shares: Shares = parameter(read_shares, default=("0.1", "0.9"), number=2)
    percentile: Exact = parameter(open_probability, default="0.85")
    longest: Whole = parameter(whole, default=100)
    levels: Whole = parameter(whole, default=5)
    most_candidates: Whole = parameter(whole, default=20_000)
    spare: Whole = parameter(whole, default=20, least=0)
    neighbors: ClassVar[Neighbors] = ADD_REMOVE

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        records = Records(problem.rows)
        depth = min(self.levels, problem.sizes.stop - 1, records.items)
        if depth < problem.sizes.start:
            return []
        parts = self.parts()
        lengths = records.total(np.minimum(records.lengths(), self.longest), self.longest + 1)
        length = _percentile(add_noise(lengths, 1, parts["lengths"], coins), self.percentile)
        each = parts["levels"] / depth
        order = shuffle(records.items, coins)
        supports = add_noise(
            records.first(order, length).supports(), min(records.items, length), each, coins
        )
        kept: dict[Itemset, int] = {
            (code,): support for code, support in enumerate(supports.tolist())
        }
        best: dict[Itemset, int] = {}
        for size in range(2, depth + 1):
            kept, best = self._keep(kept, best, size - 1 in problem.sizes, problem.k)
            candidates = join_itemsets(kept, self.most_candidates)
            if not candidates:
                break
            cut = records.first(rank_items(candidates, kept, records.items), length)
            counts = Bits(
                cut, sorted({item for itemset in candidates for item in itemset})
            ).supports(candidates)
            touched = min(len(candidates), math.comb(length, size))
            if not touched:  # no row is left long enough
                break
            supports = add_noise(counts, touched, each, coins)
            kept = dict(zip(candidates, supports.tolist(), strict=True))
        else:
            _, best = self._keep(kept, best, depth in problem.sizes, problem.k)
        return [Found(itemset, support) for itemset, support in best.items()]

    def _keep(
        self, level: Mapping[Itemset, int], earlier: Mapping[Itemset, int], counts: bool, k: int
    ) -> tuple[dict[Itemset, int], dict[Itemset, int]]:
        """Return what to build the next level from, and the k best so far.

        Where the level itself was asked for, a longer itemset can only be among the k best if its
        parts are. Otherwise the best of the level are kept, with some to spare.
        """
        if not counts:
            return _first(level, k + self.spare), dict(earlier)
        best = _first({**earlier, **level}, k)
        return {itemset: support for itemset, support in best.items() if itemset in level}, best

    def parts(self) -> dict[str, Fraction]:
        """Return how the cost is split."""
        return {
            name: share * self.epsilon
            for name, share in zip(("lengths", "levels"), self.shares, strict=True)
        }

    def privacy(self) -> Privacy:
        return Privacy(sum(self.parts().values()))


def _percentile(lengths: NDArray[np.int64], share: Fraction) -> int:
    """Return the first length up to which the noisy counts hold `share` of their sum.

    It is at least 1.
    """
    counts = np.maximum(lengths, 0)
    upto = np.cumsum(counts)
    enough = upto * share.denominator >= int(upto[-1]) * share.numerator
    return max(1, int(np.argmax(enough)))


def _first(supports: Mapping[Itemset, int], k: int) -> dict[Itemset, int]:
    """Return the k best, best first, in the fixed order where they are equal."""
    ordered = sorted(supports, key=lambda itemset: (-supports[itemset], len(itemset), itemset))
    return {itemset: supports[itemset] for itemset in ordered[:k]}


def join_itemsets(kept: Mapping[Itemset, int], most: int) -> list[Itemset]:
    """Join itemsets that were kept to those of one item more, `most` at most.

    Every part of one item less was kept; those with the best parts come first.

    Examples:
        >>> join_itemsets({(0, 1): 9, (0, 2): 8, (1, 2): 7, (1, 3): 9}, 10)
        [(0, 1, 2)]
    """
    joined: dict[Itemset, int] = {}
    starts: dict[Itemset, list[int]] = {}
    for itemset in kept:
        starts.setdefault(itemset[:-1], []).append(itemset[-1])
    for start, ends in starts.items():
        for pair in combinations(sorted(ends), 2):
            itemset = (*start, *pair)
            parts = [itemset[:place] + itemset[place + 1 :] for place in range(len(itemset))]
            if all(part in kept for part in parts):
                joined[itemset] = min(kept[part] for part in parts)
    return list(_first(joined, most))


def rank_items(
    candidates: Sequence[Itemset], kept: Mapping[Itemset, int], items: int
) -> NDArray[np.int64]:
    """Return the place of every item, the most important first; −1 for those in no candidate.

    It depends only on what is released.

    Examples:
        >>> rank_items([(0, 2)], {(0,): 5, (2,): 4}, 3).tolist()
        [0, -1, 1]
    """
    worth: dict[int, int] = {}
    for itemset in candidates:
        support = min(kept[itemset[:place] + itemset[place + 1 :]] for place in range(len(itemset)))
        for item in itemset:
            worth[item] = worth.get(item, 0) + max(support, 0)
    order = np.full(items, -1, np.int64)
    for place, item in enumerate(sorted(worth, key=lambda item: (-worth[item], item))):
        order[item] = place
    return order
