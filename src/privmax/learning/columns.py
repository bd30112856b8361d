"""Columns of frames, arrays and sparse matrices, one at a time, each with what its type says it
holds.

Which values a column holds is private. Its name and its type are not, so they alone decide what is
refused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, column_error

NUMBERS, TEXT, MIXED, OTHER = "numbers", "text", "mixed", "other"
"""What a type says of a column. Mixed ones may hold anything, value by value."""


@dataclass(frozen=True, repr=False)
class Column:
    """One column of private data.

    kind     NUMBERS, TEXT, MIXED or OTHER
    values   booleans, whole numbers or floats of NumPy where the kind is NUMBERS, else objects
    """

    kind: str
    values: NDArray[Any]

    def __repr__(self) -> str:
        return f"Column({self.kind}, <private>)"


def is_frame(X: object) -> bool:
    """Whether its columns have names.

    Examples:
        >>> is_frame([[1, 2]])
        False
    """
    return hasattr(X, "columns")


def frame_names(X: Any) -> list[Any]:
    """The names of a frame's columns, which are public.

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
        [('age', 'numbers'), ('born', 'other')]
    """
    empty = X.slice(0, 0) if hasattr(X, "slice") else X.iloc[:0]
    for place, name in enumerate(frame_names(X)):
        if hasattr(empty, "iloc"):
            column = empty.iloc[:, place]
        else:
            column = empty.to_series(place) if hasattr(empty, "to_series") else empty.column(place)
        yield name, read_column(column).kind


def column_kind(values: Any) -> str:
    """What the type of one column says it holds. No value is looked at; a list may hold anything.

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


