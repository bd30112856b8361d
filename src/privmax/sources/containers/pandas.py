"""pandas: one rule per value, whatever type pandas gave the column.

pandas chooses the type of a column by all of its values. One missing cell turns whole numbers into
floats, one odd value turns durations into Python objects. So nothing here may follow from that
type: the label of a value is what `labels.py` makes of the value, and rows have the same number if
and only if their labels are the same.

Whole numbers from 2^53 on cannot be read by such a rule, since floats round them: a missing cell in
another row would merge two of them. They are refused, unless the column is of a type that keeps
them exact beside missing cells: Int64 and the like, or one of Arrow. Text, dates and durations are
exact in every type.

No row is looked at in a Python loop where a column has a type of its own, only different values.

Proof:      docs/proofs/keys.md
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from decimal import Decimal
from fractions import Fraction
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError
from privmax.labels import UNKNOWN, identify, is_missing, is_unknown, key_by_name, read_label
from privmax.sources.conditions import ColumnTest, Condition, holds_of, is_moment
from privmax.sources.containers.arrays import read_array
from privmax.sources.containers.arrow import ArrowColumn
from privmax.sources.engines.base import choose_columns
from privmax.sources.table import (
    MIXED,
    MOMENTS,
    NO_SCORE,
    NUMBERS,
    OTHER,
    TEXT,
    Candidates,
    LazyLabels,
    Lists,
    Numbered,
    Numbers,
    Table,
    TableColumn,
    Values,
    no_scores,
    to_objects,
)

LIMIT = 1 << 53
"""Whole numbers from here on may share a float with others."""

ROUNDED = (
    "A number of 2^53 or more is in a column whose type pandas inferred. There, one missing cell "
    "rounds such numbers, and different ones become the same. Read the column as text (dtype=str), "
    "or as Int64 or a type of Arrow, which keep whole numbers exact. Declare that when the data "
    "is read: a column of floats is rounded already."
)

DATES = (
    "A column of Arrow's dates is in a pandas frame. There, one moment in another row turns all "
    "dates into moments, and every label changes. Give text (astype(str)) or moments "
    "(astype('datetime64[us]')), or the frame as an Arrow table."
)

SPANS, ANY = "spans of time", "any values"
"""The possible values of a column, by its type, beside NUMBERS and TEXT."""

_HASHABLE = {str, int, bool, float, bytes, type(None)}
"""Types of Python that are equal exactly where their labels are the same, or both missing."""


class PandasColumn(TableColumn):
    """A Series, an Index, or an array of pandas."""

    def number_labels(self) -> Numbered:
        return number_values(self.values)

    def read_labels(self) -> Sequence[Any]:
        numbers, labels = number_values(self.values)
        missing, repeated = bool((numbers < 0).any()), len(labels) < len(numbers)
        return LazyLabels(numbers, labels.__getitem__).check(missing, repeated)

    def has_missing(self) -> bool:
        return bool(self.values.isna().any())

    def to_array(self) -> NDArray[Any]:
        array: NDArray[Any] = self.values.to_numpy()
        return array

    def read_scores(self) -> Any:
        return read_scores(self.values)

    def read_candidates(self) -> Candidates:
        index = getattr(self.values, "index", None)
        if index is None:  # it is an index, or an array
            raise no_scores(self.values)
        return PandasColumn(index).read_labels(), self.read_scores()

    def read_lists(self) -> Lists | None:
        if hasattr(self.values.dtype, "pyarrow_dtype"):
            return ArrowColumn(self.values.array.__arrow_array__()).read_lists()
        if self.values.dtype != object:
            return None
        lists = [_entries(value, row) for row, value in enumerate(self.values.tolist(), 1)]
        lengths = np.fromiter(map(len, lists), np.int64, len(lists))
        return lengths, *number_objects(list(chain.from_iterable(lists)))

    def read_values(self) -> Values:
        pandas = sys.modules["pandas"]
        if not isinstance(self.values, pandas.Series):  # an index or an array lacks some accessors
            return PandasColumn(pandas.Series(self.values, copy=False)).read_values()
        kind = self.values.dtype
        if isinstance(kind, pandas.SparseDtype):
            return PandasColumn(self.values.sparse.to_dense()).read_values()
        if isinstance(kind, np.dtype):
            return read_array(self.to_array())
        if hasattr(kind, "categories"):  # each category stands for many rows, so it is read once
            listed = PandasColumn(kind.categories.to_series()).read_values()
            if listed.kind == OTHER:
                return listed
            codes = self.values.cat.codes.to_numpy()
            if listed.kind == MOMENTS:
                nothing = np.array(["NaT"], listed.values.dtype)
                return Values(MOMENTS, np.concatenate([listed.values, nothing])[codes])
            objects = to_objects([*listed.values.tolist(), None])[codes]
            return Values(MIXED if listed.kind == NUMBERS else listed.kind, objects)
        if hasattr(kind, "pyarrow_dtype"):
            return ArrowColumn(self.values.array.__arrow_array__()).read_values()
        if kind.name in ("str", "string"):
            return Values(TEXT, self.values.to_numpy(dtype=object))
        if kind.kind in "iuf":
            return Values(NUMBERS, self.values.to_numpy(dtype=np.float64, na_value=np.nan))
        if kind.kind == "b":
            return Values(MIXED, self.values.to_numpy(dtype=object))
        if kind.kind == "M":  # with a zone
            return Values(MOMENTS, self.values.dt.tz_convert(None).to_numpy())
        return Values.of_objects(OTHER)


class PandasTable(Table):
    """A DataFrame, whose columns may have names of any type."""

    def find(self, name: Any) -> TableColumn:
        return PandasColumn(self.data[name])

    def to_arrow(
        self, needed: Sequence[str], numbers: Sequence[str | None], user: str | None
    ) -> tuple[Any, dict[str, list[Any]]]:
        """Convert to Arrow as `Table.to_arrow`, with numbers for labels.

        A type that Arrow or DuckDB gives a column would follow from all of its rows.
        """
        import pyarrow

        frame, names = self.data, choose_columns(self.names, needed)
        if not set(needed) <= set(names):
            names, frame = list(dict.fromkeys(names)), frame.iloc[:0]  # only names are asked for
        columns: dict[str, Any] = {}
        numbered: dict[str, list[Any]] = {}
        for place, name in enumerate(names):
            column = frame[name] if name in needed else frame.iloc[:, place]
            if name in numbers:
                columns[name] = whole_numbers(column)
            elif name == user:
                columns[name] = key_values(column)
            else:
                places, numbered[name] = sort_numbers(*number_values(column))
                columns[str(name)] = pyarrow.array(places, mask=places < 0)
        return pyarrow.table(columns), numbered


def is_frame(data: object) -> bool:
    """Return whether it is a DataFrame. If it is, pandas is loaded."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, pandas.DataFrame)


