"""The cells of a schema computed by an engine are those computed in memory."""

from __future__ import annotations

import datetime
import math
import sys
from contextlib import nullcontext

import numpy as np
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import Category, Date, Flag, Number, Schema
from privmax.learning.kinds.flag import FALSE, TRUE

EDGES = Number(0, 1, cells=7).cuts.tolist()

NUMBERS = [
    *EDGES,
    *np.nextafter(EDGES, -math.inf).tolist(),
    *(-1.0, 0.0, -0.0, 0.999, 1e300, -1e300, sys.float_info.max, 5e-324, None, 2.0, 3.0),
]
TEXTS = ["0.3", " 0.3", "0.3\t", ".5", "5.", "+1e-1", "1e99", "1e400", "1_0", "nan", "inf", "٣"]
TEXTS += ["?", " ? ", "", "  ", None, "x", "Private", "private", "Private ", "1", "1.0", "0x1"]
TEXTS += [
    " \t Private\t \t",
    "\t \x0bPrivate",
    "\xa0Private",
    "\x85Private\x85",
    "PRIVATE",
    "Privaté",
]
TEXTS += [
    "f",
    "five",
    "1f",
    "1\x85",
    "1\u2028",
    "1\n2",
    "1\x1e",
    "-0",
    "0",
    "0." + "3" * 100,
    "1" * 101,
]
TEXTS += [
    "cafe\u0301",
    "café",
    "+.5",
    ".",
    "1e",
    "1e5.5",
    "-.5e-1",
    "E1",
    "9007199254740993",
    "a\\b",
    "a'b",
]
WHOLES = [0, 1, 2, 3, -1, 2**53 - 1, 2**53 + 1, None, -(2**62)]


def rows():
    """Columns of one length."""
    length = max(map(len, (NUMBERS, TEXTS, WHOLES)))
    data = {"number": NUMBERS, "text": TEXTS, "whole": WHOLES, "yes": [True, False, None]}
    repeated = {name: (values * length)[:length] for name, values in data.items()}
    return {"row": list(range(length)), **repeated}


SCHEMAS = [
    {"number": Number(0, 1, cells=7), "whole": Number(0, 3, cells=3, missing=-1)},
    {"number": Number(0, 1, cells=7, missing=[2, "3"]), "text": Number(0, 1, missing="?")},
    {"number": Category([0, 2, "3"], missing=True), "whole": Category([1, 2**53 - 1], missing=2)},
    {"text": Category(["Private", 1, "x"]), "whole": Category([3, "1"])},
    {"text": Category(["Private", 1, "x"], missing=["?", "0.3"]), "yes": Category([True])},
    {"text": Category(["f", "five", "café", "-0", "0", "a\\b", "a'b"], missing="E1")},
    {
        "whole": Category([str(2**53), str(2**53 + 1), -1]),
        "number": Category(["-0"], missing=0.999),
    },
    {"yes": Number(0, 1, cells=2, missing=True), "text": Number(0, 10, scale="log", missing=True)},
]


@pytest.mark.parametrize("columns", SCHEMAS)
def test_an_engine_finds_the_same_cells(load, engine, columns):
    if engine == "mariadb" and "yes" in columns:
        pytest.skip("it has no booleans: they are whole numbers there")
    data = rows()
    table, schema = load(data), Schema(columns)
    cells = dict(zip(schema.names, schema.expressions(table), strict=True))
    found = table.select("row", **{f"cell_{name}": cell for name, cell in cells.items()})
    read = found.order_by("row").to_pyarrow()
    for name, expected in zip(schema.names, schema.codes(_frame(data)), strict=True):
        assert read[f"cell_{name}"].to_pylist() == expected.tolist(), name


