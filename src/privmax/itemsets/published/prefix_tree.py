"""Two phases on a prefix tree: propose itemsets by how rows begin, then count those.

    share 1   the support of every item in rows cut to `depth` items, with noise: the order in which
              rows are written
    share 2   a tree of the first `depth` items of each row; every item is a possible child of every
              node, with noise of its own; children whose noisy number reaches a threshold are
              followed, the highest first
    share 3   the itemsets most frequent in the rows that the tree describes are candidates; each
              row counts for at most `touched` of those it holds, the most promising first, and the
              counts are released with noise

The publication is about sequences, which come in an order. Reconstructed: the order of the items
(share 1), that children are drawn one by one instead of by a model of the sequences, and the
transformation of the second phase, here a cut to a number of candidates a row.

Proof:      docs/proofs/competitors.md
Reference:  Bonomi & Xiong, CIKM 2013
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.method import Found, Method, Problem
from privmax.itemsets.published.arrivals import add_noise, shuffle
from privmax.itemsets.published.priv_basis import Shares, read_shares
from privmax.itemsets.published.records import Bits, Records
from privmax.itemsets.published.synthetic import find_frequent
from privmax.noise.balls import ceiling_log
from privmax.noise.coins import Coins
from privmax.numbers import positive, whole
from privmax.parameters import Exact, Whole, parameter
from privmax.privacy import ADD_REMOVE, Neighbors, Privacy

Path = tuple[int, ...]


class PrefixTree(Method):
    """The k most frequent itemsets of a closed universe, with supports in rows that were cut.

    Args:
        epsilon: What it costs in all.
        shares: Of epsilon: for the order of items, for the tree, for counts; they add up to 1.
        depth: Public: levels of the tree, and items a row is cut to for it.
        stray: So many empty children of a node are followed, on average: sets the threshold.
        most: Public: how many nodes are followed at most.
        proposed: So many times k candidates are counted in the second phase.
        touched: Public: for how many candidates a row counts at most.

    Raises:
        ParameterError: A parameter is out of bounds.

    Examples:
        >>> {part: str(share) for part, share in PrefixTree(epsilon=1).parts().items()}
        {'order': '1/5', 'tree': '3/10', 'counts': '1/2'}
        >>> PrefixTree(epsilon=1).privacy()
        Privacy(epsilon=1, delta=0)
    """

    epsilon: Exact = parameter(positive)
    shares: Shares = parameter(read_shares, default=("0.2", "0.3", "0.5"), number=3)
    depth: Whole = parameter(whole, default=6)
    stray: Exact = parameter(positive, default="0.1")
    most: Whole = parameter(whole, default=1000)
    proposed: Whole = parameter(whole, default=2)
    touched: Whole = parameter(whole, default=20)
    neighbors: ClassVar[Neighbors] = ADD_REMOVE

    def draw(self, problem: Problem, coins: Coins) -> list[Found]:
        records = Records(problem.rows)
        if not records.items:
            return []
        parts = self.parts()
        anyhow = shuffle(records.items, coins)
        supports = add_noise(
            records.first(anyhow, self.depth).supports(), self.depth, parts["order"], coins
        )
        order = np.empty(records.items, np.int64)
        order[np.argsort(-supports, kind="stable")] = np.arange(records.items)
        tree = self._tree(records.first(order, self.depth), order, coins)
        proposed = self.proposed * problem.k
        candidates = [
            frequent.codes
            for frequent in find_frequent(
                count_endings(tree), records.items, problem.sizes, proposed
            )
        ]
        if not candidates:
            return []
        counts = add_noise(
            count_holders(records, candidates, self.touched), self.touched, parts["counts"], coins
        ).tolist()
        ordered = sorted(
            zip(candidates, counts, strict=True), key=lambda pair: (-pair[1], len(pair[0]), pair[0])
        )
        return [Found(codes, support) for codes, support in ordered[: problem.k]]

    def _tree(self, cut: Records, order: NDArray[np.int64], coins: Coins) -> dict[Path, int]:
        """Return the noisy number of rows that begin with each path that was followed.

        A row is on one path, `depth` long.
        """
        each = self.parts()["tree"] / self.depth
        starts = np.searchsorted(cut.lines, np.arange(cut.rows + 1))
        lengths = np.diff(starts)
        counted: dict[Path, int] = {}
        queue: list[tuple[int, Path, NDArray[np.intp]]] = [(0, (), np.arange(cut.rows))]
        # At most items · ½·e^(−threshold·each) empty children reach it.
        threshold = max(1, ceiling_log(1 / each, cut.items / (2 * self.stray)))
        followed = 0
        while queue and followed < self.most:
            _, path, rows = heapq.heappop(queue)  # paths differ, so rows are never compared
            followed += 1
            going_on = rows[lengths[rows] > len(path)]
            following = cut.codes[starts[going_on] + len(path)]
            counts = np.zeros(cut.items, np.int64)
            np.add.at(counts, following, 1 if cut.weights is None else cut.weights[going_on])
            numbers = add_noise(counts, 1, each, coins)
            for code in np.flatnonzero(numbers > 0).tolist():
                number = int(numbers[code])
                later = (
                    not path or order[code] > order[path[-1]]
                )  # others cannot follow, as everybody knows
                if later and number >= threshold:
                    counted[*path, code] = number
                    if len(path) + 1 < self.depth:
                        heapq.heappush(queue, (-number, (*path, code), going_on[following == code]))
        return counted

    def parts(self) -> dict[str, Fraction]:
        """Return how the cost is split."""
        names = ("order", "tree", "counts")
        return {name: share * self.epsilon for name, share in zip(names, self.shares, strict=True)}

    def privacy(self) -> Privacy:
        return Privacy(sum(self.parts().values()))


def count_endings(tree: dict[Path, int]) -> dict[Path, int]:
    """Return how many rows end where, by a noisy tree: what a node has more than its children.

    Examples:
        >>> count_endings({(1,): 5, (1, 0): 3})
        {(1,): 2, (0, 1): 3}
    """
    left = dict(tree)
    for path, number in tree.items():
        if path[:-1]:
            left[path[:-1]] -= number
    rows: dict[Path, int] = {}
    for path, number in left.items():
        if number > 0:
            row = tuple(sorted(path))
            rows[row] = rows.get(row, 0) + number
    return rows


def count_holders(records: Records, candidates: Sequence[Path], touched: int) -> NDArray[np.int64]:
    """Count the individuals that hold each candidate.

    A row counts for the first `touched` that it holds.
    """
    bits = Bits(records, sorted({code for candidate in candidates for code in candidate}))
    used = np.zeros(records.rows, np.int64)
    counts = np.zeros(len(candidates), np.int64)
    for place, candidate in enumerate(candidates):
        counting = bits.rows(candidate) & (used < touched)
        used += counting
        counts[place] = (
            counting.sum() if records.weights is None else records.weights[counting].sum()
        )
    return counts
