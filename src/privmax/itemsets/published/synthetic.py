"""Frequent itemsets of rows that were released: work on public data, which costs nothing."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from privmax.itemsets.method import Found


def find_frequent(
    copies: Mapping[tuple[int, ...], int], items: int, sizes: range, k: int
) -> list[Found]:
    """Return the k most frequent itemsets of released rows, given with their numbers of copies.

    Examples:
        >>> find_frequent({(0, 1): 5, (1, 2): 3}, 3, range(1, 2), 1)
        [Found(codes=(1,), support=8)]
    """
    from privmax.itemsets.baskets import Baskets
    from privmax.itemsets.miner.window import Miner

    if not copies:
        return []
    offsets = np.cumsum([0, *(len(row) for row in copies)], dtype=np.int64)
    codes = np.array([code for row in copies for code in row], np.int32)
    weights = np.array(list(copies.values()), np.int64)
    miner = Miner(Baskets(offsets, codes, range(items), None, weights), sizes)
    least, reached = miner.best(), 0
    while least > 0 and reached < k:
        reached = 0
        for support, count in miner.histogram(least - 1):
            reached += count
            if reached >= k:
                least = support
                break
        else:
            least = least * 3 // 4
    itemsets, supports = miner.above(max(least, 1) - 1)
    return [
        Found(tuple(code for code in row if code >= 0), support)
        for row, support in zip(itemsets[:k].tolist(), supports[:k].tolist(), strict=True)
    ]
