"""Examples in memory, counted cell by cell."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.learning.additive.fitting import Sums
from privmax.learning.additive.link import LIMIT, LOGISTIC, Link
from privmax.learning.additive.model import Codes, Part

COMPILED_FROM = 1 << 24
"""So many cells to go through in a round, and the compiled code is worth its loading."""

_BLOCK = 1 << 20
"""Rows whose residuals stay in the processor's cache while all features are counted."""


class MemoryRows:
    """Rows as cells, with a score each. They are private.

    Args:
        codes: The cell of every value, a row for each feature.
        targets: Of each example: False or True for labels, otherwise whole numbers.
        compiled: Whether to count with compiled code; by default where it pays.
    """

    def __init__(
        self,
        codes: Codes,
        targets: NDArray[np.bool_] | NDArray[np.int16],
        compiled: bool | None = None,
    ) -> None:
        self._codes = codes
        self._targets = targets.astype(np.int16)
        self._link = LOGISTIC
        self._scores = np.zeros(len(targets), np.int32)
        self._cached: NDArray[np.int16] | None = None
        if compiled is None:
            compiled = codes.size >= COMPILED_FROM and find_spec("numba") is not None
        self._kernel: Any = None
        if compiled:
            from privmax.learning.additive import kernel

            self._kernel = kernel

    def __repr__(self) -> str:
        return "MemoryRows(<private>)"

    def labels(self) -> tuple[int, int]:
        second = int(np.count_nonzero(self._targets))
        return len(self._targets) - second, second

    def tally(self) -> Sums:
        places = self._link.places(self._scores, self._targets)
        return np.bincount(places, minlength=len(self._link.residuals))

    def use(self, link: Link) -> None:
        self._link, self._cached = link, None

    def start(self, intercept: int) -> None:
        self._scores[:] = intercept
        self._cached = None

    def residuals(self, parts: Sequence[Part]) -> list[Sums]:
        residuals = self._residuals()
        if self._kernel is not None:
            return _in_threads(lambda part: self._add_up(part, residuals), parts)
        weights = residuals.astype(np.float64)  # whole numbers, and so are their sums
        return [_total(self._places(part), weights, part.size) for part in parts]

    def sums(self, part: Part) -> tuple[Sums, Sums]:
        residuals = self._residuals()
        curves = self._link.curvatures[self._link.places(self._scores, self._targets)]
        if self._kernel is not None:
            return self._add_up(part, residuals), self._add_up(part, curves)
        places = self._places(part)
        first, second = (one.astype(np.float64) for one in (residuals, curves))
        return _total(places, first, part.size), _total(places, second, part.size)

    def add(self, part: Part, steps: Sums) -> None:
        self._scores += steps.astype(np.int32)[self._places(part)]
        self._cached = None

    def _residuals(self) -> NDArray[np.int16]:
        if self._cached is None:
            self._cached = self._look_up()
        return self._cached

    def _look_up(self) -> NDArray[np.int16]:
        link, scores, targets = self._link, self._scores, self._targets
        if self._kernel is None:
            found: NDArray[np.int16] = link.residuals[link.places(scores, targets)]
            return found
        residuals = np.empty(len(scores), np.int16)
        self._kernel.look_up(scores, targets, link.residuals, link.factor, LIMIT, residuals)
        return residuals

    def _places(self, part: Part) -> NDArray[Any]:
        """Return the entry of the table that each row has.

        Its cell, where every cell is separate.
        """
        if len(part.features) == 1 and part.size == len(part.groups[0]):
            codes: NDArray[Any] = self._codes[part.features[0]]
            return codes
        return part.places(self._codes)

    def _add_up(self, part: Part, weights: NDArray[np.int16]) -> Sums:
        sums = np.zeros((4, part.size), np.int64)
        places = self._places(part)
        for start in range(0, len(weights), _BLOCK):
            some = slice(start, start + _BLOCK)
            self._kernel.add_up(places[some], weights[some], sums)
        total: Sums = sums.sum(axis=0)
        return total


def _in_threads(count: Callable[[Part], Sums], parts: Sequence[Part]) -> list[Sums]:
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        return list(threads.map(count, parts))


def _total(places: NDArray[Any], weights: NDArray[np.float64], size: int) -> Sums:
    """Sums of whole numbers, exact below 2^53, which 10^13 rows do not reach."""
    return np.bincount(places, weights, minlength=size).astype(np.int64)
