"""Columns of a schema, numbers and names: the public cell that every value falls into.

A cell follows from the value and the declaration alone. No value makes reading fail; only the type
of a column can do that.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from copy import copy
from decimal import Context, Decimal
from fractions import Fraction
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from privmax.display import in_words
from privmax.errors import DataError, ParameterError
from privmax.learning.classes.grid import MOST_CELLS, Grid
from privmax.learning.columns import NUMBERS, OTHER, TEXT, Column, read_column

Cells = NDArray[np.uint16]
"""The cell of every value."""

SPACES = " \t\n\r\v\f"
"""What is left out at both ends of a text."""

NUMERAL = r"^[+-]?([0-9]{1,100}[.]?[0-9]{0,100}|[.][0-9]{1,100})([eE][+-]?[0-9]{1,2})?$"
"""A text that is read as a number. It is finite then, and every engine reads the same number."""

WHOLE = re.compile("0|-?[1-9][0-9]{0,15}")
"""A text that stands for a whole number, too: the listed value 1 is the text "1", and 1.0."""

EXACT = 1 << 53
"""Whole numbers from here on are rounded in floats, and are no listed value: a null may make floats
of the numbers beside it."""

_SCALES = ("linear", "log")

_DIGITS = 8
"""Of a number in words."""


class _Cells:
    """What both kinds of columns have in common."""

    ordered: ClassVar[bool]
    name: str = "value"
    cells: int
    missing: Any

    @property
    def missing_cell(self) -> int | None:
        """The cell of missing values, which is the first; None: it has none of its own."""
        return None if self.missing is None else 0

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self._parameters().items())
        return f"{type(self).__name__}({given})"

    def _parameters(self) -> dict[str, Any]:
        """The parameters that were given, or have another value than None."""
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The parameters as TOML and JSON have them."""
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in self._parameters().items()
        }

    def with_name(self, name: str) -> Self:
        """The same column with a name, which `describe` uses."""
        column = copy(self)
        column.name = name
        return column

    def codes(self, values: Any) -> Cells:
        """The cell of every value.

        Args:
            values: A NumPy array, a list, a Series of pandas or polars, or an array of Arrow.

        Raises:
            DataError: The type of the column does not fit. No value is ever a reason.
        """
        with np.errstate(all="ignore"):  # a warning would tell of a value
            return self.codes_of(read_column(values))

    def codes_of(self, column: Column) -> Cells:
        """The same of a column that was read."""
        if column.kind == OTHER:
            raise DataError(
                f"Column {in_words(self.name)} holds dates, spans of time, bytes or lists by its "
                "type. Convert it to numbers or to text first."
            )
        if column.kind == NUMBERS:
            return self._of_numbers(column.values)
        self.check_text(column.kind)
        return self._of_objects(column.values)

    def check_text(self, kind: str) -> None:
        """Refuse text, by the type of the column, where numbers are meant."""

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        raise NotImplementedError

    def _of_objects(self, values: NDArray[Any]) -> Cells:
        """Value by value; texts that are alike are read once."""
        listed = values.tolist()
        if not set(map(id, map(type, listed))) <= {id(str), id(type(None))}:
            return np.fromiter(map(self._of_object, listed), np.uint16, len(listed))
        known = {value: self._of_object(value) for value in set(listed)}
        return np.fromiter(map(known.__getitem__, listed), np.uint16, len(listed))

    def _of_object(self, value: Any) -> int:
        """The cell of a value of any type; whatever is wrong with it, it has one. What it says of
        itself is not asked for: that may be anything, or fail.
        """
        if issubclass(type(value), str):
            return self._of_text(str.__str__(value).strip(SPACES))
        boolean = issubclass(type(value), (bool, np.bool_))
        array = np.array([bool(value) if boolean else _as_float(value)])
        return int(self._of_numbers(array)[0])

    def _of_text(self, text: str) -> int:
        raise NotImplementedError


