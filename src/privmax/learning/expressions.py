"""The cells of a schema as Ibis expressions: an engine computes the same cells as `Schema.codes`.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from privmax.display import in_words
from privmax.errors import DataError, column_error
from privmax.learning.cells import NUMERAL, WHOLE, Category, Number
from privmax.learning.columns import MIXED, TEXT
from privmax.learning.schema import Schema

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
        return _of_text(column, values.strip())
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


def _has_nan(values: Any) -> bool:
    import ibis

    try:
        return values.get_backend().name not in _WITHOUT_NAN
    except ibis.common.exceptions.IbisError:  # a table that no engine holds yet
        return True


def _of_text(column: Number | Category, text: Any) -> Any:
    import ibis

    if isinstance(column, Category):
        return _listed(
            column, [(text == value, cell) for value, cell in column.known.items()], text
        )
    number = ibis.ifelse(text.re_search(NUMERAL), text, None).cast("float64")
    cell = _of_number(column, number, False)
    for marker in column.marker_texts:
        cell = ibis.ifelse(text.fill_null("") == marker, 0, cell)
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
        whole = [(text, cell) for text, cell in column.known.items() if WHOLE.fullmatch(text)]
        tests = [(number == _float(float(text)), cell) for text, cell in whole]
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