def find_columns(X: Any, names: Sequence[str]) -> Iterator[Column]:
    """The columns with these names, in this order; of arrays, lists and sparse matrices all
    columns, by position.

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


def read_column(values: Any) -> Column:
    """One column: a NumPy array, a list, a Series of pandas or polars, an array of Arrow.

    Examples:
        >>> read_column(["tea", None]).kind, read_column([1, 2]).kind
        ('mixed', 'mixed')
        >>> read_column(np.array([1, 2]))
        Column(numbers, <private>)
    """
    if getattr(values, "ndim", 1) != 1:
        raise DataError("A column must have one dimension. Give a column of the table.")
    if isinstance(values, np.ndarray):
        return _of_array(_unmask(values))
    modules = {kind.__module__.partition(".")[0] for kind in type(values).__mro__}
    if "pyarrow" in modules:
        return _of_arrow(values)
    if "polars" in modules:
        return _of_polars(values)
    if "pandas" in modules:
        return _of_pandas(values)
    return Column(MIXED, _objects(list(values)))


def _unmask(values: NDArray[Any]) -> NDArray[Any]:
    """The array without a mask; what is under one is missing, and whether there is any follows from
    the type.
    """
    if not isinstance(values, np.ma.MaskedArray):
        return values
    masked: Any = values
    if values.dtype.kind == "f":
        return np.asarray(masked.astype(np.float64).filled(np.nan))
    return np.asarray(masked.astype(object).filled(None))


def _of_array(values: NDArray[Any]) -> Column:
    if values.dtype.kind == "f":  # listed numbers are compared as 64-bit floats
        return Column(NUMBERS, values.astype(np.float64, copy=False))
    if values.dtype.kind in "biu":
        return Column(NUMBERS, values)
    if values.dtype.kind in "UT":
        return Column(TEXT, values.astype(object))
    return Column(MIXED if values.dtype.kind == "O" else OTHER, values)


def _of_arrow(values: Any) -> Column:
    import pyarrow

    kinds = pyarrow.types
    if kinds.is_dictionary(values.type):
        chunked = isinstance(values, pyarrow.ChunkedArray)
        values = values.cast(values.type.value_type) if chunked else values.dictionary_decode()
    kind = values.type
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        return Column(NUMBERS, _numbers(values.to_numpy(**_copying(values))))
    if kinds.is_boolean(kind) or kinds.is_decimal(kind) or kinds.is_null(kind):
        return Column(MIXED, _objects(values.to_pylist()))
    texts = (kinds.is_string, kinds.is_large_string, kinds.is_string_view)
    if any(is_text(kind) for is_text in texts):
        return Column(TEXT, _objects(_texts(values)))
    return Column(OTHER, np.empty(0, object))


def _texts(values: Any) -> list[str | None]:
    """Texts of Arrow, which nobody has to have checked: bytes that are no UTF-8 are replaced."""
    import pyarrow

    try:
        return cast("list[str | None]", values.to_pylist())
    except UnicodeDecodeError:
        kind = pyarrow.large_binary()
        held = values.cast(kind).to_pylist()
        return [None if one is None else one.decode("utf-8", "replace") for one in held]


def _copying(values: Any) -> dict[str, bool]:
    """What lets an array of Arrow with nulls become one of NumPy; chunked ones do so anyway."""
    return {} if hasattr(values, "num_chunks") else {"zero_copy_only": False}


def _of_polars(values: Any) -> Column:
    kind = values.dtype
    name = str(kind.base_type())
    if name in ("Int128", "UInt128"):  # NumPy has none
        return Column(MIXED, _objects(values.to_list()))
    if kind.is_integer() or kind.is_float():
        return Column(NUMBERS, _numbers(values.to_numpy()))
    if name in ("String", "Categorical", "Enum"):
        return Column(TEXT, _objects(values.to_list()))
    if kind.is_decimal() or name in ("Boolean", "Object", "Null"):
        return Column(MIXED, _objects(values.to_list()))
    return Column(OTHER, np.empty(0, object))


def _of_pandas(values: Any) -> Column:
    kind = values.dtype
    if isinstance(kind, np.dtype):
        return _of_array(values.to_numpy())
    if hasattr(kind, "categories"):  # each category stands for many rows, so it is read once
        listed = _of_pandas(kind.categories.to_series())
        if listed.kind == OTHER:
            return listed
        codes = values.cat.codes.to_numpy()
        found = _objects([*listed.values.tolist(), None])[codes]
        return Column(MIXED if listed.kind == NUMBERS else listed.kind, found)
    if hasattr(kind, "pyarrow_dtype"):
        return _of_arrow(values.array.__arrow_array__())
    if kind.name in ("str", "string"):
        return Column(TEXT, values.to_numpy(dtype=object))
    if kind.kind in "iuf":
        return Column(NUMBERS, values.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind.kind == "b":
        return Column(MIXED, values.to_numpy(dtype=object))
    return Column(OTHER, np.empty(0, object))


def _numbers(values: NDArray[Any]) -> NDArray[Any]:
    """Numbers, where nulls may have made objects of them."""
    return values if values.dtype.kind in "biu" else values.astype(np.float64, copy=False)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    """An array of objects, whatever they are."""
    return np.fromiter(values, object, len(values))  # which asks no value whether it is a list


def _table(X: Any) -> NDArray[Any]:
    """An array; lists as objects: one text in a row must not make texts of its numbers."""
    if isinstance(X, (list, tuple)):
        rows = [row for row in X if isinstance(row, (list, tuple)) or _is_row(row)]
        width = len(rows[0]) if rows else 0
        if len(rows) < len(X) or any(len(row) != width for row in rows):
            return np.empty(0)
        table = np.empty((len(rows), width), object)
        for place, row in enumerate(rows):  # one by one, as a value may itself be a list
            table[place] = _objects(list(row))
        return table
    table = np.asarray(_unmask(X) if isinstance(X, np.ndarray) else X)
    if table.dtype.names is not None:
        raise ParameterError(
            "X", "a structured array", "its columns have types of their own", "Give a frame."
        )
    return table


def _is_row(row: object) -> bool:
    return isinstance(row, np.ndarray) and row.ndim > 0


def _array_column(table: NDArray[Any], place: int) -> Column:
    return _of_array(table[:, place])


def _sparse_column(table: Any, place: int) -> Column:
    return _of_array(table[:, [place]].toarray().ravel())
