"""Tables in memory: columns by role, and the rules by which each of them is read.

A caller asks for a column by its role (item, user, basket, score, …), and errors call it so. What
a column is then asked for is the same whatever library holds it: labels by number, ready labels or
scores, lists, or values for a learner. `containers` has a file per library, and no other file knows
how one of them spells a missing value, a type or a row.

The type of a column is public and decides what is refused, except in pandas, which infers it from
the rows (`containers/pandas.py`). The label of a value is what `privmax.labels` makes of it. No
message quotes a value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from privmax.errors import DataError, ParameterError, column_error
from privmax.labels import (
    SHORT,
    UNKNOWN,
    identify,
    is_unknown,
    item_label,
    label_by_value,
    read_label,
)
from privmax.sources.engines.base import choose_columns

Numbers = NDArray[np.int64]

Numbered = tuple[Numbers, list[Any]]
"""The number of each row's label, −1 where a value is missing; and the labels by number."""

Lists = tuple[Numbers, Numbers, list[Any]]
"""The number of entries in each row's list; and of all entries what `Numbered` has of rows."""

Labels = Sequence[Any] | None
"""A label by position; None: the labels are the positions."""

Candidates = tuple[Labels, Any]
"""Labels and scores, which are a NumPy array, or a list of numbers."""

NUMBERS, TEXT, MOMENTS, MIXED, OTHER = "numbers", "text", "moments", "mixed", "other"
"""The kinds of a column by its type. Mixed ones may have anything, value by value."""

NO_SCORE = "A score is missing. Drop such candidates, or give them a score."

_SURE = {str, int, bytes}
"""Types of labels of which none is missing, and which are equal only if they are the same."""


@dataclass(frozen=True, repr=False)
class Values:
    """The values of one column, for a learner.

    Args:
        kind: NUMBERS, TEXT, MOMENTS, MIXED or OTHER.
        values: Booleans, whole numbers or floats of NumPy where the kind is NUMBERS, moments in UTC
            of NumPy where it is MOMENTS, else objects; nothing where it is OTHER, which is refused.
    """

    kind: str
    values: NDArray[Any]

    def __repr__(self) -> str:
        return f"Values({self.kind}, <private>)"

    @classmethod
    def of_numbers(cls, array: NDArray[Any]) -> Self:
        """Numbers, where nulls may have made objects of them."""
        whole = array.dtype.kind in "biu"
        return cls(NUMBERS, array if whole else array.astype(np.float64, copy=False))

    @classmethod
    def of_moments(cls, moments: NDArray[Any], missing: NDArray[np.bool_]) -> Self:
        """Return moments of a library that marks what is missing.

        There the number that NumPy takes for NaT, −2^63, is the first moment of all, as it is for
        engines.
        """
        earliest = np.isnat(moments) & ~missing
        if earliest.any():
            numbers = moments.astype(np.int64)
            numbers[earliest] = -(1 << 63) + 1
            moments = numbers.view(moments.dtype)
        return cls(MOMENTS, moments)

    @classmethod
    def of_objects(cls, kind: str, values: Sequence[Any] = ()) -> Self:
        """Objects, whatever they are."""
        return cls(kind, to_objects(values))


@dataclass(frozen=True, repr=False, eq=False)
class TableColumn:
    """One column of private data: values of any types, of which each is read by itself.

    Subclasses read the columns of a library, by the types that those declare.
    """

    values: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<private>)"

    def number_labels(self) -> Numbered:
        """Number the rows by their labels, each of which occurs."""
        return number_list(list(self.values))

    def read_labels(self) -> Sequence[Any]:
        """Read the labels of candidates, of which none may be missing and none occur twice."""
        labels = list(self.values)
        if set(map(type, labels)) <= _SURE:
            return LazyLabels(labels, label_by_value).check(repeated=len(set(labels)) < len(labels))
        labels = list(map(read_label, labels))
        if any(map(is_unknown, labels)):
            raise DataError(UNKNOWN)
        missing, repeated = any(one is None for one in labels), len(set(labels)) < len(labels)
        return LazyLabels(labels).check(missing, repeated)

    def has_missing(self) -> bool:
        """Return whether a value is missing, as far as the library marks it."""
        return False

    def to_array(self) -> NDArray[Any]:
        """Return the values as NumPy has them."""
        return to_objects(list(self.values))

    def read_scores(self) -> Any:
        """Read ready scores, of which none may be missing: an array, or a list of numbers."""
        if self.has_missing():
            raise DataError(NO_SCORE)
        return self.to_array()

    def read_candidates(self) -> Candidates:
        """Read the labels and scores of candidates, where there is no other column."""
        return None, self.read_scores()

    def read_lists(self) -> Lists | None:
        """Number the entries of lists, one per row; None: by its type the column has no lists."""
        return None

    def read_values(self) -> Values:
        """Read the values for a learner, with what the type says of them."""
        return Values(MIXED, self.to_array())


