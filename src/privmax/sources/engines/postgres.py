"""PostgreSQL: one transaction that sees the same rows throughout, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any

from privmax.retries import chain
from privmax.sources.arrow_rows import rows_in
from privmax.sources.asking import ask, quietly
from privmax.sources.engines.base import Engine, as_text, call, is_moment, new_name

_TRANSIENT = ("08", "40", "53", "57", "55P03", "25P03", "25P04")
"""The beginnings of states: no connection, a conflict with another transaction, no resources,
stopped by an operator or a time limit; a lock that was not to be had, and sessions that waited too
long.
"""

_FULL = "53100"
"""The disk of the server is full: a person must make room."""

_WORDS = (
    "refused", "timeout", "timed out", "closed", "reset by peer", "broken pipe", "unreachable",
    "is lost", "no such file or directory", "temporary failure", "starting up", "shutting down",
    "recovery mode", "too many", "connection slots",
)  # fmt: skip
"""Words of libpq, in whose own language they are unless a program asks for another, for servers
that do not answer; not for a wrong name, password, host or port.
"""

_LOGINS = {
    "password authentication failed": "The server refused the password of this user.",
    "no password supplied": "The server asks for a password: put it in ~/.pgpass or PGPASSWORD.",
    "authentication failed": "The server does not take this system user for that database user.",
    "no pg_hba.conf entry": "The server does not let this user in from here (pg_hba.conf).",
    "not permitted to log in": "This user may not log in.",
    "permission denied for database": "This user may not connect to the database.",
    "does not exist": "The server has no such user or no such database.",
    "connection refused": "No server answers at that host and port.",
    "could not translate host name": "The name of the host is not known.",
    "failed to resolve host": "The name of the host is not known.",
    "timeout": "The server did not answer in time.",
    "starting up": "The server is starting up.",
    "shutting down": "The server is shutting down.",
    "too many": "The server has no connection left.",
    "connection slots": "The server has no connection left.",
}
"""Explanations by the words of libpq and the server where a session does not begin. The first that
fits counts.
"""


class Postgres(Engine):
    name, title = "postgres", "PostgreSQL"
    schemes: Mapping[str, str] = {"postgres": "PostgreSQL", "postgresql": "PostgreSQL"}
    package, module, extra = "psycopg", "psycopg", "postgres"
    has_grouping_sets = True
    keys_are_bytes = True
    sorts_to_count = True  # the pairs it would hash first: twice the time (benchmarks)

    @classmethod
    def open_url(cls, url: str) -> Any:
        import ibis

        # behind a pooler another connection would be asked for what was prepared
        return ibis.connect(url, prepare_threshold=None)

    @classmethod
    def is_transient(cls, error: BaseException) -> bool:
        if not _is_own(error):
            return False
        state = getattr(error, "sqlstate", None)
        if state is not None:
            return str(state).startswith(_TRANSIENT) and state != _FULL
        if type(error).__name__ != "OperationalError":
            return False
        words = str(error).lower()  # there is no state where no session began, or it was lost
        return any(cause in words for cause in _WORDS)

    @classmethod
    def explain_login(cls, error: BaseException) -> str | None:
        """Explain a failed login, without quoting the words of the driver.

        A URL that is written wrong puts its password there.

        Examples:
            >>> Postgres.explain_login(ValueError("password authentication failed")) is None
            True
        """
        for one in chain(error):
            if _is_own(one) and type(one).__name__ == "OperationalError":
                words = str(one).lower()
                return next((meaning for cause, meaning in _LOGINS.items() if cause in words), None)
        return None

    def begin(self, table: Any, stack: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, which is rolled back.

        Counts in temporary tables vanish with it.

        A pooler may give every transaction another connection, and the connection to another client
        afterwards. For the same reason no statement is prepared on the server.
        """
        super().begin(table, stack, passes=passes)
        connection = self.backend.con
        threshold, connection.prepare_threshold = connection.prepare_threshold, None
        stack.callback(setattr, connection, "prepare_threshold", threshold)
        alone = connection.info.transaction_status.name == "IDLE"
        transaction = connection.transaction(force_rollback=True)
        ask("the counting", transaction.__enter__)
        stack.push(lambda *failed: quietly(transaction.__exit__, *failed))
        if alone:  # within a transaction of the caller's, how much it sees is the caller's to say
            level = "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"
            ask("the counting", connection.execute, level)
        # others may have odd seconds
        ask("the counting", connection.execute, "SET LOCAL TIME ZONE 'UTC'")

    def key(self, column: Any) -> Any:
        """As everywhere; numbers without a scale keep no zeros at their end, and NaN is no item."""
        kind = column.type()
        if not kind.is_decimal():
            return super().key(column)
        exact = self.number(column)
        return super().key(exact if kind.scale is not None else call("trim_scale", kind, exact))

    def present(self, column: Any) -> Any:
        return self.number(column) if column.type().is_decimal() else super().present(column)

    def number(self, column: Any) -> Any:
        import ibis

        kind = column.type()
        if not kind.is_decimal():
            return super().number(column)
        return (as_text(column) == "NaN").ifelse(ibis.null(kind), column)

    def text_key(self, column: Any) -> Any:
        if column.type().is_interval():
            return call("interval_send", "binary", column)  # its text depends on a setting
        return call("convert_to", "binary", as_text(column), "UTF8")

    def hash_values(self, keys: Sequence[Any], salt: str) -> Any:
        """Return a hash by the functions that PostgreSQL itself hashes with.

        A number of 64 bits is made, kept, and sorted faster than the text of an MD5.
        """
        from hashlib import blake2b

        import ibis

        digest = blake2b(salt.encode(), digest_size=8).digest()
        hashed = ibis.literal(int.from_bytes(digest, "big", signed=True), "int64")
        for key in keys:
            if key.type().is_integer():
                mixed = call("hashint8extended", "int64", key.cast("int64"), hashed)
            else:
                mixed = call("hashtextextended", "int64", self.hash_text(key), hashed)
            hashed = mixed.fill_null(hashed)
        return hashed

    def hash_text(self, key: Any) -> Any:
        return call("encode", "string", key, "hex") if key.type().is_binary() else as_text(key)

    def strip(self, text: Any) -> Any:
        return text.strip()

    def readable(self, key: Any, kind: Any) -> Any:
        if is_moment(kind):  # as text it depends on a setting; as JSON it does not
            return call("concat", "string", call("to_json", "json", key))
        return super().readable(key, kind)

    def label(self, value: Any, kind: Any) -> Any:
        if kind.is_interval() and isinstance(value, bytes):
            return _span(value)
        if is_moment(kind) and isinstance(value, str):
            return super().label(value.strip('"'), kind)
        return super().label(value, kind)

    def key_of(self, label: Any, kind: Any) -> Any:
        if kind.is_interval():
            raise TypeError("spans of time cannot be declared")
        return super().key_of(label, kind)

    def create(self, name: str, table: Any) -> Any:
        made = super().create(name, table)
        self._analyze(name)
        return made

    def table_of(self, columns: Mapping[str, Sequence[Any]], schema: Any, stack: ExitStack) -> Any:
        """As everywhere; whole numbers are copied, which takes a fraction of the time."""
        if not all(kind.is_integer() for kind in schema.types):
            return super().table_of(columns, schema, stack)
        from ibis.expr import operations

        name = new_name("labels")
        stack.callback(quietly, self.drop, name)
        kinds = ", ".join(f'"{column}" bigint' for column in columns)
        with self.backend.con.cursor() as cursor:
            cursor.execute(f'CREATE TEMPORARY TABLE "{name}" ({kinds})')
            with cursor.copy(f'COPY "{name}" FROM STDIN') as copy:
                for row in rows_in(columns):
                    copy.write_row(row)
        self._analyze(name)
        return operations.DatabaseTable(name, schema=schema, source=self.backend).to_expr()

    def _analyze(self, name: str) -> None:
        """Inform the planner of what our own table has, as it never looks by itself.

        Without that it takes every column for 200 different values, expects joins ten thousand
        times as large as they are, and sorts both sides of each.
        """
        self.backend.con.execute(f'ANALYZE "{name}"')


def _is_own(error: BaseException) -> bool:
    """Return whether an error is of a driver of PostgreSQL."""
    return type(error).__module__.partition(".")[0] in ("psycopg", "psycopg2")


def _span(sent: bytes) -> str:
    """Return a span of time as PostgreSQL keeps it: months, days and microseconds.

    None of them is turned into another.
    """
    numbers = [
        int.from_bytes(sent[start:end], "big", signed=True)
        for start, end in ((0, 8), (8, 12), (12, 16))
    ]
    micros, days, months = numbers
    sign, rest = ("-" if micros < 0 else ""), abs(micros)
    clock = (
        f"{sign}{rest // 3_600_000_000:02}:{rest // 60_000_000 % 60:02}:{rest // 1_000_000 % 60:02}"
    )
    part = f".{rest % 1_000_000:06}".rstrip("0") if rest % 1_000_000 else ""
    named = [f"{number} {name}" for number, name in ((months, "months"), (days, "days")) if number]
    return " ".join([*named, *([clock + part] if micros or not named else [])])


ENGINE = Postgres
