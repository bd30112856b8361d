"""Number: a column of numbers, in cells between public bounds.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence, Set
from decimal import Context, Decimal
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privmax.display import format_label
from privmax.errors import DataError, ParameterError
from privmax.learning.classes.grid import Grid
from privmax.learning.kinds.contract import Cells
from privmax.learning.kinds.ordered import Ordered, count_cuts
from privmax.learning.kinds.values import (
    EXACT,
    NUMERAL,
    number_in_words,
    read_missing,
    text_of,
)
from privmax.sources.table import TEXT

_SCALES = ("linear", "log")


class Number(Ordered):
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
        ordered: True: apart from that cell, higher cells have higher numbers.

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

    kind = "number"
    implied = ""
    settings = ("low", "high", "cells", "scale", "thresholds", "missing")
    bounds_remedy = (
        "Do not compute them from the data: that would release one person's extreme values. For "
        "example low = 0 and high = 100, or thresholds = [18, 65]."
    )
    any_value = "any number"
    cuts: NDArray[np.float64]

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
        self.missing, markers = read_missing(missing)
        self.marker_texts = frozenset(map(text_of, markers))
        self.marker_numbers = tuple(
            number for number in map(_marker_number, markers) if number is not None
        )
        self.cuts = _read_cuts(low, high, cells, thresholds)
        if scale == "log":
            self.cuts = _log_cuts(_plain(low), _plain(high), int(cells))
        self.cuts.flags.writeable = False
        self.cells = self._count_cells()
        self._shown: dict[str, Any]
        if thresholds is None:
            self._shown = {"low": _plain(low), "high": _plain(high), "cells": int(cells)}
            self._shown |= {"scale": scale} if scale == "log" else {}
        else:
            self._shown = {"thresholds": tuple(map(_plain, self.cuts.tolist()))}

    def _parameters(self) -> dict[str, Any]:
        return self._shown | ({} if self.missing is None else {"missing": self.missing})

    def _cut_in_words(self, place: int) -> str:
        return number_in_words(float(self.cuts[place]))

    def _threshold(self, place: int) -> float:
        return float(self.cuts[place])

    def _find_threshold(self, threshold: Any) -> int:
        return int(np.searchsorted(self.cuts, threshold))

    def check_type(self, kind: str) -> None:
        super().check_type(kind)
        if kind == TEXT and self.missing is None:
            raise DataError(
                f"Column {format_label(self.name)} is text by its type, and the schema says "
                "numbers. Declare it as a Category, convert it, or set missing, so that other "
                "text has a cell."
            )

    def _of_numbers(self, values: NDArray[Any]) -> Cells:
        numbers = values.astype(np.float64, copy=False)
        first = 0 if self.missing is None else 1
        cells = count_cuts(numbers, self.cuts)
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

    def _text_expression(self, values: Any) -> Any:
        import ibis

        from privmax.learning.expressions import holder_of, is_text

        text = holder_of(values).strip(values)
        number = ibis.ifelse(holder_of(text).matches(text, NUMERAL), text, None).cast("float64")
        cell = self._number_expression(number, number.type())
        for marker in self.marker_texts:
            cell = ibis.ifelse(is_text(text.fill_null(""), marker), 0, cell)
        return cell

    def _truth_expression(self, values: Any) -> Any:
        import ibis

        number = ibis.cases((values == True, 1.0), (values == False, 0.0), else_=None)  # noqa: E712
        return self._number_expression(number, number.type())

    def _number_expression(self, number: Any, kind: Any, floating: bool = False) -> Any:
        import ibis

        from privmax.learning.expressions import count_cuts, literal_float

        gone = number.isnull()
        if floating:
            gone |= number.isnan()
        for marker in self.marker_numbers:
            gone |= number == literal_float(marker)
        first = 0 if self.missing is None else 1
        return ibis.ifelse(gone, 0, count_cuts(number, kind, self.cuts) + first)


def _read_cuts(low: Any, high: Any, cells: int, thresholds: Any) -> NDArray[np.float64]:
    """Return the bounds between the cells of a number, which must be one column's."""
    if thresholds is None:
        for name, value in (("low", low), ("high", high)):
            if value is None:
                raise ParameterError.required(
                    name, "a number needs public bounds. Do not compute them from the data: that "
                    "would release one person's extreme values",
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


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def _is_list_of_numbers(thresholds: Any) -> bool:
    """Return whether it may be the thresholds of one column."""
    listed = hasattr(thresholds, "__len__") and not isinstance(thresholds, (str, Mapping, Set))
    return listed and all(isinstance(one, Real) and _is_finite(one) for one in thresholds)


def _marker_number(marker: Any) -> float | None:
    if not isinstance(marker, str):
        return float(marker)
    return float(marker) if re.match(NUMERAL, marker) else None


def _plain(value: Any) -> float | int:
    """Return a bound as it is shown: 17, and not np.float64(17.0)."""
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
    thresholds = np.array(cuts)
    if not (np.diff(thresholds) > 0).all():
        raise ParameterError(
            "cells", cells, "there are too few floats between low and high", "Use fewer cells."
        )
    return thresholds
