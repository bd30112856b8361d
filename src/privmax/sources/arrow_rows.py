"""Arrow tables and arrays of numbers as rows, and values as Arrow arrays."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

BATCH = 1 << 16
"""Rows that are fetched at a time."""


def rows_in(columns: Mapping[str, Sequence[Any]]) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of columns, which may be arrays, as values of Python.

    A batch at a time: numbers of Python take many times the memory of an array.
    """
    length = len(next(iter(columns.values())))
    for start in range(0, length, BATCH):
        parts = [column[start : start + BATCH] for column in columns.values()]
        yield from zip(
            *(part.tolist() if hasattr(part, "tolist") else part for part in parts), strict=True
        )


def arrays_of(table: Any) -> list[Any]:
    """The columns of an Arrow table of whole numbers, none of them null, eight bytes each."""
    import numpy as np

    return [np.asarray(column.to_numpy(), np.int64) for column in table.columns]


def collect_numbers(rows: Iterable[Sequence[Any]], width: int) -> list[Any]:
    """Rows of so many whole numbers as columns of eight bytes each."""
    import numpy as np

    columns = [array("q") for _ in range(width)]
    for row in rows:
        for column, value in zip(columns, row, strict=True):
            column.append(int(value))
    return [np.frombuffer(column, np.int64) for column in columns]


def typed_array(values: Sequence[Any], kind: Any) -> Any:
    """Return values as an Arrow array.

    Columns of text may be of any type, as in a file.
    """
    import pyarrow

    if hasattr(values, "dtype"):  # an array has no text, and no values of its own to look at
        return pyarrow.array(values, kind)
    is_text = pyarrow.types.is_string(kind) or pyarrow.types.is_binary(kind)
    if not is_text and all(isinstance(value, str) for value in values):
        return pyarrow.array(values, pyarrow.string()).cast(kind)
    return pyarrow.array(values, kind)


def rows_of(table: Any) -> list[tuple[Any, ...]]:
    """Return the rows of an Arrow table."""
    return list(zip(*map(_values, table.columns), strict=True))


def _values(column: Any) -> list[Any]:
    """Return the values of a column of Arrow; dates and moments as text, which each of them has."""
    import pyarrow

    kind = column.type
    if pyarrow.types.is_date32(kind):
        return [
            None if day is None else iso(day, "D")
            for day in column.cast(pyarrow.int32()).to_pylist()
        ]
    if pyarrow.types.is_timestamp(kind):
        return [
            None if tick is None else iso(tick, kind.unit)
            for tick in column.cast(pyarrow.int64()).to_pylist()
        ]
    values: list[Any] = column.to_pylist()
    return values


def iso(number: int, unit: str) -> str:
    """So many units after the beginning of 1970, in UTC, as text; it exists for every number."""
    import numpy as np

    if number == -(1 << 63):  # NumPy takes it for no moment
        return f"{number} {unit}"
    text = str(np.array([number], np.int64).view(f"M8[{unit}]")[0])
    return text.rstrip("0").rstrip(".") if "." in text else text
