"""Kinds of columns: flags and dates, and what every kind answers."""

from __future__ import annotations

import datetime as dt
import json
import pickle
from contextlib import closing
from zoneinfo import ZoneInfo

import ibis
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from privmax.errors import DataError, ParameterError
from privmax.learning import (
    Category,
    Conjunctions,
    Date,
    Flag,
    LinearGrid,
    Number,
    PrivateClassifier,
    PrivateERM,
    PrivateGAM,
    PrivateTree,
    Schema,
    Stumps,
    Trees,
)
from privmax.learning.classes.stumps import Constant
from privmax.learning.classes.trees import Tree
from privmax.learning.expressions import cell_expressions
from privmax.learning.kinds import KINDS, Column, Kind
from privmax.learning.kinds.flag import FALSE, TRUE
from privmax.learning.kinds.moments import seconds_of_array
from privmax.learning.rules import check_rule, describe_rule, write_rule
from privmax.learning.splits import Splits, find_split
from privmax.sources.engines import engine_of
from privmax.testing import SeededCoins

MONTHS = Date("2024-01-01", "2024-04-01", every="month", missing=True).with_name("joined")
EXAMPLES = [
    Number(0, 9, cells=3, missing=True),
    Category(["a", "b"], missing="?"),
    Flag(),
    Flag(missing=True),
    MONTHS,
    Date("2024-01-01", "2024-01-02", cells=3),
]


@pytest.mark.parametrize("column", EXAMPLES, ids=repr)
def test_every_kind_is_a_column(column):
    column = column.with_name("x")
    assert isinstance(column, Column)
    assert KINDS[column.kind] is type(column)
    words = [column.describe(cell) for cell in range(column.cells)]
    assert len(set(words)) == column.cells
    with pytest.raises(ParameterError, match="cell="):
        column.describe(column.cells)
    schema = Schema(x=column)
    written = json.loads(json.dumps(schema.to_dict()))
    assert Schema.from_dict(written) == schema
    assert pickle.loads(pickle.dumps(schema)) == schema


@pytest.mark.parametrize("column", EXAMPLES, ids=repr)
def test_every_test_of_a_kind_is_found_again(column):
    schema = Schema(x=column)
    splits = Splits(schema.columns[0])
    told = set()
    for place in range(len(splits)):
        for below in (False, True):
            test = json.loads(json.dumps(splits[place].to_dict(below=below)))
            assert find_split(schema, test) == (splits[place], below)
            told.add(splits[place].rule(below=below))
    assert len(told) == 2 * len(splits)
    for wrong in (
        *({"threshold": 0.5, "below": True}, {"threshold": "2024-01-09", "below": True}),
        *({"equals": "c", "not": True}, {"state": "gone", "not": True}, {"threshold": "x"}),
    ):
        with pytest.raises(DataError):
            find_split(schema, {"feature": "x", **wrong})


def test_a_name_of_a_kind_is_given_once():
    with pytest.raises(TypeError, match="'flag' already"):

        class Other(Kind):
            kind = "flag"


# Flags.


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((text, 2) for text in (*TRUE, " yes\n", True, 1, 1.0, np.bool_(True), np.int8(1))),
        *((text, 1) for text in (*FALSE, "\tno", False, 0, 0.0, -0.0, np.bool_(False))),
        *((one, 0) for one in (None, "", "maybe", 2, 0.5, float("nan"), "tRUE", "1.00", "\xa0yes")),
        *((one, 0) for one in (object(), [True], b"yes", dt.date(2024, 1, 1), 1j, "-0")),
    ],
)
def test_the_cell_of_a_flag(value, cell):
    values = np.empty(1, object)
    values[0] = value
    assert Flag(missing=True).codes(values).tolist() == [cell]
    assert Flag().codes(values).tolist() == [max(cell - 1, 0)]


def test_the_type_of_a_column_of_flags_makes_no_difference():
    flag = Flag(missing=True)
    for values in (
        np.array([True, False]),
        np.array([1, 0], np.uint8),
        np.array([1.0, 0.0], np.float32),
        np.array(["yes", "no"]),
        pd.Series([True, False], dtype="boolean"),
        pd.Series(["on", "off"], dtype="category"),
        pl.Series([True, False]),
        pa.array([True, False]),
        pa.array([1.0, 0.0]),
    ):
        assert flag.codes(values).tolist() == [2, 1]


