"""DuckDB: collations and enumerations are left behind by the bytes of a text."""

from __future__ import annotations

from typing import Any

from privmax.sources.engines.base import Engine, as_text, call, quietly


class DuckDB(Engine):
    keys_are_bytes = True

    def has_text_key(self, kind: Any) -> bool:
        """As everywhere; and whole numbers of 128 bits, which Ibis takes for decimals that cannot hold all of them."""
        return super().has_text_key(kind) or bool(kind.is_decimal() and (kind.precision, kind.scale) == (38, 0))

    def text_key(self, column: Any) -> Any:
        return call("encode", "binary", as_text(column))

    def drop(self, name: str, *, stopped: bool = False) -> None:
        if stopped:
            quietly(self.backend.con.interrupt)  # after Ctrl-C it would first finish what it was doing
        super().drop(name)

    def forget(self, name: str) -> None:
        self.backend.drop_view(name, force=True)


ENGINE = DuckDB
