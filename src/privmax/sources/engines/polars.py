"""polars: text has no collation, and is its own key.

Times and spans stay whole numbers: as text they lose digits.
"""

from __future__ import annotations

import datetime
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from typing import Any

from privmax.errors import DataError
from privmax.sources.arrow_rows import rows_of
from privmax.sources.asking import ask, import_ibis, quietly
from privmax.sources.engines.base import PLACE, ArrowEngine, as_text

_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


def refuse_objects(types: Iterable[Any]) -> None:
    """Refuse columns of Python objects of polars.

    Others see where those are in memory, and not what they are.
    """
    if sys.modules["polars"].Object in types:
        raise DataError(
            "A column has Python objects. Use text, numbers, dates, or several columns."
        )


class Polars(ArrowEngine):
    name, title = "polars", "polars"
    package, module, extra = "polars", "polars", "polars"
    has_windows = False

    @classmethod
    def owns(cls, data: object) -> bool:
        """Return whether it is a LazyFrame, which polars itself counts."""
        polars = sys.modules.get("polars")
        return polars is not None and isinstance(data, polars.LazyFrame)

    @classmethod
    def open_object(cls, data: Any, needed: Sequence[str], stack: ExitStack) -> Any:
        import polars

        types = ask("opening the frame", data.collect_schema)
        refuse_objects([kind for name, kind in types.items() if name in needed])
        connection = import_ibis().polars.connect()
        stack.callback(quietly, connection.disconnect)
        text = data.cast(
            {polars.Categorical: polars.String, polars.Enum: polars.String}
        )  # polars keeps them apart
        return ask("opening the frame", connection.create_table, "privmax_rows", text)

    @property
    def connection(self) -> Any:
        return self.backend

    def has_text_key(self, kind: Any) -> bool:
        return super().has_text_key(kind) and not (kind.is_time() or kind.is_interval())

    def key(self, column: Any) -> Any:
        from ibis.expr import datatypes, operations

        kind = column.type()
        if kind.is_time() or kind.is_interval():
            return operations.Cast(column, datatypes.int64).to_expr()
        return super().key(column)

    def text_key(self, column: Any) -> Any:
        return column if column.type().is_string() else as_text(column)

    def key_of(self, label: Any, kind: Any) -> Any:
        if kind.is_time() and isinstance(label, datetime.time) and label.tzinfo is None:
            seconds = (label.hour * 60 + label.minute) * 60 + label.second
            return seconds * 10**9 + label.microsecond * 1000
        if kind.is_interval() and isinstance(label, datetime.timedelta):
            micros = (label.days * 86_400 + label.seconds) * 10**6 + label.microseconds
            number, rest = divmod(micros * _PER_SECOND[kind.unit.short], 10**6)
            return number if not rest else _misfit(label)
        return (
            _misfit(label) if kind.is_time() or kind.is_interval() else super().key_of(label, kind)
        )

    def rows_at(
        self,
        table: Any,
        order: Sequence[Any],
        places: Sequence[int],
        choose: Callable[[Any], dict[str, Any]],
    ) -> dict[int, tuple[Any, ...]]:
        # Ibis has no windows for polars, which numbers rows itself. What is wanted is made of every
        # row here: to make text of a key never fails in polars.
        import polars

        ordered = table.order_by(order)
        frame = self.backend.compile(ordered.select(**choose(ordered))).with_row_index(PLACE)
        rows = frame.filter(polars.col(PLACE).is_in(list(places))).collect().to_arrow()
        return {place: tuple(row) for place, *row in rows_of(rows)}

    def label(self, value: Any, kind: Any) -> Any:
        if kind.is_time():
            seconds, nanos = divmod(value, 10**9)
            clock = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{nanos:09}"
            return super().label(clock, kind)
        if kind.is_interval():
            seconds, rest = divmod(value, _PER_SECOND[kind.unit.short])
            micros, fine = divmod(rest * 10**6, _PER_SECOND[kind.unit.short])
            if fine or abs(seconds) >= 86_400 * 10**9:  # finer or longer than Python has it
                return f"{value} {kind.unit.short}"
            return datetime.timedelta(seconds=seconds, microseconds=micros)
        return super().label(value, kind)


def _misfit(label: object) -> Any:
    raise TypeError(f"{type(label).__name__} does not fit")


ENGINE = Polars
