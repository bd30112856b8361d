"""Rows of numbers with a label, for `privmax learn`. No message quotes what a file holds."""

from __future__ import annotations

import math
import os
import sys
from array import array
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from privmax.cli.inputs import check_exists
from privmax.errors import DataError, ParameterError, column_error
from privmax.sources.files import FIRST_LINE, open_records

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Label = int | float | str

_TABLES = (".parquet", ".pq", ".tsv", ".csv.gz", ".tsv.gz")
"""Endings of files that DuckDB reads, as it does folders. Any other is read here, as CSV."""

_TEXTS = (".tsv", ".csv.gz", ".tsv.gz")


@dataclass(frozen=True, repr=False)
class Examples:
    """Private rows.

    features   names of the columns of X
    X          numbers, all of them finite
    y          the label of every row, one of those declared; empty where none were asked for
    """

    features: Sequence[str]
    X: NDArray[np.float64]
    y: Sequence[Label]

    def __repr__(self) -> str:
        return "Examples(<private>)"


def read_examples(
    file: str, features: Sequence[str] | None, label: str | None, labels: Sequence[Label]
) -> Examples:
    """The rows of a file, a folder of Parquet files, or standard input ("-").

    features   columns to read; None: all but the label
    label      column of the labels; None: there is none to read
    labels     all there can be, of one type
    """
    if "://" in file:
        raise DataError(
            "FILE: learn reads files, not databases. Save the table as a Parquet file first."
        )
    check_exists(file)
    if os.path.isdir(file) or file.lower().endswith(_TABLES):
        return _of_table(file, features, label, labels)
    with open_records(_place(file)) as (names, rows):
        return _of_text(names, rows, features, label, labels)


def read_columns(file: str, label: str) -> list[str]:
    """All columns of such a file but the label. No row is read."""
    check_exists(file)
    if os.path.isdir(file) or file.lower().endswith(_TABLES):
        from privmax.sources.reading import as_table

        with ExitStack() as held:
            columns = as_table(Path(file), [], [], True, held).columns
            return _chosen(columns, None, label, is_text=_is_text(file))
    with open_records(_place(file)) as (names, _):
        return _chosen(names, None, label, is_text=True)


def _is_text(file: str) -> bool:
    """Whether a file that DuckDB reads is text: its first line may be data and is not shown."""
    return file.lower().endswith(_TEXTS)


def _place(file: str) -> Path | BinaryIO:
    return sys.stdin.buffer if file == "-" else Path(file)


def _of_text(
    names: Sequence[str],
    rows: Iterator[tuple[int, list[str]]],
    features: Sequence[str] | None,
    label: str | None,
    labels: Sequence[Label],
) -> Examples:
    import numpy as np

    if len(set(names)) < len(names):
        raise DataError("Two columns of FILE have the same name. Rename one.")
    chosen = _chosen(names, features, label, is_text=True)
    if features is None:
        _names(chosen)
    places = [names.index(name) for name in chosen]
    where = None if label is None else names.index(label)
    known: dict[object, Label] = {one: one for one in labels}
    numeric = not any(isinstance(one, str) for one in labels)
    values, y, count = array("d"), [], 0
    for line, row in rows:
        for place in places:
            number = _number(row[place])
            if number is None:
                raise DataError(
                    f"Line {line} has no finite number in column {place + 1}. Correct it, or "
                    "choose other columns with --features."
                )
            values.append(number)
        if where is not None:
            text = row[where].strip()
            found = known.get(_number(text) if numeric else text)
            if found is None:
                raise DataError(
                    f"Line {line} has a label that is not in --labels. Declare every possible "
                    "label."
                )
            y.append(found)
        count += 1
    return Examples(chosen, np.frombuffer(values, np.float64).reshape(_some(count), len(chosen)), y)


def _chosen(
    names: Sequence[str], features: Sequence[str] | None, label: str | None, *, is_text: bool
) -> list[str]:
    """The columns to read as features."""
    for option, name in [("label", label), *(("features", name) for name in features or ())]:
        if name is not None and name not in names:
            if is_text:
                raise ParameterError(option, name, "the file has no such column", FIRST_LINE)
            raise column_error(option, name, list(names), "file")
    return [name for name in names if name != label] if features is None else list(features)


def _names(columns: Sequence[str]) -> None:
    """Refuse a first line with numbers: without a line of names it is data, and names are shown."""
    if any(_number(name) is not None for name in columns):
        raise DataError(
            "The first line of FILE has a number, so it does not seem to name the columns. Add a "
            "line with column names, or give --features if a number is the name of a column."
        )


def _number(text: str) -> float | None:
    """The finite number that a text is."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _some(rows: int) -> int:
    if not rows:
        raise DataError("FILE has no rows.")
    return rows


def _of_table(
    file: str, features: Sequence[str] | None, label: str | None, labels: Sequence[Label]
) -> Examples:
    """The same through DuckDB, which reads the columns that are needed and no others."""
    import numpy as np

    from privmax.sources.engines.base import ask
    from privmax.sources.reading import as_table

    with ExitStack() as held:
        table = as_table(Path(file), [], [], True, held)
        chosen = _chosen(table.columns, features, label, is_text=_is_text(file))
        if features is None and _is_text(file):
            _names(chosen)
        columns: list[Any] = []
        for name in chosen:
            kind = table[name].type()
            if not (kind.is_numeric() or kind.is_boolean() or kind.is_string()):
                raise ParameterError(
                    "features", name, "the column has values that are not numbers",
                    "Choose other columns, or convert dates and the like to numbers first.",
                )  # fmt: skip
            columns.append(table[name].try_cast("float64"))
        if label is not None:
            text = any(isinstance(one, str) for one in labels)
            columns.append(
                table[label].cast("string").strip() if text else table[label].try_cast("float64")
            )
        if not columns:  # a rule that looks at nothing: rows are counted all the same
            columns.append(table[table.columns[0]].isnull().cast("float64"))
        named = table.select(**{f"column_{place}": column for place, column in enumerate(columns)})
        read = ask("reading the rows", named.to_pyarrow)
    X = np.empty((_some(read.num_rows), len(chosen)))
    for place in range(len(chosen)):
        X[:, place] = read.column(place).to_numpy()
    if not np.isfinite(X).all():
        raise DataError(
            "A row of FILE has no finite number in one of the columns. Correct it, or choose other "
            "columns with --features."
        )
    known: dict[object, Label] = {one: one for one in labels}
    y = [] if label is None else [known.get(one) for one in read.column(len(chosen)).to_pylist()]
    if None in y:
        raise DataError(
            "A row of FILE has a label that is not in --labels. Declare every possible label."
        )
    return Examples(chosen, X, [one for one in y if one is not None])
