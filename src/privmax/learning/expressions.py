"""The cells of a schema as Ibis expressions: an engine computes the same cells as `Schema.codes`.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, cast

from privmax.display import in_words
from privmax.errors import DataError, column_error
from privmax.learning.cells import NUMERAL, Category, Number
from privmax.learning.columns import MIXED, TEXT
from privmax.learning.schema import Schema
from privmax.sources.engines import engine_of
from privmax.sources.engines.base import call

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue, Table


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
    return _of_number(column, values.cast("float64"), kind.is_floating() and _has_nan(values))


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
        return _listed(column, tests, text)
    number = ibis.ifelse(_is_numeral(text), text, None).cast("float64")
    cell = _of_number(column, number, False)
    for marker in column.marker_texts:
        cell = ibis.ifelse(_is_text(text.fill_null(""), marker), 0, cell)
    return cell


def _of_boolean(column: Number | Category, values: Any) -> Any:
    import ibis

    if isinstance(column, Number):
        number = ibis.cases((values == True, 1.0), (values == False, 0.0), else_=None)  # noqa: E712
        return _of_number(column, number, False)
    tests = [
        (values == value, column.known.get(str(value), column.other)) for value in (True, False)
    ]
    return _listed(column, tests, values)


def _of_number(column: Number | Category, number: Any, floating: bool) -> Any:
    """Of 64-bit floats, which may be NaN if the column was one of floats."""
    import ibis

    gone = number.isnull()
    if floating:
        gone |= number.isnan()
    if isinstance(column, Category):
        tests = [(number == _float(listed), cell) for listed, cell in column.numbers.items()]
        return _listed(column, tests, number, gone)
    for marker in column.marker_numbers:
        gone |= number == _float(marker)
    first = 0 if column.missing is None else 1
    cuts = [_float(cut) for cut in column.cuts.tolist()]
    return ibis.ifelse(gone, 0, _search(number, cuts, first))


def _listed(column: Category, tests: list[Any], values: Any, gone: Any = None) -> Any:
    import ibis

    gone = values.isnull() if gone is None else gone
    return ibis.cases((gone, column.known[""]), *tests, else_=column.other)


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

    return ibis.literal(repr(value)).cast("float64")