GRIDS = [(0, 1, 32), (-3, 3, 20), (17, 90, 64), (-0.1, 1.03, 50), (0, 1e-3, 9), (-1e300, 1e300, 10)]
GRIDS += [(1e15, 1e15 + 20, 16), (2.0**53, 2.0**54, 16), (-(2.0**40), 5, 300)]


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int16", "uint8"])
@pytest.mark.parametrize("grid", GRIDS)
def test_a_division_finds_the_same_cells(connection, grid, kind):
    """Around every cut, and at numbers that are rounded, too small or too large."""
    import pyarrow as pa

    low, high, cells = grid
    column = Number(low, high, cells=cells, missing=True)
    values = numbers_around(column.cuts, kind)
    table = connection.create_table("divided", pa.table({"number": values}), overwrite=True)
    (cell,) = Schema(number=column).expressions(table)
    found = table.select(cell=cell).to_pyarrow()["cell"].to_numpy()
    assert found.tolist() == column.codes(values).tolist()


def numbers_around(cuts, kind):
    with np.errstate(over="ignore"):
        single = cuts.astype(np.float32)
    near = [np.nextafter(single, side).astype(float) for side in np.float32([-np.inf, np.inf])]
    near += [np.nextafter(cuts, side) for side in (-np.inf, np.inf)]
    odd = [math.inf, -math.inf, math.nan, 0.0, -0.0, 5e-324, -5e-324, 1e-44, -1e-44, 1.7e308, 255]
    odd += [-1.7e308, 2.0**53, 2.0**53 + 2, 2.0**62, -(2.0**62), 32767, -32768]
    values = np.concatenate([cuts, single, *near, np.floor(cuts), np.ceil(cuts), odd])
    if kind.startswith("float"):
        with np.errstate(over="ignore"):
            return values.astype(kind)
    bounds = np.iinfo(kind)
    kept = values[(values >= float(bounds.min)) & (values < float(bounds.max))]
    return kept.astype(kind)


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
@pytest.mark.parametrize(
    ("kind", "divides"), [("float32", True), ("int64", True), ("float64", False)]
)
def test_columns_whose_type_is_coarse_are_divided(connection, kind, divides):
    """A search among 32 cuts takes DuckDB twice as long."""
    import ibis
    import pyarrow as pa

    table = connection.create_table("kind", pa.table({"x": np.zeros(1, kind)}), overwrite=True)
    (cell,) = Schema(x=Number(17, 90, cells=32)).expressions(table)
    assert ("FLOOR" in ibis.to_sql(cell)) == divides


def test_an_engine_keeps_nan_apart(load, engine):
    if engine in ("sqlite", "mariadb"):
        pytest.skip("it has no NaN")
    table = load({"number": [0.1, math.nan, 0.9]})
    for column, expected in [
        (Number(0, 1, cells=2), [0, 0, 1]),
        (Number(0, 1, cells=2, missing=True), [0, 1, 2]),
        (Category([0], missing=True), [0, 2, 2]),
    ]:
        (cell,) = Schema(number=column).expressions(table)
        assert sorted(table.select(cell=cell).to_pyarrow()["cell"].to_pylist()) == expected


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
def test_columns_that_do_not_fit_are_named(load):
    table = load({"joined": [datetime.date(2026, 11, 16)], "work": ["Private"]})
    with pytest.raises(ParameterError, match=r"schema='age' .* no such column"):
        Schema(age=Number(0, 1)).expressions(table)
    with pytest.raises(DataError, match="Column joined has dates"):
        Schema(joined=Category(["x"])).expressions(table)
    with pytest.raises(DataError, match="Column work is text by its type"):
        Schema(work=Number(0, 1)).expressions(table)


def _frame(data):
    import pandas as pd

    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in data.items()})


COLLATIONS = {
    "duckdb": "VARCHAR COLLATE NOCASE",
    "sqlite": "TEXT COLLATE NOCASE",
    "mariadb": "TEXT CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci",
}


