"""The base of kinds whose cells are between cuts: numbers and dates.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import ParameterError
from privmax.learning.classes.grid import MOST_CELLS
from privmax.learning.kinds.base import Kind
from privmax.learning.kinds.contract import Cells


class Ordered(Kind):
    """A kind whose cells lie between ascending cuts: first ≤ value < next.

    Attributes:
        cuts: The cuts, ascending.
        any_value: What words call a value where there is no cut.
    """

    any_value: ClassVar[str] = "any value"
    cuts: NDArray[Any]

    def _cut_in_words(self, place: int) -> str:
        raise NotImplementedError

    def _threshold(self, place: int) -> float | str:
        """Return a cut as rules in JSON have it."""
        raise NotImplementedError

    def _find_threshold(self, threshold: Any) -> int:
        """Return the place of a cut among the cuts, or any place if there is no such cut."""
        raise NotImplementedError

    def _count_cells(self) -> int:
        """Return all cells, which must not be too many."""
        cells = len(self.cuts) + 1 + (self.missing is not None)
        if cells > MOST_CELLS:
            raise ParameterError(
                "cells",
                cells,
                f"there must be at most {MOST_CELLS} with the one for missing values",
                "For example 32.",
            )
        return cells

    def describe_range(self, first: int, last: int) -> str:
        """Return all cells from one to another in words, none of them that of missing values."""
        name, before = format_label(self.name), 0 if self.missing_cell is None else 1
        low, high = first - before - 1, last - before
        if low < 0:
            is_any = high >= len(self.cuts)
            return (
                f"{name} is {self.any_value}" if is_any else f"{name} < {self._cut_in_words(high)}"
            )
        if high >= len(self.cuts):
            return f"{name} >= {self._cut_in_words(low)}"
        return f"{self._cut_in_words(low)} <= {name} < {self._cut_in_words(high)}"

    def _value_test(self, cell: int, *, below: bool) -> dict[str, Any]:
        missing = {} if self.missing_cell is None else {"missing": below}
        place = cell - 1 - len(missing)
        return {"threshold": self._threshold(place), "below": below} | missing

    def _find_value_test(self, test: Mapping[str, Any]) -> int | None:
        if "threshold" not in test:
            return None
        return self._find_threshold(test["threshold"]) + 1 + (self.missing_cell is not None)


_FEW = 100
"""Up to so many cuts numbers are compared with each, which is faster than to search among them."""

_BLOCK = 1 << 14
"""Numbers compared at a time: they stay in the cache from one cut to the next."""


def count_cuts(numbers: NDArray[np.float64], cuts: NDArray[np.float64]) -> Cells:
    """Return how many cuts are at or below each number; of NaN any."""
    if len(cuts) > _FEW:
        return np.searchsorted(cuts, numbers, side="right").astype(np.uint16)
    counts = np.empty(len(numbers), np.uint16)
    for start in range(0, len(numbers), _BLOCK):
        some = numbers[start : start + _BLOCK]
        reached = np.zeros(len(some), np.uint8)
        for cut in cuts:
            reached += some >= cut
        counts[start : start + _BLOCK] = reached
    return counts
