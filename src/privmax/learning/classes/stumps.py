"""Decision stumps: one feature against one public threshold.

What a stump gets right follows from the rows of each label below its threshold: one histogram
of every feature.

Proof:      docs/proofs/trees.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import ParameterError
from privmax.learning.classes.contract import Codes, Counts, Shape, Tunable
from privmax.learning.classes.grid import Bound, Grid, Thresholds, as_numbers, cells_of
from privmax.learning.schema import Schema
from privmax.learning.splits import CellSplit, Splits, splits_of

Ints = NDArray[np.int64]
Cuts = list[NDArray[np.float64] | Splits]
"""The thresholds of every feature, or the tests of every column of a schema. Those of all features
are numbered one after another.
"""
Threshold = float | CellSplit
"""A number to compare a feature with, or a test of a column of a schema."""

_ENTRIES = 1 << 20
"""Entries of X turned over at a time: few enough to stay near the processor while each feature is
read.
"""

_FEW = 48
"""Up to so many thresholds a value is compared with each, which is faster than to search among
them.
"""


@dataclass(frozen=True, kw_only=True, repr=False)
class Stumps(Tunable):
    """Every label alone, and every test of a feature with two different labels.

    For every feature, threshold t and labels a ≠ b: a where the feature is below t, else b.

    Args:
        low: Public lower bounds of the features, one number for all or one for each. Values outside
            fall into the first or the last cell.
        high: Upper bounds, likewise.
        cells: How many equal cells each feature has between them.
        thresholds: Instead of these: where to cut, one list for all features or one for each (some
            may be empty).
        schema: Instead of all these: the columns with their cells. Rows are `schema.codes(X).T`
            then, as `PrivateERM` makes them; names are compared for equality.

    Examples:
        >>> import numpy as np
        >>> X, y = np.array([[1.0], [2.0], [6.0], [8.0]]), np.array([0, 0, 1, 1])
        >>> shape, stumps = Shape(features=1, labels=2), Stumps(low=0, high=10, cells=2)
        >>> stumps.size(shape), stumps.score(X, y, shape).maximum()
        (4, 4)
        >>> stumps.hypothesis(2, shape)
        <1 if x0 >= 5.0 else 0>
    """

    low: Bound = None
    high: Bound = None
    cells: int = 16
    thresholds: Thresholds = None
    schema: Schema | None = None

    def size(self, shape: Shape) -> int:
        return stump_count(sum(map(len, self._cuts(shape))), shape.labels)

    def score(self, X: NDArray[Any], y: Codes, shape: Shape) -> Counts:
        return Counts(stump_scores(*_counts(X, y, self._cuts(shape), shape.labels)))

    def hypothesis(self, number: int, shape: Shape) -> Constant | Stump:
        return find_stump(number, self._cuts(shape), shape.labels)

    def _cuts(self, shape: Shape) -> Cuts:
        return public_cuts(self, shape.features)


@dataclass(frozen=True, repr=False)
class Constant:
    """The same label for every row.

    Examples:
        >>> Constant(1).predict(np.zeros((2, 3))).tolist()
        [1, 1]
    """

    label: int

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        return f"{self.label}"

    def predict(self, X: NDArray[Any]) -> Codes:
        return np.full(len(X), self.label, np.intp)


@dataclass(frozen=True, repr=False)
class Stump:
    """One label where a feature is below a threshold, another where it is not.

    Examples:
        >>> rule = Stump(feature=0, threshold=5.0, below=0, above=1)
        >>> rule, rule.predict(np.array([[4.0], [5.0]])).tolist()
        (<1 if x0 >= 5.0 else 0>, [0, 1])
    """

    feature: int
    threshold: Threshold
    below: int
    above: int

    def __repr__(self) -> str:
        return f"<{self.rule()}>"

    def rule(self) -> str:
        """Return the rule in words."""
        return f"{self.above} if {name_cut(self.feature, self.threshold)} else {self.below}"

    def predict(self, X: NDArray[Any]) -> Codes:
        return np.where(is_below(X, self.feature, self.threshold), self.below, self.above).astype(
            np.intp, copy=False
        )


def public_cuts(hypotheses: Any, features: int) -> Cuts:
    """Return the thresholds of a class, or the tests of its schema.

    Without a schema they follow from its low, high, cells and thresholds.

    Examples:
        >>> [cut.tolist() for cut in public_cuts(Stumps(low=0, high=9, cells=3), 1)]
        [[3.0, 6.0]]
    """
    if hypotheses.schema is None:
        return [
            *Grid(hypotheses.low, hypotheses.high, hypotheses.cells, hypotheses.thresholds).cuts(
                features
            )
        ]
    check_schema(hypotheses)
    if hypotheses.schema.features != features:
        raise ParameterError(
            "schema",
            f"of {hypotheses.schema.features} columns",
            f"the data have {features}",
            "Give a column for each.",
        )
    return [*splits_of(hypotheses.schema)]


def check_schema(hypotheses: Any) -> None:
    """Refuse bounds beside a schema, which has its own.

    Examples:
        >>> check_schema(Stumps(low=0, high=9))
    """
    if getattr(hypotheses, "schema", None) is None:
        return
    if not isinstance(hypotheses.schema, Schema):
        raise ParameterError(
            "schema",
            f"<{type(hypotheses.schema).__name__}>",
            "it must be a Schema",
            "For example Schema(age=Number(17, 90)).",
        )
    default = {"low": None, "high": None, "thresholds": None}
    default["cells"] = getattr(type(hypotheses), "cells", None)
    for name, value in default.items():
        if getattr(hypotheses, name, value) is not value and getattr(hypotheses, name) != value:
            raise ParameterError(
                name,
                getattr(hypotheses, name),
                "the schema already sets it for every column",
                "Leave it out.",
            )


def name_cut(feature: int, threshold: Threshold, *, below: bool = False) -> str:
    """Return a test in words: at or above a threshold, or below it.

    Examples:
        >>> name_cut(0, 5.0), name_cut(0, 5.0, below=True)
        ('x0 >= 5.0', 'x0 < 5.0')
    """
    if isinstance(threshold, CellSplit):
        return threshold.rule(below=below)
    return f"x{feature} {'<' if below else '>='} {threshold}"


def is_below(X: NDArray[Any], feature: int, threshold: Threshold) -> NDArray[np.bool_]:
    """Return which rows are below a threshold, or do not pass a test of a schema.

    As everywhere here, values are compared as 64-bit floats; NaN is below none.

    Examples:
        >>> is_below(np.array([[1.0], [np.nan]]), 0, 5.0).tolist()
        [True, False]
    """
    if isinstance(threshold, CellSplit):
        return ~threshold.passes(X[:, feature])
    return np.less(as_numbers(X[:, feature]), threshold)


def stump_count(cuts: int, labels: int) -> int:
    """Return how many stumps so many thresholds make, constants included.

    Examples:
        >>> stump_count(cuts=3, labels=2)
        8
    """
    return labels + labels * (labels - 1) * cuts


def stump_scores(below: Ints, total: Ints) -> Ints:
    """Return what every stump gets right, by number.

    The constants come first, then for every pair of labels the thresholds.

    Args:
        below: [label, threshold] rows of this label below this threshold.
        total: [label] rows of this label.

    Examples:
        >>> stump_scores(np.array([[2], [0]]), np.array([2, 3])).tolist()
        [2, 3, 5, 0]
    """
    first, second = np.nonzero(~np.eye(len(total), dtype=np.bool_))
    above = total[:, None] - below
    return np.concatenate([total, (below[first] + above[second]).ravel()])


def find_stump(number: int, cuts: Cuts, labels: int) -> Constant | Stump:
    """Return the stump whose score has this place in `stump_scores`.

    Examples:
        >>> find_stump(2, [np.array([5.0])], labels=2)
        <1 if x0 >= 5.0 else 0>
    """
    if number < labels:
        return Constant(number)
    pair, cut = divmod(number - labels, sum(map(len, cuts)))
    first, second = divmod(pair, labels - 1)
    return Stump(*find_cut(cut, cuts), first, second + (second >= first))


def find_cut(cut: int, cuts: Cuts) -> tuple[int, Threshold]:
    """Return the feature and the threshold that have this number among those of all features.

    Examples:
        >>> find_cut(1, [np.array([5.0]), np.array([7.0])])
        (1, 7.0)
    """
    for feature, thresholds in enumerate(cuts):
        if cut < len(thresholds):
            threshold = thresholds[cut]
            return feature, threshold if isinstance(threshold, CellSplit) else float(threshold)
        cut -= len(thresholds)
    raise IndexError("there are fewer thresholds")


def _counts(X: NDArray[Any], y: Codes, cuts: Cuts, labels: int) -> tuple[Ints, Ints]:
    """Return the two arguments of `stump_scores`."""
    cells = [np.zeros(_cell_count(thresholds) * labels, np.int64) for thresholds in cuts]
    rows = max(1, _ENTRIES // max(1, len(cuts)))
    for start in range(0, len(X), rows):
        turned = np.ascontiguousarray(X[start : start + rows].T)
        codes = y[start : start + rows]
        for feature, thresholds in enumerate(cuts):
            if len(thresholds):
                places = _cells(turned[feature], thresholds) * labels + codes
                cells[feature] += np.bincount(places, minlength=len(cells[feature]))
    below = [
        thresholds.failures(counts.reshape(-1, labels))
        if isinstance(thresholds, Splits)
        else np.cumsum(counts.reshape(-1, labels), axis=0)[:-1].T
        for thresholds, counts in zip(cuts, cells, strict=True)
    ]
    total = np.bincount(y, minlength=labels).astype(np.int64, copy=False)
    return np.concatenate([np.empty((labels, 0), np.int64), *below], axis=1), total


def _cell_count(thresholds: NDArray[np.float64] | Splits) -> int:
    return thresholds.column.cells if isinstance(thresholds, Splits) else len(thresholds) + 1


def _cells(values: NDArray[Any], thresholds: NDArray[np.float64] | Splits) -> NDArray[np.intp]:
    """As `cells_of`; with a schema values are cells already."""
    if isinstance(thresholds, Splits):
        return values.astype(np.intp)
    if len(thresholds) > _FEW:
        return cells_of(values, thresholds)
    values = as_numbers(values)
    over = np.zeros(len(values), np.uint8)
    for threshold in thresholds:
        over += values < threshold
    return len(thresholds) - over.astype(np.intp)
