"""polars: text has no collation, and is its own key."""

from __future__ import annotations

from typing import Any

from privmax.sources.engines.base import Engine, as_text


class Polars(Engine):
    @property
    def connection(self) -> Any:
        return self.backend

    def text_key(self, column: Any) -> Any:
        return column if column.type().is_string() else as_text(column)


ENGINE = Polars
