"""Labels by cell of one column or of two, counted in memory or in an engine.

They are the sums of residuals that additive models count: where every row is nearly certain to
have one label, rows that do have it add nothing, and every other row adds the same.

Proof:      docs/proofs/classifier.md
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.fitting import ExampleRows
from privmax.learning.additive.link import CLIP, LIMIT
from privmax.learning.additive.model import Part, pair, single
from privmax.learning.classes.stumps import Ints
from privmax.learning.schema import Schema
from privmax.learning.splits import Splits, splits_of

_SETS = 1 << 8
"""Tables counted at a time."""


def count_labels(rows: ExampleRows, parts: Sequence[Part]) -> list[Ints]:
    """Return for every part [label, entry]: how many rows have this label and this entry.

    Examples:
        >>> from privmax.learning.additive.memory import MemoryRows
        >>> rows = MemoryRows(np.array([[0, 1, 1]], np.uint8), np.array([True, True, False]))
        >>> count_labels(rows, [single(0, 2)])[0].tolist()
        [[0, 1], [1, 1]]
    """
    sums = []
    for score, unit in ((LIMIT, -CLIP), (-LIMIT, CLIP)):  # the first label, then the second
        rows.start(score)
        counts = [
            sums_of
            for start in range(0, len(parts), _SETS)
            for sums_of in rows.residuals(parts[start : start + _SETS])
        ]
        sums.append([one // unit for one in counts])
    return [np.stack(both) for both in zip(*sums, strict=True)]


class Tables:
    """Labels by cell of every column, and of every two where trees are to be counted.

    It is private.

    Args:
        rows: The examples.
        schema: Their columns.
        doubles: Whether two columns are counted together.
    """

    def __init__(self, rows: ExampleRows, schema: Schema, *, doubles: bool) -> None:
        self._cells = [column.cells for column in schema.columns]
        self._splits = splits_of(schema)
        features = range(schema.features)
        parts = [single(feature, self._cells[feature]) for feature in features]
        self._singles = count_labels(rows, parts)
        self._doubles: dict[tuple[int, int], Ints] = {}
        if doubles:
            whole = [tuple(range(cells)) for cells in self._cells]
            both = list(combinations(features, 2))
            counted = count_labels(rows, [pair(*one, whole) for one in both])
            for one, counts in zip(both, counted, strict=True):
                first, second = (self._cells[feature] for feature in one)
                self._doubles[one] = counts.reshape(2, first, second)

    def __repr__(self) -> str:
        return "Tables(<private>)"

    def totals(self) -> Ints:
        """Return how many rows have each label."""
        total: Ints = self._singles[0].sum(axis=1)
        return total

    def below(self) -> Ints:
        """Return [label, test]: how many rows of a label fail a test, for all tests."""
        failed = [
            splits.failures(counts.T)
            for splits, counts in zip(self._splits, self._singles, strict=True)
        ]
        return np.concatenate(failed, axis=1)

    def below_both(self) -> Ints:
        """Return [label, test, test]: how many rows of a label fail both."""
        fails = [_failures(one) for one in self._splits]
        ends = np.cumsum([0, *(len(one) for one in self._splits)])
        both = np.zeros((2, ends[-1], ends[-1]), np.int64)
        for first, second in combinations(range(len(fails)), 2):
            rows, columns = (slice(ends[one], ends[one + 1]) for one in (first, second))
            counts = fails[first] @ self._doubles[first, second] @ fails[second].T
            both[:, rows, columns] = counts
            both[:, columns, rows] = counts.transpose(0, 2, 1)
        for feature, (fail, counts) in enumerate(zip(fails, self._singles, strict=True)):
            rows = slice(ends[feature], ends[feature + 1])
            both[:, rows, rows] = (fail * counts[:, None, :]) @ fail.T
        return both

    def grid(self, first: int, second: int) -> tuple[NDArray[np.intp], NDArray[np.intp], Ints]:
        """Return the cells of two columns, entry by entry, and [label, entry] of both together.

        Args:
            first: A column.
            second: Another one, or the same.
        """
        if first == second:
            cells = np.arange(self._cells[first])
            return cells, cells, self._singles[first]
        low, high = sorted((first, second))
        places = np.indices((self._cells[low], self._cells[high])).reshape(2, -1)
        counts = self._doubles[low, high].reshape(2, -1)
        return (*(places if first == low else places[::-1]), counts)


def _failures(splits: Splits) -> Ints:
    """Return [test, cell]: 1 where a row of this cell fails the test."""
    return (~splits.passes(np.arange(splits.column.cells))).astype(np.int64)
