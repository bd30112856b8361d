"""PrivBasis: cover the frequent combinations of important items with a few small sets.

Supports are counted in those sets.

    α1·ε   λ, how many items the top k itemsets consist of: rank j with weight e^(−(α1·ε/2)·|j-th
           item support − θ|), θ the support of the ηk-th itemset
    α2·ε   the λ items with weight e^(support) at a share of the budget each; where λ > 12, also
           pairs of them
    α3·ε   bases of at most 12 items that cover those pairs; of each basis the number of individuals
           at every subset of it, with noise for one place in every basis
    then   the support of an itemset is a sum over the subsets that hold it; the k best are released

The authors' own program spends all of ε on λ (1.9·ε altogether) and takes the items from the data.
Here α1 + α2 + α3 = 1 and the universe is declared. Reconstructed: how cliques of more than 12 items
are cut, how bases are merged beyond "while the average variance falls", what sizes other than "any"
mean (θ is the ηk-th support among those asked for). How many pairs are drawn (`_pairs`) follows the
publication from memory, unchecked; privacy does not depend on it.

Proof:      docs/proofs/competitors.md
Reference:  Li, Qardaji, Su & Cao, PVLDB 5(11), 2012
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.published.arrivals import add_noise, draw_strongest
from privmax.itemsets.published.records import Bits, Records
from privmax.noise.coins import Coins
from privmax.numbers import Number, positive
from privmax.parameters import Exact, Parameter, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy

if TYPE_CHECKING:
    from privmax.itemsets.miner.window import Miner

Basis = tuple[int, ...]

LARGEST_BASIS = 12
"""Items in a basis: 2^12 subsets are counted."""

MOST_CLIQUES = 1 << 12
"""So many maximal cliques are looked for; pairs in none of them become bases of their own."""


def read_shares(name: str, shares: Sequence[Number], *, number: int) -> tuple[Fraction, ...]:
    """Shares of a budget: so many positive numbers that add up to 1.

    Examples:
        >>> [str(share) for share in read_shares("shares", (0.25, "3/4"), number=2)]
        ['1/4', '3/4']
    """
    exact = tuple(positive(name, share) for share in shares)
    if len(exact) != number or sum(exact) != 1:
        raise ParameterError(
            name, tuple(map(str, exact)), f"they must be {number} numbers that add up to 1"
        )
    return exact


Shares = Parameter[Sequence[Number], tuple[Fraction, ...]]
"""Shares of a budget."""


class PrivBasis(Method):
    """The k most frequent itemsets of a closed universe, with their supports.

    Args:
        epsilon: What it costs in all.
        shares: Of epsilon: for the number of items, for items and pairs, for counts; they add up
            to 1.
        margin: η: so many times k itemsets are provided for.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> {part: str(share) for part, share in PrivBasis(epsilon=1).parts().items()}
        {'number': '1/10', 'items': '2/5', 'counts': '1/2'}
        >>> PrivBasis(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
    """

    epsilon: Exact = parameter(positive)
    shares: Shares = parameter(read_shares, default=("0.1", "0.4", "0.5"), number=3)
    margin: Exact = parameter(positive, default="1.1")
    neighbors: ClassVar[Neighbors] = ADD_REMOVE

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        records = Records(problem.rows)
        sizes = range(problem.sizes.start, min(problem.sizes.stop, records.items + 1))
        if not sizes:
            return []
        parts = self.parts()
        size = math.ceil(self.margin * problem.k)
        supports = records.supports()
        falls = shortfalls(supports, find_support(problem.miner(problem.sizes), size))
        # The j-th fall belongs to λ = j + 1. No more items than this are in `size` itemsets: a
        # public bound.
        most = min(records.items, size * (1 if sizes.start == 1 else sizes.stop - 1))
        number = min(draw_strongest(-falls, 1, parts["number"] / 2, coins)[0] + 1, most)
        pairs = 0
        if number > LARGEST_BASIS and sizes.stop > 2:
            pairs = _pairs(size - (number if sizes.start == 1 else 0), number)
        each = parts["items"] / (number + pairs)
        items = draw_strongest(supports, number, each, coins)
        bits = Bits(records, items)
        edges: list[Basis] = []
        if pairs:
            candidates = [tuple(sorted(pair)) for pair in combinations(items, 2)]
            chosen = draw_strongest(bits.supports(candidates), pairs, each, coins)
            edges = [candidates[place] for place in chosen]
        # The number of pairs is public once λ is: budget for pairs that there are not goes unspent.
        bases = [tuple(items)] if number <= LARGEST_BASIS else cover_edges(items, edges)
        return _best(self._count(bits, bases, coins), sizes, problem.k)

    def _count(
        self, bits: Bits, bases: Sequence[Basis], coins: Coins
    ) -> list[tuple[Basis, NDArray[np.int64]]]:
        """Return every basis with the noisy number of individuals at each of its subsets.

        An individual is in one place per basis.
        """
        share = self.parts()["counts"]
        return [(basis, add_noise(bits.bins(basis), len(bases), share, coins)) for basis in bases]

    def parts(self) -> dict[str, Fraction]:
        """Return how the cost is split."""
        names = ("number", "items", "counts")
        return {name: share * self.epsilon for name, share in zip(names, self.shares, strict=True)}

    def privacy(self) -> Privacy:
        return Privacy(sum(self.parts().values()))


def find_support(miner: Miner, rank: int) -> int:
    """Return the support of the `rank`-th most frequent itemset; 0 if fewer occur."""
    best = miner.best()
    above = best - 1
    while above >= 0:
        reached = 0
        for support, count in miner.histogram(above):
            reached += count
            if reached >= rank:
                return support
        # Deepen by halves of what is left: the work is in the deepest look, and it is not much
        # deeper than needed.
        above = above * 3 // 4 if above else -1
    return 0


def shortfalls(supports: NDArray[np.int64], target: int) -> NDArray[np.int64]:
    """Return how far the support of the j-th most frequent item is from `target`, for every j.

    Examples:
        >>> shortfalls(np.array([3, 9, 5]), 5).tolist()
        [4, 0, 2]
    """
    return np.abs(np.sort(supports)[::-1] - target)


def _pairs(left: int, items: int) -> int:
    """Return how many pairs to look for, where `left` itemsets are not single items.

    They are fewer where they would crowd these.
    """
    if left <= 0:
        return 0
    crowd = Fraction(left, items)
    number = left if crowd <= 1 else math.isqrt(left * items)  # left / √(left/items)
    return max(1, min(number, math.comb(items, 2)))


def cover_edges(items: Sequence[int], edges: Sequence[Basis]) -> list[Basis]:
    """Bases such that every edge and every item is in one of them. Sees only what is released.

    Examples:
        >>> cover_edges([0, 1, 2], [(0, 1)])
        [(0, 1, 2)]
    """
    friends: dict[int, set[int]] = {item: set() for item in items}
    for left, right in edges:
        friends[left].add(right)
        friends[right].add(left)
    bases: list[Basis] = []
    for clique in find_cliques(friends):
        if len(clique) > 1:
            ordered = [item for item in items if item in clique]
            bases += [
                tuple(ordered[at : at + LARGEST_BASIS])
                for at in range(0, len(ordered), LARGEST_BASIS)
            ]
        if len(bases) >= MOST_CLIQUES:
            break
    covered = {pair for basis in bases for pair in combinations(sorted(basis), 2)}
    bases += [edge for edge in edges if edge not in covered]
    covered_items = {item for basis in bases for item in basis}
    bases += [(item,) for item in items if item not in covered_items]
    return merge_bases(list(dict.fromkeys(bases)), items, edges)


def find_cliques(friends: dict[int, set[int]]) -> Iterator[set[int]]:
    """Yield the maximal cliques of a graph (Bron & Kerbosch, with a pivot).

    Examples:
        >>> sorted(map(sorted, find_cliques({0: {1}, 1: {0, 2}, 2: {1}})))
        [[0, 1], [1, 2]]
    """
    stack = [(set[int](), set(friends), set[int]())]
    while stack:
        clique, more, done = stack.pop()
        if not more and not done:
            yield clique
            continue
        pivot = max(sorted(more | done), key=lambda item: len(more & friends[item]))
        for item in sorted(more - friends[pivot]):
            stack.append((clique | {item}, more & friends[item], done & friends[item]))
            more = more - {item}
            done = done | {item}


def merge_bases(bases: list[Basis], items: Sequence[int], edges: Sequence[Basis]) -> list[Basis]:
    """Merge two bases as long as that lowers the average variance of the noisy supports.

    The supports are those of the items and edges.

    A support is estimated from every basis that holds the itemset; each estimate adds 2^(|basis| −
    |itemset|) numbers with a noise that grows with the number of bases.
    """
    place = {item: at for at, item in enumerate(items)}
    queries = [*((item,) for item in items), *edges]
    left = np.array([place[query[0]] for query in queries])
    right = np.array([place[query[-1]] for query in queries])
    worth = np.array([2.0 ** len(query) for query in queries])
    contains = np.zeros((len(bases), len(items)), bool)
    for at, basis in enumerate(bases):
        contains[at, [place[item] for item in basis]] = True

    def precision(members: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Return what each basis adds to the precision of each query."""
        added: NDArray[np.float64] = (
            (members[:, left] & members[:, right]) * worth / 2.0 ** members.sum(axis=1)[:, None]
        )
        return added

    while len(contains) > 1:
        own = precision(contains)
        total = own.sum(axis=0)
        lowest, best = len(contains) ** 2 * float((1 / total).sum()), None
        for first in range(len(contains) - 1):
            union = contains[first] | contains[first + 1 :]
            fits = np.flatnonzero(union.sum(axis=1) <= LARGEST_BASIS)
            if fits.size:
                after = total - own[first] - own[first + 1 :][fits] + precision(union[fits])
                variances = (len(contains) - 1) ** 2 * (1 / after).sum(axis=1)
                at = int(variances.argmin())
                if variances[at] < lowest:
                    lowest, best = float(variances[at]), (first, first + 1 + int(fits[at]))
        if best is None:
            break
        contains[best[0]] |= contains[best[1]]
        contains = np.delete(contains, best[1], axis=0)
    return [tuple(items[at] for at in np.flatnonzero(row).tolist()) for row in contains]


def _best(counted: Sequence[tuple[Basis, NDArray[np.int64]]], sizes: range, k: int) -> list[Found]:
    """Return the k itemsets of the highest estimated support. Sees only what is released."""
    sums: dict[Basis, int] = {}
    weights: dict[Basis, int] = {}
    for basis, bins in counted:
        supports = bins.copy()
        for bit in range(len(basis)):  # sum over all supersets, one item at a time
            pairs = supports.reshape(-1, 2, 1 << bit)
            pairs[:, 0] += pairs[:, 1]
        weight = 1 << (
            LARGEST_BASIS - len(basis)
        )  # the inverse of the variance, but for a common factor
        estimates = supports.tolist()
        for size in range(sizes.start, min(sizes.stop, len(basis) + 1)):
            for places in combinations(range(len(basis)), size):
                itemset = tuple(sorted(basis[place] for place in places))
                sums[itemset] = (
                    sums.get(itemset, 0) + weight * estimates[sum(1 << place for place in places)]
                )
                weights[itemset] = weights.get(itemset, 0) + weight
    estimated = {itemset: round(Fraction(sums[itemset], weights[itemset])) for itemset in sums}
    ordered = sorted(estimated, key=lambda itemset: (-estimated[itemset], len(itemset), itemset))
    return [Found(itemset, estimated[itemset]) for itemset in ordered[:k]]
