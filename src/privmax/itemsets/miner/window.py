"""The window miner: every itemset down to a given support, with its exact support.

It finds no others.

Proof:  docs/proofs/miner.md (nothing is missed and nothing is counted wrongly: privacy rests on
        both)

Two walks over the itemsets give the same answers: `compiled_walk.py`, where numba is installed (the
extra `fast`), and `numpy_walk.py`. Everything here is private, and nothing of it is shown.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.miner import numpy_walk
from privmax.itemsets.miner.ranks import Block, Codes, Ints, RankedRows, keep_highest, refuse_work
from privmax.numbers import whole

FIRST = 24
"""So many of the most frequent items are searched first: what is found there bounds the rest of the
search.
"""

SQUARE = 1024
"""The pairs of so many of the most frequent items are counted all at once, in one pass over the
rows.
"""

UNBOUNDED = (1 << 63) - 1
"""No support is higher."""

DIRECT = 1 << 20
"""Windows of up to so many supports are tallied in an array, wider ones in a dictionary."""

WORTH_LOADING_NUMBA = 1 << 25
"""NumPy takes up to some 50 ns for each itemset of each row; numba takes most of a second to load.
Less work than this is done sooner than numba is loaded, unless it is already.
"""


TOGETHER = 1 << 20
"""So many itemsets are sorted together, at most; of more, one is found part by part."""


class BasketRows(Protocol):
    """The interface of the baskets."""

    def bounds(self) -> NDArray[np.int64]:
        """Return a number for every single item, by code, that its support does not exceed."""
        ...

    def survivors(self, least: int) -> Baskets:
        """Return baskets with the same codes that have all itemsets of support `least` or more.

        Items below it may be left out, and rows that are then equal may be merged into weights.
        """
        ...

    def count_holders(self, itemsets: Sequence[Sequence[int]]) -> list[int]:
        """Return how many individuals have all items of each set.

        Of the empty one, how many have any.
        """
        ...


class _Walks(Protocol):
    """The interface of `numpy_walk.py` and `compiled_walk.py`."""

    def count_supports(self, baskets: Baskets) -> Ints: ...
    def rank_rows(
        self, baskets: Baskets, codes: Codes, supports: Ints, shortest: int
    ) -> RankedRows: ...
    def count_pairs(self, baskets: Baskets, codes: Codes) -> Ints: ...
    def walk(
        self, table: RankedRows, pairs: Ints, sizes: range, least: int, most: int, *, named: bool
    ) -> Iterator[Block]: ...
    def find_best(self, table: RankedRows, pairs: Ints, size: int, least: int) -> int: ...
    def find_highest(
        self, table: RankedRows, pairs: Ints, sizes: range, least: int, known: Ints, number: int
    ) -> Ints: ...


@dataclass(frozen=True, repr=False, eq=False)
class _Stage:
    """The data needed to list all itemsets of support `least` or more.

    Args:
        supports: Of all items, by code: exact where they reach it, and otherwise not too high.
        codes: Of the items that reach it, by falling support.
        pairs: The supports of the pairs of the first of them, as `numpy_walk.count_pairs` gives
            them.
        baskets: Rows that tell all supports from `least` on.
    """

    least: int
    supports: Ints
    codes: Codes
    pairs: Ints
    baskets: Baskets

    def __repr__(self) -> str:
        return "_Stage(<private>)"

    @property
    def all_pairs(self) -> bool:
        """Whether all pairs of the items are among `pairs`."""
        return 2 * len(self.pairs) >= len(self.codes) * (len(self.codes) - 1)


class Miner:
    """The itemsets of the given sizes, by their supports.

    The support of an itemset is how many individuals have a row that holds all of it. An itemset
    that no one has is not listed anywhere.

    Memory, beyond the baskets and what is returned: 16 bytes for each item; 16 for each place in a
    row that holds one of the items at or above the support asked for, 40 a row; 12 for each place
    before the item of a root in its rows; and some 20 MB whatever the data are. It does not grow
    with how many itemsets there are. The walk in NumPy takes several times as much.

    Args:
        sizes: Of the itemsets wanted, for example range(2, 3) for pairs; it may reach beyond the
            longest row.
        compiled: Whether to use the compiled walk; None: where numba is installed and worth
            loading.

    Raises:
        ParameterError: The sizes are not a range of sizes.
        WorkError: More than `MOST` itemsets would have to be listed; any method but `best` raises
            it.

    Examples:
        >>> import numpy as np
        >>> rows = Baskets(np.array([0, 2, 4]), np.array([0, 1, 0, 1], np.int32), range(2))
        >>> pairs = Miner(rows, range(2, 3))
        >>> pairs.best(), pairs.histogram(0), pairs.at(2).tolist()
        (2, [(2, 1)], [[0, 1]])
    """

    def __init__(self, rows: BasketRows, sizes: range, *, compiled: bool | None = None) -> None:
        if not isinstance(sizes, range) or sizes.step != 1 or sizes.start < 1 or not sizes:
            raise ParameterError(
                "sizes",
                sizes,
                "it must be a range of sizes of at least 1",
                "For pairs: range(2, 3).",
            )
        self._rows = rows
        self._sizes = sizes
        self._compiled = compiled
        self._work = 0.0
        self._known: _Stage | None = None
        self._table: tuple[_Stage, int, RankedRows, Ints] | None = None

    def __repr__(self) -> str:
        return "Miner(<private>)"

    def best(self) -> int:
        """Return the highest support of an itemset of the sizes; 0 if there is none."""
        return self._best

    def nth(self, number: int, least: int = 1) -> int:
        """Return the support of the `number`-th itemset of the sizes, highest first.

        It is `least` − 1 where fewer have support `least` or more.
        """
        whole("number", number)
        bounds = np.sort(self._bounds)[::-1]
        items = max(FIRST, math.isqrt(2 * number) + 1)  # whose pairs would be so many
        while items < len(bounds) and bounds[items - 1] > least:  # ends: there are more each time
            level = int(bounds[items - 1])
            found = self._nth_from(level, number, least)
            if found >= level:
                return found  # no other item is in an itemset of such a support
            if found >= least:
                return self._nth_from(found + 1, number, found + 1)
            items *= 4
        return self._nth_from(least, number, least)

    def histogram(self, above: int) -> list[tuple[int, int]]:
        """Return (support, number of itemsets) for every support > `above`, highest first."""
        whole("above", above, least=0)
        top = self.best()
        if top <= above:
            return []
        if top - above > DIRECT:
            return self._sparse_histogram(above)
        tally = np.zeros(top - above, np.int64)
        for _, counts in self._blocks(above + 1, UNBOUNDED, named=False):
            tally += np.bincount(counts - (above + 1), minlength=len(tally))
        occupied = np.flatnonzero(tally)[::-1]
        return list(zip((occupied + above + 1).tolist(), tally[occupied].tolist(), strict=True))

    def at(self, support: int) -> NDArray[np.int32]:
        """Return all itemsets of exactly that support, one per row.

        A row has ascending codes, filled up with −1.

        The order is fixed: the shorter first, then by the first code, the second, and so on.
        """
        whole("support", support)
        if support > self.best():
            return self._collect([])[0]
        return self._collect(self._blocks(support, support, named=True))[0]

    def pick(self, support: int, index: int) -> NDArray[np.int32]:
        """Return the row of `at` that has this index.

        They are not all listed where they are many.
        """
        whole("support", support)
        rest, begins = whole("index", index, least=0), np.empty(0, np.int64)
        while True:  # ends: each round fixes the size, or one more item of the itemset
            parts: list[Codes] = []
            number, tally = 0, np.zeros(0, np.int64)
            for sets, _ in self._blocks(support, support, named=True):
                rows = _begin_with(np.sort(sets, axis=1), begins)
                number += len(rows)
                parts = [*parts, rows] if number <= TOGETHER else []
                tally = _add_next(tally, rows, len(begins))
            if number <= TOGETHER:
                ordered = self._collect([(rows, np.zeros(len(rows), np.int64)) for rows in parts])[
                    0
                ]
                one: Codes = ordered[rest]
                return one
            upto = np.cumsum(tally)
            chosen = int(np.searchsorted(upto, rest, side="right"))
            rest -= int(upto[chosen - 1]) if chosen else 0
            begins = np.append(begins, chosen)

    def above(self, support: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return all itemsets of a higher support, as `at` gives them, and their supports.

        The highest support comes first, then they are in the order of `at`.
        """
        whole("support", support, least=0)
        if support >= self.best():
            return self._collect([])
        return self._collect(self._blocks(support + 1, UNBOUNDED, named=True))

    @cached_property
    def _bounds(self) -> Ints:
        """For each item, by code, a number that its support does not exceed."""
        return self._count(self._rows) if isinstance(self._rows, Baskets) else self._rows.bounds()

    @cached_property
    def _best(self) -> int:
        """No set has a higher support than its subsets, so only the smallest size matters."""
        bounds = self._bounds
        bound = 0
        if len(bounds) > FIRST:
            least = max(1, int(np.partition(bounds, -FIRST)[-FIRST]))
            bound = self._best_from(least, 1)
            if bound >= least:
                return bound  # no other item is in an itemset of such a support
        return self._best_from(bound + 1, bound + 1)

    def _best_from(self, items: int, least: int) -> int:
        """Return the highest support among items of support `items` or more.

        It is `least` − 1 if it is under `least`.
        """
        size = self._sizes.start
        if size == 1:
            return max(least - 1, int(self._count_items(items).max(initial=0)))
        stage = self._stage(items)
        if size == 2 and stage.all_pairs:
            return max(least - 1, int(stage.pairs.max(initial=0)))
        table, pairs = self._rank(stage, least)
        walks = self._walks(estimate_work(table.starts, size))
        return walks.find_best(table, pairs, size, least)

    def _nth_from(self, items: int, number: int, least: int) -> int:
        """Return the same among the items of support `items` or more."""
        sizes, known = self._sizes, [np.empty(0, np.int64)]
        if 1 in sizes:
            known.append(self._count_items(items))
        larger = range(max(2, sizes.start), sizes.stop)
        if larger:
            stage = self._stage(items)
            if stage.all_pairs and 2 in larger:
                known.append(stage.pairs)
                larger = range(3, sizes.stop)
        supports = np.concatenate(known)
        highest = keep_highest(supports[supports >= least], number)
        if larger:
            lowest = int(highest.min()) + 1 if len(highest) == number else least
            table, pairs = self._rank(stage, lowest)
            walks = self._walks(estimate_work(table.starts, larger[-1]))
            highest = walks.find_highest(table, pairs, larger, lowest, highest, number)
        return int(highest.min()) if len(highest) == number else least - 1

    def _count(self, baskets: Baskets) -> Ints:
        """Return the support of each item in these baskets, by code."""
        return self._walks(len(baskets.codes)).count_supports(baskets)

    def _count_items(self, least: int) -> Ints:
        """Return the support of each item, by code.

        It is exact where it is `least` or more, and otherwise not too high.
        """
        return self._bounds if isinstance(self._rows, Baskets) else self._stage(least).supports

    def _stage(self, least: int) -> _Stage:
        """Return the last one, if it went deep enough, or a new one."""
        if self._known is None or self._known.least > least:
            least = self._go_deeper(least)
            survivors = self._rows.survivors(least)
            supports = self._bounds if survivors is self._rows else self._count(survivors)
            codes = np.flatnonzero(supports >= least).astype(np.int32)
            codes = codes[np.argsort(-supports[codes], kind="stable")]
            baskets = _drop_owners(survivors)
            pairs = np.empty(0, np.int64)
            if baskets.owners is None:
                walks = self._walks(estimate_work(baskets.offsets, 2))
                pairs = walks.count_pairs(baskets, codes[:SQUARE])
            self._known = _Stage(least, supports, codes, pairs, baskets)
        return self._known

    def _go_deeper(self, least: int) -> int:
        """Return the support to go down to where `least` is wanted.

        A second stage is often followed by a third, so it goes to half of what the last one had,
        while all pairs can still be counted at once.
        """
        if self._known is None:
            return least
        half = max(1, min(least, self._known.least // 2))
        return half if np.count_nonzero(self._bounds >= half) <= SQUARE else least

    def _walks(self, work: float) -> _Walks:
        """Choose the walk for so much work: the compiled one, if available and worth its start."""
        self._work += work
        small = self._work < WORTH_LOADING_NUMBA and "numba" not in sys.modules
        if self._compiled is False or (self._compiled is None and small):
            return numpy_walk
        try:
            from privmax.itemsets.miner import compiled_walk
        except ModuleNotFoundError as error:
            if self._compiled or error.name != "numba":
                raise
            return numpy_walk
        return compiled_walk

    def _rank(self, stage: _Stage, least: int) -> tuple[RankedRows, Ints]:
        """Return the rows with all items that can be in a wanted itemset, and supports of pairs.

        Wanted are itemsets of the sizes, of 3 or more where all pairs are known, that have support
        `least` or more. The pairs are those of the first items.
        """
        if self._table is not None and self._table[0] is stage and self._table[1] <= least:
            return self._table[2:]
        smallest = max(3 if stage.all_pairs else 2, self._sizes.start)
        codes, pairs = stage.codes, stage.pairs
        if stage.all_pairs:
            kept = _keep_companions(pairs, len(codes), least, smallest - 1)
            if len(kept) < len(codes):
                codes = codes[kept]
                high, low = np.tril_indices(len(kept), -1)
                pairs = pairs[kept[high] * (kept[high] - 1) // 2 + kept[low]]
        # A row that keeps fewer items than the smallest size holds no itemset that is wanted.
        walks = self._walks(len(stage.baskets.codes))
        table = walks.rank_rows(stage.baskets, codes, stage.supports[codes], smallest)
        self._table = stage, least, table, pairs
        return table, pairs

    def _blocks(self, least: int, most: int, *, named: bool) -> Iterator[Block]:
        """Yield all itemsets of support `least` … `most`, in any order, as codes.

        Unless `named`, the codes may be left out.
        """
        listed = 0
        for sets, counts in self._all_blocks(least, most, named=named):
            listed = refuse_work(listed + len(counts))
            yield sets, counts

    def _all_blocks(self, least: int, most: int, *, named: bool) -> Iterator[Block]:
        """Yield the same, however many they are."""
        sizes = self._sizes
        if 1 in sizes:
            supports = self._count_items(least)
            codes = np.flatnonzero((supports >= least) & (supports <= most)).astype(np.int32)
            yield codes[:, None], supports[codes]
        if sizes.stop < 3:
            return
        stage = self._stage(least)
        if stage.all_pairs and 2 in sizes:
            chosen = np.flatnonzero((stage.pairs >= least) & (stage.pairs <= most))
            yield (
                stage.codes[np.column_stack(_split_pairs(chosen, len(stage.codes)))],
                stage.pairs[chosen],
            )
        larger = range(max(3 if stage.all_pairs else 2, sizes.start), sizes.stop)
        if larger:
            table, pairs = self._rank(stage, least)
            walks = self._walks(estimate_work(table.starts, larger[-1]))
            for sets, counts in walks.walk(table, pairs, larger, least, most, named=named):
                yield table.codes[sets], counts

    def _sparse_histogram(self, above: int) -> list[tuple[int, int]]:
        tally: dict[int, int] = {}
        for _, counts in self._blocks(above + 1, UNBOUNDED, named=False):
            for support, count in zip(
                *map(np.ndarray.tolist, np.unique(counts, return_counts=True)), strict=True
            ):
                tally[support] = tally.get(support, 0) + count
        return sorted(tally.items(), reverse=True)

    def _collect(self, blocks: Iterator[Block] | list[Block]) -> tuple[Codes, Ints]:
        """Return all blocks together, in the fixed order, highest support first."""
        parts = [(np.sort(sets, axis=1), counts) for sets, counts in blocks if len(counts)]
        width = max([self._sizes.start, *(sets.shape[1] for sets, _ in parts)])
        itemsets = np.full((sum(len(counts) for _, counts in parts), width), -1, np.int32)
        supports = np.empty(len(itemsets), np.int64)
        sizes = np.empty(len(itemsets), np.int64)
        end = 0
        for sets, counts in parts:
            begin, end = end, end + len(counts)
            itemsets[begin:end, : sets.shape[1]] = sets
            supports[begin:end] = counts
            sizes[begin:end] = sets.shape[1]
        order = sort_rows(
            [
                supports.max(initial=0) - supports,
                sizes,
                *(column.astype(np.int64) + 1 for column in itemsets.T),
            ]
        )
        return itemsets[order], supports[order]


def _begin_with(rows: Codes, begins: Ints) -> Codes:
    """Return those of some sorted itemsets that have this size and begin with these codes."""
    if not len(begins) or rows.shape[1] != begins[0]:
        return rows if not len(begins) else rows[:0]
    fixed = begins[1:]
    kept: Codes = rows[(rows[:, : len(fixed)] == fixed).all(axis=1)]
    return kept


def _add_next(tally: Ints, rows: Codes, known: int) -> Ints:
    """Add to the tally of what comes next in these itemsets, their size or a code."""
    width = rows.shape[1]
    if not len(rows) or known > width:
        return tally
    more = np.bincount(rows[:, known - 1]) if known else np.bincount([width], [len(rows)])
    total = np.zeros(max(len(tally), len(more)), np.int64)
    total[: len(tally)] += tally
    total[: len(more)] += more.astype(np.int64)
    return total


def sort_rows(columns: list[Ints]) -> NDArray[np.int64]:
    """Return the order of rows by the first column, then the second, and so on.

    No column has a number under 0.

    As many columns as fit are put into one number, because each that is sorted by takes its time.

    Examples:
        >>> sort_rows([np.array([1, 0, 1]), np.array([2, 5, 1])]).tolist()
        [1, 2, 0]
    """
    words: list[Ints] = []
    filled = 64
    for column in columns:
        bits = int(column.max(initial=0)).bit_length()
        filled += bits
        if filled > 63:
            words.append(column.astype(np.int64))
            filled = bits
        else:
            words[-1] = (words[-1] << bits) | column
    return np.lexsort(words[::-1])


def _drop_owners(baskets: Baskets) -> Baskets:
    """Return the same without owners, where no one owns two rows."""
    owners = baskets.owners
    if owners is None or not (np.diff(owners) > 0).all():
        return baskets
    return replace(
        baskets, owners=None, weights=None if baskets.weights is None else baskets.weights[owners]
    )


def _split_pairs(numbers: Ints, items: int) -> tuple[Ints, Ints]:
    """Return the ranks of pairs by their numbers in `numpy_walk.count_pairs`."""
    ranks = np.arange(items)
    firsts = ranks * (ranks - 1) // 2
    high = np.searchsorted(firsts, numbers, side="right") - 1
    return high, numbers - firsts[high]


def _keep_companions(pairs: Ints, items: int, least: int, company: int) -> NDArray[np.int64]:
    """Return the ranks that make a pair of support `least` with `company` others of them.

    No others can be in an itemset of that support with so many companions.
    """
    high, low = _split_pairs(np.flatnonzero(pairs >= least), items)
    while True:  # ends: each round drops a pair
        kept = np.bincount(high, minlength=items) + np.bincount(low, minlength=items) >= company
        inside = kept[high] & kept[low]
        if inside.all():
            return np.flatnonzero(kept)
        high, low = high[inside], low[inside]


def estimate_work(offsets: Ints, size: int) -> float:
    """Bound the number of itemsets of up to a size in the rows between these offsets.

    An itemset counts for each of its rows.

    Examples:
        >>> estimate_work(np.array([0, 3]), 2)
        9.0
    """
    lengths = np.diff(offsets).astype(np.float64)
    with np.errstate(over="ignore"):  # infinitely many is many
        return float((lengths ** min(size, lengths.max(initial=1))).sum())
