"""Columns of frames, arrays and sparse matrices, one at a time, with their declared types.

Which values a column has is private. Its name and its type are not, so they alone decide what is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, column_error
from privmax.sources.containers import column_of
from privmax.sources.containers.arrays import read_array, unmask
from privmax.sources.table import MIXED, Values, to_objects


def is_frame(X: object) -> bool:
    """Return whether its columns have names.

    Examples:
        >>> is_frame([[1, 2]])
        False
    """
    return hasattr(X, "columns")


def frame_names(X: Any) -> list[Any]:
    """Return the names of a frame's columns, which are public.

    Examples:
        >>> import pandas as pd
        >>> frame_names(pd.DataFrame({"age": [41]}))
        ['age']
    """
    return list(X.column_names if hasattr(X, "column_names") else X.columns)


def column_kinds(X: Any) -> Iterator[tuple[Any, str]]:
    """The name of each column of a frame, and what its type says it holds. No row is looked at.

    Examples:
        >>> import pandas as pd
        >>> list(column_kinds(pd.DataFrame({"age": [41], "born": pd.to_datetime(["1985-01-01"])})))
        [('age', 'numbers'), ('born', 'moments')]
    """
    empty = X.slice(0, 0) if hasattr(X, "slice") else X.iloc[:0]
    for place, name in enumerate(frame_names(X)):
        if hasattr(empty, "iloc"):
            column = empty.iloc[:, place]
        else:
            column = empty.to_series(place) if hasattr(empty, "to_series") else empty.column(place)
        yield name, read_column(column).kind


def column_kind(values: Any) -> str:
    """Return what one column has, by its type. No value is looked at; a list may hold anything.

    Examples:
        >>> column_kind(np.array(["tea"])), column_kind(["tea"])
        ('text', 'mixed')
    """
    if hasattr(values, "slice") or hasattr(values, "iloc"):
        values = values.slice(0, 0) if hasattr(values, "slice") else values.iloc[:0]
    known = isinstance(values, np.ndarray) or hasattr(values, "dtype") or hasattr(values, "type")
    if not known or getattr(values, "ndim", 1) != 1:
        return MIXED
    return read_column(values[:0]).kind


def find_columns(X: Any, names: Sequence[str]) -> Iterator[Values]:
    """Find the columns with these names, in this order.

    Of arrays, lists and sparse matrices all columns are found, by position.

    Args:
        X: A frame of pandas, polars or Arrow, an array, a list of rows, or a sparse matrix of
            SciPy.
        names: Of the columns; a frame may have others, too.

    Raises:
        ParameterError: A frame has no such column.
        DataError: It has two, or an array has another number of columns.

    Examples:
        >>> next(find_columns(np.array([[1.5], [2.5]]), ["age"])).values.tolist()
        [1.5, 2.5]
    """
    if hasattr(X, "collect_schema") and hasattr(X, "collect"):
        raise DataError("X is a lazy frame. Give X.collect().")
    if is_frame(X):
        known = frame_names(X)
        for name in names:
            if known.count(name) > 1:
                raise DataError(f"X has two columns with the name {name!r}. Rename one.")
            if name not in known:
                raise column_error("schema", name, known, "frame")
        return (read_column(X[name]) for name in names)
    sparse = hasattr(X, "tocsc") and hasattr(X, "nnz") and X.ndim == 2
    table = X.tocsc() if sparse else _table(X)
    if table.ndim != 2 or table.shape[1] != len(names):
        raise DataError(
            f"X must be a table with {len(names)} columns, as many as the schema has. Give a frame "
            "to take columns by name."
        )
    take = _sparse_column if sparse else _array_column
    return (take(table, place) for place in range(len(names)))


def read_column(values: Any) -> Values:
    """One column: a NumPy array, a list, a Series of pandas or polars, an array of Arrow.

    Examples:
        >>> read_column(["tea", None]).kind, read_column([1, 2]).kind
        ('mixed', 'mixed')
        >>> read_column(np.array([1, 2]))
        Values(numbers, <private>)
    """
    if getattr(values, "ndim", 1) != 1:
        raise DataError("A column must have one dimension. Give a column of the table.")
    return column_of(values).read_values()


def _table(X: Any) -> NDArray[Any]:
    """Return an array; lists as objects: one text in a row must not make texts of its numbers."""
    if isinstance(X, (list, tuple)):
        rows = [row for row in X if isinstance(row, (list, tuple)) or _is_row(row)]
        width = len(rows[0]) if rows else 0
        if len(rows) < len(X) or any(len(row) != width for row in rows):
            return np.empty(0)
        table = np.empty((len(rows), width), object)
        for place, row in enumerate(rows):  # one by one, as a value may itself be a list
            table[place] = to_objects(list(row))
        return table
    table = np.asarray(unmask(X) if isinstance(X, np.ndarray) else X)
    if table.dtype.names is not None:
        raise ParameterError(
            "X", "a structured array", "its columns have types of their own", "Give a frame."
        )
    return table


def _is_row(row: object) -> bool:
    return isinstance(row, np.ndarray) and row.ndim > 0


def _array_column(table: NDArray[Any], place: int) -> Values:
    return read_array(table[:, place])


def _sparse_column(table: Any, place: int) -> Values:
    return read_array(table[:, [place]].toarray().ravel())
