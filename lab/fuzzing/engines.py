"""Targets that run an engine: tables in files, corrupted or not, Ibis expressions, conditions."""

from __future__ import annotations

import csv
import io
import sqlite3
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import privmax
from lab.fuzzing.drawing import Draw, as_text, write
from lab.fuzzing.judging import ENGINE, Target, WrongError
from privmax.itemsets import top_itemsets
from privmax.sources.conditions import Condition
from privmax.sources.engines import engine_of
from privmax.testing import SeededCoins

TERMS: dict[str, Any] = {"epsilon": "1", "delta": "1e-6"}


def count_csv(data: bytes) -> None:
    """`select` counts rows of CSV or JSON Lines in DuckDB."""
    draw = Draw(data)
    kind = draw.pick(["csv", "tsv", "jsonl", "csv.gz"])
    options: dict[str, Any] = draw.pick(
        [{"user": "u"}, {}, {"user": "u", "weight": "w", "bound": 3}, {"where": "u != 'x'"}]
    )
    item = draw.pick(["i", "i", ["i", "u"], "no", ""])
    file = write(f"rows.{kind}", draw.rest())
    columns = privmax.Columns(item, **options)
    privmax.select(file, columns=columns, coins=SeededCoins(1), **TERMS)


@cache
def _parquet() -> bytes:
    import pyarrow
    import pyarrow.parquet

    rows = {"u": [1, 2, 3, 3], "i": ["tea", "tea", "ale", None], "d": [1.5, None, 2.5, 0.0]}
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(rows), sink, compression="none")
    return sink.getvalue()


@cache
def _database() -> bytes:
    path = Path(write("template.sqlite", b""))
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE t (u INTEGER, i TEXT, d REAL)")
        connection.executemany("INSERT INTO t VALUES (?, ?, ?)", [(1, "tea", 1.5), (2, "ale", 0)])
        connection.commit()
    return path.read_bytes()


def count_damaged(data: bytes) -> None:
    """`select` on a Parquet or SQLite file with bytes of it changed or cut off."""
    draw = Draw(data)
    kind = draw.byte() % 3
    held = bytearray(_parquet() if kind < 2 else _database())
    for _ in range(draw.byte() % 6):
        place = draw.whole(2) % len(held)
        changed = draw.chunk(6)
        held[place : place + len(changed)] = changed
    if draw.byte() % 8 == 0:
        del held[draw.whole(2) % len(held) :]
    item = draw.pick(["i", "d", "u"])
    options: dict[str, Any] = {"user": "u", "item": item, "coins": SeededCoins(1), **TERMS}
    if kind == 2:
        privmax.select(privmax.Database(write("rows.sqlite", bytes(held)), "t"), **options)
    elif kind == 0:
        privmax.select(write("rows.parquet", bytes(held)), **options)
    else:
        file = write("rows.parquet", bytes(held))
        top_itemsets(file, basket="u", item="i", size=1, coins=SeededCoins(1), **TERMS)


ROWS = [
    {"a": "x", "b": "1", "c": ""},
    {"a": "", "b": " -2.50 ", "c": "é"},
    {"a": "X", "b": "1e3", "c": "null"},
    {"a": "x'y", "b": "00012", "c": "true"},
]


def filter_rows(data: bytes) -> None:
    """`where` in DuckDB keeps the rows that it keeps of a text file."""
    condition = Condition.of(as_text(data))
    condition.check(["a", "b", "c"], shown=True)
    condition.check_text()
    expected = [f"row{n}" for n, row in enumerate(ROWS) if condition.keeps(_cells(row).get)]
    table = _rows()
    kept = Condition.of(condition.given).filter(table, engine_of(table), is_text=True)
    law = privmax.law(
        kept, item="item", mechanism="exponential", epsilon=9,
        universe=[f"row{n}" for n in range(len(ROWS))],
    )  # fmt: skip
    assert isinstance(law, dict)
    best = sorted(item for item, chance in law.items() if chance > 0.05) if expected else []
    if expected and best != expected and len(expected) < len(ROWS):
        raise WrongError("an engine keeps other rows")


def _cells(row: dict[str, str]) -> dict[str, str | None]:
    return {name: value or None for name, value in row.items()}


@cache
def _rows() -> Any:
    """ROWS in DuckDB, read from a text file. One connection: a thousand fill the memory."""
    import ibis

    text = io.StringIO()
    rows = csv.writer(text)
    rows.writerow(["item", "a", "b", "c"])
    rows.writerows([f"row{n}", *row.values()] for n, row in enumerate(ROWS))
    file = write("where.csv", text.getvalue().encode())
    table = ibis.duckdb.connect().read_csv(file, all_varchar=True)
    return table.mutate(**{name: table[name].nullif("") for name in ("a", "b", "c")})


