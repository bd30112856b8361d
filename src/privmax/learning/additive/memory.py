"""Examples in memory, counted cell by cell."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.fitting import Sums
from privmax.learning.additive.link import CURVATURES, LIMIT, RESIDUALS
from privmax.learning.additive.model import Codes, Part


class MemoryRows:
    """Rows as cells, with a score each. They are private.

    Args:
        codes: The cell of every value, a row for each feature.
        labels: 0 or 1 for each example.
    """

    def __init__(self, codes: Codes, labels: NDArray[np.bool_]) -> None:
        self._codes = codes
        self._labels = labels
        self._scores = np.zeros(len(labels), np.int32)
        self._found: NDArray[np.int16] | None = None

    def __repr__(self) -> str:
        return "MemoryRows(<private>)"

    def labels(self) -> tuple[int, int]:
        second = int(np.count_nonzero(self._labels))
        return len(self._labels) - second, second

    def start(self, intercept: int) -> None:
        self._scores[:] = intercept
        self._found = None

    def residuals(self, parts: Sequence[Part]) -> list[Sums]:
        weights = self._residuals().astype(np.float64)  # whole numbers, and so are their sums
        return [_sum(part, self._codes, weights) for part in parts]

    def sums(self, part: Part) -> tuple[Sums, Sums]:
        places = part.places(self._codes)
        curvatures = CURVATURES[self._clipped()]
        return (
            _total(places, self._residuals().astype(np.float64), part.size),
            _total(places, curvatures.astype(np.float64), part.size),
        )

    def add(self, part: Part, steps: Sums) -> None:
        self._scores += steps.astype(np.int32)[part.places(self._codes)]
        self._found = None

    def _clipped(self) -> NDArray[np.int32]:
        """Scores as places in the tables of the link."""
        return np.clip(self._scores, -LIMIT, LIMIT) + LIMIT

    def _residuals(self) -> NDArray[np.int16]:
        if self._found is None:
            clipped = self._clipped()
            self._found = np.where(self._labels, RESIDUALS[1][clipped], RESIDUALS[0][clipped])
        return self._found


def _sum(part: Part, codes: Codes, weights: NDArray[np.float64]) -> Sums:
    whole = len(part.features) == 1 and part.size == len(part.groups[0])
    places = codes[part.features[0]] if whole else part.places(codes)
    return _total(places, weights, part.size)


def _total(places: NDArray[np.integer], weights: NDArray[np.float64], size: int) -> Sums:
    """Sums of whole numbers, exact below 2^53, which 10^13 rows do not reach."""
    return np.bincount(places, weights, minlength=size).astype(np.int64)