class Number(_Cells):
    """A column of numbers: equal cells between two public bounds, or cells cut at thresholds.

    Every value has a cell. Numbers outside the bounds fall into the first or the last. Text that
    spells a number counts as that number. Whatever is no number (None, NaN, empty or other text)
    is missing: it falls into a cell of its own if `missing` is given, otherwise into the first.

    Args:
        low: Public lower bound. Not computed from the data.
        high: Public upper bound.
        cells: How many cells lie between the bounds. (The attribute `cells` counts one more where
            missing values have their own.)
        scale: "linear": equal cells; "log": cells that grow with the distance from low, equal in
            log(1 + x − low), as for amounts of money.
        thresholds: Instead of these: where to cut, ascending.
        missing: Give missing values a cell of their own: True, or what else stands for a missing
            value, such as "?" or −1, or a list of such.

    Attributes:
        cells: The number of all cells; `codes` are 0 … cells − 1.
        cuts: The thresholds, ascending. Cells are low ≤ x < high.
        missing_cell: 0 if missing values have a cell of their own, which precedes all others; else
            None.
        ordered: True: apart from that cell, higher cells hold higher numbers.

    Raises:
        ParameterError: An argument is missing or wrong.

    Examples:
        >>> age = Number(0, 100, cells=4, missing="?")
        >>> age.cells, age.codes([12, "30", 99.5, "?", None]).tolist()
        (5, [1, 2, 4, 0, 0])
        >>> [age.describe(cell) for cell in range(3)]
        ['value is missing', 'value < 25', '25 <= value < 50']
        >>> age
        Number(low=0, high=100, cells=4, missing='?')
    """

    ordered = True

    def __init__(
        self,
        low: float | None = None,
        high: float | None = None,
        *,
        cells: int = 16,
        scale: str = "linear",
        thresholds: Sequence[float] | None = None,
        missing: Any = None,
    ) -> None:
        if not isinstance(scale, str) or scale not in _SCALES:
            raise ParameterError("scale", scale, 'it must be "linear" or "log"', "Leave it out.")
        if thresholds is not None and scale != "linear":
            raise ParameterError("scale", scale, "thresholds are given", "Leave it out.")
        self.missing, markers = _read_missing(missing)
        self.marker_texts = frozenset(map(_text_of, markers))
        self.marker_numbers = tuple(
            number for number in map(_marker_number, markers) if number is not None
        )
        self.cuts = _read_cuts(low, high, cells, thresholds)
        if scale == "log":
            self.cuts = _log_cuts(_plain(low), _plain(high), cells)
        self.cuts.flags.writeable = False
        self.cells = len(self.cuts) + 1 + (self.missing is not None)
        if self.cells > MOST_CELLS:
            raise ParameterError(
                "cells",
                self.cells,
                f"there must be at most {MOST_CELLS} with the one for missing values",
                "For example 32.",
            )
        self._shown: dict[str, Any]
        if thresholds is None:
            self._shown = {"low": _plain(low), "high": _plain(high), "cells": int(cells)}
            self._shown |= {"scale": scale} if scale == "log" else {}
        else:
            self._shown = {"thresholds": tuple(map(_plain, self.cuts.tolist()))}

    def _parameters(self) -> dict[str, Any]:
        return self._shown | ({} if self.missing is None else {"missing": self.missing})

    def describe(self, cell: int) -> str:
        """A cell in words.

        Examples:
            >>> Number(thresholds=[18, 65]).with_name("age").describe(2)
            'age >= 65'
        """
        name, first = in_words(self.name), 0 if self.missing is None else 1
        if not 0 <= cell < self.cells:
            raise ParameterError("cell", cell, f"there are {self.cells}", "For example 0.")
        if cell < first:
            return f"{name} is missing"
        cuts, place = [number_in_words(cut) for cut in self.cuts.tolist()], cell - first
        if not cuts:
            return f"{name} is any number"
        if place == 0:
            return f"{name} < {cuts[0]}"
        if place == len(cuts):
            return f"{name} >= {cuts[-1]}"
        return f"{cuts[place - 1]} <= {name} < {cuts[place]}"

    def check_text(self, kind: str) -> None:
        if kind == TEXT and self.missing is None:
            raise DataError(
                f"Column {in_words(self.name)} is text by its type, and the schema says numbers. "
                "Declare it as a Category, convert it, or give missing, so that text that is no "
                "number has a cell."
            )

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        numbers = values.astype(np.float64, copy=False)
        first = 0 if self.missing is None else 1
        cells = _count_cuts(numbers, self.cuts)
        cells += np.uint16(first)
        gone = np.isnan(numbers)
        for marker in self.marker_numbers:
            gone |= numbers == marker
        cells[gone] = 0
        return cells

    def _of_text(self, text: str) -> int:
        if text in self.marker_texts or re.match(NUMERAL, text) is None:
            return 0
        return int(self._of_numbers(np.array([float(text)]))[0])


