"""SQLite, where every value has a type of its own, whatever the column was declared as."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from decimal import Decimal
from typing import Any
from uuid import UUID

from privmax.sources.engines.base import BATCH, Engine, call, new_name, quietly
from privmax.sources.labels import label_by_value


class SQLite(Engine):
    keys_are_bytes = True

    def key(self, column: Any) -> Any:
        """Text as its bytes, whatever the collation; all else as it is: 1 and 1.0 are one number."""
        return call("iif", "binary", call("typeof", "string", column) == "text", _as_bytes(column), column)

    def key_of(self, label: Any, kind: Any) -> Any:
        if isinstance(label, datetime.date | datetime.time | UUID | Decimal):
            label = str(label)
        return label.encode() if isinstance(label, str) else label

    def readable(self, key: Any, kind: Any) -> Any:
        return key

    def label(self, value: Any, kind: Any) -> Any:
        if kind.is_boolean() and value in (0, 1) and isinstance(value, int):
            return bool(value)
        return label_by_value(value) if isinstance(value, float) else super().label(value, kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return list(self.stream(table))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        # Ibis would turn values into what the column was declared as, and fail where one is something else.
        with closing(self.backend.raw_sql(self.backend.compile(table))) as cursor:
            while batch := cursor.fetchmany(BATCH):
                yield from batch

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, held: ExitStack) -> Any:
        # Ibis would fill it through pandas, and a column of keys holds numbers as well as bytes.
        name = new_name("labels")
        kinds = ", ".join(f'"{column}" {"BLOB" if schema[column].is_binary() else "INTEGER"}' for column in columns)
        holes = ", ".join("?" * len(columns))
        held.callback(quietly, lambda: self.drop(name))
        with self.backend.begin() as cursor:
            cursor.execute(f'CREATE TEMPORARY TABLE "{name}" ({kinds})')
            cursor.executemany(f'INSERT INTO "{name}" VALUES ({holes})', zip(*columns.values(), strict=True))
        return self.backend.table(name, database="temp")


def _as_bytes(column: Any) -> Any:
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.binary).to_expr()


ENGINE = SQLite
