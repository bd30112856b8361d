"""SQLite, where every value has a type of its own, whatever the column was declared as."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

from privmax.errors import UnsupportedError
from privmax.sources.arrow_rows import BATCH, collect_numbers, rows_in
from privmax.sources.asking import ask, quietly
from privmax.sources.engine_labels import labels
from privmax.sources.engines.base import Engine, call, new_name

_UNDECLARED = "integer"
"""The type of columns without one: whole numbers may be weights, and labels are read by what they
are.
"""


_TRANSIENT = {5, 6}
"""Codes of errors: busy, locked."""


class SQLite(Engine):
    name, title = "sqlite", "SQLite"
    schemes: Mapping[str, str] = {"sqlite": "SQLite"}
    extra = "sqlite"
    endings = (".sqlite", ".sqlite3", ".db", ".db3")
    mark = 0, b"SQLite format 3\x00"
    keys_are_bytes = True
    types_bind = False
    has_nan = False
    moments_are_text = True

    @classmethod
    def has_written(cls, start: bytes) -> bool:
        """As everywhere; an empty file is a database without tables."""
        return not start or super().has_written(start)

    @classmethod
    def open_file(cls, file: Path, stack: ExitStack) -> Any:
        import sqlite3

        import ibis

        uri = f"file:{quote(str(file.absolute()))}?mode=ro"
        with ExitStack() as unless_taken:
            opened = unless_taken.enter_context(closing(sqlite3.connect(uri, uri=True)))
            backend = ibis.sqlite.from_connection(opened)
            unless_taken.pop_all()
        return backend

    def find_table(self, name: str, database: Any = None) -> Any:
        table = self._declaration(name, database)
        return None if table is None else table.to_expr()

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        code = getattr(error, "sqlite_errorcode", None)
        return isinstance(code, int) and code & 0xFF in _TRANSIENT

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, or within a part of the caller's.

        All that was written in it is undone.
        """
        super().begin(table, stack, passes=passes)
        connection = self.backend.con
        name = new_name("part")
        if connection.in_transaction:
            ask("the counting", connection.execute, f'SAVEPOINT "{name}"')
            stack.callback(quietly, connection.execute, f'RELEASE "{name}"')
            stack.callback(quietly, connection.execute, f'ROLLBACK TO "{name}"')
        else:
            ask("the counting", connection.execute, "BEGIN")
            stack.callback(quietly, connection.execute, "ROLLBACK")

    def declare(self, table: Any) -> Any:
        """Give every column of a table a type, which binds nothing.

        Ibis gives a column that was declared without one, as those of views often are, that of its
        value in the first row.
        """
        from ibis.expr import operations

        [[encoding]] = self.backend.con.execute("PRAGMA encoding").fetchall()
        if encoding != "UTF-8":  # the bytes of text would be others
            raise UnsupportedError(
                f"The SQLite database keeps its text in {encoding}, and only UTF-8 can be counted. "
                "Copy it: sqlite3 OLD .dump | sqlite3 NEW"
            )
        operation = table.op()
        fixed = {
            one: self._declaration(one.name, one.namespace.database, one)
            for one in operation.find(operations.DatabaseTable)
        }
        changed = {one: new for one, new in fixed.items() if new is not None and new != one}
        if not changed:
            return table
        if operation in changed:
            return changed[operation].to_expr()
        try:
            return operation.replace(changed).to_expr()
        except Exception:
            refused = UnsupportedError(
                "The expression computes with columns of SQLite that were declared without a type, "
                "and their types would follow from the first row. Declare them, or cast them."
            )
        raise refused

    def _declaration(self, name: str, database: str | None, like: Any = None) -> Any:
        """A table by its name, as an operation of Ibis; `like`: with types and place of that.
        None: there is no such table.
        """
        from ibis import schema
        from ibis.expr import operations

        question = 'SELECT name, type, "notnull" FROM pragma_table_info(?, ?)'
        # the schema of a table of our own, or of the caller's session, is called temp
        columns = self.backend.con.execute(question, [name, database or "main"]).fetchall()
        if not columns:
            return None
        kinds = {}
        for column, kind, needed in columns:
            if kind and like is not None:
                kinds[column] = like.schema[column]
            else:
                kinds[column] = self.backend._parse_type(kind or _UNDECLARED, not needed)
        return operations.DatabaseTable(
            name,
            schema=schema(kinds),
            source=self.backend,
            namespace=like.namespace if like else operations.Namespace(database=database),
        )

    def key(self, column: Any) -> Any:
        """Text as its bytes, whatever the collation; all else as it is: 1 and 1.0 are equal."""
        return call(
            "iif", "binary", call("typeof", "string", column) == "text", _as_bytes(column), column
        )

    def hash_values(self, keys: Sequence[Any], salt: str) -> Any:
        """By a function of our own: SQLite has none."""
        self.backend.con.create_function("md5", 1, _md5, deterministic=True)
        return super().hash_values(keys, salt)

    def hash_text(self, key: Any) -> Any:
        return call("hex", "string", key)  # of numbers it takes the text

    def key_of(self, label: Any, kind: Any) -> Any:
        if isinstance(label, datetime.date | datetime.time | UUID | Decimal):
            label = str(label)
        if not isinstance(label, str | bytes | int | float):
            raise TypeError  # no cell holds it, and SQLite would refuse it in words of its own
        return label.encode() if isinstance(label, str) else label

    def readable(self, key: Any, kind: Any) -> Any:
        return key

    def label(self, value: Any, kind: Any) -> Any:
        if kind.is_boolean() and value in (0, 1) and isinstance(value, int):
            return bool(value)
        if isinstance(value, float):
            return labels().label_by_value(value)
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
        """Return what is added up, as floats: a sum of whole numbers fails beyond 64 bits.

        Up to 2^53 they are exact; what one individual adds beyond that is clipped to far less.
        """
        return self.whole(column).cast("float64")

    def present(self, column: Any) -> Any:
        return column

    def operands(self, column: Any, value: str | Decimal | bool) -> tuple[Any, Any] | None:
        """Return what to compare by the type of the value, since columns do not bind theirs.

        Text is compared with text, also where that is a date, and numbers with numbers. All else is
        missing.
        """
        import ibis

        storage = call("typeof", "string", column)
        if isinstance(value, str):
            text = call("iif", "binary", storage == "text", _as_bytes(column), ibis.null("binary"))
            return text, _as_bytes(ibis.literal(value))
        kind = "int64" if value == int(value) else "float64"
        is_number = storage.isin(["integer", "real"])
        number = call("iif", kind, is_number, column, ibis.null(kind))
        return number, ibis.literal(int(value) if kind == "int64" else float(value), kind)

    def strip(self, text: Any) -> Any:
        return text.strip()

    def to_float(self, column: Any) -> Any:
        import ibis

        is_number = call("typeof", "string", column).isin(["integer", "real"])
        return call("iif", "float64", is_number, column.cast("float64"), ibis.null("float64"))

    def holds_text(self, column: Any) -> Any:
        return call("typeof", "string", column) == "text"

    def matches(self, text: Any, pattern: str) -> Any:
        # Bytes that are no UTF-8, which it may hold, would make its regular expressions fail.
        return call("hex", "string", text).re_search(re.sub(r"\[(.*?)\]", _in_hex, pattern))

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        return list(self.stream(table))

    def numbers(self, table: Any) -> list[Any]:
        return collect_numbers(self.stream(table), len(table.columns))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        # Ibis would turn values into what the column was declared as, and fail where one is
        # something else.
        with closing(self.backend.raw_sql(self.backend.compile(table))) as cursor:
            while batch := cursor.fetchmany(BATCH):
                yield from batch

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        # Ibis would fill it through pandas, and a column of keys holds numbers as well as bytes.
        name = new_name("labels")
        kinds = ", ".join(
            f'"{column}" {"BLOB" if schema[column].is_binary() else "INTEGER"}'
            for column in columns
        )
        holes = ", ".join("?" * len(columns))
        connection = self.backend.con
        stack.callback(quietly, self.drop, name)
        connection.execute(f'CREATE TEMPORARY TABLE "{name}" ({kinds})')
        connection.executemany(f'INSERT INTO "{name}" VALUES ({holes})', rows_in(columns))
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


def _md5(text: str) -> str:
    from hashlib import md5

    return md5(text.encode(), usedforsecurity=False).hexdigest()


def _as_bytes(column: Any) -> Any:
    from ibis.expr import datatypes, operations

    return operations.Cast(column, datatypes.binary).to_expr()


def _in_hex(characters: re.Match[str]) -> str:
    """Return the characters of a pair of brackets, each in two hexadecimal digits."""
    ends = re.findall("(.)-(.)|(.)", characters[1])
    codes = [range(ord(low or one), ord(high or one) + 1) for low, high, one in ends]
    return f"({'|'.join(f'{code:02X}' for some in codes for code in some)})"


ENGINE = SQLite
