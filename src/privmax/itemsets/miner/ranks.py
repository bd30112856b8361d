"""Rows of item ranks: what both walks search.

Items are numbered by rank: 0 has the highest support. Nothing here may be shown: supports and rows
are private.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privmax.errors import WorkError
from privmax.itemsets.baskets import Baskets

Ints = NDArray[np.int64]
Codes = NDArray[np.int32]
Block = tuple[Codes, Ints]
"""Itemsets of one size, one a row, as ranks in falling order, and their supports."""


MOST = 1 << 24
"""So many itemsets are listed at a time, at most: some seconds of work, and public. Fifty baskets
of the same thirty items hold 2^30, all of the same support.
"""


class RankedRows(NamedTuple):
    """Rows of ranks, and for each rank the rows that hold it.

    Attributes:
        codes: The code of each rank.
        supports: The support of each rank, never increasing.
        starts: Row r holds items[starts[r]:starts[r + 1]].
        items: Ranks, ascending within a row, none twice.
        heads: Rank i is in rows[heads[i]:heads[i + 1]].
        rows: The rows of each rank, which ascend ...
        places: ... each with how many items of that row come before the rank.
        owners: The individual of each row, never decreasing; empty: every row is an individual.
        weights: For how many individuals the owner of each row stands; empty: one each.
    """

    codes: Codes
    supports: Ints
    starts: Ints
    items: Codes
    heads: Ints
    rows: Codes
    places: Codes
    owners: Ints
    weights: Ints

    def __repr__(self) -> str:
        return "RankedRows(<private>)"

    @property
    def longest(self) -> int:
        """The number of items in the longest row."""
        return int(np.diff(self.starts).max(initial=0))


def refuse_work(listed: int) -> int:
    """Return how many itemsets were listed, unless they are too many.

    Raises:
        WorkError: They are.
    """
    if listed > MOST:
        raise WorkError(
            f"More than {MOST:,} itemsets are frequent enough to compete, which are too many to "
            "count. Use smaller sizes, a larger epsilon, fewer items (k), or a floor: a public "
            "support that has to be exceeded."
        )
    return listed


def keep_highest(numbers: Ints, number: int) -> Ints:
    """Return so many of the highest numbers, in any order; all, if there are fewer.

    Examples:
        >>> keep_highest(np.array([3, 1, 2]), 2).tolist()
        [3, 2]
    """
    if len(numbers) <= number:
        return numbers
    return np.partition(numbers, len(numbers) - number)[len(numbers) - number :][::-1]


def individuals(baskets: Baskets, rows: Ints) -> tuple[Ints, Ints]:
    """Return the owners and the weights of some rows, each empty where `RankedRows` says so.

    Args:
        baskets: All rows.
        rows: Which of them, ascending.

    Returns:
        Owners and weights, one for each of the rows.

    Examples:
        >>> import numpy as np
        >>> baskets = Baskets(np.arange(4), np.zeros(3, np.int32), range(1), np.array([0, 0, 1]))
        >>> [part.tolist() for part in individuals(baskets, np.array([0, 1]))]
        [[0, 0], []]
        >>> [part.tolist() for part in individuals(baskets, np.array([1, 2]))]  # one row each
        [[], []]
    """
    none = np.empty(0, np.int64)
    owners = rows if baskets.owners is None else baskets.owners[rows]
    weights = none if baskets.weights is None else baskets.weights[owners]
    alone = baskets.owners is None or bool((np.diff(owners) > 0).all())
    return none if alone else np.ascontiguousarray(owners), np.ascontiguousarray(weights)
