"""NumPy arrays, with a mask or without, and lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.sources.table import (
    MIXED,
    MOMENTS,
    NUMBERS,
    OTHER,
    TEXT,
    Candidates,
    TableColumn,
    Values,
    no_scores,
)


class ListColumn(TableColumn):
    """A list, or any other iterable of values."""

    def read_scores(self) -> Any:
        return list(self.values)  # a missing one is refused by its type

    def read_candidates(self) -> Candidates:
        if not isinstance(self.values, (list, tuple)):
            raise no_scores(self.values)
        return super().read_candidates()


class ArrayColumn(TableColumn):
    """An array of NumPy."""

    def has_missing(self) -> bool:
        return isinstance(self.values, np.ma.MaskedArray) and bool(np.ma.is_masked(self.values))

    def to_array(self) -> NDArray[Any]:
        return np.asarray(self.values)

    def read_scores(self) -> Any:
        if self.values.ndim != 1:
            raise DataError(
                f"The array of scores has {self.values.ndim} dimensions; it must have one."
            )
        return super().read_scores()

    def read_values(self) -> Values:
        return read_array(unmask(self.values))


def unmask(values: NDArray[Any]) -> NDArray[Any]:
    """Return the array without a mask.

    What is under a mask is missing; whether there is any follows from the type.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    masked: Any = values
    if values.dtype.kind == "f":
        return np.asarray(masked.astype(np.float64).filled(np.nan))
    if values.dtype.kind == "M":
        return np.asarray(masked.filled(np.array("NaT", values.dtype)))
    return np.asarray(masked.astype(object).filled(None))


def read_array(values: NDArray[Any]) -> Values:
    """Read an array without a mask for a learner."""
    if values.dtype.kind == "f":  # listed numbers are compared as 64-bit floats
        return Values(NUMBERS, values.astype(np.float64, copy=False))
    if values.dtype.kind in "biu":
        return Values(NUMBERS, values)
    if values.dtype.kind in "UT":
        return Values(TEXT, values.astype(object))
    if values.dtype.kind == "M":
        return Values(MOMENTS, values)
    return Values(MIXED if values.dtype.kind == "O" else OTHER, values)
