"""Every source tells items apart in the same way, and names them the same way.

One row of the table below is a column of items as an engine may hold it: what goes in, and the
items that must come out with their scores, from every source that has such a column. The rows are
chosen so that an engine left to itself would merge two items, name one by another's spelling, shift
it, or fail at the look-up.
"""

from __future__ import annotations

import datetime
from contextlib import closing
from decimal import Decimal

import duckdb
import ibis
import pandas as pd
import polars as pl
import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import privmax
from privmax.itemsets.reading.tables import TableRows
from privmax.labels import label_by_value
from privmax.mechanisms.nested_margin import NestedMargin

UTC = datetime.UTC
LAW = NestedMargin(epsilon=1, delta="0.1")


def items_of(table, universe="open", **options):
    """{item: score}, as the look-ups name them: each item is drawn, not read off a list."""
    from privmax.mechanisms.contract import Outcome
    from privmax.sources.roles import Columns
    from privmax.sources.tables import TableSource

    source = TableSource(table, Columns("item", **options), universe=universe)
    try:
        found = []
        for score, number in source.histogram(-1):
            found += [(source.name(Outcome(score, index)), score) for index in range(number)]
        listed = source.scores()
    finally:
        source.close()
    assert sorted(map(repr, listed)) == sorted(map(repr, found))  # the list and the look-ups agree
    return found


def exactly(found):
    """As they are, types told apart: 1 and 1.0 and True are equal to Python, and so are moments in
    two zones.
    """
    return sorted((type(item).__name__, repr(item), score) for item, score in found)