@pytest.mark.parametrize("engine", list(COLLATIONS), scope="session")
def test_a_collation_calls_no_two_texts_equal(connection, engine):
    quote, hole = ("`", "%s") if engine == "mariadb" else ('"', "?")
    table = f"{quote}people{quote}"
    texts = ["Private", "private", "Privaté", " PRIVATE", "?"]
    with connection.begin() if engine != "duckdb" else nullcontext(connection.con) as cursor:
        cursor.execute(f"CREATE TABLE {table} (work {COLLATIONS[engine]})")
        cursor.executemany(f"INSERT INTO {table} VALUES ({hole})", [[text] for text in texts])
    people = connection.table("people")
    try:
        for work in (Category(["Private"], missing="?"), Number(0, 1, missing="private")):
            (cell,) = Schema(work=work).expressions(people)
            found = people.select(cell=cell).to_pyarrow()["cell"].to_pylist()
            assert sorted(found) == sorted(work.codes(texts).tolist())
    finally:
        connection.drop_table("people")


@pytest.mark.parametrize("engine", ["sqlite"], scope="session")
def test_bytes_in_a_column_of_text_are_no_reason_to_fail(connection, engine):
    with connection.begin() as cursor:
        cursor.execute("CREATE TABLE people (age TEXT)")
        cursor.execute("INSERT INTO people VALUES ('3'), (x'ff'), (CAST(x'ff' AS TEXT)), (NULL)")
    people = connection.table("people")
    for age, expected in [
        (Number(0, 10, cells=2, missing=True), [1, 0, 0, 0]),
        (Category([3], missing=True), [1, 2, 2, 0]),
    ]:
        (cell,) = Schema(age=age).expressions(people)
        assert people.select(cell=cell).to_pyarrow()["cell"].to_pylist() == expected


FLAGS = [*TRUE, *FALSE, " yes", "no\t", "tRUE", "yEs", "1.00", "01", "-0", "2", "maybe", "", None]
FLAGS += ["\xa0yes", "ye\u017f", "１"]


@pytest.mark.parametrize("missing", [None, True])
def test_an_engine_finds_the_cells_of_flags(load, engine, missing):
    numbers = [0.0, 1.0, -0.0, 2.0, 0.5, None, 1e300, -1.0]
    wholes = [0, 1, 2, -1, None, 2**62]
    data = {"text": FLAGS, "number": numbers, "whole": wholes, "yes": [True, False, None]}
    data = {name: (values * len(FLAGS))[: len(FLAGS)] for name, values in data.items()}
    same_cells(load, data, {name: Flag(missing=missing) for name in data})


def same_cells(load, data, columns, types=None):
    length = len(next(iter(data.values())))
    table = load({"row": list(range(length)), **data}, types=types)
    schema = Schema(columns)
    cells = dict(zip(schema.names, schema.expressions(table), strict=True))
    found = table.select("row", **{f"cell_{name}": cell for name, cell in cells.items()})
    read = found.order_by("row").to_pyarrow()
    for name, expected in zip(schema.names, schema.codes(_frame(data)), strict=True):
        told = list(zip(data[name], read[f"cell_{name}"].to_pylist(), expected, strict=True))
        assert [one for one in told if one[1] != one[2]] == [], name


DATES = [
    Date("2019-12-30", "2024-05-05T12:00:01", cells=7, missing=True),
    Date("1960-01-01", "2030-01-01", every="year"),
    Date("2024-02-01", "2024-03-15", every="day", missing=True),
    Date("1969-11-01", "1970-02-01", every="week"),
    Date("1600-01-01", "9000-01-01", cells=50, missing=True),
]


def moments_around(column, unit):
    """Every cut, and the last moment before it and the first after it that a type can tell."""
    step = datetime.timedelta(**{unit: 1})
    cuts = column.cuts.astype(datetime.datetime).tolist()
    far = [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31), None]
    return [*(cut + near for cut in cuts for near in (-step, step * 0, step)), *far]


@pytest.mark.parametrize("column", DATES, ids=repr)
def test_an_engine_finds_the_cells_of_moments(load, engine, column):
    moments = moments_around(column, "microseconds")
    days = [moment and moment.date() for moment in moments]
    texts = [moment and moment.isoformat(" ") for moment in moments]
    data = {"moment": moments, "day": days, "text": texts}
    same_cells(load, data, dict.fromkeys(data, column))