def is_column(data: object) -> bool:
    """Return whether it is a Series or an Index."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(data, (pandas.Series, pandas.Index))


def number_values(column: Any) -> tuple[Numbers, list[Any]]:
    """Return the number of each row's label, −1 where a value is missing, and the labels by number.

    Args:
        column: A Series or an Index.

    Raises:
        DataError: A value is not a label, or a number that pandas may have rounded.

    Examples:
        >>> import pandas as pd
        >>> numbers, labels = number_values(pd.Series([7.0, None, 8.0, 7.0]))
        >>> numbers.tolist(), labels
        ([0, -1, 1, 0], [7, 8])
    """
    kind = column.dtype
    if str(kind).startswith(("period", "interval")):
        raise DataError(UNKNOWN)
    if hasattr(kind, "pyarrow_dtype") and str(kind).startswith("date"):  # date32 or date64
        raise DataError(DATES)
    if hasattr(kind, "categories"):
        return _number_categories(column.array.codes, kind.categories)
    if hasattr(kind, "fill_value"):  # sparse
        column = column.astype(kind.subtype)
        kind = column.dtype
    long = kind.kind == "f" and kind.itemsize > 8
    if long or (isinstance(kind, np.dtype) and kind.kind == "O"):
        return number_objects(list(column))
    try:
        numbers, different = sys.modules["pandas"].factorize(column)
        values = different.tolist()
    except Exception:  # of lists, or of times that Python does not have
        values = None
    if values is None:
        raise DataError(UNKNOWN)
    return _label_values(numbers, values, is_exact(kind))


def key_values(column: Any) -> Any:
    """Return a column as an Arrow array of what tells its values apart.

    Null where one is missing. It is for users, whose labels are not needed. Numbers and text of
    Arrow are their own keys, without a copy.

    Raises:
        DataError: As `number_values`.
    """
    import pyarrow

    kind = column.dtype
    if isinstance(kind, np.dtype) and kind.kind in "iuf" and kind.itemsize <= 8:
        values = refuse_rounded(column).to_numpy()
        return pyarrow.array(values.astype(np.float64, copy=False) if kind.kind == "f" else values)
    if str(kind) in ("str", "string") and kind.storage == "pyarrow":
        return pyarrow.array(column, from_pandas=True)
    numbers, _ = number_values(column)
    return pyarrow.array(numbers, mask=numbers < 0)


def sort_numbers(numbers: Numbers, labels: Sequence[Any]) -> tuple[Numbers, list[Any]]:
    """Number labels in an order that follows from them alone.

    As rows come, it would follow from the rows.

    Examples:
        >>> numbers, labels = sort_numbers(np.array([0, -1, 1]), ["b", "a"])
        >>> numbers.tolist(), labels
        ([1, -1, 0], ['a', 'b'])
    """
    key = key_by_name(labels)
    order = sorted(range(len(labels)), key=lambda place: key(labels[place]))
    place = np.full(len(labels) + 1, -1, np.int64)
    place[order] = np.arange(len(order))
    return place[numbers], [labels[one] for one in order]


def whole_numbers(column: Any) -> Any:
    """Return a column of scores or weights for an engine: whole numbers, null for all else.

    A column whose type has no numbers stays what it is, to be refused by its type.
    """
    import pyarrow

    kind = column.dtype
    others = {TEXT: "string", MOMENTS: "timestamp[us]", SPANS: "duration[us]"}
    other = "bool" if kind.kind == "b" else others.get(value_kind(column))
    if other is not None:
        return pyarrow.nulls(len(column), pyarrow.type_for_alias(other))
    if kind.kind in "iu" and not hasattr(kind, "fill_value"):
        return pyarrow.array(column, from_pandas=True)
    if isinstance(kind, np.dtype) and kind.kind == "f":
        values = column.to_numpy().astype(np.float64)
        with np.errstate(invalid="ignore"):
            is_whole = (np.floor(values) == values) & (np.abs(values) < LIMIT)
        return pyarrow.array(np.where(is_whole, values, 0).astype(np.int64), mask=~is_whole)
    return pyarrow.array([_whole(value) for value in column], pyarrow.int64())


def read_scores(column: Any) -> NDArray[Any]:
    """Ready scores, of which none may be missing.

    Raises:
        DataError: One is missing, or a number that pandas may have rounded.
    """
    if column.isna().any():
        raise DataError(NO_SCORE)
    scores: NDArray[Any] = column.to_numpy()
    floats = scores if scores.dtype.kind == "f" else _floats(scores)
    if (np.isfinite(floats) & (np.abs(floats) >= LIMIT)).any():
        raise DataError(ROUNDED)
    return scores


def read_genotypes(column: Any, other: int) -> Any:
    """Return a column of genotypes as whole numbers, missing where a value is.

    `other` stands for all else.

    A column of text or of moments stays what it is, to be refused by its type.
    """
    kind = column.dtype
    if value_kind(column) not in (NUMBERS, ANY) or kind.kind in "iu":
        return column
    if kind.kind in "bf":
        values = column.to_numpy(np.float64, na_value=np.nan)
    else:
        values = np.array([_small(value, other) for value in column], np.float64)
    with np.errstate(invalid="ignore"):
        known = (np.floor(values) == values) & (np.abs(values) <= abs(other))
    whole = np.where(known, values, other).astype(np.int64)
    return sys.modules["pandas"].Series(whole, column.index, "Int64").mask(np.isnan(values))


def refuse_rounded(values: Any) -> Any:
    """Return the values, if they are not of pandas, or it rounded none of them.

    Raises:
        DataError: One may be rounded.
    """
    if is_column(values) and not is_exact(getattr(values.dtype, "categories", values).dtype):
        listed = values.to_numpy()
        if listed.dtype.kind in "iuf":
            numbers = np.abs(listed.astype(np.float64))
            large = bool(((numbers >= LIMIT) & (numbers < np.inf)).any())
        else:
            large = listed.dtype == object and any(map(_is_large_number, listed.tolist()))
        if large:
            raise DataError(ROUNDED)
    return values


def keep_rows(frame: Any, where: Condition) -> Any:
    """Return the rows of a frame for which a condition is true: value by value, as labels are read.

    A value of another kind than it is compared with is missing: no test of it is true.
    """
    where.check([name for name in frame.columns if isinstance(name, str)], shown=True)
    read: dict[str, tuple[Numbers, list[Any]]] = {}

    def keep(test: ColumnTest) -> NDArray[np.bool_]:
        column = frame[test.column]
        if not _can_compare(value_kind(column), test):
            raise where.misfit(test, value_kind(column))
        if test.column not in read:
            read[test.column] = number_values(column)
        numbers, labels = read[test.column]
        holds = [*(holds_of(test, label) for label in labels), holds_of(test, None)]
        kept: NDArray[np.bool_] = np.array(holds, np.bool_)[numbers]
        return kept

    return frame[where.build(keep)]


def _can_compare(kind: str, test: ColumnTest) -> bool:
    """Return whether a column of this kind may hold values that a test can be true of."""
    if isinstance(test.value, bool):
        return kind in (NUMBERS, ANY) and test.sign in ("=", "!=")
    if isinstance(test.value, Decimal):
        return kind in (NUMBERS, ANY)
    if isinstance(test.value, str):
        return kind in (TEXT, ANY) or (kind == MOMENTS and is_moment(test.value))
    return True


def value_kind(column: Any) -> str:
    """Return what values a column can hold, by its type.

    Numbers, text, moments, spans of time, any.
    """
    kind = column.dtype
    if hasattr(kind, "categories"):
        return value_kind(kind.categories)
    if str(kind) in ("str", "string") or "string" in str(kind).lower():
        return TEXT
    return {"M": MOMENTS, "m": SPANS, **dict.fromkeys("biufc", NUMBERS)}.get(kind.kind, ANY)


def is_exact(kind: Any) -> bool:
    """Return whether a type keeps whole numbers as they are, beside missing ones too."""
    if isinstance(kind, np.dtype):
        return False
    return (hasattr(kind, "pyarrow_dtype") and kind.kind != "f") or kind.kind in "iu"


def _number_categories(codes: Any, categories: Any) -> tuple[Numbers, list[Any]]:
    """Of categories, those that some row has."""
    used = np.flatnonzero(np.bincount(np.asarray(codes, np.int64) + 1, minlength=1)[1:])
    numbers, labels = number_values(categories[used])
    place = np.full(len(categories) + 1, -1, np.int64)
    place[used] = numbers
    return place[np.asarray(codes, np.int64)], labels


def number_objects(values: list[Any]) -> tuple[Numbers, list[Any]]:
    """Number Python objects, each by itself: those of a column, or of lists in its cells.

    Raises:
        DataError: As `number_values`.
    """
    pandas = sys.modules["pandas"]
    missing = {type(pandas.NA), type(pandas.NaT)}
    if set(map(type, values)) <= _HASHABLE | missing:
        numbers, different = pandas.factorize(np.fromiter(values, object, len(values)))
        return _label_values(numbers, list(different), False)
    return _label_values(np.arange(len(values)), values, False)


def _entries(value: Any, row: int) -> list[Any]:
    """Return the entries of one list of Python's or NumPy's; a missing one has none."""
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, np.ndarray) and value.ndim == 1:
        is_number = value.dtype.kind in "biuf" and value.itemsize <= 8
        return value.tolist() if is_number else list(value)  # tolist makes numbers of nanoseconds
    if is_missing(value):
        return []
    raise DataError(
        f"Row {row} has no list of items. If a row is one item of a basket, give basket."
    )


def _label_values(numbers: Numbers, values: list[Any], exact: bool) -> tuple[Numbers, list[Any]]:
    """Numbers of values as numbers of labels.

    Args:
        exact: Whether whole numbers are as they were written, however large.
    """
    kinds = set(map(type, values))
    if kinds == {str}:
        if not _is_text("".join(values)):
            raise DataError(UNKNOWN)
        return numbers, values
    if kinds == {int}:
        if not exact and (max(values) >= LIMIT or min(values) <= -LIMIT):
            raise DataError(ROUNDED)
        return numbers, values
    known: dict[Any, int] = {}
    labels: list[Any] = []
    place = np.full(len(values) + 1, -1, np.int64)
    for at, value in enumerate(values):
        label = read_label(_of_pandas(value))
        if label is None:
            continue
        number = known.setdefault(identify(label), len(labels))
        if number == len(labels):
            _check_label(label, exact)
            labels.append(label)
        place[at] = number
    return place[numbers], labels


def _of_pandas(value: Any) -> Any:
    """Return a moment or a span of NumPy as pandas', which it is in a column of its own type."""
    if not isinstance(value, (np.datetime64, np.timedelta64)):
        return value
    pandas = sys.modules["pandas"]
    make = pandas.Timestamp if isinstance(value, np.datetime64) else pandas.Timedelta
    try:
        return make(value)
    except (ValueError, OverflowError):  # months, or beyond what pandas counts
        return value


