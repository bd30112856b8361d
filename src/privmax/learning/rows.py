"""Copies of rows that share nothing with them, whatever holds the rows.

Proof:      docs/proofs/models.md, docs/proofs/tuning.md
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.sources.table import take_rows

_PLAIN = {bool, int, float, complex, str, bytes, type(None)}
"""Types of cells that cannot be written into."""


def copy_rows(rows: Any, index: NDArray[np.intp]) -> Any:
    """Return some rows as a copy that shares nothing with what they are part of.

    Examples:
        >>> rows = [[1], [2]]
        >>> copy_rows(rows, np.array([0]))[0].append(5)
        >>> rows
        [[1], [2]]
    """
    some = take_rows(rows, index)
    if isinstance(some, np.ndarray) and some.dtype != object:
        return some  # an index makes a copy
    return copy_all(some)


def copy_all(rows: Any) -> Any:
    """Return all rows as a copy that shares nothing with them, down to the objects in its cells.

    Examples:
        >>> rows = [[1], [2]]
        >>> copy_all(rows)[0].append(5)
        >>> rows
        [[1], [2]]
    """
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "biufcSUmM":
        return rows.copy(order="K")
    if type(rows) in (list, tuple):
        cells = rows if set(map(type, rows)) <= _PLAIN else map(copy_all, rows)
        return type(rows)(cells)
    if not hasattr(rows, "iloc"):
        return deepcopy(rows)
    copied = rows.copy()
    copied.index = rows.index.copy(deep=True)
    if copied.ndim == 1:
        return _copy_cells(copied)
    copied.columns = rows.columns.copy(deep=True)
    for place in range(copied.shape[1]):
        column = copied.iloc[:, place]
        if column.dtype == object:
            copied.isetitem(place, _copy_cells(column))
    return copied


def _copy_cells(column: Any) -> Any:
    """Return a column of pandas with copies of the objects in it, which pandas does not copy."""
    if column.dtype != object:
        return column
    cells = deepcopy(column.to_numpy())
    return type(column)(cells, index=column.index, name=column.name, dtype=object)
