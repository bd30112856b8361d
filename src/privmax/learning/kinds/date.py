"""Date: a column of dates or moments, in cells between public bounds.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.classes.grid import MOST_CELLS
from privmax.learning.kinds.contract import Cells
from privmax.learning.kinds.moments import (
    MOMENT,
    moment_of_seconds,
    seconds_of_array,
    seconds_of_object,
    seconds_of_text,
    sort_key,
    text_of_seconds,
)
from privmax.learning.kinds.ordered import Ordered, count_cuts
from privmax.learning.kinds.values import read_missing_flag
from privmax.numbers import plain_int
from privmax.sources.table import MOMENTS, NUMBERS

UNITS = ("day", "week", "month", "year")
"""Allowed values of `every`."""

_CELLS = 16
"""The number of cells if neither `cells` nor `every` is given."""


class Date(Ordered):
    """A column of dates or moments: cells between two public bounds.

    Every value has a cell. Moments outside the bounds fall into the first or the last. A date is
    its first moment, midnight. **A moment with a time zone is taken in UTC; one without stands as
    it is written, as if that were UTC.** Text counts if it is written as 2024-03-01, perhaps with a
    time (2024-03-01T05:30, 2024-03-01 05:30:00.25), and after seconds perhaps with Z, +00:00 or +00
    for UTC. Whatever else there is (None, NaT, numbers, 2024-02-30, text with another zone) is
    missing: it falls into a cell of its own if `missing` is given, otherwise into the first.

    Tables of engines that keep dates as text, as those of SQLite do, are read with up to 4,096
    cells.

    Args:
        low: Public lower bound: a date, a moment, or such a text. Not computed from the data. All
            bounds are whole seconds, and parts of a second are left out.
        high: Public upper bound.
        cells: How many equal cells lie between the bounds; 16 if `every` is not given either.
        every: "day", "week", "month" or "year", instead of `cells`: a cell for each of the
            calendar. Weeks begin on Monday.
        missing: True: give missing values a cell of their own.

    Attributes:
        cells: The number of all cells; `codes` are 0 … cells − 1.
        cuts: The moments between the cells, ascending, in UTC.
        missing_cell: 0 if missing values have a cell of their own, which precedes all others; else
            None.
        ordered: True: apart from that cell, higher cells have later moments.

    Raises:
        ParameterError: An argument is missing or wrong.

    Examples:
        >>> joined = Date("2024-01-01", "2024-04-01", every="month", missing=True)
        >>> joined.cells, joined.codes(["2024-01-31", "2024-02-01T00:00:00Z", "soon"]).tolist()
        (4, [1, 2, 0])
        >>> [joined.with_name("joined").describe(cell) for cell in range(3)]
        ['joined is missing', 'joined < 2024-02-01', '2024-02-01 <= joined < 2024-03-01']
        >>> joined
        Date(low='2024-01-01', high='2024-04-01', every='month', missing=True)
    """

    kind = "date"
    settings = ("low", "high", "cells", "every", "missing")
    bounds_remedy = (
        "Do not compute them from the data: that would release one person's extreme values. For "
        'example low = "2020-01-01" and high = "2030-01-01".'
    )
    any_value = "any date"
    cuts: NDArray[np.datetime64]

    def __init__(
        self,
        low: datetime.date | str | None = None,
        high: datetime.date | str | None = None,
        *,
        cells: int | None = None,
        every: str | None = None,
        missing: bool | None = None,
    ) -> None:
        first, last = _read_bound("low", low), _read_bound("high", high)
        if not first < last:
            raise ParameterError("high", high, "it must be later than low", "Exchange the two.")
        self.missing = read_missing_flag(missing, "values that are not dates are missing")
        self._shown: dict[str, Any] = {"low": text_of_seconds(first), "high": text_of_seconds(last)}
        if every is None:
            cells = _CELLS if cells is None else cells
            self._seconds = _equal_cuts(first, last, cells)
            self._shown |= {"cells": int(cells)}
        else:
            if cells is not None:
                raise ParameterError("cells", cells, "every is given", "Leave one of them out.")
            self._seconds = _calendar_cuts(first, last, every)
            self._shown |= {"every": str(every)}
        self.cuts = self._seconds.astype(np.int64).view("M8[s]")
        for array in (self.cuts, self._seconds):
            array.flags.writeable = False
        self.cells = self._count_cells()
        self._texts = list(map(text_of_seconds, self._seconds.tolist()))

    def _parameters(self) -> dict[str, Any]:
        return self._shown | ({} if self.missing is None else {"missing": True})

    def _cut_in_words(self, place: int) -> str:
        return self._texts[place]

    def _threshold(self, place: int) -> str:
        return self._texts[place]

    def _find_threshold(self, threshold: Any) -> int:
        seconds = seconds_of_text(threshold) if isinstance(threshold, str) else 0.0
        return int(np.searchsorted(self._seconds, seconds))

    def check_type(self, kind: str) -> None:
        if kind == NUMBERS and self.missing is None:
            raise DataError(
                f"Column {format_label(self.name)} has numbers by its type, and the schema says "
                "dates. Convert it to dates, or set missing, so that other values have a cell."
            )
        if kind != MOMENTS:
            super().check_type(kind)

    def _of_moments(self, values: NDArray[Any]) -> Cells:
        return self._of_seconds(seconds_of_array(values))

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        return np.zeros(len(values), np.uint16)  # nobody said what unit they are in

    def _of_object(self, value: Any) -> int:
        return int(self._of_seconds(np.array([seconds_of_object(value)]))[0])

    def _of_seconds(self, seconds: NDArray[np.float64]) -> Cells:
        cells = count_cuts(seconds, self._seconds)
        cells += np.uint16(self.missing is not None)
        cells[np.isnan(seconds)] = 0
        return cells

    def _text_expression(self, values: Any) -> Any:
        import ibis

        from privmax.learning.expressions import holder_of, search_texts

        text = holder_of(values).strip(values)
        key = text.substr(0, 10) + text.substr(11, 8)
        cell = search_texts(key, list(map(sort_key, self._seconds.tolist())))
        is_moment = holder_of(text).matches(text, MOMENT)
        return ibis.ifelse(is_moment, cell + int(self.missing is not None), 0)

    def _moment_expression(self, values: Any) -> Any:
        import ibis

        from privmax.learning.expressions import search_moments

        cell = search_moments(values, list(map(moment_of_seconds, self._seconds.tolist())))
        return ibis.ifelse(values.isnull(), 0, cell + int(self.missing is not None))

    def _truth_expression(self, values: Any) -> Any:
        return self._number_expression(values, None)

    def _number_expression(self, number: Any, kind: Any, floating: bool = False) -> Any:
        return number.isnull().ifelse(0, 0)  # a column, where a literal would be one value


def _read_bound(name: str, value: Any) -> float:
    """Return the seconds of a bound."""
    if value is None:
        raise ParameterError.required(
            name, "a date needs public bounds. Do not compute them from the data: that would "
            "release one person's extreme values",
            'For example Date("2020-01-01", "2030-01-01").',
        )  # fmt: skip
    seconds = seconds_of_object(value)
    if not _FIRST <= seconds <= _LAST:  # NaN is not, either
        raise ParameterError(
            name,
            value,
            "it must be a date or a moment of the years 1 to 9999, or a text such as 2024-03-01 or "
            "2024-03-01T05:30:00",
            'For example "2020-01-01".',
        )
    return seconds


_FIRST, _LAST = map(seconds_of_text, ("0001-01-01", "9999-12-31"))
"""Bounds of bounds: what lies between them is a moment of Python."""


def _equal_cuts(first: float, last: float, cells: Any) -> NDArray[np.float64]:
    """Cuts between equal cells, at whole seconds."""
    number = plain_int(cells)
    if number is None or not 1 <= number <= MOST_CELLS:
        raise ParameterError(
            "cells", cells, f"it must be a whole number from 1 to {MOST_CELLS}", "For example 12."
        )
    span = int(last - first)
    if number > span:
        raise ParameterError(
            "cells", cells, f"there are {span} seconds between low and high", "Use fewer cells."
        )
    cuts = [first + span * place // number for place in range(1, number)]
    return np.array(cuts, np.float64)


def _calendar_cuts(first: float, last: float, every: Any) -> NDArray[np.float64]:
    """Cuts where days, weeks, months or years of the calendar begin."""
    if not isinstance(every, str) or every not in UNITS:
        raise ParameterError(
            "every", every, f"it must be one of {', '.join(UNITS)}", 'For example "month".'
        )
    code = every[0].upper()
    low, high = (np.datetime64(int(bound), "s") for bound in (first, last))
    if every == "week":  # those of NumPy begin on Thursday, as 1970 did
        monday = np.datetime64("0000-12-25", "D")
        weeks = ((low.astype("M8[D]") - monday) // np.timedelta64(7, "D")).astype(int)
        start = monday + np.timedelta64(7 * int(weeks), "D")
        step: Any = np.timedelta64(7, "D")
        end = high.astype("M8[D]") + np.timedelta64(1, "D")
        begun = np.arange(start, end, step)
    else:
        units = [int(bound.astype(f"M8[{code}]").astype(np.int64)) for bound in (low, high)]
        begun = np.arange(units[0], units[1] + 1).astype(f"M8[{code}]")
    seconds = begun.astype("M8[s]")
    seconds = seconds[(low < seconds) & (seconds < high)]
    if len(seconds) >= MOST_CELLS - 1:
        raise ParameterError(
            "every",
            every,
            f"there would be {len(seconds) + 1} cells, and there must be fewer than {MOST_CELLS}",
            'For example "month".',
        )
    cuts: NDArray[np.float64] = seconds.astype(np.int64).astype(np.float64)
    return cuts
