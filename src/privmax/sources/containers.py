"""Labels and scores out of whatever holds them: a mapping, a list, NumPy, pandas, polars, Arrow.

No engine is imported here: an object can only be a pandas one if pandas is already loaded. No message quotes a score or
a label; names of columns are public.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privmax.errors import DataError, ParameterError
from privmax.profile import Profile

Labels = Sequence[Any] | None
"""A label by position; None: the labels are the positions."""


def read(data: object, item: str | None, score: str | None) -> tuple[Labels, Any]:
    """(labels, scores) of `data`: the scores a NumPy array, or a list of Python numbers."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        item, score = _named(list(data.columns), item, score)
        labels = data[item]
        return _labels(_Labels(labels.iloc), labels.is_unique, labels.isna().any()), _pandas_scores(data[score])
    if polars is not None and isinstance(data, polars.DataFrame):
        item, score = _named(data.columns, item, score)
        column = data[item]
        unique = column.n_unique() == len(column)
        return _labels(_Labels(column), unique, column.null_count() > 0), _polars_scores(data[score])
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        item, score = _named(data.schema.names, item, score)
        column = data.column(item)
        unique = len(column.unique()) == len(column)
        return _labels(_Labels(column), unique, column.null_count > 0), _arrow_scores(data.column(score))
    for name, value in (("item", item), ("score", score)):
        if value is not None:
            raise ParameterError(name, value, "it names a column, and this data is not a table", "Leave it out.")
    if isinstance(data, Mapping):
        return _labels(list(data), True, None in data), list(data.values())
    if pandas is not None and isinstance(data, pandas.Series):
        index = data.index
        return _labels(_Labels(index), index.is_unique, index.isna().any()), _pandas_scores(data)
    if polars is not None and isinstance(data, polars.Series):
        return None, _polars_scores(data)
    if arrow is not None and isinstance(data, (arrow.Array, arrow.ChunkedArray)):
        return None, _arrow_scores(data)
    if isinstance(data, np.ndarray):
        return None, _array_scores(data)
    if isinstance(data, (list, tuple)):
        return None, list(data)
    if isinstance(data, Profile):
        raise ParameterError(
            "data", data, "a profile has no labels to release", "Call mechanism.draw(profile, coins), or law()."
        )
    raise DataError(
        f"Scores cannot be read from {type(data).__name__}. Give a mapping from label to score, a list, a "
        "one-dimensional NumPy array, or a pandas, polars or Arrow object."
    )


def plain_label(label: Any) -> Any:
    """A label as an ordinary Python object, whatever library it comes from."""
    if hasattr(label, "as_py"):
        return label.as_py()
    return label.item() if isinstance(label, np.generic) else label


class _Labels(Sequence[Any]):
    """A column of labels that come out as Python objects, one at a time: a release needs one of them."""

    def __init__(self, column: Any) -> None:
        self._column = column

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: Any) -> Any:
        return plain_label(self._column[index])


def _named(names: Sequence[Any], item: str | None, score: str | None) -> tuple[str, str]:
    """The two columns asked for, each known to be there exactly once."""
    chosen = []
    for option, name in (("item", item), ("score", score)):
        if name is None:
            raise ParameterError(option, name, "a table needs it", f"Name one of its columns: {list(names)}.")
        if name not in names:
            raise ParameterError(option, name, "the table has no such column", f"It has {list(names)}.")
        if list(names).count(name) > 1:
            raise ParameterError(option, name, "the table has several columns of that name", "Rename all but one.")
        chosen.append(name)
    return chosen[0], chosen[1]


def _labels(labels: Any, unique: bool, missing: bool) -> Any:
    if missing:
        raise DataError("A label is missing. Drop such candidates: no label means no answer.")
    if not unique:
        raise DataError("A label occurs more than once. Add up or deduplicate its scores before selecting.")
    return labels


def _no_missing(missing: Any) -> None:
    if missing:
        raise DataError("A score is missing. Drop such candidates, or give them a score.")


def _pandas_scores(column: Any) -> Any:
    _no_missing(column.isna().any())
    return column.to_numpy()


def _polars_scores(column: Any) -> Any:
    _no_missing(column.null_count())
    polars = sys.modules["polars"]
    return column.to_list() if column.dtype in (polars.Int128, polars.Null) else column.to_numpy()


def _arrow_scores(column: Any) -> Any:
    _no_missing(column.null_count)
    return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)


def _array_scores(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim != 1:
        raise DataError(f"The array of scores has {array.ndim} dimensions; it must have one.")
    _no_missing(isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array))
    return np.asarray(array)
