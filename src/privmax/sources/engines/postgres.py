"""PostgreSQL: one transaction that sees the same rows throughout, and leaves nothing behind."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from privmax.sources.engines.base import Engine, as_text, ask, call, is_moment, quietly


class Postgres(Engine):
    keys_are_bytes = True
    sorts_to_count = True  # the pairs it would hash first: twice the time (benchmarks)

    def begin(self, table: Any, held: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, which is rolled back: counts in temporary tables vanish with
        it.

        A pooler may give every transaction another connection, and the connection to another client
        afterwards. For the same reason no statement is prepared on the server.
        """
        super().begin(table, held, passes=passes)
        connection = self.backend.con
        threshold, connection.prepare_threshold = connection.prepare_threshold, None
        held.callback(setattr, connection, "prepare_threshold", threshold)
        alone = connection.info.transaction_status.name == "IDLE"
        transaction = connection.transaction(force_rollback=True)
        ask("the counting", transaction.__enter__)
        held.push(lambda *failed: quietly(transaction.__exit__, *failed))
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


def _span(sent: bytes) -> str:
    """A span of time as PostgreSQL keeps it: months, days and microseconds, none of which is turned
    into another.
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
