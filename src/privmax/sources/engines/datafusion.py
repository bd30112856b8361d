"""DataFusion: text has no collation; it has no temporary tables, but a cache."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from privmax.sources.engines.base import Engine, as_text, ask, new_name, quietly


class DataFusion(Engine):
    def text_key(self, column: Any) -> Any:
        return as_text(column)

    def keep(self, counts: Any, held: ExitStack) -> Any:
        # Ibis keeps one table for equal expressions, and whoever is first done takes it from the
        # others: the name, as one column more, makes this expression like no other.
        cached = ask("the counting", counts.mutate(**{new_name("counts"): 0}).cache)
        held.callback(quietly, cached.release)
        return cached


ENGINE = DataFusion