@dataclass(frozen=True, repr=False, eq=False)
class Table(ABC):
    """A frame of some library: columns with names, which are public."""

    data: Any

    def __repr__(self) -> str:
        return f"{type(self).__name__}(<private>)"

    def __len__(self) -> int:
        return len(self.data)

    @property
    def names(self) -> list[Any]:
        """The names of the columns."""
        return list(self.data.columns)

    @abstractmethod
    def find(self, name: Any) -> TableColumn:
        """Find a column that is there."""

    def select(self, names: Sequence[str]) -> Any:
        """Select columns as an Arrow table, with the types that the library declares."""
        raise NotImplementedError

    def to_arrow(
        self, needed: Sequence[str], numbers: Sequence[str | None], user: str | None
    ) -> tuple[Any, dict[str, list[Any]]]:
        """Return the wanted columns as an Arrow table, for an engine to count.

        Args:
            needed: Columns to take, as `choose_columns` has it.
            numbers: Those that hold whole numbers.
            user: The one whose values only have to be told apart.

        Returns:
            The table, and by the name of a column the labels that numbers in it stand for.
        """
        return self.select(choose_columns(self.names, needed)), {}

    def column(self, role: str, name: Any, kind: str = "frame") -> TableColumn:
        """Find the column that an option names, which must be there exactly once.

        Args:
            role: The option, for errors.
            name: The column; None: the option was left out.
            kind: What errors call the table.
        """
        if name is None or name not in self.names:
            raise column_error(role, name, self.names, kind)
        if self.names.count(name) > 1:
            raise ParameterError(
                role, name, f"the {kind} has several columns of that name", "Rename all but one."
            )
        return self.find(name)

    def take(self, index: NDArray[np.intp]) -> Self:
        """Take some rows."""
        return type(self)(take_rows(self.data, index))


@dataclass(frozen=True, repr=False, eq=False)
class LazyLabels(Sequence[Any]):
    """A column of labels in their canonical form, made one at a time: a release needs few."""

    column: Any
    form: Callable[[Any], Any] | None = None

    def __len__(self) -> int:
        return len(self.column)

    def __getitem__(self, index: Any) -> Any:
        return self.column[index] if self.form is None else self.form(self.column[index])

    def check(self, missing: bool = False, repeated: bool = False) -> Self:
        """Return the labels of candidates, unless one is missing or occurs twice."""
        if missing:
            raise DataError(
                "A label is missing. Drop such candidates: one without a label cannot be released."
            )
        if repeated:
            raise DataError(
                "A label occurs more than once. Add up or deduplicate its scores before selecting."
            )
        return self


def no_scores(data: object) -> DataError:
    """Return the error about data that is no scores."""
    return DataError(
        f"Scores cannot be read from {type(data).__name__}. Give a mapping from label to score, a "
        f"list, a "
        "one-dimensional NumPy array, or a pandas, polars or Arrow object."
    )


def number_list(values: list[Any]) -> Numbered:
    """Number values of any types by their labels.

    Raises:
        DataError: One cannot be told from others for certain.

    Examples:
        >>> numbers, labels = number_list(["b", 1.0, None, "b"])
        >>> numbers.tolist(), labels
        ([0, 1, -1, 0], ['b', 1])
    """
    kinds = set(map(type, values))
    if kinds == {str} or (kinds == {int} and min(values) > -SHORT and max(values) < SHORT):
        place = {label: number for number, label in enumerate(dict.fromkeys(values))}
        return np.fromiter(map(place.__getitem__, values), np.int64, len(values)), list(place)
    index: dict[Any, int] = {}
    labels: list[Any] = []
    numbers = np.empty(len(values), np.int64)
    for at, value in enumerate(values):
        label = item_label(value)
        numbers[at] = -1 if label is None else index.setdefault(identify(label), len(index))
        if len(labels) < len(index):
            labels.append(label)
    return numbers, labels


def to_objects(values: Sequence[Any]) -> NDArray[Any]:
    """Return an array of objects, whatever they are."""
    return np.fromiter(values, object, len(values))  # which asks no value whether it is a list


def slice_rows(rows: Any, start: int, stop: int) -> Any:
    """Return some rows, as what they are part of.

    Examples:
        >>> slice_rows([1, 2, 3], 1, 3)
        [2, 3]
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[start:stop]
    if callable(getattr(rows, "slice", None)):  # polars and Arrow
        return rows.slice(start, stop - start)
    return rows[start:stop]


def take_rows(rows: Any, index: NDArray[np.intp]) -> Any:
    """Return some rows, as what they are part of.

    Examples:
        >>> take_rows([1, 2, 3], np.array([0, 2]))
        [1, 3]
    """
    if hasattr(rows, "iloc"):
        return rows.iloc[index]
    if callable(getattr(rows, "take", None)) and not isinstance(rows, np.ndarray):
        return rows.take(index)  # Arrow
    if hasattr(rows, "to_numpy") and hasattr(rows, "shape"):
        return rows[index.tolist()]  # polars
    if isinstance(rows, (list, tuple)):
        return [rows[place] for place in index.tolist()]
    return rows[index]