def _check_label(label: Any, exact: bool) -> None:
    if is_unknown(label) or (isinstance(label, str) and not _is_text(label)):
        raise DataError(UNKNOWN)
    if not exact and _is_large(label):
        raise DataError(ROUNDED)


def _is_large(label: Any) -> bool:
    """Return whether a float may stand for this number and for another, or for those in a tuple."""
    if isinstance(label, (tuple, frozenset)):
        return any(map(_is_large, label))
    if isinstance(label, Decimal):
        return label.copy_abs() >= LIMIT
    return isinstance(label, (int, Fraction)) and not -LIMIT < label < LIMIT


def _is_large_number(value: Any) -> bool:
    is_number = issubclass(type(value), (int, float, np.integer, np.floating))
    return bool(is_number and abs(value) >= LIMIT and abs(value) != np.inf)


def _small(value: Any, other: int) -> float:
    """Return a value as a whole number of few digits; NaN: it is missing."""
    label = read_label(value)
    if label is None:
        return np.nan
    return label if type(label) is int and abs(label) <= abs(other) else other


def _floats(scores: NDArray[Any]) -> NDArray[np.float64]:
    """Return the floats among Python objects; whole numbers are exact there."""
    listed = scores.tolist() if scores.dtype == object else []
    return np.array([value for value in listed if issubclass(type(value), float)], np.float64)


def _is_text(text: str) -> bool:
    """Return whether text can be written down at all: Python's may hold halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _whole(value: Any) -> int | None:
    """Return a whole number of 64 bits; None: it is something else."""
    kind = type(value)
    if kind is bool or not issubclass(
        kind, (int, float, Decimal, Fraction, np.integer, np.floating)
    ):
        return None
    label = read_label(value)
    rounded = issubclass(kind, (float, np.floating)) and _is_large(label)
    if type(label) is not int or rounded:
        return None
    return label if -(1 << 63) <= label < 1 << 63 else None