class Category(_Cells):
    """A column whose values are names: a cell for each that is listed, and one for all others.

    Every value has a cell: what is not listed falls into the last one. None, NaN and empty text are
    missing: they fall into a cell of their own if `missing` is given, otherwise into the last one
    as well. Spaces around a text do not count, and 1, 1.0 and "1" are the same value.

    Args:
        values: The public list: text, whole numbers, or True and False. Never
            computed from the data, where one person's value may be the only one of its kind.
        missing: Give missing values a cell of their own: True, or what else stands for a missing
            value, such as "?", or a list of such.

    Attributes:
        cells: The number of all cells; `codes` are 0 … cells − 1.
        values: What is listed.
        missing_cell: 0 if missing values have a cell of their own, which precedes all others; else
            None.
        ordered: False.

    Raises:
        ParameterError: An argument is wrong.

    Examples:
        >>> work = Category(["Private", "State-gov"], missing="?")
        >>> work.cells, work.codes([" Private", "State-gov", "Private-ish", "?"]).tolist()
        (4, [1, 2, 3, 0])
        >>> [work.with_name("work").describe(cell) for cell in range(4)]
        ['work is missing', 'work = Private', 'work = State-gov', 'work is not listed']
    """

    ordered = False

    def __init__(self, values: Iterable[Any], *, missing: Any = None) -> None:
        listed = _read_values(values)
        self.missing, markers = _read_missing(missing)
        known = [_text_of(value) for value in listed]
        if len(known) >= MOST_CELLS:  # before they are compared
            raise _too_many(known, MOST_CELLS - (self.missing is not None))
        seen: set[Any] = {"", *map(_text_of, markers)}
        for value, text in zip(listed, known, strict=True):
            if text in seen or value in seen:  # True is 1 to Python
                raise ParameterError(
                    "values",
                    value,
                    "it is empty, stands for missing values, or is listed twice (1, '1' and True "
                    "are not told apart)",
                    "List every value once.",
                )
            seen |= {text, value}
        first = 0 if self.missing is None else 1
        self.values = tuple(listed)
        self.cells = len(known) + 1 + first
        if self.cells > MOST_CELLS:
            raise _too_many(known, MOST_CELLS - first)
        self.known: dict[str, int] = {text: cell for cell, text in enumerate(known, first)}
        """The cell of every value that is known, by its text; values that stand for missing ones
        have the same cell as missing ones."""
        for value in (True, False):  # as JSON writes them
            if value in [one for one in listed if isinstance(one, bool)]:
                self.known.setdefault(str(value).lower(), self.known[str(value)])
        self.known |= dict.fromkeys(["", *map(_text_of, markers)], self.other if not first else 0)
        self.numbers: dict[float, int] = {
            float(text): cell
            for text, cell in self.known.items()
            if WHOLE.fullmatch(text) and abs(int(text)) < EXACT
        }
        """The same of those that are numbers."""
        self.numbers |= {marker: 0 for marker in markers if isinstance(marker, float)}

    @property
    def other(self) -> int:
        """The cell of values that are not listed: the last."""
        return self.cells - 1

    def _parameters(self) -> dict[str, Any]:
        listed = {"values": list(self.values)}
        return listed | ({} if self.missing is None else {"missing": self.missing})

    def describe(self, cell: int) -> str:
        """A cell in words."""
        name, first = in_words(self.name), 0 if self.missing is None else 1
        if not 0 <= cell < self.cells:
            raise ParameterError("cell", cell, f"there are {self.cells}", "For example 0.")
        if cell < first:
            return f"{name} is missing"
        if cell == self.other:
            return f"{name} is not listed"
        return f"{name} = {in_words(self.values[cell - first])}"

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        cells = np.full(len(values), self.other, np.uint16)
        if values.dtype.kind == "b":
            for value in (True, False):
                cells[values == value] = self.known.get(str(value), self.other)
            return cells
        for number, cell in self.numbers.items():
            cells[values == number] = cell
        cells[np.isnan(values)] = self.known[""]
        return cells

    def _of_text(self, text: str) -> int:
        return self.known.get(text, self.other)