@pytest.mark.parametrize("missing", [False, "?", 0, ["?"]])
@pytest.mark.parametrize(
    "make", [Flag, lambda **told: Date("2024-01-01", "2025-01-01", **told)], ids=["Flag", "Date"]
)
def test_missing_of_flags_and_dates_is_true_or_left_out(make, missing):
    with pytest.raises(
        ParameterError, match=r"missing=.* must be True, or left out: .* missing=True"
    ):
        make(missing=missing)


def test_flags_refuse_dates_by_their_type():
    with pytest.raises(DataError, match="Column value has dates by its type"):
        Flag().codes(np.array(["2024-01-01"], "M8[D]"))


# Dates.


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        *((one, 1) for one in ("1999-01-01", dt.date(2024, 1, 31), "2024-01-31 23:59:59.999")),
        *((one, 2) for one in ("2024-02-01", dt.date(2024, 2, 1), dt.datetime(2024, 2, 1))),
        *((one, 2) for one in ("2024-02-29T00:00", " 2024-02-29T00:00:00Z")),
        *((one, 2) for one in ("2024-02-01 00:00:00+00", "2024-02-01 00:00:00.123456789+00:00")),
        *((one, 3) for one in ("2024-03-01", "9999-12-31", np.datetime64(10**9, "Y"))),
        (dt.datetime(2024, 2, 1, tzinfo=ZoneInfo("Europe/Berlin")), 1),
        (dt.datetime(2024, 2, 1, 1, tzinfo=ZoneInfo("Europe/Berlin")), 2),
        (dt.datetime(1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=9))), 1),
        (pd.Timestamp("2024-02-01") - pd.Timedelta(1, "ns"), 1),
        (pd.Timestamp("2024-02-01", tz="UTC"), 2),
        (np.datetime64("2024-02-01T00", "h"), 2),
        (np.datetime64(-(10**9), "W"), 1),
        *((one, 0) for one in (None, "", pd.NaT, np.datetime64("NaT", "s"), 20240201, 1.5, True)),
        *((one, 0) for one in ("2024-02-30", "2023-02-29", "1900-02-29", "2024-02-01T00:00Z")),
        *((one, 0) for one in ("2024-02-01T00:00:00+01:00", "2024-02-01T24:00", "20240201")),
        *((one, 0) for one in (dt.time(1), dt.timedelta(1), np.timedelta64(1, "s"), b"2024-02-01")),
    ],
)  # fmt: skip
def test_the_cell_of_a_date(value, cell):
    values = np.empty(1, object)
    values[0] = value
    assert MONTHS.codes(values).tolist() == [cell]


class Bad(dt.tzinfo):
    def utcoffset(self, when):
        raise RuntimeError("private")


def test_a_zone_that_fails_makes_a_moment_missing():
    assert MONTHS.codes([dt.datetime(2024, 2, 1, tzinfo=Bad())]).tolist() == [0]


def test_the_type_of_a_column_of_dates_makes_no_difference():
    moments = [dt.datetime(2024, 1, 31, 23, 59, 59, 999999), dt.datetime(2024, 2, 1), None]
    aware = [moment and moment.replace(tzinfo=dt.UTC) for moment in moments]
    berlin = pd.Series(pd.to_datetime(aware)).dt.tz_convert("Europe/Berlin")
    for values in (
        moments,
        aware,
        *(np.array(["2024-01-31T23:59:59", "2024-02-01", "NaT"], f"M8[{unit}]") for unit in
          ("s", "ms", "us", "ns")),
        pd.Series(pd.to_datetime(moments)),
        berlin,
        berlin.astype("category"),
        pd.Series(moments, dtype="timestamp[us][pyarrow]"),
        pl.Series(moments),
        pl.Series(aware).dt.convert_time_zone("Asia/Tokyo"),
        pa.array(moments),
        pa.array(aware, pa.timestamp("ns", "Asia/Tokyo")),
        pa.chunked_array([pa.array(moments)]),
        [moment and moment.isoformat() for moment in moments],
    ):  # fmt: skip
        assert MONTHS.codes(values).tolist() == [1, 2, 0], type(values)
    days = [dt.date(2024, 1, 31), dt.date(2024, 2, 1), None]
    for values in (days, pl.Series(days), pa.array(days), pa.array(days, pa.date64())):
        assert MONTHS.codes(values).tolist() == [1, 2, 0], type(values)


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "as"])
def test_moments_before_1970_are_rounded_down(unit):
    cut = Date("1969-01-01", "1971-01-01", cells=2)
    assert cut.cuts.tolist() == [dt.datetime(1970, 1, 1)]
    assert cut.codes(np.array([-1, 0, 1], f"M8[{unit}]")).tolist() == [0, 1, 1]


