"""Baskets in frames, long or one-hot, in sparse matrices and in arrays.

Frames are those of pandas, polars and Arrow; matrices those of scipy; arrays those of NumPy.

How a column is read is the affair of `privmax.sources.containers`. Names of columns are public.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from privmax.errors import DataError
from privmax.itemsets.baskets import Baskets
from privmax.itemsets.reading.codes import code_items, group_entries, group_rows
from privmax.itemsets.reading.flags import refuse_items
from privmax.labels import item_label
from privmax.sources.table import Numbers, Table, TableColumn
from privmax.sources.users import NO_USER

_OTHER = (
    "A column has values other than 0 and 1. If the frame has one row per item of a basket, give "
    "basket and item. With the form onehot, basket and user may name columns that are not items."
)


def read_long(
    table: Table, *, basket: Sequence[Any], item: Any, user: Any, drops: bool = False
) -> Baskets:
    """Read a frame with a row for each item of a basket.

    A row without an item adds nothing to its basket, which exists all the same.

    Several columns `basket` tell baskets apart together. Baskets of two users are two baskets,
    though they be called the same. With `drops` rows without a user are left out.

    Examples:
        >>> import pyarrow
        >>> from privmax.sources.containers import table_of
        >>> rows = {"receipt": [1, 1, 2], "article": ["milk", "bread", "milk"]}
        >>> table = table_of(pyarrow.table(rows))
        >>> read_long(table, basket=["receipt"], item="article", user=None).supports().tolist()
        [1, 2]
    """
    table.column("item", item)  # which refuses it first
    table = rows_with_users(table, user) if drops else table
    baskets = number_keys(table, "basket", basket)
    users = None if user is None else number_keys(table, "user", [user])
    labels, codes = code_items(*table.column("item", item).number_labels())
    refuse_items(labels)
    return group_entries(baskets, codes, labels, users)


def read_one_hot(
    table: Table, *, basket: Sequence[Any] = (), user: Any = None, drops: bool = False
) -> Baskets:
    """Return a row for each basket, a column for each item: true or 1 where the basket has it.

    Columns `basket` and `user` are no items. Rows that agree in all of the former are one basket.

    Examples:
        >>> import pyarrow
        >>> from privmax.sources.containers import table_of
        >>> read_one_hot(table_of(pyarrow.table({"bread": [1, 0], "milk": [1, 1]}))).labels
        ['bread', 'milk']
    """
    table = rows_with_users(table, user) if drops else table
    baskets = number_keys(table, "basket", basket) if len(basket) else np.arange(len(table))
    users = None if user is None else number_keys(table, "user", [user])
    items = [name for name in table.names if name not in (*basket, user)]
    if any(item_label(name) is None for name in items):
        raise DataError("A column of the frame has no name. Name it.")
    labels, codes = code_items(np.arange(len(items)), items)
    if len(labels) < len(items):
        raise DataError("Two columns of the frame have the same name. Rename one.")
    holders = [_ones(table.find(name)) for name in items]
    repeated = np.repeat(codes, [len(rows) for rows in holders])
    return group_rows(
        np.concatenate([np.zeros(0, np.int64), *holders]), repeated, labels, baskets, users
    )


def read_matrix(data: Any) -> Baskets | None:
    """Read a sparse matrix of zeros and ones, or an array of booleans, a row for each basket.

    The matrix or sparse array is scipy's, the array NumPy's.

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
        is_one = rows.data != 0
        if not (rows.data[is_one] == 1).all():
            raise DataError("The matrix has values other than 0 and 1.")
        upto = np.concatenate(([0], np.cumsum(is_one)))
        return Baskets(
            upto[rows.indptr], rows.indices[is_one].astype(np.int32), range(data.shape[1])
        )
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


def number_keys(table: Table, role: str, names: Sequence[Any]) -> Numbers:
    """Number the basket or user of each row, which the columns name together.

    None may be missing.
    """
    together = np.zeros(len(table), np.int64)
    for name in names:
        numbers, _ = table.column(role, name).number_labels()
        if (numbers < 0).any():
            remedy = f" {NO_USER}" if role == "user" else ""
            raise DataError(f"Row {int(np.argmax(numbers < 0)) + 1} has no {role}.{remedy}")
        _, together = np.unique(
            together * (int(numbers.max(initial=0)) + 1) + numbers, return_inverse=True
        )
    return together


def rows_with_users(table: Table, user: Any) -> Table:
    """Return the rows that have a user."""
    numbers, _ = table.column("user", user).number_labels()
    return table.take(np.flatnonzero(numbers >= 0))


def _ones(column: TableColumn) -> Numbers:
    """Return the rows in which a column of zeros and ones, or of booleans, holds a one."""
    if column.has_missing():
        raise DataError(
            "A column of the frame has a missing value. Put 0 where a basket does not have the "
            "item."
        )
    values = column.to_array()
    if values.dtype != bool:
        if values.dtype.kind not in "iufO":
            raise DataError(_OTHER)
        ones = np.asarray(values == 1, bool)
        if not (ones | np.asarray(values == 0, bool)).all():
            raise DataError(_OTHER)
        values = ones
    return np.flatnonzero(values)
