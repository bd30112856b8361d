"""Labels and scores out of whatever holds them: a mapping, a list, NumPy, pandas, polars, Arrow.

No engine is imported here: an object can only be a pandas one if pandas is already loaded. No
message quotes a score or a label; names of columns are public.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from privmax.errors import DataError, ParameterError, column_error
from privmax.labels import UNKNOWN, is_unknown, label_by_value, plain_label, read_label
from privmax.profile import Profile

__all__ = ["Labels", "plain_label", "read"]

Labels = Sequence[Any] | None
"""A label by position; None: the labels are the positions."""


def read(data: object, item: str | None, score: str | None) -> tuple[Labels, Any]:
    """(labels, scores) of `data`: the scores a NumPy array, or a list of Python numbers."""
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if pandas is not None and isinstance(data, pandas.DataFrame):
        item, score = _find_columns(list(data.columns), item, score)
        return _pandas_labels(data[item], data[item].iloc), _pandas_scores(data[score])
    if polars is not None and isinstance(data, polars.DataFrame):
        item, score = _find_columns(data.columns, item, score)
        return _polars_labels(data[item]), _polars_scores(data[score])
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        item, score = _find_columns(data.schema.names, item, score)
        return _arrow_labels(data.column(item)), _arrow_scores(data.column(score))
    for name, value in (("item", item), ("score", score)):
        if value is not None:
            raise ParameterError(
                name, value, "it names a column, but this data is not a table", "Leave it out."
            )
    if isinstance(data, Mapping):
        return _any_labels(list(data)), list(data.values())
    if pandas is not None and isinstance(data, pandas.Series):
        return _pandas_labels(data.index, data.index), _pandas_scores(data)
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
            "data",
            data,
            "a profile has no labels to release",
            "Call mechanism.draw(profile, coins), or law().",
        )
    raise DataError(
        f"Scores cannot be read from {type(data).__name__}. Give a mapping from label to score, a "
        f"list, a "
        "one-dimensional NumPy array, or a pandas, polars or Arrow object."
    )


class _Labels(Sequence[Any]):
    """A column of labels that come out in their canonical form, one at a time: a release needs one
    of them.
    """

    def __init__(self, column: Any, form: Callable[[Any], Any]) -> None:
        self._column = column
        self._form = form

    def __len__(self) -> int:
        return len(self._column)

    def __getitem__(self, index: Any) -> Any:
        return self._form(self._column[index])


def _find_columns(names: Sequence[Any], item: str | None, score: str | None) -> tuple[str, str]:
    """The two columns asked for, each known to be there exactly once."""
    chosen = []
    for option, name in (("item", item), ("score", score)):
        if name is None or name not in names:
            raise column_error(option, name, list(names), "table")
        if list(names).count(name) > 1:
            raise ParameterError(
                option, name, "the table has several columns of that name", "Rename all but one."
            )
        chosen.append(name)
    return chosen[0], chosen[1]


_SURE = {str, int, bytes}
"""Types of labels of which none is missing, and which are equal only if they are the same."""


def _any_labels(labels: Sequence[Any]) -> Sequence[Any]:
    """Labels of types that may be mixed, by what they are worth to Python."""
    if set(map(type, labels)) <= _SURE:
        return _check_labels(_Labels(labels, label_by_value), False, len(set(labels)) < len(labels))
    labels = list(map(read_label, labels))
    if any(map(is_unknown, labels)):
        raise DataError(UNKNOWN)
    return _check_labels(
        labels, any(label is None for label in labels), len(set(labels)) < len(labels)
    )


def _pandas_labels(column: Any, places: Any) -> Sequence[Any]:
    """A column or an index. What type pandas gave its numbers may have followed from everybody's
    rows.
    """
    kind = getattr(column.dtype, "kind", "O")
    if column.dtype == object or hasattr(
        column.dtype, "categories"
    ):  # an index of several levels, too
        return _any_labels(list(column))
    if is_strange(column.dtype):
        raise DataError(UNKNOWN)
    missing = column.isna().any() or (kind == "f" and bool((column != column).any()))
    repeated = not (column + 0.0 if kind == "f" else column).is_unique  # to Arrow −0.0 is not 0.0
    return _check_labels(_Labels(places, label_by_value), missing, repeated)


def is_strange(kind: Any) -> bool:
    """Whether a type of a pandas column is of values that are no labels: periods and intervals."""
    return str(kind.name).startswith(("period", "interval"))


def _polars_labels(column: Any) -> Sequence[Any]:
    if column.dtype == sys.modules["polars"].Object:
        return _any_labels(column.to_list())
    missing = column.null_count() > 0 or (column.dtype.is_float() and column.is_nan().any())
    return _check_labels(_Labels(column, plain_label), missing, column.n_unique() < len(column))


def _arrow_labels(column: Any) -> Sequence[Any]:
    arrow = sys.modules["pyarrow"]
    missing, distinct = column.null_count > 0, column
    if arrow.types.is_floating(column.type):
        from pyarrow import compute

        missing = missing or bool(compute.any(compute.is_nan(column)).as_py())
        distinct = compute.add(column, arrow.scalar(0.0, column.type))  # to Arrow −0.0 is not 0.0
    return _check_labels(
        _Labels(column, plain_label), missing, len(distinct.unique()) < len(column)
    )


def _check_labels(labels: Sequence[Any], missing: bool, repeated: bool) -> Sequence[Any]:
    if missing:
        raise DataError("A label is missing. Drop such candidates: no label means no answer.")
    if repeated:
        raise DataError(
            "A label occurs more than once. Add up or deduplicate its scores before selecting."
        )
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
    exact = (polars.Int128, polars.Decimal, polars.Null)  # in NumPy they would be rounded
    return column.to_list() if column.dtype in exact else column.to_numpy()


def _arrow_scores(column: Any) -> Any:
    _no_missing(column.null_count)
    return column.to_numpy() if hasattr(column, "chunks") else column.to_numpy(zero_copy_only=False)


def _array_scores(array: np.ndarray[Any, Any]) -> Any:
    if array.ndim != 1:
        raise DataError(f"The array of scores has {array.ndim} dimensions; it must have one.")
    _no_missing(isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array))
    return np.asarray(array)