@pytest.mark.parametrize("engine", ["duckdb", "postgres", "spark"], scope="session")
@pytest.mark.parametrize("column", DATES[:4], ids=repr)
def test_an_engine_takes_moments_with_a_zone_in_utc(load, engine, column):
    zone = datetime.timezone(datetime.timedelta(hours=-5, minutes=-30))
    moments = [
        one.replace(tzinfo=datetime.UTC) for one in moments_around(column, "microseconds")[:-3]
    ]
    data = {"moment": [moment.astimezone(zone) for moment in moments]}
    data["text"] = [moment.isoformat() for moment in moments]
    same_cells(load, data, dict.fromkeys(data, column), {"moment": "timestamp('UTC')"})


TIMES = [
    *("2024-02-29", "2023-02-29", "1900-02-29", "2000-02-29", "2024-04-31", "2024-13-01"),
    *("2024-02-29T00:00", "2024-02-29 00:00:00", "2024-02-29t23:59:59.999999999"),
    *(
        "2024-02-29T00:00Z",
        "2024-02-29T00:00:00z",
        "2024-02-29T00:30:00+01:00",
        "2024-02-29T00:00:00+00",
    ),
    *(
        "2024-02-29T00:00:00.5+00:00",
        "2024-02-29T00:00:00-00:00",
        "2024-02-29T24:00",
        "2024-02-29T00:60",
        "2024-02-29T00:00:60",
    ),
    *("2024-02-29T00:00:00.", "2024-02-29T", "2024-2-29", "29.02.2024", "20240229", "1709164800"),
    *("2024-02-29T00:00:00+24:00", "2024-02-29T00:00 +01:00", " 2024-02-29\t", "0000-01-01"),
    *("0000-03-01", "9999-12-31T23:59:59-23:59", "-2024-02-29", "+2024-02-29", "２024-02-29"),
    *("2024-02-29\x85", "2024-02-29\u2028", "2024-02-29\n2", "now", "epoch", "infinity", "NaT"),
    *("", None, "2024-02-29T00:00:00.1234567890", "2024-02-29T01:02:03,5", "2024-W09-4"),
]


@pytest.mark.parametrize(
    "column", [DATES[2], DATES[4], Date("2024-02-28", "2024-03-01", cells=3)], ids=repr
)
def test_an_engine_reads_the_same_texts_as_dates(load, engine, column):
    same_cells(load, {"text": TIMES}, {"text": column})


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("column", DATES, ids=repr)
def test_the_unit_of_a_moment_makes_no_difference(connection, unit, column):
    """No conversion rounds a moment before 1970, or fails at one that a unit has no place for."""
    import pyarrow as pa

    cuts = column.cuts
    if unit == "ns":
        cuts = cuts[(cuts > np.datetime64("1678")) & (cuts < np.datetime64("2262"))]
    wholes = cuts.astype(f"M8[{unit}]").view(np.int64)
    largest = 2**62 if unit in ("s", "ns") else 2**60
    values = np.concatenate([wholes - 1, wholes, wholes + 1, [0, -1, 1, largest, -largest]])
    moments = pa.array(values, pa.timestamp(unit))
    table = connection.create_table("moments", pa.table({"moment": moments}), overwrite=True)
    (cell,) = Schema(moment=column).expressions(table)
    found = table.select(cell=cell).to_pyarrow()["cell"].to_numpy()
    assert found.tolist() == column.codes(moments).tolist()


@pytest.mark.parametrize("engine", ["duckdb"], scope="session")
def test_numbers_are_no_dates(load):
    table = load({"joined": [20240301, None], "yes": [True, None]})
    with pytest.raises(DataError, match="Column joined has numbers by its type"):
        Schema(joined=Date("2024-01-01", "2025-01-01")).expressions(table)
    schema = Schema(
        dict.fromkeys(["joined", "yes"], Date("2024-01-01", "2025-01-01", missing=True))
    )
    cells = dict(zip("ab", schema.expressions(table), strict=True))
    assert table.select(**cells).to_pyarrow().to_pylist() == [{"a": 0, "b": 0}] * 2
