"""What each engine needs said differently. One small file an engine; `base.py` says what all of
them answer.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from privmax.sources.engines.base import Engine

_MODULES = {
    "duckdb": "duckdb",
    "polars": "polars",
    "postgres": "postgres",
    "mysql": "mysql",
    "sqlite": "sqlite",
    "pyspark": "spark",
    "datafusion": "datafusion",
}
"""The module of an engine, by the name that Ibis has for it."""


def engine_of(table: Any) -> Engine:
    """The engine that holds an Ibis table."""
    from privmax.sources.engines.base import ask

    backend = ask("the counting", table.get_backend)
    if backend.name not in _MODULES:
        return Engine(backend)
    made: Engine = import_module(f"privmax.sources.engines.{_MODULES[backend.name]}").ENGINE(
        backend
    )
    return made