@pytest.mark.parametrize(
    ("every", "low", "high", "cuts"),
    [
        ("day", "2024-02-28T12:00", "2024-03-01T12:00", ["2024-02-29", "2024-03-01"]),
        ("week", "2024-02-26", "2024-03-12", ["2024-03-04", "2024-03-11"]),
        ("week", "0001-01-01", "0001-01-09", ["0001-01-08"]),
        ("month", "1969-11-15", "1970-01-02", ["1969-12-01", "1970-01-01"]),
        ("year", "1899-12-31", "1901-01-01", ["1900-01-01"]),
        ("month", "2024-02-02", "2024-02-03", []),
    ],
)
def test_cells_of_the_calendar(every, low, high, cuts):
    date = Date(low, high, every=every)
    assert [str(cut)[:10] for cut in date.cuts] == cuts
    assert date.codes([f"{cut}T00:00" for cut in cuts]).tolist() == list(range(1, len(cuts) + 1))


def test_equal_cells_are_cut_at_whole_seconds():
    date = Date(dt.date(2024, 1, 1), np.datetime64("2024-01-01T00:00:10"), cells=3)
    assert [str(cut)[-2:] for cut in date.cuts] == ["03", "06"]
    assert date == Date("2024-01-01", "2024-01-01T00:00:10", cells=3)
    assert date.with_name("x").describe(0) == "x < 2024-01-01T00:00:03"
    assert Date("2024-01-01", "2025-01-01").cells == 16
    assert Date("2024-01-01", "2025-01-01", cells=1).describe(0) == "value is any date"


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: Date(), "low is required: a date needs public bounds"),
        (lambda: Date("2024-01-01"), "high is required"),
        (lambda: Date("2024-02-30", "2025-01-01"), r"low='2024-02-30' .* years 1 to 9999"),
        (lambda: Date(2024, 2025), "low=2024"),
        (lambda: Date("2024-01-01", np.datetime64("20000-01-01")), "high="),
        (lambda: Date("2024-01-01", "2024-01-01"), "high='2024-01-01' .* later than low"),
        (lambda: Date("2024-01-01", "2025-01-01", every="decade"), "every='decade' .* day, week"),
        (lambda: Date("2024-01-01", "2025-01-01", every=["day"]), "every="),
        (lambda: Date("1000-01-01", "2025-01-01", every="day"), "every='day' .* cells"),
        (lambda: Date("2024-01-01", "2025-01-01", cells=3, every="day"), "cells=3 .* every is"),
        (lambda: Date("2024-01-01", "2025-01-01", cells=0), "cells=0"),
        (lambda: Date("2024-01-01", "2025-01-01", cells=2.5), "cells=2.5"),
        (lambda: Date("2024-01-01", "2024-01-01T00:00:05", cells=6), "cells=6 .* 5 seconds"),
        (lambda: Schema.from_dict({"x": {"kind": "date", "low": "x"}}), r"x\.low='x'"),
        (
            lambda: Schema.from_dict({"x": {"kind": "date"}}),
            r'x\.low is required.*low = "2020-01-01"',
        ),
        (
            lambda: Schema.from_dict({"x": {"kind": "flag", "low": 1}}),
            r"x\.low=1 .* It has missing",
        ),
        (lambda: Schema.from_dict({"x": {"kind": "moment"}}), r"x\.kind='moment' .* date, flag"),
        (lambda: Schema.from_dict({"x": {"kind": ["flag"]}}), r"x\.kind="),
        (lambda: Schema.from_dict({"x": {"kind": "category"}}), r"x\.values is required"),
    ],
)
def test_wrong_declarations(make, told):
    with pytest.raises(ParameterError, match=told):
        make()


def test_dates_refuse_numbers_by_their_type():
    with pytest.raises(DataError, match="Column value has numbers by its type"):
        Date("2024-01-01", "2025-01-01").codes(np.array([20240101]))
    assert MONTHS.codes(np.array([20240101])).tolist() == [0]


