"""Scores held in memory: a mapping, a NumPy array, a list, or a pandas, polars or Arrow object.

No engine is imported here: an object can only be a pandas one if pandas is already loaded.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Hashable, Mapping, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np

from privmax.errors import DataError, ParameterError
from privmax.mechanisms.base import Outcome
from privmax.privacy import Number, positive, whole
from privmax.profile import Level, Profile
from privmax.sources.columns import BigIntegerColumn, Column, FloatColumn, IntegerColumn

OPEN = "open"
GRID_STEPS = 64
"""Default resolution of float scores: this many grid steps to one `sensitivity`."""

Universe = int | str | Collection[Hashable]


class MemorySource:
    """Labels and scores side by side, and the public facts about them.

    universe      "open" (the default everywhere), a size, or the collection of all labels
    sensitivity   by how much one individual can move a score (default 1; floats have no default)
    resolution    floats only: step of the public grid they are put on (default sensitivity / 64)
    """

    def __init__(
        self,
        data: object,
        *,
        universe: Universe = OPEN,
        sensitivity: Number | None = None,
        resolution: Number | None = None,
        item: str | None = None,
        score: str | None = None,
    ) -> None:
        labels, scores = _split(data, item, score)
        labels, scores, self.universe = _within(universe, labels, scores)
        self._labels = labels
        self.integral = not (isinstance(scores, np.ndarray) and scores.dtype.kind == "f")
        self._column, self.step, steps = _column(scores, sensitivity, resolution)
        self.profile = Profile(self, universe=self.universe, sensitivity=steps)

    def __repr__(self) -> str:
        return "MemorySource(<private>)"

    def listed(self) -> int:
        return len(self._column)

    def maximum(self) -> int | None:
        return self._column.maximum() if len(self._column) else None

    def histogram(self, above: int) -> Sequence[Level]:
        return self._column.histogram(above) if len(self._column) else []

    def item(self, outcome: Outcome) -> Any:
        """The label an outcome stands for; None for no answer and for a candidate that was never listed."""
        if outcome.score is None:
            return None
        find = self._column.at_or_below if outcome.below else self._column.at
        position = find(outcome.score, outcome.index) if len(self._column) else None
        return None if position is None else self.label(position)

    def label(self, position: int) -> Any:
        """The label at a position; the position itself where there are no labels."""
        if self._labels is None:
            return position
        label = self._labels[position]
        return label.as_py() if hasattr(label, "as_py") else label

    def scores(self) -> list[tuple[Any, int]]:
        """Every label with its score on the grid, for laws on public data."""
        return [(self.label(position), score) for position, score in enumerate(self._column.scores())]


def _loaded(name: str) -> ModuleType | None:
    return sys.modules.get(name)


def _split(data: object, item: str | None, score: str | None) -> tuple[Any, Any]:
    """(labels or None, scores): scores an array, or a list of Python numbers."""
    pandas, polars, arrow = _loaded("pandas"), _loaded("polars"), _loaded("pyarrow")
    frame = (
        (pandas is not None and isinstance(data, pandas.DataFrame))
        or (polars is not None and isinstance(data, polars.DataFrame))
        or (arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)))
    )
    if frame:
        return _frame(data, item, score)
    for name, value in (("item", item), ("score", score)):
        if value is not None:
            raise ParameterError(name, value, "it names a column of a table, and the data has none")
    if isinstance(data, Mapping):
        return list(data.keys()), list(data.values())
    if isinstance(data, Profile):
        raise ParameterError(
            "data", data, "a profile has no labels to release", "Call mechanism.draw(profile, coins) or law()."
        )
    if pandas is not None and isinstance(data, pandas.Series):
        if not data.index.is_unique:
            raise _duplicates()
        return data.index, _values(data)
    if isinstance(data, np.ndarray):
        if data.ndim != 1:
            raise DataError(f"The array of scores has {data.ndim} dimensions; it must have one.")
        return None, data
    if (polars is not None and isinstance(data, polars.Series)) or (
        arrow is not None and isinstance(data, (arrow.Array, arrow.ChunkedArray))
    ):
        return None, _values(data)
    if isinstance(data, (list, tuple)):
        return None, list(data)
    raise DataError(
        f"Scores cannot be read from {type(data).__name__}. Give a mapping from label to score, a one-dimensional "
        "NumPy array, a list, or a pandas, polars or Arrow object."
    )


def _frame(data: Any, item: str | None, score: str | None) -> tuple[Any, Any]:
    names = list(data.column_names if hasattr(data, "column_names") else data.columns)
    for name, value in (("item", item), ("score", score)):
        if value is None:
            raise ParameterError(name, value, "a table needs it", f"Name one of its columns: {names}.")
        if value not in names:
            raise ParameterError(name, value, f"the table has no such column, only {names}")
    labels, scores = data[item], _values(data[score])
    if hasattr(labels, "is_unique") and not callable(labels.is_unique):  # pandas
        unique, missing = labels.is_unique, labels.isna().any()
        labels = labels.array
    elif hasattr(labels, "n_unique"):  # polars
        unique, missing = labels.n_unique() == len(labels), labels.null_count() > 0
    else:  # Arrow
        unique, missing = len(labels.unique()) == len(labels), labels.null_count > 0
    if missing:
        raise DataError(f"Column {item!r} has missing labels. Drop those rows before selecting.")
    if not unique:
        raise _duplicates()
    return labels, scores


def _values(column: Any) -> Any:
    """The scores of a pandas, polars or Arrow column as an array, refusing missing ones."""
    missing = column.isna().any() if hasattr(column, "isna") else column.null_count
    if missing() if callable(missing) else missing:
        raise DataError("A score is missing. Drop those candidates, or give them a score.")
    if hasattr(column, "to_pylist") and not hasattr(column, "chunks"):
        return column.to_numpy(zero_copy_only=False)
    return column.to_numpy()


def _duplicates() -> DataError:
    return DataError("A label occurs more than once. Add up or deduplicate its scores before selecting.")


def _within(universe: Universe, labels: Any, scores: Any) -> tuple[Any, Any, int | None]:
    """Labels and scores with the declared universe applied, and its size (None: open)."""
    if isinstance(universe, str):
        if universe != OPEN:
            raise ParameterError("universe", universe, 'it must be "open", a size, or a collection of labels')
        return labels, scores, None
    if isinstance(universe, (int, np.integer)):
        return labels, scores, whole("universe", universe if isinstance(universe, bool) else int(universe))
    everyone = dict.fromkeys(universe)
    if len(everyone) != len(universe):
        raise ParameterError("universe", "<labels>", "a label occurs in it more than once")
    known = range(len(scores)) if labels is None else (x.as_py() if hasattr(x, "as_py") else x for x in labels)
    listed = dict(zip(known, scores, strict=True))
    if not listed.keys() <= everyone.keys():
        raise DataError("A label with a score is not in the declared universe. Declare every candidate, or drop it.")
    full = {label: listed.get(label, 0) for label in everyone}
    return list(full.keys()), list(full.values()), len(everyone)


def _column(scores: Any, sensitivity: Number | None, resolution: Number | None) -> tuple[Column, Fraction, int]:
    """The column, the score units one grid step is worth, and the sensitivity in grid steps."""
    values = _numbers(scores)
    if isinstance(values, np.ndarray) and values.dtype.kind == "f":
        if sensitivity is None:
            raise ParameterError(
                "sensitivity", None, "float scores need it: how far one individual can move a score",
                "For counts, pass integers instead.",
            )  # fmt: skip
        spread = positive("sensitivity", sensitivity)
        step = spread / GRID_STEPS if resolution is None else positive("resolution", resolution)
        return FloatColumn(values, step), step, math.ceil(spread / step)
    if resolution is not None:
        raise ParameterError("resolution", resolution, "it is for float scores, and these are integers")
    steps = math.ceil(positive("sensitivity", 1 if sensitivity is None else sensitivity))
    column = IntegerColumn(values) if isinstance(values, np.ndarray) else BigIntegerColumn(values)
    return column, Fraction(1), steps


def _numbers(scores: Any) -> Any:
    """An integer or float array, or a list of Python integers too large for one."""
    if isinstance(scores, np.ndarray) and scores.dtype.kind in "iuf":
        if scores.dtype.kind == "f" and scores.dtype.itemsize > 8:
            raise DataError("Scores are of an extended float type; use float64 or integers.")
        return scores
    if isinstance(scores, np.ndarray) and scores.dtype != object:
        raise _wrong_type(str(scores.dtype))
    values: list[Any] = list(scores)
    kinds = set(map(type, values))
    for kind in kinds:
        if issubclass(kind, (bool, np.bool_)) or not issubclass(kind, (int, float, np.integer, np.floating)):
            raise _wrong_type(kind.__name__)
    if all(issubclass(kind, (int, np.integer)) for kind in kinds):
        try:
            return np.fromiter(values, np.int64, len(values))
        except OverflowError:
            return [int(value) for value in values]
    floats = [float(value) for value in values]
    whole_numbers = (
        (value, number)
        for value, number in zip(values, floats, strict=True)
        if not isinstance(value, (float, np.floating))
    )
    if any(int(number) != value for value, number in whole_numbers):
        raise DataError("Scores mix floats with integers too large for a float. Use one type.")
    return np.array(floats)


def _wrong_type(kind: str) -> DataError:
    return DataError(f"A score is of type {kind}. Scores must be integers or finite floats.")