def number_in_words(value: float) -> str:
    """A threshold as people read it.

    Examples:
        >>> number_in_words(40.0), number_in_words(1 / 3)
        ('40', '0.33333333')
    """
    whole = float(value).is_integer() and abs(value) < EXACT
    return str(int(value)) if whole else f"{value:.{_DIGITS}g}"


def _read_cuts(low: Any, high: Any, cells: int, thresholds: Any) -> NDArray[np.float64]:
    """The bounds between the cells of a number, which must be one column's."""
    if thresholds is None:
        for name, value in (("low", low), ("high", high)):
            if value is None:
                raise ParameterError.required(
                    name, "a number needs public bounds. Do not compute them from the data: that "
                    "would release somebody's extreme values",
                    "For example Number(0, 100), or Number(thresholds=[18, 65]).",
                )  # fmt: skip
            if isinstance(value, bool) or not isinstance(value, Real) or not _is_finite(value):
                raise ParameterError(name, value, "it must be a finite number", "For example 0.")
    elif not _is_list_of_numbers(thresholds):
        raise ParameterError(
            "thresholds", thresholds, "it must be a list of ascending numbers", "For example [18]."
        )
    (cuts,) = Grid(low, high, cells, thresholds).cuts(1)
    return cuts


_FEW = 100
"""Up to so many cuts numbers are compared with each, which is faster than to search among them."""

_BLOCK = 1 << 14
"""Numbers compared at a time: they stay in the cache from one cut to the next."""


def _count_cuts(numbers: NDArray[np.float64], cuts: NDArray[np.float64]) -> Cells:
    """How many cuts are at or below each number; of NaN any."""
    if len(cuts) > _FEW:
        return np.searchsorted(cuts, numbers, side="right").astype(np.uint16)
    found = np.empty(len(numbers), np.uint16)
    for start in range(0, len(numbers), _BLOCK):
        some = numbers[start : start + _BLOCK]
        reached = np.zeros(len(some), np.uint8)
        for cut in cuts:
            reached += some >= cut
        found[start : start + _BLOCK] = reached
    return found


def _read_values(values: Any) -> list[Any]:
    """The values of a category."""
    given = values.tolist() if isinstance(values, np.ndarray) else values
    ordered = isinstance(given, (Sequence, range)) and not isinstance(given, (str, bytes))
    listed = [_item(value) for value in given] if ordered else []
    for value in listed:
        if not _is_listable(value):
            raise ParameterError(
                "values",
                value,
                "a value must be text, a whole number below 2^53, True or False",
                "Declare other numbers as a Number.",
            )
    if not listed:
        raise ParameterError(
            "values",
            values if isinstance(values, (str, list, tuple)) else f"<{type(values).__name__}>",
            "it must be a list of at least one value",
            'For example ["no", "yes"].',
        )
    return [value.strip(SPACES) if isinstance(value, str) else value for value in listed]


