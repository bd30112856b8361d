"""Ways in which people put rows together: base rows, and perhaps one more."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

Row = dict[str, Any]


class Unbuildable(Exception):
    """The library itself does not hold these values in one column."""


def from_dicts(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return pd.DataFrame([*rows, *more])


def from_lists(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return pd.DataFrame(_columns([*rows, *more]))


def concat(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    parts = [pd.DataFrame(_columns(part)) for part in (rows, more) if part]
    return pd.concat(parts, ignore_index=True)


def odd_first(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    """The type of the odd row meets that of one other row before all the rest."""
    parts = [pd.DataFrame(_columns(part)) for part in ([*more, rows[0]], rows[1:])]
    frame = pd.concat(parts, ignore_index=True)
    places = [*range(len(more), len(frame)), *range(len(more))]
    return frame.iloc[places].reset_index(drop=True)


def append(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    frame = pd.DataFrame(_columns(rows))
    for row in more:
        frame.loc[len(frame)] = pd.Series(row, dtype=object)
    return frame


def objects(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    every = _columns([*rows, *more])
    return pd.DataFrame({name: pd.Series(column, dtype=object) for name, column in every.items()})


def categories(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return from_lists(rows, more, role, folder).astype({role: "category"})


def declared(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    """Of a nullable type, by what the base rows hold."""
    kinds = {bool: "boolean", int: "Int64", float: "Float64", str: "string"}
    kind = kinds.get(type(rows[0][role]))
    if kind is None or (kind == "Int64" and any(type(row[role]) is float for row in more)):
        raise Unbuildable  # beside a float, pandas rounds a list before it has that type
    every = _columns([*rows, *more])
    return pd.DataFrame({**every, role: pd.array(every[role], dtype=kind)})


def arrow_backed(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return arrow(rows, more, role, folder).to_pandas(types_mapper=pd.ArrowDtype)


def read_csv(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return pd.read_csv(_write_csv(rows, more, folder))


def read_csv_as_text(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return pd.read_csv(_write_csv(rows, more, folder), dtype={role: str})


def polars(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    kinds = pl.DataFrame(_columns(rows), strict=True).schema
    return pl.DataFrame(_columns([*rows, *more]), schema=kinds, strict=True)


def arrow(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    """As polars, with the types of the base rows: they are declared."""
    return pa.table(_columns([*rows, *more]), schema=pa.table(_columns(rows)).schema)


def csv_file(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    return _write_csv(rows, more, folder)


def json_lines(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    path = folder / "rows.jsonl"
    lines = [json.dumps(row, default=str, allow_nan=False) for row in (*rows, *more)]
    path.write_text("\n".join(lines) + "\n")
    return path


def parquet(rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path) -> Any:
    pq.write_table(arrow(rows, more, role, folder), folder / "rows.parquet")
    return folder / "rows.parquet"


Container = Callable[[Sequence[Row], Sequence[Row], str, Path], Any]

PANDAS: dict[str, Container] = {
    "pandas, dicts": from_dicts,
    "pandas, lists": from_lists,
    "pandas, concat": concat,
    "pandas, odd row first": odd_first,
    "pandas, appended": append,
    "pandas, objects": objects,
    "pandas, categories": categories,
    "pandas, nullable": declared,
    "pandas, Arrow": arrow_backed,
    "pandas, read_csv": read_csv,
    "pandas, read_csv as text": read_csv_as_text,
}
FRAMES: dict[str, Container] = {**PANDAS, "polars": polars, "Arrow": arrow}
FILES: dict[str, Container] = {"CSV": csv_file, "JSON Lines": json_lines, "Parquet": parquet}


def build(
    container: Container, rows: Sequence[Row], more: Sequence[Row], role: str, folder: Path
) -> Any:
    """The data, or `Unbuildable`."""
    try:
        return container(rows, more, role, folder)
    except Exception as error:
        raise Unbuildable from error


def _columns(rows: Sequence[Row]) -> dict[str, list[Any]]:
    return {name: [row[name] for row in rows] for name in rows[0]}


def _write_csv(rows: Sequence[Row], more: Sequence[Row], folder: Path) -> Path:
    path = folder / "rows.csv"
    with path.open("w", newline="") as opened:
        writer = csv.DictWriter(opened, list(rows[0]))
        writer.writeheader()
        writer.writerows([*rows, *more])
    return path
