"""DuckDB: collations end where bytes begin. A database that we opened ourselves has none."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from typing import Any

from privmax.resources import CHOSEN, Resources
from privmax.sources.engines.base import (
    ArrowEngine,
    as_text,
    ask,
    call,
    is_moment,
    iso,
    quietly,
    rows_of,
)

OURS = "privmax_opened_it"
"""Marks a connection that reads files or frames for us: no column has a collation there, and text
is its own key, which is a third faster than its bytes."""


_INFINITE = {
    iso(sign * number, unit): "infinity" if sign > 0 else "-infinity"
    for number, unit in (((1 << 31) - 1, "D"), ((1 << 63) - 1, "us"))
    for sign in (1, -1)
}
"""The dates and moments that DuckDB writes so, by the numbers it keeps for them."""


def prepare(connection: Any, held: ExitStack) -> Any:
    """A connection to DuckDB that keeps to what it may use; the folder goes with `held`."""
    resources = CHOSEN.get() or Resources.of()
    folder = tempfile.TemporaryDirectory(
        prefix="privmax-", dir=resources.folder, ignore_cleanup_errors=True
    )
    held.callback(folder.cleanup)
    held.callback(quietly, connection.disconnect)
    settings = {
        "temp_directory": folder.name,
        "autoinstall_known_extensions": "false",  # nothing is fetched from anywhere
        "autoload_known_extensions": "false",  # and no code runs that a file asks for
    }
    if resources.memory is not None:
        settings["memory_limit"] = resources.memory
    if resources.watch is not None:
        settings |= {"enable_progress_bar": "true", "enable_progress_bar_print": "false"}
    for name, value in settings.items():
        connection.con.execute(f"SET {name} = '{value.replace(chr(39), chr(39) * 2)}'")
    if resources.watch is not None:
        resources.watch(connection.con)
    return connection


class DuckDB(ArrowEngine):
    _began = False

    @property
    def keys_are_bytes(self) -> bool:  # type: ignore[override]  # of a class it is a constant
        return not hasattr(self.backend, OURS)

    def begin(self, table: Any, held: ExitStack, *, passes: int = 1) -> None:
        """Ask within one transaction, unless there is one, or nobody else can write."""
        super().begin(table, held, passes=passes)
        # what it takes from Python stays there
        ask("the counting", self.backend._run_pre_execute_hooks, table)
        if self.keys_are_bytes and not ask("the counting", self._is_within_transaction):
            ask("the counting", self.backend.con.begin)
            held.callback(quietly, self.backend.con.rollback)
            self._began = True

    def end_reading(self) -> None:
        """Commit: a table that a transaction has not committed has no statistics, without which
        DuckDB counts half as fast.
        """
        if self._began:
            ask("the counting", self.backend.con.commit)

    def _is_within_transaction(self) -> bool:
        """Whether two statements belong to one transaction. To begin another would fail, and end
        the caller's.
        """
        numbers = {self.backend.con.execute("SELECT txid_current()").fetchone() for _ in range(2)}
        return len(numbers) == 1

    def has_text_key(self, kind: Any) -> bool:
        """As everywhere; and whole numbers of 128 bits, which Ibis takes for decimals that cannot
        hold all of them.
        """
        return super().has_text_key(kind) or bool(
            kind.is_decimal() and (kind.precision, kind.scale) == (38, 0)
        )

    def text_key(self, column: Any) -> Any:
        text = column if column.type().is_string() and not self.keys_are_bytes else as_text(column)
        return call("encode", "binary", text) if self.keys_are_bytes else text

    def label(self, value: Any, kind: Any) -> Any:
        from ibis.expr import datatypes

        if is_moment(kind) and isinstance(value, str) and value in _INFINITE:
            return _INFINITE[value]
        nanoseconds = kind.is_unknown() and "TIME_NS" in str(
            kind
        )  # a time, which Ibis does not know
        return super().label(value, datatypes.time if nanoseconds else kind)

    def rows(self, table: Any) -> list[tuple[Any, ...]]:
        """As everywhere, but not through Ibis, which would import pandas and Arrow's functions to
        change types: half a second, for values that Python reads as they are. Sums of whole numbers
        come as decimals.
        """
        self.backend._run_pre_execute_hooks(table)
        return rows_of(self.backend.con.sql(self.backend.compile(table)).to_arrow_table())

    def drop(self, name: str, *, stopped: bool = False) -> None:
        if stopped:
            quietly(
                self.backend.con.interrupt
            )  # after Ctrl-C it would first finish what it was doing
        super().drop(name)

    def forget(self, name: str) -> None:
        self.backend.drop_view(name, force=True)


ENGINE = DuckDB