def test_a_file_declares_flags_and_dates(tmp_path):
    path = tmp_path / "schema.toml"
    path.write_text(
        "[smoker]\nkind = 'flag'\nmissing = true\n"
        "[joined]\nkind = 'date'\nlow = 2024-01-01\nhigh = 2024-04-01\nevery = 'month'\n"
        "[age]\nkind = 'number'\nlow = 0\nhigh = 9\n[work]\nkind = 'category'\nvalues = ['a']\n"
    )
    schema = Schema.from_file(path)
    assert schema == Schema(
        smoker=Flag(missing=True),
        joined=Date("2024-01-01", "2024-04-01", every="month"),
        age=Number(0, 9),
        work=Category(["a"]),
    )
    assert schema.to_dict() == {
        "smoker": {"kind": "flag", "missing": True},
        "joined": {"kind": "date", "low": "2024-01-01", "high": "2024-04-01", "every": "month"},
        "age": {"low": 0, "high": 9, "cells": 16},
        "work": {"values": ["a"]},
    }


# Learners.

SCHEMA = Schema(smoker=Flag(missing=True), joined=MONTHS)


def people(rows=6000):
    rng = np.random.default_rng(3)
    days = np.datetime64("2024-01-01") + rng.integers(0, 120, rows)
    smokers = rng.choice(np.array(["yes", "no", None], object), rows)
    return pd.DataFrame({"smoker": smokers, "joined": days.astype("M8[s]")})


CLASSES = [
    Stumps(schema=SCHEMA),
    Trees(schema=SCHEMA),
    Conjunctions(schema=SCHEMA, literals=1),
    LinearGrid.random(directions=50, schema=SCHEMA, offsets=[-40, 0, 40], levels=3, seed=1),
]


