"""MySQL and MariaDB, whose usual collations call different texts equal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

from privmax.sources.arrow_rows import BATCH, collect_numbers, typed_array
from privmax.sources.asking import ask, quietly
from privmax.sources.engines.base import SPACES_AT_ENDS, Engine, as_text, call, new_name

LONGEST = 16_000
"""Characters of a text that tell items apart: what can be sorted in the memory that a server
usually has for it.
"""

_SETTINGS = {
    "character_set_connection": "utf8mb4",  # what a cast to text makes of other character sets
    "time_zone": "+00:00",
    "max_sort_length": 4 * LONGEST,  # of longer keys it would compare the beginning only
    "sort_buffer_size": 1 << 24,  # for keys of several texts of that length, fifteen rows at least
}
"""The settings that counting needs in a session; they are put back afterwards."""


_TRANSIENT = {1040, 1203, 1205, 1213, 2002, 2003, 2006, 2013, 4031}
"""Numbers of errors: too many connections, waiting for a lock, deadlock, no server, server gone."""


class MySQL(Engine):
    name, title = "mysql", "MySQL"
    schemes: Mapping[str, str] = {"mariadb": "MariaDB", "mysql": "MySQL"}
    package, module, extra = "mysqlclient", "MySQLdb", "mysql"
    keys_are_bytes = True
    has_nan = False

    @classmethod
    def open_url(cls, url: str) -> Any:
        return super().open_url(url.replace("mariadb://", "mysql://", 1))

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        is_own = type(error).__module__.partition(".")[0] == cls.module
        return is_own and bool(error.args) and error.args[0] in _TRANSIENT

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        super().begin(table, stack, passes=passes)
        for name, value in _SETTINGS.items():
            [(before,)] = ask("the counting", self._sql, f"SELECT @@session.{name}")
            ask("the counting", self._set, name, value)
            stack.callback(quietly, self._set, name, before)
        if self._is_within_transaction():
            return  # it is the caller's, and how much it sees is the caller's to say
        if passes == 1:  # one statement counts; otherwise others could not write meanwhile
            level = "SET TRANSACTION ISOLATION LEVEL READ COMMITTED"
            ask("the counting", self._sql, level)
        ask("the counting", self._sql, "START TRANSACTION")
        stack.callback(quietly, self._sql, "ROLLBACK")

    def _is_within_transaction(self) -> bool:
        """Return whether there is a transaction already, or the server cannot say.

        To begin another would commit it.
        """
        if not self.backend.con.get_autocommit():
            return True
        try:
            return bool(self._sql("SELECT @@in_transaction")[0][0])
        except Exception:  # MySQL does not tell; MariaDB does
            return True

    def key(self, column: Any) -> Any:
        kind = column.type()
        small = kind.is_integer() and not kind.is_uint64()
        return (
            column.cast("int64") if small else super().key(column)
        )  # Ibis takes a year for a number of 8 bits

    def float_key(self, column: Any) -> Any:
        return (column == 0).ifelse(0.0, column)  # there is no NaN

    def text_key(self, column: Any) -> Any:
        return call("unhex", "binary", call("hex", "string", as_text(column).left(LONGEST)))

    def key_of(self, label: Any, kind: Any) -> Any:
        if isinstance(label, bool) and kind.is_integer():
            return int(label)
        return super().key_of(label[:LONGEST] if isinstance(label, str) else label, kind)

    def strip(self, text: Any) -> Any:
        # Its own leaves a space before a tab, and Ibis does not offer regular expressions there.
        return call("regexp_replace", "string", text, SPACES_AT_ENDS, "")

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        # Ibis would read them through pandas, which makes floats of whole numbers beside a null.
        return list(self.stream(table))

    def numbers(self, table: Any) -> list[Any]:
        return collect_numbers(self.stream(table), len(table.columns))

    def stream(self, table: Any) -> Iterator[tuple[Any, ...]]:
        with closing(self.backend.con.cursor()) as cursor:
            cursor.execute(self.backend.compile(table))
            while batch := cursor.fetchmany(BATCH):
                yield from batch

    def create(self, name: str, table: Any) -> Any:
        # Ibis would declare columns of bytes without their length, which MySQL does not take.
        self.backend._run_pre_execute_hooks(table)
        self._sql(f"CREATE TEMPORARY TABLE `{name}` AS {self.backend.compile(table)}")
        return self._table(name, table.schema())

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        typed = [
            typed_array(values, schema[column].to_pyarrow()) for column, values in columns.items()
        ]
        name = new_name("labels")
        kinds = ", ".join(f"`{column}` {_declaration(schema[column])}" for column in columns)
        holes = ", ".join(["%s"] * len(columns))
        stack.callback(quietly, self.drop, name)
        rows = list(zip(*(array.to_pylist() for array in typed), strict=True))
        self._sql(f"CREATE TEMPORARY TABLE `{name}` ({kinds})")
        with closing(self.backend.con.cursor()) as cursor:
            cursor.executemany(f"INSERT INTO `{name}` VALUES ({holes})", rows)
        return self._table(name, schema)

    def _table(self, name: str, schema: Any) -> Any:
        from ibis.expr import operations

        return operations.DatabaseTable(name, schema=schema, source=self.backend).to_expr()

    def drop(self, name: str, *, stopped: bool = False) -> None:
        # without TEMPORARY it would commit
        quietly(self._sql, f"DROP TEMPORARY TABLE IF EXISTS `{name}`")

    def _set(self, name: str, value: object) -> None:
        with closing(self.backend.con.cursor()) as cursor:
            cursor.execute(f"SET SESSION {name} = %s", (value,))

    def _sql(self, query: str) -> list[tuple[Any, ...]]:
        with closing(self.backend.con.cursor()) as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())


def _declaration(kind: Any) -> str:
    from ibis.backends.sql.datatypes import MySQLType

    return "LONGBLOB" if kind.is_binary() else str(MySQLType.to_string(kind))


ENGINE = MySQL
