"""The cells of a schema as Ibis expressions: an engine computes the same cells as `Schema.codes`.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privmax.display import in_words
from privmax.errors import DataError, column_error
from privmax.learning.cells import EXACT, NUMERAL, Category, Number
from privmax.learning.columns import MIXED, TEXT
from privmax.learning.schema import Schema
from privmax.sources.engines import engine_of
from privmax.sources.engines.base import call

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue, Table
    from numpy.typing import NDArray


def cell_expressions(schema: Schema, table: Table, *, typed: bool = True) -> list[IntegerValue]:
    """The cell of every value as an expression, for each column of a schema.

    Args:
        typed: Whether the types of the columns are declared. Those of a CSV file are not, so text
            may be numbers.
    """
    for name in schema.names:
        if name not in table.columns:
            raise column_error("schema", name, list(table.columns), "table")
    return [_cells(column, table[column.name], typed) for column in schema.columns]


def _cells(column: Number | Category, values: Any, typed: bool) -> IntegerValue:
    kind = values.type()
    if kind.is_string():
        column.check_text(TEXT if typed else MIXED)
        return _of_text(column, values)
    if kind.is_boolean():
        return _of_boolean(column, values)
    if not kind.is_numeric():
        raise DataError(
            f"Column {in_words(column.name)} holds dates, spans of time, bytes or lists by its "
            "type. Convert it to numbers or to text first."
        )
    return _of_number(column, values.cast("float64"), kind, kind.is_floating() and _has_nan(values))


_WITHOUT_NAN = ("mysql", "sqlite")
"""Engines, as Ibis calls them, that have no NaN, and no function that asks for it."""

_STRIPPING = ("duckdb", "postgres", "sqlite")
"""Engines whose `strip` leaves out `SPACES`, all of them and nothing else: that of Spark takes the
letters v and f, that of MariaDB leaves a space before a tab, that of polars knows more spaces."""

_SPACES = r"[ \t\n\r\x0b\x0c]+"
"""`SPACES` as a regular expression."""


def _has_nan(values: Any) -> bool:
    return _engine_name(values) not in _WITHOUT_NAN


def _engine_name(values: Any) -> str | None:
    """The engine, as Ibis calls it; None: no engine holds the table yet."""
    import ibis

    try:
        return str(values.get_backend().name)
    except ibis.common.exceptions.IbisError:
        return None


def _strip(text: Any) -> Any:
    name, ends = _engine_name(text), rf"^{_SPACES}|{_SPACES}\z"
    if name in (*_STRIPPING, None):
        return text.strip()
    if name == "mysql":  # which Ibis does not offer there
        return call("regexp_replace", "string", text, ends, "")
    return text.re_replace(ends, "")


def _is_text(text: Any, value: str) -> Any:
    """Whether a text is this one, byte by byte, whatever the collation says."""
    if _engine_name(text) is None:
        return text == value
    left, right = cast("tuple[Any, Any]", engine_of(text).operands(text, value))
    return left == right


_IN_HEX = {"[+-]": "2[BD]", "[0-9]": "(3[0-9])", "[.]": "(2E)", "[eE]": "[46]5"}
"""What `NUMERAL` asks for, in hexadecimal digits."""


def _is_numeral(text: Any) -> Any:
    """Whether `NUMERAL` describes the text."""
    if _engine_name(text) != "sqlite":
        # With a mark at the end: to Java a text also ends before its last line separator.
        return (text + "#").re_search(f"{NUMERAL.removesuffix('$')}#$")
    parts = re.split(r"(\[.*?\])", NUMERAL.replace("[+-]?", "([+-])?"))
    numeral = "".join(_IN_HEX.get(part, part) for part in parts)
    # Bytes that are no UTF-8, which it may hold, would make its regular expressions fail.
    return call("hex", "string", text).re_search(numeral)


def _of_text(column: Number | Category, values: Any) -> Any:
    import ibis

    text = _strip(values)
    if isinstance(column, Category):
        tests = [(_is_text(text, value), cell) for value, cell in column.known.items()]
        return _match_values(column, tests, text)
    number = ibis.ifelse(_is_numeral(text), text, None).cast("float64")
    cell = _of_number(column, number, number.type())
    for marker in column.marker_texts:
        cell = ibis.ifelse(_is_text(text.fill_null(""), marker), 0, cell)
    return cell


def _of_boolean(column: Number | Category, values: Any) -> Any:
    import ibis

    if isinstance(column, Number):
        number = ibis.cases((values == True, 1.0), (values == False, 0.0), else_=None)  # noqa: E712
        return _of_number(column, number, number.type())
    tests = [
        (values == value, column.known.get(str(value), column.other)) for value in (True, False)
    ]
    return _match_values(column, tests, values)


def _of_number(column: Number | Category, number: Any, kind: Any, floating: bool = False) -> Any:
    """Of 64-bit floats, which were of another type before, and may be NaN if that has it."""
    import ibis

    gone = number.isnull()
    if floating:
        gone |= number.isnan()
    if isinstance(column, Category):
        tests = [(number == _float(listed), cell) for listed, cell in column.numbers.items()]
        return _match_values(column, tests, number, gone)
    for marker in column.marker_numbers:
        gone |= number == _float(marker)
    first = 0 if column.missing is None else 1
    cell = _divide(number, kind, column.cuts) if _engine_name(number) in _PLAIN else None
    if cell is None:
        cell = _search(number, [_float(cut) for cut in column.cuts.tolist()], 0)
    return ibis.ifelse(gone, 0, cell + first)


def _match_values(column: Category, tests: list[Any], values: Any, gone: Any = None) -> Any:
    import ibis

    gone = values.isnull() if gone is None else gone
    return ibis.cases((gone, column.known[""]), *tests, else_=column.other)


_PLAIN = ("duckdb",)
"""Engines, as Ibis calls them, whose floats are those of IEEE 754 and whose arithmetic never fails:
PostgreSQL stops at a product too small for a float, so that one value would stop a fit."""

_MANY = 8
"""With fewer cuts than these a search is as fast as a division."""

_SHIFT = 1e-9
"""Part of a cell by which all begin early, so that rounding does not make a cut miss its cell."""

_EARLY = 2
"""Cuts that a division may reach too early: with more of them a search is as fast."""


def _divide(number: Any, kind: Any, cuts: NDArray[np.float64]) -> Any:
    """How many of the cuts are at or below a number of this type, by one division.

    The quotient never falls as the number rises. So it is right for all numbers if it is for two of
    each cut: the last number of the type before it, and the first that is not. A cut that is
    reached too early, as 0 is by the tiny numbers below it, is compared with the number as well.

    Returns:
        None: A division would not do, as where cuts are not equally far apart.
    """
    import ibis

    if len(cuts) < _MANY:
        return None
    before, after = _around(kind, cuts)
    places = np.arange(1, len(cuts) + 1)
    with np.errstate(all="ignore"):
        width = (cuts[-1] - cuts[0]) / (len(cuts) - 1)
        low, last = cuts[0] - width * (1 + _SHIFT), after[-1]
        reached = np.floor((np.maximum([before, after], low) - low) / width)
    if not ((reached[0] <= places) & (reached[1] == places)).all():
        return None
    early = np.flatnonzero(reached[0] == places)
    if len(early) > _EARLY:
        return None
    within = ibis.least(ibis.greatest(number, _float(low)), _float(last))
    cell = ((within - _float(low)) / _float(width)).floor().cast("int32")
    for place in early.tolist():
        is_there, is_below = cell == place + 1, number < _float(cuts[place])
        cell -= is_there.cast("int32") * is_below.cast("int32")
    return cell


def _around(kind: Any, cuts: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The last number of a type before each cut, and the first that is not."""
    if kind.is_integer() and np.abs(cuts).max() < EXACT:
        return np.ceil(cuts) - 1, np.ceil(cuts)
    if kind.is_float32():
        with np.errstate(over="ignore"):
            nearest = cuts.astype(np.float32)
            after = np.where(nearest >= cuts, nearest, np.nextafter(nearest, np.float32(np.inf)))
            before = np.nextafter(after, np.float32(-np.inf))
        return before.astype(np.float64), after.astype(np.float64)
    return np.nextafter(cuts, -np.inf), cuts


def _search(number: Any, cuts: list[Any], first: int) -> Any:
    """How many of the cuts are at or below the number, found by halving."""
    import ibis

    if not cuts:
        return ibis.literal(first)
    middle = len(cuts) // 2
    below = _search(number, cuts[:middle], first)
    above = _search(number, cuts[middle + 1 :], first + middle + 1)
    return ibis.ifelse(number < cuts[middle], below, above)


def _float(value: float) -> Any:
    """A float that an engine reads as this very float: a numeral in SQL may be a decimal."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")