# PostgreSQL: a column's type as it is declared, the values as SQL, and what must come out.
POSTGRES = {
    "case, by a collation": (
        "text COLLATE nocase",
        ["'Ann'"] * 3 + ["'ann'"] * 2,
        [("Ann", 3), ("ann", 2)],
    ),
    "citext": ("citext", ["'Ann'"] * 3 + ["'ann'"] * 2, [("Ann", 3), ("ann", 2)]),
    "padded": ("char(5)", ["'a'", "'a '", "'b'"], [("a", 2), ("b", 1)]),
    "blank": ("text", ["''", "' '", "NULL"], [("", 1), (" ", 1)]),
    "scale": ("numeric", ["1.0", "1.00", "1", "2.50"], [(Decimal(1), 3), (Decimal("2.5"), 1)]),
    "a message in the zeros": ("numeric", ["7"] * 300 + ["7." + "0" * 1234], [(Decimal(7), 301)]),
    "fixed scale": ("numeric(6,2)", ["1", "1.00", "2.5"], [(Decimal(1), 2), (Decimal("2.5"), 1)]),
    "no number": ("numeric", ["'NaN'", "1"], [(Decimal(1), 1)]),
    "no number of fixed scale": ("numeric(6,2)", ["'NaN'", "1"], [(Decimal(1), 1)]),
    "infinite number": (
        "numeric",
        ["'Infinity'", "1"],
        [(Decimal("Infinity"), 1), (Decimal(1), 1)],
    ),
    "sign of zero": ("float8", ["0.0", "'-0.0'", "0.5", "'NaN'", "NULL"], [(0.0, 2), (0.5, 1)]),
    "spans": (
        "interval",
        ["'1 month'", "'30 days'", "'720 hours'", "'1 month'", "'-1.5 s'"],
        [("1 months", 2), ("30 days", 1), ("720:00:00", 1), ("-00:00:01.5", 1)],
    ),
    "dates": (
        "date",
        ["'2024-02-29'", "'infinity'", "'-infinity'", "'10000-01-01'", "'0044-03-15 BC'"],
        [
            (datetime.date(2024, 2, 29), 1),
            ("infinity", 1),
            ("-infinity", 1),
            ("10000-01-01", 1),
            ("0044-03-15 BC", 1),
        ],
    ),
    "moments": (
        "timestamp",
        ["'2024-02-29 12:00:00.5'", "'infinity'", "'294276-01-01 00:00'"],
        [
            (datetime.datetime(2024, 2, 29, 12, 0, 0, 500000), 1),
            ("infinity", 1),
            ("294276-01-01T00:00:00", 1),
        ],
    ),
    "zones": (
        "timestamptz",
        ["'2024-02-29 12:00:00+00'", "'2024-02-29 13:00:00+01'", "'infinity'"],
        [(datetime.datetime(2024, 2, 29, 12, tzinfo=UTC), 2), ("infinity", 1)],
    ),
    "times": (
        "time",
        ["'12:00:00'", "'24:00:00'", "'12:00:00.25'"],
        [(datetime.time(12), 1), ("24:00:00", 1), (datetime.time(12, 0, 0, 250000), 1)],
    ),
    "times with zones": (
        "timetz",
        ["'12:00:00+00'", "'13:00:00+01'"],
        [("12:00:00+00", 1), ("13:00:00+01", 1)],
    ),
    "identifiers": (
        "uuid",
        ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'a0eebc999c0b4ef8bb6d6bb9bd380a11'"],
        [("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 2)],
    ),
    "addresses": (
        "inet",
        ["'10.0.0.1'", "'10.0.0.1/32'", "'10.0.0.1/24'"],
        [("10.0.0.1/32", 2), ("10.0.0.1/24", 1)],
    ),
    "choices": ("mood", ["'sad'", "'ok'", "'ok'"], [("ok", 2), ("sad", 1)]),
    "bytes": ("bytea", ["'\\x00ff'", "'\\x'"], [(b"\x00\xff", 1), (b"", 1)]),
    "truths": ("bool", ["true", "false", "true"], [(True, 2), (False, 1)]),
    "whole numbers": ("int8", ["9223372036854775807", "-1"], [(2**63 - 1, 1), (-1, 1)]),
}


@pytest.fixture
def postgres_table(postgres):
    connection = ibis.connect(postgres)
    made = []

    def create(kind, values):
        with connection.begin() as cursor:
            cursor.execute("CREATE EXTENSION IF NOT EXISTS citext")
            cursor.execute(
                "CREATE COLLATION IF NOT EXISTS nocase (provider = icu, locale = "
                "'und-u-ks-level2', "
                "deterministic = false)"
            )
            cursor.execute("DROP TYPE IF EXISTS mood CASCADE")
            cursor.execute("CREATE TYPE mood AS ENUM ('sad', 'ok')")
            made.append(ibis.util.gen_name("privmax_test"))
            cursor.execute(f'CREATE TABLE "{made[-1]}" (item {kind}, who int)')
            rows = ", ".join(
                f"({value}::{kind.split(' COLLATE')[0]}, {who})" for who, value in enumerate(values)
            )
            cursor.execute(f'INSERT INTO "{made[-1]}" VALUES {rows}')
        return connection.table(made[-1])

    yield create
    for name in made:
        connection.drop_table(name, force=True)
    connection.disconnect()


@pytest.mark.parametrize("counted", [{}, {"user": "who"}], ids=["rows", "users"])
@pytest.mark.parametrize("name", POSTGRES)
def test_postgresql(postgres_table, name, counted):
    kind, values, expected = POSTGRES[name]
    assert exactly(items_of(postgres_table(kind, values), **counted)) == exactly(expected)


@pytest.mark.parametrize(
    "style",
    ["SET datestyle = 'SQL, DMY'", "SET intervalstyle = 'iso_8601'", "SET timezone = 'Asia/Tokyo'"],
)
@pytest.mark.parametrize("name", ["dates", "moments", "zones", "spans", "times"])
def test_no_setting_of_postgresql_changes_a_label(postgres_table, name, style):
    kind, values, expected = POSTGRES[name]
    table = postgres_table(kind, values)
    table.get_backend().con.execute(style)
    assert exactly(items_of(table)) == exactly(expected)


MARIADB = {
    "case, by default": (
        "varchar(20)",
        ["'Ann'"] * 3 + ["'ann'"] * 2 + ["'änn'"],
        [("Ann", 3), ("ann", 2), ("änn", 1)],
    ),
    "padded": ("varchar(20) COLLATE utf8mb4_bin", ["'a'", "'a '", "'a'"], [("a", 2), ("a ", 1)]),
    "another character set": (
        "varchar(20) CHARACTER SET latin1",
        ["'é'", "'e'", "'E'"],
        [("é", 1), ("e", 1), ("E", 1)],
    ),
    "blank": ("varchar(20)", ["''", "' '", "NULL"], [("", 1), (" ", 1)]),
    "scale": ("decimal(6,2)", ["1", "1.00", "2.5"], [(Decimal(1), 2), (Decimal("2.5"), 1)]),
    "sign of zero": ("double", ["0.0", "-0.0", "0.5", "NULL"], [(0.0, 2), (0.5, 1)]),
    "dates": (
        "date",
        ["'2024-02-29'", "'0000-00-00'", "'2024-02-00'"],
        [(datetime.date(2024, 2, 29), 1), ("0000-00-00", 1), ("2024-02-00", 1)],
    ),
    "moments": (
        "datetime(6)",
        ["'2024-02-29 12:00:00.5'", "'0000-00-00 00:00:00'"],
        [(datetime.datetime(2024, 2, 29, 12, 0, 0, 500000), 1), ("0000-00-00 00:00:00.000000", 1)],
    ),
    "zones": (
        "timestamp NULL",
        ["'2024-02-29 12:00:00'", "'2024-02-29 12:00:00'"],
        [(datetime.datetime(2024, 2, 29, 12, tzinfo=UTC), 2)],
    ),
    "times": (
        "time",
        ["'12:00:00'", "'838:59:59'", "'-01:00:00'"],
        [(datetime.time(12), 1), ("838:59:59", 1), ("-01:00:00", 1)],
    ),
    "years": ("year", ["2024", "1999", "2024"], [(2024, 2), (1999, 1)]),
    "bytes": (
        "varbinary(10)",
        ["x'00ff'", "x''", "x'61'"],
        [(b"\x00\xff", 1), (b"", 1), (b"a", 1)],
    ),
    "padded bytes": ("binary(3)", ["x'61'", "x'6100'"], [(b"a\x00\x00", 2)]),
    "choices": ("enum('a','b')", ["'a'", "'b'", "'b'"], [("b", 2), ("a", 1)]),
    "bits": ("bit(3)", ["b'101'", "b'001'"], [(5, 1), (1, 1)]),
    "whole numbers": ("bigint unsigned", ["18446744073709551615", "1"], [(2**64 - 1, 1), (1, 1)]),
    "identifiers": (
        "uuid",
        ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'", "'a0eebc999c0b4ef8bb6d6bb9bd380a11'"],
        [("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 2)],
    ),
}


@pytest.mark.filterwarnings("ignore:Unable to set session timezone")
@pytest.mark.parametrize("counted", [{}, {"user": "who"}], ids=["rows", "users"])
@pytest.mark.parametrize("name", MARIADB)
def test_mariadb(mariadb, name, counted):
    kind, values, expected = MARIADB[name]
    connection = ibis.connect(mariadb)
    try:
        with connection.begin() as cursor:
            cursor.execute("SET sql_mode = '', time_zone = '+00:00'")
            cursor.execute("DROP TABLE IF EXISTS agree")
            cursor.execute(f"CREATE TABLE agree (item {kind}, who int)")
            for who, value in enumerate(values):
                cursor.execute(f"INSERT INTO agree VALUES ({value}, {who})")
        assert exactly(items_of(connection.table("agree"), **counted)) == exactly(expected)
    finally:
        connection.disconnect()


SQLITE = {
    "case, by a collation": (
        "TEXT COLLATE NOCASE",
        ["'Ann'"] * 3 + ["'ann'"] * 2,
        [("Ann", 3), ("ann", 2)],
    ),
    "padded": ("TEXT COLLATE RTRIM", ["'a'", "'a '", "'a'"], [("a", 2), ("a ", 1)]),
    "no affinity": (
        "",
        ["1", "1.0", "'1'", "x'31'", "2.5", "'b'"],
        [(1, 2), ("1", 2), (2.5, 1), ("b", 1)],
    ),
    "no affinity, text first": ("", ["'b'", "1", "NULL"], [("b", 1), (1, 1)]),
    "text among numbers": ("INTEGER", ["1", "'x'", "2.5"], [(1, 1), ("x", 1), (2.5, 1)]),
    "no text": ("TEXT", ["CAST(x'ff00' AS TEXT)", "'a'"], [(b"\xff\x00", 1), ("a", 1)]),
    "blank": ("TEXT", ["''", "' '", "NULL"], [("", 1), (" ", 1)]),
    "sign of zero": ("REAL", ["0.0", "-0.0", "0.5", "NULL"], [(0, 2), (0.5, 1)]),
    "dates": (
        "DATE",
        ["'2024-02-29'", "'10000-01-01'", "'soon'", "7"],
        [(datetime.date(2024, 2, 29), 1), ("10000-01-01", 1), ("soon", 1), (7, 1)],
    ),
    "moments": (
        "TIMESTAMP",
        ["'2024-02-29 12:00:00'", "'2024-02-29T12:00:00'", "'2024-02-29 12:00:00.0'", "'then'"],
        [
            (datetime.datetime(2024, 2, 29, 12), 1),
            ("2024-02-29T12:00:00", 1),
            ("2024-02-29 12:00:00.0", 1),
            ("then", 1),
        ],
    ),
    "text that looks like numbers": (
        "DECIMAL(10,2)",
        ["'NaN'", "'1_000'", "1000", "'١'"],
        [("NaN", 1), ("1_000", 1), (1000, 1), ("١", 1)],
    ),
    "bytes": ("BLOB", ["x'00ff'", "x'61'", "'a'"], [(b"\x00\xff", 1), (b"a", 2)]),
    "truths": ("BOOLEAN", ["1", "0", "1", "2"], [(True, 2), (False, 1), (2, 1)]),
}


@pytest.mark.parametrize("counted", [{}, {"user": "who"}], ids=["rows", "users"])
@pytest.mark.parametrize("name", SQLITE)
def test_sqlite(tmp_path, name, counted):
    kind, values, expected = SQLITE[name]
    connection = ibis.sqlite.connect(tmp_path / "agree.sqlite")
    try:
        with connection.begin() as cursor:
            cursor.execute(f"CREATE TABLE agree (item {kind}, who INTEGER)")
            for who, value in enumerate(values):
                cursor.execute(f"INSERT INTO agree VALUES ({value}, {who})")
        assert exactly(items_of(connection.table("agree"), **counted)) == exactly(expected)
    finally:
        connection.disconnect()


DUCKDB = {
    "case, by a collation": (
        "VARCHAR COLLATE NOCASE",
        ["'Ann'"] * 3 + ["'ann'"] * 2,
        [("Ann", 3), ("ann", 2)],
    ),
    "accents": ("VARCHAR COLLATE NOACCENT", ["'é'", "'e'", "'e'"], [("e", 2), ("é", 1)]),
    "blank": ("VARCHAR", ["''", "' '", "NULL"], [("", 1), (" ", 1)]),
    "scale": ("DECIMAL(6,2)", ["1", "1.00", "2.5"], [(Decimal(1), 2), (Decimal("2.5"), 1)]),
    "sign of zero": ("DOUBLE", ["0.0", "-0.0", "0.5", "'nan'", "NULL"], [(0.0, 2), (0.5, 1)]),
    "spans": (
        "INTERVAL",
        ["'1 month'", "'30 days'", "'720 hours'", "'1 month'"],
        [("1 month", 2), ("30 days", 1), ("720:00:00", 1)],
    ),
    "dates": (
        "DATE",
        ["'2024-02-29'", "'infinity'", "'10000-01-01'", "'0044-03-15 (BC)'"],
        [(datetime.date(2024, 2, 29), 1), ("infinity", 1), ("10000-01-01", 1), ("-043-03-15", 1)],
    ),
    "moments": (
        "TIMESTAMP",
        ["'2024-02-29 12:00:00.5'", "'infinity'"],
        [(datetime.datetime(2024, 2, 29, 12, 0, 0, 500000), 1), ("infinity", 1)],
    ),
    "zones": (
        "TIMESTAMPTZ",
        ["'2024-02-29 12:00:00+00'", "'2024-02-29 13:00:00+01'"],
        [(datetime.datetime(2024, 2, 29, 12, tzinfo=UTC), 2)],
    ),
    "nanoseconds": (
        "TIMESTAMP_NS",
        ["'2024-02-29 12:00:00.000000001'", "'2024-02-29 12:00:00'"],
        [("2024-02-29T12:00:00.000000001", 1), (datetime.datetime(2024, 2, 29, 12), 1)],
    ),
    "times": ("TIME", ["'12:00:00'", "'24:00:00'"], [(datetime.time(12), 1), ("24:00:00", 1)]),
    "times with zones": (
        "TIMETZ",
        ["'12:00:00+00'", "'13:00:00+01'"],
        [("12:00:00+00", 1), ("13:00:00+01", 1)],
    ),
    "identifiers": (
        "UUID",
        ["'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'"] * 2,
        [("a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", 2)],
    ),
    "choices": ("ENUM('sad', 'ok')", ["'sad'", "'ok'", "'ok'"], [("ok", 2), ("sad", 1)]),
    "bytes": ("BLOB", ["'\\x00\\xFF'::BLOB", "''::BLOB"], [(b"\x00\xff", 1), (b"", 1)]),
    "large numbers": (
        "HUGEINT",
        ["170141183460469231731687303715884105727", "1"],
        [(Decimal(2**127 - 1), 1), (Decimal(1), 1)],
    ),
}


@pytest.mark.parametrize("counted", [{}, {"user": "who"}], ids=["rows", "users"])
@pytest.mark.parametrize("name", DUCKDB)
def test_duckdb(name, counted):
    kind, values, expected = DUCKDB[name]
    connection = ibis.duckdb.connect()
    try:
        connection.con.execute(f"CREATE TABLE agree (item {kind}, who INTEGER)")
        for who, value in enumerate(values):
            connection.con.execute(f"INSERT INTO agree VALUES ({value}, {who})")
        assert exactly(items_of(connection.table("agree"), **counted)) == exactly(expected)
    finally:
        connection.disconnect()


SPARK = {
    "case, by a collation": (
        "STRING COLLATE UTF8_LCASE",
        ["'Ann'"] * 3 + ["'ann'"] * 2,
        [("Ann", 3), ("ann", 2)],
    ),
    "case, by the rules of Unicode": (
        "STRING COLLATE UNICODE_CI",
        ["'Ann'"] * 3 + ["'ann'"],
        [("Ann", 3), ("ann", 1)],
    ),
    "blank": ("STRING", ["''", "' '", "NULL"], [("", 1), (" ", 1)]),
    "scale": ("DECIMAL(6,2)", ["1", "1.00", "2.5"], [(Decimal(1), 2), (Decimal("2.5"), 1)]),
    "sign of zero": (
        "DOUBLE",
        ["0.0D", "-0.0D", "0.5D", "double('nan')", "NULL"],
        [(0.0, 2), (0.5, 1)],
    ),
    "dates": (
        "DATE",
        ["date'2024-02-29'", "date'+10000-01-01'"],
        [(datetime.date(2024, 2, 29), 1), ("+10000-01-01", 1)],
    ),
    "zones": (
        "TIMESTAMP",
        ["timestamp'2024-02-29 12:00:00+00'", "timestamp'2024-02-29 13:00:00+01'"],
        [(datetime.datetime(2024, 2, 29, 12, tzinfo=UTC), 2)],
    ),
    "moments": (
        "TIMESTAMP_NTZ",
        ["timestamp_ntz'2024-02-29 12:00:00.5'"],
        [(datetime.datetime(2024, 2, 29, 12, 0, 0, 500000), 1)],
    ),
    "bytes": ("BINARY", ["x'00ff'", "x''"], [(b"\x00\xff", 1), (b"", 1)]),
}


@pytest.mark.parametrize("name", SPARK)
def test_spark(spark, name, monkeypatch):
    kind, values, expected = SPARK[name]
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    session = spark.newSession()
    connection = ibis.pyspark.connect(session)
    rows = " UNION ALL ".join(f"SELECT CAST({value} AS {kind}) AS item" for value in values)
    session.sql(rows).createOrReplaceTempView("agree")
    assert exactly(items_of(connection.table("agree"))) == exactly(expected)


NOON = datetime.datetime(2024, 2, 29, 12)

COLUMNS = {
    "far days": (
        pa.array([0, 2**31 - 2, -(2**31)], pa.int32()).cast(pa.date32()),
        [(datetime.date(1970, 1, 1), 1), ("5881580-07-10", 1), ("-5877641-06-23", 1)],
    ),
    "far moments": (
        pa.array([0, 2**62, -(2**62)], pa.timestamp("us")),
        [
            (datetime.datetime(1970, 1, 1), 1),
            ("148108-07-06T14:00:27.387904", 1),
            ("-144169-06-28T09:59:32.612096", 1),
        ],
    ),
    "far seconds": (
        pa.array([0, 2**50], pa.timestamp("s")),
        [(datetime.datetime(1970, 1, 1), 1), ("35680317-09-25T18:57:04", 1)],
    ),
    "case": (pa.array(["Ann"] * 3 + ["ann"] * 2 + ["ann "]), [("Ann", 3), ("ann", 2), ("ann ", 1)]),
    "blank": (pa.array(["", " ", None]), [("", 1), (" ", 1)]),
    "scale": (
        pa.array([Decimal("1.00"), Decimal("2.50")], pa.decimal128(6, 2)),
        [(Decimal(1), 1), (Decimal("2.5"), 1)],
    ),
    "sign of zero": (pa.array([0.0, -0.0, 0.5, float("nan"), None]), [(0.0, 2), (0.5, 1)]),
    "dates": (pa.array([datetime.date(2024, 2, 29)] * 2), [(datetime.date(2024, 2, 29), 2)]),
    "moments": (pa.array([NOON, NOON], pa.timestamp("us")), [(NOON, 2)]),
    "zones": (
        pa.array([NOON.replace(tzinfo=UTC)] * 2, pa.timestamp("us", "Asia/Tokyo")),
        [(NOON.replace(tzinfo=UTC), 2)],
    ),
    "times": (
        pa.array([datetime.time(12), datetime.time(12, 0, 0, 250000)]),
        [(datetime.time(12), 1), (datetime.time(12, 0, 0, 250000), 1)],
    ),
    "nanoseconds": (
        pa.array([1, 2, 2 * 10**9], pa.time64("ns")),
        [("00:00:00.000000001", 1), ("00:00:00.000000002", 1), (datetime.time(0, 0, 2), 1)],
    ),
    "bytes": (pa.array([b"\x00\xff", b""]), [(b"\x00\xff", 1), (b"", 1)]),
    "truths": (pa.array([True, False, True, None]), [(True, 2), (False, 1)]),
    "whole numbers": (pa.array([2**63 - 1, -1, None]), [(2**63 - 1, 1), (-1, 1)]),
}


def counted(data):
    """What `select` may release of a frame or a file, with the scores: for public data, a law tells
    both.
    """
    law = privmax.law(data, item="item", mechanism=LAW)
    return [item for item in law if item is not None]


def as_file(rows, folder):
    pq.write_table(rows, folder / "agree.parquet")
    return folder / "agree.parquet"


LACKING = {
    "pandas, objects": (
        "nanoseconds",
        "far days",
        "far moments",
        "far seconds",  # Python has no such objects
        "whole numbers",  # pandas may have rounded those from 2^53 on
    ),
    "Parquet": (
        "far seconds",
    ),  # DuckDB refuses such a file when it reads it, whoever would be drawn
}

FRAMES = {
    "Arrow": lambda rows, folder: rows,
    "Parquet": as_file,
    "polars": lambda rows, folder: pl.from_arrow(rows),
    "polars, lazy": lambda rows, folder: pl.from_arrow(rows).lazy(),
    "DuckDB": lambda rows, folder: duckdb.from_arrow(rows),
    "pandas, objects": lambda rows, folder: pd.DataFrame(
        {"item": pd.Series(rows["item"].to_pylist(), dtype=object)}
    ),
}


@pytest.mark.parametrize(
    ("frame", "name"),
    [(frame, name) for frame in FRAMES for name in COLUMNS if name not in LACKING.get(frame, ())],
)
def test_frames_and_files(tmp_path, frame, name):
    column, expected = COLUMNS[name]
    rows = FRAMES[frame](pa.table({"item": column}), tmp_path)
    labels = [label_by_value(item) if "objects" in frame else item for item, _ in expected]
    assert sorted(map(repr, counted(rows))) == sorted(map(repr, labels))


@pytest.mark.parametrize("rows", [["7", "007", ""], ["Ann", "ann", "ann "]])
def test_text_files_hold_text(tmp_path, rows):
    """Every cell is text, whatever it looks like, and an empty one is no item."""
    path = tmp_path / "agree.csv"
    path.write_text("item,n\n" + "".join(f"{row},1\n" for row in rows), encoding="utf-8")
    assert sorted(counted(path)) == sorted(row for row in rows if row)


@pytest.mark.filterwarnings("ignore:Unable to set session timezone")
def test_long_texts_are_told_apart_by_their_beginning_in_mariadb(mariadb):
    """Also those that are declared: what differs later is the same item."""
    long, longer = "é" * 16_000, "é" * 16_000 + "x"
    connection = ibis.connect(mariadb)
    try:
        with connection.begin() as cursor:
            cursor.execute("DROP TABLE IF EXISTS agree_long")
            cursor.execute("CREATE TABLE agree_long (item longtext)")
            cursor.executemany("INSERT INTO agree_long VALUES (%s)", [(long,), (longer,), ("é",)])
        table = connection.table("agree_long")
        assert exactly(items_of(table)) == exactly([(long, 2), ("é", 1)])
        assert exactly(items_of(table, universe=[longer, "é"])) == exactly([(long, 2), ("é", 1)])
    finally:
        connection.disconnect()


BASKETS = [
    ("1", "Ann"),
    ("1", "bread"),
    ("2", "ann"),
    ("2", "bread"),
    ("3", "Ann"),
    ("3", "ann "),
    ("3", "bread"),
]
SUPPORTS = {"Ann": 2, "ann": 1, "ann ": 1, "bread": 3}


def test_itemsets_of_text_that_postgresql_calls_equal(postgres):
    """Both passes tell items and baskets apart in the same way, so nothing seems to have
    changed.
    """
    with psycopg.connect(postgres, autocommit=True) as made:
        made.execute("CREATE EXTENSION IF NOT EXISTS citext")
        made.execute("DROP TABLE IF EXISTS agree_baskets")
        made.execute("CREATE TABLE agree_baskets (basket citext, item citext)")
        with made.cursor() as cursor:
            cursor.executemany("INSERT INTO agree_baskets VALUES (%s, %s)", BASKETS)
    connection = ibis.connect(postgres)
    try:
        assert supports_of(connection.table("agree_baskets")) == SUPPORTS
    finally:
        connection.drop_table("agree_baskets")
        connection.disconnect()


@pytest.mark.filterwarnings("ignore:Unable to set session timezone")
def test_itemsets_of_text_that_mariadb_calls_equal(mariadb):
    connection = ibis.connect(mariadb)
    try:
        with connection.begin() as cursor:
            cursor.execute("DROP TABLE IF EXISTS agree_baskets")
            cursor.execute("CREATE TABLE agree_baskets (basket varchar(20), item varchar(20))")
            cursor.executemany("INSERT INTO agree_baskets VALUES (%s, %s)", BASKETS)
        assert supports_of(connection.table("agree_baskets")) == SUPPORTS
    finally:
        connection.disconnect()


def supports_of(table):
    """{item: support}, after both passes."""
    with closing(TableRows(table, basket="basket", item="item")) as rows:
        return dict(zip(rows.labels, rows.survivors(1).supports().tolist(), strict=True))
