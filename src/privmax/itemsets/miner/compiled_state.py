"""The state of a compiled walk: arrays that belong together, by name, all of them in one `Walk`.

They outlive a call, so a walk can stop when its buffers are full and go on later. Everything here
is private.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from privmax.itemsets.miner.ranks import Codes, Ints, RankedRows


class WalkLimits(NamedTuple):
    """The limits of the search of a walk.

    Attributes:
        smallest: The smallest size of a set.
        largest: The largest size of a set.
        most: The highest support that counts.
        named: Whether the sets are handed over, or their supports alone.
        rising: Whether only the best is looked for: then the least support that counts is one
            more than the best so far.
    """

    smallest: int
    largest: int
    most: int
    named: bool
    rising: bool


class ItemTally(NamedTuple):
    """Counts of the items that may be added to a set.

    Attributes:
        counts: By item. Between two roots all are 0.
        stamps: By item, the owner counted last; empty where every row is an individual.
    """

    counts: Ints
    stamps: Ints


class Local(NamedTuple):
    """The rows of one root, cut to the items that are frequent together with it.

    Attributes:
        ranks: The rank of each of these items, ascending. Below, an item is a place in this list.
        numbers: By rank, the place in this list, or −1. Between two roots all are −1.
        starts: Row r holds items[starts[r]:starts[r + 1]].
        items: Ascending within a row.
        owners: As in `RankedRows`.
        weights: As in `RankedRows`.
        pairs: The supports of all pairs, where those are counted at once.
        bits: Which rows have each item, for the same, and where items are in many of the rows.
    """

    ranks: Codes
    numbers: Codes
    starts: Ints
    items: Codes
    owners: Ints
    weights: Ints
    pairs: Ints
    bits: NDArray[np.uint64]


class Buckets(NamedTuple):
    """For each item that may be added to the set under way, the local rows that hold both.

    Attributes:
        heads: The bucket of item x begins at heads[x].
        lengths: How many rows it holds.
        rows: The local rows of all buckets ...
        places: ... each with how many items come before x there.
    """

    heads: Ints
    lengths: Ints
    rows: Codes
    places: Codes


class Trail(NamedTuple):
    """The path of the walk to the set under way, by depth.

    Attributes:
        ranks: The rank that was added: these are the set under way.
        cursors: The next item to add; by bits, its place among the candidates.
        bounds: The items that may be added are below this one; by bits, the number of candidates.
        candidates: By bits, the items that may be added at each depth, ascending.
        held: By bits, the local rows that hold the set at each depth.
    """

    ranks: Codes
    cursors: Ints
    bounds: Ints
    candidates: Codes
    held: NDArray[np.uint64]


class FoundSets(NamedTuple):
    """Sets that were found and not yet handed over.

    Attributes:
        supports: Of each set.
        sizes: Of each set.
        items: The ranks of all sets, one set after another.
    """

    supports: Ints
    sizes: Codes
    items: Codes


class Walk(NamedTuple):
    """Everything that a walk knows.

    Attributes:
        table: The rows.
        pairs: The supports of the pairs of the first ranks, or nothing.
        limits: What is looked for.
        state: ROOT, DEPTH, LEAST, SETS, PLACES and BITS.
        wide: Counts over all ranks, for roots.
        tally: Counts over the local items.
        local: The rows of the root.
        buckets: Which of them hold the set under way.
        trail: How it was reached.
        results: What is handed over next.
    """

    table: RankedRows
    pairs: Ints
    limits: WalkLimits
    state: Ints
    wide: ItemTally
    tally: ItemTally
    local: Local
    buckets: Buckets
    trail: Trail
    results: FoundSets

    def __repr__(self) -> str:
        return "Walk(<private>)"
