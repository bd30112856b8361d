"""SQLite, where every value has a type of its own, whatever the column was declared as."""

from __future__ import annotations

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from decimal import Decimal
from typing import Any
from uuid import UUID

from privmax.errors import UnsupportedError
from privmax.labels import label_by_value
from privmax.sources.engines.base import BATCH, Engine, ask, call, new_name, quietly

_UNDECLARED = "integer"
"""The type of columns without one: whole numbers may be weights, and labels are read by what they
are.
"""


def find_table(backend: Any, name: str, database: Any = None) -> Any:
    """A table of a database; None: there is none of that name."""
    found = SQLite(backend)._declaration(name, database)
    return None if found is None else found.to_expr()


class SQLite(Engine):
    keys_are_bytes = True

    def begin(self, table: Any, held: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, or within a part of the caller's, and undo all that was
        written in it.
        """
        super().begin(table, held, passes=passes)
        connection = self.backend.con
        name = new_name("part")
        if connection.in_transaction:
            ask("the counting", connection.execute, f'SAVEPOINT "{name}"')
            held.callback(quietly, connection.execute, f'RELEASE "{name}"')
            held.callback(quietly, connection.execute, f'ROLLBACK TO "{name}"')
        else:
            ask("the counting", connection.execute, "BEGIN")
            held.callback(quietly, connection.execute, "ROLLBACK")

    def declare(self, table: Any) -> Any:
        """Ibis gives a column that was declared without a type, as those of views often are, that
        of its value in the first row. Here all of them have one, which binds nothing.
        """
        from ibis.expr import operations

        [[encoding]] = self.backend.con.execute("PRAGMA encoding").fetchall()
        if encoding != "UTF-8":  # the bytes of text would be others
            raise UnsupportedError(
                f"The SQLite database keeps its text in {encoding}, and only UTF-8 can be counted. "
                "Copy it: sqlite3 OLD .dump | sqlite3 NEW"
            )
        given = table.op()
        fixed = {
            one: self._declaration(one.name, one.namespace.database, one)
            for one in given.find(operations.DatabaseTable)
        }
        changed = {one: new for one, new in fixed.items() if new is not None and new != one}
        if not changed:
            return table
        if given in changed:
            return changed[given].to_expr()
        try:
            return given.replace(changed).to_expr()
        except Exception:
            refused = UnsupportedError(
                "The expression computes with columns of SQLite that were declared without a type, "
                "and their types would follow from the first row. Declare them, or cast them."
            )
        raise refused

    def _declaration(self, name: str, database: str | None, given: Any = None) -> Any:
        """A table by its name, as an operation of Ibis; `given`: with types and place of that.
        None: there is no such table.
        """
        from ibis import schema
        from ibis.expr import operations

        question = 'SELECT name, type, "notnull" FROM pragma_table_info(?, ?)'
        # the schema of a table of our own, or of the caller's session, is called temp
        found = self.backend.con.execute(question, [name, database or "main"]).fetchall()
        if not found:
            return None
        kinds = {}
        for column, kind, needed in found:
            if kind and given is not None:
                kinds[column] = given.schema[column]
            else:
                kinds[column] = self.backend._parse_type(kind or _UNDECLARED, not needed)
        return operations.DatabaseTable(
            name,
            schema=schema(kinds),
            source=self.backend,
            namespace=given.namespace if given else operations.Namespace(database=database),
        )

    def key(self, column: Any) -> Any:
        """Text as its bytes, whatever the collation; all else as it is: 1 and 1.0 are equal."""
        return call(
            "iif", "binary", call("typeof", "string", column) == "text", _as_bytes(column), column
        )

    def key_of(self, label: Any, kind: Any) -> Any:
        if isinstance(label, datetime.date | datetime.time | UUID | Decimal):
            label = str(label)
        return label.encode() if isinstance(label, str) else label

    def readable(self, key: Any, kind: Any) -> Any:
        return key

    def label(self, value: Any, kind: Any) -> Any:
        if kind.is_boolean() and value in (0, 1) and isinstance(value, int):
            return bool(value)
        if isinstance(value, float):
            return label_by_value(value)
        label = super().label(value, kind)
        if isinstance(label, str | bytes | int):
            return label
        # What the column is declared as does not bind what it holds: only text in the one usual
        # form is a date.
        text = bytes(value).decode()
        return label if not isinstance(label, Decimal) and str(label) == text else text

    def whole(self, column: Any) -> Any:
        import ibis

        is_whole = call("typeof", "string", column) == "integer"
        return call("iif", "int64", is_whole, column, ibis.null("int64"))

    def addend(self, column: Any) -> Any:
        """As floats, since a sum of whole numbers fails beyond 64 bits. Up to 2^53 they are exact;
        what one individual adds beyond that is clipped to far less.
        """
        return self.whole(column).cast("float64")

    def present(self, column: Any) -> Any:
        return column

    def operands(self, column: Any, value: str | Decimal | bool) -> tuple[Any, Any] | None:
        """By what the value is, since columns do not bind what they hold: text is compared with
        text, also where that is a date, and numbers with numbers. All else is missing.
        """
        import ibis

        held = call("typeof", "string", column)
        if isinstance(value, str):
            text = call("iif", "binary", held == "text", _as_bytes(column), ibis.null("binary"))
            return text, _as_bytes(ibis.literal(value))
        kind = "int64" if value == int(value) else "float64"
        is_number = held.isin(["integer", "real"])
        number = call("iif", kind, is_number, column, ibis.null(kind))
        return number, ibis.literal(int(value) if kind == "int64" else float(value), kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return list(self.stream(table))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        # Ibis would turn values into what the column was declared as, and fail where one is
        # something else.
        with closing(self.backend.raw_sql(self.backend.compile(table))) as cursor:
            while batch := cursor.fetchmany(BATCH):
                yield from batch

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, held: ExitStack) -> Any:
        # Ibis would fill it through pandas, and a column of keys holds numbers as well as bytes.
        name = new_name("labels")
        kinds = ", ".join(
            f'"{column}" {"BLOB" if schema[column].is_binary() else "INTEGER"}'
            for column in columns
        )
        holes = ", ".join("?" * len(columns))
        connection = self.backend.con
        held.callback(quietly, self.drop, name)
        connection.execute(f'CREATE TEMPORARY TABLE "{name}" ({kinds})')
        connection.executemany(
            f'INSERT INTO "{name}" VALUES ({holes})', zip(*columns.values(), strict=True)
        )
        return self._table(name, schema)

    def create(self, name: str, table: Any) -> Any:
        # Ibis would commit, and with it what the caller has begun.
        self.backend.con.execute(
            f'CREATE TEMPORARY TABLE "{name}" AS {self.backend.compile(table)}'
        )
        return self._table(name, table.schema())

    def drop(self, name: str, *, stopped: bool = False) -> None:
        quietly(self.backend.con.execute, f'DROP TABLE IF EXISTS temp."{name}"')

    def _table(self, name: str, schema: Any) -> Any:
        from ibis.expr import operations

        return operations.DatabaseTable(name, schema=schema, source=self.backend).to_expr()


def _as_bytes(column: Any) -> Any:
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.binary).to_expr()


ENGINE = SQLite
