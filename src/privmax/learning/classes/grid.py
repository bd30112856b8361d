"""Public thresholds on features. They are declared, never computed from the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from copy import copy
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, column_error
from privmax.numbers import whole

Bound = float | Sequence[float] | Mapping[str, float] | None
_Thresholds = Sequence[float] | Sequence[Sequence[float]] | Mapping[str, Sequence[float]]
Thresholds = _Thresholds | None

MOST_CELLS = 1 << 16


@dataclass(frozen=True)
class Grid:
    """Cells of every feature: equal ones between two bounds, or cut at thresholds.

    Args:
        low: Public lower bounds of the features, one number for all or one for each. Values outside
            fall into the first or the last cell.
        high: Upper bounds, likewise.
        cells: How many cells each feature has.
        thresholds: Instead of these: where to cut, one list for all features or one for each.

    Raises:
        ParameterError: A bound is missing or wrong, when cells are asked for.

    Examples:
        >>> Grid(low=0, high=10, cells=5).cuts(1)[0].tolist()
        [2.0, 4.0, 6.0, 8.0]
        >>> [cut.tolist() for cut in Grid(thresholds=[[1, 2], []]).cuts(2)]
        [[1.0, 2.0], []]
    """

    low: Bound = None
    high: Bound = None
    cells: int = 16
    thresholds: Thresholds = None

    def cuts(self, features: int) -> list[NDArray[np.float64]]:
        """Return the thresholds of every feature, ascending.

        A cell is low ≤ x < high; the first and the last are open.
        """
        if self.thresholds is not None:
            return self._read_thresholds(self.thresholds, features)
        low, high = self._bound("low", self.low, features), self._bound("high", self.high, features)
        if not (low < high).all():
            raise ParameterError(
                "high",
                self.high,
                "it must be above low for every feature",
                "For example 0 and 100.",
            )
        cells = whole("cells", self.cells, least=2)
        if cells > MOST_CELLS:
            raise ParameterError(
                "cells", self.cells, f"it must be at most {MOST_CELLS}", "For example 16."
            )
        with np.errstate(over="ignore"):
            if not np.isfinite(high - low).all():
                raise ParameterError(
                    "high",
                    self.high,
                    "high minus low is too large for a float",
                    "Scale the features.",
                )
        steps = np.arange(1, cells) / cells
        cuts = [
            least + (most - least) * steps
            for least, most in zip(low.tolist(), high.tolist(), strict=True)
        ]
        if not all((np.diff(cut) > 0).all() for cut in cuts):
            raise ParameterError(
                "cells",
                self.cells,
                "there are too few floats between low and high",
                "Use fewer cells.",
            )
        return cuts

    def _bound(self, name: str, value: Bound, features: int) -> NDArray[np.float64]:
        if value is None:
            raise ParameterError.required(
                name, "every feature needs a public bound. Do not compute it from the "
                "data: that would release one person's extreme values",
                "Give low and high, one number for all features or one for each, or thresholds if "
                "the class takes them.",
            )  # fmt: skip
        try:
            bound = np.asarray(value, np.float64)
        except (TypeError, ValueError):
            bound = np.asarray(np.nan)
        if bound.shape not in ((), (features,)) or not np.isfinite(bound).all():
            raise ParameterError(
                name,
                value,
                f"it must be a finite number, or one for each of the {features} features",
                "For example 0.",
            )
        return np.broadcast_to(bound, (features,))

    def _read_thresholds(self, thresholds: _Thresholds, features: int) -> list[NDArray[np.float64]]:
        if self.low is not None or self.high is not None:
            raise ParameterError(
                "thresholds", "given", "low and high are given, too", "Give one or the other."
            )
        allowed = (
            "it must be a list of ascending finite numbers for all features, or such a list for "
            "each of the "
            f"{features} features"
        )
        if isinstance(thresholds, (Mapping, Set)):
            raise ParameterError("thresholds", thresholds, allowed, "For example [0.5].")
        try:
            listed: list[Any] = list(thresholds)
            nested = bool(listed) and all(isinstance(one, (Sequence, np.ndarray)) for one in listed)
            cuts = [
                np.array(one, np.float64) for one in (listed if nested else [listed] * features)
            ]
        except (TypeError, ValueError):
            raise ParameterError("thresholds", thresholds, allowed, "For example [0.5].") from None
        good = all(one.ndim == 1 and one.size < MOST_CELLS for one in cuts)
        if len(cuts) != features or not good or not all(_ascending(one) for one in cuts):
            raise ParameterError("thresholds", thresholds, allowed, "For example [0.5].")
        return cuts


Class = TypeVar("Class")


def bind_bounds(hypotheses: Class, names: Sequence[str]) -> Class:
    """Return a class with a bound for each column out of bounds by the names of columns.

    Args:
        hypotheses: Any class; those without such bounds are returned as they are.
        names: Of the columns of the data, in order; none where they have no names.

    Raises:
        ParameterError: There are no names, a column has no bound, or a bound no column.

    Examples:
        >>> from privmax.learning import Stumps
        >>> bind_bounds(Stumps(low={"age": 17, "tax": 0}, high=99), ["tax", "age"]).low
        [0, 17]
    """
    bounds = {name: getattr(hypotheses, name, None) for name in ("low", "high", "thresholds")}
    named = {name: by for name, by in bounds.items() if isinstance(by, Mapping)}
    if not named:
        return hypotheses
    made = copy(hypotheses)
    vars(made).update({name: _bind(name, by, names) for name, by in named.items()})
    return made


def _bind(option: str, by: Mapping[str, Any], names: Sequence[str]) -> list[Any]:
    if not names:
        raise ParameterError(
            option, by, "it names columns, and the columns of X have no names", "Give a frame."
        )
    for name in by:
        if name not in names:
            raise column_error(option, name, list(names), "frame")
    for name in names:
        if name not in by:
            raise ParameterError.required(
                option, f"the column {name} has no such bound, which must be public and never "
                "computed from the data",
                f"Add one for {name}, or leave the column out of X.",
            )  # fmt: skip
    return [by[name] for name in names]


def cells_of(values: NDArray[Any], cut: NDArray[np.float64]) -> NDArray[np.intp]:
    """Return the cell of every value of one feature: how many thresholds are at or below it.

    Examples:
        >>> cells_of(np.array([0.5, 1, 7]), np.array([1.0, 2.0])).tolist()
        [0, 1, 2]
    """
    return np.searchsorted(cut, as_numbers(values), side="right")


def as_numbers(values: NDArray[Any]) -> NDArray[np.float64]:
    """Values as numbers. NumPy's own error would quote what is none.

    Raises:
        DataError: A value is not a number.

    Examples:
        >>> as_numbers(np.array([1, "2"], dtype=object)).tolist()
        [1.0, 2.0]
    """
    try:
        return values.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        pass
    # out here, where NumPy's error is no longer attached to it as its context
    raise DataError("X has a value that is not a number. Convert dates and text to numbers first.")


def _ascending(cut: NDArray[np.float64]) -> bool:
    return bool(np.isfinite(cut).all() and (np.diff(cut) > 0).all())
