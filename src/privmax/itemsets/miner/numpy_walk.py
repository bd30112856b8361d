"""The walk over all frequent itemsets of ranked rows, in NumPy.

`compiled_walk.py` has the same, compiled.

An itemset is grown from its rarest item by adding ever more frequent ones, so every itemset is
reached along exactly one path, and what can be added to it is in the rows that hold it, before
the item added last.

Nothing here may be shown: supports and rows are private.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner.ranks import (
    Block,
    Codes,
    Ints,
    RankedRows,
    individuals,
    keep_highest,
    refuse_work,
)

BATCH = 1 << 20
"""The number of elements of rows in one batch; a single itemset may need more, never more than
there are.
"""


def count_supports(baskets: Baskets) -> Ints:
    """Return the support of every item, by code."""
    return baskets.supports()


def rank_rows(baskets: Baskets, codes: Codes, supports: Ints, shortest: int) -> RankedRows:
    """Return the rows with only the items `codes`, ranked in this order.

    Rows that keep fewer than `shortest` items are left out.
    """
    ranks = np.full(baskets.items, -1, np.int32)
    ranks[codes] = np.arange(len(codes), dtype=np.int32)
    new = ranks[baskets.codes]
    kept = new >= 0
    width = max(len(codes), 1)
    pairs = np.repeat(np.arange(baskets.rows), np.diff(baskets.offsets))[kept]
    pairs *= width
    pairs += new[kept]
    pairs.sort()
    pairs = pairs[np.diff(pairs, prepend=-1) > 0]
    row, item = np.divmod(pairs, width)
    lengths = np.bincount(row, minlength=baskets.rows)
    item = item[lengths[row] >= shortest]
    origin = np.flatnonzero(lengths >= max(shortest, 1))
    lengths = lengths[origin]
    starts = _edges(lengths)
    order = np.argsort(item, kind="stable")
    rows = np.repeat(np.arange(len(origin), dtype=np.int32), lengths)[order]
    return RankedRows(
        codes,
        supports,
        starts,
        item.astype(np.int32),
        _edges(np.bincount(item, minlength=len(codes))),
        rows,
        (order - starts[rows]).astype(np.int32),
        *individuals(baskets, origin),
    )


def count_pairs(baskets: Baskets, codes: Codes) -> Ints:
    """Return the support of every pair of items, ranked in the order of `codes`.

    That of i and j < i is at i·(i − 1)/2 + j.

    Every row must be an individual of its own.
    """
    table = rank_rows(baskets, codes, np.empty(0, np.int64), 2)
    counts = np.zeros(len(codes) * (len(codes) - 1) // 2, np.int64)
    row = np.repeat(np.arange(len(table.starts) - 1), np.diff(table.starts))
    starts = table.starts[row]
    places = np.arange(len(row)) - starts
    before = _edges(places)
    first = 0
    while first < len(row):
        last = max(first + 1, int(np.searchsorted(before, before[first] + BATCH, side="right")) - 1)
        part = slice(first, last)
        lengths = places[part]
        item = table.items[part].astype(np.int64)
        other = np.arange(int(lengths.sum())) + np.repeat(
            starts[part] - before[part] + before[first], lengths
        )
        keys = np.repeat(item * (item - 1) // 2, lengths) + table.items[other]
        if len(table.weights):
            np.add.at(
                counts, keys, table.weights[np.repeat(row[part], lengths)]
            )  # bincount would add up floats
        else:
            counts += np.bincount(keys, minlength=len(counts))
        first = last
    return counts


def walk(
    table: RankedRows, pairs: Ints, sizes: range, least: int, most: int, *, named: bool
) -> Iterator[Block]:
    """Yield the itemsets of two or more items with a support of `least` … `most`, in any order.

    `pairs` holds the supports of the pairs of the first ranks, or nothing. This walk has no use for
    them.
    """
    for sets, counts in _Walk(table, sizes, least).run():
        chosen = counts <= most
        yield (sets, counts) if chosen.all() else (sets[chosen], counts[chosen])


def find_best(table: RankedRows, pairs: Ints, size: int, least: int) -> int:
    """Return the highest support of an itemset of two or more items.

    It is `least` − 1 where none has `least` or more.
    """
    walk = _Walk(table, range(size, size + 1), least)
    for _, counts in walk.run():
        walk.least = max(walk.least, int(counts.max(initial=0)) + 1)
    return walk.least - 1


def find_highest(
    table: RankedRows, pairs: Ints, sizes: range, least: int, known: Ints, number: int
) -> Ints:
    """Return so many of the highest supports, of `known` ones and of itemsets of the sizes.

    Supports under `least` are left out. There are fewer where there are no more.
    """
    walk = _Walk(table, sizes, least)
    listed = 0
    for _, counts in walk.run():
        known = keep_highest(np.concatenate([known, counts]), number)
        listed = refuse_work(listed + len(counts))
        if len(known) == number:
            walk.least = max(walk.least, int(known.min()) + 1)
    return known


class _Walk:
    """Grows itemsets a batch at a time, depth first. `least` may be raised on the way."""

    def __init__(self, table: RankedRows, sizes: range, least: int) -> None:
        self.table = table
        self.sizes = sizes
        self.least = least

    def run(self) -> Iterator[Block]:
        table = self.table
        roots = np.arange(len(table.codes), dtype=np.int32)[:, None]
        return self._grow(roots, table.supports, table.heads, table.rows, table.places)

    def _grow(
        self, sets: Codes, supports: Ints, heads: Ints, rows: Codes, places: Codes
    ) -> Iterator[Block]:
        """Yield all larger sets that begin with one of `sets`.

        Set n is in rows[heads[n]:heads[n + 1]].
        """
        if sets.shape[1] + 1 >= self.sizes.stop:
            return
        before = np.concatenate(([0], np.cumsum(places, dtype=np.int64)))[heads]
        first = 0
        while first < len(sets):
            last = max(
                first + 1, int(np.searchsorted(before, before[first] + BATCH, side="right")) - 1
            )
            if before[last] > before[first] and supports[first:last].max() >= self.least:
                part = slice(int(heads[first]), int(heads[last]))
                nodes = np.repeat(np.arange(last - first), np.diff(heads[first : last + 1]))
                yield from self._extend(sets[first:last], nodes, rows[part], places[part])
            first = last

    def _extend(self, sets: Codes, nodes: Ints, rows: Codes, places: Codes) -> Iterator[Block]:
        """Yield the larger sets of an expanded list.

        Set nodes[e] is in row rows[e], where the first places[e] items may be added to it.
        """
        table = self.table
        width = len(table.codes)
        size = sets.shape[1] + 1
        ends = np.cumsum(places, dtype=np.int64)
        place = np.arange(int(ends[-1])) - np.repeat(ends - places, places)
        row = np.repeat(rows, places)
        keys = np.repeat(nodes, places) * width + table.items[table.starts[row] + place]
        if len(sets) * width <= 4 * len(keys) + (1 << 16):
            names = np.arange(len(sets) * width)
        else:
            names, keys = np.unique(keys, return_inverse=True)
        counts = self._count(keys, len(names), row)
        frequent = counts >= self.least
        node, item = np.divmod(names[frequent], width)
        grown = np.column_stack((sets[node], item.astype(np.int32)))
        counts = counts[frequent]
        if size in self.sizes:
            yield grown, counts
        if size + 1 < self.sizes.stop and len(grown):
            inside = np.flatnonzero(frequent[keys])
            child = (np.cumsum(frequent) - 1)[keys[inside]]
            inside = inside[np.argsort(child, kind="stable")]
            heads = _edges(np.bincount(child, minlength=len(grown)))
            yield from self._grow(grown, counts, heads, row[inside], place[inside].astype(np.int32))

    def _count(self, keys: Ints, space: int, row: Codes) -> Ints:
        """Return how many individuals have each key; element e belongs to row[e]."""
        table = self.table
        if len(table.owners):
            owner = table.owners[row]
            order = np.lexsort((owner, keys))
            keys, owner, row = keys[order], owner[order], row[order]
            first = (np.diff(keys, prepend=-1) != 0) | (np.diff(owner, prepend=-1) != 0)
            keys, row = keys[first], row[first]
        if not len(table.weights):
            return np.bincount(keys, minlength=space).astype(np.int64, copy=False)
        counts = np.zeros(space, np.int64)
        np.add.at(counts, keys, table.weights[row])  # bincount would add up floats
        return counts


def _edges(lengths: Ints) -> Ints:
    """Return the beginnings and ends of consecutive parts of these lengths."""
    return np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
