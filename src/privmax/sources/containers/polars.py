"""polars: frames and their columns, whose types are declared."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from numpy.typing import NDArray

from privmax.labels import plain_label
from privmax.sources.asking import ask
from privmax.sources.containers.arrow import arrow_label
from privmax.sources.engines.polars import refuse_objects
from privmax.sources.table import (
    MIXED,
    OTHER,
    TEXT,
    LazyLabels,
    Lists,
    Numbered,
    Table,
    TableColumn,
    Values,
    number_list,
)


class PolarsColumn(TableColumn):
    """A Series."""

    def number_labels(self) -> Numbered:
        polars, column, kind = sys.modules["polars"], self.values, self.values.dtype
        if kind.is_nested() or kind in (polars.Object, polars.Null):
            return number_list(column.to_list())
        if kind in (polars.Categorical, polars.Enum):
            column = column.cast(polars.String)
        if kind.is_float():
            column = column.fill_nan(None)
        ranks = column.rank("dense").fill_null(0).cast(polars.Int64).to_numpy()
        values = column.drop_nulls().unique().sort()
        if kind not in (polars.Date, polars.Datetime, polars.Duration):
            return ranks - 1, values.to_list()
        # Not to_list, which fails at dates that Python does not have, and forgets nanoseconds.
        aware = getattr(kind, "time_zone", None) is not None
        return ranks - 1, [
            _in_utc(value) if aware else value for value in map(plain_label, values.to_numpy())
        ]

    def read_labels(self) -> Sequence[Any]:
        column, kind = self.values, self.values.dtype
        if kind == sys.modules["polars"].Object:
            return TableColumn(column.to_list()).read_labels()
        missing = self.has_missing() or (kind.is_float() and column.is_nan().any())
        repeated = column.n_unique() < len(column)
        if kind.is_temporal():  # of a far date polars gives no value of Python
            return LazyLabels(column.to_arrow(), arrow_label).check(missing, repeated)
        return LazyLabels(column, plain_label).check(missing, repeated)

    def has_missing(self) -> bool:
        return bool(self.values.null_count() > 0)

    def to_array(self) -> NDArray[Any]:
        array: NDArray[Any] = self.values.to_numpy()
        return array

    def read_scores(self) -> Any:
        polars = sys.modules["polars"]
        exact = (polars.Int128, polars.Decimal, polars.Null)  # in NumPy they would be rounded
        if self.values.dtype in exact and not self.has_missing():
            return self.values.to_list()
        return super().read_scores()

    def read_lists(self) -> Lists | None:
        polars, column = sys.modules["polars"], self.values
        if column.dtype.base_type() not in (polars.List, polars.Array):
            return None
        if column.dtype.base_type() == polars.Array:
            column = column.arr.to_list()
        lengths = column.list.len().fill_null(0).cast(polars.Int64)
        entries = PolarsColumn(column.filter(lengths > 0).explode())
        return lengths.to_numpy(), *entries.number_labels()

    def read_values(self) -> Values:
        kind = self.values.dtype
        name = str(kind.base_type())
        if name in ("String", "Categorical", "Enum"):
            return Values.of_objects(TEXT, self.values.to_list())
        # NumPy has no integers of 128 bits
        if kind.is_decimal() or name in ("Int128", "UInt128", "Boolean", "Object", "Null"):
            return Values.of_objects(MIXED, self.values.to_list())
        if kind.is_integer() or kind.is_float():
            return Values.of_numbers(self.to_array())
        if name in ("Date", "Datetime"):
            return Values.of_moments(self.values.to_numpy(), self.values.is_null().to_numpy())
        return Values.of_objects(OTHER)


class PolarsTable(Table):
    """A DataFrame; what is lazy is counted by polars itself."""

    def find(self, name: Any) -> TableColumn:
        return PolarsColumn(self.data[name])

    def select(self, names: Sequence[str]) -> Any:
        chosen = self.data.select(names)
        refuse_objects(chosen.schema.values())
        return ask("reading the frame", chosen.to_arrow)


def _in_utc(moment: Any) -> Any:
    return moment.replace(tzinfo=UTC) if isinstance(moment, datetime) else moment