def _too_many(listed: Sequence[str], limit: int) -> ParameterError:
    return ParameterError(
        "values",
        f"{len(listed)} values",
        f"there must be fewer than {limit}",
        "List the frequent ones.",
    )


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_list_of_numbers(thresholds: Any) -> bool:
    """Whether it may be the thresholds of one column."""
    listed = hasattr(thresholds, "__len__") and not isinstance(thresholds, (str, Mapping, Set))
    return listed and all(isinstance(one, Real) and _is_finite(one) for one in thresholds)


def _item(value: Any) -> Any:
    """A plain value of Python, where it is one of NumPy or a member of an Enum: as it is shown, so
    it is meant.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, str):
        return str.__str__(value)
    return int.__int__(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _is_listable(value: Any) -> bool:
    return isinstance(value, (str, bool)) or (isinstance(value, int) and abs(value) < EXACT)


def _read_missing(missing: Any) -> tuple[Any, list[Any]]:
    """What to show of `missing`, and what stands for missing values beside None, NaN and ""."""
    if missing is None or missing is True:
        return missing, []
    several = isinstance(missing, (list, tuple))
    markers = [_item(marker) for marker in (missing if several else [missing])]
    for marker in markers:
        number = isinstance(marker, float) and math.isfinite(marker)
        if not markers or isinstance(marker, bool) or not (_is_listable(marker) or number):
            raise ParameterError(
                "missing",
                missing,
                "it must be True, a text or a number, or a list of these",
                'For example "?".',
            )
    markers = [one.strip(SPACES) if isinstance(one, str) else one for one in markers]
    return (tuple(markers) if several else markers[0]), markers


def _text_of(value: Any) -> str:
    """The text that a listed value, or one that stands for missing ones, is known by."""
    if isinstance(value, float) and value.is_integer() and abs(value) < EXACT:
        return str(int(value))
    return str(value)


def _marker_number(marker: Any) -> float | None:
    if not isinstance(marker, str):
        return float(marker)
    return float(marker) if re.match(NUMERAL, marker) else None


_NUMBERS = (np.integer, np.floating, Decimal, Fraction)
"""Types of numbers beside those of Python."""


def _as_float(value: Any) -> float:
    """A value as a number; NaN if it is none."""
    kind = type(value)
    if issubclass(kind, float):
        return float.__float__(value)
    whole = issubclass(kind, int)
    number = whole or any(one in kind.__mro__ for one in _NUMBERS)
    if not number or issubclass(kind, np.timedelta64):
        return math.nan
    try:
        return float(int.__int__(value) if whole else value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except Exception:  # a signaling NaN; and somebody's own class may raise what it likes
        return math.nan


def _plain(value: Any) -> float | int:
    """A bound as it is shown: 17, and not np.float64(17.0)."""
    number = float(value)
    return int(number) if number.is_integer() and abs(number) < EXACT else number


def _log_cuts(low: float, high: float, cells: int) -> NDArray[np.float64]:
    """Cells that are equal in log(1 + x − low); the same floats on every machine."""
    context = Context(prec=40)
    span = context.ln(context.add(1, context.subtract(Decimal(high), Decimal(low))))
    cuts = []
    for place in range(1, cells):
        power = context.divide(context.multiply(span, place), cells)
        cuts.append(float(context.add(Decimal(low), context.subtract(context.exp(power), 1))))
    found = np.array(cuts)
    if not (np.diff(found) > 0).all():
        raise ParameterError(
            "cells", cells, "there are too few floats between low and high", "Use fewer cells."
        )
    return found