def count_expression(data: bytes) -> None:
    """`select` on an Ibis expression: joins, unions, aggregates, casts, anything."""
    import ibis

    draw = Draw(data)
    connection = _connection()
    table: Any = connection.table("t")
    for _ in range(draw.byte() % 5):
        with suppress(Exception):  # what Ibis itself refuses is no expression
            table = draw.pick(_STEPS)(table, draw)
    try:
        columns = list(table.columns)
    except ibis.common.exceptions.IbisError:
        return  # joined columns of one name: again no expression
    item = draw.pick([*columns, "no"])
    options: dict[str, Any] = {}
    if draw.byte() % 2:
        options["user"] = draw.pick([*columns, "no"])
    elif draw.byte() % 2:
        options |= {"score": draw.pick(columns), "universe": draw.pick(["open", 5])}
    if draw.byte() % 4 == 0:
        options["where"] = draw.pick(["i = 'tea'", "n > 1", "b", "z is null", "n = true"])
    privmax.select(table, item=item, coins=SeededCoins(1), **options, **TERMS)


@cache
def _connection() -> Any:
    import ibis

    connection = ibis.duckdb.connect()
    connection.raw_sql(
        "CREATE TABLE t AS SELECT * FROM (VALUES (1, 'tea', 1.5, true, DATE '2026-01-01', [1, 2]), "
        "(2, 'ale', NULL, false, NULL, NULL), (2, 'tea', 'nan'::DOUBLE, NULL, DATE '1900-01-01', "
        "[3])) AS v(n, i, d, b, z, l)"
    )
    return connection


_TYPES = ["int64", "string", "float32", "boolean", "date", "timestamp", "decimal(38, 2)", "binary"]

_STEPS = (
    lambda t, draw: t.filter(t[draw.pick(list(t.columns))].notnull()),
    lambda t, draw: t.filter(t[draw.pick(list(t.columns))] == draw.value(0)),
    lambda t, draw: t.mutate(x=t[draw.pick(list(t.columns))].cast(draw.pick(_TYPES))),
    lambda t, draw: t.mutate(x=t[draw.pick(list(t.columns))].try_cast(draw.pick(_TYPES))),
    lambda t, draw: t.mutate(x=1 / t[draw.pick(list(t.columns))]),
    lambda t, draw: t.group_by(draw.pick(list(t.columns))).agg(x=t.count()),
    lambda t, draw: t.union(t),
    lambda t, draw: t.distinct(),
    lambda t, draw: t.join(t.view(), draw.pick(list(t.columns))),
    lambda t, draw: t.unnest("l"),
    lambda t, draw: t.limit(draw.byte() % 3),
    lambda t, draw: t.select(draw.pick(list(t.columns))),
    lambda t, draw: t.rename({draw.text(6) or "y": draw.pick(list(t.columns))}),
)

_ENGINE = ["ibis", "duckdb", "pyarrow", "privmax.sources.tables", "privmax.itemsets.reading.tables"]

TARGETS = (
    Target(
        "table files",
        ENGINE,
        "`select` counts rows of CSV and JSON Lines",
        count_csv,
        seeds=[
            b"\x00\x00\x00u,i,w\n1,tea,2\n2,tea,x\n3,ale,\n",
            b"\x01\x01\x00u\ti\n1\ttea\n",
            b'\x02\x00\x00{"u": 1, "i": "tea"}\n{"u": 2, "i": null}\n',
            b"\x00\x02\x02u;i;w\n1;tea;2\n1;tea;9\n",
        ],
        words=[b"\n", b'"', b"\r\n", b",", b"\x00", b'{"u":', b'"i":', b"\xef\xbb\xbf"],
        longest=128,
        needs=_ENGINE,
    ),
    Target(
        "damaged tables",
        ENGINE,
        "`select` on damaged Parquet and SQLite files",
        count_damaged,
        seeds=[
            bytes([kind, 1, place, 0, 2, 255, 255, 1]) for kind in range(3) for place in (4, 90)
        ],
        longest=64,
        needs=_ENGINE,
    ),
    Target(
        "where in DuckDB",
        ENGINE,
        "`where` in DuckDB, against a text file",
        filter_rows,
        seeds=[
            b"a = 'x' and b > 0",
            b"not (c in ('e', 'null') or b between -3 and 1.5)",
            b"a starts with 'x' or b is null",
            b"b = 12 or c != 'true'",
        ],
        words=[b" and ", b" or ", b"not ", b" in (", b" is null", b" between ", b" starts with "],
        longest=96,
        needs=_ENGINE,
    ),
    Target(
        "Ibis",
        ENGINE,
        "`select` on Ibis expressions",
        count_expression,
        seeds=[bytes([2, step, 0, step + 1, 1, 1, 1, 0, 0, 1]) for step in range(12)],
        longest=48,
        needs=_ENGINE,
    ),
)
