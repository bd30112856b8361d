"""Rows as the published methods see them: one row per individual, and the bits of a few items."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError

if TYPE_CHECKING:
    from privmax.itemsets.baskets import Baskets


class Records:
    """Rows of different codes, ascending; each stands for as many individuals as its weight says.

    Sensitivities of the published methods are stated for one row an individual.
    """

    def __init__(self, rows: Baskets) -> None:
        if rows.owners is not None:
            raise ParameterError(
                "user", "given", "this method needs one basket per individual",
                "Choose a mechanism, which counts an itemset once per user; or leave user out to "
                "protect baskets.",
            )  # fmt: skip
        self.items, self.rows = rows.items, rows.rows
        self.weights = rows.weights
        width = max(self.items, 1)
        lines = np.repeat(np.arange(self.rows, dtype=np.int64), np.diff(rows.offsets))
        keys = np.unique(lines * width + rows.codes)
        self.lines, self.codes = np.divmod(keys, width)

    def __repr__(self) -> str:
        return "Records(<private>)"

    def lengths(self) -> NDArray[np.int64]:
        """Return how many items each row has."""
        return np.bincount(self.lines, minlength=self.rows).astype(np.int64)

    def total(self, rows: NDArray[np.intp] | NDArray[np.int64], size: int) -> NDArray[np.int64]:
        """Count the individuals at each of `size` places.

        `rows` has the place of every row; −1 is none.
        """
        there = rows >= 0
        numbers = np.zeros(size, np.int64)
        np.add.at(numbers, rows[there], 1 if self.weights is None else self.weights[there])
        return numbers

    def first(self, places: NDArray[np.int64], length: int) -> Records:
        """Cut every row to its first `length` items by `places`.

        `places` has the place of every item; items at −1 are dropped.
        """
        kept = places[self.codes] >= 0
        lines, codes = self.lines[kept], self.codes[kept]
        order = np.lexsort((places[codes], lines))
        lines, codes = lines[order], codes[order]
        starts = np.searchsorted(lines, np.arange(self.rows))
        within = np.arange(lines.size) - starts[lines] < length
        cut = object.__new__(Records)
        cut.items, cut.rows, cut.weights = self.items, self.rows, self.weights
        cut.lines, cut.codes = lines[within], codes[within]
        return cut

    def supports(self) -> NDArray[np.int64]:
        """Return how many individuals have each item."""
        supports = np.zeros(self.items, np.int64)
        np.add.at(supports, self.codes, 1 if self.weights is None else self.weights[self.lines])
        return supports


class Bits:
    """The rows that have each of a few items, as bits."""

    def __init__(self, records: Records, items: Sequence[int]) -> None:
        self._records = records
        self._place = {code: place for place, code in enumerate(items)}
        places = np.full(records.items, -1, np.int64)
        places[list(items)] = np.arange(len(items))
        kept = places[records.codes] >= 0
        lines, at = records.lines[kept], places[records.codes[kept]]
        order = np.argsort(at, kind="stable")
        ends = np.searchsorted(at[order], np.arange(len(items) + 1))
        self._bits = np.zeros((len(items), -(-records.rows // 64)), np.uint64)
        for place in range(len(items)):
            flags = np.zeros(self._bits.shape[1] * 64, bool)
            flags[lines[order[ends[place] : ends[place + 1]]]] = True
            self._bits[place] = np.packbits(flags).view(np.uint64)

    def __repr__(self) -> str:
        return "Bits(<private>)"

    def supports(self, itemsets: Iterable[Sequence[int]]) -> NDArray[np.int64]:
        """Count the individuals with each itemset, all of whose items must be among the few."""
        weights = self._records.weights
        if weights is None:
            counts = [
                np.bitwise_count(self._intersect(itemset)).sum(dtype=np.int64)
                for itemset in itemsets
            ]
        else:
            counts = [weights[self.rows(itemset)].sum() for itemset in itemsets]
        return np.array(counts, np.int64)

    def rows(self, itemset: Sequence[int]) -> NDArray[np.bool_]:
        """Return which rows have an itemset."""
        return np.unpackbits(
            self._intersect(itemset).view(np.uint8), count=self._records.rows
        ).view(bool)

    def _intersect(self, itemset: Sequence[int]) -> NDArray[np.uint64]:
        rows: NDArray[np.uint64] = np.bitwise_and.reduce(
            self._bits[[self._place[code] for code in itemset]], axis=0
        )
        return rows

    def bins(self, basis: Sequence[int]) -> NDArray[np.int64]:
        """Count the individuals that hold exactly each subset of `basis`.

        Bit j of a place stands for its j-th item.
        """
        patterns = np.zeros(self._records.rows, np.int64)
        for bit, code in enumerate(basis):
            flags = np.unpackbits(
                self._bits[self._place[code]].view(np.uint8), count=self._records.rows
            )
            patterns |= flags.astype(np.int64) << bit
        return self._records.total(patterns, 1 << len(basis))
