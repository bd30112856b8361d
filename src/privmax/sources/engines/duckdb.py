"""DuckDB: collations end where bytes begin. In a database that we opened ourselves there are none."""

from __future__ import annotations

from typing import Any

from privmax.sources.engines.base import Engine, as_text, call, quietly

OURS = "privmax_opened_it"
"""Marks a connection that reads files or frames for us: no column has a collation there, and text is its own key,
which is a third faster than its bytes."""


class DuckDB(Engine):
    @property
    def keys_are_bytes(self) -> bool:  # type: ignore[override]  # of a class it is a constant
        return not hasattr(self.backend, OURS)

    def has_text_key(self, kind: Any) -> bool:
        """As everywhere; and whole numbers of 128 bits, which Ibis takes for decimals that cannot hold all of them."""
        return super().has_text_key(kind) or bool(kind.is_decimal() and (kind.precision, kind.scale) == (38, 0))

    def text_key(self, column: Any) -> Any:
        text = column if column.type().is_string() and not self.keys_are_bytes else as_text(column)
        return call("encode", "binary", text) if self.keys_are_bytes else text

    def label(self, value: Any, kind: Any) -> Any:
        from ibis.expr import datatypes

        nanoseconds = kind.is_unknown() and "TIME_NS" in str(kind)  # a time, which Ibis does not know
        return super().label(value, datatypes.time if nanoseconds else kind)

    def drop(self, name: str, *, stopped: bool = False) -> None:
        if stopped:
            quietly(self.backend.con.interrupt)  # after Ctrl-C it would first finish what it was doing
        super().drop(name)

    def forget(self, name: str) -> None:
        self.backend.drop_view(name, force=True)


ENGINE = DuckDB