@pytest.mark.parametrize("hypotheses", CLASSES, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("by", ["smoker", "joined"])
def test_every_class_learns_from_flags_and_dates(hypotheses, by):
    X = people()
    y = X["smoker"] == "yes" if by == "smoker" else X["joined"] >= np.datetime64("2024-03-01")
    learner = PrivateERM(hypotheses, epsilon=5, labels=[False, True], coins=SeededCoins(1))
    learner.fit(X, y.to_numpy())
    right = np.mean(learner.predict(X) == y.to_numpy())
    if isinstance(hypotheses, LinearGrid):
        assert right > 0.8  # there are few directions
        return
    assert right == 1
    told = {"smoker": "smoker = True", "joined": "joined >= 2024-03-01"}[by]
    assert told in learner.rule_ or "joined < 2024-03-01" in learner.rule_


@pytest.mark.parametrize("by", ["smoker", "joined"])
def test_additive_models_and_trees_learn_from_flags_and_dates(by):
    X = people()
    y = X["smoker"] == "yes" if by == "smoker" else X["joined"] >= np.datetime64("2024-03-01")
    given = {"labels": [False, True], "coins": SeededCoins(1)}
    for model in (
        PrivateClassifier(SCHEMA, epsilon=5, delta=1e-6, **given),
        PrivateGAM(SCHEMA, 5, 1e-6, rounds=10, **given),
        PrivateTree(SCHEMA, 5, depth=2, **given),
    ):
        model.fit(X, y.to_numpy())
        assert np.mean(model.predict(X) == y.to_numpy()) > 0.99, type(model)


def test_rules_on_dates_are_simplified_and_read_back():
    split = Splits(SCHEMA.columns[1])
    inner = Tree(1, split[1], Constant(0), Constant(1))
    tree = Tree(1, split[2], inner, Constant(1))
    rule = json.loads(json.dumps(write_rule(tree, SCHEMA.names, ["no", "yes"])))
    assert describe_rule(rule, "y") == ["y = yes if joined >= 2024-02-01, else no"]
    assert check_rule(rule, SCHEMA) == rule


@pytest.mark.parametrize("unit", ["ms", "us", "ns", "ps", "fs", "as", "25ns", "7ns"])
@pytest.mark.parametrize("tick", [1 - 2**63, -(2**60), -1, 0, 1, 2**63 - 1])
def test_ticks_become_whole_seconds_without_wrapping_around(unit, tick):
    """NumPy made 2262 of the first moments of 1677."""
    name, multiple = np.datetime_data(f"M8[{unit}]")
    parts = 10 ** (3 * ["s", "ms", "us", "ns", "ps", "fs", "as"].index(name))
    (seconds,) = seconds_of_array(np.array([tick], f"M8[{unit}]"))
    assert seconds == float(tick * multiple // parts)


@pytest.mark.parametrize("unit", ["D", "s", "ms", "us", "ns"])
def test_masked_moments_are_missing_and_others_are_not(unit):
    held = np.ma.masked_array(np.array(["2024-08-01"] * 2, f"M8[{unit}]"), mask=[False, True])
    column = Date("2024-01-01", "2025-01-01", cells=4, missing=True)
    assert column.codes(held).tolist() == [3, 0]


@pytest.mark.parametrize("zone", [None, "Asia/Tokyo"])
def test_pandas_columns_that_are_no_series(zone):
    moments = pd.to_datetime(["2024-08-01", None]).tz_localize(zone)
    column = Date("2024-01-01", "2025-01-01", cells=4, missing=True)
    for held in (moments, moments.array, pd.Categorical(moments), pd.CategoricalIndex(moments)):
        assert column.codes(held).tolist() == [3, 0]


def cells_in_sqlite(kind, values, *, declared):
    """The cells that SQLite finds, in a table whose column has a type, or in a view."""
    connection = ibis.sqlite.connect()
    with closing(connection.con):
        connection.con.execute(f"CREATE TABLE base (value {declared or ''})")
        connection.con.executemany("INSERT INTO base VALUES (?)", [(one,) for one in values])
        connection.con.execute("CREATE VIEW shown AS SELECT value FROM base")
        engine = engine_of(connection.table("base"))
        table = engine.declare(connection.table("base" if declared else "shown"))
        [cell] = cell_expressions(Schema({"value": kind}), table)
        return [found for (found,) in engine.rows(table.select(cell=cell))]


MIXED_VALUES = ["yes", " No ", "maybe", "1", "2", 1, 0, 2, 1.0, 0.5, None, b"1", "", "2024-03-01"]


@pytest.mark.parametrize("declared", ["INTEGER", "NUMERIC", ""])
@pytest.mark.parametrize(
    "kind",
    [Flag(missing=True), Flag(), Number(0, 4, cells=4, missing=True), Category(["yes", "1", "2"])],
    ids=repr,
)
def test_values_of_sqlite_are_read_by_what_they_are(kind, declared):
    """A column binds nothing there, and one without a type, as a view has, is no number: the text
    yes was false in it.
    """
    held = [value for value in MIXED_VALUES if value != b"1"]
    assert cells_in_sqlite(kind, held, declared=declared) == kind.codes(held).tolist()
    assert cells_in_sqlite(kind, [b"1"], declared=declared) == kind.codes([None]).tolist()


def test_dates_in_columns_of_sqlite_without_a_type():
    kind = Date("2024-01-01", "2024-05-01", every="month", missing=True)
    held = ["2024-03-01", "soon", None, 5]
    assert cells_in_sqlite(kind, held, declared="") == kind.codes(held).tolist() == [3, 0, 0, 0]


def test_more_cells_of_texts_than_an_engine_can_find_are_refused():
    """10,000 ended in an error of SQLite's parser."""
    with pytest.raises(ParameterError, match="at most 4096 cells"):
        cells_in_sqlite(Date("2020-01-01", "2030-01-01", cells=4097), [], declared="DATE")


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_the_first_moment_of_all_is_no_missing_one(unit):
    """NumPy takes it for NaT; to Arrow, polars and engines it is a moment as any other."""
    kind = Date("2024-01-01", "2024-05-01", every="month", missing=True)
    found = pa.array([-(1 << 63), None, 0], pa.timestamp(unit))
    assert kind.codes(found).tolist() == [1, 0, 1]
    assert kind.codes(pa.chunked_array([found])).tolist() == [1, 0, 1]
    numbers = pl.Series([-(1 << 63), None, 0], dtype=pl.Int64)
    assert kind.codes(numbers.cast(pl.Datetime(unit))).tolist() == [1, 0, 1]
    assert kind.codes(np.array([-(1 << 63), 0], f"M8[{unit}]")).tolist() == [0, 1]


@pytest.mark.parametrize("unit", ["us", "ns"])
def test_it_is_none_in_engines_either(unit):
    kind = Date("2024-01-01", "2024-05-01", every="month", missing=True)
    found = pa.table({"value": pa.array([-(1 << 63), None, 0], pa.timestamp(unit))})
    connection = ibis.duckdb.connect()
    connection.con.register("found", found)
    table = connection.table("found")
    [cell] = cell_expressions(Schema({"value": kind}), table)
    assert engine_of(table).rows(table.select(cell=cell)) == [(1,), (0,), (1,)]


def test_more_cells_of_texts_than_halving_can_find():
    kind = Date("2020-01-01", "2030-01-01", cells=100)
    held = [f"{2019 + at // 12}-{at % 12 + 1:02}-11 07:{at % 60:02}" for at in range(150)]
    assert cells_in_sqlite(kind, held, declared="DATE") == kind.codes(held).tolist()
