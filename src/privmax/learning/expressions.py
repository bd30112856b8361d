"""The cells of a schema as Ibis expressions: an engine computes the same cells as `Schema.codes`.

Proof:      docs/proofs/learning.md
"""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from privmax.errors import ParameterError, column_error
from privmax.learning.kinds.values import EXACT
from privmax.learning.schema import Schema
from privmax.sources.engines import engine_of
from privmax.sources.engines.base import Engine

if TYPE_CHECKING:
    from ibis.expr.types import IntegerValue, Table
    from numpy.typing import NDArray


def cell_expressions(schema: Schema, table: Table) -> list[IntegerValue]:
    """Return the cell of every value as an expression, for each column of a schema."""
    for name in schema.names:
        if name not in table.columns:
            raise column_error("schema", name, list(table.columns), "table")
    return [column.expression(table[column.name]) for column in schema.columns]


class _Unbound(Engine):
    """A table that no engine holds yet, of which nothing is known but what Ibis says."""

    def strip(self, text: Any) -> Any:
        return text.strip()

    def operands(self, column: Any, value: Any) -> tuple[Any, Any]:
        return column, value


def holder_of(values: Any) -> Engine:
    """Return the engine that holds a column."""
    import ibis

    try:
        values.get_backend()
    except ibis.common.exceptions.IbisError:
        return _Unbound(None)
    return engine_of(values)


def is_text(text: Any, value: str) -> Any:
    """Return whether a text is this one, byte by byte, whatever the collation says."""
    left, right = _operands(text, value)
    return left == right


def _operands(text: Any, value: str) -> tuple[Any, Any]:
    """Return a text and another as what the engine compares byte by byte."""
    return cast("tuple[Any, Any]", holder_of(text).operands(text, value))


_MANY = 8
"""With fewer cuts than these a search is as fast as a division."""

_SHIFT = 1e-9
"""Part of a cell by which all begin early, so that rounding does not make a cut miss its cell."""

_EARLY = 2
"""Cuts that a division may reach too early: with more of them a search is as fast."""


def count_cuts(number: Any, kind: Any, cuts: NDArray[np.float64]) -> Any:
    """Count the cuts at or below 64-bit floats, which were of another type before."""
    cell = _divide(number, kind, cuts) if holder_of(number).floats_never_fail else None
    if cell is not None:
        return cell
    return search_cuts(number, [literal_float(cut) for cut in cuts.tolist()])


def _divide(number: Any, kind: Any, cuts: NDArray[np.float64]) -> Any:
    """Return how many of the cuts are at or below a number of this type, by one division.

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
    within = ibis.least(ibis.greatest(number, literal_float(low)), literal_float(last))
    cell = ((within - literal_float(low)) / literal_float(width)).floor().cast("int32")
    for place in early.tolist():
        is_there, is_below = cell == place + 1, number < literal_float(cuts[place])
        cell -= is_there.cast("int32") * is_below.cast("int32")
    return cell


def _around(kind: Any, cuts: NDArray[np.float64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the last number of a type before each cut, and the first that is not."""
    if kind.is_integer() and np.abs(cuts).max() < EXACT:
        return np.ceil(cuts) - 1, np.ceil(cuts)
    if kind.is_float32():
        with np.errstate(over="ignore"):
            nearest = cuts.astype(np.float32)
            after = np.where(nearest >= cuts, nearest, np.nextafter(nearest, np.float32(np.inf)))
            before = np.nextafter(after, np.float32(-np.inf))
        return before.astype(np.float64), after.astype(np.float64)
    return np.nextafter(cuts, -np.inf), cuts


def search_cuts(value: Any, cuts: Sequence[Any], first: int = 0) -> Any:
    """Return how many of the cuts are at or below a value, found by halving; and `first` more."""
    import ibis

    if not cuts:
        return ibis.literal(first)
    middle = len(cuts) // 2
    below = search_cuts(value, cuts[:middle], first)
    above = search_cuts(value, cuts[middle + 1 :], first + middle + 1)
    return ibis.ifelse(value < cuts[middle], below, above)


MOST_TEXT_CELLS = 4096
"""Cells of texts, at most: more take minutes to write down, each with its text."""


def search_texts(text: Any, cuts: Sequence[str]) -> Any:
    """Return how many of the cuts are at or below a text, byte by byte.

    Raises:
        ParameterError: They are too many for the parser of an engine.
    """
    if len(cuts) >= MOST_TEXT_CELLS:
        raise ParameterError(
            "cells",
            len(cuts) + 1,
            f"where a table keeps dates as text, an engine finds at most {MOST_TEXT_CELLS} cells",
            "Use fewer cells, a table with a column of dates, or a frame.",
        )
    pairs = [_operands(text, cut) for cut in cuts]
    return (
        _search_blocks(pairs[0][0], [cut for _, cut in pairs]) if pairs else search_cuts(text, [])
    )


_BLOCKS = 16
"""Blocks of cuts that one CASE tells apart. Halving is nested too deep for SQLite's parser."""


def _search_blocks(value: Any, cuts: Sequence[Any], first: int = 0) -> Any:
    """Search cuts as `search_cuts` does, by blocks of cuts.

    The first block whose last cut is above the value is searched in turn.
    """
    import ibis

    if not cuts:
        return ibis.literal(first)
    size = -(-len(cuts) // _BLOCKS)
    tests = []
    for start in range(0, len(cuts), size):
        *inner, last = cuts[start : start + size]
        tests.append((value < last, _search_blocks(value, inner, first + start)))
    return ibis.cases(*tests, else_=first + len(cuts))


_NANOSECONDS = (
    datetime.datetime(1677, 9, 21, 0, 12, 44),
    datetime.datetime(2262, 4, 11, 23, 47, 16),
)
"""The first and the last whole second that a type has which counts in nanoseconds."""


def search_moments(values: Any, cuts: Sequence[datetime.datetime]) -> Any:
    """Return how many of the cuts, in UTC, are at or below dates or moments.

    Cuts are of the very type of the column: an engine that had to convert its values would round
    some, and fail at those that have no place in the other type.
    """
    kind, first = values.type(), 0
    if kind.is_date():  # the first moment of a day is at or after a cut if the day is one on
        days = [cut.date() + datetime.timedelta(days=cut.time() > _MIDNIGHT) for cut in cuts]
        return search_cuts(values, [_literal(day, kind) for day in days])
    if kind.scale == 9:  # a cut that has no place there is before or after all values
        first = sum(cut < _NANOSECONDS[0] for cut in cuts)
        cuts = [cut for cut in cuts if _NANOSECONDS[0] <= cut <= _NANOSECONDS[1]]
    zone = None if kind.timezone is None else datetime.UTC
    return search_cuts(values, [_literal(cut.replace(tzinfo=zone), kind) for cut in cuts], first)


_MIDNIGHT = datetime.time()


def _literal(value: datetime.date, kind: Any) -> Any:
    """Return a date or moment that really is of this type.

    Ibis writes all moments in microseconds.
    """
    import ibis
    from ibis.expr import operations

    literal = ibis.literal(value, kind)
    odd = kind.is_timestamp() and kind.scale not in (None, 6)
    return operations.Cast(literal, kind).to_expr() if odd else literal


def literal_float(value: float) -> Any:
    """Return a float that an engine reads as this very float: a numeral in SQL may be a decimal."""
    import ibis

    return ibis.literal(repr(float(value))).cast("float64")
