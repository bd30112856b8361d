"""Rows that name a group, in every container that tests of groups read."""

from __future__ import annotations

import csv
import json

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


def columns_of(names, rows):
    """The values of each column, by its name."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def _csv(names, rows, folder):
    path = folder / "rows.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([names, *rows])
    return path


def _json_lines(names, rows, folder):
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows))
    return path


def _parquet(names, rows, folder):
    pq.write_table(_arrow(names, rows), folder / "rows.parquet")
    return folder / "rows.parquet"


def _pandas(names, rows, folder=None):
    return pd.DataFrame(columns_of(names, rows))


def _polars(names, rows, folder=None):
    return pl.DataFrame(columns_of(names, rows))


def _arrow(names, rows, folder=None):
    return pa.table(columns_of(names, rows))


CONTAINERS = {
    "pandas": _pandas,
    "pandas, categories": lambda *given: _pandas(*given).astype("category"),
    "polars": _polars,
    "polars, categories": lambda *given: _polars(*given).with_columns(
        pl.all().cast(pl.Categorical)
    ),
    "Arrow": _arrow,
    "CSV": _csv,
    "JSON Lines": _json_lines,
    "Parquet": _parquet,
    "DuckDB": lambda *given: duckdb.from_arrow(_arrow(*given)),
}
"""What makes a table of names of columns, rows and a folder for files."""
