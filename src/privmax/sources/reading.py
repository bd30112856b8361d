"""Which source reads what: engines keep their tables, everything else is read in memory.

No engine is imported before somebody brings one of its objects, or a path.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from privmax.errors import DataError, EngineError, ParameterError
from privmax.privacy import Number
from privmax.sources.memory import MemorySource, Universe
from privmax.sources.table import TableSource

Source = MemorySource | TableSource


def source(
    data: object,
    *,
    universe: Universe,
    sensitivity: Number | None,
    resolution: Number | None,
    item: str | Sequence[str] | None,
    score: str | None,
    user: str | None,
    weight: str | None,
    bound: int | None,
) -> Source:
    """The source that fits `data`. Close it after use."""
    counted = user is not None or weight is not None or bound is not None
    table = _table(data, counted or (item is not None and score is None) or not isinstance(item, str | None))
    if table is None:
        for name, value in (("user", user), ("weight", weight), ("bound", bound)):
            if value is not None:
                raise ParameterError(
                    name, value, "it names something of a table, and this data is not one", "Leave it out."
                )
        if item is not None and not isinstance(item, str):
            raise ParameterError("item", item, "it names a column, and this data is not a table", "Leave it out.")
        return MemorySource(
            data, universe=universe, sensitivity=sensitivity, resolution=resolution, item=item, score=score
        )
    if resolution is not None:
        raise ParameterError("resolution", resolution, "it is for float scores in memory", "Leave it out.")
    return TableSource(
        table,
        item=item,
        user=user,
        score=score,
        weight=weight,
        bound=bound,
        universe=universe,
        sensitivity=sensitivity,
    )


def _table(data: object, counted: bool) -> Any:
    """`data` as an Ibis table, or None where it is to be read in memory."""
    if isinstance(data, (str, os.PathLike)):
        return _file(Path(data))
    loaded = sys.modules
    if "ibis" in loaded and isinstance(data, loaded["ibis"].Table):
        return data
    if "duckdb" in loaded and isinstance(data, loaded["duckdb"].DuckDBPyRelation):
        return _relation(data)
    kind = type(data)
    if kind.__module__.startswith("pyspark.sql") and kind.__name__ == "DataFrame":
        return _spark(data)
    frames = [loaded[name] for name in ("pandas", "polars", "pyarrow") if name in loaded]
    is_frame = any(isinstance(data, getattr(module, name, ())) for module in frames for name in ("DataFrame", "Table"))
    return _ibis().memtable(data) if is_frame and counted else None


def _file(path: Path) -> Any:
    """A CSV or Parquet file, or a folder of Parquet files, read by DuckDB."""
    if not path.exists():
        raise DataError("There is no file or folder of the name given as data.")
    name = path.name.lower()
    connection = _ibis().duckdb.connect()
    try:
        if path.is_dir():
            return connection.read_parquet(str(path / "**" / "*.parquet"))
        if name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
            return connection.read_csv(str(path))
        if name.endswith((".parquet", ".pq")):
            return connection.read_parquet(str(path))
    except Exception as error:
        raise EngineError(f"DuckDB cannot read the file ({type(error).__name__}). Is it what its name says?") from None
    raise DataError(
        "The file is neither .csv, .tsv (.gz) nor .parquet. Rename it, or read it with Ibis and pass the table."
    )


def _relation(relation: Any) -> Any:
    """A DuckDB relation, whose connection cannot be asked for: streamed, batch by batch, into a table of a new one."""
    connection = _ibis().duckdb.connect()
    connection.con.register("stream", relation.fetch_record_batch())
    connection.raw_sql("CREATE TEMP TABLE relation AS SELECT * FROM stream")
    return connection.table("relation")


def _spark(frame: Any) -> Any:
    """A Spark DataFrame as a table of its own session."""
    connection = _ibis().pyspark.connect(frame.sparkSession)
    name = f"privmax_{id(frame):x}"
    frame.createOrReplaceTempView(name)
    return connection.table(name)


def _ibis() -> Any:
    try:
        import ibis
    except ImportError:
        raise ParameterError(
            "data", "a table", "tables and files need Ibis, which is not installed", 'Run pip install "privmax[sql]".'
        ) from None
    return ibis
