"""Baskets in frames: pandas, polars and Arrow, long or one-hot; scipy sparse matrices, NumPy
arrays.

No engine is imported here: an object can only be a pandas one if pandas is already loaded. Names of
columns are public.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, column_error
from privmax.itemsets.baskets import Baskets, plain_label
from privmax.itemsets.reading.codes import encode_labels, group_entries, group_rows, sort_codes
from privmax.itemsets.reading.flags import refuse_items

_OTHER = (
    "A column has values other than 0 and 1. If the frame has one row per item of a basket, give "
    "basket and item. With the form onehot, basket and user may name columns that are not items."
)


def column_names(data: object) -> list[Any] | None:
    """The names of a frame's columns; None if it is no frame.

    Examples:
        >>> import pyarrow
        >>> column_names(pyarrow.table({"a": [1]})), column_names([["a"]])
        (['a'], None)
    """
    pandas, polars, arrow = (sys.modules.get(name) for name in ("pandas", "polars", "pyarrow"))
    if (pandas is not None and isinstance(data, pandas.DataFrame)) or (
        polars is not None and isinstance(data, polars.DataFrame)
    ):
        return list(data.columns)
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        return list(data.schema.names)
    return None


def read_long(
    data: Any, columns: Sequence[Any], *, basket: Sequence[Any], item: Any, user: Any
) -> Baskets:
    """A row for each item of a basket. A row without an item adds nothing to its basket, which
    exists all the same.

    Several columns `basket` tell baskets apart together. Baskets of two users are two baskets,
    though they be called the same.

    Examples:
        >>> import pyarrow
        >>> table = pyarrow.table({"receipt": [1, 1, 2], "article": ["milk", "bread", "milk"]})
        >>> columns = ["receipt", "article"]
        >>> rows = read_long(table, columns, basket=["receipt"], item="article", user=None)
        >>> rows.supports().tolist()
        [1, 2]
    """
    _check_present(columns, "item", item)
    baskets = _keys(data, columns, "basket", basket)
    users = None if user is None else _keys(data, columns, "user", [user])
    numbers, values = _number(_column(data, item))
    labels, codes = sort_codes(numbers, [plain_label(value) for value in values])
    refuse_items(labels)
    return group_entries(baskets, codes, labels, users)


def read_one_hot(
    data: Any, columns: Sequence[Any], *, basket: Sequence[Any] = (), user: Any = None
) -> Baskets:
    """A row for each basket, a column for each item: true or 1 where the basket holds it.

    Columns `basket` and `user` are no items. Rows that agree in all of the former are one basket.

    Examples:
        >>> import pyarrow
        >>> table = pyarrow.table({"bread": [1, 0], "milk": [1, 1]})
        >>> read_one_hot(table, ["bread", "milk"]).supports().tolist()
        [1, 2]
    """
    baskets = _keys(data, columns, "basket", basket) if len(basket) else np.arange(len(data))
    users = None if user is None else _keys(data, columns, "user", [user])
    items = [name for name in columns if name not in (*basket, user)]
    if any(plain_label(name) is None for name in items):
        raise DataError("A column of the frame has no name. Name it.")
    labels, codes = sort_codes(np.arange(len(items)), [plain_label(name) for name in items])
    if len(labels) < len(items):
        raise DataError("Two columns of the frame have the same name. Rename one.")
    holders = [_ones(_column(data, name)) for name in items]
    held = np.repeat(codes, [len(rows) for rows in holders])
    return group_rows(
        np.concatenate([np.zeros(0, np.int64), *holders]), held, labels, baskets, users
    )


def read_matrix(data: Any) -> Baskets | None:
    """A scipy sparse matrix or array of zeros and ones, or a NumPy array of booleans, a row for
    each basket.

    Examples:
        >>> read_matrix(np.array([[True, False], [True, True]])).supports().tolist()
        [2, 1]
    """
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(data):
        if data.ndim != 2:
            raise DataError(
                "The matrix must have two dimensions: a row for each basket, a column for each "
                "item."
            )
        rows = data.tocsr()
        if not rows.has_canonical_format:
            rows = rows.copy()  # it may be the caller's own
            rows.sum_duplicates()
        held = rows.data != 0
        if not (rows.data[held] == 1).all():
            raise DataError("The matrix has values other than 0 and 1.")
        upto = np.concatenate(([0], np.cumsum(held)))
        return Baskets(upto[rows.indptr], rows.indices[held].astype(np.int32), range(data.shape[1]))
    if isinstance(data, np.ndarray) and data.dtype != object:
        if data.ndim != 2 or data.dtype != bool:
            raise DataError(
                "An array of baskets must have two dimensions and be of booleans: a row for each "
                "basket, a column for "
                "each item. Make it so by astype(bool); if it lists the items themselves, by "
                "tolist()."
            )
        ends = np.concatenate(([0], np.cumsum(np.count_nonzero(data, axis=1))))
        return Baskets(ends, np.nonzero(data)[1].astype(np.int32), range(data.shape[1]))
    return None


def _keys(
    data: Any, columns: Sequence[Any], option: str, names: Sequence[Any]
) -> NDArray[np.int64]:
    """The number of each row's basket or user, which the columns name together. None may be
    missing.
    """
    together = np.zeros(len(data), np.int64)
    for name in names:
        _check_present(columns, option, name)
        numbers, _ = _number(_column(data, name))
        if (numbers < 0).any():
            raise DataError(f"Row {int(np.argmax(numbers < 0)) + 1} has no {option}.")
        _, together = np.unique(
            together * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True
        )
    return together


def _check_present(columns: Sequence[Any], option: str, name: str) -> None:
    if name not in columns:
        raise column_error(option, name, list(columns), "frame")
    if list(columns).count(name) > 1:
        raise ParameterError(
            option, name, "the frame has several columns of that name", "Rename all but one."
        )


def _column(data: Any, name: Any) -> Any:
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(data, (arrow.Table, arrow.RecordBatch)):
        return data.column(name)
    return data[name]


def _number(column: Any) -> tuple[NDArray[np.int64], list[Any]]:
    """The number of each entry's value, −1 where there is none, and the values by number, each of
    which occurs.
    """
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(column, pandas.Series):
        if column.dtype == object:
            return _number_list(column.tolist())
        numbers, values = pandas.factorize(column)
        return numbers, values.tolist()
    if polars is not None and isinstance(column, polars.Series):
        kind = column.dtype
        if kind.is_nested() or kind in (polars.Object, polars.Null):
            return _number_list(column.to_list())
        if kind in (polars.Categorical, polars.Enum):
            column = column.cast(polars.String)
        if kind.is_float():
            column = column.fill_nan(None)
        ranks = column.rank("dense").fill_null(0).cast(polars.Int64).to_numpy()
        values = column.drop_nulls().unique().sort()
        if kind not in (polars.Date, polars.Datetime, polars.Duration):
            return ranks - 1, values.to_list()
        # Not to_list, which fails at dates that Python does not have, and forgets nanoseconds.
        aware = getattr(kind, "time_zone", None) is not None
        return ranks - 1, [
            _in_utc(value) if aware else value for value in map(plain_label, values.to_numpy())
        ]
    return _number_arrow(column)


def _number_arrow(column: Any) -> tuple[NDArray[np.int64], list[Any]]:
    import pyarrow
    from pyarrow import compute, types

    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if types.is_nested(column.type) or types.is_null(column.type):
        return _number_list(column.to_pylist())
    if types.is_floating(column.type):
        column = compute.if_else(compute.is_nan(column), None, column)
    encoded = column.dictionary_encode()
    if isinstance(encoded, pyarrow.ChunkedArray):
        encoded = encoded.unify_dictionaries().combine_chunks()
    numbers = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    values = [
        _arrow_value(value, encoded.dictionary, place)
        for place, value in enumerate(encoded.dictionary)
    ]
    return numbers.astype(np.int64), values


def _arrow_value(value: Any, values: Any, place: int) -> Any:
    """A value of an Arrow array as Python's, or as NumPy's if it is a date that Python does not
    have.
    """
    try:
        return value.as_py()
    except (OverflowError, ValueError):
        return values.to_numpy(zero_copy_only=False)[place]


def _in_utc(moment: Any) -> Any:
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment


def _number_list(values: list[Any]) -> tuple[NDArray[np.int64], list[Any]]:
    labels, codes = encode_labels(values)
    return codes.astype(np.int64), labels


def _ones(column: Any) -> NDArray[np.int64]:
    """The rows in which a column of zeros and ones, or of booleans, holds a one."""
    pandas, polars = sys.modules.get("pandas"), sys.modules.get("polars")
    if pandas is not None and isinstance(column, pandas.Series):
        missing, values = bool(column.isna().any()), column.to_numpy()
    elif polars is not None and isinstance(column, polars.Series):
        missing, values = column.null_count() > 0, column.to_numpy()
    else:
        missing, values = column.null_count > 0, np.asarray(column.to_numpy(zero_copy_only=False))
    if missing:
        raise DataError(
            "A column of the frame has a missing value. Put 0 where a basket does not hold the "
            "item."
        )
    if values.dtype != bool:
        if values.dtype.kind not in "iufO":
            raise DataError(_OTHER)
        ones = np.asarray(values == 1, bool)
        if not (ones | np.asarray(values == 0, bool)).all():
            raise DataError(_OTHER)
        values = ones
    return np.flatnonzero(values)
